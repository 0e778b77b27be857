//! The batches of an ORC file in file order: read on demand, or ahead by several threads.
//!
//! If a file has enough columns, threads divide them ([`ByColumns`]); otherwise they divide its stripes or row
//! groups.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_orc::{Batches, ByColumns, Piece, Pool, ReadOptions, Reader, Source};

use crate::error::{Error, Result};
use crate::interrupt;
use crate::orc_pool::ProcessPool;
use crate::stream::{BatchStream, OpenTask, TaskBatches};

/// Maximum rows of a piece, if the file has row groups: as many as `threads` threads may hold decoded.
const PIECE_ROWS: u64 = 1 << 18;

/// Converts an error of the file.
pub type OfError = Arc<dyn Fn(icefield_orc::Error) -> Error + Send + Sync>;

/// The batches of a file.
pub struct FileBatches<S: Source + Send + Sync + 'static> {
    of_error: OfError,
    batches: Division<S>,
}

/// How threads divide the work.
enum Division<S: Source + Send + Sync + 'static> {
    /// One thread reads everything.
    Serial(Batches<Arc<Reader<S>>>),
    /// By the columns of each batch.
    Columns(ByColumns<S>),
    /// By pieces of the file.
    Pieces(BatchStream),
}

impl<S: Source + Send + Sync + 'static> FileBatches<S> {
    /// The batches of those stripes that `wanted` says yes to.
    ///
    /// # Errors
    /// What `of_error` makes of columns that the file lacks, damaged statistics, and errors of the source.
    pub fn new(
        reader: &Arc<Reader<S>>,
        of_error: OfError,
        options: ReadOptions,
        wanted: impl Fn(usize) -> bool,
        threads: usize,
    ) -> Result<Self> {
        let stripes = reader.stripes(&options).map_err(&*of_error)?;
        let stripes: Vec<usize> = stripes.into_iter().filter(|stripe| wanted(*stripe)).collect();
        if threads <= 1 {
            let batches = Batches::new(Arc::clone(reader), options, stripes).map_err(&*of_error)?;
            return Ok(Self { of_error, batches: Division::Serial(batches) });
        }
        let pool: Arc<dyn Pool> = Arc::new(ProcessPool);
        let batches = match reader.by_columns(&options, stripes.clone(), threads, &pool).map_err(&*of_error)? {
            Some(columns) => Division::Columns(columns),
            None => Division::Pieces(by_pieces(reader, &of_error, options, &stripes, threads)?),
        };
        Ok(Self { of_error, batches })
    }

    /// The schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        match &self.batches {
            Division::Serial(batches) => batches.schema(),
            Division::Columns(columns) => columns.schema(),
            Division::Pieces(pieces) => pieces.schema(),
        }
    }
}

impl<S: Source + Send + Sync + 'static> std::fmt::Debug for FileBatches<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileBatches").field("schema", self.schema()).finish_non_exhaustive()
    }
}

impl<S: Source + Send + Sync + 'static> Iterator for FileBatches<S> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = interrupt::check() {
            return Some(Err(error));
        }
        let batch = match &mut self.batches {
            Division::Serial(batches) => batches.next(),
            Division::Columns(columns) => columns.next(),
            Division::Pieces(pieces) => return pieces.next(),
        };
        batch.map(|batch| batch.map_err(&*self.of_error))
    }
}

/// Decodes each piece whole before its first batch is returned.
fn by_pieces<S: Source + Send + Sync + 'static>(
    reader: &Arc<Reader<S>>,
    of_error: &OfError,
    options: ReadOptions,
    stripes: &[usize],
    threads: usize,
) -> Result<BatchStream> {
    let schema = reader.schema(&options).map_err(&**of_error)?;
    let large = usize::try_from(reader.metadata().rows().div_ceil(PIECE_ROWS)).unwrap_or(usize::MAX);
    let pieces = reader.pieces(&options, threads.max(large)).map_err(&**of_error)?;
    let options = Arc::new(options);
    let open = |piece: Piece| -> OpenTask {
        let (reader, of_error, options) = (Arc::clone(reader), Arc::clone(of_error), Arc::clone(&options));
        Box::new(move || {
            let read = || {
                let mut stripe = reader.piece(&piece, &options)?;
                std::iter::from_fn(|| stripe.next_batch().transpose()).collect::<icefield_orc::Result<Vec<_>>>()
            };
            let batches = read().map_err(&*of_error)?;
            Ok(Box::new(batches.into_iter().map(Ok)) as TaskBatches)
        })
    };
    let tasks = pieces.into_iter().filter(|piece| stripes.contains(&piece.stripe)).map(open).collect();
    Ok(BatchStream::with_threads(schema, tasks, threads))
}
