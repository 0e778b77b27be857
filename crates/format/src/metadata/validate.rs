//! What must hold in any table metadata, however it came about.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;

use super::{Document, FormatVersion, MAIN_BRANCH, TableMetadata};
use crate::json;
use crate::spec::{PartitionSpec, SortOrder, SpecUse};
use crate::types::Schema;
use crate::{Error, Result};

/// Clocks of different machines may differ by this much before an order of times counts as wrong.
const CLOCK_SKEW_MS: i64 = 60_000;

impl Document {
    /// The metadata of this document, if all its parts fit together.
    pub(super) fn check(mut self) -> Result<TableMetadata> {
        self.location = strip_trailing_slash(&self.location)?.to_owned();
        self.check_versioned_fields()?;
        let current_schema = self.check_schemas()?;
        let default_spec = self.check_specs(&current_schema)?;
        let default_sort_order = self.check_sort_orders(&current_schema)?;
        let snapshots_by_id = self.index_snapshots()?;
        self.check_refs(&snapshots_by_id)?;
        self.check_logs()?;
        Ok(TableMetadata { document: self, current_schema, default_spec, default_sort_order, snapshots_by_id })
    }

    fn check_versioned_fields(&self) -> Result<()> {
        match self.format_version {
            FormatVersion::V1 if self.last_sequence_number != 0 => {
                Err(Error::corrupt("/last-sequence-number", "must be 0 in format version 1"))
            }
            FormatVersion::V2 | FormatVersion::V3 if self.table_uuid.is_none() => {
                Err(Error::corrupt("/table-uuid", format!("required in format version {}", self.format_version)))
            }
            _ => Ok(()),
        }
    }

    fn check_schemas(&self) -> Result<Arc<Schema>> {
        unique("/schemas", "schema-id", self.schemas.iter().map(|schema| schema.schema_id()))?;
        let current = self.schemas.iter().find(|schema| schema.schema_id() == self.current_schema_id);
        current.cloned().ok_or_else(|| missing("/current-schema-id", "schema", self.current_schema_id))
    }

    /// The Java library loads a table whose default spec or order is not there, and fails on null when it uses it.
    fn check_specs(&self, schema: &Schema) -> Result<Arc<PartitionSpec>> {
        unique("/partition-specs", "spec-id", self.partition_specs.iter().map(|spec| spec.spec_id))?;
        for (index, spec) in self.partition_specs.iter().enumerate() {
            let usage = if spec.spec_id == self.default_spec_id { SpecUse::Default } else { SpecUse::Historical };
            let checked = spec.check(schema, usage);
            checked.map_err(|error| json::locate(error, &format!("/partition-specs/{index}")))?;
        }
        let default = self.partition_specs.iter().find(|spec| spec.spec_id == self.default_spec_id);
        default.cloned().ok_or_else(|| missing("/default-spec-id", "partition spec", self.default_spec_id))
    }

    fn check_sort_orders(&self, schema: &Schema) -> Result<Arc<SortOrder>> {
        unique("/sort-orders", "order-id", self.sort_orders.iter().map(|order| order.order_id))?;
        let is_default = |(_, order): &(usize, &Arc<SortOrder>)| order.order_id == self.default_sort_order_id;
        let Some((index, default)) = self.sort_orders.iter().enumerate().find(is_default) else {
            return Err(missing("/default-sort-order-id", "sort order", self.default_sort_order_id));
        };
        default.check(schema).map_err(|error| json::locate(error, &format!("/sort-orders/{index}")))?;
        Ok(Arc::clone(default))
    }

    fn index_snapshots(&self) -> Result<HashMap<i64, usize>> {
        let mut positions = HashMap::with_capacity(self.snapshots.len());
        for (index, snapshot) in self.snapshots.iter().enumerate() {
            let (number, last) = (snapshot.sequence_number, self.last_sequence_number);
            if number > last {
                let place = format!("/snapshots/{index}/sequence-number");
                return Err(Error::corrupt(place, format!("{number} is above last-sequence-number {last}")));
            }
            if positions.insert(snapshot.snapshot_id, index).is_some() {
                let place = format!("/snapshots/{index}/snapshot-id");
                return Err(Error::corrupt(place, format!("{} is there twice", snapshot.snapshot_id)));
            }
        }
        Ok(positions)
    }

    fn check_refs(&self, snapshots: &HashMap<i64, usize>) -> Result<()> {
        for (name, reference) in &self.refs {
            if !snapshots.contains_key(&reference.snapshot_id) {
                let place = format!("/refs{}/snapshot-id", json::step(name));
                return Err(missing(place, "snapshot", reference.snapshot_id));
            }
        }
        let place = "/current-snapshot-id";
        match (self.current_snapshot_id, self.refs.get(MAIN_BRANCH).map(|main| main.snapshot_id)) {
            (Some(current), Some(main)) if current != main => {
                Err(Error::corrupt(place, format!("{current} is not the snapshot of branch main, {main}")))
            }
            (None, Some(main)) => Err(Error::corrupt(place, format!("missing, but branch main is at snapshot {main}"))),
            (Some(current), None) if !snapshots.contains_key(&current) => Err(missing(place, "snapshot", current)),
            _ => Ok(()),
        }
    }

    fn check_logs(&self) -> Result<()> {
        let snapshot_times: Vec<i64> = self.snapshot_log.iter().map(|entry| entry.timestamp_ms).collect();
        let metadata_times: Vec<i64> = self.metadata_log.iter().map(|entry| entry.timestamp_ms).collect();
        ascending("/snapshot-log", &snapshot_times, self.last_updated_ms)?;
        ascending("/metadata-log", &metadata_times, self.last_updated_ms)
    }
}

fn missing(place: impl Into<String>, what: &str, id: impl Display) -> Error {
    Error::corrupt(place, format!("there is no {what} with id {id}"))
}

/// A location without slashes at its end. `scheme://` alone keeps its own.
pub(super) fn strip_trailing_slash(location: &str) -> Result<&str> {
    let mut stripped = location;
    while !stripped.ends_with("://") {
        match stripped.strip_suffix('/') {
            Some(shorter) => stripped = shorter,
            None => break,
        }
    }
    match stripped {
        "" => Err(Error::corrupt("/location", "must not be empty")),
        location => Ok(location),
    }
}

fn unique<T>(list: &str, id_name: &str, ids: impl Iterator<Item = T>) -> Result<()>
where
    T: Hash + Eq + Display + Copy,
{
    let mut seen = HashSet::new();
    for (index, id) in ids.enumerate() {
        if !seen.insert(id) {
            return Err(Error::corrupt(format!("{list}/{index}/{id_name}"), format!("{id} is there twice")));
        }
    }
    match seen.is_empty() {
        true => Err(Error::corrupt(list, "must not be empty")),
        false => Ok(()),
    }
}

/// Times of a log go up, and end before the last update, but for the skew of clocks.
fn ascending(log: &str, times: &[i64], last_updated_ms: i64) -> Result<()> {
    let back = |earlier: i64, later: i64| later.saturating_sub(earlier) < -CLOCK_SKEW_MS;
    for (index, pair) in times.windows(2).enumerate() {
        if let [earlier, later] = pair
            && back(*earlier, *later)
        {
            let place = format!("{log}/{}/timestamp-ms", index.saturating_add(1));
            return Err(Error::corrupt(place, format!("{later} is before the entry above, {earlier}")));
        }
    }
    match times.last() {
        Some(last) if back(*last, last_updated_ms) => Err(Error::corrupt(
            "/last-updated-ms",
            format!("{last_updated_ms} is before the last entry of {log}, {last}"),
        )),
        _ => Ok(()),
    }
}
