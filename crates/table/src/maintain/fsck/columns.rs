//! Compares the values of columns with what a manifest says of them: counts and bounds, also within structs, lists and
//! maps.
//!
//! Java's writers give no bounds within lists and maps, others do, and readers may leave out files by them.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, Scalar, make_array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_ord::cmp::{gt, lt};
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat;
use icefield_format::manifest::DataFile;
use icefield_format::types::{Field, PrimitiveType, Type};
use icefield_format::value::{Value, binary};

use super::context::{At, Check};
use super::metrics::shown;
use crate::arrow::constant;
use crate::error::{Error, Result};

/// A column with what a manifest says of it.
pub(super) struct CheckedColumn<'a> {
    pub(super) field: &'a Field,
    /// The way from the columns of a batch to its values.
    path: Vec<Step>,
    lower: Option<Value>,
    upper: Option<Value>,
}

/// A step from values to those within them.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// The field of a struct at this place; the first step is a column of the batch.
    Field(usize),
    Elements,
    Keys,
    Values,
}

/// What the rows have.
#[derive(Default)]
pub(super) struct SeenValues {
    /// Values, including nulls.
    values: i64,
    nulls: i64,
    nans: i64,
    below: i64,
    above: i64,
    /// Lists and maps on the way that are null or empty: Parquet counts each as a null value of the column.
    without: i64,
}

impl<'a> CheckedColumn<'a> {
    /// The columns of a file, and those within them.
    pub(super) fn all(fields: &'a [Field], file: &DataFile) -> Vec<Self> {
        let mut columns = Vec::new();
        for (place, field) in fields.iter().enumerate() {
            Self::add(&mut columns, field, vec![Step::Field(place)], file);
        }
        columns
    }

    fn add(columns: &mut Vec<Self>, field: &'a Field, path: Vec<Step>, file: &DataFile) {
        let below = |step: Step| path.iter().copied().chain([step]).collect();
        match &field.ty {
            Type::Struct(within) => {
                for (place, field) in within.fields.iter().enumerate() {
                    Self::add(columns, field, below(Step::Field(place)), file);
                }
            }
            Type::List(list) => Self::add(columns, &list.element, below(Step::Elements), file),
            Type::Map(map) => {
                Self::add(columns, &map.key, below(Step::Keys), file);
                Self::add(columns, &map.value, below(Step::Values), file);
            }
            Type::Primitive(_) | Type::Variant => {}
        }
        let column = Self::of(field, path, file);
        if column.is_described(file) {
            columns.push(column);
        }
    }

    fn of(field: &'a Field, path: Vec<Step>, file: &DataFile) -> Self {
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

    /// Whether a manifest says anything of the values.
    fn is_described(&self, file: &DataFile) -> bool {
        let counts = [&file.value_counts, &file.null_value_counts, &file.nan_value_counts];
        self.lower.is_some()
            || self.upper.is_some()
            || counts.into_iter().any(|pairs| count_of(pairs, self.field.id).is_some())
    }

    fn is_repeated(&self) -> bool {
        self.path.iter().any(|step| !matches!(step, Step::Field(_)))
    }

    /// The values of a batch, null where a struct is that has them, and how many lists and maps have none.
    pub(super) fn values(&self, batch: &RecordBatch) -> Result<Option<(ArrayRef, usize)>> {
        let mut steps = self.path.iter();
        let Some(Step::Field(first)) = steps.next() else { return Ok(None) };
        let Some(mut values) = batch.columns().get(*first).cloned() else { return Ok(None) };
        let mut without = 0;
        for step in steps {
            let Some((within, none)) = step.within(&values).map_err(compared)? else { return Ok(None) };
            (values, without) = (within, without + none);
        }
        Ok(Some((values, without)))
    }

    pub(super) fn compare(&self, check: &Check<'_>, at: At<'_>, file: &DataFile, seen: &SeenValues) {
        let id = self.field.id;
        // Within others, only Parquet's counts are of all rows: ORC's leave out those without a struct or list.
        let is_of_rows = self.path.len() == 1 || file.file_format.eq_ignore_ascii_case("parquet");
        let count = |pairs| count_of(pairs, id).filter(|_| is_of_rows);
        let is_primitive = matches!(self.field.ty, Type::Primitive(_));
        // Some writers count values and nulls alone, and others do as Parquet does.
        let same = |name: &'static str, field: &str, own: i64, listed: i64| {
            if listed != own && (!self.is_repeated() || listed != own + seen.without) {
                let with = match seen.without {
                    0 => own.to_string(),
                    without => format!("{own}, or {} with null and empty lists", own + without),
                };
                at.error(name, &shown(check, field, id), with, listed);
            }
        };
        if let Some(values) = count(&file.value_counts).filter(|_| self.is_repeated() && is_primitive) {
            same("rows-value-count", "value_counts", seen.values, values);
        }
        if let Some(nulls) = count(&file.null_value_counts).filter(|_| is_primitive) {
            same("rows-null-count", "null_value_counts", seen.nulls, nulls);
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

fn count_of(pairs: &Option<Vec<(i32, i64)>>, id: i32) -> Option<i64> {
    pairs.iter().flatten().find(|(of, _)| *of == id).map(|one| one.1)
}

impl Step {
    /// The values within others, and how many of those have none; `None` if these are of another type.
    fn within(self, values: &ArrayRef) -> Result<Option<(ArrayRef, usize)>, ArrowError> {
        Ok(match (self, values.data_type()) {
            (Self::Field(place), DataType::Struct(_)) => {
                let parent = values.as_struct();
                let Some(child) = parent.columns().get(place) else { return Ok(None) };
                // Columns of the type unknown have nothing but nulls already.
                if child.data_type() == &DataType::Null {
                    return Ok(Some((child.clone(), 0)));
                }
                let nulls = NullBuffer::union(parent.nulls(), child.nulls());
                Some((make_array(child.to_data().into_builder().nulls(nulls).build()?), 0))
            }
            (Self::Elements, DataType::List(_)) => {
                let list = values.as_list::<i32>();
                Some(elements(list.offsets(), list.nulls(), list.values())?)
            }
            (Self::Elements, DataType::LargeList(_)) => {
                let list = values.as_list::<i64>();
                Some(elements(list.offsets(), list.nulls(), list.values())?)
            }
            (Self::Keys | Self::Values, DataType::Map(..)) => {
                let map = values.as_map();
                let within = if self == Self::Keys { map.keys() } else { map.values() };
                Some(elements(map.offsets(), map.nulls(), within)?)
            }
            _ => None,
        })
    }
}

/// The values of all lists that are not null, and how many lists have none.
fn elements<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    nulls: Option<&NullBuffer>,
    values: &ArrayRef,
) -> Result<(ArrayRef, usize), ArrowError> {
    let mut without = 0;
    // Null lists may have values, which are not read.
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for (row, pair) in offsets.windows(2).enumerate() {
        let &[start, end] = pair else { continue };
        let (start, end) = (start.as_usize(), end.as_usize());
        if start == end || nulls.is_some_and(|nulls| nulls.is_null(row)) {
            without += 1;
            continue;
        }
        match ranges.last_mut().filter(|range| range.1 == start) {
            Some(range) => range.1 = end,
            None => ranges.push((start, end)),
        }
    }
    let parts: Vec<ArrayRef> = ranges.iter().map(|(start, end)| values.slice(*start, end - start)).collect();
    let values = match parts.as_slice() {
        [] => values.slice(0, 0),
        [part] => part.clone(),
        parts => concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?,
    };
    Ok((values, without))
}

impl SeenValues {
    /// Adds the values of a batch, and how many lists and maps had none.
    pub(super) fn add(&mut self, column: &CheckedColumn<'_>, values: &ArrayRef, without: usize) -> Result<()> {
        self.without += count(without);
        self.values += count(values.len());
        self.nulls += count(values.logical_null_count());
        self.nans += count(nans(values));
        let below = |array: &ArrayRef, bound: &ArrayRef| lt(array, &Scalar::new(bound.clone()));
        let above = |array: &ArrayRef, bound: &ArrayRef| gt(array, &Scalar::new(bound.clone()));
        if let Some(bound) = &column.lower {
            let bound = constant::array(&[Some(bound)], &column.field.ty, values.data_type())?;
            self.below += count(below(values, &bound).map_err(compared)?.true_count());
        }
        if let Some(bound) = &column.upper {
            let bound = constant::array(&[Some(bound)], &column.field.ty, values.data_type())?;
            // Arrow orders NaN after all numbers; bounds are of numbers.
            self.above += count(above(values, &bound).map_err(compared)?.true_count().saturating_sub(nans(values)));
        }
        Ok(())
    }
}

fn compared(error: ArrowError) -> Error {
    Error::Internal(format!("comparing with what a manifest says: {error}"))
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
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
