//! Estimates from a column's first rows whether a dictionary makes it smaller.
//!
//! The Java library decides this on a column's first page. The parquet crate's encoder falls back only when the
//! dictionary is full, after hashing every value in vain: for columns of nearly distinct values this took half the
//! time of an append.

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, ByteViewType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray};
use arrow_schema::DataType;

/// Number of rows to sample, as on a first page.
const ROWS: usize = 20_000;
/// With fewer rows there is no estimate.
const FEW: usize = 2_048;

/// Whether a dictionary pays off for a column that begins with these arrays; true if unknown.
pub(super) fn pays<'a>(arrays: impl IntoIterator<Item = &'a ArrayRef>) -> bool {
    let mut sample = Sample::default();
    for array in arrays {
        let rows = array.len().min(ROWS - sample.rows);
        let array = array.slice(0, rows);
        if !sample.add(&array) {
            return true;
        }
        if sample.is_full() {
            break;
        }
    }
    sample.pays()
}

/// Bytes of a length in PLAIN encoding.
const LENGTH: usize = 4;

/// Slots of the hash bitmap: 32 KiB, which fits into the L1 cache.
const PLACES: usize = 1 << 18;

/// Counts distinct values in the first rows. Values are compared by a few bits of a hash, which is enough for an
/// estimate.
#[derive(Debug)]
struct Sample {
    rows: usize,
    values: usize,
    plain_bytes: usize,
    /// Values with a slot of their own, and their bytes.
    distinct: usize,
    distinct_bytes: usize,
    taken: Vec<u64>,
}

impl Default for Sample {
    fn default() -> Self {
        Self { rows: 0, values: 0, plain_bytes: 0, distinct: 0, distinct_bytes: 0, taken: vec![0; PLACES / 64] }
    }
}

/// Folded multiplication over eight-byte words.
fn hash(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(ODD);
        (product >> 64) as u64 ^ product as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(ODD ^ bytes.len() as u64, |state, word| fold(state, u64::from_le_bytes(*word)));
    fold(state, rest.iter().fold(1, |word, byte| word << 8 | u64::from(*byte)))
}

impl Sample {
    /// Counts an array; false if values of its type are not counted.
    fn add(&mut self, array: &ArrayRef) -> bool {
        self.rows += array.len();
        match array.data_type() {
            DataType::Utf8 => self.add_bytes(array.as_bytes::<Utf8Type>()),
            DataType::LargeUtf8 => self.add_bytes(array.as_bytes::<LargeUtf8Type>()),
            DataType::Binary => self.add_bytes(array.as_bytes::<BinaryType>()),
            DataType::LargeBinary => self.add_bytes(array.as_bytes::<LargeBinaryType>()),
            DataType::Utf8View => self.add_views(array.as_byte_view::<StringViewType>()),
            DataType::BinaryView => self.add_views(array.as_byte_view::<BinaryViewType>()),
            DataType::FixedSizeBinary(_) => {
                let array = array.as_fixed_size_binary();
                array.iter().flatten().for_each(|value| self.one(value, 0));
            }
            other => {
                let Some(width) = other.primitive_width() else { return false };
                let data = array.to_data();
                let Some(bytes) = data.buffers().first().and_then(|buffer| buffer.get(data.offset() * width..)) else {
                    return false;
                };
                for (row, value) in bytes.chunks_exact(width).take(array.len()).enumerate() {
                    if array.is_valid(row) {
                        self.one(value, 0);
                    }
                }
            }
        }
        true
    }

    fn add_bytes<T: ByteArrayType>(&mut self, array: &GenericByteArray<T>) {
        array.iter().flatten().for_each(|value| self.one(value.as_ref(), LENGTH));
    }

    fn add_views<T: ByteViewType>(&mut self, array: &GenericByteViewArray<T>) {
        array.iter().flatten().for_each(|value| self.one(value.as_ref(), LENGTH));
    }

    fn one(&mut self, value: &[u8], length: usize) {
        self.values += 1;
        self.plain_bytes += value.len() + length;
        let hash = hash(value) as usize;
        let (word, bit) = (hash / 64 % (PLACES / 64), 1 << (hash % 64));
        if let Some(word) = self.taken.get_mut(word)
            && *word & bit == 0
        {
            *word |= bit;
            self.distinct += 1;
            self.distinct_bytes += value.len() + length;
        }
    }

    fn is_full(&self) -> bool {
        self.rows >= ROWS
    }

    fn pays(&self) -> bool {
        if self.values < FEW {
            return true;
        }
        // Two values in one slot count once: one in 26 at 20,000 values in 262,144 slots, far below what changes the
        // decision.
        let index_bits = usize::BITS - self.distinct.saturating_sub(1).leading_zeros();
        self.distinct_bytes + self.values * index_bits as usize / 8 < self.plain_bytes
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        Date32Array, Decimal128Array, Float64Array, Int64Array, NullArray, StringArray, StringViewArray,
    };

    use super::*;

    #[test]
    fn pays_where_values_come_again() {
        let few = |row: i64| row % 200;
        let text = |row: i64| format!("a name {row}");
        let cases: Vec<(&str, ArrayRef, bool)> = vec![
            ("ids", Arc::new(Int64Array::from_iter_values(0..30_000)), false),
            ("ids after nulls", Arc::new((0..30_000).map(|i| (i > 100).then_some(i)).collect::<Int64Array>()), false),
            ("few numbers", Arc::new(Int64Array::from_iter_values((0..30_000).map(few))), true),
            ("few rows", Arc::new(Int64Array::from_iter_values(0..1_000)), true),
            ("doubles", Arc::new(Float64Array::from_iter_values((0..30_000).map(f64::from))), false),
            ("days", Arc::new(Date32Array::from_iter_values((0..30_000).map(|i| i % 3_650))), true),
            ("decimals", Arc::new(Decimal128Array::from_iter_values((0..30_000).map(i128::from))), false),
            ("texts", Arc::new(StringArray::from_iter_values((0..30_000).map(text))), false),
            ("few texts", Arc::new(StringArray::from_iter_values((0..30_000).map(few).map(text))), true),
            ("views", Arc::new(StringViewArray::from_iter_values((0..30_000).map(text))), false),
            ("nulls", Arc::new(NullArray::new(30_000)), true),
            // Half of the strings are new: the dictionary saves more than its indexes cost.
            ("half", Arc::new(StringArray::from_iter_values((0..30_000).map(|i| text(i / 2)))), true),
        ];
        for (name, array, expected) in cases {
            assert_eq!(pays([&array]), expected, "{name}");
            let (head, tail) = (array.slice(0, 777), array.slice(777, array.len() - 777));
            assert_eq!(pays([&head, &tail]), expected, "{name}, in two parts");
        }
    }
}
