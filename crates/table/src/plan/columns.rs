//! A plan as one Arrow table: a row a data file, its deletes as a list.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray, UInt32Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take;
use icefield_format::manifest::{FieldIds, Metrics};
use icefield_format::types::arrow::field_id;

use super::deletes::{DeleteFile, Deletes};
use super::{Plan, PlannedManifest};
use crate::error::{Error, Result};

/// Makes batches of planned manifests, all of one schema.
#[derive(Debug)]
pub struct PlanColumns {
    partition: Fields,
    deletes: StructArray,
    metrics: Metrics,
    schema: SchemaRef,
}

impl Plan {
    /// The plan as a batch.
    ///
    /// Columns: `file_path`, `file_format`, `spec_id`, `partition` (a struct of the fields of all specs in the plan),
    /// `record_count`, `file_size_in_bytes`, `data_sequence_number`, `first_row_id`, `residual` (expression JSON),
    /// `deletes` (a list of structs: path, content, format, place of a vector, referenced data file, sequence number,
    /// rows, equality ids); and the metrics that the scan asked for, as maps by field id.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let columns = PlanColumns::new(&self.partition, &self.deletes, &self.metrics)?;
        let batches = self.manifests.iter().map(|manifest| columns.batch(manifest));
        let batches = batches.collect::<Result<Vec<_>>>()?;
        concat_batches(&columns.schema, &batches).map_err(internal)
    }
}

/// Partition fields by id; of two with one id the later wins, unless it is `void` (true): version 1 leaves that, of the
/// source's type, where a field was removed.
pub(super) fn union(all: impl Iterator<Item = (FieldRef, bool)>) -> Fields {
    let mut found: Vec<FieldRef> = Vec::new();
    for (field, void) in all {
        match found.iter_mut().find(|known| field_id(known) == field_id(&field)) {
            Some(_) if void => {}
            Some(known) => *known = field,
            None => found.push(field),
        }
    }
    found.into()
}

impl PlanColumns {
    /// For a plan with these partition fields and deletes; `metrics` are shown, and must have been read.
    pub fn new(partition: &Fields, deletes: &Deletes, metrics: &Metrics) -> Result<Self> {
        let deletes = delete_rows(deletes)?;
        let schema = schema(partition, deletes.fields(), metrics);
        Ok(Self { partition: partition.clone(), deletes, metrics: metrics.clone(), schema })
    }

    /// The schema of all batches; see [`Plan::to_batch`].
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A row a data file.
    pub fn batch(&self, manifest: &PlannedManifest) -> Result<RecordBatch> {
        batch(manifest, &self.partition, &self.deletes, &self.metrics, &self.schema)
    }
}

impl PlanColumns {
    /// A column of lists of deletes.
    pub(super) fn list_of_deletes(&self, name: &str) -> Field {
        Field::new(name, DataType::List(element(self.deletes.fields())), false)
    }

    /// The values of such a column: a list for each list of places of deletes.
    pub(super) fn lists_of_deletes<'p>(&self, lists: impl Iterator<Item = &'p [u32]> + Clone) -> Result<ArrayRef> {
        lists_of(&self.deletes, lists)
    }
}

fn element(deletes: &Fields) -> FieldRef {
    Arc::new(Field::new("element", DataType::Struct(deletes.clone()), false))
}

fn lists_of<'p>(deletes: &StructArray, lists: impl Iterator<Item = &'p [u32]> + Clone) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::from_lengths(lists.clone().map(<[u32]>::len));
    let places = UInt32Array::from_iter_values(lists.flatten().copied());
    let linked = take(deletes, &places, None).map_err(internal)?;
    Ok(Arc::new(ListArray::try_new(element(deletes.fields()), offsets, linked, None).map_err(internal)?))
}

fn delete_rows(deletes: &Deletes) -> Result<StructArray> {
    let all = deletes.iter().collect::<Result<Vec<DeleteFile>>>()?;
    let files = || all.iter().map(|delete| &delete.file);
    let ids: Vec<Option<&Vec<i32>>> = files().map(|file| file.equality_ids.as_ref()).collect();
    let item = Arc::new(Field::new("element", DataType::Int32, false));
    let flat = Int32Array::from_iter_values(ids.iter().copied().flatten().flatten().copied());
    let offsets = OffsetBuffer::from_lengths(ids.iter().map(|ids| ids.map_or(0, Vec::len)));
    let valid = arrow_buffer::NullBuffer::from_iter(ids.iter().map(Option::is_some));
    let ids = ListArray::try_new(item, offsets, Arc::new(flat), Some(valid)).map_err(internal)?;
    let columns: Vec<(&str, bool, ArrayRef)> = vec![
        ("file_path", false, Arc::new(StringArray::from_iter_values(files().map(|file| &file.file_path)))),
        ("content", false, Arc::new(Int32Array::from_iter_values(files().map(|file| file.content.id())))),
        (
            "file_format",
            false,
            Arc::new(StringArray::from_iter_values(files().map(|file| file.file_format.to_lowercase()))),
        ),
        ("content_offset", true, Arc::new(Int64Array::from_iter(files().map(|file| file.content_offset)))),
        (
            "content_size_in_bytes",
            true,
            Arc::new(Int64Array::from_iter(files().map(|file| file.content_size_in_bytes))),
        ),
        (
            "referenced_data_file",
            true,
            Arc::new(StringArray::from_iter(files().map(|file| file.referenced_data_file.as_deref()))),
        ),
        (
            "data_sequence_number",
            false,
            Arc::new(Int64Array::from_iter_values(all.iter().map(|delete| delete.sequence_number))),
        ),
        ("record_count", false, Arc::new(Int64Array::from_iter_values(files().map(|file| file.record_count)))),
        ("equality_ids", true, Arc::new(ids)),
    ];
    let fields =
        columns.iter().map(|(name, nullable, column)| Field::new(*name, column.data_type().clone(), *nullable));
    let fields: Fields = fields.collect();
    let columns = columns.into_iter().map(|(_, _, column)| column).collect();
    StructArray::try_new_with_length(fields, columns, None, all.len()).map_err(internal)
}

/// The metrics that are asked for, by name: of which fields, and of what type.
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

fn schema(partition: &Fields, deletes: &Fields, metrics: &Metrics) -> SchemaRef {
    let metric = |(name, _, value): (&str, &FieldIds, DataType)| {
        let pair = vec![Field::new("key", DataType::Int32, false), Field::new("value", value, false)];
        let entries = Field::new("entries", DataType::Struct(pair.into()), false);
        Field::new(name, DataType::Map(Arc::new(entries), false), true)
    };
    let metrics = asked(metrics).map(metric);
    let residual = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let fields = [
        Field::new("file_path", DataType::Utf8, false),
        Field::new("file_format", DataType::Utf8, false),
        Field::new("spec_id", DataType::Int32, false),
        Field::new("partition", DataType::Struct(partition.clone()), false),
        Field::new("record_count", DataType::Int64, false),
        Field::new("file_size_in_bytes", DataType::Int64, false),
        Field::new("data_sequence_number", DataType::Int64, true),
        Field::new("first_row_id", DataType::Int64, true),
        Field::new("residual", residual, false),
        Field::new("deletes", DataType::List(element(deletes)), false),
    ];
    Arc::new(Schema::new(fields.into_iter().chain(metrics).collect::<Vec<_>>()))
}

fn batch(
    manifest: &PlannedManifest,
    partition: &Fields,
    deletes: &StructArray,
    metrics: &Metrics,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let entries = &manifest.entries;
    let rows = entries.len();
    let formats = entries.file_format.iter().map(|format| format.map(str::to_lowercase));
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(entries.file_path.clone()),
        Arc::new(StringArray::from_iter(formats)),
        Arc::new(Int32Array::from_value(manifest.spec_id(), rows)),
        partition_column(&entries.partition, partition, rows)?,
        Arc::new(entries.record_count.clone()),
        Arc::new(entries.file_size_in_bytes.clone()),
        Arc::new(entries.sequence_number.clone()),
        Arc::new(entries.first_row_id.clone()),
        residuals(manifest)?,
        lists_of(deletes, (0..rows).map(|row| manifest.deletes(row)))?,
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
        // Others may be there because the filter needs them, or because an earlier plan has read them.
        let map = by_name.get(name).copied().and_then(Option::as_ref);
        let map = map.ok_or_else(|| Error::Internal(format!("{name} was asked for and not read")))?;
        columns.push(Arc::new(map.restricted(ids)?.as_array().clone()));
    }
    RecordBatch::try_new(schema.clone(), columns).map_err(internal)
}

/// The tuple with the fields of all specs: those of other specs are null.
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

fn internal(error: arrow_schema::ArrowError) -> Error {
    Error::Internal(error.to_string())
}
