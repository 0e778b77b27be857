//! Converts manifest lists and manifests to Arrow batches for Python, with the names of the specification.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema};

use crate::{Error, Result};

use super::fields::{DATA_FILE, EntryField, PARTITION, Record};
use super::list::ManifestList;
use super::{Entries, ManifestFile};

/// A column with its field; `required` columns contain no nulls.
fn column(name: &str, required: bool, array: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), !required), array)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::invalid(error.to_string())
}

impl Entries {
    /// Converts the entries to a batch in the form of the `entries` metadata table: status, snapshot id and sequence
    /// numbers, and the file as a struct. Metrics that were not read are omitted.
    pub fn to_record_batch(&self) -> Result<RecordBatch> {
        let (fields, columns): (Vec<_>, Vec<_>) = self.named_columns(Record::File).into_iter().unzip();
        let files = StructArray::try_new(Fields::from(fields), columns, None).map_err(failed)?;
        let mut columns = self.named_columns(Record::Entry);
        columns.push(column(DATA_FILE.name(), true, Arc::new(files)));
        let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(failed)
    }

    fn named_columns(&self, record: Record) -> Vec<(Field, ArrayRef)> {
        let mut columns = Vec::new();
        for field in EntryField::of(record) {
            if field == EntryField::record_count {
                columns.push(column(PARTITION.name(), true, Arc::new(self.partition.clone())));
            }
            columns
                .extend(self.field_column(field).map(|array| column(field.name(), field.is_written_always(), array)));
        }
        columns
    }
}

impl ManifestList {
    /// Converts the list to a batch with a row for each manifest and the fields of the specification.
    pub fn to_record_batch(&self) -> Result<RecordBatch> {
        let all = &self.manifests;
        let longs = |get: fn(&ManifestFile) -> Option<i64>| -> ArrayRef {
            Arc::new(all.iter().map(get).collect::<Int64Array>())
        };
        let ints = |get: fn(&ManifestFile) -> Option<i32>| -> ArrayRef {
            Arc::new(all.iter().map(get).collect::<Int32Array>())
        };
        let paths: StringArray = all.iter().map(|file| Some(file.manifest_path.as_str())).collect();
        let keys: BinaryArray = all.iter().map(|file| file.key_metadata.as_deref()).collect();
        let columns = [
            column("manifest_path", true, Arc::new(paths)),
            column("manifest_length", true, longs(|file| Some(file.manifest_length))),
            column("partition_spec_id", true, ints(|file| Some(file.partition_spec_id))),
            column("content", true, ints(|file| Some(file.content.id()))),
            column("sequence_number", true, longs(|file| Some(file.sequence_number))),
            column("min_sequence_number", true, longs(|file| Some(file.min_sequence_number))),
            column("added_snapshot_id", true, longs(|file| Some(file.added_snapshot_id))),
            column("added_files_count", false, ints(|file| file.added_files_count)),
            column("existing_files_count", false, ints(|file| file.existing_files_count)),
            column("deleted_files_count", false, ints(|file| file.deleted_files_count)),
            column("added_rows_count", false, longs(|file| file.added_rows_count)),
            column("existing_rows_count", false, longs(|file| file.existing_rows_count)),
            column("deleted_rows_count", false, longs(|file| file.deleted_rows_count)),
            column("partitions", false, Arc::new(summaries(all)?)),
            column("key_metadata", false, Arc::new(keys)),
            column("first_row_id", false, longs(|file| file.first_row_id)),
        ];
        let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(failed)
    }
}

/// Converts the partition summaries to lists of structs.
fn summaries(manifests: &[ManifestFile]) -> Result<ListArray> {
    let (mut nulls, mut nans) = (BooleanBuilder::new(), BooleanBuilder::new());
    let (mut lower, mut upper) = (BinaryBuilder::new(), BinaryBuilder::new());
    for summary in manifests.iter().flat_map(|manifest| manifest.partitions.iter().flatten()) {
        nulls.append_value(summary.contains_null);
        nans.append_option(summary.contains_nan);
        lower.append_option(summary.lower_bound.as_deref());
        upper.append_option(summary.upper_bound.as_deref());
    }
    let columns = [
        column("contains_null", true, Arc::new(nulls.finish())),
        column("contains_nan", false, Arc::new(nans.finish())),
        column("lower_bound", false, Arc::new(lower.finish())),
        column("upper_bound", false, Arc::new(upper.finish())),
    ];
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let fields = Fields::from(fields);
    let rows = StructArray::try_new(fields.clone(), columns, None).map_err(failed)?;
    let lengths = manifests.iter().map(|manifest| manifest.partitions.as_ref().map_or(0, Vec::len));
    let valid: NullBuffer = manifests.iter().map(|manifest| manifest.partitions.is_some()).collect();
    let item = Arc::new(Field::new("element", DataType::Struct(fields), false));
    ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), Arc::new(rows), Some(valid)).map_err(failed)
}
