//! Extracts one value of each variant in a file, reading only the columns that may hold it.
//!
//! If the path is shredded, a row's value is in its own column, in the `value` of one of the enclosing objects, or
//! missing. A [`ValueLayout`] is planned once per file: it leaves out each `value` that the statistics show to be all
//! null, and all of them if the path's column has a value in every row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, FieldRef, Fields};
use icefield_format::expr::{Extract, cast};
use icefield_format::types::{PrimitiveType, Type};
use icefield_format::value::Value;
use icefield_format::value::variant::path::Step;
use icefield_format::value::variant::{Metadata, Path, Variant};

use parquet::file::metadata::ParquetMetaData;

use super::{Fault, Misfit, Typed, node};
use crate::arrow::constant;
use crate::file::Nulls;
use crate::file::leaves::skip;

/// Metadata key of a field: what the file's statistics say about its nulls.
const NULLS: &str = "icefield.nulls";

/// What a footer says about the nulls of each leaf.
pub(in crate::file::parquet) fn nulls(metadata: &ParquetMetaData) -> Vec<Option<Nulls>> {
    let of_leaf = |leaf: usize| {
        let (mut none, mut all) = (true, true);
        for group in metadata.row_groups() {
            let column = group.columns().get(leaf)?;
            let nulls = i64::try_from(column.statistics()?.null_count_opt()?).ok()?;
            none &= nulls == 0;
            all &= nulls == column.num_values();
        }
        if all { Some(Nulls::All) } else { none.then_some(Nulls::None) }
    };
    (0..metadata.file_metadata().schema_descr().num_columns()).map(of_leaf).collect()
}

/// The columns of a file, with the known nulls of each leaf outside lists and maps.
pub fn with_nulls(fields: &Fields, known: &[Option<Nulls>]) -> Fields {
    let mut next = 0;
    marked(fields, known, &mut next)
}

fn marked(fields: &Fields, known: &[Option<Nulls>], next: &mut usize) -> Fields {
    let mark = |field: &FieldRef| {
        let mut field = field.as_ref().clone();
        match field.data_type().clone() {
            DataType::Struct(children) => {
                field = field.with_data_type(DataType::Struct(marked(&children, known, next)))
            }
            other => {
                if let (false, Some(nulls)) = (other.is_nested(), known.get(*next).copied().flatten()) {
                    let text = if nulls == Nulls::None { "none" } else { "all" };
                    field.metadata_mut().insert(NULLS, text.to_owned());
                }
                skip(&other, next);
            }
        }
        Arc::new(field)
    };
    fields.iter().map(mark).collect()
}

fn nulls_of(field: &FieldRef) -> Option<Nulls> {
    match field.metadata().get(NULLS).map(String::as_str) {
        Some("none") => Some(Nulls::None),
        Some("all") => Some(Nulls::All),
        _ => None,
    }
}

/// Which parts of a column to read.
#[derive(Debug, Clone)]
pub enum Parts {
    /// The whole column.
    Whole,
    /// Children of a struct, or the element of a list, by index.
    Some(Vec<(usize, Self)>),
}

/// Where the value at a path is in a struct of `metadata`, `value` and `typed_value`.
#[derive(Debug, Clone)]
pub struct ValueLayout {
    extract: Extract,
    metadata: Option<usize>,
    /// From the variant itself to the value.
    levels: Vec<Level>,
    parts: Parts,
}

/// The columns of one step of the path.
#[derive(Debug, Clone)]
struct Level {
    value: Option<usize>,
    typed: Option<(usize, Next)>,
    /// The rest of the path from here.
    rest: Extract,
}

/// The content of `typed_value`.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// The value.
    Primitive,
    /// An object; the next level is one of its fields.
    Field(usize),
    /// An array; the next level is one of its elements.
    Element(usize),
}

impl ValueLayout {
    /// Finds the columns by name.
    pub fn plan(parts: &Fields, extract: &Extract) -> Result<Self, Misfit> {
        let mut levels = Vec::new();
        let mut read = level(parts, extract, extract.path().steps(), &mut levels)?;
        let metadata = levels.iter().any(|level| level.value.is_some()).then(|| parts.find("metadata"));
        let metadata = match metadata {
            Some(Some((place, field))) if *field.data_type() == DataType::Binary => Some(place),
            Some(_) => return Err(Misfit::Missing),
            None => None,
        };
        if let Parts::Some(read) = &mut read {
            read.extend(metadata.map(|place| (place, Parts::Whole)));
            // Even an all-null column shows which variants are null.
            let any = parts.find("typed_value").or_else(|| parts.find("value")).filter(|_| read.is_empty());
            read.extend(any.map(|(place, _)| (place, Parts::Some(Vec::new()))));
        }
        Ok(Self { extract: extract.clone(), metadata, levels, parts: read })
    }

    /// The parts of the column to read.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The value of each row in the wanted type; null if it is missing or cannot be read as this type.
    pub fn values(&self, array: &StructArray, wanted: &DataType) -> Result<ArrayRef, Fault> {
        let fault = |row: usize| move |message: String| Fault { row, message };
        let lost = || fault(0)("its columns are not those of its schema".to_owned());
        let columns = self.columns(array).ok_or_else(lost)?;
        if let Some(whole) = whole_column(&columns, array, wanted) {
            return Ok(whole);
        }
        let names = match self.metadata {
            Some(place) => {
                Some(array.columns().get(place).and_then(|names| names.as_binary_opt::<i32>()).ok_or_else(lost)?)
            }
            None => None,
        };
        let mut values = Vec::with_capacity(array.len());
        let mut names = Names { names, last: None };
        for row in 0..array.len() {
            values.push(match array.is_null(row) {
                true => None,
                false => value_at(&columns, row, &mut names.of(row), self.extract.ty()).map_err(fault(row))?,
            });
        }
        let values: Vec<Option<&Value>> = values.iter().map(Option::as_ref).collect();
        let ty = Type::Primitive(self.extract.ty().clone());
        constant::array(&values, &ty, wanted).map_err(|error| fault(0)(error.to_string()))
    }

    /// The columns of an array.
    fn columns<'a>(&'a self, array: &'a StructArray) -> Option<Vec<Columns<'a>>> {
        let mut found = Vec::with_capacity(self.levels.len());
        let mut group = array;
        for level in &self.levels {
            let value = match level.value {
                Some(place) => Some(group.columns().get(place)?.as_binary_opt::<i32>()?),
                None => None,
            };
            let typed = match level.typed {
                None => None,
                Some((place, next)) => {
                    let array = group.columns().get(place)?;
                    Some(match next {
                        Next::Primitive => TypedColumn::Primitive(array),
                        Next::Field(field) => {
                            let object = array.as_struct_opt()?;
                            group = object.columns().get(field)?.as_struct_opt()?;
                            TypedColumn::Field(object, group)
                        }
                        Next::Element(at) => {
                            let list = array.as_list_opt::<i32>()?;
                            group = list.values().as_struct_opt()?;
                            TypedColumn::Element(list, group, at)
                        }
                    })
                }
            };
            found.push(Columns { value, typed, rest: &level.rest });
        }
        Some(found)
    }
}

/// Plans the columns of a `value` and a `typed_value`, and which parts to read.
fn level(parts: &Fields, extract: &Extract, steps: &[Step], levels: &mut Vec<Level>) -> Result<Parts, Misfit> {
    let value = parts.find("value");
    if value.is_some_and(|(_, field)| *field.data_type() != DataType::Binary) {
        return Err(Misfit::Missing);
    }
    let typed = parts.find("typed_value");
    if value.is_none() && typed.is_none() {
        return Err(Misfit::Missing);
    }
    let rest = Extract::new(Path::new(steps.to_vec()), extract.ty().clone());
    let rest = rest.map_err(|error| Misfit::Unsupported(error.to_string()))?;
    let value = value.filter(|(_, field)| nulls_of(field) != Some(Nulls::All)).map(|(place, _)| place);
    let at = levels.len();
    levels.push(Level { value, typed: None, rest });
    let group = |field: &FieldRef, steps: &[Step], levels: &mut Vec<Level>| match field.data_type() {
        DataType::Struct(parts) => level(parts, extract, steps, levels),
        _ => Err(Misfit::Missing),
    };
    let mut read = Vec::new();
    let found = match (typed.map(|(place, field)| (place, field, field.data_type())), steps.split_first()) {
        (Some((place, _, DataType::Struct(fields))), Some((Step::Field(name), steps))) => match fields.find(name) {
            Some((inner, field)) => {
                let inside = group(field, steps, levels)?;
                read.push((place, Parts::Some(vec![(inner, inside)])));
                Some((place, Next::Field(inner)))
            }
            None => None,
        },
        (Some((place, _, DataType::List(element))), Some((Step::Element(at), steps))) => {
            let inside = group(element, steps, levels)?;
            read.push((place, Parts::Some(vec![(0, inside)])));
            Some((place, Next::Element(*at)))
        }
        (Some((place, field, ty)), None) if !ty.is_nested() => {
            Typed::plan(ty, 0)?;
            read.push((place, Parts::Whole));
            if nulls_of(field) == Some(Nulls::None) {
                levels.iter_mut().for_each(|level| level.value = None);
            }
            Some((place, Next::Primitive))
        }
        _ => None,
    };
    if let Some(level) = levels.get_mut(at) {
        level.typed = found;
        read.extend(level.value.map(|place| (place, Parts::Whole)));
    }
    Ok(Parts::Some(read))
}

/// A [`Level`] of a batch.
struct Columns<'a> {
    value: Option<&'a BinaryArray>,
    typed: Option<TypedColumn<'a>>,
    rest: &'a Extract,
}

enum TypedColumn<'a> {
    Primitive(&'a ArrayRef),
    Field(&'a StructArray, &'a StructArray),
    Element(&'a ListArray, &'a StructArray, usize),
}

/// Dictionaries; each is parsed once while consecutive rows repeat it.
struct Names<'a> {
    names: Option<&'a BinaryArray>,
    last: Option<Metadata<'a>>,
}

impl<'a> Names<'a> {
    /// The dictionary of a row, parsed on demand.
    fn of(&mut self, row: usize) -> impl FnMut() -> Result<Metadata<'a>, String> + use<'_, 'a> {
        move || {
            let names = self.names.filter(|names| names.is_valid(row)).ok_or("its metadata are null")?;
            let bytes = names.value(row);
            match self.last.filter(|last| last.bytes() == bytes) {
                Some(last) => Ok(last),
                None => {
                    let read = Metadata::read(bytes).and_then(|metadata| metadata.check().map(|()| metadata));
                    let read = read.map_err(|error| error.to_string())?;
                    self.last = Some(read);
                    Ok(read)
                }
            }
        }
    }
}

/// The value of a row in the columns of a level and the levels below.
fn value_at<'a>(
    columns: &[Columns<'_>],
    row: usize,
    names: &mut impl FnMut() -> Result<Metadata<'a>, String>,
    ty: &PrimitiveType,
) -> Result<Option<Value>, String> {
    let Some((level, inner)) = columns.split_first() else { return Ok(None) };
    let value = level.value.filter(|value| value.is_valid(row)).map(|value| value.value(row));
    let conflict = || "both value and typed_value are stored, which only objects may have".to_owned();
    match &level.typed {
        Some(TypedColumn::Primitive(array)) if array.is_valid(row) => match value {
            Some(_) => Err(conflict()),
            None => Ok(cast(&node(array, row).ok_or("its columns are not those of its schema")?, ty)),
        },
        Some(TypedColumn::Field(object, group)) if object.is_valid(row) => match group.is_null(row) {
            true => Ok(None),
            false => value_at(inner, row, names, ty),
        },
        Some(TypedColumn::Element(list, elements, at)) if list.is_valid(row) => {
            if value.is_some() {
                return Err(conflict());
            }
            let range = list.value_offsets().get(row..row + 2).and_then(|ends| match ends {
                [start, end] => Some(usize::try_from(*start).ok()?..usize::try_from(*end).ok()?),
                _ => None,
            });
            match range.and_then(|mut range| range.nth(*at)) {
                Some(place) if elements.is_valid(place) => value_at(inner, place, names, ty),
                _ => Ok(None),
            }
        }
        _ => match value {
            Some(value) => level.rest.of(Variant::of(names()?, value)).map_err(|error| error.to_string()),
            None => Ok(None),
        },
    }
}

/// The path's column without a copy, if it has the wanted type and no other column holds a value.
fn whole_column(columns: &[Columns<'_>], array: &StructArray, wanted: &DataType) -> Option<ArrayRef> {
    let mut nulls: Option<NullBuffer> = array.nulls().cloned();
    let mut found = None;
    for level in columns {
        if level.value.is_some_and(|value| value.null_count() < value.len()) {
            return None;
        }
        match &level.typed {
            Some(TypedColumn::Field(object, group)) => {
                nulls = NullBuffer::union(NullBuffer::union(nulls.as_ref(), object.nulls()).as_ref(), group.nulls());
            }
            Some(TypedColumn::Primitive(array)) => found = Some(*array),
            _ => return None,
        }
    }
    let found = found.filter(|found| found.data_type() == wanted && !matches!(wanted, DataType::Decimal128(..)))?;
    let nulls = NullBuffer::union(nulls.as_ref(), found.nulls());
    Some(arrow_array::make_array(found.to_data().into_builder().nulls(nulls).build().ok()?))
}
