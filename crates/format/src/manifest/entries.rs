//! A manifest as columns: one row a file ("Manifests").

use std::fmt;

use arrow_array::{Array, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, StringArray, StructArray};

use crate::avro::Container;
use crate::types::StructType;
use crate::value::Value;
use crate::{Error, Limits, Result};

use super::decode::{Decoder, Inherited};
use super::list::ManifestFile;
use super::metrics::{MetricMap, Metrics};
use super::partition::FixedForm;
use super::steps::Steps;
use super::{FileContent, ManifestContent, Status};

/// Whether a partition tuple may hold what is looked for. It is asked once for each tuple that is new in a manifest.
pub type PartitionFilter<'a> = dyn Fn(&[Option<Value>]) -> Result<bool> + Sync + 'a;

/// What is read of a manifest.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// The partition type of the manifest's spec over the current schema, every field a primitive; without it, partition
    /// values come out as the manifest's own Avro schema describes them.
    pub partition_type: Option<&'a StructType>,
    /// Which metrics, and for which fields. The others are passed over.
    pub metrics: Metrics,
    /// The manifest as its list describes it: null snapshot ids, sequence numbers and row ids are filled in from it.
    /// Without it, they stay as written.
    pub inherit: Option<&'a ManifestFile>,
    /// Leave out entries of deleted files.
    pub live_only: bool,
    /// Leave out entries whose partition it excludes, before their metrics are touched.
    pub partition_filter: Option<&'a PartitionFilter<'a>>,
}

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOptions")
            .field("partition_type", &self.partition_type)
            .field("metrics", &self.metrics)
            .field("inherit", &self.inherit)
            .field("live_only", &self.live_only)
            .field("partition_filter", &self.partition_filter.is_some())
            .finish()
    }
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
    pub header: ManifestHeader,
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

/// Reads a manifest.
///
/// The memory that it takes is bounded by `limits`: at most one decompressed block (`block_bytes`) beside the columns, which
/// take at most about eight bytes for each decompressed byte of the entries that are kept.
pub fn read(bytes: &[u8], options: &ReadOptions<'_>, limits: &Limits) -> Result<Entries> {
    let container = Container::open(bytes)?;
    let header = ManifestHeader::of(&container);
    let steps = Steps::compile(&container.schema(limits)?, options.partition_type, &options.metrics)?;
    let inherited = options.inherit.map(Inherited::of);
    let decode = |form| Decoder::new(&steps, options, inherited, form).run(&container, limits);
    let columns = if steps.has_fixed() {
        // The Java library writes a length before `fixed` partition values, against its own schema. Its form is tried first:
        // it demands that length before each value, so it does not take the plain form for its own.
        decode(FixedForm::Prefixed).or_else(|_| decode(FixedForm::Plain))?
    } else {
        decode(FixedForm::Plain)?
    };
    columns.finish(header, &steps)
}

impl ManifestHeader {
    /// Reads the header alone.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        Ok(Self::of(&Container::open(bytes)?))
    }

    fn of(container: &Container<'_>) -> Self {
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
        self.map(|array| arrow_select::filter::filter(array, keep))
    }

    /// The entries of these places, in this order.
    pub fn take(&self, rows: &arrow_array::UInt32Array) -> Result<Self> {
        self.map(|array| arrow_select::take::take(array, rows, None))
    }

    pub(super) fn check(&self, row: usize) -> Result<()> {
        if row < self.len() {
            return Ok(());
        }
        Err(Error::invalid(format!("there is no entry {row}: the manifest has {}", self.len())))
    }

    fn map(
        &self,
        change: impl Fn(&dyn Array) -> Result<arrow_array::ArrayRef, arrow_schema::ArrowError>,
    ) -> Result<Self> {
        /// The changed column, in its own type.
        fn changed<T: Clone + 'static>(
            array: &dyn Array,
            change: impl Fn(&dyn Array) -> Result<arrow_array::ArrayRef, arrow_schema::ArrowError>,
        ) -> Result<T> {
            let made = change(array).map_err(|error| Error::invalid(error.to_string()))?;
            made.as_any().downcast_ref::<T>().cloned().ok_or_else(|| Error::invalid("a column changed its type"))
        }
        let metric = |map: &Option<MetricMap>| -> Result<Option<MetricMap>> {
            map.as_ref().map(|map| changed(map.as_array(), &change).map(MetricMap::from_array)).transpose()
        };
        Ok(Self {
            header: self.header.clone(),
            position: changed(&self.position, &change)?,
            status: changed(&self.status, &change)?,
            snapshot_id: changed(&self.snapshot_id, &change)?,
            sequence_number: changed(&self.sequence_number, &change)?,
            file_sequence_number: changed(&self.file_sequence_number, &change)?,
            content: changed(&self.content, &change)?,
            file_path: changed(&self.file_path, &change)?,
            file_format: changed(&self.file_format, &change)?,
            partition: changed(&self.partition, &change)?,
            partition_type: self.partition_type.clone(),
            record_count: changed(&self.record_count, &change)?,
            file_size_in_bytes: changed(&self.file_size_in_bytes, &change)?,
            column_sizes: metric(&self.column_sizes)?,
            value_counts: metric(&self.value_counts)?,
            null_value_counts: metric(&self.null_value_counts)?,
            nan_value_counts: metric(&self.nan_value_counts)?,
            lower_bounds: metric(&self.lower_bounds)?,
            upper_bounds: metric(&self.upper_bounds)?,
            key_metadata: changed(&self.key_metadata, &change)?,
            split_offsets: changed(&self.split_offsets, &change)?,
            equality_ids: changed(&self.equality_ids, &change)?,
            sort_order_id: changed(&self.sort_order_id, &change)?,
            first_row_id: changed(&self.first_row_id, &change)?,
            referenced_data_file: changed(&self.referenced_data_file, &change)?,
            content_offset: changed(&self.content_offset, &change)?,
            content_size_in_bytes: changed(&self.content_size_in_bytes, &change)?,
        })
    }
}
