//! Reads Parquet data files: batches of chosen columns and row groups ("Appendix A: Parquet").
//!
//! The decoder does no I/O: it asks for ranges and the storage fetches them, so local files and object stores share
//! the code. The Arrow schema that some writers embed is ignored; types come from the Parquet schema, as other
//! readers see them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Fields};
use icefield_format::types::Schema as TableSchema;
use parquet::arrow::ProjectionMask;
use parquet::arrow::RowNumber;
use parquet::arrow::arrow_reader::{ArrowPredicateFn, ArrowReaderMetadata, RowFilter, RowGroups};
use parquet::arrow::push_decoder::ParquetPushDecoderBuilder;
use parquet::file::metadata::ParquetMetaData;

use super::arrow_types::arrow_metadata;
use super::batches::{Batches, Decoder};
use super::columns::Columns;
use super::decoders::Decoders;
use super::encrypted::{Chunks, key_of};
use super::footers::{Footer, TAIL};
use super::late::{Late, Wanted};
use super::selection::Selected;
use super::tail::Tail;
use super::{footers, int96};
use crate::error::{Error, Result};
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;
use crate::file::parquet::guard::guarded;
use crate::file::parquet::pages::loaded::LoadedGroups;
use crate::file::parquet::pages::page_index::Checks;
use crate::file::parquet::pages::paged::{Failure, PagedGroups};
use crate::file::parquet::pages::slices::{Cutting, slices};
use crate::file::parquet::prune::distinct::Distinct;
use crate::file::parquet::prune::row_groups::{Leaf, Tested};
use crate::file::parquet::prune::{pages, row_groups};
use crate::file::parquet::variant::value;
use crate::file::parquet::{decimals, metrics};
use crate::file::ranges::{both, overlapping};
use crate::file::{BATCH_ROWS, DataFileReader, Filter, Nulls, Request, position_field};
use crate::storage::{OpenObject, Storage};
use crate::stream::{OpenParts, Opened};

/// Row groups; and for a slice, which one thread decodes at a time, its rows by number in the file, selected or not.
type Part = (Vec<usize>, Option<Range<u64>>);

/// Minimum bytes of a piece when several threads read a file.
const PIECE_BYTES: u64 = 8 << 20;

/// Minimum bytes of a slice of a row group.
const SLICE_BYTES: u64 = 64 << 10;

/// Limits of the small-file path ([`ParquetFile::small`]): compressed and uncompressed bytes.
const SMALL: (u64, u64) = (1 << 20, 16 << 20);

/// A Parquet file with its footer.
#[derive(Clone)]
pub struct ParquetFile {
    storage: Storage,
    pub(super) path: Arc<str>,
    size: u64,
    tail: Tail,
    pub(super) metadata: ArrowReaderMetadata,
    /// The identifier of an encrypted file, to which its pages are bound.
    unique: Option<Arc<[u8]>>,
    /// Decimal leaves that are read as binary, with their declared precision and scale.
    pub(super) decimals: BTreeMap<usize, (i32, i32)>,
    /// INT96 leaves that are nanoseconds in the table, and the file's schema for checking their range.
    pub(super) int96: Option<(Vec<usize>, ArrowReaderMetadata)>,
    decoders: Decoders,
    /// The columns with the field ids they are read by, and the schema of the filter.
    bound: Option<(Fields, Arc<TableSchema>)>,
}

impl ParquetFile {
    /// Reads the footer; `size` is the size in the manifest, if known.
    pub fn open(storage: &Storage, path: &str, size: Option<u64>) -> Result<Self> {
        let size = match size {
            Some(size) => size,
            None => storage.size(path)?,
        };
        let (Footer { metadata, unique }, tail) = footers::footer(storage, path, size)?;
        let (storage, path) = (storage.clone(), path.into());
        let decoders = Decoders::chosen();
        let (decimals, int96, bound) = (BTreeMap::new(), None, None);
        Ok(Self { storage, path, size, tail, metadata, unique, decimals, int96, decoders, bound })
    }

    /// The file's columns; columns with a field id carry it as `PARQUET:field_id`.
    pub fn fields(&self) -> &Fields {
        self.metadata.schema().fields()
    }

    /// The footer: row groups, statistics, Parquet types.
    pub fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// Whether pages must be decrypted: then whole column chunks are read.
    fn is_encrypted(&self) -> bool {
        self.unique.is_some()
    }

    /// What decrypts some row groups.
    fn chunks(&self, row_groups: &[usize]) -> Result<Option<Chunks>> {
        let (Some(key), Some(unique)) = (key_of(&self.storage), &self.unique) else { return Ok(None) };
        Chunks::of(&self.path, key, unique, self.metadata.metadata(), row_groups).map(Some)
    }

    /// Prunes the row groups of a request by statistics, then by dictionaries and Bloom filters, then by the page
    /// index, which narrows the selected rows.
    fn skip(&self, request: &mut Request) -> Result<Vec<usize>> {
        let bound = self.bound.as_ref();
        let tested = bound.map(|(fields, schema)| row_groups::tested(fields, schema, request)).unwrap_or_default();
        let numbers = self.row_numbers();
        let mut wanted = row_groups::wanted(self.metadata(), &tested, request, self.size);
        let leaves: Vec<Leaf> = tested.into_iter().filter_map(Tested::into_leaf).collect();
        if let Some(rows) = &request.rows {
            wanted.retain(|place| numbers.get(*place).is_some_and(|group| overlapping(rows, group).next().is_some()));
        }
        // Dictionaries, Bloom filters and page indexes would have to be decrypted.
        if leaves.is_empty() || self.is_encrypted() {
            return Ok(wanted);
        }
        let filter = request.prune.rewrite_not();
        let (storage, path, metadata) = (&self.storage, &*self.path, self.metadata());
        let mut distinct = Distinct::new(storage, path, self.size, metadata, &leaves);
        let mut left = Vec::with_capacity(wanted.len());
        for group in wanted {
            if distinct.might_match(group, &filter, self.bytes(group, request))? {
                left.push(group);
            }
        }
        let fetch = |ranges: &[Range<u64>]| match self.tail.ranges(ranges) {
            Some(bytes) => Ok(bytes),
            None => storage.ranges(path, ranges),
        };
        let bounds = pages::bounds(path, self.size, metadata, &left, &leaves, fetch)?;
        let rows = guarded(path, || Ok(pages::rows_left(metadata, &bounds, &left, &numbers, &leaves, &filter)))?;
        if let Some(rows) = rows {
            let pruned = leaves.iter().map(|leaf| leaf.place);
            self.check_headers(&left, pruned, &[])?;
            let overlaps = |group: &Range<u64>| overlapping(&rows, group).next().is_some();
            left.retain(|place| numbers.get(*place).is_some_and(overlaps));
            request.rows = Some(match &request.rows {
                Some(wanted) => both(wanted, &rows),
                None => rows,
            });
        }
        Ok(left)
    }

    /// For a local file, checks the page index of some columns against the headers of all pages, except pages with
    /// `rows` that are read, since those are counted on reading.
    fn check_headers(
        &self,
        groups: &[usize],
        leaves: impl IntoIterator<Item = usize> + Clone,
        read: &[Range<u64>],
    ) -> Result<()> {
        let Some(file) = self.storage.open(&self.path)? else { return Ok(()) };
        let checks = Checks::new(self.metadata.metadata(), groups, leaves, (true, false));
        let numbers = self.row_numbers();
        let is_read = |group: usize, rows: Range<u64>| {
            let start = numbers.get(group).map_or(0, |group| group.start);
            let rows = start.saturating_add(rows.start)..start.saturating_add(rows.end);
            overlapping(read, &rows).next().is_some()
        };
        checks.headers(&self.path, is_read, |range| file.range(range))
    }

    /// Splits the row groups that a request reads, in order, into pieces of at least `least` bytes for several
    /// threads. A small file stays one piece. Rows of pages that the filter excludes are deselected.
    pub fn pieces(&self, request: &mut Request, least: u64) -> Result<Vec<Vec<usize>>> {
        let wanted = self.skip(request)?;
        let bytes = |place: &usize| self.bytes(*place, request);
        let all = wanted.iter().fold(0, |sum: u64, place| sum.saturating_add(bytes(place)));
        if all / 2 < least {
            return Ok(if wanted.is_empty() { Vec::new() } else { vec![wanted] });
        }
        let mut pieces: Vec<Vec<usize>> = Vec::new();
        let mut room = 0;
        for place in wanted {
            match pieces.last_mut() {
                Some(last) if room > 0 => last.push(place),
                _ => {
                    room = least;
                    pieces.push(vec![place]);
                }
            }
            room = room.saturating_sub(bytes(&place));
        }
        Ok(pieces)
    }

    /// Bytes of a row group that a request reads.
    fn bytes(&self, row_group: usize, request: &Request) -> u64 {
        let columns = self.metadata().row_groups().get(row_group).map(|group| group.columns()).unwrap_or_default();
        let filtered = request.filter.iter().flat_map(|filter| &filter.leaves);
        let leaves: BTreeSet<_> = request.leaves.iter().chain(filtered).collect();
        let sizes = leaves.into_iter().filter_map(|leaf| columns.get(*leaf));
        sizes.fold(0, |sum, column| sum.saturating_add(column.compressed_size().max(0).unsigned_abs()))
    }

    /// The row numbers of each row group in the file.
    fn row_numbers(&self) -> Vec<Range<u64>> {
        let counts = self.metadata().row_groups().iter().map(|group| group.num_rows().max(0).unsigned_abs());
        let ranges = counts.scan(0, |next: &mut u64, count| {
            let start = *next;
            *next = start.saturating_add(count);
            Some(start..*next)
        });
        ranges.collect()
    }

    /// The parts that threads read of a request without a filter.
    fn parts(&self, pieces: Vec<Vec<usize>>, request: &Request) -> Vec<Part> {
        let (numbers, position) = (self.row_numbers(), self.metadata.parquet_schema().num_columns());
        let leaves = request.leaves.iter().copied().filter(|leaf| *leaf != position).collect();
        let is_remote = self.storage.is_remote(&self.path);
        // Remote slices are longer, because each is a request of its own.
        let cutting =
            Cutting { rows: request.batch_rows as u64, bytes: if is_remote { PIECE_BYTES } else { SLICE_BYTES } };
        let rows_of = |group: &usize| numbers.get(*group).map_or(0, |rows| rows.end - rows.start);
        let mut parts = Vec::new();
        for piece in pieces {
            let several = piece.len() > 1;
            if several && (is_remote || piece.iter().map(rows_of).sum::<u64>() <= 2 * cutting.rows) {
                parts.push((piece, None));
                continue;
            }
            for group in piece {
                let all = numbers.get(group).cloned().unwrap_or_default();
                let slices = slices(self.metadata(), group, all, &leaves, cutting);
                if slices.len() < 2 {
                    parts.push((vec![group], None));
                    continue;
                }
                let is_wanted = |slice: &Range<u64>| match &request.rows {
                    Some(rows) => overlapping(rows, slice).next().is_some(),
                    None => true,
                };
                parts.extend(slices.into_iter().filter(is_wanted).map(|slice| (vec![group], Some(slice))));
            }
        }
        parts
    }

    /// The batches of some row groups for a request, in order.
    pub fn decode(&self, row_groups: Vec<usize>, request: &Request) -> Result<Batches> {
        self.decode_rows(row_groups, request, None, true)
    }

    /// As [`ParquetFile::decode`], for a slice if there is one. Rows are selected per slice: with deletes for every
    /// tenth row, the selection of all slices at once took megabytes.
    fn decode_slice(&self, row_groups: Vec<usize>, request: &Request, slice: Option<Range<u64>>) -> Result<Batches> {
        let Some(slice) = slice else { return self.decode(row_groups, request) };
        let numbers = self.row_numbers();
        let group = row_groups.first().and_then(|group| numbers.get(*group)).map_or(0, |group| group.start);
        // Earlier slices have checked their own pages.
        let wanted_before = |rows: &Vec<Range<u64>>| overlapping(rows, &(group..slice.start)).next().is_some();
        let is_first = !request.rows.as_ref().is_some_and(wanted_before);
        self.decode_rows(row_groups, request, Some(&slice), is_first)
    }

    /// As [`ParquetFile::decode`], for a slice if there is one; `is_first` if it has the first selected rows of its
    /// row groups.
    pub(super) fn decode_rows(
        &self,
        row_groups: Vec<usize>,
        request: &Request,
        slice: Option<&Range<u64>>,
        is_first: bool,
    ) -> Result<Batches> {
        self.check_places(&row_groups, request)?;
        self.check_int96(&row_groups, request, slice, is_first)?;
        let schema = self.metadata.parquet_schema();
        let position = schema.num_columns();
        let filtered = request.filter.iter().flat_map(|filter| &filter.leaves);
        let metadata = match request.leaves.iter().chain(filtered.clone()).any(|leaf| *leaf == position) {
            true => {
                let numbers = Arc::new(position_field().as_ref().clone().with_extension_type(RowNumber));
                let typed = int96::is_in(schema).then(|| self.fields());
                guarded(&self.path, || arrow_metadata(self.metadata.metadata().clone(), &[numbers], typed))?
            }
            false => self.metadata.clone(),
        };
        let mask =
            |leaves: &[usize]| ProjectionMask::leaves(schema, leaves.iter().copied().filter(|leaf| *leaf != position));
        let all = self.row_numbers();
        let groups: Vec<_> = row_groups.iter().filter_map(|place| all.get(*place).cloned()).collect();
        let selected = || {
            let whole = std::slice::from_ref(&(0..u64::MAX));
            let rows = request.rows.as_deref().unwrap_or(whole);
            (request.rows.is_some() || slice.is_some()).then(|| Selected::new(&groups, rows, slice))
        };
        if self.decoders == Decoders::Own
            && !self.is_encrypted()
            && row_groups.iter().map(|group| self.bytes(*group, request)).fold(0, u64::saturating_add) > TAIL
            && let Some(file) = self.storage.open(&self.path)?
        {
            if let Some(filter) = &request.filter {
                if let Some(batches) = self.late(file, &row_groups, request, filter, selected())? {
                    return Ok(batches);
                }
            } else if !request.leaves.contains(&position) {
                if let Some(rows) = request.rows.as_ref().filter(|_| is_first) {
                    self.check_headers(&row_groups, request.leaves.iter().copied(), rows)?;
                }
                return self.paged(file, row_groups, request, selected());
            }
        }
        let selected = selected();
        let leaves: BTreeSet<usize> = request.leaves.iter().chain(filtered).copied().collect();
        let is_sparse = selected.is_some() || request.filter.is_some();
        let file = self.storage.open(&self.path)?;
        let chunks = self.chunks(&row_groups)?;
        let checks = Checks::new(self.metadata.metadata(), &row_groups, leaves, (is_sparse, file.is_none()));
        let mut builder = ParquetPushDecoderBuilder::new_with_metadata(metadata)
            .with_projection(mask(&request.leaves))
            .with_row_groups(row_groups)
            .with_batch_size(request.batch_rows);
        let mut rows = None;
        if let Some(selected) = selected {
            // The rows that a filter keeps are unknown here.
            let selection = match &request.filter {
                Some(_) => Some(selected.selection()),
                None => rows.insert(Box::new(selected.joined())).selection(),
            };
            if let Some(selection) = selection {
                builder = builder.with_row_selection(selection);
            }
        }
        if let Some(Filter { leaves, test }) = &request.filter {
            let test = Arc::clone(test);
            let test =
                move |batch: RecordBatch| test(&batch).map_err(|error| ArrowError::ExternalError(Box::new(error)));
            let predicate = ArrowPredicateFn::new(mask(leaves), test);
            builder = builder.with_row_filter(RowFilter::new(vec![Box::new(predicate)]));
        }
        let decoder = Decoder::Pushed {
            decoder: Box::new(guarded(&self.path, || builder.build())?),
            storage: self.storage.clone(),
            tail: self.tail.clone(),
            chunks,
            rows,
            pages: Box::new((checks, file)),
        };
        Ok(Batches { path: self.path.clone(), decoder: Some(decoder) })
    }

    /// Batches of row groups of an open file, read page by page.
    fn paged(
        &self,
        file: Arc<dyn OpenObject>,
        row_groups: Vec<usize>,
        request: &Request,
        selected: Option<Selected>,
    ) -> Result<Batches> {
        let groups = PagedGroups::new(self.metadata.metadata().clone(), row_groups, file, selected.is_some());
        let decoder = self.pulled(&groups, request, selected, groups.failure())?;
        Ok(Batches { path: self.path.clone(), decoder: Some(decoder) })
    }

    /// The batches of row groups of an open file that a filter keeps; `None` if the parquet crate has to decode
    /// columns that the filter does not test.
    fn late(
        &self,
        file: Arc<dyn OpenObject>,
        row_groups: &[usize],
        request: &Request,
        filter: &Filter,
        selected: Option<Selected>,
    ) -> Result<Option<Batches>> {
        let numbers = self.row_numbers();
        let wanted = Wanted {
            descriptor: self.metadata.parquet_schema(),
            fields: self.fields(),
            leaves: &request.leaves,
            filter,
            batch_rows: request.batch_rows,
            firsts: row_groups.iter().filter_map(|group| Some(numbers.get(*group)?.start)).collect(),
        };
        let metadata = self.metadata.metadata().clone();
        let groups = PagedGroups::new(metadata, row_groups.to_vec(), file, selected.is_some());
        let Some(late) = guarded(&self.path, || Late::new(&groups, &groups.sparse(), &wanted, selected))? else {
            return Ok(None);
        };
        // Of the filter's columns, pages with selected rows are read. Which pages of the others are is not known yet.
        if let Some(rows) = &request.rows {
            self.check_headers(row_groups, filter.leaves.iter().copied(), rows)?;
        }
        self.check_headers(row_groups, wanted.late_leaves(), &[])?;
        let decoder = Decoder::Late { late: Box::new(late), failure: groups.failure() };
        Ok(Some(Batches { path: self.path.clone(), decoder: Some(decoder) }))
    }

    /// A pull decoder over the pages of row groups.
    fn pulled(
        &self,
        groups: &dyn RowGroups,
        request: &Request,
        selected: Option<Selected>,
        failure: Failure,
    ) -> Result<Decoder> {
        let descriptor = self.metadata.parquet_schema();
        let columns = || Columns::new(groups, descriptor, self.fields(), &request.leaves, request.batch_rows, selected);
        Ok(Decoder::Pulled { columns: Box::new(guarded(&self.path, columns)?), failure })
    }

    /// Whether to use [`ParquetFile::small`] for some row groups.
    fn is_small(&self, row_groups: &[usize], request: &Request) -> bool {
        let filtered = request.filter.iter().flat_map(|filter| &filter.leaves);
        let leaves: BTreeSet<usize> = request.leaves.iter().chain(filtered).copied().collect();
        let groups = row_groups.iter().filter_map(|number| self.metadata().row_groups().get(*number));
        let chunks = groups.flat_map(|group| leaves.iter().filter_map(|leaf| group.columns().get(*leaf)));
        let size = |bytes: i64| u64::try_from(bytes).unwrap_or(u64::MAX);
        let (packed, inflated) = chunks.fold((0_u64, 0_u64), |(packed, inflated), chunk| {
            let (more, more_inflated) = (size(chunk.compressed_size()), size(chunk.uncompressed_size()));
            (packed.saturating_add(more), inflated.saturating_add(more_inflated))
        });
        let rows = row_groups.iter().filter_map(|number| self.metadata().row_groups().get(*number));
        let rows = rows.fold(0_u64, |rows, group| rows.saturating_add(size(group.num_rows())));
        let schema = self.metadata.parquet_schema();
        // Filtering after decoding would have to split structs again.
        let is_flat = schema.root_schema().get_fields().len() == schema.num_columns();
        let is_simple =
            is_flat && self.int96.is_none() && request.rows.is_none() && !leaves.contains(&schema.num_columns());
        let is_own = self.decoders == Decoders::Own && !self.is_encrypted();
        is_simple && is_own && rows <= BATCH_ROWS as u64 && packed <= SMALL.0 && inflated <= SMALL.1
    }

    /// Reads a small file at once and filters its rows after decoding: setting up a column reader takes longer than
    /// decoding so few values.
    fn small(&self, row_groups: Vec<usize>, mut request: Request) -> Result<Opened> {
        let mut filtered = None;
        if let Some(filter) = request.filter.take() {
            let (read, change) = filter.afterwards(&request.leaves);
            (request.leaves, filtered) = (read, Some(change));
        }
        self.check_places(&row_groups, &request)?;
        let metadata = self.metadata.metadata();
        let groups = row_groups.iter().filter_map(|number| Some((*number, metadata.row_groups().get(*number)?)));
        let chunks = groups.flat_map(|(number, group)| {
            let of_leaf = move |leaf: &usize| Some((number, *leaf, group.columns().get(*leaf)?.byte_range()));
            request.leaves.iter().filter_map(of_leaf)
        });
        let chunks: Vec<_> = chunks.collect();
        let ranges: Vec<Range<u64>> = chunks.iter().map(|(_, _, (start, length))| *start..start + length).collect();
        let bytes = match self.tail.ranges(&ranges) {
            Some(bytes) => bytes,
            None => self.storage.ranges(&self.path, &ranges)?,
        };
        let mut loaded = LoadedGroups::new(Arc::clone(metadata), row_groups);
        for ((group, leaf, (start, _)), bytes) in chunks.into_iter().zip(bytes) {
            loaded.add(group, leaf, start, bytes);
        }
        let decoder = Some(self.pulled(&loaded, &request, None, Failure::default())?);
        let opened = Opened::Batches(Box::new(Batches { path: Arc::clone(&self.path), decoder }));
        Ok(match filtered {
            Some(filtered) => opened.map(filtered),
            None => opened,
        })
    }

    /// Checks that the selected column chunks lie within the file.
    fn check_places(&self, row_groups: &[usize], request: &Request) -> Result<()> {
        let filtered = request.filter.iter().flat_map(|filter| &filter.leaves);
        let leaves: BTreeSet<usize> = request.leaves.iter().chain(filtered).copied().collect();
        for number in row_groups {
            let Some(group) = self.metadata().row_groups().get(*number) else { continue };
            for chunk in leaves.iter().filter_map(|leaf| group.columns().get(*leaf)) {
                let (start, length) = (chunk.dictionary_page_offset(), chunk.compressed_size());
                let start = start.unwrap_or(i64::MAX).min(chunk.data_page_offset());
                let end = start.checked_add(length).and_then(|end| u64::try_from(end).ok());
                if start < 0 || length < 0 || end.is_none_or(|end| end > self.size) {
                    let column = chunk.column_path().string();
                    let message = format!(
                        "row group {number}, column {column}: its {length} bytes from byte {start} on are not in the \
                         file, which has {} bytes",
                        self.size
                    );
                    return Err(Error::corrupt_file(&*self.path, message));
                }
            }
        }
        Ok(())
    }
}

impl DataFileReader for ParquetFile {
    fn bind(&mut self, with_ids: &dyn Fn(&Fields) -> Fields, schema: &Arc<TableSchema>) -> Fields {
        let mut fields = with_ids(self.fields());
        if decimals::are_in(self.metadata.parquet_schema()) {
            self.take_decimals(&fields, schema);
        }
        // If the library refuses these types the columns stay unchanged, and planning the columns reports the error.
        if int96::is_in(self.metadata.parquet_schema()) && self.take_int96(&fields, schema).is_ok() {
            fields = with_ids(self.fields());
        }
        if !self.decimals.is_empty() {
            fields = decimals::marked(&with_ids(self.fields()), &self.decimals);
        }
        self.bound = Some((fields.clone(), Arc::clone(schema)));
        fields.iter().cloned().chain([position_field()]).collect()
    }

    fn metrics(&self, modes: &Modes) -> Result<FileMetrics> {
        let Some((fields, schema)) = &self.bound else { return Err(Error::Internal("columns without ids".into())) };
        metrics::of_foreign(self.metadata(), fields, schema, modes).map_err(|error| error.in_file(&self.path))
    }

    fn rows(&self) -> Option<u64> {
        // This is the number of rows read; `num_rows` in the footer repeats it and is not used.
        Some(self.row_numbers().last().map_or(0, |group| group.end))
    }

    fn nulls(&self) -> Vec<Option<Nulls>> {
        value::nulls(self.metadata())
    }

    fn batches(self: Box<Self>, mut request: Request) -> Result<Opened> {
        let least = if request.threads > 1 { PIECE_BYTES } else { u64::MAX };
        let pieces = self.pieces(&mut request, least)?;
        // A filter is evaluated before other columns are decoded. Slices would restart both, which takes a fifth
        // longer.
        let mut parts = match request.threads > 1 && request.filter.is_none() {
            true => self.parts(pieces, &request),
            false => pieces.into_iter().map(|piece| (piece, None)).collect(),
        };
        if parts.len() < 2 {
            let (row_groups, slice) = parts.pop().unwrap_or_default();
            if slice.is_none() && self.is_small(&row_groups, &request) {
                return self.small(row_groups, request);
            }
            return Ok(Opened::Batches(Box::new(self.decode_slice(row_groups, &request, slice)?)));
        }
        let shared = Arc::new((*self, request));
        let open = |(row_groups, slice): Part| -> OpenParts {
            let shared = Arc::clone(&shared);
            Box::new(move || {
                let (file, request) = &*shared;
                Ok(Opened::Batches(Box::new(file.decode_slice(row_groups, request, slice)?)))
            })
        };
        Ok(Opened::Parts(parts.into_iter().map(open).collect()))
    }
}
