//! Applies a plan of columns to the batches of a file.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray, make_array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::columns::{Inherited, Planned, Shape, Source};
use crate::arrow::constant::repeat;
use crate::error::{Error, Result};
use crate::file::parquet::variant::Fault;

/// A plan, bound to the schema of its batches.
#[derive(Debug, Clone)]
pub struct Reshape {
    path: Arc<str>,
    schema: SchemaRef,
    planned: Vec<Planned>,
}

impl Reshape {
    /// Binds a plan; `schema` has one field per planned column.
    pub fn new(path: &str, schema: SchemaRef, planned: Vec<Planned>) -> Self {
        Self { path: path.into(), schema, planned }
    }

    /// Converts a batch to the selected columns.
    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let column = |one: &Planned| {
            self.column(one, batch.columns(), rows, None).map_err(|error| in_column(error, one.target.name()))
        };
        let columns = self.planned.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
            .map_err(|error| Error::corrupt_file(&*self.path, error))
    }

    /// A column; `outer` has the nulls of the struct that it is in. A file has nulls for what is in such a struct, even
    /// where the field is required.
    fn column(
        &self,
        planned: &Planned,
        siblings: &[ArrayRef],
        rows: usize,
        outer: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        match &planned.source {
            Source::Constant(value) => repeat(value.as_ref(), &planned.ty, planned.target.data_type(), rows),
            Source::File { position, shape } => {
                self.reshape(shape, self.stored(*position, siblings)?, planned.target.data_type(), outer)
            }
            Source::Struct(children) => {
                let DataType::Struct(fields) = planned.target.data_type() else { return Err(self.inconsistent()) };
                let columns =
                    children.iter().map(|child| self.column(child, &[], rows, None)).collect::<Result<Vec<_>>>()?;
                let built = StructArray::try_new_with_length(fields.clone(), columns, None, rows);
                Ok(Arc::new(built.map_err(|error| Error::corrupt_file(&*self.path, error))?))
            }
            Source::Inside { column } => self.inside(column, siblings, rows),
            Source::Inherited { stored, number } => {
                let stored = match stored {
                    Some((position, shape)) => {
                        let array = self.stored(*position, siblings)?;
                        Some(self.reshape(shape, array, planned.target.data_type(), None)?)
                    }
                    None => None,
                };
                match stored {
                    Some(stored) if stored.null_count() == 0 => Ok(stored),
                    stored => self.inherited(stored.as_ref(), *number, siblings, rows),
                }
            }
        }
    }

    /// The single column inside nested structs.
    fn inside(&self, column: &Planned, siblings: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let mut array = self.column(column, siblings, rows, None)?;
        while let Some(parent) = array.as_struct_opt() {
            let child = parent.columns().first().ok_or_else(|| self.inconsistent())?;
            let nulls = NullBuffer::union(parent.nulls(), child.nulls());
            let child = child.to_data().into_builder().nulls(nulls).build();
            array = make_array(child.map_err(|error| Error::corrupt_file(&*self.path, error))?);
        }
        Ok(array)
    }

    fn stored<'a>(&self, position: usize, siblings: &'a [ArrayRef]) -> Result<&'a ArrayRef> {
        siblings.get(position).ok_or_else(|| self.inconsistent())
    }

    /// The stored numbers, with inherited ones where they are null.
    fn inherited(
        &self,
        stored: Option<&ArrayRef>,
        number: Inherited,
        siblings: &[ArrayRef],
        rows: usize,
    ) -> Result<ArrayRef> {
        let numbers = |array: &'_ ArrayRef| array.as_primitive_opt::<Int64Type>().cloned();
        let inherited = match number {
            Inherited::Same(number) => Int64Array::from_value(number, rows),
            Inherited::Counted { first, position } => {
                let positions = numbers(self.stored(position, siblings)?).ok_or_else(|| self.inconsistent())?;
                let beyond = || Error::corrupt_file(&*self.path, format!("row ids from {first} on are beyond 63 bits"));
                positions.try_unary(|position| first.checked_add(position).ok_or_else(beyond))?
            }
        };
        let Some(stored) = stored else { return Ok(Arc::new(inherited)) };
        let stored = numbers(stored).ok_or_else(|| self.inconsistent())?;
        let pairs = stored.iter().zip(inherited.values());
        Ok(Arc::new(pairs.map(|(stored, inherited)| stored.unwrap_or(*inherited)).collect::<Int64Array>()))
    }

    fn reshape(
        &self,
        shape: &Shape,
        array: &ArrayRef,
        wanted: &DataType,
        outer: Option<&NullBuffer>,
    ) -> Result<ArrayRef> {
        let corrupt = |error| Error::corrupt_file(&*self.path, error);
        match (shape, wanted) {
            (Shape::Keep, DataType::Decimal128(precision, _)) => {
                self.check_digits(array, *precision)?;
                Ok(array.clone())
            }
            (Shape::Keep, _) => Ok(array.clone()),
            (Shape::Promote(promotion), wanted) => {
                let promoted = promotion.apply(array, &self.path)?;
                if let DataType::Decimal128(precision, _) = wanted {
                    self.check_digits(&promoted, *precision)?;
                }
                Ok(promoted)
            }
            (Shape::Struct(children), DataType::Struct(fields)) => {
                let parent = array.as_any().downcast_ref::<StructArray>().ok_or_else(|| self.inconsistent())?;
                let (rows, nulls) = (parent.len(), NullBuffer::union(outer, parent.nulls()));
                let columns = children.iter().map(|child| self.column(child, parent.columns(), rows, nulls.as_ref()));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                let built = StructArray::try_new_with_length(fields.clone(), columns, nulls, rows);
                Ok(Arc::new(built.map_err(corrupt)?))
            }
            (Shape::List(element), DataType::List(field)) => {
                let parent = array.as_any().downcast_ref::<ListArray>().ok_or_else(|| self.inconsistent())?;
                let values = self.column(element, &[parent.values().clone()], parent.values().len(), None)?;
                let built =
                    ListArray::try_new(field.clone(), parent.offsets().clone(), values, parent.nulls().cloned());
                Ok(Arc::new(built.map_err(corrupt)?))
            }
            (Shape::Map(key, value), DataType::Map(field, sorted)) => {
                let parent = array.as_any().downcast_ref::<MapArray>().ok_or_else(|| self.inconsistent())?;
                let DataType::Struct(pair) = field.data_type() else { return Err(self.inconsistent()) };
                let keys = self.column(key, &[parent.keys().clone()], parent.keys().len(), None)?;
                let values = self.column(value, &[parent.values().clone()], parent.values().len(), None)?;
                let entries = StructArray::try_new(pair.clone(), vec![keys, values], None).map_err(corrupt)?;
                let (offsets, nulls) = (parent.offsets().clone(), parent.nulls().cloned());
                Ok(Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted).map_err(corrupt)?))
            }
            (Shape::VariantValue(column, layout, _), _) => {
                let parent = array.as_any().downcast_ref::<StructArray>().ok_or_else(|| self.inconsistent())?;
                let parent = masked(parent, outer).map_err(corrupt)?;
                layout.values(&parent, wanted).map_err(|fault| self.damaged(column, fault))
            }
            (Shape::Variant(column, layout), DataType::Struct(fields)) => {
                let parent = array.as_any().downcast_ref::<StructArray>().ok_or_else(|| self.inconsistent())?;
                let parent = masked(parent, outer).map_err(corrupt)?;
                let (metadata, value) = layout.assemble(&parent).map_err(|fault| self.damaged(column, fault))?;
                let columns = vec![metadata, value];
                let built =
                    StructArray::try_new_with_length(fields.clone(), columns, parent.nulls().cloned(), parent.len());
                Ok(Arc::new(built.map_err(corrupt)?))
            }
            _ => Err(self.inconsistent()),
        }
    }

    /// Refuses decimals with more digits than their type: Parquet stores any number, whatever the type.
    fn check_digits(&self, array: &ArrayRef, precision: u8) -> Result<()> {
        let decimals = array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| self.inconsistent())?;
        let limit = 10_i128.saturating_pow(u32::from(precision));
        let beyond = |value: &i128| *value >= limit || *value <= -limit;
        let found = match decimals.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => decimals.values().iter().copied().find(beyond),
            Some(_) => decimals.iter().flatten().find(beyond),
        };
        match found {
            None => Ok(()),
            Some(value) => {
                let message = format!("the unscaled decimal {value} has more than the {precision} digits of its type");
                Err(Error::corrupt_file(&*self.path, message))
            }
        }
    }

    fn damaged(&self, column: &str, Fault { row, message }: Fault) -> Error {
        Error::corrupt_file(&*self.path, format!("column {column}, variant {row} of a batch: {message}"))
    }

    fn inconsistent(&self) -> Error {
        Error::Internal(format!("{}: the plan of its columns does not fit its batches", self.path))
    }
}

/// A struct that is null where the struct around it is.
fn masked(array: &StructArray, outer: Option<&NullBuffer>) -> Result<StructArray, ArrowError> {
    if outer.is_none() {
        return Ok(array.clone());
    }
    let rows = array.len();
    let (fields, columns, nulls) = array.clone().into_parts();
    StructArray::try_new_with_length(fields, columns, NullBuffer::union(outer, nulls.as_ref()), rows)
}

/// Adds the column's name to an error about its rows; Arrow names a nested field.
fn in_column(error: Error, name: &str) -> Error {
    match error {
        Error::CorruptFile { path, message } if !message.starts_with("column ") => {
            let message = message.strip_prefix("Invalid argument error: ").unwrap_or(&message);
            Error::corrupt_file(path, format!("column {name}: {message}"))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Decimal128Array;
    use arrow_schema::{Field as ArrowField, Schema as ArrowSchema};
    use icefield_format::types::{PrimitiveType, Type};

    use super::*;

    /// A batch with one decimal(4, 2) column, at the top level or in a struct, read unchanged.
    fn read(values: Vec<Option<i128>>, nested: bool) -> Result<RecordBatch> {
        let decimals = Decimal128Array::from(values).with_precision_and_scale(4, 2).unwrap();
        let field = Arc::new(ArrowField::new("x", DataType::Decimal128(4, 2), true));
        let ty = Type::from(PrimitiveType::Decimal { precision: 4, scale: 2 });
        let keep = Source::File { position: 0, shape: Shape::Keep };
        let leaf = Planned { target: field.clone(), ty: ty.clone(), source: keep };
        let (array, planned): (ArrayRef, _) = match nested {
            false => (Arc::new(decimals), leaf),
            true => {
                let parent = StructArray::new(vec![field].into(), vec![Arc::new(decimals)], None);
                let target = Arc::new(ArrowField::new("s", parent.data_type().clone(), true));
                let source = Source::File { position: 0, shape: Shape::Struct(vec![leaf]) };
                (Arc::new(parent), Planned { target, ty, source })
            }
        };
        let schema = Arc::new(ArrowSchema::new(vec![planned.target.clone()]));
        let batch = RecordBatch::try_new(schema.clone(), vec![array]).unwrap();
        Reshape::new("a.parquet", schema, vec![planned]).apply(&batch)
    }

    #[test]
    fn decimals_have_no_more_digits_than_their_type() {
        for nested in [false, true] {
            assert!(read(vec![Some(9999), None, Some(-9999)], nested).is_ok());
            for values in [vec![Some(1), Some(10_000)], vec![None, Some(-10_000)]] {
                let error = read(values, nested).unwrap_err().to_string();
                let column = if nested { "a.parquet: column s: " } else { "a.parquet: column x: " };
                assert!(error.starts_with(column) && error.contains("more than the 4 digits"), "{error}");
            }
            assert!(read(vec![None, None], nested).is_ok(), "what lies under a null is no value");
        }
    }
}
