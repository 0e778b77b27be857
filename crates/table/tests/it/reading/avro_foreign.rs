//! Avro files of other writers: types that Iceberg writers do not use, and files without ids. And damaged Avro files:
//! each kind of damage gives an error with its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Fields, TimeUnit};
use icefield_format::avro::{Codec, Compression, ContainerWriter, Encoder};
use icefield_format::expr::Expression;
use icefield_format::manifest::FileContent;
use icefield_format::types::arrow::with_mapped_ids;
use icefield_format::types::{Field, NameMapping, PrimitiveType, Schema};
use icefield_table::Result;
use icefield_table::file::leaves::count;
use icefield_table::file::{self, Request};
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::{FilePart, FilePartition};
use icefield_table::read::task;
use icefield_table::storage::{Existing, FileRef, Storage};

/// The start of every error; a number follows, so that each file has its own path.
const ROOT: &str = "memory://avro-foreign/";
const SYNC: [u8; 16] = *b"0123456789abcdef";

/// A file with one block of this many records.
fn made(fields: &str, codec: Codec, records: usize, write: impl Fn(usize, &mut Encoder)) -> Vec<u8> {
    let schema = format!(r#"{{"type": "record", "name": "t", "fields": [{fields}]}}"#);
    let compression = Compression { codec, level: None };
    let mut file = ContainerWriter::new(&schema, &[], compression, SYNC).unwrap();
    for record in 0..records {
        let write = |out: &mut Encoder| {
            write(record, out);
            Ok(())
        };
        file.record(write).unwrap();
    }
    file.finish().unwrap()
}

/// Stores a file under a new path.
fn stored(bytes: &[u8]) -> (Storage, String) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (storage, path) = (Storage::default(), format!("{ROOT}{}/x.avro", NEXT.fetch_add(1, Ordering::Relaxed)));
    storage.put(&path, bytes.to_vec(), Existing::Replace).unwrap();
    (storage, path)
}

fn table(fields: Vec<Field>) -> Arc<Schema> {
    Arc::new(Schema::new(0, fields).unwrap())
}

/// Reads all columns, by the names of a table.
fn read(bytes: &[u8], schema: &Arc<Schema>, leaves: Option<Vec<usize>>) -> Result<Vec<RecordBatch>> {
    let (storage, path) = stored(bytes);
    let mut file = file::open(&storage, &FileRef::plain(&path, bytes.len() as u64), "avro", FileContent::Data)?;
    let mapping = NameMapping::of_schema(schema).unwrap();
    let fields = file.bind(&|fields: &Fields| with_mapped_ids(fields, &mapping), schema);
    let all = (0..count(&fields) - 1).collect();
    file.batches(Request::all(leaves.unwrap_or(all)))?.into_batches().collect()
}

fn error(bytes: &[u8]) -> String {
    read(bytes, &table(Vec::new()), None).unwrap_err().to_string()
}

fn texts(batch: &RecordBatch, column: usize) -> Vec<String> {
    let array = batch.column(column);
    let plain = match array.data_type() {
        DataType::Timestamp(..) | DataType::Time32(_) => cast(array, &DataType::Int64),
        _ => Ok(array.clone()),
    };
    let plain = match plain {
        Ok(plain) => plain,
        // Some times have 32 bits.
        Err(_) => cast(&cast(array, &DataType::Int32).unwrap(), &DataType::Int64).unwrap(),
    };
    (0..batch.num_rows()).map(|row| array_value_to_string(&plain, row).unwrap()).collect()
}

#[test]
fn types_of_other_writers() {
    let fields = r#"
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "utc", "type": [{"type": "long", "logicalType": "timestamp-micros"}, "null"]},
        {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "color", "type": {"type": "enum", "name": "c", "symbols": ["red", "green"]}},
        {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "one", "type": ["int"]},
        {"name": "nothing", "type": "null"}"#;
    let bytes = made(fields, Codec::Deflate, 2, |row, out| {
        out.long(1_500);
        out.long(-1);
        out.long(if row == 0 { 0 } else { 1 });
        if row == 0 {
            out.long(7);
        }
        out.int(86_399_999);
        out.int(row as i32);
        out.bytes(if row == 0 { &[0xff] } else { &[0x01, 0x00] });
        out.bytes(b"00010203-0405-0607-0809-0a0b0c0d0e0f");
        out.long(0);
        out.int(-5);
    });
    let schema = table(vec![
        Field::required(1, "ms", PrimitiveType::Timestamptz),
        Field::required(2, "local", PrimitiveType::Timestamp),
        Field::optional(3, "utc", PrimitiveType::Timestamptz),
        Field::required(4, "uuid", PrimitiveType::Uuid),
    ]);
    let batches = read(&bytes, &schema, None).unwrap();
    let [batch] = batches.as_slice() else { panic!("{} batches", batches.len()) };
    let utc = || Some("UTC".into());
    let types: Vec<DataType> = batch.schema_ref().fields().iter().map(|field| field.data_type().clone()).collect();
    let expected = [
        DataType::Timestamp(TimeUnit::Millisecond, utc()),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, utc()),
        DataType::Time32(TimeUnit::Millisecond),
        DataType::Utf8,
        DataType::Decimal128(9, 2),
        DataType::FixedSizeBinary(16),
        DataType::Int32,
        DataType::Null,
    ];
    assert_eq!(types, expected);
    let found: Vec<_> = (0..8).map(|column| texts(batch, column)).collect();
    let uuid = "000102030405060708090a0b0c0d0e0f";
    let both = |value: &str| vec![value.to_owned(); 2];
    assert_eq!(found[0], both("1500"));
    assert_eq!(found[1], both("-1"));
    assert_eq!(found[2], ["7", ""]);
    assert_eq!(found[3], both("86399999"));
    assert_eq!(found[4], ["red", "green"]);
    assert_eq!(found[5], ["-0.01", "2.56"]);
    assert_eq!(found[6], both(uuid));
    assert_eq!(found[7], both("-5"));
    // If the table does not say otherwise, text is read as text, and a timestamp has no time zone.
    let batches = read(&bytes, &table(Vec::new()), None).unwrap();
    assert_eq!(*batches[0].column(6).data_type(), DataType::Utf8);
    assert_eq!(*batches[0].column(2).data_type(), DataType::Timestamp(TimeUnit::Microsecond, None));
}

#[test]
fn wider_unions_are_refused_where_they_are_wanted() {
    let fields = r#"{"name": "u", "type": ["int", "string"]}, {"name": "n", "type": "int"}"#;
    let bytes = made(fields, Codec::Null, 3, |row, out| {
        out.long(1);
        out.bytes(b"x");
        out.int(row as i32);
    });
    let schema = table(Vec::new());
    let error = read(&bytes, &schema, Some(vec![0])).unwrap_err();
    assert!(matches!(error, icefield_table::Error::Unsupported(_)), "{error}");
    assert!(error.to_string().contains("x.avro: column u"), "{error}");
    let rows = read(&bytes, &schema, Some(vec![1])).unwrap();
    assert_eq!(texts(&rows[0], 0), ["0", "1", "2"]);
}

/// The rows of a file without ids, in a table without a name mapping.
fn as_table(bytes: &[u8], schema: &Arc<Schema>) -> Result<Vec<RecordBatch>> {
    let (storage, path) = stored(bytes);
    let wanted = Wanted::new(schema.clone(), schema.clone());
    let part = FilePart {
        key_metadata: None,
        path,
        format: "avro".to_owned(),
        size: bytes.len() as u64,
        start: 0,
        length: bytes.len() as u64,
        record_count: 3,
        partition: FilePartition::unpartitioned(),
        sequence_number: None,
        first_row_id: None,
        deletes: Default::default(),
        residual: Expression::True,
        change: None,
        deleted_by: Default::default(),
    };
    task::rows(ReadTask { wanted: Arc::new(wanted), parts: vec![part] }, &storage, None)?.collect()
}

/// As in the Java library, which reads other formats by position.
#[test]
fn files_without_ids_are_read_by_the_names_of_the_table() {
    let fields =
        r#"{"name": "x", "type": "int"}, {"name": "u", "type": ["int", "string"]}, {"name": "n", "type": "int"}"#;
    let bytes = made(fields, Codec::Snappy, 3, |row, out| {
        out.int(-1);
        out.long(0);
        out.int(0);
        out.int(row as i32);
    });
    let number = |name: &str| Field::optional(1, name, PrimitiveType::Long);
    let rows = as_table(&bytes, &table(vec![number("n")])).unwrap();
    assert_eq!(texts(&rows[0], 0), ["0", "1", "2"]);
    let error = as_table(&bytes, &table(vec![number("u")])).unwrap_err();
    assert!(matches!(error, icefield_table::Error::Unsupported(_)), "{error}");
    assert!(error.to_string().contains("column u (id 1) is a union"), "{error}");
}

#[test]
fn rows_wider_than_the_limit_are_refused() {
    let wide = r#"{"name": "f", "type": ["null", {"type": "fixed", "name": "g", "size": 1000000000}]}"#;
    let found = error(&made(wide, Codec::Null, 9, |_, out| out.long(0)));
    assert!(found.starts_with(ROOT) && found.contains("each row takes at least 1000000000 bytes"), "{found}");
}

/// The offset of the first row, in a file with the header of [`made`].
fn first_row(bytes: &[u8]) -> usize {
    let sync = bytes.windows(16).position(|window| window == SYNC).unwrap();
    sync + 16
}

#[test]
fn damaged_rows_name_their_block_row_and_column() {
    let fields =
        r#"{"name": "s", "type": "string"}, {"name": "l", "type": {"type": "array", "items": ["null", "boolean"]}}"#;
    let good = |out: &mut Encoder| {
        out.bytes(b"ok");
        out.length(0);
    };
    type Write = fn(&mut Encoder);
    let cases: [(&str, Write, &str); 9] = [
        ("a negative length", |out| out.long(-3), "column s: a length or count is negative"),
        ("a long text", |out| out.long(1 << 40), "column s: a length or count exceeds what is left"),
        (
            "text that is not UTF-8",
            |out| {
                out.bytes(&[0xff]);
                out.length(0);
            },
            "column s",
        ),
        ("an endless varint", |out| out.raw(&[0xff; 12]), "column s: a varint does not fit 64 bits"),
        ("a huge array", |out| [0, i64::MAX].map(|n| out.long(n)).iter().for_each(drop), "column l: a length"),
        (
            "a huge negative count",
            |out| [0, i64::MIN, 1].map(|n| out.long(n)).iter().for_each(drop),
            "column l: a length or count exceeds",
        ),
        ("a branch", |out| [0, 1, 2].map(|n| out.long(n)).iter().for_each(drop), "column l: a union names a branch"),
        ("a boolean", |out| [0, 1, 1, 1].map(|n| out.long(n)).iter().for_each(drop), "column l: a boolean is neither"),
        ("an end within", |out| out.raw(&[0x80]), "column s: the input ends within a value"),
    ];
    for (name, damage, message) in cases {
        for codec in [Codec::Null, Codec::Deflate, Codec::Snappy, Codec::Zstandard] {
            let bytes = made(fields, codec, 3, |row, out| if row < 2 { good(out) } else { damage(out) });
            let found = error(&bytes);
            let place = format!("Avro block at byte {}", first_row(&bytes));
            assert!(found.starts_with(ROOT) && found.contains(message), "{name}, {codec:?}: {found}");
            let is_text = name.contains("UTF-8");
            let at = found
                .split("Avro block at byte ")
                .nth(1)
                .and_then(|rest| rest.split(',').next()?.parse::<usize>().ok());
            assert!(is_text || at.is_some_and(|at| at > first_row(&bytes)), "{place}: {found}");
            assert!(is_text || found.contains("row 2"), "{found}");
        }
    }
}

#[test]
fn damaged_blocks_name_their_byte() {
    let whole = made(r#"{"name": "n", "type": "long"}"#, Codec::Null, 40, |row, out| out.long(row as i64));
    let start = first_row(&whole);
    // Two one-byte numbers precede the rows.
    let (count, size) = (start, start + 1);
    let changed = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed.splice(at..at + 1, bytes.iter().copied());
        changed
    };
    let last = whole.len() - 1;
    for (bytes, message) in [
        (changed(count, &[0x01]), "a length or count is negative"),
        (changed(count, &[0xfe, 0xff, 0xff, 0xff, 0x1f]), "rows are more than its"),
        (changed(count, &[0x02]), "bytes are left over after its last row"),
        (changed(size, &[0xfe, 0xff, 0xff, 0xff, 0x1f]), "a length or count exceeds what is left"),
        (changed(size, &[0x01]), "a length or count is negative"),
        (changed(size, &[0x10]), "the sync marker after a block does not match"),
        (changed(last, b"!"), "the sync marker after a block does not match"),
        (whole[..last].to_vec(), "the file ends within the sync marker"),
        (whole[..start + 1].to_vec(), "the input ends within a value"),
    ] {
        let found = error(&bytes);
        assert!(found.starts_with(ROOT) && found.contains("Avro block at byte") && found.contains(message), "{found}");
    }
}

#[test]
fn bombs_and_false_checksums_are_refused() {
    let text = |codec| made(r#"{"name": "s", "type": "string"}"#, codec, 1, |_, out| out.bytes(&vec![b'x'; 1 << 20]));
    for codec in [Codec::Deflate, Codec::Snappy, Codec::Zstandard] {
        let rows = read(&text(codec), &table(Vec::new()), None).unwrap();
        assert_eq!(rows[0].num_rows(), 1);
    }
    // The checksum is before the sync marker.
    let mut snappy = text(Codec::Snappy);
    let place = snappy.len() - 17;
    snappy[place] ^= 1;
    let found = error(&snappy);
    assert!(found.starts_with(ROOT) && found.contains("checksum mismatch"), "{found}");
    // A list of nulls with more elements than memory can hold.
    let nulls = made(r#"{"name": "l", "type": {"type": "array", "items": "null"}}"#, Codec::Null, 1, |_, out| {
        out.long(1 << 40);
        out.long(0);
    });
    assert!(error(&nulls).contains("column l: a length or count exceeds"));
    // Rows without bytes: as many as the limits allow, and no more.
    let mut empty = made(r#"{"name": "n", "type": "null"}"#, Codec::Null, 1, |_, _| {});
    let start = first_row(&empty);
    empty.splice(start..=start, [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]);
    assert!(error(&empty).contains("rows are more than its 0 bytes can hold"));
}

#[test]
fn headers_that_cannot_be_are_refused() {
    let whole = made(r#"{"name": "n", "type": "long"}"#, Codec::Null, 1, |_, out| out.long(1));
    for (bytes, message) in [
        (b"PAR1".to_vec(), "not an Avro file"),
        (Vec::new(), "shorter than Avro's magic"),
        (whole[..30].to_vec(), "Avro header"),
        (
            made(r#"{"name": "n", "type": {"type": "record", "name": "t", "fields": []}}"#, Codec::Null, 0, |_, _| {}),
            "t",
        ),
    ] {
        match read(&bytes, &table(Vec::new()), None) {
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains(ROOT) && error.contains(message), "{error}");
            }
            Ok(rows) => assert!(rows.is_empty() && message == "t"),
        }
    }
    let recursive = r#"{"name": "next", "type": ["null", "t"]}"#;
    let found = error(&made(recursive, Codec::Null, 0, |_, _| {}));
    assert!(found.starts_with(ROOT) && found.contains("contains itself"), "{found}");
    let deep =
        format!(r#"{{"name": "d", "type": {}"int"{}}}"#, r#"{"type": "array", "items": "#.repeat(300), "}".repeat(300));
    let found = error(&made(&deep, Codec::Null, 0, |_, _| {}));
    assert!(found.starts_with(ROOT) && found.contains("nested deeper than 128 levels"), "{found}");
}
