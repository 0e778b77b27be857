//! Decimals: varints, each with its own scale; in file version 2, up to 18 digits, plain integers.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::head::{Head, encoding};
use super::number::{Fresh, one_stream};
use super::writer::{ColumnWriter, Plan, gather, plain, unexpected};
use crate::column::power_of_ten;
use crate::error::{Error, Result};
use crate::predicate::{decimal_text, hash_bytes, hash_long};
use crate::proto::{ColumnStatistics, EncodingKind, StreamKind};
use crate::rle::{IntWriter, write_varint64, write_varint128, zigzag, zigzag128};
use crate::types::MAX_SHORT_PRECISION;
use crate::write::statistics::Decimals;
use crate::write::stream::{Context, Plain, Stream};
use crate::write::stripe::StripeWriter;

/// The values that are not null: 64-bit integers if the precision of the type allows, otherwise 128-bit integers.
#[derive(Debug)]
struct UnscaledValues {
    column: u32,
    precision: u8,
    short: Vec<i64>,
    long: Vec<i128>,
}

impl UnscaledValues {
    fn new(column: u32, precision: u8) -> Self {
        Self { column, precision, short: Vec::new(), long: Vec::new() }
    }

    fn is_short(&self) -> bool {
        self.precision <= MAX_SHORT_PRECISION
    }

    /// Adds the values of an array. A value with more digits than the type allows is an error.
    fn take(&mut self, array: &ArrayRef) -> Result<()> {
        let Self { short, long, .. } = self;
        let bound = power_of_ten(usize::from(self.precision)).unwrap_or(i128::MAX).unsigned_abs();
        let fits = match array.data_type() {
            DataType::Decimal32(..) => {
                let values = array.as_primitive::<Decimal32Type>();
                gather(values.values(), values.nulls(), short, i64::from);
                short.iter().all(|value| u128::from(value.unsigned_abs()) < bound)
            }
            DataType::Decimal64(..) => {
                let values = array.as_primitive::<Decimal64Type>();
                gather(values.values(), values.nulls(), short, |value| value);
                short.iter().all(|value| u128::from(value.unsigned_abs()) < bound)
            }
            DataType::Decimal128(..) if self.precision <= MAX_SHORT_PRECISION => {
                let values = array.as_primitive::<Decimal128Type>();
                // Truncation to 64 bits changes a value that does not fit.
                let mut fits = true;
                let bound = bound as i64;
                gather(values.values(), values.nulls(), short, |value| value as i64);
                match values.nulls().filter(|nulls| nulls.null_count() > 0) {
                    None => {
                        for value in values.values() {
                            let cut = *value as i64;
                            fits &= i128::from(cut) == *value && cut < bound && cut > -bound;
                        }
                    }
                    Some(nulls) => {
                        let there = nulls.valid_indices().filter_map(|index| values.values().get(index));
                        fits = there.into_iter().all(|value| value.unsigned_abs() < bound.unsigned_abs().into());
                    }
                }
                fits
            }
            DataType::Decimal128(..) => {
                let values = array.as_primitive::<Decimal128Type>();
                gather(values.values(), values.nulls(), long, |value| value);
                long.iter().all(|value| value.unsigned_abs() < bound)
            }
            _ => return Err(unexpected(self.column, array)),
        };
        if !fits {
            let Self { column, precision, .. } = self;
            return Err(Error::value(format!("column {column}: a decimal has more than {precision} digits")));
        }
        Ok(())
    }

    fn add_to(&self, statistics: &mut Decimals) {
        if self.is_short() { statistics.add_short(&self.short) } else { statistics.add(&self.long) }
    }
}

/// Varints in DATA, scales in SECONDARY. The scale is always that of the type, which takes almost no bytes; orc-core
/// removes trailing zeros, and then needs bytes for the scales.
#[derive(Debug)]
pub(super) struct DecimalColumn {
    head: Head<Decimals>,
    data: Stream<Plain>,
    scales: Stream<IntWriter>,
    fresh: Fresh,
    scale: u8,
    values: UnscaledValues,
    scratch: Vec<i64>,
}

impl DecimalColumn {
    pub(super) fn new(column: u32, precision: u8, scale: u8, plan: &Plan<'_>) -> Self {
        let fresh = Fresh::new(true, plan);
        Self {
            head: Head::new(column, Decimals::new(scale), plan),
            data: Stream::new(Plain),
            scales: fresh.stream(),
            fresh,
            scale,
            values: UnscaledValues::new(column, precision),
            scratch: Vec::new(),
        }
    }
}

impl ColumnWriter for DecimalColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        self.values.take(&array)?;
        self.head.add(array.nulls(), array.len(), context)?;
        self.values.add_to(self.head.statistics());
        let open = &mut self.data.open;
        let count = if self.values.is_short() {
            self.values.short.iter().for_each(|value| write_varint64(zigzag(*value), open));
            self.values.short.len()
        } else {
            self.values.long.iter().for_each(|value| write_varint128(zigzag128(*value), open));
            self.values.long.len()
        };
        if let Some(bloom) = &mut self.head.bloom {
            let mut add = |value: i128| bloom.add(hash_bytes(decimal_text(value, self.scale).as_bytes()));
            self.values.short.iter().for_each(|value| add(i128::from(*value)));
            self.values.long.iter().for_each(|value| add(*value));
        }
        self.scratch.clear();
        self.scratch.resize(count, i64::from(self.scale));
        self.scales.coder.write(&self.scratch, &mut self.scales.open);
        self.scales.spill(&mut context.compressor)?;
        self.data.spill(&mut context.compressor)
    }

    fn begin_group(&mut self, context: &Context) {
        self.head.begin_group(context);
        self.data.mark(&context.compressor);
        self.scales.mark(&context.compressor);
    }

    fn end_group(&mut self, _: &mut Context) -> Result<()> {
        self.head.end_group();
        Ok(())
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        let compressor = &mut stripe.context.compressor;
        let data = std::mem::replace(&mut self.data, Stream::new(Plain)).finish(compressor)?;
        let scales = std::mem::replace(&mut self.scales, self.fresh.stream()).finish(compressor)?;
        let streams = vec![(StreamKind::Data, data), (StreamKind::Secondary, scales)];
        self.head.finish(encoding(self.fresh.encodings().0), streams, Vec::new(), stripe)
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.head.file_statistics());
    }

    fn memory(&self) -> usize {
        self.head.memory() + self.data.memory() + self.scales.memory()
    }
}

/// Short decimals of file version 2: unscaled values as run-length integers.
#[derive(Debug)]
pub(super) struct ShortDecimalColumn {
    head: Head<Decimals>,
    data: Stream<IntWriter>,
    fresh: Fresh,
    values: UnscaledValues,
}

impl ShortDecimalColumn {
    pub(super) fn new(column: u32, precision: u8, scale: u8, plan: &Plan<'_>) -> Self {
        let fresh = Fresh::version2(true, plan);
        let head = Head::new(column, Decimals::new(scale), plan);
        Self { head, data: fresh.stream(), fresh, values: UnscaledValues::new(column, precision) }
    }
}

impl ColumnWriter for ShortDecimalColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        self.values.take(&array)?;
        self.head.add(array.nulls(), array.len(), context)?;
        self.values.add_to(self.head.statistics());
        if let Some(bloom) = &mut self.head.bloom {
            self.values.short.iter().for_each(|value| bloom.add(hash_long(*value)));
        }
        self.data.coder.write(&self.values.short, &mut self.data.open);
        self.data.spill(&mut context.compressor)
    }

    one_stream!(|this: &Self| this.fresh.stream(), |_: &Self| EncodingKind::Direct);
}
