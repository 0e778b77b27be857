//! Reports about scans and commits that clients send to a server.

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::form::{Form, messages};
use crate::json::{self, Object, StringMap};
use crate::{Error, Result};

messages! {
    /// A count.
    #[derive(Eq)]
    Counter, "a counter" {
        /// Unit: `count` or `bytes`.
        unit: String = "unit";
        /// The count.
        value: i64 = "value";
    }

    /// A total duration.
    #[derive(Eq)]
    Timer, "a timer" {
        /// Number of measurements.
        count: i64 = "count";
        /// Unit of time, such as `nanoseconds`.
        time_unit: String = "time-unit";
        /// Sum of all measurements.
        total_duration: i64 = "total-duration";
    }

    /// Report about a planned scan.
    ScanReport, "a report of a scan" {
        /// Name of the table.
        table_name: String = "table-name";
        /// Id of the snapshot.
        snapshot_id: i64 = "snapshot-id";
        /// The filter, without confidential literals: see [`crate::expr::Expr::from_json`].
        filter: Json = "filter";
        /// Id of the schema.
        schema_id: i32 = "schema-id";
        /// Ids of the columns that are read.
        projected_field_ids: Vec<i32> = "projected-field-ids";
        /// Names of the columns that are read.
        projected_field_names: Vec<String> = "projected-field-names";
        /// Metrics by name.
        metrics: IndexMap<String, Metric> = "metrics";
        /// Additional information.
        metadata: Option<StringMap> = "metadata";
    }

    /// Report about a commit.
    CommitReport, "a report of a commit" {
        /// Name of the table.
        table_name: String = "table-name";
        /// Id of the new snapshot.
        snapshot_id: i64 = "snapshot-id";
        /// Sequence number of the snapshot.
        sequence_number: i64 = "sequence-number";
        /// Operation of the snapshot.
        operation: String = "operation";
        /// Metrics by name.
        metrics: IndexMap<String, Metric> = "metrics";
        /// Additional information.
        metadata: Option<StringMap> = "metadata";
    }
}

/// A metric: a count or a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// A count.
    Counter(Counter),
    /// A duration.
    Timer(Timer),
}

impl Form for Metric {
    fn read(json: &Json) -> Result<Self> {
        match Object::new(json, "a metric")?.get("time-unit") {
            Some(_) => Timer::read(json).map(Self::Timer),
            None => Counter::read(json).map(Self::Counter),
        }
    }

    fn write(&self) -> Json {
        match self {
            Self::Counter(counter) => counter.write(),
            Self::Timer(timer) => timer.write(),
        }
    }
}

impl Form for IndexMap<String, Metric> {
    fn read(json: &Json) -> Result<Self> {
        json::map(json, Metric::read)
    }

    fn write(&self) -> Json {
        Json::Object(self.iter().map(|(name, metric)| (name.clone(), metric.write())).collect())
    }
}

/// A report about a scan or a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportMetricsRequest {
    /// Report about a scan.
    Scan(ScanReport),
    /// Report about a commit.
    Commit(CommitReport),
}

impl ReportMetricsRequest {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// An unknown kind of report, or a member that is missing or of another kind.
    pub fn from_json(json: &Json) -> Result<Self> {
        match Object::new(json, "a report")?.field("report-type", json::string)?.as_str() {
            "scan-report" => ScanReport::read(json).map(Self::Scan),
            "commit-report" => CommitReport::read(json).map(Self::Commit),
            other => Err(Error::corrupt("/report-type", format!("invalid type of report: {other:?}"))),
        }
    }

    /// Writes the JSON form.
    pub fn to_json(&self) -> Json {
        let (kind, mut report) = match self {
            Self::Scan(report) => ("scan-report", report.write()),
            Self::Commit(report) => ("commit-report", report.write()),
        };
        if let Some(members) = report.as_object_mut() {
            members.insert("report-type".to_owned(), kind.into());
        }
        report
    }
}
