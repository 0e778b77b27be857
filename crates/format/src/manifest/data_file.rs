//! One file and its entry as values, for whoever commits: what writers take, and what is made of a row of [`Entries`] on demand.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};

use crate::value::Value;
use crate::{Error, Result};

use super::{Entries, FileContent, FileFormat, MetricMap, Status};

/// A data or delete file ("Data File Fields").
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataFile {
    /// Data, position deletes or equality deletes.
    pub content: FileContent,
    /// Location.
    pub file_path: String,
    /// Name of the format, as it was read: see [`DataFile::format`].
    pub file_format: String,
    /// The partition spec of the tuple. Not written into the entry: it is the manifest's.
    pub partition_spec_id: i32,
    /// The partition tuple, in the order of the spec.
    pub partition: Vec<Option<Value>>,
    /// Rows.
    pub record_count: i64,
    /// Bytes.
    pub file_size_in_bytes: i64,
    /// Bytes of each column, by field id.
    pub column_sizes: Option<Vec<(i32, i64)>>,
    /// Values of each column, nulls and NaNs included.
    pub value_counts: Option<Vec<(i32, i64)>>,
    /// Nulls of each column.
    pub null_value_counts: Option<Vec<(i32, i64)>>,
    /// NaNs of each column.
    pub nan_value_counts: Option<Vec<(i32, i64)>>,
    /// Lower bound of each column, in single-value form.
    pub lower_bounds: Option<Vec<(i32, Vec<u8>)>>,
    /// Upper bound of each column, in single-value form.
    pub upper_bounds: Option<Vec<(i32, Vec<u8>)>>,
    /// How the file is encrypted.
    pub key_metadata: Option<Vec<u8>>,
    /// Where the file may be split, in ascending order.
    pub split_offsets: Option<Vec<i64>>,
    /// Columns of an equality delete file.
    pub equality_ids: Option<Vec<i32>>,
    /// The sort order of the rows.
    pub sort_order_id: Option<i32>,
    /// v3: row id of the first row.
    pub first_row_id: Option<i64>,
    /// The one data file that a delete file is about.
    pub referenced_data_file: Option<String>,
    /// v3: where a deletion vector begins in its file.
    pub content_offset: Option<i64>,
    /// v3: how long a deletion vector is.
    pub content_size_in_bytes: Option<i64>,
}

impl DataFile {
    /// The format; `None` where the name is not one of this specification.
    pub fn format(&self) -> Option<FileFormat> {
        FileFormat::from_name(&self.file_format)
    }
}

/// A file and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ManifestEntry {
    /// Existing, added or deleted.
    pub status: Status,
    /// The snapshot of the status; `None` is handed down by the manifest list.
    pub snapshot_id: Option<i64>,
    /// Data sequence number; `None` is handed down by the manifest list.
    pub sequence_number: Option<i64>,
    /// File sequence number; `None` is handed down by the manifest list.
    pub file_sequence_number: Option<i64>,
    /// The file.
    pub file: DataFile,
}

impl Entries {
    /// An entry as values. Metrics that were not read are absent.
    pub fn entry(&self, row: usize, partition_spec_id: i32) -> Result<ManifestEntry> {
        let long = |array: &arrow_array::Int64Array| array.is_valid(row).then(|| array.value(row));
        Ok(ManifestEntry {
            status: self.status_of(row)?,
            snapshot_id: long(&self.snapshot_id),
            sequence_number: long(&self.sequence_number),
            file_sequence_number: long(&self.file_sequence_number),
            file: self.file(row, partition_spec_id)?,
        })
    }

    /// The file of an entry as values. Metrics that were not read are absent.
    pub fn file(&self, row: usize, partition_spec_id: i32) -> Result<DataFile> {
        self.check(row)?;
        let long = |array: &arrow_array::Int64Array| array.is_valid(row).then(|| array.value(row));
        let text = |array: &arrow_array::StringArray| array.is_valid(row).then(|| array.value(row).to_owned());
        let counts = |map: &Option<MetricMap>| map.as_ref().and_then(|map| map.counts_of(row));
        let bounds = |map: &Option<MetricMap>| map.as_ref().and_then(|map| map.bounds_of(row));
        let list = |array: &arrow_array::ListArray| array.is_valid(row).then(|| array.value(row));
        Ok(DataFile {
            content: self.content_of(row)?,
            file_path: self.file_path.value(row).to_owned(),
            file_format: self.file_format.value(row).to_owned(),
            partition_spec_id,
            partition: self.partition_of(row)?,
            record_count: self.record_count.value(row),
            file_size_in_bytes: self.file_size_in_bytes.value(row),
            column_sizes: counts(&self.column_sizes),
            value_counts: counts(&self.value_counts),
            null_value_counts: counts(&self.null_value_counts),
            nan_value_counts: counts(&self.nan_value_counts),
            lower_bounds: bounds(&self.lower_bounds),
            upper_bounds: bounds(&self.upper_bounds),
            key_metadata: self.key_metadata.is_valid(row).then(|| self.key_metadata.value(row).to_vec()),
            split_offsets: list(&self.split_offsets).map(|list| list.as_primitive::<Int64Type>().values().to_vec()),
            equality_ids: list(&self.equality_ids).map(|list| list.as_primitive::<Int32Type>().values().to_vec()),
            sort_order_id: self.sort_order_id.is_valid(row).then(|| self.sort_order_id.value(row)),
            first_row_id: long(&self.first_row_id),
            referenced_data_file: text(&self.referenced_data_file),
            content_offset: long(&self.content_offset),
            content_size_in_bytes: long(&self.content_size_in_bytes),
        })
    }

    /// One of the partition tuples.
    pub fn tuple(&self, place: usize) -> Result<Vec<Option<Value>>> {
        if place >= self.tuples.len() {
            return Err(Error::invalid(format!("there is no partition tuple {place}")));
        }
        let fields = &self.partition_type.fields;
        let columns = self.tuples.columns();
        fields.iter().zip(columns).map(|(field, column)| partition_value(column, field, place)).collect()
    }

    /// The partition tuple of an entry.
    pub fn partition_of(&self, row: usize) -> Result<Vec<Option<Value>>> {
        self.check(row)?;
        let fields = &self.partition_type.fields;
        let columns = self.partition.columns();
        fields.iter().zip(columns).map(|(field, column)| partition_value(column, field, row)).collect()
    }
}

/// A value of a partition column.
fn partition_value(column: &arrow_array::ArrayRef, field: &crate::types::Field, row: usize) -> Result<Option<Value>> {
    super::partition::value(column, &field.ty, row).ok_or_else(|| {
        Error::invalid(format!("the partition column {} does not have the type of its field", field.name))
    })
}
