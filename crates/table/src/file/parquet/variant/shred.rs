//! Shreds variants before they are written (`VariantShredding.md`): values of the expected types go to columns of their
//! own, others stay in `value`.
//!
//! Which value goes where is as in the Java library: a field of an object goes to its own columns whatever its type, and
//! there to `typed_value` if it has the column's type.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, FixedSizeBinaryBuilder, Float32Builder, Float64Builder,
    Int8Builder, Int16Builder, Int32Builder, Int64Builder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
    TimestampNanosecondBuilder,
};
use arrow_array::{Array, ArrayRef, BinaryArray, ListArray, StringArray, StructArray};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, TimeUnit};
use icefield_format::value::variant::encode::finish_object;
use icefield_format::value::variant::shape::Fit;
use icefield_format::value::variant::{Column, Kind, Node, Object, Shape, Variant};

use super::Fault;

/// What the variants of a column are shredded as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shredding {
    /// The content of `typed_value`.
    pub shape: Shape,
    /// Which values its columns take.
    pub fit: Fit,
}

impl Shredding {
    /// The columns of a shredded variant.
    pub fn parts(&self) -> Fields {
        let metadata = ArrowField::new("metadata", DataType::Binary, false);
        let [value, typed] = pair(&self.shape);
        Fields::from(vec![Arc::new(metadata), value, typed])
    }

    /// Shreds a column of variants.
    pub fn shred(&self, variants: &dyn Array) -> Result<StructArray, Fault> {
        let whole = |error: icefield_format::Error| Fault { row: 0, message: error.to_string() };
        let column = Column::new(variants).map_err(whole)?;
        let mut metadata = Bytes::new(column.len());
        let mut group = Group::new(&self.shape, self.fit, column.len());
        for row in 0..column.len() {
            let fault = |message: String| Fault { row, message };
            match column.get(row).map_err(|error| fault(error.to_string()))? {
                // `metadata` is a required column, in rows without a variant too.
                None => {
                    metadata.push(Some(&[])).map_err(fault)?;
                    group.push_missing().map_err(fault)?;
                }
                Some(variant) => {
                    metadata.push(Some(variant.metadata().bytes())).map_err(fault)?;
                    group.push(variant).map_err(fault)?;
                }
            }
        }
        let built = || {
            let [value, typed] = group.finish()?;
            StructArray::try_new(
                self.parts(),
                vec![Arc::new(metadata.binary()?), value, typed],
                variants.nulls().cloned(),
            )
            .map_err(|error| error.to_string())
        };
        built().map_err(|message| Fault { row: 0, message })
    }
}

/// `value` and `typed_value`.
fn pair(shape: &Shape) -> [FieldRef; 2] {
    let value = ArrowField::new("value", DataType::Binary, true);
    let typed = ArrowField::new("typed_value", data_type(shape), true);
    [Arc::new(value), Arc::new(typed)]
}

fn group(shape: &Shape) -> DataType {
    DataType::Struct(Fields::from(pair(shape).to_vec()))
}

fn element(shape: &Shape) -> FieldRef {
    Arc::new(ArrowField::new("element", group(shape), false))
}

fn object(fields: &[(String, Shape)]) -> Fields {
    fields.iter().map(|(name, shape)| ArrowField::new(name, group(shape), false)).collect()
}

/// The Arrow type of a `typed_value`.
fn data_type(shape: &Shape) -> DataType {
    let zone = |is_utc: bool| is_utc.then(|| Arc::from("UTC"));
    match shape {
        Shape::Object(fields) => DataType::Struct(object(fields)),
        Shape::Array(inner) => DataType::List(element(inner)),
        Shape::Primitive(kind) => match kind {
            Kind::Boolean => DataType::Boolean,
            Kind::Int8 => DataType::Int8,
            Kind::Int16 => DataType::Int16,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::Float => DataType::Float32,
            Kind::Double => DataType::Float64,
            Kind::Decimal { precision, scale } => DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(0)),
            Kind::Date => DataType::Date32,
            Kind::Time => DataType::Time64(TimeUnit::Microsecond),
            Kind::Timestamp { is_utc } => DataType::Timestamp(TimeUnit::Microsecond, zone(*is_utc)),
            Kind::TimestampNanos { is_utc } => DataType::Timestamp(TimeUnit::Nanosecond, zone(*is_utc)),
            Kind::String => DataType::Utf8,
            Kind::Binary => DataType::Binary,
            Kind::Uuid => DataType::FixedSizeBinary(16),
        },
    }
}

/// A `value` and a `typed_value` under construction.
struct Group<'s> {
    value: Bytes,
    typed: Typed<'s>,
    fit: Fit,
}

enum Typed<'s> {
    Primitive(Kind, Leaf),
    Object { shapes: &'s [(String, Shape)], fields: Vec<Group<'s>>, nulls: NullBufferBuilder },
    Array { shape: &'s Shape, element: Box<Group<'s>>, offsets: Vec<i32>, elements: i32, nulls: NullBufferBuilder },
}

impl<'s> Group<'s> {
    fn new(shape: &'s Shape, fit: Fit, rows: usize) -> Self {
        let nulls = || NullBufferBuilder::new(rows);
        let typed = match shape {
            Shape::Primitive(kind) => Typed::Primitive(*kind, Leaf::new(*kind)),
            Shape::Object(shapes) => {
                let fields = shapes.iter().map(|(_, shape)| Self::new(shape, fit, rows)).collect();
                Typed::Object { shapes, fields, nulls: nulls() }
            }
            Shape::Array(shape) => {
                let element = Box::new(Self::new(shape, fit, rows));
                Typed::Array { shape, element, offsets: vec![0], elements: 0, nulls: nulls() }
            }
        };
        Self { value: Bytes::new(rows), typed, fit }
    }

    /// A field that an object does not have, or a row without a variant.
    fn push_missing(&mut self) -> Result<(), String> {
        self.value.push(None)?;
        self.typed.push_null()
    }

    fn push(&mut self, variant: Variant<'_>) -> Result<(), String> {
        let node = match variant.node() {
            Ok(node) => Some(node),
            // A type that this version does not know.
            Err(icefield_format::Error::Unsupported(_)) => None,
            Err(error) => return Err(error.to_string()),
        };
        match (&mut self.typed, node) {
            (Typed::Primitive(kind, leaf), Some(node)) => {
                if let Some(stored) = kind.stored(node, self.fit) {
                    leaf.push(&stored)?;
                    return self.value.push(None);
                }
            }
            (Typed::Object { shapes, fields, nulls }, Some(Node::Object(object))) => {
                nulls.append_non_null();
                return push_object(object, variant, shapes, fields, &mut self.value);
            }
            (Typed::Array { element, offsets, elements, nulls, .. }, Some(Node::Array(found))) => {
                for one in found.iter() {
                    element.push(one.map_err(|error| error.to_string())?)?;
                }
                let more = i32::try_from(found.len()).ok().and_then(|more| elements.checked_add(more));
                *elements = more.ok_or_else(too_many)?;
                offsets.push(*elements);
                nulls.append_non_null();
                return self.value.push(None);
            }
            _ => {}
        }
        // The bytes of a value may be followed by those of others. Of a type that is not known here the length is not
        // known either, so all of them are kept.
        self.value.push(Some(variant.exact().unwrap_or(variant.value())))?;
        self.typed.push_null()
    }

    fn finish(self) -> Result<[ArrayRef; 2], String> {
        Ok([Arc::new(self.value.binary()?), self.typed.finish()?])
    }

    fn finish_struct(self, shape: &Shape) -> Result<ArrayRef, String> {
        let columns = self.finish()?.to_vec();
        let array = StructArray::try_new(Fields::from(pair(shape).to_vec()), columns, None);
        Ok(Arc::new(array.map_err(|error| error.to_string())?))
    }
}

/// Splits the fields of an object: those with columns of their own, and the others, which are an object in `value`.
fn push_object(
    object: Object<'_>,
    variant: Variant<'_>,
    shapes: &[(String, Shape)],
    fields: &mut [Group<'_>],
    value: &mut Bytes,
) -> Result<(), String> {
    let start = value.bytes.len();
    let mut others: Vec<(usize, usize)> = Vec::new();
    let mut found = vec![false; fields.len()];
    for entry in object.entries() {
        let (id, name, inner) = entry.map_err(|error| error.to_string())?;
        // A shape has its fields in the order of their names.
        let place = shapes.binary_search_by(|(own, _)| own.as_str().cmp(name)).ok();
        match place.and_then(|place| Some((fields.get_mut(place)?, found.get_mut(place)?))) {
            Some((_, true)) => return Err(format!("the object has two fields {name:?}")),
            Some((group, is_found)) => {
                *is_found = true;
                group.push(inner)?;
            }
            // Appended where they stay: `finish_object` puts the header of the object before them.
            None => {
                others.push((id, value.bytes.len()));
                value.bytes.extend(inner.exact().unwrap_or(inner.value()));
            }
        }
    }
    let missing = fields.iter_mut().zip(found).filter(|(_, is_found)| !is_found);
    missing.map(|(group, _)| group).try_for_each(Group::push_missing)?;
    if others.is_empty() {
        return value.end(false);
    }
    finish_object(&mut value.bytes, start, &others, variant.metadata().len()).map_err(|error| error.to_string())?;
    value.end(true)
}

impl Typed<'_> {
    fn push_null(&mut self) -> Result<(), String> {
        match self {
            Self::Primitive(_, leaf) => leaf.push_null(),
            Self::Object { fields, nulls, .. } => {
                nulls.append_null();
                fields.iter_mut().try_for_each(Group::push_missing)
            }
            Self::Array { offsets, elements, nulls, .. } => {
                nulls.append_null();
                offsets.push(*elements);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<ArrayRef, String> {
        let text = |error: arrow_schema::ArrowError| error.to_string();
        Ok(match self {
            Self::Primitive(_, leaf) => leaf.finish()?,
            Self::Object { shapes, fields, mut nulls } => {
                let columns = fields.into_iter().zip(shapes).map(|(field, (_, shape))| field.finish_struct(shape));
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                Arc::new(StructArray::try_new(object(shapes), columns, nulls.finish()).map_err(text)?)
            }
            Self::Array { shape, element: inner, offsets, mut nulls, .. } => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
                let elements = inner.finish_struct(shape)?;
                Arc::new(ListArray::try_new(element(shape), offsets, elements, nulls.finish()).map_err(text)?)
            }
        })
    }
}

fn too_many() -> String {
    "the variants of a batch have 2 GiB and more: write smaller batches".to_owned()
}

/// Byte strings or texts under construction.
struct Bytes {
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Bytes {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { bytes: Vec::new(), offsets, nulls: NullBufferBuilder::new(rows) }
    }

    fn push(&mut self, value: Option<&[u8]>) -> Result<(), String> {
        self.bytes.extend(value.unwrap_or_default());
        self.end(value.is_some())
    }

    /// Ends the value of a row, whose bytes are there already.
    fn end(&mut self, is_valid: bool) -> Result<(), String> {
        self.offsets.push(i32::try_from(self.bytes.len()).map_err(|_| too_many())?);
        self.nulls.append(is_valid);
        Ok(())
    }

    fn parts(mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        (offsets, Buffer::from_vec(self.bytes), self.nulls.finish())
    }

    fn binary(self) -> Result<BinaryArray, String> {
        let (offsets, bytes, nulls) = self.parts();
        BinaryArray::try_new(offsets, bytes, nulls).map_err(|error| error.to_string())
    }

    fn texts(self) -> Result<StringArray, String> {
        let (offsets, bytes, nulls) = self.parts();
        StringArray::try_new(offsets, bytes, nulls).map_err(|error| error.to_string())
    }
}

/// Primitive values under construction.
enum Leaf {
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Nanos(TimestampNanosecondBuilder),
    String(Bytes),
    Binary(Bytes),
    Uuid(FixedSizeBinaryBuilder),
}

impl Leaf {
    fn new(kind: Kind) -> Self {
        let of = data_type(&Shape::Primitive(kind));
        match kind {
            Kind::Boolean => Self::Boolean(BooleanBuilder::new()),
            Kind::Int8 => Self::Int8(Int8Builder::new()),
            Kind::Int16 => Self::Int16(Int16Builder::new()),
            Kind::Int32 => Self::Int32(Int32Builder::new()),
            Kind::Int64 => Self::Int64(Int64Builder::new()),
            Kind::Float => Self::Float(Float32Builder::new()),
            Kind::Double => Self::Double(Float64Builder::new()),
            Kind::Decimal { .. } => Self::Decimal(Decimal128Builder::new().with_data_type(of)),
            Kind::Date => Self::Date(Date32Builder::new()),
            Kind::Time => Self::Time(Time64MicrosecondBuilder::new()),
            Kind::Timestamp { .. } => Self::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(of)),
            Kind::TimestampNanos { .. } => Self::Nanos(TimestampNanosecondBuilder::new().with_data_type(of)),
            Kind::String => Self::String(Bytes::new(0)),
            Kind::Binary => Self::Binary(Bytes::new(0)),
            Kind::Uuid => Self::Uuid(FixedSizeBinaryBuilder::new(16)),
        }
    }

    /// Appends what [`Kind::stored`] returned.
    fn push(&mut self, node: &Node<'_>) -> Result<(), String> {
        match (self, node) {
            (Self::Boolean(out), Node::Boolean(value)) => out.append_value(*value),
            (Self::Int8(out), Node::Int8(value)) => out.append_value(*value),
            (Self::Int16(out), Node::Int16(value)) => out.append_value(*value),
            (Self::Int32(out), Node::Int32(value)) => out.append_value(*value),
            (Self::Int64(out), Node::Int64(value)) => out.append_value(*value),
            (Self::Float(out), Node::Float(value)) => out.append_value(*value),
            (Self::Double(out), Node::Double(value)) => out.append_value(*value),
            (Self::Decimal(out), Node::Decimal { unscaled, .. }) => out.append_value(*unscaled),
            (Self::Date(out), Node::Date(days)) => out.append_value(*days),
            (Self::Time(out), Node::Time(micros)) => out.append_value(*micros),
            (Self::Timestamp(out), Node::Timestamp { micros, .. }) => out.append_value(*micros),
            (Self::Nanos(out), Node::TimestampNanos { nanos, .. }) => out.append_value(*nanos),
            (Self::String(out), Node::String(text)) => return out.push(Some(text.as_bytes())),
            (Self::Binary(out), Node::Binary(bytes)) => return out.push(Some(bytes)),
            (Self::Uuid(out), Node::Uuid(bytes)) => return out.append_value(bytes).map_err(|error| error.to_string()),
            (_, node) => return Err(format!("a column of another type for {}", node.kind())),
        }
        Ok(())
    }

    fn push_null(&mut self) -> Result<(), String> {
        match self {
            Self::Boolean(out) => out.append_null(),
            Self::Int8(out) => out.append_null(),
            Self::Int16(out) => out.append_null(),
            Self::Int32(out) => out.append_null(),
            Self::Int64(out) => out.append_null(),
            Self::Float(out) => out.append_null(),
            Self::Double(out) => out.append_null(),
            Self::Decimal(out) => out.append_null(),
            Self::Date(out) => out.append_null(),
            Self::Time(out) => out.append_null(),
            Self::Timestamp(out) => out.append_null(),
            Self::Nanos(out) => out.append_null(),
            Self::String(out) | Self::Binary(out) => return out.push(None),
            Self::Uuid(out) => out.append_null(),
        }
        Ok(())
    }

    fn finish(self) -> Result<ArrayRef, String> {
        Ok(match self {
            Self::Boolean(mut out) => Arc::new(out.finish()),
            Self::Int8(mut out) => Arc::new(out.finish()),
            Self::Int16(mut out) => Arc::new(out.finish()),
            Self::Int32(mut out) => Arc::new(out.finish()),
            Self::Int64(mut out) => Arc::new(out.finish()),
            Self::Float(mut out) => Arc::new(out.finish()),
            Self::Double(mut out) => Arc::new(out.finish()),
            Self::Date(mut out) => Arc::new(out.finish()),
            Self::Time(mut out) => Arc::new(out.finish()),
            Self::Uuid(mut out) => Arc::new(out.finish()),
            Self::Decimal(mut out) => Arc::new(out.finish()),
            Self::Timestamp(mut out) => Arc::new(out.finish()),
            Self::Nanos(mut out) => Arc::new(out.finish()),
            Self::String(out) => Arc::new(out.texts()?),
            Self::Binary(out) => Arc::new(out.binary()?),
        })
    }
}
