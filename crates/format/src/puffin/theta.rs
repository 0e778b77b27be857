//! Theta sketches of Apache DataSketches (blob type `apache-datasketches-theta-v1`): estimates of the number of distinct
//! values.
//!
//! A sketch keeps the smallest hashes that it has seen, up to a threshold θ. Their number divided by θ as a fraction of
//! all hashes estimates the number of distinct values. Values are hashed in their single-value form (Appendix D) by
//! MurmurHash3 (x64, 128 bits) with the seed 9001, as the Java library does, so that sketches of both can be merged.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use crate::{Error, Result};

/// Seed of DataSketches.
const SEED: u64 = 9001;
/// Nominal number of hashes; the standard error is about 1.6 %.
const NOMINAL: usize = 1 << 12;
/// Hashes are positive 63-bit integers.
const MOST: u64 = i64::MAX as u64;

const SERIAL_VERSION: u8 = 3;
const FAMILY_COMPACT: u8 = 3;
const READ_ONLY: u8 = 1 << 1;
const EMPTY: u8 = 1 << 2;
const COMPACT: u8 = 1 << 3;
const ORDERED: u8 = 1 << 4;
const SINGLE: u8 = 1 << 5;

/// Hashes are uniform already.
#[derive(Debug, Default, Clone)]
struct Unchanged(u64);

impl Hasher for Unchanged {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, value: u64) {
        // Hash sets use the upper bits too, and those of small hashes are zero.
        self.0 = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// A sketch of the distinct values of a column.
#[derive(Debug, Clone)]
pub struct ThetaSketch {
    theta: u64,
    hashes: HashSet<u64, BuildHasherDefault<Unchanged>>,
}

impl Default for ThetaSketch {
    fn default() -> Self {
        Self { theta: MOST, hashes: HashSet::default() }
    }
}

impl ThetaSketch {
    /// A sketch without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value by its bytes; an empty one is ignored, as in DataSketches.
    #[inline]
    pub fn update(&mut self, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        let hash = murmur3(value, SEED).0 >> 1;
        if hash != 0 && hash < self.theta && self.hashes.insert(hash) && self.hashes.len() >= 2 * NOMINAL {
            self.shrink();
        }
    }

    /// Adds the values of another sketch.
    pub fn merge(&mut self, other: &Self) {
        self.theta = self.theta.min(other.theta);
        let theta = self.theta;
        self.hashes.retain(|hash| *hash < theta);
        self.hashes.extend(other.hashes.iter().filter(|hash| **hash < theta));
        if self.hashes.len() >= 2 * NOMINAL {
            self.shrink();
        }
    }

    /// Keeps the smallest hashes.
    fn shrink(&mut self) {
        let mut all: Vec<u64> = self.hashes.drain().collect();
        let (smaller, next, _) = all.select_nth_unstable(NOMINAL);
        self.theta = *next;
        self.hashes.extend(smaller.iter());
    }

    /// The estimated number of distinct values; exact up to a few thousand.
    pub fn estimate(&self) -> f64 {
        self.hashes.len() as f64 / (self.theta as f64 / MOST as f64)
    }

    /// Writes the compact, ordered form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut hashes: Vec<u64> = self.hashes.iter().copied().collect();
        hashes.sort_unstable();
        let is_exact = self.theta == MOST;
        let (longs, flags) = match hashes.len() {
            0 if is_exact => (1, EMPTY),
            1 if is_exact => (1, SINGLE),
            _ if is_exact => (2, 0),
            _ => (3, 0),
        };
        let mut bytes = vec![longs, SERIAL_VERSION, FAMILY_COMPACT, 0, 0, READ_ONLY | COMPACT | ORDERED | flags];
        bytes.extend(seed_hash().to_le_bytes());
        if longs > 1 {
            bytes.extend(u32::try_from(hashes.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend(1f32.to_le_bytes());
        }
        if longs > 2 {
            bytes.extend(self.theta.to_le_bytes());
        }
        hashes.iter().for_each(|hash| bytes.extend(hash.to_le_bytes()));
        bytes
    }

    /// Reads a compact sketch that is not compressed.
    ///
    /// # Errors
    /// Bytes that are not such a sketch, or one with another seed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let corrupt = |message: &str| Error::corrupt("theta sketch", message.to_owned());
        let [longs, version, family, _, _, flags, seed @ ..] = bytes else { return Err(corrupt("has no preamble")) };
        let Some(([low, high], rest)) = seed.split_first_chunk::<2>() else { return Err(corrupt("has no preamble")) };
        if *version != SERIAL_VERSION || *family != FAMILY_COMPACT || flags & 1 != 0 {
            return Err(corrupt("is not a compact sketch of version 3"));
        }
        if flags & EMPTY != 0 {
            return Ok(Self::new());
        }
        if u16::from_le_bytes([*low, *high]) != seed_hash() {
            return Err(corrupt("was made with another seed"));
        }
        let long = |at: usize| rest.get(at..at + 8).and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        let longs = usize::from(longs & 0x3f);
        let (count, theta) = match longs {
            1 if flags & SINGLE != 0 => (1, MOST),
            2 | 3 => {
                let count = long(0).ok_or_else(|| corrupt("is cut off"))? & u64::from(u32::MAX);
                let theta = if longs == 3 { long(8).ok_or_else(|| corrupt("is cut off"))? } else { MOST };
                (usize::try_from(count).unwrap_or(usize::MAX), theta)
            }
            _ => return Err(corrupt("has an unknown preamble")),
        };
        let start = (longs - 1) * 8;
        if rest.len().saturating_sub(start) / 8 < count || theta == 0 || theta > MOST {
            return Err(corrupt("is cut off"));
        }
        let hashes = (0..count).filter_map(|number| long(start + 8 * number)).filter(|hash| *hash < theta);
        Ok(Self { theta, hashes: hashes.collect() })
    }
}

/// Tells sketches with different seeds apart.
fn seed_hash() -> u16 {
    (murmur3(&SEED.to_le_bytes(), 0).0 & 0xffff) as u16
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// MurmurHash3, x64, 128 bits.
fn murmur3(bytes: &[u8], seed: u64) -> (u64, u64) {
    let (mut h1, mut h2) = (seed, seed);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (k1, k2) = halves(block);
        h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    if !tail.is_empty() {
        let mut last = [0u8; 16];
        last.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
        let (k1, k2) = halves(&last);
        h2 ^= k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
        h1 ^= k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    }
    h1 ^= bytes.len() as u64;
    h2 ^= bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (mixed(h1), mixed(h2));
    h1 = h1.wrapping_add(h2);
    (h1, h2.wrapping_add(h1))
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let whole = u128::from_le_bytes(*block);
    (whole as u64, (whole >> 64) as u64)
}

fn mixed(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> ThetaSketch {
        let mut sketch = ThetaSketch::new();
        values.into_iter().for_each(|value| sketch.update(&value.to_le_bytes()));
        sketch
    }

    #[test]
    fn hashes_are_those_of_others() {
        // Of the reference implementation, seeds 0 and 9001.
        let table: [(&[u8], u64, (u64, u64)); 4] = [
            (b"", 0, (0, 0)),
            (b"hello", 0, (0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19)),
            (b"The quick brown fox jumps over the lazy dog", 0, (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347)),
            (b"", 1, (0x4610_abe5_6eff_5cb5, 0x5162_2daa_78f8_3583)),
        ];
        for (bytes, seed, expected) in table {
            assert_eq!(murmur3(bytes, seed), expected, "{bytes:?} {seed}");
        }
        assert_eq!(seed_hash(), 0x93cc);
    }

    #[test]
    fn estimates_and_round_trips() {
        for count in [0u64, 1, 2, 100, 4095, 8191, 8192, 100_000, 1_000_000] {
            let sketch = of((0..count).chain(0..count / 2));
            let error = (sketch.estimate() - count as f64).abs();
            let allowed = if count < 8192 { 0.0 } else { 0.05 * count as f64 };
            assert!(error <= allowed, "{count}: {}", sketch.estimate());
            let bytes = sketch.to_bytes();
            let again = ThetaSketch::from_bytes(&bytes).unwrap();
            assert_eq!((again.estimate(), again.to_bytes()), (sketch.estimate(), bytes), "{count}");
        }
    }

    #[test]
    fn merged_sketches_count_a_value_once() {
        let mut merged = of(0..30_000);
        merged.merge(&of(10_000..60_000));
        assert!((merged.estimate() - 60_000.0).abs() < 3000.0, "{}", merged.estimate());
        let mut few = of(0..10);
        few.merge(&of(5..15));
        assert_eq!(few.estimate(), 15.0);
    }

    #[test]
    fn damage_is_refused() {
        let bytes = of(0..20_000).to_bytes();
        for cut in [0, 3, 7, 8, 15, 23, 24, bytes.len() - 1] {
            assert!(ThetaSketch::from_bytes(&bytes[..cut]).is_err(), "{cut}");
        }
        for (at, value) in [(1, 2), (2, 1), (6, 0), (0, 9)] {
            let mut changed = bytes.clone();
            changed[at] = value;
            assert!(ThetaSketch::from_bytes(&changed).is_err(), "{at}");
        }
    }
}
