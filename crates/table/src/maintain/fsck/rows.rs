//! Checks the rows of a file against its entry in a manifest: counts, bounds, partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, Scalar, make_array};
use arrow_buffer::NullBuffer;
use arrow_ord::cmp::{gt, lt};
use arrow_schema::DataType;
use icefield_format::encryption::HiddenBytes;
use icefield_format::expr::Expression;
use icefield_format::manifest::{DataFile, FileContent, ManifestEntry};
use icefield_format::spec::PartitionField;
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS};
use icefield_format::types::{Field, NAME_MAPPING_PROPERTY, NameMapping, PrimitiveType, Schema, Type};
use icefield_format::value::{Value, binary};

use super::context::{At, Check};
use super::metrics::{has_other_types, is_truncated, same, shown};
use crate::arrow::cells::value_at;
use crate::arrow::constant;
use crate::error::{Error, Result};
use crate::plan::deletes::delete_parts::DeleteParts;
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::{FilePart, FilePartition, PlannedSpec};
use crate::read::task;

/// Reads all rows of a data or delete file.
pub(super) fn check(check: &Check<'_>, at: At<'_>, entry: &ManifestEntry) -> Result<()> {
    let file = &entry.file;
    let Some(spec) = check.metadata.partition_spec(file.partition_spec_id) else { return Ok(()) };
    let schema = match file.content {
        FileContent::Data => readable(check)?,
        FileContent::PositionDeletes => position_deletes()?,
        FileContent::EqualityDeletes => match equality_columns(check, file)? {
            Some(schema) => schema,
            None => return Ok(()),
        },
    };
    let schema = &schema;
    let mut columns: Vec<CheckedColumn<'_>> = Vec::new();
    CheckedColumn::add_all(&mut columns, schema.fields(), &[], file);
    let mapping = check.metadata.property(NAME_MAPPING_PROPERTY).and_then(|text| NameMapping::parse(text).ok());
    let wanted = Wanted { name_mapping: mapping.map(Arc::new), ..Wanted::new(schema.clone(), schema.clone()) };
    let planned = PlannedSpec { partition_type: spec.partition_type(schema), spec: spec.clone() };
    let part = FilePart {
        path: file.file_path.clone(),
        format: file.file_format.to_lowercase(),
        size: u64::try_from(file.file_size_in_bytes).unwrap_or(0),
        key_metadata: file.key_metadata.clone().map(HiddenBytes),
        start: 0,
        length: u64::try_from(file.file_size_in_bytes).unwrap_or(0),
        record_count: file.record_count,
        partition: FilePartition { spec: Arc::new(planned), tuple: file.partition.clone() },
        sequence_number: entry.sequence_number,
        first_row_id: file.first_row_id,
        deletes: DeleteParts::default(),
        residual: Expression::True,
        change: None,
        deleted_by: DeleteParts::default(),
    };
    let mut seen: BTreeMap<i32, SeenValues> = BTreeMap::new();
    let mut rows = 0i64;
    for batch in task::rows(ReadTask { wanted: Arc::new(wanted), parts: vec![part] }, check.storage, None)? {
        let batch = batch?;
        rows = rows.saturating_add(i64::try_from(batch.num_rows()).unwrap_or(i64::MAX));
        for column in &columns {
            if let Some(values) = column.values(&batch) {
                seen.entry(column.field.id).or_default().add(column, &values)?;
            }
        }
        if file.content == FileContent::Data {
            check_partition(check, at, file, schema, &batch)?;
        }
        if !check.goes_on() {
            return Ok(());
        }
    }
    check.count(|report| report.rows += u64::try_from(rows).unwrap_or(0));
    if file.record_count >= 0 {
        at.same("rows-record-count", "record_count", rows, file.record_count);
    }
    for column in &columns {
        if let Some(seen) = seen.get(&column.field.id) {
            column.compare(check, at, file, seen);
        }
    }
    Ok(())
}

/// A column with what a manifest says of it.
struct CheckedColumn<'a> {
    field: &'a Field,
    /// The places of the column, and of the fields within it that lead to this one.
    path: Vec<usize>,
    lower: Option<Value>,
    upper: Option<Value>,
}

/// What the rows have.
#[derive(Default)]
struct SeenValues {
    nulls: i64,
    nans: i64,
    below: i64,
    above: i64,
}

impl<'a> CheckedColumn<'a> {
    /// Adds columns, and those within structs. Metrics of lists and maps do not count rows.
    fn add_all(columns: &mut Vec<Self>, fields: &'a [Field], above: &[usize], file: &DataFile) {
        for (place, field) in fields.iter().enumerate() {
            let path: Vec<usize> = above.iter().copied().chain([place]).collect();
            if let Type::Struct(within) = &field.ty {
                Self::add_all(columns, &within.fields, &path, file);
            }
            columns.push(Self::of(field, path, file));
        }
    }

    /// The values of a batch; null where a struct is that has them.
    fn values(&self, batch: &RecordBatch) -> Option<ArrayRef> {
        let (first, within) = self.path.split_first()?;
        let mut values = batch.columns().get(*first)?.clone();
        for place in within {
            let parent = values.as_struct_opt()?;
            let child = parent.columns().get(*place)?;
            let nulls = NullBuffer::union(parent.nulls(), child.nulls());
            values = make_array(child.to_data().into_builder().nulls(nulls).build().ok()?);
        }
        Some(values)
    }

    fn of(field: &'a Field, path: Vec<usize>, file: &DataFile) -> Self {
        let bound = |pairs: &Option<Vec<(i32, Vec<u8>)>>| {
            let Type::Primitive(ty) = &field.ty else { return None };
            let comparable = !matches!(
                ty,
                PrimitiveType::Uuid
                    | PrimitiveType::Unknown
                    | PrimitiveType::Fixed(_)
                    | PrimitiveType::Geometry { .. }
                    | PrimitiveType::Geography { .. }
            );
            let found = pairs.iter().flatten().find(|(id, _)| *id == field.id && comparable)?;
            // A bound that cannot be read is a finding already.
            binary::from_bytes(&found.1, ty).ok()
        };
        // Arrow orders -0.0 before 0.0, and writers differ in the sign of zeros in bounds.
        let signed = |value: Option<Value>, zero: f64| match value {
            Some(Value::Float(0.0)) => Some(Value::Float(zero as f32)),
            Some(Value::Double(0.0)) => Some(Value::Double(zero)),
            other => other,
        };
        let (lower, upper) = (signed(bound(&file.lower_bounds), -0.0), signed(bound(&file.upper_bounds), 0.0));
        Self { field, path, lower, upper }
    }

    fn compare(&self, check: &Check<'_>, at: At<'_>, file: &DataFile, seen: &SeenValues) {
        let id = self.field.id;
        // Within structs, only Parquet's counts are of all rows: ORC's leave out those without a struct.
        let is_of_rows = self.path.len() == 1 || file.file_format.eq_ignore_ascii_case("parquet");
        let count = |pairs: &Option<Vec<(i32, i64)>>| {
            pairs.iter().flatten().find(|(of, _)| *of == id && is_of_rows).map(|one| one.1)
        };
        if let (Some(nulls), Type::Primitive(_)) = (count(&file.null_value_counts), &self.field.ty) {
            at.same("rows-null-count", &shown(check, "null_value_counts", id), seen.nulls, nulls);
        }
        if let Some(nans) = count(&file.nan_value_counts) {
            at.same("rows-nan-count", &shown(check, "nan_value_counts", id), seen.nans, nans);
        }
        if seen.below > 0 {
            let found = format!("{:?}, and {} values below", self.lower, seen.below);
            at.error("rows-lower-bound", &shown(check, "lower_bounds", id), "a bound of all values", found);
        }
        if seen.above > 0 {
            let found = format!("{:?}, and {} values above", self.upper, seen.above);
            at.error("rows-upper-bound", &shown(check, "upper_bounds", id), "a bound of all values", found);
        }
    }
}

impl SeenValues {
    fn add(&mut self, column: &CheckedColumn<'_>, values: &ArrayRef) -> Result<()> {
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.nulls += count(values.logical_null_count());
        self.nans += count(nans(values));
        let below = |array: &ArrayRef, bound: &ArrayRef| lt(array, &Scalar::new(bound.clone()));
        let above = |array: &ArrayRef, bound: &ArrayRef| gt(array, &Scalar::new(bound.clone()));
        let failed = |error: arrow_schema::ArrowError| Error::Internal(format!("comparing with bounds: {error}"));
        if let Some(bound) = &column.lower {
            let bound = constant::array(&[Some(bound)], &column.field.ty, values.data_type())?;
            self.below += count(below(values, &bound).map_err(failed)?.true_count());
        }
        if let Some(bound) = &column.upper {
            let bound = constant::array(&[Some(bound)], &column.field.ty, values.data_type())?;
            // Arrow orders NaN after all numbers; bounds are of numbers.
            self.above += count(above(values, &bound).map_err(failed)?.true_count().saturating_sub(nans(values)));
        }
        Ok(())
    }
}

fn nans(values: &ArrayRef) -> usize {
    match values.data_type() {
        DataType::Float32 => {
            values.as_primitive::<Float32Type>().iter().flatten().filter(|value| value.is_nan()).count()
        }
        DataType::Float64 => {
            values.as_primitive::<Float64Type>().iter().flatten().filter(|value| value.is_nan()).count()
        }
        _ => 0,
    }
}

/// The current columns, without those that files may have with another type, because the table was replaced.
fn readable(check: &Check<'_>) -> Result<Arc<Schema>> {
    let current = check.metadata.current_schema();
    let changed = |field: &Field| {
        let schema = Schema::new(0, vec![field.clone()]);
        schema.is_ok_and(|schema| {
            schema.ids().iter().any(|id| schema.find_type(*id).is_some_and(|ty| has_other_types(check, *id, ty)))
        })
    };
    if !current.fields().iter().any(changed) {
        return Ok(current.clone());
    }
    let fields = current.fields().iter().filter(|field| !changed(field)).cloned().collect();
    Ok(Arc::new(Schema::new(current.schema_id(), fields)?))
}

/// The columns of position delete files.
fn position_deletes() -> Result<Arc<Schema>> {
    let path = DELETE_FILE_PATH.to_field();
    let position = DELETE_FILE_POS.to_field();
    Ok(Arc::new(Schema::new(0, vec![path, position])?))
}

/// The columns that an equality delete file compares; `None` if they are within structs, or have had other types.
fn equality_columns(check: &Check<'_>, file: &DataFile) -> Result<Option<Arc<Schema>>> {
    let mut fields = Vec::new();
    for id in file.equality_ids.iter().flatten() {
        let mut schemas = std::iter::once(check.metadata.current_schema()).chain(check.metadata.schemas().iter().rev());
        let found = schemas.find_map(|schema| schema.fields().iter().find(|field| field.id == *id));
        match found.filter(|field| !has_other_types(check, *id, &field.ty)) {
            Some(field) => fields.push(field.clone()),
            None => return Ok(None),
        }
    }
    Ok(Some(Arc::new(Schema::new(0, fields)?)))
}

/// All rows must belong to the partition of their file.
fn check_partition(check: &Check<'_>, at: At<'_>, file: &DataFile, schema: &Schema, batch: &RecordBatch) -> Result<()> {
    let Some(spec) = check.metadata.partition_spec(file.partition_spec_id) else { return Ok(()) };
    // Values of unknown transforms cannot be computed.
    for (field, value) in spec.fields.iter().zip(&file.partition).filter(|(field, _)| !field.has_unknown_values()) {
        let Some((values, ty)) = results(field, schema, batch)? else { continue };
        for row in 0..values.len() {
            let found = value_at(&values, &ty, row)?;
            let is_same = match (&found, value) {
                (Some(found), Some(value)) => same(found, value),
                (found, value) => found == value,
            };
            let is_cut = is_truncated(&ty) && value.is_none();
            if !is_same && !is_cut {
                let name = format!("partition.{}", field.name);
                at.error("rows-partition", &name, format!("{found:?}, as of a row"), format!("{value:?}"));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The results of a transform for each row, unless its source is an identity that the reader takes from the manifest.
fn results(field: &PartitionField, schema: &Schema, batch: &RecordBatch) -> Result<Option<(ArrayRef, PrimitiveType)>> {
    let Some(id) = field.source_id().filter(|_| !field.transform.is_void()) else { return Ok(None) };
    if matches!(field.transform, icefield_format::transform::Transform::Identity) {
        return Ok(None);
    }
    let Some(at) = schema.fields().iter().position(|column| column.id == id) else { return Ok(None) };
    let (Some(values), Some(source)) = (batch.columns().get(at), schema.find_type(id)) else { return Ok(None) };
    let Some(Type::Primitive(result)) = field.transform.result_type(source) else { return Ok(None) };
    Ok(Some((field.transform.kernel(values)?, result)))
}
