//! Keys of a single column of integers, dates or times ("Equality Delete Files"), the ids of most equality deletes.
//!
//! A row is looked up in a bitmap if the keys are dense, otherwise in a hash table. Keys of several files have
//! numbers that identify the files ([`Numbered`]); keys of one file need none ([`Alike`]).

use std::hash::BuildHasher;
use std::sync::OnceLock;

use arrow_array::types::Int64Type;
use arrow_array::{Array, PrimitiveArray};
use arrow_buffer::BooleanBuffer;
use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashSet, HashTable};

use crate::error::Result;

/// Keys are dense if their bitmap takes at most one word per key, or at most this many words, which fit into the
/// processor's cache.
const CLOSE: u64 = 128 << 10;

/// Approximate bytes per key of a hash table without numbers: twice as many slots as keys.
const OF_TABLE: usize = 2 * (size_of::<i64>() + 1);

type Numbers = PrimitiveArray<Int64Type>;

/// Keys, each with a number.
#[derive(Default)]
pub(super) struct Numbered {
    hasher: DefaultHashBuilder,
    table: HashTable<(i64, u32)>,
    null: Option<u32>,
    bounds: Option<Bounds>,
    /// Built when rows are first looked up; the keys do not change after that.
    bits: OnceLock<Option<Bits>>,
}

/// Keys of one file, which all have the number 0. The lookup structure is built when rows are first looked up:
/// filling a hash table takes one thread most of the time of reading the file.
#[derive(Default)]
pub(super) struct Alike {
    keys: Vec<i64>,
    has_null: bool,
    bounds: Option<Bounds>,
    found: OnceLock<Found>,
}

enum Found {
    Bits(Bits),
    Table(HashSet<i64>),
}

/// The smallest and the largest key: most rows of a file may be outside.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    least: i64,
    greatest: i64,
}

/// One bit for each integer from the smallest key on, set for keys. Most rows do not match, and a bit says so in a
/// tenth of the time of a hash table that does not fit into the cache.
struct Bits {
    least: i64,
    words: Vec<u64>,
}

impl Bounds {
    fn with(known: Option<Self>, value: i64) -> Self {
        let Self { least, greatest } = known.unwrap_or(Self { least: value, greatest: value });
        Self { least: least.min(value), greatest: greatest.max(value) }
    }

    /// The number of words of a bitmap for this many keys, if they are dense.
    fn words(self, keys: usize) -> Option<usize> {
        let words = self.greatest.abs_diff(self.least) / 64 + 1;
        usize::try_from(words).ok().filter(|_| words <= CLOSE.max(keys as u64))
    }
}

impl Bits {
    /// A bitmap of the keys within the bounds, if they are dense.
    fn new(bounds: Option<Bounds>, count: usize, keys: impl Iterator<Item = i64>) -> Option<Self> {
        let bounds = bounds?;
        let mut bits = Self { least: bounds.least, words: vec![0; bounds.words(count)?] };
        for key in keys {
            let place = bits.place(key);
            *bits.words.get_mut(usize::try_from(place / 64).ok()?)? |= 1 << (place % 64);
        }
        Some(bits)
    }

    /// Bit index of a number. Wraps around, so numbers below the smallest key are far after the last word.
    fn place(&self, number: i64) -> u64 {
        number.wrapping_sub(self.least).cast_unsigned()
    }

    fn has(&self, number: i64) -> bool {
        let place = self.place(number);
        let word = usize::try_from(place / 64).ok().and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (place % 64) & 1 != 0)
    }
}

impl Numbered {
    /// Adds the keys of rows; see `Keys::add`.
    pub(super) fn add(&mut self, values: &Numbers, mut number: impl FnMut(Option<u32>) -> Result<u32>) -> Result<()> {
        self.bits.take();
        for value in values {
            match value {
                Some(value) => self.add_one(value, &mut number)?,
                None => self.null = Some(number(self.null)?),
            }
        }
        Ok(())
    }

    fn add_one(&mut self, value: i64, number: &mut impl FnMut(Option<u32>) -> Result<u32>) -> Result<()> {
        let Self { hasher, table, bounds, .. } = self;
        match table.entry(hasher.hash_one(value), |(known, _)| *known == value, |(known, _)| hasher.hash_one(*known)) {
            Entry::Occupied(mut known) => {
                let known = &mut known.get_mut().1;
                *known = number(Some(*known))?;
            }
            Entry::Vacant(room) => {
                room.insert((value, number(None)?));
                *bounds = Some(Bounds::with(*bounds, value));
            }
        }
        Ok(())
    }

    /// The rows without an equal key that applies.
    pub(super) fn absent(&self, values: &Numbers, applies: impl Fn(u32) -> bool) -> BooleanBuffer {
        let Some(Bounds { least, greatest }) = self.bounds else {
            return absent(values, !self.null.is_some_and(applies), |_| true);
        };
        let keys = || self.table.iter().map(|(key, _)| *key);
        let bits = self.bits.get_or_init(|| Bits::new(self.bounds, self.table.len(), keys())).as_ref();
        let is_absent = |value: i64| {
            if value < least || value > greatest || bits.is_some_and(|bits| !bits.has(value)) {
                return true;
            }
            let found = self.table.find(self.hasher.hash_one(value), |(known, _)| *known == value);
            !found.is_some_and(|(_, number)| applies(*number))
        };
        absent(values, !self.null.is_some_and(&applies), is_absent)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len() + usize::from(self.null.is_some())
    }

    pub(super) fn memory(&self) -> usize {
        let words = self.bounds.and_then(|bounds| bounds.words(self.table.len())).unwrap_or(0);
        self.table.allocation_size() + words * size_of::<u64>()
    }
}

impl Alike {
    /// Adds the keys of rows.
    pub(super) fn add(&mut self, values: &Numbers) {
        self.found.take();
        self.has_null |= values.null_count() > 0;
        self.keys.reserve(values.len());
        for value in values.iter().flatten() {
            self.keys.push(value);
            self.bounds = Some(Bounds::with(self.bounds, value));
        }
    }

    /// The rows without an equal key.
    pub(super) fn absent(&self, values: &Numbers) -> BooleanBuffer {
        let keys = || self.keys.iter().copied();
        let found = self.found.get_or_init(|| match Bits::new(self.bounds, self.keys.len(), keys()) {
            Some(bits) => Found::Bits(bits),
            None => Found::Table(keys().collect()),
        });
        match found {
            Found::Bits(bits) => absent(values, !self.has_null, |value| !bits.has(value)),
            Found::Table(table) => absent(values, !self.has_null, |value| !table.contains(&value)),
        }
    }

    /// Number of keys, duplicates included.
    pub(super) fn len(&self) -> usize {
        self.keys.len() + usize::from(self.has_null)
    }

    pub(super) fn memory(&self) -> usize {
        let found = match self.bounds.and_then(|bounds| bounds.words(self.keys.len())) {
            Some(words) => words * size_of::<u64>(),
            None => self.keys.len() * OF_TABLE,
        };
        self.keys.capacity() * size_of::<i64>() + found
    }
}

fn absent(values: &Numbers, null: bool, is_absent: impl Fn(i64) -> bool) -> BooleanBuffer {
    let numbers = values.values();
    let of_row = |row: usize| numbers.get(row).is_none_or(|value| is_absent(*value));
    match values.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => BooleanBuffer::collect_bool(values.len(), of_row),
        Some(nulls) => {
            BooleanBuffer::collect_bool(values.len(), |row| if nulls.is_null(row) { null } else { of_row(row) })
        }
    }
}
