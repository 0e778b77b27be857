//! Decodes strings and binaries of PLAIN and dictionary pages straight into Arrow's layout: concatenated bytes and
//! offsets.
//!
//! Two measurements shape this code. A call to memcpy per value takes twice as long as always copying 16 bytes and
//! letting the next value overwrite the surplus. So short dictionary values are copied this way into a buffer of a
//! few kilobytes that stays in the L1 cache, and from there appended to the output. And a PLAIN value starts where
//! the previous one ends, which takes as long to find out as the copy itself. So runs of values with one length, as
//! hashes and codes have, are found by comparing lengths ahead, and copied together.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::{ParquetError, Result};
use simdutf8::basic::from_utf8;

use super::column::Values;
use super::hybrid::Hybrid;
use super::nulls;
use super::runs::Runs;
use crate::file::parquet::guard::internal;

/// Bytes copied for a short dictionary value, whatever its length.
const SHORT: usize = 16;
/// Maximum number of values in a dictionary with short values: 80 KB.
const FEW: usize = 4 << 10;
/// Keys looked up in the dictionary at a time.
const KEYS: usize = 512;
/// Minimum and maximum number of values of one length that are copied together.
const RUN: (usize, usize) = (8, 256);

/// The decoded values of a column.
pub(in crate::file::parquet) struct ByteArrays {
    is_text: bool,
    made: Made,
    dictionary: Option<Dictionary>,
    keys: Vec<u32>,
}

/// Concatenated values.
struct Made {
    /// The start of each value, then the end of the last one.
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

/// The values of a dictionary page.
struct Dictionary {
    values: ArrayRef,
    offsets: Buffer,
    bytes: Buffer,
    /// Each value with its length, if all values are short.
    short: Option<Vec<([u8; SHORT], usize)>>,
}

/// The unread values of a page.
pub(in crate::file::parquet) enum Page {
    /// PLAIN: each value follows its length.
    Plain { bytes: Bytes, at: usize },
    /// Dictionary keys.
    Keys(Hybrid),
    /// Values decoded by the parquet crate.
    Decoded(std::vec::IntoIter<ByteArray>),
}

impl ByteArrays {
    /// No values yet; strings if `is_text`.
    pub(in crate::file::parquet) fn new(is_text: bool) -> Self {
        Self { is_text, made: Made::default(), dictionary: None, keys: Vec::new() }
    }
}

impl Values for ByteArrays {
    type Type = ByteArrayType;
    type Page = Page;

    fn clear_dictionary(&mut self) {
        self.dictionary = None;
    }

    fn set_dictionary(&mut self, bytes: Bytes, count: usize) -> Result<()> {
        let mut made = Made::default();
        made.append_plain(&bytes, &mut 0, &Runs::all(count), self.is_text)?;
        self.dictionary = Some(Dictionary::new(made, self.is_text)?);
        Ok(())
    }

    fn open(&self, encoding: Encoding, bytes: Bytes) -> Result<Option<Page>> {
        match encoding {
            Encoding::PLAIN => Ok(Some(Page::Plain { bytes, at: 0 })),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                // A page that contains only nulls may have no bytes.
                let Some(width) = bytes.first().copied() else { return Ok(Some(Page::Plain { bytes, at: 0 })) };
                Ok(Some(Page::Keys(Hybrid::new(bytes.slice(1..), width)?)))
            }
            _ => Ok(None),
        }
    }

    fn decoded(values: Vec<ByteArray>) -> Page {
        Page::Decoded(values.into_iter())
    }

    fn reserve(&mut self, count: usize) {
        self.made.offsets.reserve(count);
    }

    fn append(&mut self, page: &mut Page, runs: &Runs<'_>) -> Result<()> {
        match page {
            Page::Plain { bytes, at } => self.made.append_plain(bytes, at, runs, self.is_text),
            Page::Keys(_) if runs.passed() == 0 => Ok(()),
            Page::Keys(numbers) => {
                let missing = || ParquetError::General("a page has keys of a dictionary that is missing".to_owned());
                let dictionary = self.dictionary.as_ref().ok_or_else(missing)?;
                numbers.parts(runs, &mut self.keys, |keys, runs| self.made.append_keys(keys, runs, dictionary))
            }
            Page::Decoded(values) => {
                let mut passed = 0;
                for run in runs.iter() {
                    enough(values.take(run.start - passed).count(), run.start - passed)?;
                    let taken: Vec<ByteArray> = values.take(run.len()).collect();
                    enough(taken.len(), run.len())?;
                    self.made.append_values(taken.iter().map(ByteArray::data), self.is_text)?;
                    passed = run.end;
                }
                enough(values.take(runs.passed() - passed).count(), runs.passed() - passed)
            }
        }
    }

    fn skip(&self, page: &mut Page, count: usize) -> Result<()> {
        match page {
            Page::Plain { bytes, at } => {
                *at = behind(bytes, *at, count)?;
                Ok(())
            }
            Page::Keys(numbers) => numbers.skip(count),
            Page::Decoded(values) => enough(values.take(count).count(), count),
        }
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        std::mem::take(&mut self.made).into_array(self.is_text, nulls)
    }
}

fn enough(found: usize, count: usize) -> Result<()> {
    match found == count {
        true => Ok(()),
        false => Err(ParquetError::EOF(format!("a page ends after {found} values of {count}"))),
    }
}

fn ends_inside() -> ParquetError {
    ParquetError::EOF("a page ends inside a value".to_owned())
}

fn too_large() -> ParquetError {
    ParquetError::General("a batch has more than 2 GiB of a column: read smaller batches".to_owned())
}

/// Start and end of the value whose length is stored at `at`.
fn plain(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let start = at.checked_add(4)?;
    let end = start.checked_add(length(bytes, at)?)?;
    (end <= bytes.len()).then_some((start, end))
}

/// Number of consecutive values of one length that start at `at`, at most `most`.
fn same(bytes: &[u8], at: usize, most: usize) -> Result<usize> {
    let (value, end) = plain(bytes, at).ok_or_else(ends_inside)?;
    let (length, step) = (end - value, end - at);
    let most = most.min(RUN.1).min((bytes.len() - at) / step);
    Ok((1..most).take_while(|next| self::length(bytes, at + next * step) == Some(length)).count() + 1)
}

/// End of the next `count` values, each stored after its length.
fn behind(bytes: &[u8], at: usize, count: usize) -> Result<usize> {
    (0..count).try_fold(at, |at, _| Some(plain(bytes, at)?.1)).ok_or_else(ends_inside)
}

fn length(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

impl Dictionary {
    fn new(made: Made, is_text: bool) -> Result<Self> {
        let values = made.into_array(is_text, None)?;
        let data = values.to_data();
        let [offsets, bytes] = data.buffers() else { return Err(ends_inside()) };
        let mut own = Self { offsets: offsets.clone(), bytes: bytes.clone(), short: None, values };
        let short = |key: usize| {
            let value = own.value(key)?;
            let mut copy = [0; SHORT];
            copy.get_mut(..value.len())?.copy_from_slice(value);
            Some((copy, value.len()))
        };
        own.short = (0..own.values.len()).map(short).collect::<Option<Vec<_>>>().filter(|short| short.len() <= FEW);
        Ok(own)
    }

    fn value(&self, key: usize) -> Option<&[u8]> {
        let offsets: &[i32] = self.offsets.typed_data();
        let [start, end] = offsets.get(key..)?.first_chunk()?;
        self.bytes.get(usize::try_from(*start).ok()?..usize::try_from(*end).ok()?)
    }

    fn beyond(&self) -> ParquetError {
        ParquetError::General(format!("a page has keys beyond its dictionary of {} values", self.values.len()))
    }
}

impl Default for Made {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Made {
    /// Appends the selected values of a PLAIN page from `at` on and skips the others.
    fn append_plain(&mut self, bytes: &[u8], at: &mut usize, runs: &Runs<'_>, is_text: bool) -> Result<()> {
        let (first, start) = (self.offsets.len(), self.bytes.len());
        // Each value has at least a length, so a wrong count cannot reserve more than the page holds.
        let left = bytes.len().saturating_sub(*at);
        let count = runs.passed();
        let values = count.checked_mul(4).and_then(|lengths| left.checked_sub(lengths)).ok_or_else(ends_inside)?;
        let wanted = runs.count();
        let (mut runs, mut passed) = (runs.iter(), 0);
        let mut run = runs.next().unwrap_or(count..count);
        // The rows of this batch may end before the offsets overflow.
        let fits = i32::try_from(start.saturating_add(values)).is_ok();
        if fits {
            // Reserve for this batch only, at the first value's length: memory for the rest of the page would stay
            // with the batch.
            let first = length(bytes, *at).unwrap_or(0);
            self.bytes.reserve(values.min(first.saturating_mul(wanted)));
        }
        while run.start < count {
            let same = if fits { same(bytes, *at, count - passed)? } else { 0 };
            if same >= RUN.0 {
                let (value, end) = plain(bytes, *at).ok_or_else(ends_inside)?;
                let (step, ends) = (end - *at, passed + same);
                while run.start < ends {
                    let (from, to) = (run.start.max(passed), run.end.min(ends));
                    let found = bytes.get(*at + (from - passed) * step..*at + (to - passed) * step);
                    self.append_same(found.ok_or_else(ends_inside)?, end - value, to - from)?;
                    if run.end > ends {
                        break;
                    }
                    run = runs.next().unwrap_or(count..count);
                }
                *at += same * step;
                passed = ends;
                continue;
            }
            for _ in 0..RUN.0.min(count - passed) {
                let (value, end) = plain(bytes, *at).ok_or_else(ends_inside)?;
                if run.start <= passed {
                    self.push(bytes.get(value..end).ok_or_else(ends_inside)?)?;
                }
                (*at, passed) = (end, passed + 1);
                if run.end <= passed {
                    run = runs.next().unwrap_or(count..count);
                }
            }
        }
        *at = behind(bytes, *at, count - passed)?;
        self.check(first, start, is_text)
    }

    /// Appends `count` values of one length, each stored after its length.
    fn append_same(&mut self, values: &[u8], length: usize, count: usize) -> Result<()> {
        let before = self.bytes.len();
        match length {
            // With a constant length the compiler drops the call to memcpy.
            16 => values.as_chunks::<20>().0.iter().for_each(|[_, _, _, _, value @ ..]| self.bytes.extend(value)),
            32 => values.as_chunks::<36>().0.iter().for_each(|[_, _, _, _, value @ ..]| self.bytes.extend(value)),
            _ => values
                .chunks_exact(4 + length)
                .filter_map(|value| value.get(4..))
                .for_each(|value| self.bytes.extend(value)),
        }
        self.offsets.extend((1..=count).map(|next| (before + next * length) as i32));
        match self.bytes.len() == before + count * length {
            true => Ok(()),
            false => Err(internal("values of one length that are fewer than were counted")),
        }
    }

    fn append_values<'v>(&mut self, values: impl Iterator<Item = &'v [u8]>, is_text: bool) -> Result<()> {
        let (first, start) = (self.offsets.len(), self.bytes.len());
        for value in values {
            self.push(value)?;
        }
        self.check(first, start, is_text)
    }

    fn push(&mut self, value: &[u8]) -> Result<()> {
        let end = i32::try_from(self.bytes.len().saturating_add(value.len())).map_err(|_| too_large())?;
        self.bytes.extend_from_slice(value);
        self.offsets.push(end);
        Ok(())
    }

    /// Appends the dictionary values of the selected keys.
    fn append_keys(&mut self, keys: &[u32], runs: &Runs<'_>, dictionary: &Dictionary) -> Result<()> {
        let lost = || internal("keys that are wanted and were not read");
        let Some(short) = &dictionary.short else {
            for run in runs.iter() {
                for key in keys.get(run).ok_or_else(lost)? {
                    let value = usize::try_from(*key).ok().and_then(|key| dictionary.value(key));
                    self.push(value.ok_or_else(|| dictionary.beyond())?)?;
                }
            }
            return Ok(());
        };
        let overfull = || internal("more short values together than there is room for");
        let mut together = [0; KEYS * SHORT];
        let (mut before, mut filled, mut all_known) = (self.bytes.len(), 0, true);
        if runs.iter().any(|run| keys.get(run).is_none()) {
            return Err(lost());
        }
        for keys in runs.iter().filter_map(|run| keys.get(run)).flat_map(|run| run.chunks(KEYS)) {
            if filled + keys.len() * SHORT > together.len() {
                self.bytes.extend_from_slice(together.get(..filled).ok_or_else(overfull)?);
                (before, filled) = (self.bytes.len(), 0);
            }
            if i32::try_from(before + together.len()).is_err() {
                return Err(too_large());
            }
            self.offsets.extend(keys.iter().map(|key| {
                let Some((value, length)) = short.get(*key as usize) else {
                    all_known = false;
                    return 0;
                };
                if let Some(room) = together.get_mut(filled..).and_then(<[u8]>::first_chunk_mut::<SHORT>) {
                    *room = *value;
                }
                filled += *length;
                (before + filled) as i32
            }));
        }
        if !all_known {
            return Err(dictionary.beyond());
        }
        self.bytes.extend_from_slice(together.get(..filled).ok_or_else(overfull)?);
        Ok(())
    }

    /// Checks that the strings from an offset and its byte on are UTF-8.
    fn check(&self, first: usize, start: usize, is_text: bool) -> Result<()> {
        let added = self.bytes.get(start..).ok_or_else(|| internal("a batch of texts that became shorter"))?;
        if !is_text || added.is_ascii() {
            return Ok(());
        }
        let invalid = || ParquetError::General("encountered text that is not UTF-8".to_owned());
        let text = from_utf8(added).map_err(|_| invalid())?;
        let mut ends = self.offsets.iter().skip(first).map(|end| usize::try_from(*end).unwrap_or(0));
        match ends.all(|end| end.checked_sub(start).is_some_and(|end| text.is_char_boundary(end))) {
            true => Ok(()),
            false => Err(invalid()),
        }
    }

    /// The values as an array with these nulls.
    fn into_array(self, is_text: bool, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let offsets = match &nulls {
            None => self.offsets,
            Some(nulls) => nulls::offsets(&self.offsets, nulls),
        };
        if offsets.last().map(|last| usize::try_from(*last)) != Some(Ok(self.bytes.len())) {
            return Err(internal("values that end elsewhere than their bytes"));
        }
        let (offsets, bytes) = (ScalarBuffer::from(offsets), Buffer::from_vec(self.bytes));
        Ok(match is_text {
            // SAFETY: offsets start at 0 and each was taken from the length of the bytes when its value was appended,
            // so they ascend and the last one is the length of the bytes. Each string is UTF-8: `check` validated the
            // appended PLAIN bytes, and the dictionary that values were copied from.
            true => Arc::new(unsafe { StringArray::new_unchecked(OffsetBuffer::new_unchecked(offsets), bytes, nulls) }),
            false => Arc::new(BinaryArray::try_new(OffsetBuffer::new(offsets), bytes, nulls)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    fn page(values: &[Vec<u8>]) -> Bytes {
        let mut bytes = Vec::new();
        for value in values {
            bytes.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
            bytes.extend(value);
        }
        bytes.into()
    }

    /// Strings of one length in a row, with other lengths between, of one- to four-byte characters.
    fn texts(lengths: &[(usize, usize)]) -> Vec<Vec<u8>> {
        let some = |(length, count): &(usize, usize)| vec!["aé€𝄞".repeat(*length).into_bytes(); *count];
        lengths.iter().flat_map(some).collect()
    }

    /// Selections for each window of `count` values, as ranges with gaps.
    fn wanted(count: usize) -> Vec<Vec<std::ops::Range<usize>>> {
        vec![
            std::iter::once(0..count).collect(),
            (0..count).step_by(3).map(|start| start..(start + 2).min(count)).collect(),
            std::iter::once(count / 2..count / 2 + 1).collect(),
        ]
    }

    fn read(
        column: &mut ByteArrays,
        open: &mut Page,
        ranges: &[std::ops::Range<usize>],
        count: usize,
    ) -> Result<ArrayRef> {
        column.append(open, &Runs::new(ranges, 0..count))?;
        column.finish(None)
    }

    fn expected(values: &[Vec<u8>], ranges: &[std::ops::Range<usize>]) -> Vec<Vec<u8>> {
        ranges.iter().flat_map(|range| values[range.clone()].to_vec()).collect()
    }

    fn found(array: &ArrayRef) -> Vec<Vec<u8>> {
        array.as_string::<i32>().iter().map(|value| value.unwrap().as_bytes().to_vec()).collect()
    }

    #[test]
    fn plain_values_are_those_between_their_lengths() {
        for lengths in [vec![(1, 40)], vec![(0, 9), (3, 1), (2, 20), (0, 3)], vec![(1, 7), (4, 7), (1, 3)]] {
            let values = texts(&lengths);
            for ranges in wanted(values.len()) {
                let (mut column, mut open) = (ByteArrays::new(true), Page::Plain { bytes: page(&values), at: 0 });
                let array = read(&mut column, &mut open, &ranges, values.len()).unwrap();
                assert_eq!(found(&array), expected(&values, &ranges), "{lengths:?} {ranges:?}");
            }
        }
        // The lengths with a constant-size copy.
        let inner = 1..18;
        for length in [16, 32, 33] {
            let values = vec![vec![b'x'; length]; 19];
            let (mut column, mut open) = (ByteArrays::new(true), Page::Plain { bytes: page(&values), at: 0 });
            assert_eq!(found(&read(&mut column, &mut open, std::slice::from_ref(&inner), 19).unwrap()), values[1..18]);
        }
    }

    #[test]
    fn keys_name_values_of_short_and_long_dictionaries() {
        for values in [texts(&[(0, 1), (1, 1)]), texts(&[(1, 1), (3, 1)])] {
            // A run of six keys for the second value, then eight bit-packed keys.
            let keys = Bytes::from_static(&[1, 6 << 1, 1, 1 << 1 | 1, 0b1010_0110]);
            let named = [1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 0, 1].map(|key: usize| values[key].clone());
            for ranges in wanted(named.len()) {
                let mut column = ByteArrays::new(true);
                column.set_dictionary(page(&values), values.len()).unwrap();
                let mut open = column.open(Encoding::RLE_DICTIONARY, keys.clone()).unwrap().unwrap();
                let array = read(&mut column, &mut open, &ranges, named.len()).unwrap();
                assert_eq!(found(&array), expected(&named, &ranges), "{ranges:?}");
            }
        }
    }

    #[test]
    fn pages_that_are_cut_or_no_text_are_errors() {
        let values = texts(&[(1, 12), (2, 2)]);
        let (whole, all) = (page(&values), 0..values.len());
        for end in 0..whole.len() {
            let (mut column, mut open) = (ByteArrays::new(true), Page::Plain { bytes: whole.slice(..end), at: 0 });
            assert!(read(&mut column, &mut open, std::slice::from_ref(&all), 14).is_err(), "cut at {end}");
        }
        // Two values that are valid UTF-8 only when concatenated.
        for values in [vec![vec![0xc3], vec![0xa9]], vec![vec![0xff]]] {
            let all = 0..values.len();
            let (mut column, mut open) = (ByteArrays::new(true), Page::Plain { bytes: page(&values), at: 0 });
            assert!(read(&mut column, &mut open, std::slice::from_ref(&all), values.len()).is_err());
        }
    }

    #[test]
    fn an_array_ends_where_its_bytes_do() {
        let made = |offsets: Vec<i32>| Made { offsets, bytes: b"abc".to_vec() };
        assert!(made(vec![0, 1, 3]).into_array(true, None).is_ok());
        for offsets in [vec![0, 1], vec![0, 4], vec![], vec![0, -1]] {
            assert!(made(offsets.clone()).into_array(true, None).is_err(), "{offsets:?}");
        }
        let nulls = NullBuffer::from(vec![true, false]);
        assert!(made(vec![0, 1, 3]).into_array(true, Some(nulls)).is_err(), "fewer rows than values");
    }
}
