//! Plans the reading of one stripe: its footer, then the indexes that are needed, then the data of the remaining rows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::ReadOptions;
use super::groups::{StripeIndexes, rows_to_read, surviving};
use super::stripe::{CLOSE, StripeParts, StripeReader};
use crate::column::{ColumnPositions, StripeColumns};
use crate::compress::HEADER;
use crate::encrypt::LocalKey;
use crate::error::{Error, Result};
use crate::origin::WriterId;
use crate::predicate::bloom_is_usable;
use crate::proto::{ColumnEncoding, RowIndex, StreamKind, StripeInformation};
use crate::source::{Fetched, Step};
use crate::stream::Part;
use crate::stripe::{StreamPlace, StripeDirectory, position_starts, sections};
use crate::tail::{FileMetadata, FileVersion};
use crate::types::{Kind, TypeDescription};
use crate::zone::Zone;

/// Maximum bytes of an encoded run, which may extend into the next row group.
const MAX_RUN_BYTES: u64 = 4608;

/// Plans one stripe: returns the ranges that it needs, until it has all of them and returns the stripe's reader.
#[derive(Debug)]
pub struct StripeLoader {
    file: Arc<FileMetadata>,
    options: Arc<ReadOptions>,
    stripe: usize,
    first_row: u64,
    schema: TypeDescription,
    /// The ranges fetched so far.
    pub fetched: Fetched,
    directory: Option<StripeDirectory>,
    read: Option<Arc<StripeIndex>>,
    planned: Option<PlannedStreams>,
}

/// The footer and the indexes of a stripe, shared by all of its pieces.
#[derive(Debug)]
pub(super) struct StripeIndex {
    directory: StripeDirectory,
    keys: Vec<Option<(LocalKey, u64)>>,
    encodings: Vec<ColumnEncoding>,
    positions: HashMap<u32, ColumnPositions>,
    /// By row group, whether the predicate keeps it; `None` without a predicate.
    kept: Option<Vec<bool>>,
}

/// The part of the data to read.
#[derive(Debug)]
struct PlannedStreams {
    rows: Vec<Range<u64>>,
    /// The parts of each data stream that are needed.
    parts: Vec<(StreamPlace, Vec<Range<u64>>)>,
}

impl StripeLoader {
    /// A loader for the stripe with this number, which counts from 0.
    pub fn new(file: Arc<FileMetadata>, options: Arc<ReadOptions>, stripe: usize) -> Result<Self> {
        options.check(&file)?;
        let rows = |stripe: &StripeInformation| stripe.number_of_rows.unwrap_or(0);
        let before = file.footer.stripes.get(..stripe).unwrap_or_default();
        let first_row = before.iter().fold(0u64, |sum, stripe| sum.saturating_add(rows(stripe)));
        let schema = options.projection.apply(&file.schema)?;
        let fetched = Fetched::default();
        let (directory, read, planned) = (None, None, None);
        Ok(Self { file, options, stripe, first_row, schema, fetched, directory, read, planned })
    }

    /// Reuses what another piece of the stripe has read, with options that differ only in the rows.
    pub(super) fn with_index(self, read: Option<Arc<StripeIndex>>) -> Self {
        Self { read, ..self }
    }

    /// The footer and indexes that were read, for other pieces.
    pub(super) fn index(&self) -> Option<&Arc<StripeIndex>> {
        self.read.as_ref()
    }

    /// Returns the ranges needed next, or the reader of the stripe. Add the bytes of the ranges to
    /// [`StripeLoader::fetched`], and call again.
    ///
    /// # Errors
    ///
    /// A stripe that the file lacks, or whose footer or indexes are damaged; errors of the key provider.
    pub fn advance(&mut self) -> Result<Step<StripeReader>> {
        self.step().map_err(|error| self.file.in_stripe(self.stripe, error))
    }

    fn step(&mut self) -> Result<Step<StripeReader>> {
        let stripe = self.information()?.clone();
        let read = match &self.read {
            Some(read) => Arc::clone(read),
            None => match self.read_index(&stripe)? {
                Step::Need(ranges) => return Ok(Step::Need(ranges)),
                Step::Done(read) => Arc::clone(self.read.insert(Arc::new(read))),
            },
        };
        let planned = match self.planned.take() {
            Some(planned) => planned,
            None => self.plan(&stripe, &read)?,
        };
        let ranges: Vec<_> = planned.parts.iter().flat_map(|(_, parts)| parts.iter().cloned()).collect();
        let missing = self.fetched.missing(&ranges, self.options.coalesce, self.options.longest);
        let step = match missing.is_empty() {
            true => Step::Done(self.build(&read, &planned)?),
            false => Step::Need(missing),
        };
        self.planned = Some(planned);
        Ok(step)
    }

    fn information(&self) -> Result<&StripeInformation> {
        let stripes = &self.file.footer.stripes;
        stripes.get(self.stripe).ok_or_else(|| Error::invalid(format!("the file has {} stripes only", stripes.len())))
    }

    /// Reads the footer, then the indexes that are worth their bytes.
    fn read_index(&mut self, stripe: &StripeInformation) -> Result<Step<StripeIndex>> {
        let directory = match self.directory.take() {
            Some(directory) => directory,
            None => {
                let [_, _, footer] = sections(stripe, self.file.length)?;
                let Some(bytes) = self.fetched.get(&footer) else { return Ok(Step::Need(vec![footer])) };
                StripeDirectory::read(&self.file, stripe, &bytes)?
            }
        };
        let keys = (0..directory.footer.encryption.len()).map(|variant| self.file.stripe_key(variant, self.stripe));
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let wanted = self.index_streams(&self.own_streams(&directory, &keys));
        let ranges: Vec<_> = wanted.iter().map(|place| place.range.clone()).collect();
        let missing = self.fetched.missing(&ranges, self.options.coalesce, self.options.longest);
        if !missing.is_empty() {
            self.directory = Some(directory);
            return Ok(Step::Need(missing));
        }
        let encodings = self.encodings(&directory, &keys);
        let indexes = self.read_indexes(&wanted, &keys, &encodings)?;
        let groups = self.groups(stripe);
        let kept = match (&self.options.predicate, groups) {
            (Some(predicate), Some(groups)) if groups > 0 => {
                Some(surviving(&self.file, predicate, &indexes, groups, true))
            }
            _ => None,
        };
        let complete = |index: &RowIndex| Some(index.entry.len()) == groups;
        let positions: HashMap<u32, ColumnPositions> = indexes
            .rows
            .into_iter()
            .filter(|(_, index)| complete(index))
            .map(|(column, index)| (column, Arc::new(index.entry.into_iter().map(|entry| entry.positions).collect())))
            .collect();
        let decoded = self.decoded_columns();
        let seekable = self.positions_are_sound() && decoded.iter().all(|column| positions.contains_key(column));
        let positions = if seekable { positions } else { HashMap::new() };
        Ok(Step::Done(StripeIndex { directory, keys, encodings, positions, kept }))
    }

    /// The number of row groups of the stripe; `None` if it exceeds the bytes of the file, as no index could have so
    /// many entries.
    fn groups(&self, stripe: &StripeInformation) -> Option<usize> {
        let rows = stripe.number_of_rows.unwrap_or(0);
        let groups = self.file.row_index_stride().map_or(0, |stride| rows.div_ceil(stride));
        usize::try_from(groups).ok().filter(|groups| *groups as u64 <= self.file.length)
    }

    /// The streams to read: for a column whose key is available, the encrypted ones instead of the masked ones.
    fn own_streams(&self, directory: &StripeDirectory, keys: &[Option<(LocalKey, u64)>]) -> Vec<StreamPlace> {
        let variant_of = |column: u32| {
            let mut variants = self.file.variants.iter().enumerate();
            variants
                .find(|(index, variant)| variant.columns.contains(&column) && matches!(keys.get(*index), Some(Some(_))))
        };
        let seen = |place: &&StreamPlace| variant_of(place.column).map(|(index, _)| index) == place.variant;
        directory.streams.iter().filter(seen).cloned().collect()
    }

    /// The ids of the columns to decode: the projected ones, those of the filter, and all their parents.
    fn decoded_columns(&self) -> HashSet<u32> {
        self.decoded_schema().walk().into_iter().map(|node| node.column).collect()
    }

    /// The projected schema plus the top-level fields of the filter's columns.
    fn decoded_schema(&self) -> TypeDescription {
        let Some(filter) = &self.options.filter else { return self.schema.clone() };
        let top = &self.file.schema;
        if top.kind != Kind::Struct {
            return self.schema.clone();
        }
        let own: Vec<u32> = self.schema.children.iter().map(|child| child.column).collect();
        let asked = filter.columns();
        let mut merged = TypeDescription { names: Vec::new(), children: Vec::new(), ..top.clone() };
        for (name, child) in top.names.iter().zip(&top.children) {
            let filtered = asked.iter().any(|column| (child.column..child.end).contains(column));
            let projected = own.iter().position(|column| *column == child.column);
            let chosen = match projected.and_then(|index| self.schema.children.get(index)) {
                _ if filtered => child,
                Some(projected) => projected,
                None => continue,
            };
            merged.names.push(name.clone());
            merged.children.push(chosen.clone());
        }
        merged
    }

    /// The index streams that are worth their bytes: row indexes if rows may be skipped, Bloom filters of tested
    /// columns.
    fn index_streams(&self, streams: &[StreamPlace]) -> Vec<StreamPlace> {
        let skips = self.options.predicate.is_some() || self.options.filter.is_some() || self.skips_rows();
        if !skips || self.file.row_index_stride().is_none() {
            return Vec::new();
        }
        let tested: BTreeSet<u32> = self.options.predicate.iter().flat_map(|predicate| predicate.columns()).collect();
        let decoded = self.decoded_columns();
        let wanted = |place: &&StreamPlace| match place.kind {
            StreamKind::RowIndex => tested.contains(&place.column) || decoded.contains(&place.column),
            StreamKind::BloomFilter | StreamKind::BloomFilterUtf8 => tested.contains(&place.column),
            _ => false,
        };
        streams.iter().filter(wanted).cloned().collect()
    }

    fn skips_rows(&self) -> bool {
        let rows = self.information().ok().and_then(|stripe| stripe.number_of_rows).unwrap_or(0);
        self.wanted_rows().is_some_and(|wanted| wanted.first() != Some(&(0..rows)))
    }

    /// The requested rows, counted from the first row of the stripe.
    fn wanted_rows(&self) -> Option<Vec<Range<u64>>> {
        let rows = self.information().ok().and_then(|stripe| stripe.number_of_rows).unwrap_or(0);
        let cut = |row: u64| row.saturating_sub(self.first_row).min(rows);
        let wanted = self.options.rows.as_ref()?;
        Some(wanted.iter().map(|range| cut(range.start)..cut(range.end)).filter(|range| !range.is_empty()).collect())
    }

    /// The rows to read, and the parts of the streams that contain them.
    fn plan(&self, stripe: &StripeInformation, read: &StripeIndex) -> Result<PlannedStreams> {
        let stride = self.file.row_index_stride();
        let rows = stripe.number_of_rows.unwrap_or(0);
        let rows = rows_to_read(rows, stride, read.kept.as_deref(), self.wanted_rows().as_deref());
        let streams = self.own_streams(&read.directory, &read.keys);
        let parts = self.data_parts(&streams, read, &rows, stride)?;
        Ok(PlannedStreams { rows, parts })
    }

    /// Whether row-group positions can be used. The C++ writer writes more values into the streams of a union's
    /// variants than there are rows, and its positions count them. Only reading from the start returns the rows that
    /// all readers return.
    fn positions_are_sound(&self) -> bool {
        let union = || self.decoded_schema().walk().iter().any(|node| node.kind == Kind::Union);
        self.file.writer() != WriterId::CPP || !union()
    }

    /// The encodings by column; those of readable encrypted variants replace the masked ones.
    fn encodings(&self, directory: &StripeDirectory, keys: &[Option<(LocalKey, u64)>]) -> Vec<ColumnEncoding> {
        let mut encodings = directory.footer.columns.clone();
        for (index, variant) in self.file.variants.iter().enumerate().rev() {
            if let (Some(Some(_)), Some(own)) = (keys.get(index), directory.footer.encryption.get(index)) {
                for (column, encoding) in variant.columns.clone().zip(&own.encoding) {
                    if let Some(slot) = encodings.get_mut(column as usize) {
                        *slot = encoding.clone();
                    }
                }
            }
        }
        encodings
    }

    fn read_indexes(
        &self,
        streams: &[StreamPlace],
        keys: &[Option<(LocalKey, u64)>],
        encodings: &[ColumnEncoding],
    ) -> Result<StripeIndexes> {
        let mut indexes = StripeIndexes::default();
        let mut budget = self.file.limits.budget(bytes_of(streams));
        for place in streams {
            let name = format!("column {} {}", place.column, place.kind);
            let bytes = self.plain_bytes(place, place.range.clone(), keys)?;
            if place.kind == StreamKind::RowIndex {
                indexes.rows.insert(place.column, self.file.section_within(&bytes, &name, &mut budget)?);
                continue;
            }
            let Some(node) = self.file.schema.find(place.column) else { continue };
            let newer = place.kind == StreamKind::BloomFilterUtf8;
            let usable = bloom_is_usable(&self.file, place.kind, &node.kind, encodings.get(place.column as usize));
            if usable && (newer || !indexes.blooms.contains_key(&place.column)) {
                indexes.blooms.insert(place.column, self.file.section_within(&bytes, &name, &mut budget)?);
            }
        }
        Ok(indexes)
    }

    /// The bytes of a part of a stream, decrypted if the stream is encrypted.
    fn plain_bytes(&self, place: &StreamPlace, range: Range<u64>, keys: &[Option<(LocalKey, u64)>]) -> Result<Bytes> {
        let bytes = self.fetched.get(&range).ok_or_else(|| Error::io(format!("bytes {range:?} were not fetched")))?;
        let Some(Some((key, stripe))) = place.variant.and_then(|variant| keys.get(variant)) else { return Ok(bytes) };
        let mut plain = bytes.to_vec();
        key.apply(place.column, place.kind, *stripe, range.start - place.range.start, &mut plain)?;
        Ok(plain.into())
    }

    /// The parts of all data streams that contain the rows to read.
    fn data_parts(
        &self,
        streams: &[StreamPlace],
        read: &StripeIndex,
        rows: &[Range<u64>],
        stride: Option<u64>,
    ) -> Result<Vec<(StreamPlace, Vec<Range<u64>>)>> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let decoded = self.decoded_columns();
        let data = streams.iter().filter(|place| decoded.contains(&place.column) && place.kind.is_data());
        let part = |place: &StreamPlace| {
            let ranges = stride.and_then(|stride| self.group_ranges(streams, place, read, rows, stride));
            (place.clone(), ranges.unwrap_or_else(|| vec![place.range.clone()]))
        };
        Ok(data.map(part).collect())
    }

    /// The parts of one stream that the row groups of the rows need; `None` if it is read whole.
    fn group_ranges(
        &self,
        streams: &[StreamPlace],
        place: &StreamPlace,
        read: &StripeIndex,
        rows: &[Range<u64>],
        stride: u64,
    ) -> Option<Vec<Range<u64>>> {
        let entries = read.positions.get(&place.column)?;
        let node = self.file.schema.find(place.column)?;
        let encoding = read.encodings.get(place.column as usize)?;
        let present = streams.iter().any(|other| other.column == place.column && other.kind == StreamKind::Present);
        let compressed = self.file.block > 0;
        let starts = position_starts(node, encoding, present, compressed, self.file.version);
        let (_, number) = starts.into_iter().find(|(kind, _)| *kind == place.kind)?;
        let length = place.range.end - place.range.start;
        let start_of =
            |group: u64| entries.get(usize::try_from(group).ok()?)?.get(number).map(|start| (*start).min(length));
        let block = self.file.block as u64;
        // The last run of a group may extend past the first chunk of the next group.
        let slop = match block {
            0 => MAX_RUN_BYTES,
            block => (block + HEADER as u64) * (2 + MAX_RUN_BYTES / block),
        };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut before: Option<u64> = None;
        for rows in rows {
            // Rows between close ranges are decoded with them.
            let close = before.is_some_and(|before| rows.start.saturating_sub(before) <= CLOSE);
            before = Some(rows.end);
            let first = start_of(rows.start / stride)?;
            let end =
                start_of((rows.end - 1) / stride + 1).map_or(length, |next| next.saturating_add(slop).min(length));
            match ranges.last_mut() {
                Some(last) if close || first <= last.end => last.end = last.end.max(end),
                _ => ranges.push(first..end),
            }
        }
        if ranges.iter().any(|range| range.start > range.end) {
            return None;
        }
        let base = place.range.start;
        Some(ranges.into_iter().map(|range| base + range.start..base + range.end).collect())
    }

    fn build(&self, read: &StripeIndex, planned: &PlannedStreams) -> Result<StripeReader> {
        let mut streams = HashMap::new();
        for (place, ranges) in &planned.parts {
            let parts = ranges.iter().map(|range| {
                let offset = usize::try_from(range.start - place.range.start);
                let offset = offset.map_err(|_| Error::limit("a stream exceeds the address space"))?;
                Ok(Part { offset, bytes: self.plain_bytes(place, range.clone(), &read.keys)? })
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            // If a stream is listed twice, it is not clear which one holds the values.
            if streams.insert((place.column, place.kind), parts).is_some() {
                return Err(Error::corrupt(
                    "footer",
                    format!("column {} has two {} streams", place.column, place.kind),
                ));
            }
        }
        let columns = StripeColumns {
            streams,
            encodings: read.encodings.clone(),
            positions: read.positions.clone(),
            block: self.file.block,
            zone: self.zone(&read.directory)?,
            short_decimals: self.file.version == FileVersion::V2Draft,
            from_julian: self.options.calendar.is_julian(&self.file),
            arrow: self.options.arrow.clone(),
        };
        let parts = StripeParts {
            columns,
            decoded: self.decoded_schema(),
            output: self.schema.clone(),
            rows: planned.rows.clone(),
            first_row: self.first_row,
            stride: self.file.row_index_stride().filter(|_| !read.positions.is_empty()),
            stripe: self.stripe,
        };
        StripeReader::new(parts, Arc::clone(&self.file), Arc::clone(&self.options))
    }

    /// The writer's time zone, if timestamps without a time zone are read.
    fn zone(&self, directory: &StripeDirectory) -> Result<Arc<Zone>> {
        let asked = self.decoded_schema().walk().iter().any(|node| node.kind == Kind::Timestamp);
        let written = directory.footer.writer_timezone.as_deref().filter(|zone| !zone.is_empty());
        match written.or(self.options.default_zone.as_deref()) {
            Some(name) if asked => Ok(Arc::new(Zone::named(name)?)),
            _ => Ok(Arc::default()),
        }
    }
}

/// The bytes of these streams in the file, which determine the memory budget of their indexes.
pub(crate) fn bytes_of<'a>(streams: impl IntoIterator<Item = &'a StreamPlace>) -> usize {
    let length = |place: &StreamPlace| usize::try_from(place.range.end - place.range.start).unwrap_or(usize::MAX);
    streams.into_iter().fold(0, |sum, place| sum.saturating_add(length(place)))
}
