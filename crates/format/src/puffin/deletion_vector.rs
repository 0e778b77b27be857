//! Deletion vectors: positions of deleted rows in one data file (Puffin spec, "deletion-vector-v1 blob type").
//!
//! A blob consists of the length of magic number and bitmap (big endian), the magic number, a 64-bit Roaring bitmap in
//! the portable format, and the CRC-32 of magic number and bitmap (big endian).

use std::ops::{Range, RangeInclusive};

use arrow_array::BooleanArray;
use arrow_buffer::BooleanBufferBuilder;
use roaring::{RoaringBitmap, RoaringTreemap};

use crate::{Error, Limits, Result};

/// The magic number before the bitmap.
const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];
/// Length of the field before the magic number, and of the checksum after the bitmap.
const FRAME_BYTES: usize = 4;
const PLACE: &str = "deletion vector";

/// Deleted rows are dense if at least one row in this many is deleted.
const CLOSE: u64 = 64;

/// The deleted rows of one data file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeletionVector {
    rows: RoaringTreemap,
}

impl DeletionVector {
    /// Largest position that the Java library supports.
    pub const MAX_POSITION: u64 = ((i32::MAX as u64 - 1) << 32) | 0x8000_0000;

    /// A vector without positions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a vector from positions in any order, repeated or not.
    pub fn from_positions(positions: impl IntoIterator<Item = u64>) -> Result<Self> {
        let mut vector = Self::new();
        positions.into_iter().try_for_each(|position| vector.insert(position).map(|_| ()))?;
        Ok(vector)
    }

    /// Reads a blob, and checks its length, magic number, checksum and bitmap. The caller must compare the number of
    /// positions with the manifest, with [`DeletionVector::check_cardinality`].
    pub fn from_bytes(blob: &[u8], limits: &Limits) -> Result<Self> {
        let wrong = |offset: usize, message: String| Error::corrupt_at(PLACE, offset as u64, message);
        if blob.len() > limits.blob_bytes {
            return Err(wrong(0, format!("{} bytes exceed the limit of {}", blob.len(), limits.blob_bytes)));
        }
        let framed = blob.split_first_chunk::<FRAME_BYTES>().and_then(|(length, rest)| {
            let (data, checksum) = rest.split_last_chunk::<FRAME_BYTES>()?;
            Some((u32::from_be_bytes(*length), data, u32::from_be_bytes(*checksum)))
        });
        let (length, data, checksum) = framed.ok_or_else(|| wrong(0, format!("{} bytes are too few", blob.len())))?;
        if u64::from(length) != data.len() as u64 {
            return Err(wrong(0, format!("its length field says {length} bytes, but it has {}", data.len())));
        }
        let bitmap = data.strip_prefix(&MAGIC).ok_or_else(|| wrong(FRAME_BYTES, "wrong magic".to_owned()))?;
        let found = crc32fast::hash(data);
        if found != checksum {
            let message = format!("checksum mismatch: expected {checksum:#010x}, got {found:#010x}");
            return Err(wrong(FRAME_BYTES + data.len(), message));
        }
        let rows = read_bitmap(bitmap).map_err(|(left, message)| wrong(FRAME_BYTES + data.len() - left, message))?;
        Ok(Self { rows })
    }

    /// Writes the blob.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut rows = self.rows.clone();
        rows.optimize();
        let length = rows.serialized_size().saturating_add(MAGIC.len());
        let length = i32::try_from(length).map_err(|_| Error::invalid("a deletion vector exceeds 2 GiB"))?;
        let mut blob = Vec::with_capacity(length.unsigned_abs() as usize + 2 * FRAME_BYTES);
        blob.extend(length.to_be_bytes());
        blob.extend(MAGIC);
        rows.serialize_into(&mut blob).map_err(|error| Error::invalid(format!("a deletion vector: {error}")))?;
        let checksum = crc32fast::hash(blob.get(FRAME_BYTES..).unwrap_or_default());
        blob.extend(checksum.to_be_bytes());
        Ok(blob)
    }

    /// Adds a position; returns whether it is new.
    pub fn insert(&mut self, position: u64) -> Result<bool> {
        check_position(position)?;
        Ok(self.rows.insert(position))
    }

    /// Adds a range of positions; returns how many are new.
    pub fn insert_range(&mut self, positions: Range<u64>) -> Result<u64> {
        positions.end.checked_sub(1).map_or(Ok(()), check_position)?;
        Ok(self.rows.insert_range(positions))
    }

    /// Adds positions in any order; fast if they are close together, or ascend after the existing ones. If a position
    /// is too large, the error names the first such position, and none is added.
    pub fn insert_all(&mut self, positions: &[u64]) -> Result<()> {
        let (least, most) =
            positions.iter().fold((u64::MAX, 0), |(least, most), position| (least.min(*position), most.max(*position)));
        if most > Self::MAX_POSITION {
            positions.iter().try_for_each(|position| check_position(*position))?;
        }
        if let Some((key, bitmap)) = dense(positions, least..=most) {
            self.rows |= RoaringTreemap::from_bitmaps([(key, bitmap)]);
            return Ok(());
        }
        let mut left = positions;
        while let Err(unsorted) = self.rows.append(left.iter().copied()) {
            let done = usize::try_from(unsorted.valid_until()).unwrap_or(left.len());
            left = left.get(done..).unwrap_or_default();
            if let Some((first, rest)) = left.split_first() {
                self.rows.insert(*first);
                left = rest;
            }
        }
        Ok(())
    }

    /// Adds the positions of another vector.
    pub fn union_with(&mut self, other: &Self) {
        self.rows |= &other.rows;
    }

    /// Number of deleted rows.
    pub fn cardinality(&self) -> u64 {
        self.rows.len()
    }

    /// Checks that the vector has as many positions as its manifest says.
    pub fn check_cardinality(&self, record_count: i64) -> Result<()> {
        if i64::try_from(self.cardinality()) == Ok(record_count) {
            return Ok(());
        }
        Err(Error::corrupt(PLACE, format!("it has {} rows, but the manifest says {record_count}", self.cardinality())))
    }

    /// Whether there are no deleted rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a row is deleted.
    pub fn contains(&self, position: u64) -> bool {
        self.rows.contains(position)
    }

    /// The largest deleted position.
    pub fn max(&self) -> Option<u64> {
        self.rows.max()
    }

    /// All deleted positions, in ascending order.
    pub fn positions(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter()
    }

    /// The deleted positions in a range, in ascending order.
    pub fn positions_in(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut positions = self.rows.iter();
        positions.advance_to(range.start);
        positions.take_while(move |position| *position < range.end)
    }

    /// Returns which rows in a range of the data file are live: true keeps the row.
    pub fn live_mask(&self, first_row: u64, row_count: usize) -> BooleanArray {
        let mut mask = BooleanBufferBuilder::new(row_count);
        mask.append_n(row_count, true);
        let end = first_row.saturating_add(row_count as u64);
        for position in self.positions_in(first_row..end) {
            // Less than `row_count`, which is a `usize`.
            mask.set_bit((position - first_row) as usize, false);
        }
        BooleanArray::new(mask.finish(), None)
    }

    /// The bitmap.
    pub fn as_bitmap(&self) -> &RoaringTreemap {
        &self.rows
    }
}

impl From<RoaringTreemap> for DeletionVector {
    fn from(rows: RoaringTreemap) -> Self {
        Self { rows }
    }
}

/// Builds a bitmap of positions that are close together; also returns the upper half of their positions. Setting a bit
/// takes a twentieth of the time of finding a row's place in a Roaring bitmap. `all` is the range from the smallest to
/// the largest position.
fn dense(positions: &[u64], all: RangeInclusive<u64>) -> Option<(u32, RoaringBitmap)> {
    let first = *all.start() & !0xffff;
    let span = all.end().checked_sub(first)?;
    if span / CLOSE > positions.len() as u64 || (first + span) >> 32 != first >> 32 {
        return None;
    }
    let mut bits = vec![0_u8; usize::try_from(span / 8).ok()? + 1];
    for position in positions {
        let place = position - first;
        *bits.get_mut(usize::try_from(place / 8).ok()?)? |= 1 << (place % 8);
    }
    Some((u32::try_from(first >> 32).ok()?, RoaringBitmap::from_lsb0_bytes(first as u32, &bits)))
}

fn check_position(position: u64) -> Result<()> {
    if position <= DeletionVector::MAX_POSITION {
        return Ok(());
    }
    Err(Error::invalid(format!("row position {position} is beyond {}", DeletionVector::MAX_POSITION)))
}

/// Reads a 64-bit bitmap: the number of 32-bit bitmaps, and each of them with its upper half. An error includes the
/// number of bytes left.
fn read_bitmap(bytes: &[u8]) -> Result<RoaringTreemap, (usize, String)> {
    let (count, mut rest) = bytes.split_first_chunk::<8>().ok_or((bytes.len(), "it has no bitmaps".to_owned()))?;
    let count = u64::from_le_bytes(*count);
    // Each has a key, and is no smaller than an empty bitmap.
    if count > rest.len() as u64 / 12 {
        return Err((rest.len(), format!("it claims {count} bitmaps in {} bytes", rest.len())));
    }
    let mut bitmaps = Vec::new();
    let mut last = None;
    for _ in 0..count {
        let left = rest.len();
        let (key, after) = rest.split_first_chunk::<4>().ok_or((left, "it ends within a key".to_owned()))?;
        let key = u32::from_le_bytes(*key);
        if key >= i32::MAX.unsigned_abs() || last.is_some_and(|last| key <= last) {
            return Err((left, format!("the key {key} is out of order or too large")));
        }
        last = Some(key);
        rest = after;
        let bitmap = RoaringBitmap::deserialize_from(&mut rest).map_err(|error| (left, error.to_string()))?;
        if !bitmap.is_empty() {
            bitmaps.push((key, bitmap));
        }
    }
    if !rest.is_empty() {
        return Err((rest.len(), format!("{} bytes are left after the last bitmap", rest.len())));
    }
    Ok(RoaringTreemap::from_bitmaps(bitmaps))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vector(positions: &[u64]) -> DeletionVector {
        DeletionVector::from_positions(positions.iter().copied()).unwrap()
    }

    #[test]
    fn blobs_have_the_form_of_the_specification() {
        let blob = vector(&[1, 5]).to_bytes().unwrap();
        // Length, magic number, one bitmap, its key, no runs, one container, its key and cardinality, its offset, 1, 5,
        // checksum.
        let expected = "00000024d1d339640100000000000000000000003a300000010000000000010010000000010005";
        let hex: String = blob.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(hex.starts_with(expected), "{hex}");
        assert_eq!(DeletionVector::from_bytes(&blob, &Limits::default()).unwrap(), vector(&[5, 1, 1]));
    }

    #[test]
    fn damage_is_named() {
        let good = vector(&[0, 3, 70_000, 1 << 40]).to_bytes().unwrap();
        let read = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut blob = good.clone();
            change(&mut blob);
            DeletionVector::from_bytes(&blob, &Limits::default()).unwrap_err().to_string()
        };
        for (change, message) in [
            (&(|blob: &mut Vec<u8>| blob.truncate(7)) as &dyn Fn(&mut Vec<u8>), "too few"),
            (&|blob| blob[3] ^= 1, "its length field says"),
            (&|blob| blob[4] ^= 1, "magic"),
            (&|blob| blob[30] ^= 1, "checksum"),
            (&|blob| *blob.last_mut().unwrap() ^= 1, "checksum"),
        ] {
            assert!(read(change).contains(message), "{message}: {}", read(change));
        }
        assert!(vector(&[1]).check_cardinality(2).is_err());
        assert!(DeletionVector::from_positions([DeletionVector::MAX_POSITION + 1]).is_err());
    }

    /// Wraps bytes in a blob with valid length and checksum, to test the checks of the bitmap itself.
    fn framed(bitmap: &[u8]) -> Vec<u8> {
        let mut blob = (u32::try_from(bitmap.len()).unwrap() + 4).to_be_bytes().to_vec();
        blob.extend(MAGIC);
        blob.extend(bitmap);
        blob.extend(crc32fast::hash(&blob[4..]).to_be_bytes());
        blob
    }

    proptest! {
        #[test]
        fn blobs_come_back(positions in prop::collection::btree_set(prop_oneof![0u64..200_000, 0..=DeletionVector::MAX_POSITION], 0..200), run in 0u64..5000) {
            let mut made = DeletionVector::from_positions(positions.iter().copied()).unwrap();
            made.insert_range(300_000..300_000 + run).unwrap();
            let read = DeletionVector::from_bytes(&made.to_bytes().unwrap(), &Limits::default()).unwrap();
            prop_assert_eq!(&read, &made);
            prop_assert_eq!(read.cardinality(), positions.iter().filter(|p| !(300_000..300_000 + run).contains(*p)).count() as u64 + run);
        }

        #[test]
        fn rows_are_added_in_any_order(batches in prop::collection::vec((prop::collection::vec(prop_oneof![0u64..300, 65_500..65_600u64, 1u64 << 33..(1 << 33) + 9], 0..40), any::<bool>()), 0..5)) {
            let mut made = DeletionVector::new();
            let mut all = Vec::new();
            for (mut positions, sorted) in batches {
                if sorted {
                    positions.sort_unstable();
                }
                made.insert_all(&positions).unwrap();
                all.extend(positions);
            }
            prop_assert_eq!(&made, &vector(&all));
            prop_assert!(made.insert_all(&[7, DeletionVector::MAX_POSITION + 1]).is_err());
            prop_assert_eq!(made, vector(&all));
        }

        #[test]
        fn no_bitmap_makes_it_panic(bitmap in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..40, byte: u8) {
            let _ = DeletionVector::from_bytes(&framed(&bitmap), &Limits::default());
            let mut good = vector(&[0, 1, 2, 3, 9, 1 << 33]).to_bytes().unwrap();
            let end = good.len() - 4;
            let mut bitmap = good.split_off(8);
            bitmap.truncate(end - 8);
            let at = at % bitmap.len();
            bitmap[at] = byte;
            let _ = DeletionVector::from_bytes(&framed(&bitmap), &Limits::default());
        }

        #[test]
        fn the_mask_is_what_contains_says(positions in prop::collection::btree_set(0u64..300, 0..60), first in 0u64..320, rows in 0usize..100) {
            let vector = DeletionVector::from_positions(positions).unwrap();
            let mask = vector.live_mask(first, rows);
            prop_assert_eq!(mask.len(), rows);
            for row in 0..rows {
                prop_assert_eq!(mask.value(row), !vector.contains(first + row as u64));
            }
        }
    }
}
