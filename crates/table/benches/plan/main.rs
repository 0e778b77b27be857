//! The part of `benches/plan.py` that is written in Rust: the tables, and the floor.
//!
//! `cargo bench -p icefield-table --bench plan -- make FOLDER FILES none|position|vectors|equality` writes a table and
//! prints where its metadata are. Without arguments it answers questions, JSON a line: `{"inflate": [manifest, …],
//! "threads": N}` in seconds, `{"plan": metadata, "filter": text}` in seconds, files and links.

#![allow(clippy::print_stdout)] // What a bench is for.

mod tables;

use std::io::BufRead;
use std::sync::Arc;
use std::time::Instant;

use icefield_format::Limits;
use icefield_format::avro::{Container, Decompressor};
use icefield_format::expr::Expr;
use icefield_table::commit::read_metadata;
use icefield_table::plan::{At, Scan};
use icefield_table::{Error, Result};
use rayon::prelude::*;
use serde_json::{Value as Json, json};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if let [verb, folder, files, deletes] = words.as_slice()
        && verb == "make"
    {
        let files = files.parse().map_err(|_| Error::invalid("a number of files is wanted"))?;
        println!("{}", tables::write(folder, files, tables::Deletes::parse(deletes)?)?);
        return Ok(());
    }
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Error::invalid(error.to_string()))?;
        let asked: Json = serde_json::from_str(&line).map_err(|error| Error::invalid(error.to_string()))?;
        println!("{}", if asked["plan"].is_string() { plan(&asked)? } else { inflate(&asked)? });
    }
    Ok(())
}

/// Inflates manifests that are in memory already, one after the other or on several threads.
fn inflate(asked: &Json) -> Result<Json> {
    let storage = tables::storage();
    let paths = asked["inflate"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let files = paths.map(|path| storage.read(path)).collect::<Result<Vec<_>>>()?;
    let threads = usize::try_from(asked["threads"].as_u64().unwrap_or(1)).unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::invalid(error.to_string()))?;
    let one = |bytes: &bytes::Bytes| -> Result<usize> {
        let container = Container::open(bytes)?;
        let mut decompressor = Decompressor::new(container.codec, &Limits::default());
        container.blocks().try_fold(0, |sum, block| {
            let block = block?;
            Ok(sum + decompressor.run(block.data, block.offset)?.len())
        })
    };
    let start = Instant::now();
    let inflated = pool.install(|| files.par_iter().map(one).sum::<Result<usize>>())?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(json!({"seconds": seconds, "bytes": files.iter().map(|file| file.len()).sum::<usize>(), "inflated": inflated}))
}

/// Plans without Python: for profilers.
fn plan(asked: &Json) -> Result<Json> {
    let storage = tables::storage();
    let metadata = Arc::new(read_metadata(&storage, asked["plan"].as_str().unwrap_or_default())?);
    let mut scan = Scan::new(storage, metadata, &At::default())?;
    if let Some(filter) = asked["filter"].as_str() {
        scan.filter = Expr::parse(filter)?;
    }
    let start = Instant::now();
    let plan = scan.plan()?;
    let seconds = start.elapsed().as_secs_f64();
    let links = plan.manifests.iter().filter_map(|manifest| manifest.deletes.as_ref());
    let links: usize = links.map(|links| links.len()).sum();
    Ok(json!({"seconds": seconds, "files": plan.len(), "links": links}))
}
