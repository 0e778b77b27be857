//! The synchronous reader: a source, its tail, and its stripes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;

use super::loader::{StripeIndex, bytes_of};
use super::wanted::stripes;
use super::{ReadOptions, StripeLoader, StripeReader};
use crate::encrypt::KeyProvider;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::proto::{RowIndex, StreamKind, StripeInformation};
use crate::source::{Fetched, Source, Step};
use crate::stripe::{StreamPlace, StripeDirectory, sections};
use crate::tail::{FileMetadata, TailDecoder};

/// An open file: its source and its decoded tail.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    file: Arc<FileMetadata>,
}

fn fetch<S: Source>(source: &S, ranges: Vec<Range<u64>>, into: &mut Fetched) -> Result<()> {
    for range in ranges {
        let start = range.start;
        into.insert(start, source.read_range(range)?);
    }
    Ok(())
}

impl<S: Source> Reader<S> {
    /// Opens a file with the default [`Limits`]; encrypted columns are read masked.
    ///
    /// # Errors
    ///
    /// As [`Reader::open_with`].
    pub fn open(source: S) -> Result<Self> {
        Self::open_with(source, Limits::default(), None)
    }

    /// Opens a file with limits, and with keys for encrypted columns.
    ///
    /// # Errors
    ///
    /// A file that is not ORC, or whose tail is damaged or exceeds the limits; errors of the source and the key
    /// provider.
    pub fn open_with(source: S, limits: Limits, keys: Option<Arc<dyn KeyProvider>>) -> Result<Self> {
        let mut tail = TailDecoder::new(source.length()?, limits, keys);
        loop {
            match tail.advance()? {
                Step::Need(ranges) => fetch(&source, ranges, &mut tail.fetched)?,
                Step::Done(file) => return Ok(Self { source, file: Arc::new(file) }),
            }
        }
    }

    /// The contents of the tail.
    pub fn metadata(&self) -> &Arc<FileMetadata> {
        &self.file
    }

    /// The source.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// The schema of the batches that these options read.
    ///
    /// # Errors
    ///
    /// Columns that the file lacks.
    pub fn schema(&self, options: &ReadOptions) -> Result<SchemaRef> {
        let schema = options.projection.apply(&self.file.schema)?.to_arrow(&options.arrow);
        let Some(name) = &options.row_numbers else { return Ok(Arc::new(schema)) };
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(arrow_schema::Field::new(name, arrow_schema::DataType::Int64, false)));
        Ok(Arc::new(Schema::new(fields)))
    }

    /// The numbers of the stripes that may contain requested rows, judging by the row ranges and by the statistics of
    /// the file and its stripes.
    ///
    /// # Errors
    ///
    /// Invalid options, damaged statistics.
    pub fn stripes(&self, options: &ReadOptions) -> Result<Vec<usize>> {
        stripes(&self.file, options)
    }

    /// Fetches the bytes of one stripe and returns its reader, which can move to another thread.
    ///
    /// # Errors
    ///
    /// A stripe that the file lacks, a damaged footer or index; errors of the source.
    pub fn stripe(&self, index: usize, options: &Arc<ReadOptions>) -> Result<StripeReader> {
        self.load(&mut StripeLoader::new(Arc::clone(&self.file), Arc::clone(options), index)?)
    }

    fn load(&self, loader: &mut StripeLoader) -> Result<StripeReader> {
        loop {
            match loader.advance()? {
                Step::Need(ranges) => fetch(&self.source, ranges, &mut loader.fetched)?,
                Step::Done(reader) => return Ok(reader),
            }
        }
    }

    /// The wanted stripes, cut into at least `count` pieces if they have enough row groups: for as many threads.
    ///
    /// Pieces are in the order of the file. A piece reads its own part of the streams, and the dictionaries of its
    /// stripe; the first piece of a stripe reads its footer and indexes for all others.
    ///
    /// # Errors
    ///
    /// As [`Reader::stripes`].
    pub fn pieces(&self, options: &ReadOptions, count: usize) -> Result<Vec<Piece>> {
        let stripes = self.stripes(options)?;
        let each = (count as u64).div_ceil(stripes.len().max(1) as u64).max(1);
        let mut pieces = Vec::new();
        for stripe in stripes {
            let before = self.file.footer.stripes.iter().take(stripe);
            let first = before.fold(0u64, |sum, stripe| sum.saturating_add(stripe.number_of_rows.unwrap_or(0)));
            let rows = self.information(stripe)?.number_of_rows.unwrap_or(0);
            let Some(stride) = self.file.row_index_stride().filter(|stride| each > 1 && *stride < rows) else {
                pieces.push(Piece::of_stripe(stripe));
                continue;
            };
            let step = rows.div_ceil(stride).div_ceil(each).saturating_mul(stride);
            let mut start = 0;
            let index = SharedIndex::default();
            while start < rows {
                let end = start.saturating_add(step).min(rows);
                let rows = Some(first.saturating_add(start)..first.saturating_add(end));
                pieces.push(Piece { stripe, rows, index: index.clone() });
                start = end;
            }
        }
        Ok(pieces)
    }

    /// A reader of one piece.
    ///
    /// # Errors
    ///
    /// As [`Reader::stripe`].
    pub fn piece(&self, piece: &Piece, options: &Arc<ReadOptions>) -> Result<StripeReader> {
        let Some(own) = &piece.rows else { return self.stripe(piece.stripe, options) };
        let rows = match &options.rows {
            None => vec![own.clone()],
            Some(wanted) => {
                let cut = wanted.iter().map(|range| range.start.max(own.start)..range.end.min(own.end));
                cut.filter(|range| range.start < range.end).collect()
            }
        };
        let own = Arc::new(ReadOptions { rows: Some(rows), ..options.as_ref().clone() });
        let loader = StripeLoader::new(Arc::clone(&self.file), own, piece.stripe)?;
        // With other options, other columns and row groups may be needed.
        let shared = piece.index.0.get().filter(|(of, _)| Arc::ptr_eq(of, options)).map(|(_, index)| Arc::clone(index));
        let mut loader = loader.with_index(shared);
        let reader = self.load(&mut loader)?;
        if let Some(index) = loader.index() {
            let _ = piece.index.0.set((Arc::clone(options), Arc::clone(index)));
        }
        Ok(reader)
    }

    /// Reads the footer of a stripe, with the byte ranges of its streams.
    ///
    /// # Errors
    ///
    /// A stripe that the file lacks, a damaged footer; errors of the source.
    pub fn directory(&self, stripe: usize) -> Result<StripeDirectory> {
        let information = self.information(stripe)?;
        let [_, _, footer] = sections(information, self.file.length)?;
        StripeDirectory::read(&self.file, information, &self.source.read_range(footer)?)
            .map_err(|error| error.within(&format!("stripe {stripe}")))
    }

    /// Reads the bytes of a stream, still compressed. An encrypted stream is decrypted; `None` without its key.
    ///
    /// # Errors
    ///
    /// Errors of the source and the key provider.
    pub fn stream(&self, stripe: usize, place: &StreamPlace) -> Result<Option<Bytes>> {
        let bytes = self.source.read_range(place.range.clone())?;
        let Some(variant) = place.variant else { return Ok(Some(bytes)) };
        let Some((key, id)) = self.file.stripe_key(variant, stripe)? else { return Ok(None) };
        let mut plain = bytes.to_vec();
        key.apply(place.column, place.kind, id, 0, &mut plain)?;
        Ok(Some(plain.into()))
    }

    /// Reads the row indexes of a stripe by column id. For encrypted columns whose key is available, they are those of
    /// the true values.
    ///
    /// # Errors
    ///
    /// A stripe that the file lacks, damaged indexes; errors of the source.
    pub fn row_indexes(&self, stripe: usize) -> Result<BTreeMap<u32, RowIndex>> {
        let directory = self.directory(stripe)?;
        let mut places: Vec<_> = directory.streams.iter().filter(|place| place.kind == StreamKind::RowIndex).collect();
        // The masked ones come first, so that the true ones replace them.
        places.sort_by_key(|place| place.variant.is_some());
        let mut indexes = BTreeMap::new();
        let mut budget = self.file.limits.budget(bytes_of(places.iter().copied()));
        for place in places {
            let Some(bytes) = self.stream(stripe, place)? else { continue };
            let name = format!("stripe {stripe}, column {} {}", place.column, place.kind);
            indexes.insert(place.column, self.file.section_within(&bytes, &name, &mut budget)?);
        }
        Ok(indexes)
    }

    fn information(&self, stripe: usize) -> Result<&StripeInformation> {
        let stripes = &self.file.footer.stripes;
        stripes
            .get(stripe)
            .ok_or_else(|| Error::invalid(format!("stripe {stripe} does not exist, the file has {}", stripes.len())))
    }
}

/// A stripe, or some row groups of one.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The number of the stripe.
    pub stripe: usize,
    /// Its rows, by their numbers in the file; `None` means all rows of the stripe.
    pub rows: Option<Range<u64>>,
    index: SharedIndex,
}

/// What the first piece of a stripe has read for all pieces, and with which options.
#[derive(Debug, Clone, Default)]
struct SharedIndex(Arc<OnceLock<(Arc<ReadOptions>, Arc<StripeIndex>)>>);

impl Piece {
    /// A whole stripe.
    pub fn of_stripe(stripe: usize) -> Self {
        Self { stripe, rows: None, index: SharedIndex::default() }
    }
}
