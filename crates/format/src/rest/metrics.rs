//! Reports of scans and commits, which clients send to a server.

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::form::{Form, messages};
use crate::json::{self, Object, StringMap};
use crate::{Error, Result};

messages! {
    /// A count.
    #[derive(Eq)]
    Counter, "a counter" {
        /// What is counted: `count` or `bytes`.
        unit: String = "unit";
        /// How many.
        value: i64 = "value";
    }

    /// A sum of times.
    #[derive(Eq)]
    Timer, "a timer" {
        /// How often it was taken.
        count: i64 = "count";
        /// The unit, such as `nanoseconds`.
        time_unit: String = "time-unit";
        /// All times together.
        total_duration: i64 = "total-duration";
    }

    /// A scan that was planned.
    ScanReport, "a report of a scan" {
        /// The table.
        table_name: String = "table-name";
        /// The snapshot.
        snapshot_id: i64 = "snapshot-id";
        /// The filter, without literals that must not be known: see [`crate::expr::Expr::from_json`].
        filter: Json = "filter";
        /// The schema.
        schema_id: i32 = "schema-id";
        /// Ids of the columns read.
        projected_field_ids: Vec<i32> = "projected-field-ids";
        /// Names of the columns read.
        projected_field_names: Vec<String> = "projected-field-names";
        /// The metrics by name.
        metrics: IndexMap<String, Metric> = "metrics";
        /// Anything else.
        metadata: Option<StringMap> = "metadata";
    }

    /// A commit that was made.
    CommitReport, "a report of a commit" {
        /// The table.
        table_name: String = "table-name";
        /// The new snapshot.
        snapshot_id: i64 = "snapshot-id";
        /// Its sequence number.
        sequence_number: i64 = "sequence-number";
        /// Its operation.
        operation: String = "operation";
        /// The metrics by name.
        metrics: IndexMap<String, Metric> = "metrics";
        /// Anything else.
        metadata: Option<StringMap> = "metadata";
    }
}

/// A count or a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// A count.
    Counter(Counter),
    /// A time.
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

/// A report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportMetricsRequest {
    /// Of a scan.
    Scan(ScanReport),
    /// Of a commit.
    Commit(CommitReport),
}

impl ReportMetricsRequest {
    /// Reads the JSON form.
    ///
    /// # Errors
    /// A report of another kind, and a member that is missing or has another kind.
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
