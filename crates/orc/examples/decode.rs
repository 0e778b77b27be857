//! Decodes ORC files into Arrow batches and prints how long that took: `decode FILE [COLUMNS] [--rounds N] [--threads N] [--batch N]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use icefield_orc::{Projection, ReadOptions, Reader, Result};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let (rounds, threads) = (number("--rounds", 5), number("--threads", 1));
    let Some(path) = arguments.first() else { return Ok(()) };
    let reader = Reader::open(Bytes::from(std::fs::read(path)?))?;
    let columns = arguments.get(1).filter(|columns| !columns.starts_with("--") && !columns.is_empty());
    let projection = match columns {
        Some(names) => Projection::names(&reader.metadata().schema, names.split(','))?,
        None => Projection::All,
    };
    let options = ReadOptions { projection, batch_size: number("--batch", 8192), ..ReadOptions::default() };
    let options = Arc::new(options);
    for _ in 0..rounds {
        let start = Instant::now();
        let rows = decode(&reader, &options, threads)?;
        eprintln!("{rows} rows in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Decodes all stripes, each thread the next one that none has taken.
fn decode(reader: &Reader<Bytes>, options: &Arc<ReadOptions>, threads: usize) -> Result<usize> {
    let stripes = reader.stripes(options)?;
    let next = AtomicUsize::new(0);
    let work = || -> Result<usize> {
        let mut rows = 0;
        while let Some(stripe) = stripes.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut stripe = reader.stripe(*stripe, options)?;
            while let Some(batch) = stripe.next_batch()? {
                rows += batch.num_rows();
            }
        }
        Ok(rows)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or(Ok(0))).sum()
    })
}
