//! Booleans, bytes, integers, dates and floats.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, Int8Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::ColumnReader;
use super::presence::{Head, Slots};
use crate::calendar;
use crate::error::{Error, Result};
use crate::rle::{BooleanReader, ByteReader, IntReader};
use crate::stream::{ByteStream, Context};

/// `boolean`
#[derive(Debug)]
pub(super) struct BooleanColumn {
    head: Head,
    data: BooleanReader,
}

impl BooleanColumn {
    pub(super) fn new(head: Head, data: BooleanReader) -> Self {
        Self { head, data }
    }
}

impl ColumnReader for BooleanColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        let dense = self.data.read(validity.present, context)?;
        let values = match &validity.valid {
            None => dense,
            Some(valid) => spread_bits(&dense, valid),
        };
        Ok(Arc::new(BooleanArray::new(values, validity.nulls())))
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.data.skip(present, context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| self.data.seek(positions, context))
    }
}

fn spread_bits(dense: &BooleanBuffer, valid: &BooleanBuffer) -> BooleanBuffer {
    let mut out = BooleanBufferBuilder::new(valid.len());
    let mut dense = dense.iter();
    for slot in valid.iter() {
        out.append(slot && dense.next().unwrap_or(false));
    }
    out.finish()
}

/// `tinyint`
#[derive(Debug)]
pub(super) struct ByteColumn {
    head: Head,
    data: ByteReader,
}

impl ByteColumn {
    pub(super) fn new(head: Head, data: ByteReader) -> Self {
        Self { head, data }
    }
}

impl ColumnReader for ByteColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        let mut bytes = Vec::new();
        self.data.read_onto(validity.present, &mut bytes, context)?;
        let values: Vec<i8> = bytes.into_iter().map(|byte| byte as i8).collect();
        Ok(Arc::new(Int8Array::new(validity.spread(values, 0).into(), validity.nulls())))
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.data.skip(present, context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| self.data.seek(positions, context))
    }
}

/// An Arrow type that run-length integers are narrowed to.
pub(super) trait Narrow: ArrowPrimitiveType + std::fmt::Debug + Send {
    /// Narrows values to this type; `None` if one does not fit. The integer encodings store 64 bits for every type.
    fn narrow(values: &mut Vec<i64>) -> Option<Vec<Self::Native>>;
}

macro_rules! narrow {
    ($($arrow:ty, $native:ty;)*) => {$(
        impl Narrow for $arrow {
            fn narrow(values: &mut Vec<i64>) -> Option<Vec<$native>> {
                let lost = values.iter().fold(0, |lost, value| lost | (i64::from(*value as $native) ^ *value));
                (lost == 0).then(|| values.iter().map(|value| *value as $native).collect())
            }
        }
    )*};
}
narrow! { Int16Type, i16; Int32Type, i32; Date32Type, i32; }

impl Narrow for Int64Type {
    fn narrow(values: &mut Vec<i64>) -> Option<Vec<i64>> {
        Some(std::mem::take(values))
    }
}

/// `smallint`, `int`, `bigint`, `date`
#[derive(Debug)]
pub(super) struct IntColumn<T> {
    head: Head,
    data: IntReader,
    dense: Vec<i64>,
    from_julian: bool,
    arrow: PhantomData<T>,
}

impl<T> IntColumn<T> {
    pub(super) fn new(head: Head, data: IntReader) -> Self {
        Self { head, data, dense: Vec::new(), from_julian: false, arrow: PhantomData }
    }

    /// Sets whether days are converted from the Julian calendar.
    pub(super) fn with_calendar(self, from_julian: bool) -> Self {
        Self { from_julian, ..self }
    }
}

impl<T: Narrow> ColumnReader for IntColumn<T> {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        self.data.read_vec(validity.present, &mut self.dense, context)?;
        if self.from_julian {
            self.dense.iter_mut().for_each(|day| *day = calendar::day_from_julian(*day));
        }
        let values = T::narrow(&mut self.dense).ok_or_else(|| {
            Error::value(format!("column {}: a value is out of range for {}", self.head.column, T::DATA_TYPE))
        })?;
        let values = validity.spread(values, T::Native::default());
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), validity.nulls())))
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.data.skip(present, context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| self.data.seek(positions, context))
    }
}

/// A floating-point type, stored in little endian.
pub(super) trait LittleEndian: ArrowPrimitiveType + std::fmt::Debug + Send {
    /// Bytes per value.
    const WIDTH: usize;
    /// Appends the values in `bytes`; an incomplete last one is ignored.
    fn append(bytes: &[u8], out: &mut Vec<Self::Native>);
}

macro_rules! little_endian {
    ($($arrow:ty, $native:ty, $width:literal;)*) => {$(
        impl LittleEndian for $arrow {
            const WIDTH: usize = $width;
            fn append(bytes: &[u8], out: &mut Vec<$native>) {
                out.extend(bytes.as_chunks::<$width>().0.iter().map(|field| <$native>::from_le_bytes(*field)));
            }
        }
    )*};
}
little_endian! { Float32Type, f32, 4; Float64Type, f64, 8; }

/// `float`, `double`
#[derive(Debug)]
pub(super) struct FloatColumn<T> {
    head: Head,
    data: ByteStream,
    arrow: PhantomData<T>,
}

impl<T> FloatColumn<T> {
    pub(super) fn new(head: Head, data: ByteStream) -> Self {
        Self { head, data, arrow: PhantomData }
    }
}

impl<T: LittleEndian> FloatColumn<T> {
    fn dense(&mut self, count: usize, context: &mut Context) -> Result<Vec<T::Native>> {
        let mut values = Vec::new();
        while values.len() < count {
            let left = count - values.len();
            let window = self.data.need(T::WIDTH, context)?;
            let step = left.min(window.len() / T::WIDTH);
            values.reserve(step);
            T::append(window.get(..step * T::WIDTH).unwrap_or_default(), &mut values);
            self.data.consume(step * T::WIDTH);
        }
        Ok(values)
    }
}

impl<T: LittleEndian> ColumnReader for FloatColumn<T> {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        let values = self.dense(validity.present, context)?;
        let values = validity.spread(values, T::Native::default());
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), validity.nulls())))
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.data.skip(present.saturating_mul(T::WIDTH), context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, _| self.data.seek(positions))
    }
}
