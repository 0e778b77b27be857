//! Text with direct or dictionary encoding, and binary values.
//!
//! Every stripe starts with a dictionary. After its first row group, and again at its end, the share of distinct values
//! decides whether the dictionary is kept. The values of an abandoned dictionary move to the direct streams.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;

use super::dictionary::Dictionary;
use super::head::{Head, encoding};
use super::number::Fresh;
use super::spans::Spans;
use super::writer::{ColumnWriter, Plan, plain, unexpected};
use crate::error::{Error, Result};
use crate::predicate::hash_bytes;
use crate::proto::{ColumnEncoding, ColumnStatistics, StreamKind};
use crate::rle::IntWriter;
use crate::types::{Kind, TypeDescription};
use crate::write::statistics::{ByteCount, Shapes, Summary, Texts};
use crate::write::stream::{Context, Plain, Stream};
use crate::write::stripe::StripeWriter;

/// The number of values after which the dictionary is checked, if no row group ends earlier.
const EARLY: usize = 10_000;
/// A key that has not been looked up yet.
const UNKNOWN: u32 = u32::MAX;
/// Dictionary indices encoded at a time.
const STEP: usize = 4096;

/// The streams of the direct encoding.
#[derive(Debug)]
struct Direct {
    data: Stream<Plain>,
    lengths: Stream<IntWriter>,
    scratch: Vec<i64>,
}

impl Direct {
    fn new(fresh: Fresh) -> Self {
        Self { data: Stream::new(Plain), lengths: fresh.stream(), scratch: Vec::new() }
    }

    fn mark(&mut self, context: &Context) {
        self.data.mark(&context.compressor);
        self.lengths.mark(&context.compressor);
    }

    fn push(&mut self, value: &[u8]) {
        self.data.open.extend_from_slice(value);
        self.scratch.push(value.len() as i64);
    }

    /// Encodes the lengths of the values pushed so far.
    fn spill(&mut self, context: &mut Context) -> Result<()> {
        self.lengths.coder.write(&self.scratch, &mut self.lengths.open);
        self.scratch.clear();
        self.lengths.spill(&mut context.compressor)?;
        self.data.spill(&mut context.compressor)
    }

    fn memory(&self) -> usize {
        self.data.memory() + self.lengths.memory()
    }

    fn finish(self, stripe: &mut StripeWriter<'_>) -> Result<Vec<(StreamKind, super::super::stream::Finished)>> {
        let compressor = &mut stripe.context.compressor;
        let data = self.data.finish(compressor)?;
        Ok(vec![(StreamKind::Data, data), (StreamKind::Length, self.lengths.finish(compressor)?)])
    }
}

/// A dictionary, and the index of every value so far.
#[derive(Debug, Default)]
struct Numbered {
    dictionary: Dictionary,
    numbers: Vec<u32>,
    /// The number of indices before each row group.
    groups: Vec<usize>,
    judged: bool,
}

#[derive(Debug)]
enum TextEncoding {
    Dictionary(Numbered),
    Direct(Box<Direct>),
}

/// `string`, `char`, `varchar`
#[derive(Debug)]
pub(super) struct TextColumn {
    head: Head<Texts>,
    form: TextEncoding,
    fresh: Fresh,
    /// The maximum characters of a `varchar` or `char`, and whether values are padded with spaces (`char`).
    cut: Option<(usize, bool)>,
    threshold: f64,
    sorted: bool,
    /// Maximum bytes of a dictionary.
    limit: usize,
    /// The number of row groups so far, in all stripes.
    group: u32,
}

impl TextColumn {
    pub(super) fn new(node: &TypeDescription, plan: &Plan<'_>) -> Self {
        let cut = match node.kind {
            Kind::Char { length } => Some((length as usize, true)),
            Kind::Varchar { length } => Some((length as usize, false)),
            _ => None,
        };
        let fresh = Fresh::new(false, plan);
        let threshold = plan.options.dictionary_key_size_threshold;
        Self {
            head: Head::new(node.column, Texts::default(), plan),
            form: first_form(threshold, fresh),
            fresh,
            cut,
            threshold,
            sorted: plan.options.sorted_dictionaries,
            limit: plan.options.stripe_size.min(1 << 31),
            group: 0,
        }
    }

    /// Writes an array with an Arrow dictionary; each value of the dictionary is looked up only once.
    fn write_keys(&mut self, keys: &[usize], values: &Spans<'_>, nulls: Option<&NullBuffer>) {
        let statistics = self.head.statistics();
        let mut sum = 0;
        let mut known: Vec<u32> = vec![UNKNOWN; values.len()];
        let TextEncoding::Dictionary(Numbered { dictionary, numbers, .. }) = &mut self.form else { return };
        let mut fresh = Vec::new();
        for (slot, key) in keys.iter().enumerate() {
            if nulls.is_some_and(|nulls| nulls.is_null(slot)) {
                continue;
            }
            let Some(known) = known.get_mut(*key) else { continue };
            if *known == UNKNOWN {
                *known = dictionary.number(&fit(values.value(*key), self.cut));
                if dictionary.is_new_to(*known, self.group) {
                    fresh.push(*known);
                }
            }
            numbers.push(*known);
            sum += dictionary.value(*known).len() as u64;
        }
        statistics.add_length(sum);
        for number in fresh {
            let value = dictionary.value(number);
            self.head.statistics().add_bounds(value);
            if let Some(bloom) = &mut self.head.bloom {
                bloom.add(hash_bytes(value));
            }
        }
    }

    fn write_values(&mut self, values: &Spans<'_>, nulls: Option<&NullBuffer>) {
        let (cut, group) = (self.cut, self.group);
        let mut bloom = self.head.bloom.take();
        let statistics = self.head.statistics();
        let mut sum = 0;
        match &mut self.form {
            TextEncoding::Dictionary(Numbered { dictionary, numbers, .. }) => values.for_each(nulls, |value| {
                let value = fit(value, cut);
                sum += value.len() as u64;
                let number = dictionary.number(&value);
                numbers.push(number);
                if dictionary.is_new_to(number, group) {
                    statistics.add_bounds(&value);
                    if let Some(bloom) = &mut bloom {
                        bloom.add(hash_bytes(&value));
                    }
                }
            }),
            TextEncoding::Direct(direct) => values.for_each(nulls, |value| {
                let value = fit(value, cut);
                sum += value.len() as u64;
                statistics.add_bounds(&value);
                if let Some(bloom) = &mut bloom {
                    bloom.add(hash_bytes(&value));
                }
                direct.push(&value);
            }),
        }
        statistics.add_length(sum);
        self.head.bloom = bloom;
    }

    /// Abandons the dictionary if it does not pay off.
    fn judge(&mut self, context: &mut Context) -> Result<()> {
        let TextEncoding::Dictionary(numbered) = &mut self.form else { return Ok(()) };
        numbered.judged = true;
        let (distinct, all) = (numbered.dictionary.len() as f64, numbered.numbers.len() as f64);
        if distinct > self.threshold * all || numbered.dictionary.bytes().len() > self.limit {
            let Numbered { dictionary, numbers, groups, .. } = std::mem::take(numbered);
            let mut direct = Direct::new(self.fresh);
            let mut groups = groups.into_iter().peekable();
            for (index, number) in numbers.iter().enumerate() {
                while groups.next_if_eq(&index).is_some() {
                    direct.spill(context)?;
                    direct.mark(context);
                }
                direct.push(dictionary.value(*number));
                if index % STEP == 0 {
                    direct.spill(context)?;
                }
            }
            direct.spill(context)?;
            groups.for_each(|_| direct.mark(context));
            self.form = TextEncoding::Direct(Box::new(direct));
        }
        Ok(())
    }
}

fn first_form(threshold: f64, fresh: Fresh) -> TextEncoding {
    if threshold > 0.0 {
        TextEncoding::Dictionary(Numbered::default())
    } else {
        TextEncoding::Direct(Box::new(Direct::new(fresh)))
    }
}

/// Converts a value to its type: truncates it to the maximum characters, or pads it with spaces.
fn fit(value: &[u8], cut: Option<(usize, bool)>) -> Cow<'_, [u8]> {
    let Some((most, fill)) = cut else { return Cow::Borrowed(value) };
    // The first byte of each character.
    let starts = value.iter().enumerate().filter(|(_, byte)| **byte & 0xC0 != 0x80).map(|(at, _)| at);
    let mut characters = 0;
    for start in starts {
        if characters == most {
            return Cow::Borrowed(value.get(..start).unwrap_or_default());
        }
        characters += 1;
    }
    if !fill || characters == most {
        return Cow::Borrowed(value);
    }
    let mut filled = value.to_vec();
    filled.resize(value.len() + most - characters, b' ');
    Cow::Owned(filled)
}

impl ColumnWriter for TextColumn {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let column = self.head.column;
        let nulls = array.logical_nulls();
        let dictionary = array.as_any_dictionary_opt().filter(|_| matches!(self.form, TextEncoding::Dictionary(_)));
        self.head.add(nulls.as_ref(), array.len(), context)?;
        match dictionary {
            Some(dictionary) if !dictionary.values().is_empty() => {
                let values = Spans::new(dictionary.values()).ok_or_else(|| unexpected(column, array))?;
                self.write_keys(&dictionary.normalized_keys(), &values, nulls.as_ref());
            }
            _ => {
                let array = plain(array)?;
                let values = Spans::new(&array).ok_or_else(|| unexpected(column, &array))?;
                self.write_values(&values, nulls.as_ref());
            }
        }
        match &mut self.form {
            TextEncoding::Direct(direct) => direct.spill(context),
            TextEncoding::Dictionary(numbered) => {
                let early = !numbered.judged && numbered.numbers.len() >= EARLY;
                if early || numbered.dictionary.bytes().len() > self.limit {
                    self.judge(context)?;
                }
                Ok(())
            }
        }
    }

    fn begin_group(&mut self, context: &Context) {
        self.head.begin_group(context);
        self.group = self.group.wrapping_add(1).max(1);
        match &mut self.form {
            TextEncoding::Direct(direct) => direct.mark(context),
            TextEncoding::Dictionary(numbered) => numbered.groups.push(numbered.numbers.len()),
        }
    }

    fn end_group(&mut self, context: &mut Context) -> Result<()> {
        self.head.end_group();
        match &self.form {
            TextEncoding::Dictionary(numbered) if !numbered.judged && !numbered.numbers.is_empty() => {
                self.judge(context)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        self.judge(stripe.context)?;
        let (direct, dictionary) = self.fresh.encodings();
        match std::mem::replace(&mut self.form, first_form(self.threshold, self.fresh)) {
            TextEncoding::Direct(own) => {
                let streams = own.finish(stripe)?;
                self.head.finish(encoding(direct), streams, Vec::new(), stripe)
            }
            TextEncoding::Dictionary(own) => {
                let dictionary_size = u32::try_from(own.dictionary.len())
                    .map_err(|_| Error::limit(format!("column {}: a dictionary is too large", self.head.column)))?;
                let encoding = ColumnEncoding { dictionary_size: Some(dictionary_size), ..encoding(dictionary) };
                let (streams, last) = own.finish(self.sorted, self.fresh, stripe.context)?;
                self.head.finish(encoding, streams, last, stripe)
            }
        }
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.head.file_statistics());
    }

    fn memory(&self) -> usize {
        self.head.memory()
            + match &self.form {
                TextEncoding::Direct(direct) => direct.memory(),
                TextEncoding::Dictionary(own) => own.dictionary.memory() + own.numbers.len() * size_of::<u32>(),
            }
    }
}

type Streams = Vec<(StreamKind, super::super::stream::Finished)>;

impl Numbered {
    /// Finishes the stream of indices, and the streams of the dictionary.
    fn finish(self, sorted: bool, fresh: Fresh, context: &mut Context) -> Result<(Streams, Streams)> {
        let Self { dictionary, numbers, groups, .. } = self;
        let order = sorted.then(|| dictionary.sorted());
        let mut data = fresh.stream();
        let mut scratch = Vec::with_capacity(STEP);
        let ends = groups.iter().skip(1).copied().chain([numbers.len()]);
        let groups = if groups.is_empty() { vec![0] } else { groups.clone() };
        for (start, end) in groups.into_iter().zip(ends) {
            data.mark(&context.compressor);
            for step in numbers.get(start..end).unwrap_or_default().chunks(STEP) {
                scratch.clear();
                match &order {
                    Some((_, places)) => scratch.extend(
                        step.iter().map(|number| i64::from(places.get(*number as usize).copied().unwrap_or(0))),
                    ),
                    None => scratch.extend(step.iter().map(|number| i64::from(*number))),
                }
                data.coder.write(&scratch, &mut data.open);
                data.spill(&mut context.compressor)?;
            }
        }
        let (mut lengths, mut bytes) = (fresh.stream(), Stream::new(Plain));
        let mut sizes = Vec::with_capacity(dictionary.len());
        match &order {
            None => {
                sizes.extend((0..dictionary.len()).map(|number| dictionary.value(number as u32).len() as i64));
                bytes.open.extend_from_slice(dictionary.bytes());
            }
            Some((order, _)) => {
                for number in order {
                    let value = dictionary.value(*number);
                    sizes.push(value.len() as i64);
                    bytes.open.extend_from_slice(value);
                }
            }
        }
        lengths.coder.write(&sizes, &mut lengths.open);
        let compressor = &mut context.compressor;
        let streams = vec![(StreamKind::Data, data.finish(compressor)?)];
        let last = vec![
            (StreamKind::Length, lengths.finish(compressor)?),
            (StreamKind::DictionaryData, bytes.finish(compressor)?),
        ];
        Ok((streams, last))
    }
}

/// Statistics of binary values.
pub(super) trait Binary: Send + std::fmt::Debug {
    /// The type of the statistics.
    type Summary: Summary;
    /// The statistics of no values.
    fn empty(&self) -> Self::Summary;
    /// Adds a value.
    fn add(summary: &mut Self::Summary, value: &[u8]);
}

/// `binary`
#[derive(Debug)]
pub(super) struct OfBytes;

impl Binary for OfBytes {
    type Summary = ByteCount;
    fn empty(&self) -> ByteCount {
        ByteCount(0)
    }
    fn add(summary: &mut ByteCount, value: &[u8]) {
        summary.0 += value.len() as u64;
    }
}

/// `geometry` (planar), `geography`
#[derive(Debug)]
pub(super) struct OfShapes(pub bool);

impl Binary for OfShapes {
    type Summary = Shapes;
    fn empty(&self) -> Shapes {
        Shapes::new(self.0)
    }
    fn add(summary: &mut Shapes, value: &[u8]) {
        summary.add(value);
    }
}

/// `binary`, `geometry`, `geography`
#[derive(Debug)]
pub(super) struct BinaryColumn<B: Binary> {
    head: Head<B::Summary>,
    streams: Box<Direct>,
    fresh: Fresh,
}

impl<B: Binary> BinaryColumn<B> {
    pub(super) fn new(column: u32, binary: B, plan: &Plan<'_>) -> Self {
        let fresh = Fresh::new(false, plan);
        let head = Head::new(column, binary.empty(), plan);
        Self { head, streams: Box::new(Direct::new(fresh)), fresh }
    }
}

impl<B: Binary> ColumnWriter for BinaryColumn<B> {
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()> {
        let array = plain(array)?;
        let values = Spans::new(&array).ok_or_else(|| unexpected(self.head.column, &array))?;
        self.head.add(array.nulls(), array.len(), context)?;
        let mut bloom = self.head.bloom.take();
        let statistics = self.head.statistics();
        let streams = &mut self.streams;
        values.for_each(array.nulls(), |value| {
            B::add(statistics, value);
            if let Some(bloom) = &mut bloom {
                bloom.add(hash_bytes(value));
            }
            streams.push(value);
        });
        self.head.bloom = bloom;
        self.streams.spill(context)
    }

    fn begin_group(&mut self, context: &Context) {
        self.head.begin_group(context);
        self.streams.mark(context);
    }

    fn end_group(&mut self, _: &mut Context) -> Result<()> {
        self.head.end_group();
        Ok(())
    }

    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()> {
        let streams = std::mem::replace(&mut *self.streams, Direct::new(self.fresh)).finish(stripe)?;
        self.head.finish(encoding(self.fresh.encodings().0), streams, Vec::new(), stripe)
    }

    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>) {
        out.push(self.head.file_statistics());
    }

    fn memory(&self) -> usize {
        self.head.memory() + self.streams.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_and_limited_lengths_count_characters() {
        for (value, length, fill, expected) in [
            ("", 3, true, "   "),
            ("äb", 3, true, "äb "),
            ("äbcd", 3, true, "äbc"),
            ("äbc", 3, true, "äbc"),
            ("a  ", 2, false, "a "),
            ("äöü", 2, false, "äö"),
            ("ab", 5, false, "ab"),
        ] {
            assert_eq!(&*fit(value.as_bytes(), Some((length, fill))), expected.as_bytes(), "{value:?}");
        }
        assert_eq!(&*fit(b"\xff\x80x", None), b"\xff\x80x");
    }
}
