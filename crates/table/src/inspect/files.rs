//! `files`, `data_files`, `delete_files` and their `all_` forms: the live files of manifests, a task a manifest.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, FieldRef};
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{Entries, ManifestContent, ManifestFile, MetricMap, Metrics};
use icefield_format::types::{Field, ListType, MapType, PrimitiveType as P, StructType, Type};

use super::batch::{build, missing};
use super::{MetadataTable, Read, readable_metrics};
use crate::error::Result;
use crate::stream::OpenTask;

/// The fields of a file, as Java's `DataFile` has them; without the partition where no spec has a field.
pub(super) fn fields(partition: &StructType) -> Vec<Field> {
    let map = |key: i32, value: i32, ty: P| Type::Map(Arc::new(MapType::required(key, P::Int, value, ty)));
    let list = |id: i32, ty: P| Type::List(Arc::new(ListType::required(id, ty)));
    let mut fields = vec![
        Field::optional(134, "content", P::Int)
            .with_doc("Contents of the file: 0=data, 1=position deletes, 2=equality deletes"),
        Field::required(100, "file_path", P::String).with_doc("Location URI with FS scheme"),
        Field::required(101, "file_format", P::String).with_doc("File format name: avro, orc, or parquet"),
        Field::optional(141, "spec_id", P::Int).with_doc("Partition spec ID"),
    ];
    if !partition.fields.is_empty() {
        let partition = Type::Struct(Arc::new(partition.clone()));
        fields.push(
            Field::required(102, "partition", partition)
                .with_doc("Partition data tuple, schema based on the partition spec"),
        );
    }
    fields.extend([
        Field::required(103, "record_count", P::Long).with_doc("Number of records in the file"),
        Field::required(104, "file_size_in_bytes", P::Long).with_doc("Total file size in bytes"),
        Field::optional(108, "column_sizes", map(117, 118, P::Long)).with_doc("Map of column id to total size on disk"),
        Field::optional(109, "value_counts", map(119, 120, P::Long))
            .with_doc("Map of column id to total count, including null and NaN"),
        Field::optional(110, "null_value_counts", map(121, 122, P::Long))
            .with_doc("Map of column id to null value count"),
        Field::optional(137, "nan_value_counts", map(138, 139, P::Long))
            .with_doc("Map of column id to number of NaN values in the column"),
        Field::optional(125, "lower_bounds", map(126, 127, P::Binary)).with_doc("Map of column id to lower bound"),
        Field::optional(128, "upper_bounds", map(129, 130, P::Binary)).with_doc("Map of column id to upper bound"),
        Field::optional(131, "key_metadata", P::Binary).with_doc("Encryption key metadata blob"),
        Field::optional(132, "split_offsets", list(133, P::Long)).with_doc("Splittable offsets"),
        Field::optional(135, "equality_ids", list(136, P::Int)).with_doc("Equality comparison field IDs"),
        Field::optional(140, "sort_order_id", P::Int).with_doc("Sort order ID"),
        Field::optional(142, "first_row_id", P::Long)
            .with_doc("The first row ID assigned to the first row in the data file"),
        Field::optional(143, "referenced_data_file", P::String)
            .with_doc("Fully qualified location (URI with FS scheme) of a data file that all deletes reference"),
        Field::optional(144, "content_offset", P::Long).with_doc("The offset in the file where the content starts"),
        Field::optional(145, "content_size_in_bytes", P::Long)
            .with_doc("The length of referenced content stored in the file"),
    ]);
    fields
}

pub(super) fn tasks(read: &Arc<Read>, table: MetadataTable, manifests: Vec<ManifestFile>) -> Result<Vec<OpenTask>> {
    use MetadataTable as T;
    let metrics = readable_metrics::wanted(
        Some(read.made.as_struct()),
        read.made.as_struct().field_named(readable_metrics::NAME),
        read.inspect.metadata.current_schema(),
    )?;
    let content = match table {
        T::DataFiles | T::AllDataFiles => Some(ManifestContent::Data),
        T::DeleteFiles | T::AllDeleteFiles => Some(ManifestContent::Deletes),
        _ => None,
    };
    let has_rows = |manifest: &ManifestFile| {
        manifest.has_live_files() && content.is_none_or(|content| content == manifest.content)
    };
    let task = |manifest: ManifestFile| {
        let metrics = metrics.clone();
        read.task(move |read| read.files(&manifest, &metrics).map_err(|error| error.in_file(&manifest.manifest_path)))
    };
    Ok(manifests.into_iter().filter(has_rows).map(task).collect())
}

impl Read {
    /// Reads a manifest.
    pub(super) fn entries(&self, manifest: &ManifestFile, metrics: &Metrics, live_only: bool) -> Result<Entries> {
        let path = &manifest.manifest_path;
        let bytes = self.inspect.storage.read_listed(path, manifest.manifest_length)?;
        let options = ReadOptions {
            partition_type: Some(&self.partition.of_spec(manifest.partition_spec_id, path)?.read),
            metrics: metrics.clone(),
            inherit: Some(manifest),
            live_only,
            ..ReadOptions::default()
        };
        Ok(entries::read(&bytes, &options, &self.inspect.limits).map_err(|error| error.in_file(path))?)
    }

    fn files(&self, manifest: &ManifestFile, metrics: &Metrics) -> Result<RecordBatch> {
        let entries = self.entries(manifest, metrics, true)?;
        build(&self.arrow, entries.len(), |field| self.file_column(field, &entries, manifest.partition_spec_id))
    }

    /// A column of files; `readable_metrics` is one.
    pub(super) fn file_column(&self, field: &FieldRef, entries: &Entries, spec_id: i32) -> Result<ArrayRef> {
        let map = |map: &Option<MetricMap>| match map {
            Some(map) => Arc::new(map.as_array().clone()) as ArrayRef,
            None => arrow_array::new_null_array(field.data_type(), entries.len()),
        };
        Ok(match (field.name().as_str(), field.data_type()) {
            ("content", _) => Arc::new(entries.content.clone()),
            ("file_path", _) => Arc::new(entries.file_path.clone()),
            ("file_format", _) => {
                // The manifest has it in any letter case, Java prints the name of a constant.
                Arc::new(entries.file_format.iter().map(|one| one.map(str::to_uppercase)).collect::<StringArray>())
            }
            ("spec_id", _) => Arc::new(Int32Array::from_value(spec_id, entries.len())),
            ("partition", _) => Arc::new(self.partition.coerce(&entries.partition)?),
            ("record_count", _) => Arc::new(entries.record_count.clone()),
            ("file_size_in_bytes", _) => Arc::new(entries.file_size_in_bytes.clone()),
            ("column_sizes", _) => map(&entries.column_sizes),
            ("value_counts", _) => map(&entries.value_counts),
            ("null_value_counts", _) => map(&entries.null_value_counts),
            ("nan_value_counts", _) => map(&entries.nan_value_counts),
            ("lower_bounds", _) => map(&entries.lower_bounds),
            ("upper_bounds", _) => map(&entries.upper_bounds),
            ("key_metadata", _) => Arc::new(entries.key_metadata.clone()),
            ("split_offsets", _) => Arc::new(entries.split_offsets.clone()),
            ("equality_ids", _) => Arc::new(entries.equality_ids.clone()),
            ("sort_order_id", _) => Arc::new(entries.sort_order_id.clone()),
            ("first_row_id", _) => Arc::new(entries.first_row_id.clone()),
            ("referenced_data_file", _) => Arc::new(entries.referenced_data_file.clone()),
            ("content_offset", _) => Arc::new(entries.content_offset.clone()),
            ("content_size_in_bytes", _) => Arc::new(entries.content_size_in_bytes.clone()),
            (readable_metrics::NAME, DataType::Struct(columns)) => {
                readable_metrics::column(self.inspect.metadata.current_schema(), entries, columns)?
            }
            (other, _) => return Err(missing(other)),
        })
    }
}
