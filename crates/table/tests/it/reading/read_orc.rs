//! Reading ORC data files: by several threads, selected rows, row positions.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use icefield_format::expr::Expr;
use icefield_format::types::reserved::POS;
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_orc::{Projection, ReadOptions, Reader, Source, Writer, WriterOptions};
use icefield_table::error::{Error, Result};
use icefield_table::file::orc::batches::FileBatches;
use icefield_table::file::orc::read::OrcFile;
use icefield_table::file::{DataFileReader, Filter, Request};
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::{FilePart, FilePartition};
use icefield_table::read::task;
use icefield_table::storage::{Existing, Storage};
use icefield_table::stream::TaskBatches;

const ROWS: i64 = 100_000;

/// Ten columns: numbers of several sizes, text with nulls, a struct.
fn table() -> RecordBatch {
    let number = |factor: i64| Arc::new((0..ROWS).map(|row| row * factor % 10_007).collect::<Int64Array>()) as ArrayRef;
    let text = |every: i64| {
        let value = |row: i64| (row % 7 != 0).then(|| format!("text {}", row / every));
        Arc::new((0..ROWS).map(value).collect::<StringArray>()) as ArrayRef
    };
    let pair = StructArray::from(vec![
        (Arc::new(ArrowField::new("a", DataType::Int64, true)), number(11)),
        (Arc::new(ArrowField::new("b", DataType::Utf8, true)), text(1)),
    ]);
    let mut columns: Vec<(String, ArrayRef)> = vec![("id".to_owned(), Arc::new((0..ROWS).collect::<Int64Array>()))];
    columns.extend((1..6).map(|at| (format!("n{at}"), number(at * 37))));
    columns.extend((0..3).map(|at| (format!("t{at}"), text(10_i64.pow(at)))));
    columns.push(("st".to_owned(), Arc::new(pair)));
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true))).unwrap()
}

/// The table as a file with several stripes.
fn file(stripe_rows: u64) -> Bytes {
    let options = WriterOptions { stripe_rows: Some(stripe_rows), row_index_stride: 1000, ..WriterOptions::default() };
    let mut writer = Writer::try_new(Vec::new(), &table().schema(), options).unwrap();
    writer.write(&table()).unwrap();
    writer.finish().unwrap().0.into()
}

fn ahead<S: Source + Send + Sync + 'static>(source: S, options: ReadOptions, threads: usize) -> FileBatches<S> {
    let reader = Arc::new(Reader::open(source).unwrap());
    FileBatches::new(&reader, Arc::new(|error| Error::of_orc("file", error)), options, |_| true, threads).unwrap()
}

/// Threads share many columns by column, and few columns by row group; in both cases the rows are in order.
#[test]
fn threads_give_the_rows_in_order() {
    let table = table();
    for stripe_rows in [30_000, 1 << 40] {
        let bytes = file(stripe_rows);
        let schema = Reader::open(bytes.clone()).unwrap().metadata().schema.clone();
        for threads in [1, 2, 3, 5, 16] {
            for names in [None, Some(vec!["id", "t0", "n3", "st", "n1"]), Some(vec!["t1"]), Some(vec![])] {
                let projection = match &names {
                    None => Projection::All,
                    Some(names) => Projection::names(&schema, names).unwrap(),
                };
                let options = ReadOptions { projection, batch_size: 7001, ..ReadOptions::default() };
                let read = ahead(bytes.clone(), options, threads);
                let read_schema = read.schema().clone();
                let batches: Vec<RecordBatch> = read.map(Result::unwrap).collect();
                assert!(batches.iter().all(|batch| batch.num_rows() <= 7001));
                let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(rows, table.num_rows());
                if read_schema.fields().is_empty() {
                    continue;
                }
                let got = concat_batches(&read_schema, &batches).unwrap();
                for (field, column) in read_schema.fields().iter().zip(got.columns()) {
                    let written = table.column_by_name(field.name()).unwrap();
                    assert_eq!(column.as_ref(), written.as_ref(), "{} by {threads} threads", field.name());
                }
            }
        }
    }
}

fn gone() -> Error {
    Error::NotFound { path: "the store".to_owned() }
}

/// A file with some unreadable ranges.
#[derive(Debug)]
struct Broken {
    bytes: Bytes,
    bad: Range<u64>,
    panics: bool,
}

impl Source for Broken {
    fn length(&self) -> icefield_orc::Result<u64> {
        self.bytes.length()
    }

    fn read_range(&self, range: Range<u64>) -> icefield_orc::Result<Bytes> {
        if range.start < self.bad.end && self.bad.start < range.end {
            assert!(!self.panics, "a store that panics");
            return Err(icefield_orc::Error::external(gone()));
        }
        self.bytes.read_range(range)
    }
}

#[test]
fn what_fails_ends_the_stream_after_the_rows_before_it() {
    let bytes = file(20_000);
    let third = Reader::open(bytes.clone()).unwrap().metadata().footer.stripes[2].clone();
    let bad = third.offset.unwrap() + third.index_length.unwrap() + 100;
    for panics in [false, true] {
        let source = Broken { bytes: bytes.clone(), bad: bad..bad + 1, panics };
        let mut read = ahead(source, ReadOptions::default(), 2);
        let mut rows = 0;
        let error = loop {
            match read.next() {
                Some(Ok(batch)) => rows += batch.num_rows(),
                Some(Err(error)) => break error,
                None => panic!("no error"),
            }
        };
        match error {
            Error::NotFound { path } => assert!(!panics && path == "the store"),
            Error::Storage { path, message, .. } => assert!(panics && path == "file" && message.contains("thread")),
            other => panic!("{other}"),
        }
        assert_eq!(rows, 40_000);
        assert!(read.next().is_none());
    }
}

fn request(threads: usize, filter: Option<Filter>) -> Request {
    Request { batch_rows: 1024, filter, threads, ..Request::all(vec![0]) }
}

/// The batches of a file, read by its own field ids.
fn batches(mut file: OrcFile, request: Request) -> Result<TaskBatches> {
    file.bind(&Fields::clone, &Arc::new(Schema::new(0, Vec::new()).unwrap()));
    Ok(Box::new(file).batches(request)?.into_batches())
}

#[test]
fn a_missing_file_is_named_as_missing() {
    let (storage, path, size) = stored("missing");
    for threads in [1, 4] {
        storage.put(&path, file(30_000).to_vec(), Existing::Replace).unwrap();
        let file = OrcFile::open(&storage, &path, size).unwrap();
        storage.delete(&path).unwrap();
        let error = batches(file, request(threads, None)).and_then(|mut batches| batches.next().unwrap());
        assert!(matches!(error, Err(Error::NotFound { path: named }) if named == path));
    }
    assert!(matches!(OrcFile::open(&storage, &path, size), Err(Error::NotFound { path: named }) if named == path));
}

#[test]
fn an_error_of_a_filter_passes_through() {
    let (storage, path, size) = stored("filter");
    for threads in [1, 4] {
        let test = Arc::new(|_: &RecordBatch| Err(Error::Callback("the filter's own".into())));
        let filter = Filter { leaves: vec![0], test };
        let file = OrcFile::open(&storage, &path, size).unwrap();
        let error = batches(file, request(threads, Some(filter))).and_then(|mut batches| batches.next().unwrap());
        assert!(matches!(error, Err(Error::Callback(cause)) if cause.to_string() == "the filter's own"));
    }
}

/// The bytes of a file; the flag shows whether the source still exists.
#[derive(Debug)]
struct Watched(Bytes, #[expect(dead_code, reason = "it is there to be dropped")] Arc<AtomicBool>);

impl Source for Watched {
    fn length(&self) -> icefield_orc::Result<u64> {
        self.0.length()
    }

    fn read_range(&self, range: Range<u64>) -> icefield_orc::Result<Bytes> {
        self.0.read_range(range)
    }
}

#[test]
fn threads_end_when_nobody_reads_on() {
    let bytes = file(10_000);
    for batches in [0, 1, 5] {
        let alive = Arc::new(AtomicBool::new(true));
        let watch: Weak<AtomicBool> = Arc::downgrade(&alive);
        let mut read = ahead(Watched(bytes.clone(), alive), ReadOptions::default(), 4);
        (0..batches).for_each(|_| drop(read.next().unwrap().unwrap()));
        drop(read);
        while let Some(alive) = watch.upgrade() {
            assert!(alive.load(Ordering::Relaxed));
            drop(alive);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn stored(name: &str) -> (Storage, String, u64) {
    let (storage, path, bytes) = (Storage::default(), format!("memory://read-orc/{name}.orc"), file(30_000));
    let size = bytes.len() as u64;
    storage.put(&path, bytes.to_vec(), Existing::Replace).unwrap();
    (storage, path, size)
}

/// Rows between those that a deletion vector deletes, with their numbers, in one stripe and across stripes.
#[test]
fn rows_are_selected_by_position() {
    let (storage, path, size) = stored("selected");
    let all = table();
    let one = |range: Range<u64>| std::iter::once(range).collect();
    let selections: [Vec<Range<u64>>; 5] = [
        vec![],
        one(0..1),
        vec![5..6, 7..900, 999..1001, 29_999..30_001, 99_999..100_000],
        one(40_000..200_000),
        (0..ROWS as u64).filter(|row| row % 3 != 0).map(|row| row..row + 1).collect(),
    ];
    for rows in selections {
        for threads in [1, 2, 4] {
            let file = OrcFile::open(&storage, &path, size).unwrap();
            let positions = file.fields().iter().map(|field| leaves_of(field.data_type())).sum();
            let selected = Some(rows.clone());
            let request = Request { rows: selected, batch_rows: 1024, threads, ..Request::all(vec![0, 6, positions]) };
            let batches: Vec<RecordBatch> = batches(file, request).unwrap().map(Result::unwrap).collect();
            let wanted: Vec<i64> =
                rows.iter().flat_map(|range| range.start as i64..(range.end as i64).min(ROWS)).collect();
            let column = |at: usize| {
                batches.iter().flat_map(move |batch| batch.column(at).as_primitive::<Int64Type>().values().to_vec())
            };
            assert!(column(0).eq(wanted.iter().copied()), "{threads} threads");
            assert!(column(2).eq(wanted.iter().copied()), "{threads} threads");
            let texts = batches.iter().flat_map(|batch| batch.column(1).as_string::<i32>().iter().collect::<Vec<_>>());
            let written = all.column(6).as_string::<i32>();
            assert!(texts.eq(wanted.iter().map(|row| written.iter().nth(*row as usize).unwrap())));
        }
    }
}

fn leaves_of(ty: &DataType) -> usize {
    match ty {
        DataType::Struct(fields) => fields.iter().map(|field| leaves_of(field.data_type())).sum(),
        _ => 1,
    }
}

/// `_pos` is the row number in the file, whichever parts of it are skipped.
#[test]
fn positions_are_a_metadata_column() {
    let (storage, path, size) = stored("positions");
    let id = Field::optional(1, "id", PrimitiveType::Long);
    let position = POS.to_field();
    let schema = Arc::new(Schema::new(0, vec![id.clone(), position.clone()]).unwrap());
    let wanted = |fields: Vec<Field>| Arc::new(Wanted::new(schema.clone(), Arc::new(Schema::new(0, fields).unwrap())));
    for fields in [vec![position.clone(), id.clone()], vec![position.clone()]] {
        for filter in ["id >= 69990 and id < 70010", "true"] {
            let residual = Expr::parse(filter).unwrap().bind(&schema, true).unwrap();
            let part = FilePart {
                key_metadata: None,
                path: path.clone(),
                format: "orc".to_owned(),
                size,
                start: 0,
                length: size,
                record_count: ROWS,
                partition: FilePartition::unpartitioned(),
                sequence_number: None,
                first_row_id: None,
                deletes: Default::default(),
                residual,
                change: None,
                deleted_by: Default::default(),
            };
            let one = ReadTask { wanted: wanted(fields.clone()), parts: vec![part] };
            let batches: Vec<_> = task::rows(one, &storage, None).unwrap().map(Result::unwrap).collect();
            let positions =
                batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
            let expected = if filter == "true" { 0..ROWS } else { 69_990..70_010 };
            assert!(positions.eq(expected), "{filter}");
        }
    }
}

/// A source that records the requested ranges.
#[derive(Debug)]
struct Noting(Bytes, Mutex<Vec<Range<u64>>>);

impl Source for Noting {
    fn length(&self) -> icefield_orc::Result<u64> {
        self.0.length()
    }

    fn read_range(&self, range: Range<u64>) -> icefield_orc::Result<Bytes> {
        self.1.lock().unwrap().push(range.clone());
        self.0.read_range(range)
    }
}

#[test]
fn the_pieces_of_a_stripe_read_its_indexes_once() {
    let reader = Reader::open(Noting(file(50_000), Mutex::default())).unwrap();
    let stripes = reader.metadata().footer.stripes.clone();
    let indexes = |stripe: usize| {
        let (start, length) = (stripes[stripe].offset.unwrap(), stripes[stripe].index_length.unwrap());
        let asked = reader.source().1.lock().unwrap();
        asked.iter().filter(|range| range.start < start + length && start < range.end).count()
    };
    let options = Arc::new(ReadOptions::default());
    let pieces = reader.pieces(&options, 20).unwrap();
    assert_eq!(pieces.len(), 20);
    let drain = |options: &Arc<ReadOptions>, piece| {
        let mut part = reader.piece(piece, options).unwrap();
        std::iter::from_fn(|| part.next_batch().unwrap()).collect::<Vec<RecordBatch>>()
    };
    let batches: Vec<_> = pieces.iter().flat_map(|piece| drain(&options, piece)).collect();
    assert_eq!(concat_batches(&batches[0].schema(), &batches).unwrap().columns(), table().columns());
    let once = [indexes(0), indexes(1)];
    assert!(once.iter().all(|count| (1..=2).contains(count)), "{once:?}");
    // A piece with other options reads its own index.
    let projection = Projection::names(&reader.metadata().schema, ["t2"]).unwrap();
    let other = Arc::new(ReadOptions { projection, ..ReadOptions::default() });
    let batches: Vec<_> = pieces.iter().flat_map(|piece| drain(&other, piece)).collect();
    assert_eq!(concat_batches(&batches[0].schema(), &batches).unwrap().column(0), table().column(8));
}
