//! The values of one column of a batch, read one after the other.

use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Int32Type, Int64Type, Time32MillisecondType, Time64MicrosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array, ListArray,
    MapArray, NullArray, PrimitiveArray, StringArray, StructArray,
};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};
use icefield_format::avro::cursor::{Cursor, Fault};
use icefield_format::avro::decimal::unscaled;
use icefield_format::avro::{Schema, Skip};

use super::schema::{Presence, map_pair, value};

/// Charge per list item in addition to its bytes, so that empty items also count.
const ITEM_CHARGE: u64 = 16;

/// Memory that the values of one batch may still take beyond the bytes they are read from.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
    spent: u64,
}

impl Budget {
    /// An allowance of `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        Self { left: bytes, spent: 0 }
    }

    /// The amount used.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }

    fn charge(&mut self, bytes: u64) -> Result<(), Fault> {
        self.left = self.left.checked_sub(bytes).ok_or(Fault::TooLong)?;
        self.spent += bytes;
        Ok(())
    }
}

/// How to read the fields of a record, in order.
#[derive(Debug)]
pub(crate) enum Step {
    /// Fields to skip.
    Skip(Skip),
    /// The next column.
    Read(ColumnBuilder),
}

/// The values of a column.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    presence: Presence,
    nulls: NullBufferBuilder,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Null(usize),
    Boolean(BooleanBufferBuilder),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    /// Variable-length, or with a fixed number of bytes.
    Decimal(Option<u64>, Vec<i128>),
    Fixed(usize, Vec<u8>),
    /// Uuids written as text.
    UuidText(Vec<u8>),
    Bytes(Texts),
    Enum(Arc<[String]>, Texts),
    Struct(usize, Vec<Step>),
    List(Vec<i32>, Box<ColumnBuilder>, Item),
    Map(Vec<i32>, Vec<Step>, Item),
}

#[derive(Debug)]
struct Texts {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

/// What is known about list items before they are read.
#[derive(Debug, Clone, Copy)]
struct Item {
    min_bytes: u64,
    width: u64,
}

impl Texts {
    fn new() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let end = i32::try_from(self.bytes.len() + bytes.len()).map_err(|_| Fault::TooLong)?;
        self.bytes.extend_from_slice(bytes);
        self.offsets.push(end);
        Ok(())
    }

    fn push_empty(&mut self) {
        self.offsets.push(self.offsets.last().copied().unwrap_or(0));
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let Self { offsets, bytes } = std::mem::replace(self, Self::new());
        (OffsetBuffer::new(offsets.into()), bytes.into())
    }
}

impl Item {
    fn of(steps: &[Step], skip: &Skip) -> Self {
        Self { min_bytes: skip.min_bytes(), width: steps_width(steps).saturating_add(ITEM_CHARGE) }
    }
}

/// Fixed bytes per row of some columns.
pub(crate) fn steps_width(steps: &[Step]) -> u64 {
    let width = |step: &Step| if let Step::Read(column) = step { column.width() } else { 0 };
    steps.iter().map(width).fold(0, u64::saturating_add)
}

/// Reads the fields of a record; a fault also has the index of its column.
pub(crate) fn read_steps(
    steps: &mut [Step],
    cursor: &mut Cursor<'_>,
    budget: &mut Budget,
) -> Result<(), (Fault, Option<usize>)> {
    let mut place = 0;
    for step in steps {
        match step {
            Step::Skip(skip) => skip.run(cursor).map_err(|fault| (fault, None))?,
            Step::Read(column) => {
                column.read(cursor, budget).map_err(|fault| (fault, Some(place)))?;
                place += 1;
            }
        }
    }
    Ok(())
}

/// The columns among some steps.
pub(crate) fn columns(steps: &mut [Step]) -> impl Iterator<Item = &mut ColumnBuilder> {
    steps.iter_mut().filter_map(|step| if let Step::Read(column) = step { Some(column) } else { None })
}

impl ColumnBuilder {
    /// The column for `schema` with the Arrow type of `field`; `inner` compiles the fields inside.
    pub(crate) fn new(
        schema: &Schema,
        ty: &DataType,
        inner: &mut dyn FnMut(&Schema, &DataType) -> Vec<Step>,
    ) -> Option<Self> {
        let (presence, schema) = value(schema)?;
        let values = Values::new(schema, ty, inner)?;
        Some(Self { presence, nulls: NullBufferBuilder::new(0), values })
    }

    fn width(&self) -> u64 {
        match &self.values {
            Values::Null(_) => 0,
            Values::Boolean(_) => 1,
            Values::Int(_) | Values::Float(_) | Values::Bytes(_) | Values::Enum(..) => 4,
            Values::Long(_) | Values::Double(_) => 8,
            Values::Decimal(..) | Values::UuidText(_) => 16,
            Values::Fixed(size, _) => *size as u64,
            Values::Struct(_, steps) => steps_width(steps).saturating_add(1),
            Values::List(..) | Values::Map(..) => 4,
        }
    }

    /// Reads a value.
    #[inline]
    fn read(&mut self, cursor: &mut Cursor<'_>, budget: &mut Budget) -> Result<(), Fault> {
        match self.presence {
            Presence::Required => {}
            Presence::Single => {
                if cursor.long()? != 0 {
                    return Err(Fault::Branch);
                }
            }
            Presence::Optional { null } => {
                let branch = cursor.long()?;
                if branch == null {
                    self.push_null();
                    return Ok(());
                }
                if branch != 1 - null {
                    return Err(Fault::Branch);
                }
                self.nulls.append_non_null();
            }
        }
        self.values.read(cursor, budget)
    }

    /// Appends a null, or a placeholder in a non-null column below a null parent.
    fn push_null(&mut self) {
        if matches!(self.presence, Presence::Optional { .. }) {
            self.nulls.append_null();
        }
        match &mut self.values {
            Values::Null(rows) => *rows += 1,
            Values::Boolean(values) => values.append(false),
            Values::Int(values) => values.push(0),
            Values::Long(values) => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Decimal(_, values) => values.push(0),
            Values::Fixed(size, bytes) => bytes.resize(bytes.len() + *size, 0),
            Values::UuidText(bytes) => bytes.resize(bytes.len() + 16, 0),
            Values::Bytes(texts) | Values::Enum(_, texts) => texts.push_empty(),
            Values::Struct(rows, steps) => {
                *rows += 1;
                columns(steps).for_each(Self::push_null);
            }
            Values::List(offsets, ..) | Values::Map(offsets, ..) => {
                offsets.push(offsets.last().copied().unwrap_or(0));
            }
        }
    }

    /// Takes the values as an array.
    pub(crate) fn finish(&mut self, field: &Field) -> Result<ArrayRef, ArrowError> {
        let nulls = self.nulls.finish();
        self.values.finish(field.data_type(), nulls)
    }
}

impl Values {
    fn new(schema: &Schema, ty: &DataType, inner: &mut dyn FnMut(&Schema, &DataType) -> Vec<Step>) -> Option<Self> {
        Some(match (schema, ty) {
            (Schema::Null, _) => Self::Null(0),
            (Schema::Boolean, _) => Self::Boolean(BooleanBufferBuilder::new(0)),
            (Schema::Int(_), _) => Self::Int(Vec::new()),
            (Schema::Long(_), _) => Self::Long(Vec::new()),
            (Schema::Float, _) => Self::Float(Vec::new()),
            (Schema::Double, _) => Self::Double(Vec::new()),
            (Schema::Bytes(_), DataType::Decimal128(..)) => Self::Decimal(None, Vec::new()),
            (Schema::Fixed(size, _), DataType::Decimal128(..)) => Self::Decimal(Some(*size), Vec::new()),
            (Schema::String(_), DataType::FixedSizeBinary(16)) => Self::UuidText(Vec::new()),
            (Schema::Bytes(_) | Schema::String(_), _) => Self::Bytes(Texts::new()),
            (Schema::Fixed(size, _), _) => Self::Fixed(usize::try_from(*size).ok()?, Vec::new()),
            (Schema::Enum(symbols), _) => Self::Enum(Arc::clone(symbols), Texts::new()),
            (Schema::Record(_), DataType::Struct(_)) => Self::Struct(0, inner(schema, ty)),
            (Schema::Array(array), DataType::Map(entries, _)) => {
                map_pair(array)?;
                let steps = inner(&array.items, entries.data_type());
                let item = Item::of(&steps, &Skip::of(&array.items));
                Self::Map(vec![0], steps, item)
            }
            (Schema::Map(map), DataType::Map(entries, _)) => {
                let steps = inner(schema, entries.data_type());
                let skip = Skip::sequence([Skip::Prefixed, Skip::of(&map.values)]);
                let item = Item::of(&steps, &skip);
                Self::Map(vec![0], steps, item)
            }
            (Schema::Array(array), DataType::List(_)) => {
                let mut steps = inner(schema, ty);
                let Some(Step::Read(element)) = steps.pop() else { return None };
                let width = element.width().saturating_add(ITEM_CHARGE);
                let item = Item { min_bytes: Skip::of(&array.items).min_bytes(), width };
                Self::List(vec![0], Box::new(element), item)
            }
            _ => return None,
        })
    }

    #[inline]
    fn read(&mut self, cursor: &mut Cursor<'_>, budget: &mut Budget) -> Result<(), Fault> {
        match self {
            Self::Null(rows) => *rows += 1,
            Self::Boolean(values) => values.append(cursor.boolean()?),
            Self::Int(values) => values.push(cursor.int()?),
            Self::Long(values) => values.push(cursor.long()?),
            Self::Float(values) => values.push(f32::from_le_bytes(cursor.array()?)),
            Self::Double(values) => values.push(f64::from_le_bytes(cursor.array()?)),
            Self::Decimal(size, values) => {
                let before = *cursor;
                let bytes = match size {
                    Some(size) => cursor.take(*size)?,
                    None => cursor.bytes()?,
                };
                values.push(unscaled(bytes).inspect_err(|_| *cursor = before)?);
            }
            Self::Fixed(size, bytes) => bytes.extend_from_slice(cursor.take(*size as u64)?),
            Self::UuidText(bytes) => {
                let before = *cursor;
                let uuid = uuid::Uuid::try_parse_ascii(cursor.bytes()?);
                bytes.extend_from_slice(uuid.map_err(|_| Fault::Text).inspect_err(|_| *cursor = before)?.as_bytes());
            }
            Self::Bytes(texts) => texts.push(cursor.bytes()?)?,
            Self::Enum(symbols, texts) => {
                let before = *cursor;
                let symbol = usize::try_from(cursor.long()?).ok().and_then(|symbol| symbols.get(symbol));
                let symbol = symbol.ok_or(Fault::Range).inspect_err(|_| *cursor = before)?;
                budget.charge(symbol.len() as u64)?;
                texts.push(symbol.as_bytes())?;
            }
            Self::Struct(rows, steps) => {
                read_steps(steps, cursor, budget).map_err(|(fault, _)| fault)?;
                *rows += 1;
            }
            Self::List(offsets, element, item) => {
                let count = items(cursor, budget, *item, |cursor, budget| element.read(cursor, budget))?;
                push_count(offsets, count)?;
            }
            Self::Map(offsets, steps, item) => {
                let read = |cursor: &mut Cursor<'_>, budget: &mut Budget| {
                    read_steps(steps, cursor, budget).map_err(|(fault, _)| fault)
                };
                push_count(offsets, items(cursor, budget, *item, read)?)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, ty: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Null(rows) => Arc::new(NullArray::new(std::mem::take(rows))),
            Self::Boolean(values) => Arc::new(BooleanArray::new(values.finish(), nulls)),
            Self::Int(values) => {
                let values = std::mem::take(values).into();
                match ty {
                    DataType::Date32 => primitive::<Date32Type>(values, nulls, ty)?,
                    DataType::Time32(_) => primitive::<Time32MillisecondType>(values, nulls, ty)?,
                    _ => primitive::<Int32Type>(values, nulls, ty)?,
                }
            }
            Self::Long(values) => {
                let values = std::mem::take(values).into();
                match ty {
                    DataType::Time64(_) => primitive::<Time64MicrosecondType>(values, nulls, ty)?,
                    DataType::Timestamp(TimeUnit::Millisecond, _) => {
                        primitive::<TimestampMillisecondType>(values, nulls, ty)?
                    }
                    DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                        primitive::<TimestampNanosecondType>(values, nulls, ty)?
                    }
                    DataType::Timestamp(..) => primitive::<TimestampMicrosecondType>(values, nulls, ty)?,
                    _ => primitive::<Int64Type>(values, nulls, ty)?,
                }
            }
            Self::Float(values) => Arc::new(Float32Array::try_new(std::mem::take(values).into(), nulls)?),
            Self::Double(values) => Arc::new(Float64Array::try_new(std::mem::take(values).into(), nulls)?),
            Self::Decimal(_, values) => {
                let values = Decimal128Array::try_new(std::mem::take(values).into(), nulls)?;
                let values = values.with_data_type(ty.clone());
                if let DataType::Decimal128(precision, _) = ty {
                    values.validate_decimal_precision(*precision)?;
                }
                Arc::new(values)
            }
            Self::Fixed(size, bytes) => fixed(*size, std::mem::take(bytes), nulls)?,
            Self::UuidText(bytes) => fixed(16, std::mem::take(bytes), nulls)?,
            Self::Bytes(texts) | Self::Enum(_, texts) => {
                let (offsets, bytes) = texts.take();
                match ty {
                    DataType::Utf8 => Arc::new(StringArray::try_new(offsets, bytes, nulls)?),
                    _ => Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?),
                }
            }
            Self::Struct(rows, steps) => Arc::new(structs(steps, std::mem::take(rows), ty, nulls)?),
            Self::List(offsets, element, _) => {
                let DataType::List(field) = ty else { return Err(mismatch(ty)) };
                let offsets = OffsetBuffer::new(std::mem::replace(offsets, vec![0]).into());
                Arc::new(ListArray::try_new(field.clone(), offsets, element.finish(field)?, nulls)?)
            }
            Self::Map(offsets, steps, _) => {
                let DataType::Map(entries, sorted) = ty else { return Err(mismatch(ty)) };
                let offsets = OffsetBuffer::new(std::mem::replace(offsets, vec![0]).into());
                let rows = usize::try_from(offsets.last()).unwrap_or(0);
                let pairs = structs(steps, rows, entries.data_type(), None)?;
                Arc::new(MapArray::try_new(entries.clone(), offsets, pairs, nulls, *sorted)?)
            }
        })
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: ScalarBuffer<T::Native>,
    nulls: Option<NullBuffer>,
    ty: &DataType,
) -> Result<ArrayRef, ArrowError> {
    Ok(Arc::new(PrimitiveArray::<T>::try_new(values, nulls)?.with_data_type(ty.clone())))
}

fn fixed(size: usize, bytes: Vec<u8>, nulls: Option<NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let size = i32::try_from(size).map_err(|_| mismatch(&DataType::Binary))?;
    Ok(Arc::new(FixedSizeBinaryArray::try_new(size, bytes.into(), nulls)?))
}

fn structs(
    steps: &mut [Step],
    rows: usize,
    ty: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<StructArray, ArrowError> {
    let DataType::Struct(fields) = ty else { return Err(mismatch(ty)) };
    let arrays = fields.iter().zip(columns(steps)).map(|(field, column)| column.finish(field));
    StructArray::try_new_with_length(fields.clone(), arrays.collect::<Result<_, _>>()?, nulls, rows)
}

fn mismatch(ty: &DataType) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("cannot be read as {ty}"))
}

fn push_count(offsets: &mut Vec<i32>, count: u64) -> Result<(), Fault> {
    let last = offsets.last().copied().unwrap_or(0);
    let end = i32::try_from(count).ok().and_then(|count| last.checked_add(count)).ok_or(Fault::TooLong)?;
    offsets.push(end);
    Ok(())
}

/// Reads the blocks of an array or map and returns the number of items.
fn items(
    cursor: &mut Cursor<'_>,
    budget: &mut Budget,
    item: Item,
    mut read: impl FnMut(&mut Cursor<'_>, &mut Budget) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let mut all = 0u64;
    loop {
        let before = *cursor;
        let (count, _) = cursor.items()?;
        if count == 0 {
            return Ok(all);
        }
        let fits = count.checked_mul(item.min_bytes).is_some_and(|bytes| bytes <= cursor.rest().len() as u64);
        let charged = fits.then(|| count.checked_mul(item.width)).flatten().ok_or(Fault::TooLong);
        charged.and_then(|bytes| budget.charge(bytes)).inspect_err(|_| *cursor = before)?;
        for _ in 0..count {
            read(cursor, budget)?;
        }
        all += count;
    }
}
