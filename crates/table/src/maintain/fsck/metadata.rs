//! Checks the metadata against itself. What a valid document must have is checked when it is loaded.

use std::collections::{HashMap, HashSet};

use icefield_format::FormatVersion;

use super::context::Check;

pub(super) fn check(check: &Check<'_>) {
    let at = check.at(check.location, check.location);
    let metadata = check.metadata;
    check.count(|report| report.snapshots = metadata.snapshots().len() as u64);
    let versioned = metadata.format_version() != FormatVersion::V1;
    let mut by_number: HashMap<i64, i64> = HashMap::new();
    for snapshot in metadata.snapshots() {
        let field = |name: &str| format!("snapshots[snapshot-id={}].{name}", snapshot.snapshot_id);
        if let Some(id) = snapshot.schema_id.filter(|id| metadata.schema(*id).is_none()) {
            at.error("snapshot-schema", &field("schema-id"), "a schema of the table", id);
        }
        let number = snapshot.sequence_number;
        if versioned
            && number > 0
            && let Some(other) = by_number.insert(number, snapshot.snapshot_id)
        {
            at.error(
                "snapshot-sequence-number",
                &field("sequence-number"),
                "a unique number",
                format!("{number}, as snapshot {other}"),
            );
        }
        if let Some(parent) = snapshot.parent_snapshot_id.and_then(|id| metadata.snapshot(id))
            && versioned
            && (parent.snapshot_id == snapshot.snapshot_id || parent.sequence_number > number)
        {
            let expected = format!("a snapshot before sequence number {number}");
            at.error("snapshot-parent", &field("parent-snapshot-id"), expected, parent.snapshot_id);
        }
    }
    check_row_ids(check);
    if let (Some(last), Some(current)) = (metadata.snapshot_log().last(), metadata.current_snapshot_id())
        && last.snapshot_id != current
    {
        at.warning("snapshot-log", "snapshot-log", current, last.snapshot_id);
    }
    let mut described = HashSet::new();
    let of_columns = metadata.statistics().iter().map(|file| ("statistics", file.snapshot_id));
    let of_partitions = metadata.partition_statistics().iter().map(|file| ("partition-statistics", file.snapshot_id));
    for (list, id) in of_columns.chain(of_partitions) {
        if metadata.snapshot(id).is_none() {
            at.warning("statistics-snapshot", list, "a snapshot of the table", id);
        }
        if !described.insert((list, id)) {
            at.warning("statistics-twice", list, "one file a snapshot", format!("two of snapshot {id}"));
        }
    }
}

/// Snapshots must not assign the same row ids.
fn check_row_ids(check: &Check<'_>) {
    let at = check.at(check.location, check.location);
    let ranges = check.metadata.snapshots().iter().filter_map(|snapshot| {
        let (first, added) = (snapshot.first_row_id?, snapshot.added_rows?);
        (added > 0).then(|| (first, first.saturating_add(added), snapshot.snapshot_id))
    });
    let mut ranges: Vec<(i64, i64, i64)> = ranges.collect();
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if let [(_, end, before), (first, _, id)] = pair
            && first < end
        {
            let field = format!("snapshots[snapshot-id={id}].first-row-id");
            at.error("snapshot-row-ids", &field, format!("at least {end}, after those of snapshot {before}"), first);
        }
    }
}
