//! Reassembles shredded variants of Parquet files (`VariantShredding.md`): values stored in typed columns become one
//! binary value again. [`shred`] is the other direction.
//!
//! A [`Layout`] is planned once per file from the columns of the variant; [`Layout::assemble`] then computes
//! `metadata` and `value` for each batch. Invalid data is resolved as in the Java library: the column of a field
//! takes precedence over the same field in `value`, and if nothing is stored at the top level or in an array element,
//! the value is a variant null.

pub mod shred;
pub mod value;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, BinaryArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Fields, TimeUnit};
use icefield_format::types::arrow::named;
use icefield_format::value::variant::encode::{finish_array, finish_object, primitive};
use icefield_format::value::variant::{DEPTH, Metadata, Node, Variant};

/// Where the parts of a variant are in its struct.
#[derive(Debug, Clone)]
pub struct Layout {
    metadata: Option<usize>,
    group: Group,
    parts: Fields,
}

/// A `value` and a `typed_value`; one of them may be absent.
#[derive(Debug, Clone)]
pub(super) struct Group {
    value: Option<usize>,
    typed: Option<(usize, Typed)>,
}

/// The content of `typed_value`.
#[derive(Debug, Clone)]
pub(super) enum Typed {
    Primitive,
    /// Fields ordered by name: index, name, columns.
    Object(Vec<(usize, Arc<str>, Group)>),
    Array(Box<Group>),
}

/// A value that cannot be assembled.
#[derive(Debug)]
pub struct Fault {
    /// Its index in the array.
    pub row: usize,
    /// What is wrong.
    pub message: String,
}

/// Why columns do not form a variant.
#[derive(Debug)]
pub enum Misfit {
    /// A required part is missing.
    Missing,
    /// A type that shredding does not allow.
    Unsupported(String),
}

impl Layout {
    /// Finds the parts by name.
    pub fn plan(parts: &Fields) -> Result<Self, Misfit> {
        let metadata = parts.find("metadata");
        if metadata.is_some_and(|(_, field)| *field.data_type() != DataType::Binary) {
            return Err(Misfit::Missing);
        }
        let metadata = metadata.map(|(place, _)| place);
        Ok(Self { metadata, group: Group::plan(parts, 0)?, parts: parts.clone() })
    }

    /// Whether whole variants can be assembled; false if only parts of them are read.
    pub fn is_whole(&self) -> bool {
        self.metadata.is_some()
    }

    /// The columns that the layout was planned from.
    pub fn parts(&self) -> &Fields {
        &self.parts
    }

    /// Metadata and value of each row; checks every variant.
    pub fn assemble(&self, array: &StructArray) -> Result<(ArrayRef, ArrayRef), Fault> {
        let inconsistent = || Fault { row: 0, message: "its columns are not those of its schema".to_owned() };
        let stored = self.metadata.and_then(|place| array.columns().get(place)).ok_or_else(inconsistent)?;
        let names = stored.as_binary_opt::<i32>().ok_or_else(inconsistent)?;
        let mut columns = self.group.columns(array).ok_or_else(inconsistent)?;
        let plain = columns.typed.is_none().then_some(columns.value).flatten();
        // Values that are not shredded need no assembly.
        let plain = plain.filter(|value| (0..array.len()).all(|row| array.is_null(row) || value.is_valid(row)));
        let mut out = Output::new(array.len());
        // Neighbouring rows often have one dictionary. It is checked once, and the ids of fields in it are kept.
        let mut last: Option<Metadata<'_>> = None;
        for row in 0..array.len() {
            let fault = |message: String| Fault { row, message };
            if array.is_null(row) {
                out.end().map_err(fault)?;
                continue;
            }
            if names.is_null(row) {
                return Err(fault("its metadata are null".to_owned()));
            }
            let bytes = names.value(row);
            let metadata = match last.filter(|last| last.bytes() == bytes) {
                Some(last) => last,
                None => {
                    let read = Metadata::read(bytes).and_then(|metadata| metadata.check().map(|()| metadata));
                    let read = read.map_err(|error| fault(error.to_string()))?;
                    columns.forget_ids();
                    last = Some(read);
                    read
                }
            };
            let check = |value| Variant::of(metadata, value).check_value().map_err(|error| fault(error.to_string()));
            if let Some(value) = plain {
                check(value.value(row))?;
                continue;
            }
            let start = out.bytes.len();
            if !columns.write(row, metadata, &mut out.bytes).map_err(fault)? {
                primitive(&mut out.bytes, &Node::Null).map_err(|error| fault(error.to_string()))?;
            }
            check(out.bytes.get(start..).ok_or_else(|| fault("a value that became shorter".to_owned()))?)?;
            out.end().map_err(fault)?;
        }
        let values: ArrayRef = match plain {
            Some(value) => Arc::new(value.clone()),
            None => out.finish(array.nulls().cloned()).ok_or_else(inconsistent)?,
        };
        Ok((Arc::clone(stored), values))
    }
}

impl Group {
    fn plan(parts: &Fields, depth: usize) -> Result<Self, Misfit> {
        // Plans and assembly recurse, and the file decides how deep.
        if depth > DEPTH {
            return Err(Misfit::Unsupported(format!("values shredded deeper than {DEPTH} levels")));
        }
        let value = parts.find("value");
        if value.is_some_and(|(_, field)| *field.data_type() != DataType::Binary) {
            return Err(Misfit::Missing);
        }
        let typed = match parts.find("typed_value") {
            Some((place, field)) => Some((place, Typed::plan(field.data_type(), depth)?)),
            None if value.is_none() => return Err(Misfit::Missing),
            None => None,
        };
        Ok(Self { value: value.map(|(place, _)| place), typed })
    }

    fn of(ty: &DataType, depth: usize) -> Result<Self, Misfit> {
        match ty {
            DataType::Struct(parts) => Self::plan(parts, depth + 1),
            _ => Err(Misfit::Missing),
        }
    }

    /// The columns of an array for this group.
    fn columns<'a>(&'a self, array: &'a StructArray) -> Option<Columns<'a>> {
        let value = match self.value {
            Some(place) => Some(array.columns().get(place)?.as_binary_opt::<i32>()?),
            None => None,
        };
        let typed = match &self.typed {
            Some((place, typed)) => Some(typed.columns(array.columns().get(*place)?)?),
            None => None,
        };
        Some(Columns { value, typed })
    }
}

impl Typed {
    pub(super) fn plan(ty: &DataType, depth: usize) -> Result<Self, Misfit> {
        use DataType::{
            Binary, Boolean, Date32, Decimal128, FixedSizeBinary, Float32, Float64, Int8, Int16, Int32, Int64, List,
            Struct, Time64, Timestamp, Utf8,
        };
        match ty {
            Boolean | Int8 | Int16 | Int32 | Int64 | Float32 | Float64 | Date32 | Binary | Utf8
            | FixedSizeBinary(16) => Ok(Self::Primitive),
            Time64(TimeUnit::Microsecond) | Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) => {
                Ok(Self::Primitive)
            }
            Decimal128(_, 0..=38) => Ok(Self::Primitive),
            List(element) => Ok(Self::Array(Box::new(Group::of(element.data_type(), depth)?))),
            Struct(children) => {
                let plan = |(place, child): (usize, &arrow_schema::FieldRef)| {
                    let name: Arc<str> = child.name().as_str().into();
                    Ok((place, name, Group::of(child.data_type(), depth)?))
                };
                let mut fields = children.iter().enumerate().map(plan).collect::<Result<Vec<_>, _>>()?;
                fields.sort_by(|(_, a, _), (_, b, _)| a.cmp(b));
                Ok(Self::Object(fields))
            }
            other => Err(Misfit::Unsupported(format!("values shredded as {}", named(other)))),
        }
    }

    fn columns<'a>(&'a self, array: &'a ArrayRef) -> Option<TypedColumns<'a>> {
        Some(match self {
            Self::Primitive => TypedColumns::Primitive(array),
            Self::Object(fields) => {
                let parent = array.as_struct_opt()?;
                let field = |(place, name, group): &'a (usize, Arc<str>, Group)| {
                    let child = parent.columns().get(*place)?.as_struct_opt()?;
                    Some(FieldColumns { name, group: child, columns: group.columns(child)?, id: None })
                };
                TypedColumns::Object(parent, fields.iter().map(field).collect::<Option<_>>()?)
            }
            Self::Array(group) => {
                let list = array.as_list_opt::<i32>()?;
                let elements = list.values().as_struct_opt()?;
                TypedColumns::Array { list, elements, columns: Box::new(group.columns(elements)?) }
            }
        })
    }
}

/// A [`Group`] of a batch.
struct Columns<'a> {
    value: Option<&'a BinaryArray>,
    typed: Option<TypedColumns<'a>>,
}

enum TypedColumns<'a> {
    Primitive(&'a ArrayRef),
    Object(&'a StructArray, Vec<FieldColumns<'a>>),
    Array { list: &'a arrow_array::ListArray, elements: &'a StructArray, columns: Box<Columns<'a>> },
}

struct FieldColumns<'a> {
    name: &'a str,
    group: &'a StructArray,
    columns: Columns<'a>,
    /// The field's id in the row's dictionary, if it was looked up.
    id: Option<usize>,
}

impl Columns<'_> {
    /// Clears field ids before another dictionary.
    fn forget_ids(&mut self) {
        match &mut self.typed {
            Some(TypedColumns::Object(_, fields)) => {
                for field in fields {
                    field.id = None;
                    field.columns.forget_ids();
                }
            }
            Some(TypedColumns::Array { columns, .. }) => columns.forget_ids(),
            Some(TypedColumns::Primitive(_)) | None => {}
        }
    }

    /// Appends the value of a row; false if it has none.
    fn write(&mut self, row: usize, metadata: Metadata<'_>, out: &mut Vec<u8>) -> Result<bool, String> {
        let value = self.value.filter(|value| value.is_valid(row)).map(|value| value.value(row));
        let conflict = || "both value and typed_value are stored, which only objects may have".to_owned();
        match &mut self.typed {
            Some(TypedColumns::Primitive(array)) if array.is_valid(row) => {
                if value.is_some() {
                    return Err(conflict());
                }
                let node = node(array, row).ok_or("its columns are not those of its schema")?;
                primitive(out, &node).map_err(|error| error.to_string())?;
            }
            Some(TypedColumns::Array { list, elements, columns }) if list.is_valid(row) => {
                if value.is_some() {
                    return Err(conflict());
                }
                let range = list.value_offsets().get(row..row + 2).and_then(|ends| match ends {
                    [start, end] => Some(usize::try_from(*start).ok()?..usize::try_from(*end).ok()?),
                    _ => None,
                });
                let start = out.len();
                let mut places = Vec::new();
                for at in range.unwrap_or_default() {
                    places.push(out.len());
                    if elements.is_null(at) || !columns.write(at, metadata, out)? {
                        primitive(out, &Node::Null).map_err(|error| error.to_string())?;
                    }
                }
                finish_array(out, start, &places).map_err(|error| error.to_string())?;
            }
            Some(TypedColumns::Object(object, fields)) if object.is_valid(row) => {
                write_object(row, value, fields, metadata, out)?;
            }
            _ => match value {
                Some(value) => out.extend(Variant::of(metadata, value).exact().unwrap_or(value)),
                None => return Ok(false),
            },
        }
        Ok(true)
    }
}

/// Appends an object from the fields with columns, and from fields that are only in `value`.
fn write_object(
    row: usize,
    value: Option<&[u8]>,
    fields: &mut [FieldColumns<'_>],
    metadata: Metadata<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let mut others = Vec::new();
    if let Some(value) = value {
        let Node::Object(object) = Variant::of(metadata, value).node().map_err(|error| error.to_string())? else {
            return Err("typed_value holds fields of an object, but value is not an object".to_owned());
        };
        for field in object.entries() {
            others.push(field.map_err(|error| error.to_string())?);
        }
        // An object lists its fields by name, so both sources are merged in this order.
        others.sort_by_key(|(_, name, _)| *name);
    }
    let start = out.len();
    let mut places: Vec<(usize, usize)> = Vec::with_capacity(fields.len() + others.len());
    let mut others = others.into_iter().peekable();
    let append = |(id, _, value): (usize, &str, Variant<'_>), out: &mut Vec<u8>, places: &mut Vec<(usize, usize)>| {
        places.push((id, out.len()));
        out.extend(value.exact().unwrap_or(value.value()));
    };
    for field in fields {
        while let Some(other) = others.next_if(|(_, name, _)| *name < field.name) {
            append(other, out, &mut places);
        }
        // The column of a field takes precedence over the same field in `value`.
        while others.next_if(|(_, name, _)| *name == field.name).is_some() {}
        let place = out.len();
        if field.group.is_null(row) || !field.columns.write(row, metadata, out)? {
            continue;
        }
        let id = match field.id {
            Some(id) => id,
            None => {
                let id = metadata.id(field.name).map_err(|error| error.to_string())?;
                id.ok_or_else(|| format!("its dictionary lacks the name of the shredded field {:?}", field.name))?
            }
        };
        field.id = Some(id);
        places.push((id, place));
    }
    for other in others {
        append(other, out, &mut places);
    }
    finish_object(out, start, &places, metadata.len()).map_err(|error| error.to_string())
}

/// The value of a non-null row.
pub(super) fn node(array: &ArrayRef, row: usize) -> Option<Node<'_>> {
    Some(match array.data_type() {
        DataType::Boolean => Node::Boolean(array.as_boolean_opt()?.value(row)),
        DataType::Int8 => Node::Int8(array.as_primitive_opt::<Int8Type>()?.value(row)),
        DataType::Int16 => Node::Int16(array.as_primitive_opt::<Int16Type>()?.value(row)),
        DataType::Int32 => Node::Int32(array.as_primitive_opt::<Int32Type>()?.value(row)),
        DataType::Int64 => Node::Int64(array.as_primitive_opt::<Int64Type>()?.value(row)),
        DataType::Float32 => Node::Float(array.as_primitive_opt::<Float32Type>()?.value(row)),
        DataType::Float64 => Node::Double(array.as_primitive_opt::<Float64Type>()?.value(row)),
        DataType::Date32 => Node::Date(array.as_primitive_opt::<Date32Type>()?.value(row)),
        DataType::Time64(_) => Node::Time(array.as_primitive_opt::<Time64MicrosecondType>()?.value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => Node::Timestamp {
            micros: array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row),
            is_utc: zone.is_some(),
        },
        DataType::Timestamp(_, zone) => Node::TimestampNanos {
            nanos: array.as_primitive_opt::<TimestampNanosecondType>()?.value(row),
            is_utc: zone.is_some(),
        },
        DataType::Decimal128(precision, scale) => {
            let unscaled = array.as_primitive_opt::<Decimal128Type>()?.value(row);
            let bytes = match precision {
                0..=9 if i32::try_from(unscaled).is_ok() => 4,
                0..=18 if i64::try_from(unscaled).is_ok() => 8,
                _ => 16,
            };
            Node::Decimal { unscaled, scale: u8::try_from(*scale).ok()?, bytes }
        }
        DataType::Utf8 => Node::String(array.as_string_opt::<i32>()?.value(row)),
        DataType::Binary => Node::Binary(array.as_binary_opt::<i32>()?.value(row)),
        DataType::FixedSizeBinary(_) => Node::Uuid(array.as_fixed_size_binary_opt()?.value(row).try_into().ok()?),
        _ => return None,
    })
}

/// Binary values under construction.
struct Output {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
}

impl Output {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { bytes: Vec::new(), offsets }
    }

    /// Ends the value of a row.
    fn end(&mut self) -> Result<(), String> {
        let end = i32::try_from(self.bytes.len());
        self.offsets.push(end.map_err(|_| "the variants of a batch have 2 GiB and more: read smaller batches")?);
        Ok(())
    }

    fn finish(self, nulls: Option<NullBuffer>) -> Option<ArrayRef> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        Some(Arc::new(BinaryArray::try_new(offsets, Buffer::from_vec(self.bytes), nulls).ok()?))
    }
}
