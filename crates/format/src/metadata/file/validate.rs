//! Checks the invariants of table metadata, whether it comes from a file or from a change.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;
use std::sync::Arc;

use crate::json;
use crate::metadata::{Document, FormatVersion, MAIN_BRANCH, TableMetadata};
use crate::spec::{PartitionSpec, SortOrder, SpecUse};
use crate::types::Schema;
use crate::{Error, Result};

/// Tolerated disagreement between the clocks of machines; a log whose times go back further is invalid.
const CLOCK_SKEW_MS: i64 = 60_000;

impl Document {
    /// Checks that all parts of the document fit together, and returns it as metadata.
    pub(in crate::metadata) fn check(mut self) -> Result<TableMetadata> {
        self.location = strip_trailing_slash(&self.location)?.to_owned();
        self.check_versioned_fields()?;
        self.go_on_from_the_highest();
        self.check_numbers()?;
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

    /// Checks numbers that only grow, from 0. A later change would continue from a wrong one, and its data would be
    /// lost.
    fn check_numbers(&self) -> Result<()> {
        let numbers = [
            ("last-sequence-number", self.last_sequence_number),
            ("last-updated-ms", self.last_updated_ms),
            ("last-column-id", self.last_column_id.into()),
            ("last-partition-id", self.last_partition_id.into()),
            ("next-row-id", self.next_row_id),
        ];
        numbers.into_iter().try_for_each(|(name, number)| not_negative(|| format!("/{name}"), number))?;
        for (index, snapshot) in self.snapshots.iter().enumerate() {
            let place = |name: &str| format!("/snapshots/{index}/{name}");
            not_negative(|| place("sequence-number"), snapshot.sequence_number)?;
            not_negative(|| place("timestamp-ms"), snapshot.timestamp_ms)?;
            not_negative(|| place("first-row-id"), snapshot.first_row_id.unwrap_or(0))?;
            not_negative(|| place("added-rows"), snapshot.added_rows.unwrap_or(0))?;
        }
        Ok(())
    }

    /// Raises the last assigned ids to the highest ids in use. Ids of columns, partition fields and rows must never be
    /// assigned twice, but some writers wrote a last id below one in use.
    fn go_on_from_the_highest(&mut self) {
        let columns = self.schemas.iter().map(|schema| schema.highest_field_id());
        // Leave negative numbers, which are refused.
        if self.last_column_id >= 0 {
            self.last_column_id = columns.fold(self.last_column_id, i32::max);
        }
        if self.last_partition_id >= 0 {
            let fields = self.partition_specs.iter().flat_map(|spec| &spec.fields).map(|field| field.field_id);
            self.last_partition_id = fields.fold(self.last_partition_id, i32::max);
        }
        if self.next_row_id >= 0 && self.format_version >= FormatVersion::V3 {
            let rows = self.snapshots.iter().filter_map(|snapshot| {
                snapshot.first_row_id.unwrap_or(0).checked_add(snapshot.added_rows.unwrap_or(0))
            });
            self.next_row_id = rows.fold(self.next_row_id, i64::max);
        }
    }

    fn check_schemas(&self) -> Result<Arc<Schema>> {
        unique("/schemas", "schema-id", self.schemas.iter().map(|schema| schema.schema_id()))?;
        let current = self.schemas.iter().find(|schema| schema.schema_id() == self.current_schema_id);
        current.cloned().ok_or_else(|| missing("/current-schema-id", "schema", self.current_schema_id))
    }

    /// Checks that default spec and order exist. The Java library loads a table without them and fails with a null
    /// pointer when it uses them.
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
                return Err(Error::corrupt(place, format!("{number} is greater than last-sequence-number {last}")));
            }
            if positions.insert(snapshot.snapshot_id, index).is_some() {
                let place = format!("/snapshots/{index}/snapshot-id");
                return Err(Error::corrupt(place, format!("{} appears twice", snapshot.snapshot_id)));
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

fn not_negative(place: impl FnOnce() -> String, number: i64) -> Result<()> {
    if number >= 0 { Ok(()) } else { Err(Error::corrupt(place(), format!("must not be negative: {number}"))) }
}

fn missing(place: impl Into<String>, what: &str, id: impl Display) -> Error {
    Error::corrupt(place, format!("there is no {what} with id {id}"))
}

/// Removes slashes at the end of a location, except those of a bare `scheme://`.
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
            return Err(Error::corrupt(format!("{list}/{index}/{id_name}"), format!("{id} appears twice")));
        }
    }
    match seen.is_empty() {
        true => Err(Error::corrupt(list, "must not be empty")),
        false => Ok(()),
    }
}

/// Checks that the times of a log ascend and end before the last update, within the tolerated clock skew.
fn ascending(log: &str, times: &[i64], last_updated_ms: i64) -> Result<()> {
    let back = |earlier: i64, later: i64| later.saturating_sub(earlier) < -CLOCK_SKEW_MS;
    for (index, pair) in times.windows(2).enumerate() {
        if let [earlier, later] = pair
            && back(*earlier, *later)
        {
            let place = format!("{log}/{}/timestamp-ms", index.saturating_add(1));
            return Err(Error::corrupt(place, format!("{later} is before the preceding entry, {earlier}")));
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

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::Limits;
    use crate::metadata::{MetadataBuilder, MetadataUpdate, StringMap};

    fn document() -> Json {
        json!({
            "format-version": 3, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "s3://b/t",
            "last-sequence-number": 7, "last-updated-ms": 1_600_000_000_000_i64, "last-column-id": 2,
            "current-schema-id": 0, "schemas": [{"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "x", "required": true, "type": "long"},
                {"id": 2, "name": "y", "required": false, "type": "string"},
            ]}],
            "default-spec-id": 0, "last-partition-id": 1000, "partition-specs": [{"spec-id": 0, "fields": [
                {"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000},
            ]}],
            "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
            "next-row-id": 40, "current-snapshot-id": 11, "snapshots": [{
                "snapshot-id": 11, "sequence-number": 7, "timestamp-ms": 1_600_000_000_000_i64,
                "manifest-list": "s3://b/t/m.avro", "first-row-id": 0, "added-rows": 40,
            }],
        })
    }

    fn read(document: &Json) -> Result<TableMetadata> {
        TableMetadata::from_json(document.to_string().as_bytes(), &Limits::default())
    }

    #[test]
    fn numbers_that_would_spoil_the_next_change_are_refused() {
        assert!(read(&document()).is_ok());
        let cases = [
            ("/last-sequence-number", json!(-5)),
            ("/last-sequence-number", json!(i64::MIN)),
            ("/last-updated-ms", json!(-1)),
            ("/last-column-id", json!(-1)),
            ("/last-partition-id", json!(-1)),
            ("/next-row-id", json!(-7)),
            ("/snapshots/0/sequence-number", json!(-1)),
            ("/snapshots/0/timestamp-ms", json!(-1)),
            ("/snapshots/0/first-row-id", json!(-1)),
            ("/snapshots/0/added-rows", json!(-1)),
        ];
        for (place, value) in cases {
            let mut document = document();
            *document.pointer_mut(place).unwrap() = value.clone();
            let error = read(&document).unwrap_err().to_string();
            // A last sequence number that is too small is reported for the first snapshot that exceeds it, unless an
            // earlier check fails.
            assert!(error.contains(place), "{place} {value}: {error}");
        }
    }

    #[test]
    fn ids_go_on_from_the_highest_that_is_there() {
        for (place, given, used) in [
            ("/last-column-id", 1, 2),
            ("/last-column-id", 0, 2),
            ("/last-column-id", 9, 9),
            ("/last-partition-id", 999, 1000),
            ("/last-partition-id", 0, 1000),
            ("/last-partition-id", 1007, 1007),
            ("/next-row-id", 0, 40),
            ("/next-row-id", 39, 40),
            ("/next-row-id", 41, 41),
        ] {
            let mut document = document();
            *document.pointer_mut(place).unwrap() = json!(given);
            let found = read(&document).unwrap().to_json_value();
            assert_eq!(found.pointer(place), Some(&json!(used)), "{place} {given}");
        }
    }

    #[test]
    fn what_is_optional_may_be_null() {
        let whole = read(&document()).unwrap();
        for name in [
            "properties",
            "refs",
            "statistics",
            "partition-statistics",
            "snapshot-log",
            "metadata-log",
            "encryption-keys",
        ] {
            let mut document = document();
            document[name] = Json::Null;
            assert_eq!(read(&document).unwrap(), whole, "{name}");
        }
        for place in ["parent-snapshot-id", "summary", "schema-id", "key-id", "manifests"] {
            let mut document = document();
            document["snapshots"][0][place] = Json::Null;
            assert_eq!(read(&document).unwrap(), whole, "{place}");
        }
        for (members, name) in [("/properties", "a"), ("/snapshots/0/summary", "operation")] {
            let mut document = document();
            document["properties"] = json!({});
            document["snapshots"][0]["summary"] = json!({});
            document.pointer_mut(members).unwrap()[name] = Json::Null;
            assert_eq!(read(&document).unwrap(), whole, "{members}/{name}");
        }
        for place in
            ["/schemas", "/partition-specs", "/sort-orders", "/location", "/next-row-id", "/snapshots/0/snapshot-id"]
        {
            let mut document = document();
            *document.pointer_mut(place).unwrap() = Json::Null;
            assert!(read(&document).is_err(), "{place}");
        }
    }

    #[test]
    fn what_would_not_load_is_not_built() {
        let base = read(&document()).unwrap();
        let change =
            |update: MetadataUpdate, now_ms: i64| MetadataBuilder::from_base(&base, now_ms).apply(update)?.build();
        let properties = || MetadataUpdate::SetProperties { updates: StringMap::from_iter([("a".into(), "b".into())]) };
        assert!(change(properties(), 1_600_000_000_001).is_ok());
        // If the clock is behind, the time of the last change is used.
        assert_eq!(change(properties(), -1).unwrap().last_updated_ms(), base.last_updated_ms());
        for (name, value) in [("sequence-number", -3), ("timestamp-ms", -3), ("first-row-id", -3), ("added-rows", -3)] {
            let mut snapshot = base.current_snapshot().unwrap().as_ref().clone();
            (snapshot.snapshot_id, snapshot.sequence_number, snapshot.first_row_id) = (12, 8, Some(40));
            match name {
                "sequence-number" => snapshot.sequence_number = value,
                "timestamp-ms" => snapshot.timestamp_ms = value,
                "first-row-id" => snapshot.first_row_id = Some(value),
                _ => snapshot.added_rows = Some(value),
            }
            let built = change(MetadataUpdate::AddSnapshot { snapshot: snapshot.into() }, 1_600_000_000_001);
            assert!(built.is_err(), "{name}");
        }
    }
}
