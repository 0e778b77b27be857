//! Reads one file with several threads: the rows come in the same order, whatever the pool does.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use icefield_orc::{Error, Pool, Projection, ReadOptions, Reader, Source, Writer, WriterOptions};

const ROWS: i64 = 50_000;

fn table() -> RecordBatch {
    let number = |factor: i64| Arc::new((0..ROWS).map(|row| row * factor % 10_007).collect::<Int64Array>()) as ArrayRef;
    let text = (0..ROWS).map(|row| (row % 7 != 0).then(|| format!("text {}", row / 10))).collect::<StringArray>();
    let mut columns: Vec<(String, ArrayRef)> = (1..8).map(|at| (format!("n{at}"), number(at * 37))).collect();
    columns.push(("t".to_owned(), Arc::new(text)));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

fn file(stripe_rows: u64) -> Bytes {
    let options = WriterOptions { stripe_rows: Some(stripe_rows), row_index_stride: 1000, ..WriterOptions::default() };
    let mut writer = Writer::try_new(Vec::new(), &table().schema(), options).unwrap();
    writer.write(&table()).unwrap();
    writer.finish().unwrap().0.into()
}

/// A pool with a new thread for each task.
#[derive(Debug)]
struct Threads;

impl Pool for Threads {
    fn run(&self, work: Vec<Box<dyn FnOnce() + Send + '_>>) {
        std::thread::scope(|scope| work.into_iter().for_each(|one| drop(scope.spawn(one))));
    }

    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        drop(std::thread::spawn(task));
        true
    }
}

/// A pool without a free thread.
#[derive(Debug)]
struct Busy;

impl Pool for Busy {
    fn run(&self, work: Vec<Box<dyn FnOnce() + Send + '_>>) {
        work.into_iter().for_each(|one| one());
    }

    fn spawn(&self, _: Box<dyn FnOnce() + Send>) -> bool {
        false
    }
}

fn pools() -> [Arc<dyn Pool>; 2] {
    [Arc::new(Threads), Arc::new(Busy)]
}

#[test]
fn threads_return_the_rows_in_order() {
    let table = table();
    for stripe_rows in [20_000, 1 << 40] {
        let reader = Arc::new(Reader::open(file(stripe_rows)).unwrap());
        for (columns, by_columns) in [(None, true), (Some(vec!["t", "n3"]), false)] {
            let projection = match &columns {
                None => Projection::All,
                Some(names) => Projection::names(&reader.metadata().schema, names).unwrap(),
            };
            let options = ReadOptions { projection, batch_size: 7001, ..ReadOptions::default() };
            let schema = reader.schema(&options).unwrap();
            for (threads, pool) in [1, 2, 3].into_iter().flat_map(|threads| pools().map(|pool| (threads, pool))) {
                let stripes = reader.stripes(&options).unwrap();
                let shared = reader.by_columns(&options, stripes, threads, &pool).unwrap();
                assert_eq!(shared.is_some(), by_columns || threads == 1, "{columns:?} by {threads} threads");
                let batches = reader.read_all(options.clone(), threads, &pool, || Ok(())).unwrap();
                let read = concat_batches(&schema, &batches).unwrap();
                assert_eq!(read.num_rows(), table.num_rows());
                for (field, column) in schema.fields().iter().zip(read.columns()) {
                    assert_eq!(column, table.column_by_name(field.name()).unwrap(), "{threads} threads");
                }
            }
        }
    }
}

/// A file with some unreadable bytes.
#[derive(Debug)]
struct Broken {
    bytes: Bytes,
    bad: u64,
    panics: bool,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the store is gone")]
struct Gone;

impl Source for Broken {
    fn length(&self) -> icefield_orc::Result<u64> {
        self.bytes.length()
    }

    fn read_range(&self, range: Range<u64>) -> icefield_orc::Result<Bytes> {
        if range.contains(&self.bad) {
            assert!(!self.panics, "a store that panics");
            return Err(Error::external(Gone));
        }
        self.bytes.read_range(range)
    }
}

fn in_the_third_stripe(bytes: &Bytes) -> u64 {
    let third = Reader::open(bytes.clone()).unwrap().metadata().footer.stripes[2].clone();
    third.offset.unwrap() + third.index_length.unwrap() + 100
}

#[test]
fn what_a_source_fails_with_is_returned_once_all_threads_have_stopped() {
    let bytes = file(10_000);
    let bad = in_the_third_stripe(&bytes);
    for (panics, pool) in [false, true].into_iter().flat_map(|panics| pools().map(|pool| (panics, pool))) {
        let reader = Arc::new(Reader::open(Broken { bytes: bytes.clone(), bad, panics }).unwrap());
        let few = Projection::names(&reader.metadata().schema, ["n1"]).unwrap();
        for projection in [Projection::All, few] {
            let options = ReadOptions { projection, ..ReadOptions::default() };
            let error = reader.read_all(options, 3, &pool, || Ok(())).unwrap_err();
            match panics {
                false => assert_eq!(error.downcast::<Gone>().unwrap(), Gone),
                true => assert!(error.to_string().contains("thread failed"), "{error}"),
            }
        }
    }
}

#[test]
fn the_caller_can_end_the_call() {
    let reader = Arc::new(Reader::open(file(10_000)).unwrap());
    let few = Projection::names(&reader.metadata().schema, ["n1"]).unwrap();
    // With other threads, there may be no piece left for the calling thread.
    let [threads, busy] = pools();
    for (projection, pool) in [(Projection::All, &threads), (Projection::All, &busy), (few, &busy)] {
        let options = ReadOptions { projection, batch_size: 100, ..ReadOptions::default() };
        let mut asked = 0;
        let check = || {
            asked += 1;
            if asked < 3 { Ok(()) } else { Err(Error::external(Gone)) }
        };
        assert_eq!(reader.read_all(options, 3, pool, check).unwrap_err().downcast::<Gone>().unwrap(), Gone);
        assert_eq!(asked, 3);
    }
}

#[test]
fn nothing_follows_an_error() {
    let bytes = file(10_000);
    let bad = in_the_third_stripe(&bytes);
    let reader = Reader::open(Broken { bytes, bad, panics: false }).unwrap();
    let mut batches = reader.batches(ReadOptions::default()).unwrap();
    let mut rows = 0;
    let error = loop {
        match batches.next().unwrap() {
            Ok(batch) => rows += batch.num_rows(),
            Err(error) => break error,
        }
    };
    assert_eq!((rows, error.downcast::<Gone>().unwrap()), (20_000, Gone));
    assert!(batches.next().is_none());
}
