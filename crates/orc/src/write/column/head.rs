//! The part common to all columns: PRESENT stream, statistics at three levels, row index, Bloom filter.

use arrow_buffer::NullBuffer;

use super::writer::Plan;
use crate::error::Result;
use crate::predicate::BloomBuilder;
use crate::proto::{
    BloomFilter, BloomFilterIndex, ColumnEncoding, ColumnStatistics, EncodingKind, Message, RowIndex, RowIndexEntry,
    StreamKind,
};
use crate::rle::BooleanWriter;
use crate::write::options::BloomVersion;
use crate::write::statistics::{Counted, Summary};
use crate::write::stream::{Context, Finished, Stream};
use crate::write::stripe::StripeWriter;

/// The PRESENT stream, which is created at the first null of a stripe.
#[derive(Debug, Default)]
struct Presence {
    bits: Option<Stream<BooleanWriter>>,
    /// The number of slots in this stripe so far.
    slots: usize,
    /// The number of slots before each row group, as long as there are no bits.
    groups: Vec<usize>,
}

impl Presence {
    fn begin_group(&mut self, context: &Context) {
        match &mut self.bits {
            Some(bits) => bits.mark(&context.compressor),
            None => self.groups.push(self.slots),
        }
    }

    fn add(&mut self, nulls: Option<&NullBuffer>, slots: usize, context: &mut Context) -> Result<()> {
        if nulls.is_some() && self.bits.is_none() {
            let mut bits = Stream::new(BooleanWriter::default());
            let mut written = 0;
            for start in std::mem::take(&mut self.groups) {
                bits.coder.write_run(true, start - written, &mut bits.open);
                bits.mark(&context.compressor);
                written = start;
            }
            bits.coder.write_run(true, self.slots - written, &mut bits.open);
            self.bits = Some(bits);
        }
        self.slots += slots;
        let Some(bits) = &mut self.bits else { return Ok(()) };
        match nulls {
            Some(nulls) => bits.coder.write(nulls.inner(), &mut bits.open),
            None => bits.coder.write_run(true, slots, &mut bits.open),
        }
        bits.spill(&mut context.compressor)
    }
}

/// The part of a column's writer that does not depend on its type.
#[derive(Debug)]
pub(super) struct Head<S> {
    /// The column id.
    pub column: u32,
    presence: Presence,
    /// Statistics of no values.
    empty: S,
    group: Counted<S>,
    stripe: Counted<S>,
    file: Counted<S>,
    /// Statistics of the stripe's finished row groups.
    groups: Vec<ColumnStatistics>,
    indexed: bool,
    /// The Bloom filter of the current row group, if the column has one.
    pub bloom: Option<BloomBuilder>,
    /// The Bloom filters of the finished row groups, in one or both forms.
    filters: Vec<BloomFilter>,
    older_filters: Vec<BloomFilter>,
    bloom_version: BloomVersion,
    /// Bytes of the data streams in all stripes so far.
    bytes_on_disk: u64,
}

impl<S: Summary> Head<S> {
    /// The head of a column; `empty` is the statistics of no values.
    pub(super) fn new(column: u32, empty: S, plan: &Plan<'_>) -> Self {
        Self {
            column,
            presence: Presence::default(),
            group: Counted::new(empty.clone()),
            stripe: Counted::new(empty.clone()),
            file: Counted::new(empty.clone()),
            empty,
            groups: Vec::new(),
            indexed: plan.options.row_index_stride > 0,
            bloom: plan.bloom(column),
            filters: Vec::new(),
            older_filters: Vec::new(),
            bloom_version: plan.options.bloom_filter_version,
            bytes_on_disk: 0,
        }
    }

    /// Adds slots; `nulls` says which of them have no value.
    pub(super) fn add(&mut self, nulls: Option<&NullBuffer>, slots: usize, context: &mut Context) -> Result<()> {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        let missing = nulls.map_or(0, NullBuffer::null_count);
        self.group.count += (slots - missing) as u64;
        self.group.nulls |= missing > 0;
        self.presence.add(nulls, slots, context)
    }

    /// The statistics of the current row group.
    pub(super) fn statistics(&mut self) -> &mut S {
        &mut self.group.values
    }

    /// Begins a row group. It is called before other streams record their positions, as those of PRESENT come first.
    pub(super) fn begin_group(&mut self, context: &Context) {
        self.presence.begin_group(context);
    }

    /// Ends a row group.
    pub(super) fn end_group(&mut self) {
        self.stripe.merge(&self.group);
        if self.indexed {
            self.groups.push(self.group.message(None));
        }
        self.group = Counted::new(self.empty.clone());
        if let Some(bloom) = &mut self.bloom {
            self.filters.push(bloom.to_utf8());
            if self.bloom_version == BloomVersion::Original {
                self.older_filters.push(bloom.to_original());
            }
            bloom.clear();
        }
    }

    /// Ends the stripe and gives it all streams of this column. `streams` are in the order of their positions; streams
    /// without positions are in `last`.
    pub(super) fn finish(
        &mut self,
        encoding: ColumnEncoding,
        streams: Vec<(StreamKind, Finished)>,
        last: Vec<(StreamKind, Finished)>,
        stripe: &mut StripeWriter<'_>,
    ) -> Result<()> {
        let presence = std::mem::take(&mut self.presence).bits;
        let presence = presence.map(|bits| bits.finish(&mut stripe.context.compressor)).transpose()?;
        let streams: Vec<_> = presence.map(|bits| (StreamKind::Present, bits)).into_iter().chain(streams).collect();
        if self.indexed {
            let mut positions = vec![Vec::new(); self.groups.len()];
            streams.iter().for_each(|(_, stream)| stream.put_positions(&mut positions));
            let statistics = std::mem::take(&mut self.groups).into_iter().map(|group| Some(Box::new(group)));
            let entry = positions
                .into_iter()
                .zip(statistics)
                .map(|(positions, statistics)| RowIndexEntry { positions, statistics })
                .collect();
            stripe.add_index(self.column, StreamKind::RowIndex, RowIndex { entry }.encode())?;
        }
        let mut encoding = encoding;
        if self.bloom.is_some() {
            encoding.bloom_encoding = Some(1);
            if self.bloom_version == BloomVersion::Original {
                let index = BloomFilterIndex { bloom_filter: std::mem::take(&mut self.older_filters) };
                stripe.add_index(self.column, StreamKind::BloomFilter, index.encode())?;
            }
            let index = BloomFilterIndex { bloom_filter: std::mem::take(&mut self.filters) };
            stripe.add_index(self.column, StreamKind::BloomFilterUtf8, index.encode())?;
        }
        let mut bytes = 0;
        for (kind, stream) in streams.into_iter().chain(last) {
            bytes += stream.bytes.len() as u64;
            stripe.add_data(self.column, kind, stream.bytes);
        }
        self.bytes_on_disk += bytes;
        self.file.merge(&self.stripe);
        stripe.add_column(encoding, self.stripe.message(self.shown(bytes)));
        self.stripe = Counted::new(self.empty.clone());
        Ok(())
    }

    /// The bytes on disk for the statistics; `None` for columns without streams.
    fn shown(&self, bytes: u64) -> Option<u64> {
        Some(bytes).filter(|bytes| *bytes > 0)
    }

    /// The statistics of all finished stripes.
    pub(super) fn file_statistics(&self) -> ColumnStatistics {
        self.file.message(self.shown(self.bytes_on_disk))
    }

    /// The number of bytes held in memory.
    pub(super) fn memory(&self) -> usize {
        /// Approximate bytes for the statistics and positions of a row group.
        const GROUP: usize = 200;
        self.presence.bits.as_ref().map_or(0, Stream::memory)
            + self.groups.len() * GROUP
            + (self.filters.len() + self.older_filters.len()) * self.bloom.as_ref().map_or(0, |bloom| bloom.bits() / 8)
    }
}

/// An encoding without a dictionary.
pub(super) fn encoding(kind: EncodingKind) -> ColumnEncoding {
    ColumnEncoding { kind: Some(kind), ..ColumnEncoding::default() }
}
