//! ORC read ahead: a file's stripes, or row groups of them, decoded by several threads and given in the order of the file.

use std::sync::Arc;

use icefield_orc::{Piece, ReadOptions, Reader, Source};

use super::stream::{BatchStream, OpenTask, TaskBatches};
use crate::error::{Error, Result};

/// Rows of a piece, at the most where the file has row groups: as many as `threads` threads may hold decoded.
const PIECE_ROWS: u64 = 1 << 18;

/// The batches of those stripes that `wanted` says yes to. A piece is decoded whole before its first batch is asked for.
pub fn read_ahead<S>(
    reader: &Arc<Reader<S>>,
    name: &Arc<str>,
    options: ReadOptions,
    wanted: impl Fn(usize) -> bool,
    threads: usize,
) -> Result<BatchStream>
where
    S: Source + Send + Sync + 'static,
{
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
    let tasks = pieces.into_iter().filter(|piece| wanted(piece.stripe)).map(open).collect();
    Ok(BatchStream::with_threads(schema, tasks, threads))
}
