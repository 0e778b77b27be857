//! Bloom filters ("Bloom Filter Index"; docs/orc-pitfalls.md, "Bloom filters").

use super::{Literal, Test};
use crate::error::{Error, Result};
use crate::origin::{WriterId, WriterVersion};
use crate::proto::{BloomFilter, ColumnEncoding, StreamKind};
use crate::tail::{FileMetadata, FileVersion};
use crate::types::{Kind, MAX_SHORT_PRECISION};

/// The seed of the string hash.
const SEED: u64 = 104_729;
/// Maximum bits of a filter, since orc-core numbers bits with a signed 32-bit integer.
const MAX_BITS: u32 = 1 << 30;

/// Thomas Wang's 64-bit hash, with arithmetic shifts.
pub fn hash_long(key: i64) -> u64 {
    let mut key = key;
    key = (!key).wrapping_add(key << 21);
    key ^= key >> 24;
    key = key.wrapping_add(key << 3).wrapping_add(key << 8);
    key ^= key >> 14;
    key = key.wrapping_add(key << 2).wrapping_add(key << 4);
    key ^= key >> 28;
    key = key.wrapping_add(key << 31);
    key as u64
}

/// Java's "64-bit variant" of Murmur3: one lane of the 128-bit algorithm with its own finalization.
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix = |word: u64| word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let (blocks, tail) = bytes.as_chunks::<8>();
    let mut hash = SEED;
    for block in blocks {
        hash ^= mix(u64::from_le_bytes(*block));
        hash = hash.rotate_left(27).wrapping_mul(5).wrapping_add(0x52dc_e729);
    }
    if !tail.is_empty() {
        hash ^= mix(tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    hash ^= bytes.len() as u64;
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

/// Reads the Bloom filter of one row group.
#[derive(Debug)]
pub struct BloomView<'a> {
    filter: &'a BloomFilter,
}

impl<'a> BloomView<'a> {
    /// A view of a filter in either of the two stored forms.
    pub fn new(filter: &'a BloomFilter) -> Self {
        Self { filter }
    }

    /// Whether a value with this hash may be among the values; always true for an empty filter.
    pub fn may_contain(&self, hash: u64) -> bool {
        let words = match &self.filter.utf8bitset {
            Some(bytes) => bytes.len() / 8,
            None => self.filter.bitset.len(),
        };
        let bits = words as u64 * 64;
        let probes = self.filter.num_hash_functions.unwrap_or(0);
        if bits == 0 {
            return true;
        }
        // The file says how many probes to make; the limit keeps a corrupt number from costing time.
        (1..=probes.min(1 << 10)).all(|probe| self.bit(u64::from(probed(hash, probe)) % bits))
    }

    fn bit(&self, bit: u64) -> bool {
        match &self.filter.utf8bitset {
            Some(bytes) => bytes.get((bit / 8) as usize).is_none_or(|byte| byte >> (bit % 8) & 1 == 1),
            None => self.filter.bitset.get((bit / 64) as usize).is_none_or(|word| word >> (bit % 64) & 1 == 1),
        }
    }
}

/// Builds the Bloom filter of one row group.
///
/// The numbers of bits and probes are those of orc-core for `expected` values and the false positive rate `fpp`.
#[derive(Debug, Clone)]
pub struct BloomBuilder {
    words: Vec<u64>,
    probes: u32,
}

impl BloomBuilder {
    /// An empty filter; `fpp` is between 0 and 1, exclusive.
    pub fn new(expected: u64, fpp: f64) -> Result<Self> {
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(Error::invalid(format!(
                "the false-positive probability of a bloom filter must be between 0 and 1, got {fpp}"
            )));
        }
        let expected = expected.max(1) as f64;
        let ln2 = std::f64::consts::LN_2;
        let optimal = -expected * fpp.ln() / (ln2 * ln2);
        if optimal >= f64::from(MAX_BITS) {
            return Err(Error::limit(format!("a bloom filter of {optimal:.0} bits exceeds the limit")));
        }
        // As in orc-core, a multiple of 64 is rounded up to the next one too.
        let words = optimal as usize / 64 + 1;
        let probes = ((words * 64) as f64 / expected * ln2).round().max(1.0) as u32;
        Ok(Self { words: vec![0; words], probes })
    }

    /// The number of bits.
    pub fn bits(&self) -> usize {
        self.words.len() * 64
    }

    /// The maximum number of bits that a value sets.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Adds a value by its hash.
    #[inline]
    pub fn add(&mut self, hash: u64) {
        let bits = self.bits() as u32;
        for probe in 1..=self.probes {
            let bit = probed(hash, probe) % bits;
            if let Some(word) = self.words.get_mut(bit as usize / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    /// The filter in the form of the stream `BLOOM_FILTER_UTF8`.
    pub fn to_utf8(&self) -> BloomFilter {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        BloomFilter { num_hash_functions: Some(self.probes), bitset: Vec::new(), utf8bitset: Some(bytes) }
    }

    /// The filter in the form of the stream `BLOOM_FILTER`.
    pub fn to_original(&self) -> BloomFilter {
        BloomFilter { num_hash_functions: Some(self.probes), bitset: self.words.clone(), utf8bitset: None }
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }
}

/// The bit of a probe (numbered from 1) before it is reduced modulo the bits of the filter, by wrapping 32-bit
/// arithmetic.
#[inline]
fn probed(hash: u64, probe: u32) -> u32 {
    let combined = (hash as i32).wrapping_add((probe as i32).wrapping_mul((hash >> 32) as i32));
    (if combined < 0 { !combined } else { combined }) as u32
}

/// Whether the filters in this stream can be trusted for a column of this kind.
pub(crate) fn is_usable(
    file: &FileMetadata,
    stream: StreamKind,
    kind: &Kind,
    encoding: Option<&ColumnEncoding>,
) -> bool {
    if file.writer() == WriterId::CPP && has_foreign_hashes(file.footer.software_version.as_deref()) {
        return false;
    }
    // Before HIVE-12055, Java hashed strings in the character set of the platform.
    let utf8_strings = file.writer() != WriterId::JAVA || file.writer_version() >= WriterVersion::HIVE_12055;
    match (stream, kind) {
        (_, Kind::Byte | Kind::Short | Kind::Int | Kind::Long | Kind::Date | Kind::Float | Kind::Double) => true,
        (StreamKind::BloomFilterUtf8, Kind::Timestamp | Kind::TimestampInstant) => {
            // The C++ library rounds milliseconds before 1970 up.
            file.writer() != WriterId::CPP && encoding.and_then(|encoding| encoding.bloom_encoding) == Some(1)
        }
        (
            StreamKind::BloomFilterUtf8,
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } | Kind::Decimal { .. },
        ) => true,
        (StreamKind::BloomFilter, Kind::String | Kind::Char { .. } | Kind::Varchar { .. } | Kind::Decimal { .. }) => {
            utf8_strings
        }
        _ => false,
    }
}

/// Whether a version of the C++ library hashed numbers differently (ORC-1024): 1.6.0 to 1.6.11 and 1.7.0, or unknown.
fn has_foreign_hashes(version: Option<&str>) -> bool {
    let Some(version) = version else { return true };
    let numbers: Vec<u32> = version.split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    match numbers.as_slice() {
        [1, 6, patch, ..] => *patch <= 11,
        [1, 7, patch, ..] => *patch == 0,
        [1, minor, ..] => *minor < 6,
        _ => false,
    }
}

/// The hash that the writer of a file computed for a value; `None` if this is not known.
pub fn hash_of(literal: &Literal, kind: &Kind, version: FileVersion) -> Option<u64> {
    Some(match (literal, kind) {
        (Literal::Long(value) | Literal::Date(value), _) => hash_long(*value),
        // -0.0 and 0.0 are equal, but have different hashes.
        (Literal::Double(value), _) if *value == 0.0 => return None,
        (Literal::Double(value), _) if value.is_nan() => hash_long(0x7ff8_0000_0000_0000),
        (Literal::Double(value), _) => hash_long(value.to_bits() as i64),
        (Literal::Text(bytes), Kind::Char { length }) => {
            // The writer hashed the values padded to the length of the type, in characters.
            let characters = std::str::from_utf8(bytes).ok()?.chars().count();
            let mut padded = bytes.clone();
            padded.resize(bytes.len() + (*length as usize).checked_sub(characters)?.min(1 << 16), b' ');
            hash_bytes(&padded)
        }
        (Literal::Text(bytes), _) => hash_bytes(bytes),
        (Literal::Decimal { unscaled, scale }, Kind::Decimal { precision, scale: stored })
            if version == FileVersion::V2Draft && *precision <= MAX_SHORT_PRECISION =>
        {
            let up = crate::column::power_of_ten(usize::from(stored.checked_sub(*scale)?))?;
            hash_long(i64::try_from(unscaled.checked_mul(up)?).ok()?)
        }
        (Literal::Decimal { unscaled, scale }, _) => hash_bytes(decimal_text(*unscaled, *scale).as_bytes()),
        (Literal::Timestamp { seconds, nanos }, _) => {
            hash_long(seconds.checked_mul(1000)?.checked_add(i64::from(nanos / 1_000_000))?)
        }
        (Literal::Boolean(_), _) => return None,
    })
}

/// The text of a decimal without trailing zeros, which is what writers hash.
pub(crate) fn decimal_text(mut unscaled: i128, scale: u8) -> String {
    let mut scale = usize::from(scale);
    while scale > 0 && unscaled % 10 == 0 {
        unscaled /= 10;
        scale -= 1;
    }
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// Whether a row group with this filter may have a row for which the test is true.
pub(crate) fn may_match(filter: &BloomFilter, test: &Test, kind: &Kind, version: FileVersion) -> bool {
    let view = BloomView::new(filter);
    let may = |literal: &Literal| hash_of(literal, kind, version).is_none_or(|hash| view.may_contain(hash));
    match test {
        Test::Equals(value) | Test::NullSafeEquals(value) => may(value),
        Test::In(values) => values.iter().any(may),
        _ => true,
    }
}
