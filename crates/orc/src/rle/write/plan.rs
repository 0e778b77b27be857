//! Chooses the encoding of a run of mixed values, by the rules of orc-core: direct, delta or patched base.

use crate::rle::int2::{MAX_RUN, closest_width};
use crate::rle::varint::zigzag;

/// Limit of the magnitude of a patched run's base, which needs a bit of its at most eight bytes for the sign.
const BASE_LIMIT: u64 = 1 << 56;
/// Maximum gap of a patch entry; a longer gap needs an additional entry.
const MAX_GAP: usize = 255;

/// Which bit widths are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packing {
    /// 1, 2, 4 and multiples of 8 (the strategy SPEED of orc-core, its default); patched runs use any width.
    #[default]
    Aligned,
    /// All widths of the table (strategy COMPRESSION).
    Tight,
}

impl Packing {
    fn width(self, bits: usize) -> usize {
        match (self, bits) {
            (Self::Tight, _) => closest_width(bits),
            (Self::Aligned, 0 | 1) => 1,
            (Self::Aligned, 2) => 2,
            (Self::Aligned, 3..=4) => 4,
            (Self::Aligned, _) => bits.div_ceil(8) * 8,
        }
    }
}

/// The chosen encoding; [`Planner`] has the words and patch entries.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Packed values.
    Direct { width: usize },
    /// A first difference and the packed magnitudes of the others. With width 0 all are equal to the first.
    Delta { width: usize, step: i64 },
    /// Packed differences from a base, and patches.
    Patched { base: i64, width: usize, patch: usize, gap: usize },
}

/// Chooses the encoding of runs, and holds the values to pack.
#[derive(Debug)]
pub(super) struct Planner {
    signed: bool,
    packing: Packing,
    words: Box<[u64; MAX_RUN]>,
    entries: Vec<u64>,
}

/// Properties of a run, found in one pass.
struct Shape {
    min: i64,
    max: i64,
    rising: bool,
    falling: bool,
    fixed: bool,
    /// The OR of the magnitudes of all differences except the first.
    steps: u64,
}

impl Shape {
    fn of(values: &[i64], first_step: i64) -> Self {
        let first = values.first().copied().unwrap_or_default();
        let mut shape = Self { min: first, max: first, rising: true, falling: true, fixed: true, steps: 0 };
        let mut before = first;
        let mut skipped = 0;
        for value in values.iter().skip(1) {
            let step = value.wrapping_sub(before);
            shape.min = shape.min.min(*value);
            shape.max = shape.max.max(*value);
            shape.rising &= before <= *value;
            shape.falling &= before >= *value;
            shape.fixed &= step == first_step;
            shape.steps |= step.unsigned_abs() & skipped;
            skipped = u64::MAX;
            before = *value;
        }
        shape
    }
}

impl Planner {
    pub(super) fn new(signed: bool, packing: Packing) -> Self {
        Self { signed, packing, words: Box::new([0; MAX_RUN]), entries: Vec::new() }
    }

    /// The values to pack.
    pub(super) fn words(&self, count: usize) -> &[u64] {
        self.words.get(..count).unwrap_or_default()
    }

    /// The patch entries: patches with their gaps.
    pub(super) fn entries(&self) -> &[u64] {
        &self.entries
    }

    /// Chooses the encoding of a run of at most [`MAX_RUN`] mixed values.
    pub(super) fn plan(&mut self, values: &[i64]) -> Plan {
        // As in orc-core, runs of up to three values are always direct.
        let [first, second, _, _, ..] = values else { return self.direct(values) };
        let step = second.wrapping_sub(*first);
        let shape = Shape::of(values, step);
        // From here on, the difference of two values cannot overflow.
        if shape.max.checked_sub(shape.min).is_none() {
            return self.direct(values);
        }
        if shape.fixed {
            return Plan::Delta { width: 0, step };
        }
        // All differences have the sign of the first one, which therefore must not be 0.
        if step != 0 && (shape.rising || shape.falling) {
            for (word, pair) in self.words.iter_mut().zip(values.windows(2).skip(1)) {
                *word = pair
                    .last()
                    .zip(pair.first())
                    .map_or(0, |(after, before)| after.wrapping_sub(*before).unsigned_abs());
            }
            // Width 1 is not used, because its code means width 0 in delta runs.
            let width = self.packing.width(bits(shape.steps)).max(2);
            return Plan::Delta { width, step };
        }
        let full = closest_width(bits(self.store(values)));
        if self.is_even(values.len(), full) || shape.min.unsigned_abs() >= BASE_LIMIT {
            return Plan::Direct { width: self.packing.width(full) };
        }
        self.patched(values, shape.min).unwrap_or_else(|| self.direct(values))
    }

    /// Whether more than a tenth of the stored values need (nearly) all bits, so that patches do not pay off.
    fn is_even(&self, count: usize, full: usize) -> bool {
        // Every value counts as at least one bit wide.
        let below = narrower_than(full - 1);
        below == 0 || self.words(count).iter().filter(|word| **word >> below != 0).count() > share(count, 0.9)
    }

    /// Converts the values to their stored form, and returns the OR of all.
    fn store(&mut self, values: &[i64]) -> u64 {
        let slots = self.words.iter_mut().zip(values);
        let signed = self.signed;
        slots.fold(0, |all, (slot, value)| {
            *slot = if signed { zigzag(*value) } else { *value as u64 };
            all | *slot
        })
    }

    fn direct(&mut self, values: &[i64]) -> Plan {
        let all = self.store(values);
        Plan::Direct { width: self.packing.width(closest_width(bits(all))) }
    }

    /// Plans a patched run: differences from the minimum, truncated to the width that 95 % of them need; `None` if all
    /// need the same width.
    fn patched(&mut self, values: &[i64], base: i64) -> Option<Plan> {
        let mut widths = [0usize; 65];
        for (slot, value) in self.words.iter_mut().zip(values) {
            *slot = value.wrapping_sub(base) as u64;
            if let Some(count) = widths.get_mut(closest_width(bits(*slot))) {
                *count += 1;
            }
        }
        let full = widths.iter().rposition(|count| *count > 0)?;
        let mut wide = 0;
        let spared = share(values.len(), 0.95);
        let mut width = widths.iter().enumerate().rev().find_map(|(width, count)| {
            wide += *count;
            (wide > spared).then_some(width)
        })?;
        if width == full {
            return None;
        }
        let mut patch = closest_width(full - width);
        if patch == 64 {
            // Gap and patch share 64 bits.
            (patch, width) = (56, 8);
        }
        let mask = (1u64 << width) - 1;
        self.entries.clear();
        let (mut last, mut longest) = (0, 0);
        for (index, word) in self.words.iter_mut().take(values.len()).enumerate().filter(|(_, word)| **word > mask) {
            let mut gap = index - last;
            (last, longest) = (index, longest.max(gap));
            while gap > MAX_GAP {
                self.entries.push((MAX_GAP as u64) << patch);
                gap -= MAX_GAP;
            }
            self.entries.push((gap as u64) << patch | *word >> width);
            *word &= mask;
        }
        let gap = closest_width(bits(longest as u64)).min(8);
        Some(Plan::Patched { base, width, patch, gap })
    }
}

fn bits(word: u64) -> usize {
    64 - word.leading_zeros() as usize
}

/// The next smaller width of the table than the one that this many bits need, or 0.
fn narrower_than(bits: usize) -> usize {
    let width = closest_width(bits);
    crate::rle::WIDTHS.iter().rev().map(|known| usize::from(*known)).find(|known| *known < width).unwrap_or(0)
}

/// How many values may be above a percentile, rounded as in orc-core.
fn share(count: usize, percentile: f64) -> usize {
    (count as f64 * (1.0 - percentile)) as usize
}
