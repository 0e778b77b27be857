//! Arrow tables of a plan: files with their deletes as lists, pieces of tasks, and obstacles for engines.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    new_empty_array,
};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use icefield_format::manifest::{Entries, FieldIds, Metrics};
use icefield_format::types::arrow::field_id;

use super::delete_lists::{self, DeleteLists, internal, too_large};
use super::obstacles::{EngineRead, Obstacle};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::plan::deletes::Deletes;
use crate::plan::deletes::links::Linked;
use crate::plan::tasks::split::SplitOptions;
use crate::plan::{Plan, PlanStream, PlannedManifest, Scan};

/// Converts planned manifests to batches with one schema.
#[derive(Debug)]
pub struct PlanColumns {
    partition: Fields,
    deletes: DeleteLists,
    metrics: Metrics,
    is_changelog: bool,
    schema: SchemaRef,
}

/// Manifests are combined into one batch up to this many files and this many bytes of metadata. Arrow tables with
/// very many chunks are slow, and string columns of a batch are limited to 2 GiB.
const BATCH_FILES: usize = 1 << 20;
const BATCH_BYTES: usize = 1 << 30;

impl Plan {
    /// The plan as few batches.
    ///
    /// Columns: `file_path`, `file_format`, `spec_id`, `partition` (a struct of the fields of all specs in the plan),
    /// `record_count`, `file_size_in_bytes`, `data_sequence_number`, `first_row_id`, `residual` (expression JSON),
    /// `deletes` (a list of structs: path, content, format, offset of a vector, referenced data file, sequence number,
    /// rows, equality ids); and the metrics that the scan requested, as maps by field id.
    ///
    /// If many deletes apply to each of many files, `deletes` is a list view over a dictionary of these structs, and
    /// files share common runs.
    ///
    /// A changelog has four more columns: `deleted_by` (deletes like those in `deletes`; a row is read only if one of
    /// them has deleted it, and all rows are read if the list is empty), `operation` (`INSERT` or `DELETE`),
    /// `change_ordinal` and `commit_snapshot_id`.
    ///
    /// # Errors
    ///
    /// The deletes of the files differ too much to be shared and exceed [`Limits::operation_memory`].
    ///
    /// [`Limits::operation_memory`]: icefield_format::Limits::operation_memory
    pub fn to_batches(&self) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let links = self.manifests.iter().map(PlannedManifest::links).fold(0, usize::saturating_add);
        let are_shared = delete_lists::are_many(links, self.len().saturating_add(self.deletes.len()));
        let columns = PlanColumns::new(&self.partition, &self.deletes, are_shared, &self.metrics, self.is_changelog)?;
        let files = self.manifests.iter().flat_map(|manifest| manifest.linked());
        limits()?.held().keep(files.map(|linked| columns.deletes.copied(linked)).fold(0, usize::saturating_add))?;
        let (mut batches, mut rest) = (Vec::new(), &self.manifests[..]);
        while !rest.is_empty() {
            let (mut count, mut files, mut bytes) = (0, 0, 0);
            for manifest in rest {
                files += manifest.entries.len();
                bytes += manifest.entries.memory();
                if count > 0 && (files > BATCH_FILES || bytes > BATCH_BYTES) {
                    break;
                }
                count += 1;
            }
            let (group, others) = rest.split_at(count);
            rest = others;
            batches.extend(columns.batches(group)?);
        }
        Ok((columns.schema, batches))
    }

    /// The plan as one batch; see [`Plan::to_batches`].
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let (schema, batches) = self.to_batches()?;
        concat_batches(&schema, &batches).map_err(too_large)
    }
}

impl Plan {
    /// The tasks of the plan as a batch with one row per piece of a data file.
    ///
    /// Columns: `task` (its number, from 0), `file` (the index of the file in [`Plan::to_batch`]), `file_path`,
    /// `start` and `length` in bytes.
    pub fn tasks_to_batch(&self, options: &SplitOptions) -> Result<RecordBatch> {
        let tasks = self.tasks(options)?;
        let firsts = self.first_places();
        let (mut numbers, mut files, mut paths, mut starts, mut lengths) = (vec![], vec![], vec![], vec![], vec![]);
        for (number, piece) in
            (0i32..).zip(&tasks).flat_map(|(number, task)| task.iter().map(move |piece| (number, piece)))
        {
            let found = self.manifests.get(piece.manifest).zip(firsts.get(piece.manifest));
            let (manifest, first) = found.ok_or_else(|| Error::Internal("a piece without its file".to_owned()))?;
            numbers.push(number);
            files.push(i64::try_from(first + piece.row).unwrap_or(i64::MAX));
            paths.push(manifest.entries.file_path.value(piece.row));
            starts.push(piece.start);
            lengths.push(piece.length);
        }
        let columns: [(&str, ArrayRef); 5] = [
            ("task", Arc::new(Int32Array::from(numbers))),
            ("file", Arc::new(Int64Array::from(files))),
            ("file_path", Arc::new(StringArray::from(paths))),
            ("start", Arc::new(Int64Array::from(starts))),
            ("length", Arc::new(Int64Array::from(lengths))),
        ];
        RecordBatch::try_from_iter(columns).map_err(internal)
    }
}

impl Plan {
    /// Why an engine does not read the files of the plan itself ([`Plan::obstacles`]), as a batch with one row per
    /// file.
    ///
    /// Columns: `kind`, a word or two, and `obstacle`, the full text; both are null for files that the engine may
    /// read.
    pub fn obstacles_to_batch(&self, read: &EngineRead) -> Result<RecordBatch> {
        let found = self.obstacles(read)?;
        let column = |text: fn(&Obstacle) -> String| -> ArrayRef {
            let texts: Vec<Option<String>> = found.iter().map(|found| found.as_ref().map(text)).collect();
            Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>())
        };
        let columns = [
            ("kind", column(|obstacle| obstacle.kind().to_owned()), true),
            ("obstacle", column(Obstacle::to_string), true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns).map_err(internal)
    }
}

/// A stream of a plan as batches: one or more per manifest, with the columns of [`Plan::to_batches`].
#[derive(Debug)]
pub struct PlanBatches {
    columns: PlanColumns,
    stream: PlanStream,
    /// The batches of the current manifest.
    made: std::vec::IntoIter<RecordBatch>,
}

impl PlanBatches {
    /// The schema of all batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.columns.schema
    }
}

impl Iterator for PlanBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.made.next() {
                return Some(Ok(batch));
            }
            let manifest = self.stream.next()?;
            match manifest.and_then(|manifest| self.columns.batches(std::slice::from_ref(&manifest))) {
                Ok(batches) => self.made = batches.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Scan {
    /// Plans the scan as batches; see [`Scan::plan_stream`].
    pub fn plan_batches(&self) -> Result<PlanBatches> {
        let stream = self.plan_stream()?;
        let columns = PlanColumns::of_stream(&stream)?;
        Ok(PlanBatches { columns, stream, made: Vec::new().into_iter() })
    }
}

impl PlanColumns {
    /// For a plan with these partition fields and deletes; `metrics` become columns and must have been read.
    fn new(
        partition: &Fields,
        deletes: &Deletes,
        are_shared: bool,
        metrics: &Metrics,
        is_changelog: bool,
    ) -> Result<Self> {
        let deletes = DeleteLists::new(delete_rows(deletes)?, are_shared)?;
        let mut fields = fields(partition, metrics);
        fields.insert(DELETES_AT, Field::new("deletes", deletes.data_type().clone(), false));
        if is_changelog {
            fields.push(Field::new("deleted_by", deletes.data_type().clone(), false));
            fields.extend(change_fields());
        }
        let schema = Arc::new(Schema::new(fields));
        Ok(Self { partition: partition.clone(), deletes, metrics: metrics.clone(), is_changelog, schema })
    }

    /// For the manifests of a stream.
    fn of_stream(stream: &PlanStream) -> Result<Self> {
        let are_shared = stream.shared_deletes() > delete_lists::FEW_OF_A_STREAM;
        Self::new(stream.partition(), stream.deletes(), are_shared, stream.metrics(), stream.is_changelog())
    }

    /// One row per data file, or in a changelog per change.
    fn batches(&self, manifests: &[PlannedManifest]) -> Result<Vec<RecordBatch>> {
        let of_one = manifests.iter().map(|manifest| self.file_columns(manifest)).collect::<Result<Vec<_>>>()?;
        let columns = match &of_one[..] {
            [] => return Ok(Vec::new()),
            [one] => one.clone(),
            [first, ..] => {
                let column = |at: usize| {
                    let parts: Vec<&dyn Array> =
                        of_one.iter().filter_map(|columns| columns.get(at)).map(|column| &**column).collect();
                    concat(&parts).map_err(too_large)
                };
                (0..first.len()).map(column).collect::<Result<Vec<ArrayRef>>>()?
            }
        };
        let rows = manifests.iter().flat_map(|manifest| (0..manifest.entries.len()).map(move |row| (manifest, row)));
        let deletes: Vec<Linked<'_>> = rows.clone().map(|(manifest, row)| manifest.deletes(row)).collect();
        let deleted_by: Vec<Linked<'_>> = match self.is_changelog {
            true => rows.map(|(manifest, row)| manifest.deleted_by(row)).collect(),
            false => Vec::new(),
        };
        let mut batches = Vec::new();
        let mut start = 0;
        while start < deletes.len() {
            let length = self.deletes.fitting([deletes.get(start..), deleted_by.get(start..)]);
            let part = |column: &ArrayRef| column.slice(start, length);
            let mut columns: Vec<ArrayRef> = columns.iter().map(part).collect();
            let lists = |of: &[Linked<'_>]| self.deletes.lists(of.get(start..start + length).unwrap_or_default());
            columns.insert(DELETES_AT, lists(&deletes)?);
            if self.is_changelog {
                columns.insert(columns.len() - CHANGE_COLUMNS, lists(&deleted_by)?);
            }
            batches.push(RecordBatch::try_new(self.schema.clone(), columns).map_err(internal)?);
            start += length;
        }
        Ok(batches)
    }

    /// All columns except those of deletes.
    fn file_columns(&self, manifest: &PlannedManifest) -> Result<Vec<ArrayRef>> {
        let mut columns = file_columns(manifest, &self.partition, &self.metrics)?;
        if self.is_changelog {
            columns.extend(change_columns(manifest)?);
        }
        Ok(columns)
    }
}

/// Index of the column of deletes.
const DELETES_AT: usize = 9;

/// One row per delete file, by index.
fn delete_rows(deletes: &Deletes) -> Result<StructArray> {
    let item = Arc::new(Field::new("element", DataType::Int32, false));
    let fields = Fields::from(vec![
        Field::new("file_path", DataType::Utf8, false),
        Field::new("content", DataType::Int32, false),
        Field::new("file_format", DataType::Utf8, false),
        Field::new("content_offset", DataType::Int64, true),
        Field::new("content_size_in_bytes", DataType::Int64, true),
        Field::new("referenced_data_file", DataType::Utf8, true),
        Field::new("data_sequence_number", DataType::Int64, false),
        Field::new("record_count", DataType::Int64, false),
        Field::new("equality_ids", DataType::List(item.clone()), true),
        Field::new("spec_id", DataType::Int32, false),
        Field::new("file_size_in_bytes", DataType::Int64, false),
    ]);
    let of_source = |entries: &Entries, spec_id: i32| {
        let rows = 0..entries.len();
        let contents = rows.map(|row| Ok(entries.content_of(row)?.id())).collect::<Result<Vec<i32>>>()?;
        let (_, offsets, ids, valid) = entries.equality_ids.clone().into_parts();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(entries.file_path.clone()),
            Arc::new(Int32Array::from(contents)),
            lower_case(&entries.file_format),
            Arc::new(entries.content_offset.clone()),
            Arc::new(entries.content_size_in_bytes.clone()),
            Arc::new(entries.referenced_data_file.clone()),
            Arc::new(Int64Array::from_iter_values(entries.sequence_number.iter().map(Option::unwrap_or_default))),
            Arc::new(entries.record_count.clone()),
            Arc::new(ListArray::try_new(item.clone(), offsets, ids, valid).map_err(internal)?),
            Arc::new(Int32Array::from(vec![spec_id; entries.len()])),
            Arc::new(entries.file_size_in_bytes.clone()),
        ];
        StructArray::try_new(fields.clone(), columns, None).map_err(internal)
    };
    let sources = deletes
        .sources()
        .iter()
        .map(|source| of_source(&source.entries, source.spec_id))
        .collect::<Result<Vec<_>>>()?;
    let sources: Vec<&dyn Array> = sources.iter().map(|rows| rows as &dyn Array).collect();
    if sources.is_empty() {
        return Ok(new_empty_array(&DataType::Struct(fields)).as_struct().clone());
    }
    Ok(concat(&sources).map_err(internal)?.as_struct().clone())
}

/// File format names in lower case; writers use either case.
fn lower_case(formats: &StringArray) -> ArrayRef {
    Arc::new(StringArray::from_iter(formats.iter().map(|format| format.map(str::to_lowercase))))
}

/// The requested metrics by name, with their fields and their type.
fn asked(metrics: &Metrics) -> impl Iterator<Item = (&'static str, &FieldIds, DataType)> {
    let all = [
        ("column_sizes", &metrics.column_sizes, DataType::Int64),
        ("value_counts", &metrics.value_counts, DataType::Int64),
        ("null_value_counts", &metrics.null_value_counts, DataType::Int64),
        ("nan_value_counts", &metrics.nan_value_counts, DataType::Int64),
        ("lower_bounds", &metrics.lower_bounds, DataType::Binary),
        ("upper_bounds", &metrics.upper_bounds, DataType::Binary),
    ];
    all.into_iter().filter(|(_, ids, _)| **ids != FieldIds::None)
}

fn fields(partition: &Fields, metrics: &Metrics) -> Vec<Field> {
    let metric = |(name, _, value): (&str, &FieldIds, DataType)| {
        let pair = vec![Field::new("key", DataType::Int32, false), Field::new("value", value, false)];
        let entries = Field::new("entries", DataType::Struct(pair.into()), false);
        Field::new(name, DataType::Map(Arc::new(entries), false), true)
    };
    let metrics = asked(metrics).map(metric);
    let fields = [
        Field::new("file_path", DataType::Utf8, false),
        Field::new("file_format", DataType::Utf8, false),
        Field::new("spec_id", DataType::Int32, false),
        Field::new("partition", DataType::Struct(partition.clone()), false),
        Field::new("record_count", DataType::Int64, false),
        Field::new("file_size_in_bytes", DataType::Int64, false),
        Field::new("data_sequence_number", DataType::Int64, true),
        Field::new("first_row_id", DataType::Int64, true),
        Field::new("residual", dictionary(), false),
    ];
    fields.into_iter().chain(metrics).collect()
}

/// The type of a string column with many repeated values.
fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Number of columns after `deleted_by`.
const CHANGE_COLUMNS: usize = 3;

fn change_fields() -> [Field; CHANGE_COLUMNS] {
    [
        Field::new("operation", dictionary(), false),
        Field::new("change_ordinal", DataType::Int32, false),
        Field::new("commit_snapshot_id", DataType::Int64, false),
    ]
}

fn change_columns(manifest: &PlannedManifest) -> Result<[ArrayRef; CHANGE_COLUMNS]> {
    let rows = 0..manifest.entries.len();
    let changes = rows.map(|row| manifest.change(row)).collect::<Result<Vec<_>>>()?;
    let mut operations = StringDictionaryBuilder::<Int32Type>::new();
    changes.iter().for_each(|change| operations.append_value(change.change_type.as_str()));
    Ok([
        Arc::new(operations.finish()),
        Arc::new(Int32Array::from_iter_values(changes.iter().map(|change| change.ordinal))),
        Arc::new(Int64Array::from_iter_values(changes.iter().map(|change| change.snapshot_id))),
    ])
}

fn file_columns(manifest: &PlannedManifest, partition: &Fields, metrics: &Metrics) -> Result<Vec<ArrayRef>> {
    let entries = &manifest.entries;
    let rows = entries.len();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(entries.file_path.clone()),
        lower_case(&entries.file_format),
        Arc::new(Int32Array::from_value(manifest.spec_id(), rows)),
        partition_column(&entries.partition, partition, rows)?,
        Arc::new(entries.record_count.clone()),
        Arc::new(entries.file_size_in_bytes.clone()),
        Arc::new(entries.sequence_number.clone()),
        Arc::new(entries.first_row_id.clone()),
        residuals(manifest)?,
    ];
    let read = [
        &entries.column_sizes,
        &entries.value_counts,
        &entries.null_value_counts,
        &entries.nan_value_counts,
        &entries.lower_bounds,
        &entries.upper_bounds,
    ];
    let by_name: HashMap<&str, _> = asked(&Metrics::all()).map(|(name, ..)| name).zip(read).collect();
    for (name, ids, _) in asked(metrics) {
        // Other metrics may be present because the filter needs them, or an earlier plan has read them.
        let map = by_name.get(name).copied().and_then(Option::as_ref);
        let map = map.ok_or_else(|| Error::Internal(format!("{name} was asked for and not read")))?;
        columns.push(Arc::new(map.restricted(ids)?.as_array().clone()));
    }
    Ok(columns)
}

/// The partition struct with the fields of all specs; fields of other specs are null.
fn partition_column(tuple: &StructArray, wanted: &Fields, rows: usize) -> Result<ArrayRef> {
    let column = |field: &FieldRef| {
        let place = tuple.fields().iter().position(|known| field_id(known) == field_id(field));
        match place.and_then(|place| tuple.columns().get(place)) {
            Some(found) if found.data_type() == field.data_type() => Ok(found.clone()),
            Some(found) if found.null_count() == found.len() => {
                Ok(arrow_array::new_null_array(field.data_type(), rows))
            }
            Some(found) => arrow_cast::cast(found, field.data_type()).map_err(internal),
            None => Ok(arrow_array::new_null_array(field.data_type(), rows)),
        }
    };
    let columns = wanted.iter().map(column).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(wanted.clone(), columns, None, rows).map_err(internal)?))
}

fn residuals(manifest: &PlannedManifest) -> Result<ArrayRef> {
    let texts = manifest.residuals.iter().map(|residual| Ok(residual.to_json()?.to_string()));
    let texts = texts.collect::<Result<Vec<String>>>()?;
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    for place in &manifest.residual_places {
        let text =
            texts.get(*place as usize).ok_or_else(|| Error::Internal("a residual without a place".to_owned()))?;
        builder.append(text).map_err(internal)?;
    }
    Ok(Arc::new(builder.finish()))
}
