//! Describes a written file for its manifest ("Data File Fields").

use icefield_format::manifest::{DataFile, FileFormat};

use super::input::route::Tuple;
use crate::file::WrittenFile;

/// The description of a data file; `sort_order_id` is an order that its rows really have.
pub(super) fn described(
    written: WrittenFile,
    format: FileFormat,
    partition_spec_id: i32,
    partition: Tuple,
    sort_order_id: i32,
) -> DataFile {
    let found = written.metrics;
    // As in the Java library, an Avro file has a row count and no metrics.
    let has_metrics = format != FileFormat::Avro;
    DataFile {
        file_path: written.path,
        file_format: format.name().to_owned(),
        partition_spec_id,
        partition,
        record_count: found.record_count,
        file_size_in_bytes: i64::try_from(written.bytes).unwrap_or(i64::MAX),
        column_sizes: has_metrics.then(|| found.column_sizes.into_iter().collect()),
        value_counts: has_metrics.then(|| found.value_counts.into_iter().collect()),
        null_value_counts: has_metrics.then(|| found.null_value_counts.into_iter().collect()),
        nan_value_counts: has_metrics.then(|| found.nan_value_counts.into_iter().collect()),
        lower_bounds: has_metrics.then(|| found.lower_bounds.into_iter().collect()),
        upper_bounds: has_metrics.then(|| found.upper_bounds.into_iter().collect()),
        split_offsets: has_metrics.then_some(found.split_offsets),
        sort_order_id: Some(sort_order_id),
        key_metadata: written.key_metadata.map(|key| key.0),
        ..DataFile::default()
    }
}
