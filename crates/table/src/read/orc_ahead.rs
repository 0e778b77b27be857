//! ORC read ahead by several threads, and given in the order of the file.
//!
//! Where a file has columns enough, its threads share them ([`ByColumns`]); else they share its stripes, or row groups.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_orc::{Piece, ReadOptions, Reader, Source};

use super::orc_columns::ByColumns;
use super::stream::{BatchStream, OpenTask, TaskBatches};
use crate::error::{Error, Result};
use crate::interrupt;

/// Rows of a piece, at the most where the file has row groups: as many as `threads` threads may hold decoded.
const PIECE_ROWS: u64 = 1 << 18;

/// Columns for each thread, at the least, so that none waits for the last.
const COLUMNS: usize = 2;

/// The batches of a file.
#[derive(Debug)]
pub struct ReadAhead<S: Source + Send + Sync + 'static> {
    name: Arc<str>,
    way: Way<S>,
}

#[derive(Debug)]
enum Way<S: Source + Send + Sync + 'static> {
    Columns(ByColumns<S>),
    Pieces(BatchStream),
}

impl<S: Source + Send + Sync + 'static> ReadAhead<S> {
    /// The batches of those stripes that `wanted` says yes to.
    pub fn new(
        reader: &Arc<Reader<S>>,
        name: &Arc<str>,
        options: ReadOptions,
        wanted: impl Fn(usize) -> bool,
        threads: usize,
    ) -> Result<Self> {
        let wrong = |error| Error::of_orc(name, error);
        let stripes = reader.stripes(&options).map_err(wrong)?;
        let stripes: Vec<usize> = stripes.into_iter().filter(|stripe| wanted(*stripe)).collect();
        let way = match by_columns(reader, &options, stripes.clone(), threads).map_err(wrong)? {
            Some(columns) => Way::Columns(columns),
            None => Way::Pieces(by_pieces(reader, name, options, &stripes, threads)?),
        };
        Ok(Self { name: Arc::clone(name), way })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        match &self.way {
            Way::Columns(columns) => columns.schema(),
            Way::Pieces(pieces) => pieces.schema(),
        }
    }
}

impl<S: Source + Send + Sync + 'static> Iterator for ReadAhead<S> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = interrupt::check() {
            return Some(Err(error));
        }
        match &mut self.way {
            Way::Columns(columns) => Some(columns.next()?.map_err(|error| Error::of_orc(&self.name, error))),
            Way::Pieces(pieces) => pieces.next(),
        }
    }
}

/// The batches of stripes whose columns several threads decode, where these can be shared out evenly.
pub fn by_columns<S: Source + Send + Sync + 'static>(
    reader: &Arc<Reader<S>>,
    options: &ReadOptions,
    stripes: Vec<usize>,
    threads: usize,
) -> icefield_orc::Result<Option<ByColumns<S>>> {
    if !has_columns_for(reader, options, &stripes, threads)? {
        return Ok(None);
    }
    ByColumns::new(reader, options.clone(), stripes, threads).map(Some)
}

/// Whether columns can be shared out evenly. A filter makes them hang together; one column that has most of the bytes
/// would be one thread's work.
fn has_columns_for<S: Source>(
    reader: &Reader<S>,
    options: &ReadOptions,
    stripes: &[usize],
    threads: usize,
) -> icefield_orc::Result<bool> {
    let schema = options.projection.apply(&reader.metadata().schema)?;
    let Some(first) = stripes.first().filter(|_| options.filter.is_none()) else { return Ok(false) };
    if schema.children.len() < COLUMNS.saturating_mul(threads) {
        return Ok(false);
    }
    let mut bytes = vec![0_u64; schema.children.len()];
    let columns = schema.walk();
    for stream in reader.directory(*first)?.streams {
        let top = schema.children.iter().position(|child| (child.column..child.end).contains(&stream.column));
        let read = stream.kind.is_data() && columns.iter().any(|node| node.column == stream.column);
        if let Some(bytes) = top.filter(|_| read).and_then(|top| bytes.get_mut(top)) {
            *bytes = bytes.saturating_add(stream.range.end - stream.range.start);
        }
    }
    let all = bytes.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    Ok(bytes.iter().all(|bytes| bytes.saturating_mul(threads as u64) <= all))
}

/// A piece is decoded whole before its first batch is asked for.
fn by_pieces<S: Source + Send + Sync + 'static>(
    reader: &Arc<Reader<S>>,
    name: &Arc<str>,
    options: ReadOptions,
    stripes: &[usize],
    threads: usize,
) -> Result<BatchStream> {
    let wrong = |error| Error::of_orc(name, error);
    let schema = reader.schema(&options).map_err(wrong)?;
    let large = usize::try_from(reader.metadata().rows().div_ceil(PIECE_ROWS)).unwrap_or(usize::MAX);
    let pieces = reader.pieces(&options, threads.max(large)).map_err(wrong)?;
    let options = Arc::new(options);
    let open = |piece: Piece| -> OpenTask {
        let (reader, name, options) = (Arc::clone(reader), Arc::clone(name), Arc::clone(&options));
        Box::new(move || {
            let read = || {
                let mut stripe = reader.piece(&piece, &options)?;
                std::iter::from_fn(|| stripe.next_batch().transpose()).collect::<icefield_orc::Result<Vec<_>>>()
            };
            let batches = read().map_err(|error| Error::of_orc(&name, error))?;
            Ok(Box::new(batches.into_iter().map(Ok)) as TaskBatches)
        })
    };
    let tasks = pieces.into_iter().filter(|piece| stripes.contains(&piece.stripe)).map(open).collect();
    Ok(BatchStream::with_threads(schema, tasks, threads))
}
