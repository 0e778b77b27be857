//! Integers, version 2 ("Integer Run Length Encoding, version 2"): splits values into runs and encodes them.

use super::pack::pack;
use super::plan::{Packing, Plan, Planner};
use crate::rle::int2::MAX_RUN;
use crate::rle::varint::{write_varint64, zigzag};
use crate::rle::{WIDTHS, closest_width};

/// Minimum number of equal values for a run of their own.
const MIN_REPEAT: usize = 3;
/// Maximum length of a short repeat; more equal values are a delta run with difference 0.
const MAX_SHORT_REPEAT: usize = 10;

/// Writes an integer stream of version 2.
#[derive(Debug)]
pub struct IntWriter2 {
    signed: bool,
    literals: Box<[i64; MAX_RUN]>,
    /// The number of pending values; while they are all equal, only the first is kept.
    taken: usize,
    equal: bool,
    planner: Planner,
}

impl IntWriter2 {
    /// A writer of signed or unsigned values.
    pub fn new(signed: bool, packing: Packing) -> Self {
        let (literals, planner) = (Box::new([0; MAX_RUN]), Planner::new(signed, packing));
        Self { signed, literals, taken: 0, equal: true, planner }
    }

    /// Adds values, and appends the complete runs to `out`.
    pub fn write(&mut self, mut values: &[i64], out: &mut Vec<u8>) {
        while !values.is_empty() {
            let used = if self.equal { self.extend_equal(values, out) } else { self.extend_mixed(values, out) };
            values = values.get(used..).unwrap_or_default();
        }
    }

    /// The number of values added but not yet appended.
    pub fn pending(&self) -> usize {
        self.taken
    }

    /// Appends the pending values, and resets the writer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match (self.equal, self.taken) {
            (_, 0) => {}
            (true, MIN_REPEAT..) => self.append_equal(out),
            (true, taken) => {
                let first = self.first();
                self.literals.iter_mut().take(taken).for_each(|slot| *slot = first);
                self.append_mixed(taken, out);
            }
            (false, taken) => self.append_mixed(taken, out),
        }
        (self.taken, self.equal) = (0, true);
    }

    fn first(&self) -> i64 {
        let [first, ..] = self.literals.as_ref();
        *first
    }

    fn set_first(&mut self, value: i64) {
        let [first, ..] = self.literals.as_mut();
        *first = value;
    }

    /// Adds values while they are all equal.
    fn extend_equal(&mut self, values: &[i64], out: &mut Vec<u8>) -> usize {
        let first = match (self.taken, values) {
            (0, [first, ..]) => *first,
            _ => self.first(),
        };
        let most = MAX_RUN - self.taken;
        let same = values.iter().take(most).take_while(|value| **value == first).count();
        self.set_first(first);
        self.taken += same;
        if self.taken == MAX_RUN {
            self.finish(out);
        } else if same < values.len() {
            // A different value follows. It ends a run of equal values, or starts a mixed run with the one or two
            // before.
            if self.taken >= MIN_REPEAT {
                self.finish(out);
            } else {
                let [_, second, ..] = self.literals.as_mut();
                *second = first;
                self.equal = false;
            }
        }
        same
    }

    /// Adds values up to the maximum length of a run, or up to the third of three equal ones, which start a run of
    /// their own.
    fn extend_mixed(&mut self, values: &[i64], out: &mut Vec<u8>) -> usize {
        let start = self.taken;
        let step = values.len().min(MAX_RUN - start);
        let end = start + step;
        let (Some(room), Some(values)) = (self.literals.get_mut(start..end), values.get(..step)) else { return step };
        room.copy_from_slice(values);
        let from = start.saturating_sub(MIN_REPEAT - 1);
        let repeat = first_repeat(self.literals.get(from..end).unwrap_or_default()).map(|at| from + at);
        let Some(repeat) = repeat else {
            self.taken = end;
            if end == MAX_RUN {
                self.finish(out);
            }
            return step;
        };
        self.append_mixed(repeat, out);
        self.set_first(self.literals.get(repeat).copied().unwrap_or_default());
        (self.taken, self.equal) = (MIN_REPEAT, true);
        repeat + MIN_REPEAT - start
    }

    fn append_equal(&self, out: &mut Vec<u8>) {
        let value = self.first();
        if self.taken > MAX_SHORT_REPEAT {
            return self.append_delta_head(0, self.taken, 0, out);
        }
        let word = self.stored(value);
        let bytes = closest_width(64 - word.leading_zeros() as usize).div_ceil(8);
        out.push(((bytes - 1) << 3 | (self.taken - MIN_REPEAT)) as u8);
        out.extend_from_slice(word.to_be_bytes().get(8 - bytes..).unwrap_or_default());
    }

    /// Appends the start of a delta run: header, base and first difference. Width 0 means that all differences equal
    /// the first.
    fn append_delta_head(&self, width: usize, length: usize, step: i64, out: &mut Vec<u8>) {
        let code = if width == 0 { 0 } else { code_of(width) };
        out.extend_from_slice(&head(3, code, length));
        write_varint64(self.stored(self.first()), out);
        write_varint64(zigzag(step), out);
    }

    fn stored(&self, value: i64) -> u64 {
        if self.signed { zigzag(value) } else { value as u64 }
    }

    fn append_mixed(&mut self, count: usize, out: &mut Vec<u8>) {
        let literals = self.literals.get(..count).unwrap_or_default();
        if literals.is_empty() {
            return;
        }
        match self.planner.plan(literals) {
            Plan::Direct { width } => {
                out.extend_from_slice(&head(1, code_of(width), count));
                pack(self.planner.words(count), width, out);
            }
            Plan::Delta { width, step } => {
                self.append_delta_head(width, count, step, out);
                if width > 0 {
                    pack(self.planner.words(count - 2), width, out);
                }
            }
            Plan::Patched { base, width, patch, gap } => {
                let entries = self.planner.entries();
                let (negative, magnitude) = (base < 0, base.unsigned_abs());
                // One more bit for the sign.
                let bytes = (closest_width(64 - magnitude.leading_zeros() as usize) + 1).div_ceil(8);
                let sign = if negative { 1 << (bytes * 8 - 1) } else { 0 };
                out.extend_from_slice(&head(2, code_of(width), count));
                out.push(((bytes - 1) << 5 | code_of(patch)) as u8);
                out.push(((gap - 1) << 5 | entries.len()) as u8);
                out.extend_from_slice((magnitude | sign).to_be_bytes().get(8 - bytes..).unwrap_or_default());
                pack(self.planner.words(count), width, out);
                pack(entries, closest_width(gap + patch), out);
            }
        }
    }
}

/// The two header bytes of a run: its kind, the code of its width, and its length minus one.
fn head(kind: usize, code: usize, length: usize) -> [u8; 2] {
    let length = length - 1;
    [(kind << 6 | code << 1 | length >> 8) as u8, length as u8]
}

/// The code of a width in the table.
fn code_of(width: usize) -> usize {
    WIDTHS.iter().position(|known| usize::from(*known) >= width).unwrap_or(WIDTHS.len() - 1)
}

/// The index of the first of three equal values.
fn first_repeat(values: &[i64]) -> Option<usize> {
    // Most runs have none, so the search tests eight positions at a time, without a branch per value.
    const STEP: usize = 8;
    let mut at = 0;
    while let Some(window) = values.get(at..).and_then(|rest| rest.first_chunk::<{ STEP + MIN_REPEAT - 1 }>()) {
        let repeats = |found, [first, second, third]: &[i64; 3]| found | ((first ^ second) | (second ^ third) == 0);
        if window.array_windows().fold(false, repeats) {
            break;
        }
        at += STEP;
    }
    let rest = values.get(at..).unwrap_or_default();
    let first =
        rest.array_windows::<MIN_REPEAT>().position(|[first, second, third]| first == second && second == third);
    first.map(|found| at + found)
}
