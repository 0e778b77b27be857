//! Both kinds of timestamps ("Timestamp Columns"; docs/orc-pitfalls.md, "Timestamps").
//!
//! DATA holds seconds since 2015-01-01 in the writer's zone (for instants, in UTC), SECONDARY the nanoseconds, with
//! their trailing zeros stored as a count. Writers truncate seconds toward zero, so a second is subtracted before 1970.

use std::sync::Arc;

use arrow_array::types::{
    ArrowTimestampType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{ArrayRef, Decimal128Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};

use super::ColumnReader;
use super::presence::{Head, Slots};
use crate::calendar;
use crate::error::{Error, Result};
use crate::rle::IntReader;
use crate::stream::Context;
use crate::types::{OutOfRange, TimeUnit};
use crate::zone::Zone;

/// 2015-01-01 00:00:00 UTC.
pub(crate) const BASE: i64 = 1_420_070_400;
const NANOS: i64 = 1_000_000_000;
/// Minimum nanoseconds for which a second is subtracted before 1970; with fewer, the writer has already rounded down.
const CUT_FROM: i64 = 1_000_000;

/// The rules by which stored numbers are converted to Arrow values.
#[derive(Debug)]
pub(super) struct TimestampRules {
    pub zone: Arc<Zone>,
    pub unit: TimeUnit,
    /// Whether the values are nanoseconds in a decimal of 128 bits, and not times in that unit.
    pub exact: bool,
    pub out_of_range: OutOfRange,
    pub from_julian: bool,
    pub instant: bool,
}

/// `timestamp`, `timestamp with local time zone`
#[derive(Debug)]
pub(super) struct TimestampColumn {
    head: Head,
    seconds: IntReader,
    nanos: IntReader,
    rules: TimestampRules,
    scratch: (Vec<i64>, Vec<i64>),
}

impl TimestampColumn {
    pub(super) fn new(head: Head, seconds: IntReader, nanos: IntReader, rules: TimestampRules) -> Self {
        Self { head, seconds, nanos, rules, scratch: (Vec::new(), Vec::new()) }
    }

    /// Converts the numbers in `scratch` to local times: seconds since 1970 and nanoseconds from 0.
    fn clocks(&mut self) -> Result<()> {
        let (seconds, nanos) = (&mut self.scratch.0, &mut self.scratch.1);
        if !decode_nanos(nanos) {
            return Err(self.nanos.corrupt("nanoseconds of a second or more"));
        }
        let zone = &self.rules.zone;
        let base = BASE - zone.offset_of_wall(BASE);
        let mut near = zone.cursor();
        for (second, nano) in seconds.iter_mut().zip(nanos.iter_mut()) {
            let mut instant = second.wrapping_add(base);
            instant = instant.wrapping_sub(i64::from(instant < 0 && *nano >= CUT_FROM));
            // pyarrow writes negative nanoseconds, which are simply added.
            let negative = *nano < 0;
            instant = instant.wrapping_sub(i64::from(negative));
            *nano += if negative { NANOS } else { 0 };
            *second = instant.wrapping_add(near.offset(instant));
        }
        if self.rules.from_julian {
            seconds.iter_mut().for_each(|second| *second = calendar::second_from_julian(*second));
        }
        Ok(())
    }

    fn build<T: ArrowTimestampType>(
        &mut self,
        slots: Slots<'_>,
        per_second: i64,
        context: &mut Context,
    ) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        self.seconds.read_vec(validity.present, &mut self.scratch.0, context)?;
        self.nanos.read_vec(validity.present, &mut self.scratch.1, context)?;
        self.clocks()?;
        let (seconds, nanos) = (&self.scratch.0, &self.scratch.1);
        let per_tick = NANOS / per_second;
        let tick = |second: i64, nano: i64| second.wrapping_mul(per_second).wrapping_add(nano / per_tick);
        let values: Vec<i64> = seconds.iter().zip(nanos).map(|(second, nano)| tick(*second, *nano)).collect();
        let (least, most) = (i64::MIN / per_second + 1, i64::MAX / per_second - 1);
        let fits = seconds.iter().fold(true, |fits, second| fits & (*second >= least) & (*second <= most));
        let (values, lost) = if fits { (values, None) } else { self.exact_ticks(per_second)? };
        let values = validity.spread(values, 0);
        let nulls = match lost {
            None => validity.nulls(),
            Some(lost) => {
                let kept = BooleanBuffer::from_iter(validity.spread(lost, false).into_iter().map(|lost| !lost));
                NullBuffer::union(validity.nulls().as_ref(), Some(&NullBuffer::new(kept)))
            }
        };
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Ok(Arc::new(array.with_timezone_opt(self.rules.instant.then_some("UTC"))))
    }

    fn build_exact(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        self.seconds.read_vec(validity.present, &mut self.scratch.0, context)?;
        self.nanos.read_vec(validity.present, &mut self.scratch.1, context)?;
        self.clocks()?;
        let exact = |(second, nano): (&i64, &i64)| i128::from(*second) * i128::from(NANOS) + i128::from(*nano);
        let values: Vec<i128> = self.scratch.0.iter().zip(&self.scratch.1).map(exact).collect();
        let array = Decimal128Array::new(validity.spread(values, 0).into(), validity.nulls());
        Ok(Arc::new(array.with_precision_and_scale(38, 9)?))
    }

    /// The slow path for seconds that may not fit the unit: checks each value and applies [`OutOfRange`]. Also returns
    /// which values become null.
    fn exact_ticks(&self, per_second: i64) -> Result<(Vec<i64>, Option<Vec<bool>>)> {
        let (seconds, nanos) = (&self.scratch.0, &self.scratch.1);
        let mut lost = vec![false; seconds.len()];
        let mut values = Vec::with_capacity(seconds.len());
        for ((second, nano), lost) in seconds.iter().zip(nanos).zip(&mut lost) {
            let exact = i128::from(*second) * i128::from(per_second) + i128::from(*nano / (NANOS / per_second));
            values.push(match (i64::try_from(exact), self.rules.out_of_range) {
                (Ok(value), _) => value,
                (Err(_), OutOfRange::Saturate) if exact < 0 => i64::MIN,
                (Err(_), OutOfRange::Saturate) => i64::MAX,
                (Err(_), OutOfRange::Null) => {
                    *lost = true;
                    0
                }
                (Err(_), OutOfRange::Error) => {
                    let unit = format!("{:?}s", self.rules.unit).to_lowercase();
                    return Err(Error::value(format!(
                        "column {}: a timestamp is out of range for {unit}: use a coarser timestamp_unit, or set \
                         out_of_range to null or saturate",
                        self.head.column
                    )));
                }
            });
        }
        Ok((values, (self.rules.out_of_range == OutOfRange::Null).then_some(lost)))
    }
}

/// Restores the trailing zeros: the low three bits are their number minus one, or 0 for none. Returns false if a value
/// is a second or more.
fn decode_nanos(nanos: &mut [i64]) -> bool {
    const ZEROS: [i64; 8] = [1, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
    let mut fits = true;
    for nano in nanos {
        let power = ZEROS.get((*nano & 7) as usize).copied().unwrap_or(1);
        *nano = (*nano >> 3).wrapping_mul(power);
        fits &= (*nano < NANOS) & (*nano > -NANOS);
    }
    fits
}

impl ColumnReader for TimestampColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        if self.rules.exact {
            return self.build_exact(slots, context);
        }
        match self.rules.unit {
            TimeUnit::Second => self.build::<TimestampSecondType>(slots, 1, context),
            TimeUnit::Millisecond => self.build::<TimestampMillisecondType>(slots, 1_000, context),
            TimeUnit::Microsecond => self.build::<TimestampMicrosecondType>(slots, 1_000_000, context),
            TimeUnit::Nanosecond => self.build::<TimestampNanosecondType>(slots, NANOS, context),
        }
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.seconds.skip(present, context)?;
        self.nanos.skip(present, context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| {
            self.seconds.seek(positions, context)?;
            self.nanos.seek(positions, context)
        })
    }
}
