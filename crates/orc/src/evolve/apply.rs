//! Converts arrays of the file into arrays of the schema that it is read with.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray, UnionArray, new_null_array};
use arrow_schema::{DataType, Field};

use super::convert;
use super::value::Rules;
use crate::error::{Error, Result};
use crate::types::Kind;

/// What becomes of one column.
#[derive(Debug)]
pub(super) enum Step {
    /// The values are right already.
    Keep,
    /// The file lacks the column.
    Missing,
    /// Another type without children.
    Leaf {
        from: Kind,
        to: Kind,
        column: String,
    },
    /// For each field, the position of the file's field and what becomes of it.
    Struct(Vec<Option<(usize, Step)>>),
    List(Box<Step>),
    /// Key and value, and the name of the map.
    Map(Box<[Step; 2]>, String),
    Union(Vec<Step>),
}

fn shape() -> Error {
    Error::invalid("a column was not read in the expected form")
}

impl Step {
    pub(super) fn apply(&self, array: &ArrayRef, to: &DataType, rules: &Rules) -> Result<ArrayRef> {
        match self {
            Self::Keep if array.data_type() == to => Ok(Arc::clone(array)),
            Self::Keep => Ok(arrow_array::make_array(
                array.to_data().into_builder().data_type(to.clone()).build().map_err(Error::from)?,
            )),
            Self::Missing => Ok(new_null_array(to, array.len())),
            Self::Leaf { from, to: kind, column } => convert::leaf(array, from, kind, to, column, rules),
            Self::Struct(fields) => structure(fields, array, to, rules),
            Self::List(element) => {
                let (Some(list), DataType::List(field)) = (array.as_list_opt::<i32>(), to) else { return Err(shape()) };
                let values = element.apply(list.values(), field.data_type(), rules)?;
                let made = ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, list.nulls().cloned());
                Ok(Arc::new(made?))
            }
            Self::Map(parts, column) => map(parts, column, array, to, rules),
            Self::Union(variants) => union(variants, array, to, rules),
        }
    }
}

fn structure(fields: &[Option<(usize, Step)>], array: &ArrayRef, to: &DataType, rules: &Rules) -> Result<ArrayRef> {
    let (Some(own), DataType::Struct(wanted)) = (array.as_struct_opt(), to) else { return Err(shape()) };
    let column = |(field, step): (&Arc<Field>, &Option<(usize, Step)>)| match step {
        None => Ok(new_null_array(field.data_type(), own.len())),
        Some((at, step)) => step.apply(own.columns().get(*at).ok_or_else(shape)?, field.data_type(), rules),
    };
    let columns = wanted.iter().zip(fields).map(column).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new_with_length(wanted.clone(), columns, own.nulls().cloned(), own.len())?))
}

fn map(parts: &[Step; 2], column: &str, array: &ArrayRef, to: &DataType, rules: &Rules) -> Result<ArrayRef> {
    let (Some(own), DataType::Map(field, sorted)) = (array.as_map_opt(), to) else { return Err(shape()) };
    let DataType::Struct(wanted) = field.data_type() else { return Err(shape()) };
    let [key, value] = parts;
    let (Some(key_field), Some(value_field)) = (wanted.first(), wanted.get(1)) else { return Err(shape()) };
    let keys = key.apply(own.keys(), key_field.data_type(), rules)?;
    if keys.null_count() > 0 {
        return Err(Error::value(format!(
            "column {column}: a key does not fit {}, and keys of maps cannot be null: read the keys as another type",
            key_field.data_type()
        )));
    }
    let values = value.apply(own.values(), value_field.data_type(), rules)?;
    let entries = StructArray::try_new_with_length(wanted.clone(), vec![keys, values], None, own.entries().len())?;
    let made = MapArray::try_new(Arc::clone(field), own.offsets().clone(), entries, own.nulls().cloned(), *sorted)?;
    Ok(Arc::new(made))
}

fn union(variants: &[Step], array: &ArrayRef, to: &DataType, rules: &Rules) -> Result<ArrayRef> {
    if let (Some(own), DataType::Struct(wanted)) = (array.as_struct_opt(), to) {
        // Unions with more variants than Arrow has: a tag, and all variants.
        let pairs = wanted.iter().zip(own.columns()).enumerate();
        let columns =
            pairs.map(|(index, (field, column))| match index.checked_sub(1).and_then(|at| variants.get(at)) {
                None => Ok(Arc::clone(column)),
                Some(step) => step.apply(column, field.data_type(), rules),
            });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        return Ok(Arc::new(StructArray::try_new_with_length(
            wanted.clone(),
            columns,
            own.nulls().cloned(),
            own.len(),
        )?));
    }
    let (Some(own), DataType::Union(fields, _)) = (array.as_union_opt(), to) else { return Err(shape()) };
    let children = fields.iter().map(|(id, field)| {
        let child = own.child(id);
        match usize::try_from(id).ok().and_then(|at| variants.get(at)) {
            None => Ok(Arc::clone(child)),
            Some(step) => step.apply(child, field.data_type(), rules),
        }
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    let made = UnionArray::try_new(fields.clone(), own.type_ids().clone(), own.offsets().cloned(), children)?;
    Ok(Arc::new(made))
}
