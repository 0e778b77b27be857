//! Text and binary columns, with direct and dictionary encodings.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::ColumnReader;
use super::presence::{Head, Slots};
use crate::error::{Error, Result};
use crate::rle::IntReader;
use crate::stream::{ByteStream, Context};
use crate::types::{ArrowOptions, Kind, StringForm};
use crate::utf8::all_text;

/// The Arrow form of the values.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextForm {
    strings: StringForm,
    trim: bool,
}

impl TextForm {
    /// The form for a text column.
    pub(super) fn new(kind: &Kind, options: &ArrowOptions) -> Self {
        Self { strings: options.strings, trim: options.trim_char && matches!(kind, Kind::Char { .. }) }
    }

    /// The form for a binary column.
    pub(super) fn bytes() -> Self {
        Self { strings: StringForm::Binary, trim: false }
    }

    /// The same form without an Arrow dictionary: text or binary.
    fn plain(self) -> Self {
        Self { strings: if self.strings == StringForm::Binary { StringForm::Binary } else { StringForm::Utf8 }, ..self }
    }

    fn array(self, column: u32, mut values: PlainValues, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        if self.trim {
            values.trim();
        }
        let PlainValues { offsets, bytes } = values;
        let text = self.strings != StringForm::Binary;
        let text_ok = !text || all_text(&offsets, &bytes);
        // The offsets start at 0, never decrease and end at the length, because `PlainValues` only appends to both.
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let bytes = Buffer::from_vec(bytes);
        if !text {
            return Ok(Arc::new(BinaryArray::new(offsets, bytes, nulls)));
        }
        if !text_ok {
            return Err(Error::value(format!("column {column}: text that is not UTF-8 (it can be read as binary)")));
        }
        // SAFETY: `all_text` returned true, so every value is UTF-8, and the offsets belong to `bytes`.
        let array = unsafe { StringArray::new_unchecked(offsets, bytes, nulls) };
        Ok(Arc::new(array))
    }
}

/// Concatenated values and their offsets.
#[derive(Debug, Default)]
struct PlainValues {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl PlainValues {
    /// Removes the trailing spaces of each value.
    fn trim(&mut self) {
        let mut kept = 0usize;
        let mut start = 0usize;
        for offset in self.offsets.iter_mut().skip(1) {
            let end = *offset as usize;
            let value = self.bytes.get(start..end).unwrap_or_default();
            let length = value.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            self.bytes.copy_within(start..start + length, kept);
            kept += length;
            start = end;
            *offset = kept as i32;
        }
        self.bytes.truncate(kept);
    }
}

/// The offsets of values with these lengths.
fn offsets_of(column: u32, lengths: &[i64]) -> Result<Vec<i32>> {
    let mut offsets = Vec::with_capacity(lengths.len() + 1);
    offsets.push(0);
    let mut end = 0u64;
    let mut all = 0u64;
    for length in lengths {
        // As an unsigned number, a negative length is huge; its high bit stays set in `all`.
        all |= *length as u64;
        end = end.wrapping_add(*length as u64);
        offsets.push(end as i32);
    }
    if all > i32::MAX as u64 || end > i32::MAX as u64 {
        return Err(Error::value(format!(
            "column {column}: a batch has more than 2 GiB of text or bytes, or an invalid length"
        )));
    }
    Ok(offsets)
}

/// `string`, `char`, `varchar`, `binary` with direct encoding.
#[derive(Debug)]
pub(super) struct DirectColumn {
    head: Head,
    data: ByteStream,
    lengths: IntReader,
    form: TextForm,
    scratch: Vec<i64>,
}

impl DirectColumn {
    pub(super) fn new(head: Head, data: ByteStream, lengths: IntReader, form: TextForm) -> Self {
        Self { head, data, lengths, form, scratch: Vec::new() }
    }
}

impl ColumnReader for DirectColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        /// Maximum bytes to allocate before they are read, since the lengths of a corrupt file may be huge.
        const FIRST: usize = 1 << 20;
        let column = self.head.column;
        let validity = self.head.validity(slots, context)?;
        self.lengths.read_vec(validity.present, &mut self.scratch, context)?;
        if validity.valid.is_some() {
            self.scratch = validity.spread(std::mem::take(&mut self.scratch), 0);
        }
        let offsets = offsets_of(column, &self.scratch)?;
        let total = offsets.last().copied().unwrap_or_default() as usize;
        let mut bytes = Vec::with_capacity(total.min(FIRST));
        self.data.read_onto(total, &mut bytes, context)?;
        let array = self.form.plain().array(column, PlainValues { offsets, bytes }, validity.nulls())?;
        if self.form.strings != StringForm::Dictionary {
            return Ok(array);
        }
        let keys = PrimitiveArray::<Int32Type>::new((0..slots.count as i32).collect(), validity.nulls());
        Ok(Arc::new(DictionaryArray::new(keys, array)))
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        let bytes = sum_lengths(&mut self.lengths, present, &mut self.scratch, context)?;
        self.data.skip(bytes, context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| {
            self.data.seek(positions)?;
            self.lengths.seek(positions, context)
        })
    }
}

/// Reads the next `count` lengths and returns their sum.
pub(super) fn sum_lengths(
    lengths: &mut IntReader,
    mut count: usize,
    scratch: &mut Vec<i64>,
    context: &mut Context,
) -> Result<usize> {
    /// Lengths per step.
    const STEP: usize = 1 << 13;
    let mut sum = 0usize;
    while count > 0 {
        let step = count.min(STEP);
        lengths.read_vec(step, scratch, context)?;
        for length in scratch.iter() {
            let length = usize::try_from(*length).map_err(|_| lengths.corrupt("a negative length"))?;
            sum = sum.checked_add(length).ok_or_else(|| lengths.corrupt("the lengths exceed the address space"))?;
        }
        count -= step;
    }
    Ok(sum)
}

/// The streams of a dictionary.
#[derive(Debug)]
pub(super) struct Dictionary {
    /// Number of entries.
    pub size: usize,
    /// Their lengths.
    pub lengths: IntReader,
    /// Their bytes.
    pub bytes: ByteStream,
}

/// A loaded dictionary.
#[derive(Debug)]
struct Entries {
    /// Start and length of each entry. An additional last one, of length 0, stands for nulls.
    spans: Vec<(u32, u32)>,
    /// The bytes of the entries, padded by [`SHORT`] bytes so that a whole block can be read at every entry.
    bytes: Vec<u8>,
    /// The entries in blocks of a fixed size, if none is longer than [`SHORT`] and there are at most [`MAX_BLOCKS`].
    blocks: Option<Blocks>,
    /// The entries as an Arrow array, if the column is read as an Arrow dictionary.
    array: Option<ArrayRef>,
}

/// Short entries, each at the start of a fixed-size block that is copied whole.
#[derive(Debug)]
enum Blocks {
    /// Entries of exactly one byte (flags, codes).
    Bytes(Vec<u8>),
    Eight(Vec<[u8; 8]>),
    Sixteen(Vec<[u8; 16]>),
    Short(Vec<[u8; SHORT]>),
}

/// Maximum number of blocks; more would not stay in the processor's cache.
const MAX_BLOCKS: usize = 1 << 14;
/// Maximum length of an entry that is copied as a whole block.
const SHORT: usize = 32;

/// `string`, `char`, `varchar` as indices into a dictionary, which is loaded when it is first needed.
#[derive(Debug)]
pub(super) struct DictionaryColumn {
    head: Head,
    indices: IntReader,
    dictionary: Dictionary,
    entries: Option<Entries>,
    form: TextForm,
    scratch: Vec<i64>,
}

impl DictionaryColumn {
    pub(super) fn new(head: Head, indices: IntReader, dictionary: Dictionary, form: TextForm) -> Self {
        Self { head, indices, dictionary, entries: None, form, scratch: Vec::new() }
    }

    fn load(&mut self, context: &mut Context) -> Result<Entries> {
        let column = self.head.column;
        let size = self.dictionary.size;
        let mut lengths = Vec::new();
        self.dictionary.lengths.read_vec(size, &mut lengths, context)?;
        let offsets = offsets_of(column, &lengths)?;
        let total = offsets.last().copied().unwrap_or_default() as usize;
        if total > context.dictionary_bytes {
            return Err(Error::limit(format!("column {column}: a dictionary of {total} bytes exceeds the limit")));
        }
        let mut bytes = Vec::new();
        self.dictionary.bytes.read_onto(total, &mut bytes, context)?;
        let mut values = PlainValues { offsets, bytes };
        if self.form.trim {
            values.trim();
        }
        if self.form.strings != StringForm::Binary && !all_text(&values.offsets, &values.bytes) {
            return Err(Error::value(format!("column {column}: text that is not UTF-8 (it can be read as binary)")));
        }
        let mut spans: Vec<(u32, u32)> = values
            .offsets
            .windows(2)
            .map(|pair| match pair {
                [start, end] => (*start as u32, (end - start) as u32),
                _ => (0, 0),
            })
            .collect();
        spans.push((0, 0));
        let array = match self.form.strings {
            StringForm::Dictionary => {
                let copy = PlainValues { offsets: values.offsets.clone(), bytes: values.bytes.clone() };
                Some(TextForm { trim: false, ..self.form.plain() }.array(column, copy, None)?)
            }
            _ => None,
        };
        let mut bytes = values.bytes;
        bytes.resize(bytes.len() + SHORT, 0);
        let blocks = Blocks::of(&spans, &bytes);
        Ok(Entries { spans, bytes, blocks, array })
    }
}

impl ColumnReader for DictionaryColumn {
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef> {
        let validity = self.head.validity(slots, context)?;
        if self.entries.is_none() {
            self.entries = Some(self.load(context)?);
        }
        let Some(entries) = &self.entries else { return Err(Error::corrupt("", "missing dictionary")) };
        self.indices.read_vec(validity.present, &mut self.scratch, context)?;
        let size = entries.spans.len() - 1;
        if self.scratch.iter().fold(0, |most, index| most.max(*index as u64)) >= size.max(1) as u64
            || (size == 0 && !self.scratch.is_empty())
        {
            return Err(self
                .indices
                .corrupt(&format!("an index is out of range for the {size} entries of the dictionary")));
        }
        if let Some(values) = &entries.array {
            let keys: Vec<i32> = self.scratch.iter().map(|index| *index as i32).collect();
            let keys = PrimitiveArray::<Int32Type>::new(validity.spread(keys, 0).into(), validity.nulls());
            return Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(values))?));
        }
        if validity.valid.is_some() {
            self.scratch = validity.spread(std::mem::take(&mut self.scratch), size as i64);
        }
        let values = gather(self.head.column, &self.scratch, entries)?;
        let PlainValues { offsets, bytes } = values;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        let bytes = Buffer::from_vec(bytes);
        if self.form.strings == StringForm::Binary {
            return Ok(Arc::new(BinaryArray::new(offsets, bytes, validity.nulls())));
        }
        // SAFETY: every value is a whole entry of the dictionary, and `load` has checked that all entries are UTF-8.
        let array = unsafe { StringArray::new_unchecked(offsets, bytes, validity.nulls()) };
        Ok(Arc::new(array))
    }

    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()> {
        let present = self.head.skip(rows, context)?;
        self.indices.skip(present, context)
    }

    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()> {
        self.head.seek(group, context, |positions, context| self.indices.seek(positions, context))
    }
}

impl Blocks {
    /// The entries as blocks; `None` if one is too long or there are too many. `bytes` is padded for the last block.
    fn of(spans: &[(u32, u32)], bytes: &[u8]) -> Option<Self> {
        fn blocks<const N: usize>(spans: &[(u32, u32)], bytes: &[u8]) -> Option<Vec<[u8; N]>> {
            spans.iter().map(|(start, _)| bytes.get(*start as usize..)?.first_chunk::<N>().copied()).collect()
        }
        let (_, entries) = spans.split_last()?;
        let longest = entries.iter().map(|(_, length)| *length as usize).max().unwrap_or(0);
        match longest {
            _ if spans.len() > MAX_BLOCKS => None,
            1 if entries.iter().all(|(_, length)| *length == 1) => {
                Some(Self::Bytes(blocks::<1>(spans, bytes)?.into_iter().flatten().collect()))
            }
            0..=8 => Some(Self::Eight(blocks(spans, bytes)?)),
            9..=16 => Some(Self::Sixteen(blocks(spans, bytes)?)),
            17..=SHORT => Some(Self::Short(blocks(spans, bytes)?)),
            _ => None,
        }
    }

    fn gather(&self, indices: &[i64], offsets: &[i32]) -> Vec<u8> {
        match self {
            // One byte per value means no nulls, since a null takes no bytes.
            Self::Bytes(bytes) if offsets.last().is_some_and(|total| *total as usize == indices.len()) => {
                indices.iter().map(|index| bytes.get(*index as usize).copied().unwrap_or_default()).collect()
            }
            Self::Bytes(bytes) => indices
                .iter()
                .filter_map(|index| bytes.get(*index as usize..bytes.len() - 1)?.first().copied())
                .collect(),
            Self::Eight(blocks) => gather_blocks(indices, blocks, offsets),
            Self::Sixteen(blocks) => gather_blocks(indices, blocks, offsets),
            Self::Short(blocks) => gather_blocks(indices, blocks, offsets),
        }
    }
}

/// Concatenates values by copying whole blocks; each block overwrites the surplus bytes of the one before.
fn gather_blocks<const N: usize>(indices: &[i64], blocks: &[[u8; N]], offsets: &[i32]) -> Vec<u8> {
    let total = offsets.last().copied().unwrap_or_default() as usize;
    let mut bytes = Vec::with_capacity(total + N);
    for (index, end) in indices.iter().zip(offsets.iter().skip(1)) {
        let Some(block) = blocks.get(*index as usize) else { break };
        bytes.extend_from_slice(block);
        bytes.truncate(*end as usize);
    }
    bytes
}

/// Concatenates the entries at these indices.
fn gather(column: u32, indices: &[i64], entries: &Entries) -> Result<PlainValues> {
    let span = |index: &i64| entries.spans.get(*index as usize).copied().unwrap_or_default();
    let mut offsets = Vec::with_capacity(indices.len() + 1);
    offsets.push(0);
    let mut total = 0u64;
    offsets.extend(indices.iter().map(|index| {
        total += u64::from(span(index).1);
        total as i32
    }));
    let total = i32::try_from(total)
        .map_err(|_| Error::value(format!("column {column}: a batch has more than 2 GiB of text")))?
        as usize;
    if let Some(blocks) = &entries.blocks {
        return Ok(PlainValues { bytes: blocks.gather(indices, &offsets), offsets });
    }
    let mut bytes = vec![0u8; total + SHORT];
    let mut rest = bytes.as_mut_slice();
    for index in indices {
        let (start, length) = span(index);
        let (start, length) = (start as usize, length as usize);
        let source = entries.bytes.get(start..).unwrap_or_default();
        if let (true, Some(from), Some(to)) =
            (length <= SHORT, source.first_chunk::<SHORT>(), rest.first_chunk_mut::<SHORT>())
        {
            *to = *from;
        } else if let (Some(from), Some(to)) = (source.get(..length), rest.get_mut(..length)) {
            to.copy_from_slice(from);
        }
        rest = rest.get_mut(length..).unwrap_or_default();
    }
    bytes.truncate(total);
    Ok(PlainValues { offsets, bytes })
}
