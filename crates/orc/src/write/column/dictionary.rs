//! Builds the dictionary of a text column in one stripe.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The distinct values so far, numbered in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    bytes: Vec<u8>,
    /// The end of each value, which is the start of the next.
    ends: Vec<usize>,
    /// The upper half of the hash of a value, and its number.
    table: HashTable<(u32, u32)>,
    hasher: DefaultHashBuilder,
    /// The last row group that contained each value, counted from 1.
    met: Vec<u32>,
}

impl Dictionary {
    /// The number of distinct values.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The concatenated bytes of all values.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of bytes held in memory.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + self.ends.len() * (size_of::<usize>() + 4) + self.table.capacity() * 9
    }

    /// The value with a number.
    pub(super) fn value(&self, number: u32) -> &[u8] {
        span(&self.bytes, &self.ends, number)
    }

    /// Returns the number of a value, which is added if it is new.
    #[inline]
    pub(super) fn number(&mut self, value: &[u8]) -> u32 {
        let Self { bytes, ends, table, hasher, met } = self;
        let hash = hasher.hash_one(value);
        let upper = (hash >> 32) as u32;
        let same = |entry: &(u32, u32)| entry.0 == upper && span(bytes, ends, entry.1) == value;
        if let Some((_, number)) = table.find(rehash(upper), same) {
            return *number;
        }
        let number = ends.len() as u32;
        bytes.extend_from_slice(value);
        ends.push(bytes.len());
        met.push(0);
        table.insert_unique(rehash(upper), (upper, number), |entry| rehash(entry.0));
        number
    }

    /// Whether this is the first occurrence of a value in a row group (counted from 1).
    #[inline]
    pub(super) fn is_new_to(&mut self, number: u32, group: u32) -> bool {
        match self.met.get_mut(number as usize) {
            Some(met) => std::mem::replace(met, group) != group,
            None => false,
        }
    }

    /// The numbers sorted by value, and the position of each number in that order.
    pub(super) fn sorted(&self) -> (Vec<u32>, Vec<u32>) {
        // Compare the first eight bytes as a word first, because most values differ in them.
        let front = |value: &[u8]| {
            let mut word = [0; 8];
            word.iter_mut().zip(value).for_each(|(slot, byte)| *slot = *byte);
            u64::from_be_bytes(word)
        };
        let mut order: Vec<(u64, u32)> =
            (0..self.len() as u32).map(|number| (front(self.value(number)), number)).collect();
        order.sort_unstable_by(|left, right| {
            left.0.cmp(&right.0).then_with(|| self.value(left.1).cmp(self.value(right.1)))
        });
        let mut places = vec![0; order.len()];
        for (place, (_, number)) in order.iter().enumerate() {
            if let Some(slot) = places.get_mut(*number as usize) {
                *slot = place as u32;
            }
        }
        (order.into_iter().map(|(_, number)| number).collect(), places)
    }
}

#[inline]
fn span<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    bytes.get(start..ends.get(number).copied().unwrap_or(start)).unwrap_or_default()
}

/// The hash for the table, from the stored upper half: the table takes buckets from the low bits and tags from the high
/// ones, so both must be filled.
#[inline]
fn rehash(upper: u32) -> u64 {
    u64::from(upper) << 32 | u64::from(upper)
}
