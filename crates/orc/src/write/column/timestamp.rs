//! Both kinds of timestamps ("Timestamp Columns"; docs/orc-pitfalls.md, "Timestamps").
//!
//! DATA holds seconds since 2015-01-01 in the writer's zone (for instants, in UTC). Before 1970 they are truncated
//! toward zero if the fraction is at least a millisecond, as other writers do. SECONDARY holds the nanoseconds, with
//! their trailing zeros stored as a count.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

use super::head::{Head, encoding};
use super::number::Fresh;
use super::writer::{ColumnWriter, Plan, gather, plain, unexpected};
use crate::column::TIMESTAMP_BASE;
use crate::error::{Error, Result};
use crate::predicate::hash_long;
use crate::proto::{ColumnStatistics, StreamKind};
use crate::rle::{IntWriter, nanos_to_secondary};
use crate::types::{Kind, TypeDescription};
use crate::write::options::LastSecond;
use crate::write::statistics::Instants;
use crate::write::stream::{Context, Stream};
use crate::write::stripe::StripeWriter;
use crate::zone::Zone;

const NANOS: i64 = 1_000_000_000;
/// Minimum nanoseconds for which seconds before 1970 are truncated toward zero; readers then subtract a second.
const CUT_FROM: i64 = 1_000_000;

/// `timestamp`, `timestamp with local time zone`
#[derive(Debug)]
pub(super) struct TimestampColumn {
    head: Head<Instants>,
    seconds: Stream<IntWriter>,
    nanos: Stream<IntWriter>,
    fresh: (Fresh, Fresh),
    zone: Zone,
    last_second: LastSecond,
    ticks: Vec<i64>,
    fractions: Vec<i64>,
}

impl TimestampColumn {
    pub(super) fn new(node: &TypeDescription, plan: &Plan<'_>) -> Self {
        let fresh = (Fresh::new(true, plan), Fresh::new(false, plan));
        let instant = node.kind == Kind::TimestampInstant;
        Self {
            head: Head::new(node.column, Instants::default(), plan),
            seconds: fresh.0.stream(),
            nanos: fresh.1.stream(),
            fresh,
            zone: if instant { Zone::fixed(0) } else { plan.zone.clone() },
            last_second: plan.options.last_second,
            ticks: Vec::new(),
            fractions: Vec::new(),
        }
    }

    /// Adds the ticks that are not null; returns the number of ticks per second.
    fn take(&mut self, array: &ArrayRef) -> Result<i64> {
        let ticks = &mut self.ticks;
        match array.data_type() {
            DataType::Timestamp(TimeUnit::Second, _) => {
                let array = array.as_primitive::<TimestampSecondType>();
                gather(array.values(), array.nulls(), ticks, |tick| tick);
                Ok(1)
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                let array = array.as_primitive::<TimestampMillisecondType>();
                gather(array.values(), array.nulls(), ticks, |tick| tick);
                Ok(1_000)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                let array = array.as_primitive::<TimestampMicrosecondType>();
                gather(array.values(), array.nulls(), ticks, |tick| tick);
                Ok(1_000_000)
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                let array = array.as_primitive::<TimestampNanosecondType>();
                gather(array.values(), array.nulls(), ticks, |tick| tick);
                Ok(NANOS)
            }
            _ => Err(unexpected(self.head.column, array)),
        }
    }

    /// Converts ticks to their stored form: seconds in place, and nanoseconds in a second buffer.
    fn store(&mut self, per_second: i64) -> Result<()> {
        /// Maximum seconds, so that adding offsets and the base cannot overflow.
        const MOST: i64 = i64::MAX / 4;
        let per_tick = NANOS / per_second;
        let base = TIMESTAMP_BASE - self.zone.offset_of_wall(TIMESTAMP_BASE);
        let mut walls = self.zone.walls();
        let (mut first, mut last) = ((i64::MAX, 0), (i64::MIN, 0));
        self.fractions.clear();
        for tick in &mut self.ticks {
            let (mut wall, mut nano) = (tick.div_euclid(per_second), tick.rem_euclid(per_second) * per_tick);
            if !(-MOST..=MOST).contains(&wall) {
                let column = self.head.column;
                return Err(Error::value(format!("column {column}: a timestamp of {wall} seconds is out of range")));
            }
            let mut instant = wall - walls.offset(wall);
            if instant == -1 && nano >= CUT_FROM {
                if self.last_second == LastSecond::Refuse {
                    let column = self.head.column;
                    return Err(Error::value(format!(
                        "column {column}: ORC cannot hold a timestamp in the last second before 1970"
                    )));
                }
                let up = i64::from(nano >= NANOS / 2);
                (wall, instant, nano) = (wall + up, instant + up, 0);
            }
            first = first.min((wall, nano));
            last = last.max((wall, nano));
            if let Some(bloom) = &mut self.head.bloom {
                bloom.add(hash_long(wall.saturating_mul(1000).saturating_add(nano / 1_000_000)));
            }
            *tick = instant + i64::from(instant < 0 && nano >= CUT_FROM) - base;
            self.fractions.push(nanos_to_secondary(nano as u32) as i64);
        }
        if !self.ticks.is_empty() {
            self.head.statistics().add(first, last);
        }
        Ok(())
    }
}

impl ColumnWriter for TimestampColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        let per_second = self.take(&array)?;
        self.head.add(array.nulls(), array.len(), context)?;
        self.store(per_second)?;
        self.seconds.coder.write(&self.ticks, &mut self.seconds.open);
        self.nanos.coder.write(&self.fractions, &mut self.nanos.open);
        self.seconds.spill(&mut context.compressor)?;
        self.nanos.spill(&mut context.compressor)
    }

    fn begin_group(&mut self, context: &Context) {
        self.head.begin_group(context);
        self.seconds.mark(&context.compressor);
        self.nanos.mark(&context.compressor);
    }

    fn end_group(&mut self, _: &mut Context) -> Result<()> {
        self.head.end_group();
        Ok(())
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        let compressor = &mut stripe.context.compressor;
        let seconds = std::mem::replace(&mut self.seconds, self.fresh.0.stream()).finish(compressor)?;
        let nanos = std::mem::replace(&mut self.nanos, self.fresh.1.stream()).finish(compressor)?;
        let streams = vec![(StreamKind::Data, seconds), (StreamKind::Secondary, nanos)];
        self.head.finish(encoding(self.fresh.0.encodings().0), streams, Vec::new(), stripe)
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.head.file_statistics());
    }

    fn memory(&self) -> usize {
        self.head.memory() + self.seconds.memory() + self.nanos.memory()
    }
}
