//! Decimals: varints, each with its own scale; in file version 2, up to 18 digits, plain integers.

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array};

use super::ColumnReader;
use super::presence::{Head, Slots, Validity};
use crate::error::{Error, Result};
use crate::rle::{IntReader, read_short_varints, read_varint128, unzigzag, unzigzag128};
use crate::stream::{ByteStream, Context};

/// Bytes of the longest varint of 128 bits.
const MAX_VARINT: usize = 19;

/// Values per block; the scales of a block decide whether its values take the fast path.
const BLOCK: usize = 512;

/// The powers of ten that fit 128 signed bits.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const POWERS: [i128; 39] = {
    let mut powers = [1i128; 39];
    let mut index = 1;
    while index < 39 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// The powers of ten up to 10^17, which fit 60 bits.
#[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
const SHORT_POWERS: [i64; 18] = {
    let mut powers = [1i64; 18];
    let mut index = 1;
    while index < 18 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// Ten to a power.
pub(crate) fn power_of_ten(exponent: usize) -> Option<i128> {
    POWERS.get(exponent).copied()
}

fn array(head: &Head, values: Vec<i128>, validity: &Validity, precision: u8, scale: u8) -> Result<ArrayRef> {
    let bound = power_of_ten(usize::from(precision)).unwrap_or(i128::MAX).unsigned_abs();
    // The OR of all magnitudes is at least the largest one, so single values are compared only if it reaches the bound.
    // `value ^ (value >> 127)` is one less than the magnitude of a negative value, hence `bound - 1`.
    let all = values.iter().fold(0, |all, value| all | (value ^ (value >> 127)));
    let fits = all.unsigned_abs() < bound - 1 || values.iter().all(|value| value.unsigned_abs() < bound);
    if !fits {
        return Err(Error::value(format!("column {}: a value has more than {precision} digits", head.column)));
    }
    let array = Decimal128Array::new(validity.spread(values, 0).into(), validity.nulls());
    Ok(Arc::new(array.with_precision_and_scale(precision, scale as i8)?))
}

/// Varints in DATA, scales in SECONDARY.
#[derive(Debug)]
pub(super) struct DecimalColumn {
    head: Head,
    data: ByteStream,
    scales: IntReader,
    precision: u8,
    scale: u8,
    scratch: Vec<i64>,
    stored: Vec<u64>,
}

impl DecimalColumn {
    pub(super) fn new(head: Head, data: ByteStream, scales: IntReader, precision: u8, scale: u8) -> Self {
        Self { head, data, scales, precision, scale, scratch: Vec::new(), stored: Vec::new() }
    }

    /// Reads the next values and converts them to the type's scale; `scratch` holds their stored scales.
    fn values(&mut self, context: &mut Context) -> Result<Vec<i128>> {
        let mut values = Vec::with_capacity(self.scratch.len());
        let scales = std::mem::take(&mut self.scratch);
        for scales in scales.chunks(BLOCK) {
            let until = values.len() + scales.len();
            let steps = scale_steps(scales, self.scale);
            while values.len() < until {
                let left = until - values.len();
                let scales = scales.get(scales.len() - left..).unwrap_or_default();
                self.data.fill(MAX_VARINT, context)?;
                let window = self.data.window();
                let mut used = 0;
                if let Some(steps) = steps {
                    self.stored.clear();
                    used = read_short_varints(window, left, &mut self.stored);
                    append(&self.stored, scales, self.scale, steps, &mut values);
                }
                // The slow path reads the value at which the fast path stopped: it is long, near the end of the window,
                // or the scales of its block are not suitable.
                if values.len() < until {
                    let rest = window.get(used..).unwrap_or_default();
                    let stored = scales.get(scales.len() - (until - values.len())).copied().unwrap_or_default();
                    if let Some((value, length)) = read_varint128(rest) {
                        values.push(self.rescale(unzigzag128(value), stored)?);
                        used += length;
                    }
                }
                if used == 0 {
                    return Err(self.data.corrupt("a decimal is truncated, or longer than 128 bits"));
                }
                self.data.consume(used);
            }
        }
        self.scratch = scales;
        Ok(values)
    }

    /// Converts a value from its stored scale to the type's.
    fn rescale(&self, value: i128, stored: i64) -> Result<i128> {
        let fail = |message: String| Error::value(format!("column {}: {message}", self.head.column));
        let step = i64::from(self.scale).wrapping_sub(stored);
        let power = usize::try_from(step.unsigned_abs()).ok().filter(|_| stored >= 0).and_then(power_of_ten);
        let Some(power) = power else {
            return Err(fail(format!("invalid scale {stored}")));
        };
        if step >= 0 {
            return value.checked_mul(power).ok_or_else(|| fail("a decimal has more than 38 digits".to_owned()));
        }
        if value % power != 0 {
            return Err(fail(format!("a decimal has {stored} digits after the point, more than {}", self.scale)));
        }
        Ok(value / power)
    }
}

/// The smallest and largest exponent that converts the stored scales to the type's; `None` if [`SHORT_POWERS`] lacks
/// one of them.
fn scale_steps(scales: &[i64], wanted: u8) -> Option<(usize, usize)> {
    let (least, most) =
        scales.iter().fold((i64::MAX, i64::MIN), |(least, most), scale| (least.min(*scale), most.max(*scale)));
    let wanted = i64::from(wanted);
    let short = least >= 0 && most <= wanted && wanted - least < SHORT_POWERS.len() as i64;
    short.then_some(((wanted - most) as usize, (wanted - least) as usize))
}

/// Appends stored values of at most eight bytes, converted to the type's scale. The product cannot overflow: 56 bits
/// times 60 bits fit 128.
fn append(stored: &[u64], scales: &[i64], wanted: u8, steps: (usize, usize), values: &mut Vec<i128>) {
    match steps {
        (0, 0) => values.extend(stored.iter().map(|value| i128::from(unzigzag(*value)))),
        _ => values.extend(stored.iter().zip(scales).map(|(value, scale)| {
            let power = SHORT_POWERS.get(i64::from(wanted).wrapping_sub(*scale) as usize).copied().unwrap_or(1);
            i128::from(unzigzag(*value)) * i128::from(power)
        })),
    }
}

impl ColumnReader for DecimalColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        self.scales.read_vec(validity.present, &mut self.scratch, context)?;
        let values = self.values(context)?;
        array(&self.head, values, &validity, self.precision, self.scale)
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let mut present = self.head.skip(rows, context)?;
        self.scales.skip(present, context)?;
        while present > 0 {
            let window = self.data.need(1, context)?;
            let mut used = 0;
            for byte in window {
                used += 1;
                present -= usize::from(*byte < 0x80);
                if present == 0 {
                    break;
                }
            }
            self.data.consume(used);
        }
        Ok(())
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| {
            self.data.seek(positions)?;
            self.scales.seek(positions, context)
        })
    }
}

/// Short decimals of file version 2: unscaled values as run-length integers.
#[derive(Debug)]
pub(super) struct ShortDecimalColumn {
    head: Head,
    data: IntReader,
    precision: u8,
    scale: u8,
    scratch: Vec<i64>,
}

impl ShortDecimalColumn {
    pub(super) fn new(head: Head, data: IntReader, precision: u8, scale: u8) -> Self {
        Self { head, data, precision, scale, scratch: Vec::new() }
    }
}

impl ColumnReader for ShortDecimalColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        self.data.read_vec(validity.present, &mut self.scratch, context)?;
        let values = self.scratch.iter().map(|value| i128::from(*value)).collect();
        array(&self.head, values, &validity, self.precision, self.scale)
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.data.skip(present, context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| self.data.seek(positions, context))
    }
}
