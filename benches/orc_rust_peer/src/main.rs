//! orc-rust as a peer of `orc.py`: a question a line, `read FILE COLUMNS` or `write FILE OUT ROWS`; the answer is
//! `seconds rows`, or `error` and why. Rows to be written are loaded at the first time only.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufRead;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use arrow::array::RecordBatch;
use orc_rust::compression::CompressionType;
use orc_rust::projection::ProjectionMask;
use orc_rust::{ArrowReaderBuilder, ArrowWriterBuilder};

type Failed = Box<dyn std::error::Error>;

const BATCH: usize = 8192;

fn read(file: &str, columns: &str, mut take: impl FnMut(RecordBatch)) -> Result<usize, Failed> {
    let builder = ArrowReaderBuilder::try_new(File::open(file)?)?.with_batch_size(BATCH);
    let names: Vec<&str> = columns.split(',').filter(|name| !name.is_empty()).collect();
    let root = builder.file_metadata().root_data_type();
    let projection = if names.is_empty() { ProjectionMask::all() } else { ProjectionMask::named_roots(root, &names) };
    let mut rows = 0;
    for batch in builder.with_projection(projection).build() {
        let batch = batch?;
        rows += batch.num_rows();
        take(batch);
    }
    Ok(rows)
}

fn write(batches: &[RecordBatch], out: &str) -> Result<usize, Failed> {
    let Some(first) = batches.first() else { return Ok(0) };
    let builder = ArrowWriterBuilder::new(File::create(out)?, first.schema());
    let mut writer = builder.with_compression(CompressionType::Zstd).try_build()?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.close()?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

fn load(file: &str, rows: usize) -> Result<Vec<RecordBatch>, Failed> {
    let (mut batches, mut left) = (Vec::new(), rows);
    read(file, "", |batch| {
        let part = batch.slice(0, batch.num_rows().min(left));
        left -= part.num_rows();
        if part.num_rows() > 0 {
            batches.push(part);
        }
    })?;
    Ok(batches)
}

fn answer(question: &str, loaded: &mut HashMap<String, Vec<RecordBatch>>) -> Result<(f64, usize), Failed> {
    match question.split(' ').collect::<Vec<_>>()[..] {
        ["read", file, columns] => {
            let start = Instant::now();
            let rows = read(file, columns, drop)?;
            Ok((start.elapsed().as_secs_f64(), rows))
        }
        ["write", file, out, rows] => {
            if !loaded.contains_key(file) {
                loaded.insert(file.to_owned(), load(file, rows.parse()?)?);
            }
            let start = Instant::now();
            let rows = write(&loaded[file], out)?;
            Ok((start.elapsed().as_secs_f64(), rows))
        }
        _ => Err(format!("what is {question:?}").into()),
    }
}

fn main() -> Result<(), Failed> {
    let mut loaded = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        // Its writer panics at types that it does not know.
        match catch_unwind(AssertUnwindSafe(|| answer(&line, &mut loaded))) {
            Ok(Ok((seconds, rows))) => println!("{seconds} {rows}"),
            Ok(Err(error)) => println!("error {}", error.to_string().replace('\n', " ")),
            Err(_) => println!("error it panicked"),
        }
    }
    Ok(())
}
