//! `files`, `data_files`, `delete_files` and their `all_` forms: the live files of manifests, one task per manifest.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, FieldRef};
use icefield_format::FormatVersion;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::write::file_type;
use icefield_format::manifest::{Entries, ManifestContent, ManifestFile, Metrics};
use icefield_format::types::{Field, PrimitiveType as P, StructType};

use super::batch::{build, missing};
use super::{MetadataTable, Read, readable_metrics};
use crate::error::Result;
use crate::stream::OpenTask;

/// The fields of a file, as in Java's `DataFile`: with the spec's id, and without the partition if no spec has a
/// field.
pub(super) fn fields(partition: &StructType) -> Vec<Field> {
    let mut fields = file_type(FormatVersion::V3.number(), partition.clone()).fields;
    fields.retain(|field| field.name != "partition" || !partition.fields.is_empty());
    for field in fields.iter_mut().filter(|field| field.name == "content") {
        field.required = false;
    }
    let spec_id = Field::optional(141, "spec_id", P::Int).with_doc("Partition spec ID");
    let at = fields.iter().position(|field| field.name == "file_format").map_or(0, |at| at + 1);
    fields.insert(at, spec_id);
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
        let bytes = self.inspect.storage.read_manifest(manifest)?;
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

    /// A column of files, including `readable_metrics`.
    pub(super) fn file_column(&self, field: &FieldRef, entries: &Entries, spec_id: i32) -> Result<ArrayRef> {
        Ok(match (field.name().as_str(), field.data_type()) {
            ("file_format", _) => {
                // The manifest may have any letter case; Java prints the name of a constant.
                Arc::new(entries.file_format.iter().map(|one| one.map(str::to_uppercase)).collect::<StringArray>())
            }
            ("spec_id", _) => Arc::new(Int32Array::from_value(spec_id, entries.len())),
            ("partition", _) => Arc::new(self.partition.coerce(&entries.partition)?),
            (readable_metrics::NAME, DataType::Struct(columns)) => {
                readable_metrics::column(self.inspect.metadata.current_schema(), entries, columns)?
            }
            (name, data_type) => match (entries.column(name), data_type) {
                (Some(column), _) => column,
                // Metrics that were not read.
                (None, DataType::Map(..)) => arrow_array::new_null_array(data_type, entries.len()),
                (None, _) => return Err(missing(name)),
            },
        })
    }
}
