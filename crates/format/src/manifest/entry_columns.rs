//! The entries of a manifest as columns ("Manifest Entry Fields", "Data File Fields"), its header and its counts.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, StringArray, StructArray,
    UInt32Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::FilterBuilder;

use crate::avro::Container;
use crate::types::StructType;
use crate::{Error, Result};

use super::list::ManifestFile;
use super::metrics::MetricMap;
use super::{FileContent, ManifestContent, Status};

/// Entries of a manifest by status, whether they were kept or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Files of earlier snapshots.
    pub existing: usize,
    /// Files that the manifest's snapshot added.
    pub added: usize,
    /// Files that the manifest's snapshot removed.
    pub deleted: usize,
}

/// The header of a manifest. Each key may be missing: readers know spec and schema from the table's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestHeader {
    /// `format-version`; 1 where it is missing.
    pub format_version: u8,
    /// `content`; data where it is missing.
    pub content: ManifestContent,
    /// `schema`: the table's schema when it was written, as JSON.
    pub schema: Option<String>,
    /// `schema-id`
    pub schema_id: Option<i32>,
    /// `partition-spec`: the fields of the spec, as JSON.
    pub partition_spec: Option<String>,
    /// `partition-spec-id`
    pub partition_spec_id: Option<i32>,
}

/// The entries of a manifest, column by column. All columns have the same length.
#[derive(Debug, Clone, PartialEq)]
pub struct Entries {
    /// What the header says.
    pub header: Arc<ManifestHeader>,
    /// What the manifest holds, with what was left out.
    pub tally: Tally,
    /// Of which entries the metrics were read ([`ReadOptions::keep_excluded`]): those of the others are null. None: of all.
    pub metrics_read: Option<BooleanBuffer>,
    /// Place of the entry in the manifest, from 0.
    pub position: Int64Array,
    /// [`Status`] by number.
    pub status: Int32Array,
    /// The snapshot of the status.
    pub snapshot_id: Int64Array,
    /// Data sequence number.
    pub sequence_number: Int64Array,
    /// File sequence number.
    pub file_sequence_number: Int64Array,
    /// [`FileContent`] by number.
    pub content: Int32Array,
    /// Location.
    pub file_path: StringArray,
    /// Format, as written (`parquet`, `PARQUET`).
    pub file_format: StringArray,
    /// The partition tuple: a column a field, field ids in the metadata of the Arrow fields (`PARQUET:field_id`).
    pub partition: StructArray,
    /// The type of the partition tuple.
    pub partition_type: StructType,
    /// The partition tuples of the manifest, each once; some may be those of entries that were left out.
    pub tuples: Arc<StructArray>,
    /// For each entry the place of its tuple in `tuples`.
    pub tuple_of: UInt32Array,
    /// Rows.
    pub record_count: Int64Array,
    /// Bytes.
    pub file_size_in_bytes: Int64Array,
    /// Bytes of each column; `None` where it was not asked for.
    pub column_sizes: Option<MetricMap>,
    /// Values of each column; `None` where it was not asked for.
    pub value_counts: Option<MetricMap>,
    /// Nulls of each column; `None` where it was not asked for.
    pub null_value_counts: Option<MetricMap>,
    /// NaNs of each column; `None` where it was not asked for.
    pub nan_value_counts: Option<MetricMap>,
    /// Lower bounds; `None` where it was not asked for.
    pub lower_bounds: Option<MetricMap>,
    /// Upper bounds; `None` where it was not asked for.
    pub upper_bounds: Option<MetricMap>,
    /// How the file is encrypted.
    pub key_metadata: BinaryArray,
    /// Where the file may be split: lists of int64.
    pub split_offsets: ListArray,
    /// Columns of an equality delete: lists of int32.
    pub equality_ids: ListArray,
    /// The sort order of the rows.
    pub sort_order_id: Int32Array,
    /// Row id of the first row.
    pub first_row_id: Int64Array,
    /// The one data file that a delete file is about.
    pub referenced_data_file: StringArray,
    /// Where a deletion vector begins.
    pub content_offset: Int64Array,
    /// How long a deletion vector is.
    pub content_size_in_bytes: Int64Array,
}

impl Tally {
    pub(super) fn add(&mut self, status: Status) {
        match status {
            Status::Existing => self.existing += 1,
            Status::Added => self.added += 1,
            Status::Deleted => self.deleted += 1,
        }
    }

    /// All entries.
    pub fn entries(&self) -> usize {
        self.existing + self.added + self.deleted
    }

    /// Entries of files that are in the snapshot.
    pub fn live(&self) -> usize {
        self.existing + self.added
    }

    /// More entries than listed are let through: nothing is lost by them.
    pub(super) fn check(&self, listed: &ManifestFile) -> Result<()> {
        let counts = [listed.existing_files_count, listed.added_files_count, listed.deleted_files_count];
        let wanted = counts.into_iter().try_fold(0i64, |sum, count| count.map(|count| sum + i64::from(count.max(0))));
        match wanted {
            Some(wanted) if wanted.unsigned_abs() > self.entries() as u64 => Err(Error::corrupt(
                "manifest",
                format!("has {} entries, but its manifest list says {wanted}", self.entries()),
            )),
            _ => Ok(()),
        }
    }
}

impl ManifestHeader {
    /// Reads the header alone.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Self::of(&Container::open(bytes)?))
    }

    pub(super) fn of(container: &Container<'_>) -> Self {
        let number = |key| container.text(key).and_then(|text| text.trim().parse().ok());
        Self {
            format_version: container.text("format-version").and_then(|text| text.trim().parse().ok()).unwrap_or(1),
            content: match container.text("content") {
                Some("deletes") => ManifestContent::Deletes,
                _ => ManifestContent::Data,
            },
            schema: container.text("schema").map(str::to_owned),
            schema_id: number("schema-id"),
            partition_spec: container.text("partition-spec").map(str::to_owned),
            partition_spec_id: number("partition-spec-id"),
        }
    }
}

impl Entries {
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.status.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The status of an entry. Reading has checked the numbers.
    pub fn status_of(&self, row: usize) -> Result<Status> {
        self.check(row)?;
        Status::from_id(self.status.value(row))
    }

    /// The content of a file.
    pub fn content_of(&self, row: usize) -> Result<FileContent> {
        self.check(row)?;
        FileContent::from_id(self.content.value(row))
    }

    /// The entries that `keep` has true for.
    pub fn filter(&self, keep: &BooleanArray) -> Result<Self> {
        // One look at the mask for all columns.
        let filter = FilterBuilder::new(keep).optimize().build();
        self.map_columns(|array| filter.filter(array))
    }

    /// Bytes that the columns take.
    pub fn memory(&self) -> usize {
        let plain: [&dyn Array; 21] = [
            &self.position,
            &self.status,
            &self.snapshot_id,
            &self.sequence_number,
            &self.file_sequence_number,
            &self.content,
            &self.file_path,
            &self.file_format,
            &self.partition,
            &*self.tuples,
            &self.tuple_of,
            &self.record_count,
            &self.file_size_in_bytes,
            &self.key_metadata,
            &self.split_offsets,
            &self.equality_ids,
            &self.sort_order_id,
            &self.first_row_id,
            &self.referenced_data_file,
            &self.content_offset,
            &self.content_size_in_bytes,
        ];
        let metrics = [
            &self.column_sizes,
            &self.value_counts,
            &self.null_value_counts,
            &self.nan_value_counts,
            &self.lower_bounds,
            &self.upper_bounds,
        ];
        let header = [&self.header.schema, &self.header.partition_spec].into_iter().flatten().map(String::capacity);
        plain.iter().map(|array| array.get_array_memory_size()).sum::<usize>()
            + metrics
                .iter()
                .filter_map(|map| map.as_ref())
                .map(|map| map.as_array().get_array_memory_size())
                .sum::<usize>()
            + header.sum::<usize>()
            + self.metrics_read.as_ref().map_or(0, |read| read.inner().capacity())
    }

    /// The entries of these places, in this order.
    pub fn take(&self, rows: &UInt32Array) -> Result<Self> {
        self.map_columns(|array| arrow_select::take::take(array, rows, None))
    }

    pub(super) fn check(&self, row: usize) -> Result<()> {
        if row < self.len() {
            return Ok(());
        }
        Err(Error::invalid(format!("there is no entry {row}: the manifest has {}", self.len())))
    }

    /// The entries with every column changed alike: `change` keeps the types, and gives all columns one length.
    pub fn map_columns(
        &self,
        mut change: impl FnMut(&dyn Array) -> Result<ArrayRef, arrow_schema::ArrowError>,
    ) -> Result<Self> {
        type Change<'a> = &'a mut dyn FnMut(&dyn Array) -> Result<ArrayRef, arrow_schema::ArrowError>;
        /// The changed column, in its own type.
        fn changed<T: Clone + 'static>(array: &dyn Array, change: Change<'_>) -> Result<T> {
            let made = change(array).map_err(|error| Error::invalid(error.to_string()))?;
            made.as_any().downcast_ref::<T>().cloned().ok_or_else(|| Error::invalid("a column changed its type"))
        }
        fn metric(map: &Option<MetricMap>, change: Change<'_>) -> Result<Option<MetricMap>> {
            map.as_ref().map(|map| changed(map.as_array(), change).map(MetricMap::from_array)).transpose()
        }
        let metrics_read = self.metrics_read.as_ref().map(|read| {
            let read: BooleanArray = changed(&BooleanArray::new(read.clone(), None), &mut change)?;
            Ok::<_, Error>(read.values().clone())
        });
        Ok(Self {
            header: self.header.clone(),
            tally: self.tally,
            metrics_read: metrics_read.transpose()?,
            position: changed(&self.position, &mut change)?,
            status: changed(&self.status, &mut change)?,
            snapshot_id: changed(&self.snapshot_id, &mut change)?,
            sequence_number: changed(&self.sequence_number, &mut change)?,
            file_sequence_number: changed(&self.file_sequence_number, &mut change)?,
            content: changed(&self.content, &mut change)?,
            file_path: changed(&self.file_path, &mut change)?,
            file_format: changed(&self.file_format, &mut change)?,
            partition: changed(&self.partition, &mut change)?,
            partition_type: self.partition_type.clone(),
            tuples: self.tuples.clone(),
            tuple_of: changed(&self.tuple_of, &mut change)?,
            record_count: changed(&self.record_count, &mut change)?,
            file_size_in_bytes: changed(&self.file_size_in_bytes, &mut change)?,
            column_sizes: metric(&self.column_sizes, &mut change)?,
            value_counts: metric(&self.value_counts, &mut change)?,
            null_value_counts: metric(&self.null_value_counts, &mut change)?,
            nan_value_counts: metric(&self.nan_value_counts, &mut change)?,
            lower_bounds: metric(&self.lower_bounds, &mut change)?,
            upper_bounds: metric(&self.upper_bounds, &mut change)?,
            key_metadata: changed(&self.key_metadata, &mut change)?,
            split_offsets: changed(&self.split_offsets, &mut change)?,
            equality_ids: changed(&self.equality_ids, &mut change)?,
            sort_order_id: changed(&self.sort_order_id, &mut change)?,
            first_row_id: changed(&self.first_row_id, &mut change)?,
            referenced_data_file: changed(&self.referenced_data_file, &mut change)?,
            content_offset: changed(&self.content_offset, &mut change)?,
            content_size_in_bytes: changed(&self.content_size_in_bytes, &mut change)?,
        })
    }
}
