//! `entries` and `all_entries`: the status of each file in the manifests, deleted files included.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, FieldRef};
use icefield_format::FormatVersion;
use icefield_format::manifest::write::entry_type;
use icefield_format::manifest::{ManifestFile, Metrics};
use icefield_format::types::{Field, StructType, Type};

use super::batch::{build, conform, internal};
use super::{Read, files, readable_metrics};
use crate::error::Result;
use crate::stream::OpenTask;

pub(super) fn fields(partition: &StructType) -> Vec<Field> {
    let mut fields = entry_type(FormatVersion::V3.number(), StructType::new(Vec::new())).fields;
    for file in fields.iter_mut().filter(|field| field.name == "data_file") {
        file.ty = Type::Struct(Arc::new(StructType::new(files::fields(partition))));
    }
    fields
}

pub(super) fn tasks(read: &Arc<Read>, manifests: Vec<ManifestFile>) -> Result<Vec<OpenTask>> {
    let made = read.made.as_struct();
    let file = made.field_named("data_file").and_then(|field| field.ty.as_struct());
    let metrics = readable_metrics::wanted(
        file.map(|file| &**file),
        made.field_named(readable_metrics::NAME),
        read.inspect.metadata.current_schema(),
    )?;
    let task = |manifest: ManifestFile| {
        let metrics = metrics.clone();
        read.task(move |read| {
            read.manifest_entries(&manifest, &metrics).map_err(|error| error.in_file(&manifest.manifest_path))
        })
    };
    Ok(manifests.into_iter().map(task).collect())
}

impl Read {
    fn manifest_entries(&self, manifest: &ManifestFile, metrics: &Metrics) -> Result<RecordBatch> {
        let entries = self.entries(manifest, metrics, false)?;
        let spec_id = manifest.partition_spec_id;
        build(&self.arrow, entries.len(), |field| {
            Ok(match (field.name().as_str(), field.data_type()) {
                ("data_file", DataType::Struct(fields)) => {
                    let column = |field: &FieldRef| -> Result<ArrayRef> {
                        conform(&self.file_column(field, &entries, spec_id)?, field.data_type())
                    };
                    let columns = fields.iter().map(column).collect::<Result<Vec<_>>>()?;
                    let made = StructArray::try_new_with_length(fields.clone(), columns, None, entries.len());
                    Arc::new(made.map_err(internal)?)
                }
                _ => self.file_column(field, &entries, spec_id)?,
            })
        })
    }
}
