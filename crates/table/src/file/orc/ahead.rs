//! ORC read ahead by several threads, and given in the order of the file.
//!
//! Where a file has columns enough, its threads share them ([`ByColumns`]); else they share its stripes, or row groups.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_orc::{ByColumns, Piece, Pool, ReadOptions, Reader, Source};

use crate::error::{Error, Result};
use crate::interrupt;
use crate::orc_pool::ProcessPool;
use crate::stream::{BatchStream, OpenTask, TaskBatches};

/// Rows of a piece, at the most where the file has row groups: as many as `threads` threads may hold decoded.
const PIECE_ROWS: u64 = 1 << 18;

/// The batches of a file.
#[derive(Debug)]
pub struct ReadAhead<S: Source + Send + Sync + 'static> {
    name: Arc<str>,
    batches: ParallelBatches<S>,
}

/// Which work the threads divide among them: the columns of each batch, or pieces of the file.
#[derive(Debug)]
enum ParallelBatches<S: Source + Send + Sync + 'static> {
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
        let pool: Arc<dyn Pool> = Arc::new(ProcessPool);
        let batches = match reader.by_columns(&options, stripes.clone(), threads, &pool).map_err(wrong)? {
            Some(columns) => ParallelBatches::Columns(columns),
            None => ParallelBatches::Pieces(by_pieces(reader, name, options, &stripes, threads)?),
        };
        Ok(Self { name: Arc::clone(name), batches })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        match &self.batches {
            ParallelBatches::Columns(columns) => columns.schema(),
            ParallelBatches::Pieces(pieces) => pieces.schema(),
        }
    }
}

impl<S: Source + Send + Sync + 'static> Iterator for ReadAhead<S> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = interrupt::check() {
            return Some(Err(error));
        }
        match &mut self.batches {
            ParallelBatches::Columns(columns) => {
                Some(columns.next()?.map_err(|error| Error::of_orc(&self.name, error)))
            }
            ParallelBatches::Pieces(pieces) => pieces.next(),
        }
    }
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
