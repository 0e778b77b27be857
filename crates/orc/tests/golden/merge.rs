//! Merges every file with itself, without decoding: the result has its rows twice, whichever writer it is from, and
//! statistics that count them twice.

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use icefield_orc::{Error, Limits, Merger, ReadOptions, Reader};
use libtest_mimic::{Failed, Trial};

use super::rewrite::{as_exact_as_possible, check};
use super::rows::read;
use super::{Golden, trial};

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    let names = golden.names().filter(|name| golden.folder.join(format!("expected/{name}.rows.jsonl.gz")).exists());
    names
        .map(|name| {
            let golden = Arc::clone(golden);
            trial(format!("merge::{name}"), move || check_file(&golden, &name))
        })
        .collect()
}

fn check_file(golden: &Golden, name: &str) -> Result<(), Failed> {
    let reader = Reader::open_with(Bytes::from(golden.file(name)?), Limits::default(), golden.keys(false))?;
    let file = reader.metadata();
    let mut merger = Merger::try_new(Vec::new())?;
    if file.footer.encryption.is_some() {
        let refused = merger.add(name, &reader).err();
        let wanted = format!("{name} cannot be merged: its columns are encrypted");
        return check(matches!(&refused, Some(Error::Invalid(text)) if *text == wanted), || format!("{refused:?}"));
    }
    merger.add(name, &reader)?;
    merger.add("itself", &reader)?;
    let (bytes, written) = merger.finish()?;
    check(written.length == bytes.len() as u64, || "another length".to_owned())?;
    let merged = Reader::open(Bytes::from(bytes))?;
    let (arrow, once) = as_exact_as_possible(&reader)?;
    let twice = read(&merged, ReadOptions { arrow, batch_size: 700, ..ReadOptions::default() })?;
    let rows: u64 = file.footer.stripes.iter().filter_map(|stripe| stripe.number_of_rows).sum();
    check(merged.metadata().rows() == 2 * rows, || format!("{} rows, not twice {rows}", merged.metadata().rows()))?;
    for index in 0..once.first().map_or(0, RecordBatch::num_columns) {
        let joined = |batches: &[RecordBatch]| {
            let arrays: Vec<_> = batches.iter().map(|batch| batch.column(index).as_ref()).collect();
            arrow_select::concat::concat(&arrays)
        };
        let (once, twice) = (joined(&once)?, joined(&twice)?);
        let parts = [twice.slice(0, once.len()), twice.slice(once.len(), twice.len() - once.len())];
        check(parts.iter().all(|part| part.as_ref() == once.as_ref()), || format!("column {index}: other values"))?;
    }
    let counts = |reader: &Reader<Bytes>| -> Vec<_> {
        reader.metadata().footer.statistics.iter().map(|own| own.number_of_values).collect()
    };
    let mut wanted: Vec<_> = counts(&reader).into_iter().map(|count| count.map(|count| 2 * count)).collect();
    // A file without any bytes has no statistics.
    wanted.resize(file.schema.end as usize, None);
    check(counts(&merged) == wanted, || format!("counts {:?}, {wanted:?} wanted", counts(&merged)))?;
    check(merged.metadata().software_version() == file.software_version(), || "another writer".to_owned())
}
