//! Which values are present: combines PRESENT streams with the parent's nulls, and spreads dense values over slots.

use std::sync::Arc;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};

use crate::error::{Error, Result};
use crate::rle::BooleanReader;
use crate::stream::{Context, Positions};

/// The row index positions of one column, by row group.
pub(crate) type ColumnPositions = Arc<Vec<Vec<u64>>>;

/// The slots for which a parent requests values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slots<'a> {
    /// Number of slots.
    pub count: usize,
    /// Which of them exist for the column (the parent is not null); `None` means all.
    pub mask: Option<&'a BooleanBuffer>,
}

impl Slots<'_> {
    /// This many slots, all present.
    pub(crate) fn all(count: usize) -> Self {
        Self { count, mask: None }
    }
}

/// Which slots hold a value.
#[derive(Debug)]
pub(crate) struct Validity {
    /// Number of all slots.
    pub slots: usize,
    /// The slots that hold a value; `None` means all.
    pub valid: Option<BooleanBuffer>,
    /// Number of slots that hold a value.
    pub present: usize,
}

impl Validity {
    /// The validity as an Arrow null buffer.
    pub(crate) fn nulls(&self) -> Option<NullBuffer> {
        self.valid.clone().map(NullBuffer::new)
    }

    /// Spreads dense values over all slots; a slot without a value gets `fill`.
    pub(crate) fn spread<T: Copy>(&self, dense: Vec<T>, fill: T) -> Vec<T> {
        match &self.valid {
            None => dense,
            Some(valid) => spread(&dense, valid, fill),
        }
    }
}

/// Spreads dense values over the slots whose bit is set. For words with both kinds of bits, the loop does not branch on
/// them.
fn spread<T: Copy>(dense: &[T], valid: &BooleanBuffer, fill: T) -> Vec<T> {
    let slots = valid.len();
    let mut out = Vec::with_capacity(slots + 64);
    let mut rest = dense;
    for word in valid.bit_chunks().iter_padded() {
        match (word, rest.split_at_checked(64)) {
            (u64::MAX, Some((values, later))) => {
                out.extend_from_slice(values);
                rest = later;
            }
            (0, _) => out.resize(out.len() + 64, fill),
            _ => {
                let mut next = 0;
                out.extend((0..64).map(|bit| {
                    let set = word >> bit & 1 == 1;
                    let value = rest.get(next).copied().unwrap_or(fill);
                    next += usize::from(set);
                    if set { value } else { fill }
                }));
                rest = rest.get(next..).unwrap_or_default();
            }
        }
    }
    out.truncate(slots);
    out
}

/// The part common to all columns: id, PRESENT stream, row-group positions.
#[derive(Debug)]
pub(crate) struct Head {
    /// The column id.
    pub column: u32,
    presence: Option<BooleanReader>,
    positions: Option<ColumnPositions>,
}

impl Head {
    /// The head of a column.
    pub(crate) fn new(column: u32, presence: Option<BooleanReader>, positions: Option<ColumnPositions>) -> Self {
        Self { column, presence, positions }
    }

    /// Reads which of the slots hold a value.
    pub(crate) fn validity(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<Validity> {
        let count = slots.count;
        let existing = slots.mask.map_or(count, BooleanBuffer::count_set_bits);
        let Some(presence) = &mut self.presence else {
            return Ok(Validity { slots: count, valid: slots.mask.cloned(), present: existing });
        };
        let own = presence.read(existing, context)?;
        let present = own.count_set_bits();
        if present == count {
            return Ok(Validity { slots: count, valid: None, present });
        }
        let valid = match slots.mask {
            None => own,
            Some(mask) => deposit(&own, mask),
        };
        Ok(Validity { slots: count, valid: Some(valid), present })
    }

    /// Skips rows; returns how many of them hold a value.
    pub(crate) fn skip(&mut self, rows: usize, context: &mut Context) -> Result<usize> {
        /// Rows per step, which bounds the memory of their bits.
        const STEP: usize = 1 << 16;
        let Some(presence) = &mut self.presence else { return Ok(rows) };
        let (mut left, mut present) = (rows, 0);
        while left > 0 {
            let step = left.min(STEP);
            present += presence.read(step, context)?.count_set_bits();
            left -= step;
        }
        Ok(present)
    }

    /// Seeks PRESENT to a row group, and calls `rest` with the positions of the column's other streams.
    pub(crate) fn seek<T>(
        &mut self,
        group: usize,
        context: &mut Context,
        rest: impl FnOnce(&mut Positions<'_>, &mut Context) -> Result<T>,
    ) -> Result<T> {
        let place = || format!("column {} ROW_INDEX", self.column);
        let entries = self.positions.clone().ok_or_else(|| Error::corrupt(place(), "missing"))?;
        let entry = entries.get(group).ok_or_else(|| Error::corrupt(place(), format!("has no group {group}")))?;
        let mut positions = Positions::new(entry);
        if let Some(presence) = &mut self.presence {
            presence.seek(&mut positions, context)?;
        }
        rest(&mut positions, context)
    }
}

/// Puts the bits of `own`, in order, where the bits of `mask` are set; all other bits are unset.
fn deposit(own: &BooleanBuffer, mask: &BooleanBuffer) -> BooleanBuffer {
    let mut out = BooleanBufferBuilder::new(mask.len());
    let mut own = own.iter();
    for exists in mask.iter() {
        out.append(exists && own.next().unwrap_or(false));
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spread_over_set_bits_only() {
        let bits: Vec<bool> = (0..777).map(|slot| slot < 70 || slot % 3 == 0 && !(200..400).contains(&slot)).collect();
        let valid = BooleanBuffer::from(bits.clone());
        let dense: Vec<i32> = (1..=valid.count_set_bits() as i32).collect();
        let mut next = 0;
        let expected: Vec<i32> = bits
            .iter()
            .map(|bit| {
                if *bit {
                    next += 1;
                    next
                } else {
                    -1
                }
            })
            .collect();
        assert_eq!(spread(&dense, &valid, -1), expected);
        assert_eq!(spread(&dense, &valid.slice(0, 9), -1), expected[..9]);
    }
}
