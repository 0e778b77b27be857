//! Booleans, integers, dates and floats.

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Date64Type, Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::DataType;

use super::head::{Head, encoding};
use super::writer::{ColumnWriter, Plan, gather, integers, plain, unexpected};
use crate::error::{Error, Result};
use crate::predicate::hash_long;
use crate::proto::{ColumnStatistics, EncodingKind, StreamKind};
use crate::rle::{BooleanWriter, ByteWriter, IntWriter};
use crate::write::statistics::{Days, Doubles, Integers, Trues};
use crate::write::stream::{Context, Plain, Stream};
use crate::write::stripe::StripeWriter;

/// The methods that are the same in all writers with one stream.
macro_rules! one_stream {
    ($new:expr, $encoding:expr) => {
        fn begin_group(&mut self, context: &Context) {
            self.head.begin_group(context);
            self.data.mark(&context.compressor);
        }

        fn end_group(&mut self, _: &mut Context) -> Result<()> {
            self.head.end_group();
            Ok(())
        }

        fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
            let fresh = $new(self);
            let data = std::mem::replace(&mut self.data, fresh).finish(&mut stripe.context.compressor)?;
            let kind = $encoding(self);
            self.head.finish(encoding(kind), vec![(StreamKind::Data, data)], Vec::new(), stripe)
        }

        fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
            out.push(self.head.file_statistics());
        }

        fn memory(&self) -> usize {
            self.head.memory() + self.data.memory()
        }
    };
}
pub(super) use one_stream;

/// `boolean`
#[derive(Debug)]
pub(super) struct BooleanColumn {
    head: Head<Trues>,
    data: Stream<BooleanWriter>,
}

impl BooleanColumn {
    pub(super) fn new(column: u32, plan: &Plan<'_>) -> Self {
        Self { head: Head::new(column, Trues(0), plan), data: Stream::new(BooleanWriter::default()) }
    }
}

impl ColumnWriter for BooleanColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        let values = array.as_boolean_opt().ok_or_else(|| unexpected(self.head.column, &array))?;
        self.head.add(values.nulls(), values.len(), context)?;
        let dense;
        let bits = match values.nulls() {
            Some(nulls) if nulls.null_count() > 0 => {
                let kept = BooleanArray::new(nulls.inner().clone(), None);
                dense = arrow_select::filter::filter(&BooleanArray::new(values.values().clone(), None), &kept)?;
                dense.as_boolean().values()
            }
            _ => values.values(),
        };
        self.head.statistics().0 += bits.count_set_bits() as u64;
        self.data.coder.write(bits, &mut self.data.open);
        self.data.spill(&mut context.compressor)
    }

    one_stream!(|_: &Self| Stream::new(BooleanWriter::default()), |_: &Self| EncodingKind::Direct);
}

/// `tinyint`
#[derive(Debug)]
pub(super) struct ByteColumn {
    head: Head<Integers>,
    data: Stream<ByteWriter>,
    scratch: Vec<i64>,
}

impl ByteColumn {
    pub(super) fn new(column: u32, plan: &Plan<'_>) -> Self {
        let data = Stream::new(ByteWriter::default());
        Self { head: Head::new(column, Integers::default(), plan), data, scratch: Vec::new() }
    }
}

impl ColumnWriter for ByteColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        let values = integers(self.head.column, &array, &mut self.scratch)?;
        self.head.add(array.nulls(), array.len(), context)?;
        self.head.statistics().add(values);
        if let Some(bloom) = &mut self.head.bloom {
            values.iter().for_each(|value| bloom.add(hash_long(*value)));
        }
        let bytes: Vec<u8> = values.iter().map(|value| *value as u8).collect();
        self.data.coder.write(&bytes, &mut self.data.open);
        self.data.spill(&mut context.compressor)
    }

    one_stream!(|_: &Self| Stream::new(ByteWriter::default()), |_: &Self| EncodingKind::Direct);
}

/// `smallint`, `int`, `bigint`
#[derive(Debug)]
pub(super) struct IntColumn {
    head: Head<Integers>,
    data: Stream<IntWriter>,
    fresh: Fresh,
    scratch: Vec<i64>,
}

/// Creates the integer streams of new stripes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fresh {
    signed: bool,
    version2: Option<crate::rle::Packing>,
}

impl Fresh {
    /// Integer streams in the version that belongs to the file's version.
    pub(super) fn new(signed: bool, plan: &Plan<'_>) -> Self {
        let version2 = (plan.direct() == EncodingKind::DirectV2).then_some(plan.options.packing);
        Self { signed, version2 }
    }

    /// Integer streams of version 2.
    pub(super) fn version2(signed: bool, plan: &Plan<'_>) -> Self {
        Self { signed, version2: Some(plan.options.packing) }
    }

    /// An empty stream.
    pub(super) fn stream(self) -> Stream<IntWriter> {
        Stream::new(match self.version2 {
            Some(packing) => IntWriter::v2(self.signed, packing),
            None => IntWriter::v1(self.signed),
        })
    }

    /// The encodings of columns with these streams, without and with a dictionary.
    pub(super) fn encodings(self) -> (EncodingKind, EncodingKind) {
        match self.version2 {
            Some(_) => (EncodingKind::DirectV2, EncodingKind::DictionaryV2),
            None => (EncodingKind::Direct, EncodingKind::Dictionary),
        }
    }
}

impl IntColumn {
    pub(super) fn new(column: u32, plan: &Plan<'_>) -> Self {
        let fresh = Fresh::new(true, plan);
        let head = Head::new(column, Integers::default(), plan);
        Self { head, data: fresh.stream(), fresh, scratch: Vec::new() }
    }
}

impl ColumnWriter for IntColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        let values = integers(self.head.column, &array, &mut self.scratch)?;
        self.head.add(array.nulls(), array.len(), context)?;
        self.head.statistics().add(values);
        if let Some(bloom) = &mut self.head.bloom {
            values.iter().for_each(|value| bloom.add(hash_long(*value)));
        }
        self.data.coder.write(values, &mut self.data.open);
        self.data.spill(&mut context.compressor)
    }

    one_stream!(|this: &Self| this.fresh.stream(), |this: &Self| this.fresh.encodings().0);
}

/// `date`
#[derive(Debug)]
pub(super) struct DateColumn {
    head: Head<Days>,
    data: Stream<IntWriter>,
    fresh: Fresh,
    scratch: Vec<i64>,
}

impl DateColumn {
    pub(super) fn new(column: u32, plan: &Plan<'_>) -> Self {
        let fresh = Fresh::new(true, plan);
        let head = Head::new(column, Days::default(), plan);
        Self { head, data: fresh.stream(), fresh, scratch: Vec::new() }
    }

    fn days(&mut self, array: &ArrayRef) -> Result<()> {
        const DAY: i64 = 86_400_000;
        match array.data_type() {
            DataType::Date32 => {
                let days = array.as_primitive::<Date32Type>();
                gather(days.values(), days.nulls(), &mut self.scratch, i64::from);
            }
            DataType::Date64 => {
                let millis = array.as_primitive::<Date64Type>();
                gather(millis.values(), millis.nulls(), &mut self.scratch, |millis| millis.div_euclid(DAY));
                if self.scratch.iter().any(|day| i32::try_from(*day).is_err()) {
                    return Err(Error::value(format!(
                        "column {}: a date is out of range for 32 bits",
                        self.head.column
                    )));
                }
            }
            _ => return Err(unexpected(self.head.column, array)),
        }
        Ok(())
    }
}

impl ColumnWriter for DateColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        self.days(&array)?;
        self.head.add(array.nulls(), array.len(), context)?;
        self.head.statistics().add(&self.scratch);
        if let Some(bloom) = &mut self.head.bloom {
            self.scratch.iter().for_each(|day| bloom.add(hash_long(*day)));
        }
        self.data.coder.write(&self.scratch, &mut self.data.open);
        self.data.spill(&mut context.compressor)
    }

    one_stream!(|this: &Self| this.fresh.stream(), |this: &Self| this.fresh.encodings().0);
}

/// `float`, `double`
#[derive(Debug)]
pub(super) struct FloatColumn {
    head: Head<Doubles>,
    data: Stream<Plain>,
    single: bool,
    scratch: Vec<f64>,
}

impl FloatColumn {
    pub(super) fn new(column: u32, single: bool, plan: &Plan<'_>) -> Self {
        let head = Head::new(column, Doubles::default(), plan);
        Self { head, data: Stream::new(Plain), single, scratch: Vec::new() }
    }

    /// Appends the bytes of the values, and keeps the values in the scratch buffer for statistics.
    fn values(&mut self, array: &ArrayRef) -> Result<()> {
        let open = &mut self.data.open;
        match array.data_type() {
            DataType::Float64 if !self.single => {
                let values = array.as_primitive::<Float64Type>();
                gather(values.values(), values.nulls(), &mut self.scratch, |value| value);
                open.extend(self.scratch.iter().flat_map(|value| value.to_le_bytes()));
            }
            DataType::Float32 if self.single => {
                let values = array.as_primitive::<Float32Type>();
                let mut dense = Vec::new();
                gather(values.values(), values.nulls(), &mut dense, |value| value);
                open.extend(dense.iter().flat_map(|value| value.to_le_bytes()));
                self.scratch.clear();
                self.scratch.extend(dense.iter().map(|value| f64::from(*value)));
            }
            DataType::Float16 if self.single => {
                let values = array.as_primitive::<Float16Type>();
                gather(values.values(), values.nulls(), &mut self.scratch, |value| value.to_f64());
                open.extend(self.scratch.iter().flat_map(|value| (*value as f32).to_le_bytes()));
            }
            _ => return Err(unexpected(self.head.column, array)),
        }
        Ok(())
    }
}

/// The bits of a double as in Java's `doubleToLongBits`, where all NaNs are equal.
fn java_bits(value: f64) -> i64 {
    if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() as i64 }
}

impl ColumnWriter for FloatColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        self.values(&array)?;
        self.head.add(array.nulls(), array.len(), context)?;
        self.head.statistics().add(&self.scratch);
        if let Some(bloom) = &mut self.head.bloom {
            self.scratch.iter().for_each(|value| bloom.add(hash_long(java_bits(*value))));
        }
        self.data.spill(&mut context.compressor)
    }

    one_stream!(|_: &Self| Stream::new(Plain), |_: &Self| EncodingKind::Direct);
}
