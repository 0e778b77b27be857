//! The tables built from the metadata file alone: `snapshots`, `history`, `metadata_log_entries`, `refs`.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{MapBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use icefield_format::metadata::RefKind;
use icefield_format::types::{Field, MapType, PrimitiveType as P, Type};

use super::Read;
use super::batch::{build, missing};
use crate::error::Result;

pub(super) fn snapshots_fields() -> Vec<Field> {
    let summary = Type::Map(Arc::new(MapType::required(7, P::String, 8, P::String)));
    vec![
        Field::required(1, "committed_at", P::Timestamptz),
        Field::required(2, "snapshot_id", P::Long),
        Field::optional(3, "parent_id", P::Long),
        Field::optional(4, "operation", P::String),
        Field::optional(5, "manifest_list", P::String),
        Field::optional(6, "summary", summary),
    ]
}

pub(super) fn snapshots(read: &Read) -> Result<RecordBatch> {
    let all = read.inspect.metadata.snapshots();
    build(&read.arrow, all.len(), |field| {
        Ok(match field.name().as_str() {
            "committed_at" => instants(all.iter().map(|snapshot| snapshot.timestamp_ms)),
            "snapshot_id" => Arc::new(Int64Array::from_iter_values(all.iter().map(|one| one.snapshot_id))),
            "parent_id" => Arc::new(Int64Array::from_iter(all.iter().map(|one| one.parent_snapshot_id))),
            "operation" => {
                let operations = all.iter().map(|one| one.operation().map(|operation| operation.as_str()));
                Arc::new(StringArray::from_iter(operations))
            }
            "manifest_list" => Arc::new(StringArray::from_iter(all.iter().map(|one| one.manifest_list()))),
            "summary" => {
                let mut builder = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
                for snapshot in all {
                    for (name, value) in snapshot.summary.iter().flat_map(|summary| &summary.properties) {
                        builder.keys().append_value(name);
                        builder.values().append_value(value);
                    }
                    builder.append(snapshot.summary.is_some()).map_err(super::batch::internal)?;
                }
                Arc::new(builder.finish())
            }
            other => return Err(missing(other)),
        })
    })
}

pub(super) fn history_fields() -> Vec<Field> {
    vec![
        Field::required(1, "made_current_at", P::Timestamptz),
        Field::required(2, "snapshot_id", P::Long),
        Field::optional(3, "parent_id", P::Long),
        Field::required(4, "is_current_ancestor", P::Boolean),
    ]
}

pub(super) fn history(read: &Read) -> Result<RecordBatch> {
    let metadata = &read.inspect.metadata;
    let log = metadata.snapshot_log();
    let current = metadata.current_snapshot_id();
    let ancestors: HashSet<i64> =
        current.into_iter().flat_map(|id| metadata.ancestors(id)).map(|snapshot| snapshot.snapshot_id).collect();
    let parent = |id| metadata.snapshot(id).and_then(|snapshot| snapshot.parent_snapshot_id);
    build(&read.arrow, log.len(), |field| {
        Ok(match field.name().as_str() {
            "made_current_at" => instants(log.iter().map(|entry| entry.timestamp_ms)),
            "snapshot_id" => Arc::new(Int64Array::from_iter_values(log.iter().map(|entry| entry.snapshot_id))),
            "parent_id" => Arc::new(Int64Array::from_iter(log.iter().map(|entry| parent(entry.snapshot_id)))),
            "is_current_ancestor" => {
                let known = log.iter().map(|entry| ancestors.contains(&entry.snapshot_id));
                Arc::new(BooleanArray::from(known.collect::<Vec<_>>()))
            }
            other => return Err(missing(other)),
        })
    })
}

pub(super) fn metadata_log_fields() -> Vec<Field> {
    vec![
        Field::required(1, "timestamp", P::Timestamptz),
        Field::required(2, "file", P::String),
        Field::optional(3, "latest_snapshot_id", P::Long),
        Field::optional(4, "latest_schema_id", P::Int),
        Field::optional(5, "latest_sequence_number", P::Long),
    ]
}

/// The previous metadata files and the current one, each with the snapshot that was current when it was written.
pub(super) fn metadata_log(read: &Read) -> Result<RecordBatch> {
    let metadata = &read.inspect.metadata;
    let former = metadata.metadata_log().iter().map(|entry| (entry.timestamp_ms, entry.metadata_file.as_str()));
    let log: Vec<_> = former.chain([(metadata.last_updated_ms(), read.inspect.metadata_location.as_str())]).collect();
    let latest: Vec<_> = log.iter().map(|(time, _)| metadata.snapshot_id_as_of(*time)).collect();
    let snapshots: Vec<_> = latest.iter().map(|id| id.and_then(|id| metadata.snapshot(id))).collect();
    build(&read.arrow, log.len(), |field| {
        Ok(match field.name().as_str() {
            "timestamp" => instants(log.iter().map(|(time, _)| *time)),
            "file" => Arc::new(StringArray::from_iter_values(log.iter().map(|(_, file)| file))),
            "latest_snapshot_id" => Arc::new(Int64Array::from(latest.clone())),
            "latest_schema_id" => {
                let ids = snapshots.iter().map(|snapshot| snapshot.and_then(|snapshot| snapshot.schema_id));
                Arc::new(Int32Array::from_iter(ids))
            }
            "latest_sequence_number" => {
                let numbers = snapshots.iter().map(|snapshot| snapshot.map(|snapshot| snapshot.sequence_number));
                Arc::new(Int64Array::from_iter(numbers))
            }
            other => return Err(missing(other)),
        })
    })
}

pub(super) fn refs_fields() -> Vec<Field> {
    vec![
        Field::required(1, "name", P::String),
        Field::required(2, "type", P::String),
        Field::required(3, "snapshot_id", P::Long),
        Field::optional(4, "max_reference_age_in_ms", P::Long),
        Field::optional(5, "min_snapshots_to_keep", P::Int),
        Field::optional(6, "max_snapshot_age_in_ms", P::Long),
    ]
}

pub(super) fn refs(read: &Read) -> Result<RecordBatch> {
    let refs = read.inspect.metadata.refs();
    let kinds = || refs.values().map(|found| &found.kind);
    let branch = |kind: &RefKind| match kind {
        RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms } => {
            (*min_snapshots_to_keep, *max_snapshot_age_ms)
        }
        RefKind::Tag => (None, None),
    };
    build(&read.arrow, refs.len(), |field| {
        Ok(match field.name().as_str() {
            "name" => Arc::new(StringArray::from_iter_values(refs.keys())),
            "type" => Arc::new(StringArray::from_iter_values(kinds().map(|kind| kind.as_str().to_uppercase()))),
            "snapshot_id" => Arc::new(Int64Array::from_iter_values(refs.values().map(|found| found.snapshot_id))),
            "max_reference_age_in_ms" => {
                Arc::new(Int64Array::from_iter(refs.values().map(|found| found.max_ref_age_ms)))
            }
            "min_snapshots_to_keep" => Arc::new(Int32Array::from_iter(kinds().map(|kind| branch(kind).0))),
            "max_snapshot_age_in_ms" => Arc::new(Int64Array::from_iter(kinds().map(|kind| branch(kind).1))),
            other => return Err(missing(other)),
        })
    })
}

/// Milliseconds from the epoch as timestamps, saturating.
pub(super) fn instants(milliseconds: impl Iterator<Item = i64>) -> ArrayRef {
    let micros = milliseconds.map(|time| time.saturating_mul(1000));
    Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC"))
}
