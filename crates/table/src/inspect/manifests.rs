//! `manifests` and `all_manifests`: the contents of manifest lists.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::{ArrayRef, BinaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::PartitionSummaries;
use icefield_format::manifest::{ManifestContent, Metrics, Status};
use icefield_format::metadata::Snapshot;
use icefield_format::types::{Field, ListType, PrimitiveType as P, StructType, Type};
use icefield_format::value::binary;
use rayon::prelude::*;

use super::Read;
use super::batch::{build, internal, missing};
use super::partition::OfSpec;
use crate::error::{Error, Result};
use crate::runtime;
use crate::snapshot::manifests::{of_snapshot, with_own_lists};
use crate::stream::OpenTask;

/// Lists in memory at a time for `all_manifests`, per thread.
const LISTS_A_THREAD: usize = 4;

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::required(14, "content", P::Int),
        Field::required(1, "path", P::String),
        Field::required(2, "length", P::Long),
        Field::required(3, "partition_spec_id", P::Int),
        Field::required(4, "added_snapshot_id", P::Long),
        Field::required(5, "added_data_files_count", P::Int),
        Field::required(6, "existing_data_files_count", P::Int),
        Field::required(7, "deleted_data_files_count", P::Int),
        Field::required(15, "added_delete_files_count", P::Int),
        Field::required(16, "existing_delete_files_count", P::Int),
        Field::required(17, "deleted_delete_files_count", P::Int),
        Field::required(8, "partition_summaries", summaries_type()),
    ]
}

pub(super) fn all_fields() -> Vec<Field> {
    let optional = ["partition_spec_id", "added_snapshot_id", "partition_summaries"];
    let relaxed = |mut field: Field| {
        field.required &= !optional.contains(&field.name.as_str()) && !field.name.ends_with("data_files_count");
        field
    };
    let mut fields: Vec<Field> = fields().into_iter().map(relaxed).collect();
    fields.push(Field::required(18, "reference_snapshot_id", P::Long));
    fields.push(Field::optional(19, "key_metadata", P::Binary));
    fields
}

fn summaries_type() -> Type {
    let summary = StructType::new(vec![
        Field::required(10, "contains_null", P::Boolean),
        Field::optional(11, "contains_nan", P::Boolean),
        Field::optional(12, "lower_bound", P::String),
        Field::optional(13, "upper_bound", P::String),
    ]);
    Type::List(Arc::new(ListType::required(9, Type::Struct(Arc::new(summary)))))
}

/// The manifests of a snapshot.
pub(super) fn of(read: &Read, snapshot: Option<&Snapshot>) -> Result<Vec<ManifestFile>> {
    let inspect = &read.inspect;
    let Some(snapshot) = snapshot else { return Ok(Vec::new()) };
    of_snapshot(&inspect.storage, &inspect.metadata, snapshot, &inspect.limits)
}

/// The manifests of all snapshots, each once; a list shared by several snapshots is read once.
pub(super) fn of_all_snapshots(read: &Read) -> Result<Vec<ManifestFile>> {
    let of_one = |snapshot: &&Arc<Snapshot>| of(read, Some(snapshot));
    let (mut seen, mut all, mut held) = (HashSet::new(), Vec::new(), read.inspect.limits.held());
    for some in with_own_lists(&read.inspect.metadata).chunks(LISTS_A_THREAD * runtime::threads()) {
        let lists: Result<Vec<_>> = runtime::pool()?.install(|| some.par_iter().map(of_one).collect());
        for manifest in lists?.into_iter().flatten() {
            if seen.insert(manifest.manifest_path.clone()) {
                held.keep(manifest.memory())?;
                all.push(manifest);
            }
        }
    }
    Ok(all)
}

pub(super) fn task(read: &Arc<Read>, snapshot: &Snapshot) -> OpenTask {
    let snapshot = snapshot.clone();
    read.task(move |read| {
        let mut manifests = of(read, Some(&snapshot))?;
        manifests.iter_mut().try_for_each(|manifest| read.complete(manifest))?;
        read.manifests(&manifests, snapshot.snapshot_id)
    })
}

pub(super) fn all_tasks(read: &Arc<Read>) -> Vec<OpenTask> {
    let task = |snapshot: &Arc<Snapshot>| {
        let snapshot = Arc::clone(snapshot);
        read.task(move |read| read.manifests(&of(read, Some(&snapshot))?, snapshot.snapshot_id))
    };
    read.inspect.metadata.snapshots().iter().map(task).collect()
}

impl Read {
    /// Fills in fields missing from old lists (and v1 metadata without a list), by reading the manifest.
    fn complete(&self, manifest: &mut ManifestFile) -> Result<()> {
        let counted = [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count];
        if counted.iter().all(Option::is_some) && manifest.partitions.is_some() {
            return Ok(());
        }
        let of_spec = self.partition.of_spec(manifest.partition_spec_id, &manifest.manifest_path)?;
        let entries = self.entries(manifest, &Metrics::none(), false)?;
        let mut counts = [0i32; 3];
        let mut summaries = PartitionSummaries::new(of_spec.types.iter().cloned());
        for row in 0..entries.len() {
            let status = entries.status_of(row)?;
            if let Some(count) = counts.get_mut(status as usize) {
                *count = count.saturating_add(1);
            }
            let known = entries.partition_type.fields.iter().map(|field| field.id).zip(entries.partition_of(row)?);
            let known: Vec<_> = known.collect();
            let value = |id: i32| known.iter().find(|(found, _)| *found == id).and_then(|(_, value)| value.clone());
            let tuple: Vec<_> = of_spec.spec.fields.iter().map(|field| value(field.field_id)).collect();
            summaries.add(&tuple);
        }
        let count = |status: Status| counts.get(status as usize).copied();
        manifest.added_files_count = manifest.added_files_count.or(count(Status::Added));
        manifest.existing_files_count = manifest.existing_files_count.or(count(Status::Existing));
        manifest.deleted_files_count = manifest.deleted_files_count.or(count(Status::Deleted));
        if manifest.partitions.is_none() {
            manifest.partitions = Some(summaries.finish()?);
        }
        Ok(())
    }

    fn manifests(&self, all: &[ManifestFile], snapshot_id: i64) -> Result<RecordBatch> {
        let count = |content: ManifestContent, get: fn(&ManifestFile) -> Option<i32>| -> ArrayRef {
            let counts = all.iter().map(|one| if one.content == content { get(one) } else { Some(0) });
            Arc::new(Int32Array::from_iter(counts))
        };
        build(&self.arrow, all.len(), |field| {
            use ManifestContent::{Data, Deletes};
            Ok(match field.name().as_str() {
                "content" => Arc::new(Int32Array::from_iter_values(all.iter().map(|one| one.content.id()))),
                "path" => Arc::new(StringArray::from_iter_values(all.iter().map(|one| &one.manifest_path))),
                "length" => Arc::new(Int64Array::from_iter_values(all.iter().map(|one| one.manifest_length))),
                "partition_spec_id" => {
                    Arc::new(Int32Array::from_iter_values(all.iter().map(|one| one.partition_spec_id)))
                }
                "added_snapshot_id" => {
                    Arc::new(Int64Array::from_iter_values(all.iter().map(|one| one.added_snapshot_id)))
                }
                "added_data_files_count" => count(Data, |one| one.added_files_count),
                "existing_data_files_count" => count(Data, |one| one.existing_files_count),
                "deleted_data_files_count" => count(Data, |one| one.deleted_files_count),
                "added_delete_files_count" => count(Deletes, |one| one.added_files_count),
                "existing_delete_files_count" => count(Deletes, |one| one.existing_files_count),
                "deleted_delete_files_count" => count(Deletes, |one| one.deleted_files_count),
                "partition_summaries" => self.summaries(all)?,
                "reference_snapshot_id" => Arc::new(Int64Array::from_value(snapshot_id, all.len())),
                "key_metadata" => Arc::new(all.iter().map(|one| one.key_metadata.as_deref()).collect::<BinaryArray>()),
                other => return Err(missing(other)),
            })
        })
    }

    /// The partition summaries, with bounds as text for people.
    fn summaries(&self, all: &[ManifestFile]) -> Result<ArrayRef> {
        let (mut null, mut nan) = (BooleanBuilder::new(), BooleanBuilder::new());
        let (mut lower, mut upper) = (StringBuilder::new(), StringBuilder::new());
        for manifest in all {
            let of_spec = self.partition.of_spec(manifest.partition_spec_id, &manifest.manifest_path)?;
            for (place, summary) in manifest.partitions.iter().flatten().enumerate() {
                null.append_value(summary.contains_null);
                nan.append_option(summary.contains_nan);
                let text = |bound: &Option<Vec<u8>>| {
                    bound_text(of_spec, place, bound.as_deref()).map_err(|error| error.in_file(&manifest.manifest_path))
                };
                lower.append_value(text(&summary.lower_bound)?);
                upper.append_value(text(&summary.upper_bound)?);
            }
        }
        let columns: Vec<ArrayRef> =
            vec![Arc::new(null.finish()), Arc::new(nan.finish()), Arc::new(lower.finish()), Arc::new(upper.finish())];
        let names = ["contains_null", "contains_nan", "lower_bound", "upper_bound"];
        let fields = names.iter().zip(&columns);
        let fields: Fields =
            fields.map(|(name, column)| ArrowField::new(*name, column.data_type().clone(), true)).collect();
        let rows = columns.first().map_or(0, |column| column.len());
        let summaries = StructArray::try_new_with_length(fields.clone(), columns, None, rows).map_err(internal)?;
        let item = Arc::new(ArrowField::new("element", DataType::Struct(fields), true));
        let offsets = OffsetBuffer::from_lengths(all.iter().map(|one| one.partitions.as_ref().map_or(0, Vec::len)));
        let nulls: NullBuffer = all.iter().map(|one| one.partitions.is_some()).collect();
        Ok(Arc::new(ListArray::try_new(item, offsets, Arc::new(summaries), Some(nulls)).map_err(internal)?))
    }
}

/// The text of a bound; `null` if it is missing or its type is no longer known, as in Java.
fn bound_text(of_spec: &OfSpec, place: usize, bound: Option<&[u8]>) -> Result<String> {
    let (Some(field), Some(ty)) = (of_spec.spec.fields.get(place), of_spec.types.get(place)) else {
        let message = format!("it is summarised by more fields than its spec {} has", of_spec.spec.spec_id);
        return Err(Error::from(icefield_format::Error::corrupt("partitions", message)));
    };
    let bound = bound.filter(|_| !matches!(ty, P::Unknown | P::Unrecognized(_)));
    let value = bound.map(|bytes| binary::bound_from_bytes(bytes, ty)).transpose()?.flatten();
    Ok(field.transform.to_human_string(value.as_ref(), ty))
}
