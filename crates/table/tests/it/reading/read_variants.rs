//! Variants of Parquet files: values shredded in all ways that `VariantShredding.md` allows are read back.

#[path = "variant_values.rs"]
mod variant_values;

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};
use icefield_format::expr::{Expr, Extract};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, PrimitiveType, Schema, Type};
use icefield_format::value::Value;
use icefield_format::value::variant::encode::metadata;
use icefield_format::value::variant::{Column, Path as VariantSteps, Tree, human};
use icefield_table::Result;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::file::{DataFileReader, Request};
use icefield_table::plan::projection::wanted::Wanted;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::{FilePart, FilePartition};
use icefield_table::read::columns::{Constants, Rules, leaves};
use icefield_table::read::reshape::Reshape;
use icefield_table::read::task;
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use parquet::file::properties::WriterProperties;

struct NoPartition;

impl Constants for NoPartition {
    fn identity(&self, _: i32) -> Option<Option<Value>> {
        None
    }
}

/// A struct of columns by name; all except `metadata` can be null.
fn group(parts: Vec<(&str, ArrayRef)>, nulls: Option<Vec<bool>>) -> ArrayRef {
    let field =
        |(name, array): &(&str, ArrayRef)| ArrowField::new(*name, array.data_type().clone(), *name != "metadata");
    let fields: Fields = parts.iter().map(field).collect();
    let columns = parts.into_iter().map(|(_, array)| array).collect();
    Arc::new(StructArray::new(fields, columns, nulls.map(NullBuffer::from)))
}

/// The metadata column: a dictionary with the same names in each row.
fn names(names: &[&str], rows: usize) -> ArrayRef {
    let bytes = metadata(names.iter().copied()).unwrap();
    Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(bytes, rows)))
}

/// Encoded values, given in hex; an empty text is null.
fn values(texts: &[&str]) -> ArrayRef {
    let mut out = BinaryBuilder::new();
    for text in texts {
        out.append_option((!text.is_empty()).then(|| hex(text)));
    }
    Arc::new(out.finish())
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn texts(texts: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(texts.to_vec()))
}

fn list(lengths: &[usize], elements: ArrayRef, nulls: Option<Vec<bool>>) -> ArrayRef {
    let field = Arc::new(ArrowField::new("element", elements.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
    Arc::new(ListArray::new(field, offsets, elements, nulls.map(NullBuffer::from)))
}

/// Writes a column `v` (id 1).
fn write(storage: &Storage, path: &str, variants: &ArrayRef) {
    let id = [(PARQUET_FIELD_ID_META_KEY.to_owned(), "1".to_owned())];
    let field = ArrowField::new("v", variants.data_type().clone(), true).with_metadata(id);
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(vec![field])), vec![variants.clone()]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    storage.put(path, bytes, Existing::Replace).unwrap();
}

/// Writes a column `v` (id 1), and reads it as a variant, and all values inside it.
fn read(path: &str, variants: &ArrayRef) -> Result<ArrayRef> {
    let storage = Storage::default();
    write(&storage, path, variants);
    let file = ParquetFile::open(&storage, path, None)?;
    let columns = Schema::new(0, vec![Field::optional(1, "v", Type::Variant)]).unwrap();
    let schema = Arc::new(columns.to_arrow(&ToArrow::default()).unwrap());
    let wanted = [(columns.fields()[0].clone(), schema.fields()[0].clone())];
    let planned = Rules { path, constants: &NoPartition }.plan(&wanted, file.fields())?;
    let batch = file.decode(vec![0], &Request::all(leaves(&planned, file.fields())))?.next().unwrap()?;
    let whole = Reshape::new(path, schema, planned).apply(&batch)?.column(0).clone();
    variant_values::check(&file, &whole);
    Ok(whole)
}

/// For an extracted value, only the columns that may contain it are read.
#[test]
fn values_are_read_from_columns_of_their_own() {
    let full = |rows: &[&str]| texts(&rows.iter().map(|text| Some(*text)).collect::<Vec<_>>());
    let no = || values(&["", "", ""]);
    let inner = group(vec![("value", no()), ("typed_value", full(&["x", "y", "z"]))], None);
    let object = group(vec![("value", no()), ("typed_value", group(vec![("s", inner)], None))], None);
    let some = group(vec![("value", no()), ("typed_value", texts(&[Some("a"), None, None]))], None);
    let mixed =
        group(vec![("value", values(&["", "0c01", ""])), ("typed_value", texts(&[Some("a"), None, None]))], None);
    let fields = vec![("full", object), ("some", some), ("mixed", mixed)];
    // {"other": 1} in all rows, in addition to the fields that have columns.
    let rest = values(&["02010400020c01"; 3]);
    let parts = vec![
        ("metadata", names(&["full", "mixed", "other", "s", "some"], 3)),
        ("value", rest),
        ("typed_value", group(fields, None)),
    ];
    let storage = Storage::default();
    let path = "memory://variants/leaves.parquet";
    write(&storage, path, &group(parts, None));
    let file = ParquetFile::open(&storage, path, None).unwrap();
    for (wanted, leaves) in [
        ("$.full.s", "typed_value.full.typed_value.s.typed_value"),
        ("$.some", "metadata value typed_value.some.typed_value"),
        ("$.mixed", "metadata value typed_value.mixed.value typed_value.mixed.typed_value"),
        ("$.other", "metadata value"),
        ("$", "metadata value"),
    ] {
        let extract = Extract::new(VariantSteps::parse(wanted).unwrap(), PrimitiveType::String).unwrap();
        let (_, read) = variant_values::read_values(&file, &extract);
        let leaves: Vec<String> = leaves.split(' ').map(|leaf| format!("v.{leaf}")).collect();
        assert_eq!(read, leaves, "{wanted}");
    }
}

/// A filter on a value in variants reads the columns that may contain it, and keeps the rows whose variants have it.
#[test]
#[cfg(debug_assertions)] // reads are counted for tests alone
fn filters_read_columns_of_their_own() {
    let rows = 3_000;
    // {"other": 200 bytes}, which cannot be compressed.
    let other = |row: usize| -> Vec<u8> {
        let bytes = (0..200).map(|at| ((row * 200 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8);
        [0x02, 1, 1, 0, 205, 0x3c, 200, 0, 0, 0].into_iter().chain(bytes).collect()
    };
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("x{}", row % 100))));
    let of_path = group(vec![("value", values(&vec![""; rows])), ("typed_value", texts)], None);
    let parts = vec![
        ("metadata", names(&["a", "other"], rows)),
        ("value", Arc::new(BinaryArray::from_iter_values((0..rows).map(other))) as ArrayRef),
        ("typed_value", group(vec![("a", of_path)], None)),
    ];
    let (storage, path) = (Storage::default(), "memory://variants/filtered.parquet");
    write(&storage, path, &group(parts, None));
    let size = storage.size(path).unwrap();
    let schema = Arc::new(Schema::new(0, vec![Field::optional(1, "v", Type::Variant)]).unwrap());
    let wanted = Arc::new(Wanted::new(schema.clone(), Arc::new(Schema::new(0, Vec::new()).unwrap())));
    for (filter, expected, share) in [
        ("v:a::string = 'x7'", 30, 0.25),
        ("v:a::string > 'x95' AND v:a::string != 'x97'", 90, 0.25),
        ("v:a::string IN ('x1', 'x2') OR NOT v:a::string > 'x1'", 90, 0.25),
        ("v:a::string LIKE 'x9%'", 330, 0.25),
        ("v:a::long = 7", 0, 0.25),
        ("v:a::string IS NULL", 0, 0.25),
        ("v:missing::int IS NULL", 3_000, 1.25),
        ("v:other::binary IS NOT NULL AND v:a::string = 'x99'", 30, 1.25),
        ("v IS NOT NULL AND v:a::string = 'x7'", 30, 1.25),
    ] {
        let counted = FaultPlan::new(usize::MAX, Fault::Panic);
        let part = FilePart {
            key_metadata: None,
            path: path.to_owned(),
            format: "parquet".to_owned(),
            size,
            start: 0,
            length: size,
            record_count: rows as i64,
            partition: FilePartition::unpartitioned(),
            sequence_number: Some(1),
            first_row_id: None,
            deletes: Default::default(),
            residual: Expr::parse(filter).unwrap().bind(&schema, true).unwrap(),
            change: None,
            deleted_by: Default::default(),
        };
        let task = ReadTask { wanted: wanted.clone(), parts: vec![part] };
        let batches = task::rows(task, &storage.with_faults(counted.clone()), None).unwrap();
        let found: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
        let (_, bytes) = counted.read();
        assert_eq!(found, expected, "{filter}");
        assert!(bytes as f64 <= share * size as f64, "{filter}: {bytes} of {size} bytes");
    }
}

/// The variants as text with types; null is an empty text.
fn shown(variants: &ArrayRef) -> Vec<String> {
    let column = Column::new(variants).unwrap();
    let text = |row| column.get(row).unwrap().map(|variant| human::to_human_string(&variant).unwrap());
    (0..column.len()).map(|row| text(row).unwrap_or_default()).collect()
}

#[track_caller]
fn refused(path: &str, variants: &ArrayRef, message: &str) {
    let error = read(path, variants).unwrap_err().to_string();
    for part in [path, "column v", message] {
        assert!(error.contains(part), "{error}");
    }
}

/// For each type: a value in the typed column, one of another type, no value, and a row without variant.
#[test]
fn every_primitive_type() {
    let mut uuids = FixedSizeBinaryBuilder::new(16);
    uuids.append_value([0xf2; 16]).unwrap();
    (0..3).for_each(|_| uuids.append_null());
    let decimals = |value: i128, precision| -> ArrayRef {
        let array = Decimal128Array::from(vec![Some(value), None, None, None]);
        Arc::new(array.with_precision_and_scale(precision, 2).unwrap())
    };
    let typed: Vec<(ArrayRef, &str)> = vec![
        (Arc::new(BooleanArray::from(vec![Some(false), None, None, None])), "BOOLEAN_FALSE, value=false"),
        (Arc::new(BooleanArray::from(vec![Some(true), None, None, None])), "BOOLEAN_TRUE, value=true"),
        (Arc::new(Int8Array::from(vec![Some(i8::MIN), None, None, None])), "INT8, value=-128"),
        (Arc::new(Int16Array::from(vec![Some(i16::MAX), None, None, None])), "INT16, value=32767"),
        (Arc::new(Int32Array::from(vec![Some(34), None, None, None])), "INT32, value=34"),
        (Arc::new(Int64Array::from(vec![Some(i64::MIN), None, None, None])), "INT64, value=-9223372036854775808"),
        (Arc::new(Float32Array::from(vec![Some(0.1), None, None, None])), "FLOAT, value=0.1"),
        (Arc::new(Float64Array::from(vec![Some(f64::NAN), None, None, None])), "DOUBLE, value=NaN"),
        (decimals(-123_456_789, 9), "DECIMAL4, value=-1234567.89"),
        (decimals(100, 18), "DECIMAL8, value=1.00"),
        (decimals(10_i128.pow(37), 38), "DECIMAL16, value=100000000000000000000000000000000000.00"),
        (Arc::new(Date32Array::from(vec![Some(i32::MAX), None, None, None])), "DATE, value=+5881580-07-11"),
        (Arc::new(Time64MicrosecondArray::from(vec![Some(1), None, None, None])), "TIME, value=00:00:00.000001"),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![Some(-1), None, None, None])),
            "TIMESTAMPNTZ, value=1969-12-31T23:59:59.999999",
        ),
        (
            Arc::new(TimestampMicrosecondArray::from(vec![Some(i64::MAX), None, None, None]).with_timezone("UTC")),
            "TIMESTAMPTZ, value=+294247-01-10T04:00:54.775807+00:00",
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![Some(1), None, None, None])),
            "TIMESTAMPNTZ_NANOS, value=1970-01-01T00:00:00.000000001",
        ),
        (
            Arc::new(TimestampNanosecondArray::from(vec![Some(1), None, None, None]).with_timezone("UTC")),
            "TIMESTAMPTZ_NANOS, value=1970-01-01T00:00:00.000000001+00:00",
        ),
        (Arc::new(BinaryArray::from(vec![Some(&b"\xca\xfe"[..]), None, None, None])), "BINARY, value=CAFE"),
        (texts(&[Some("iceberg"), None, None, None]), "STRING, value=iceberg"),
        (Arc::new(uuids.finish()), "UUID, value=f2f2f2f2-f2f2-f2f2-f2f2-f2f2f2f2f2f2"),
    ];
    for (typed, text) in typed {
        let parts =
            vec![("typed_value", typed), ("metadata", names(&[], 4)), ("value", values(&["", "0d6e2f61", "", ""]))];
        let found =
            read("memory://variants/primitive.parquet", &group(parts, Some(vec![true, true, true, false]))).unwrap();
        let wanted = [
            format!("Variant(type={text})"),
            "Variant(type=STRING, value=n/a)".into(),
            "Variant(type=NULL, value=null)".into(),
            String::new(),
        ];
        assert_eq!(shown(&found), wanted);
    }
}

/// The table in section "Objects" of the specification, and its invalid cases.
#[test]
fn objects() {
    let event_type = group(
        vec![
            ("value", values(&["", "", "", "", "", "00", "", "", ""])),
            (
                "typed_value",
                texts(&[Some("noop"), Some("login"), None, None, None, None, Some("noop"), None, Some("login")]),
            ),
        ],
        None,
    );
    let millis = |value: i64| Some(value * 1000);
    let event_ts = TimestampMicrosecondArray::from(vec![
        millis(1),
        millis(2),
        None,
        None,
        millis(4),
        millis(5),
        None,
        None,
        millis(8),
    ]);
    let event_ts = group(
        vec![
            ("value", values(&["", "", "", "", "", "", "29323032342d31302d3234", "", ""])),
            ("typed_value", Arc::new(event_ts.with_timezone("UTC"))),
        ],
        None,
    );
    let is_object = vec![true, true, true, false, true, true, true, true, true];
    let fields = group(vec![("event_ts", event_ts), ("event_type", event_type)], Some(is_object));
    // {"email": "e"}, {"error_msg": "m"}, "m", {"click": "b"}; the last row has event_type in both.
    let value =
        values(&["", "02010100020565", "0201020002056d", "056d", "02010000020562", "", "", "", "02010400020578"]);
    let metadata = names(&["click", "email", "error_msg", "event_ts", "event_type"], 9);
    let found = group(vec![("metadata", metadata), ("value", value), ("typed_value", fields)], None);
    let found = shown(&read("memory://variants/objects.parquet", &found).unwrap());
    let object = |fields: &[(&str, &str)]| {
        let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}: Variant(type={value})")).collect();
        format!("VariantObject(fields={{{}}})", fields.join(", "))
    };
    let ts = |millis: i64| format!("TIMESTAMPTZ, value=1970-01-01T00:00:00.00{millis}+00:00");
    let wanted = [
        object(&[("event_ts", &ts(1)), ("event_type", "STRING, value=noop")]),
        object(&[("email", "STRING, value=e"), ("event_ts", &ts(2)), ("event_type", "STRING, value=login")]),
        object(&[("error_msg", "STRING, value=m")]),
        "Variant(type=STRING, value=m)".to_owned(),
        object(&[("click", "STRING, value=b"), ("event_ts", &ts(4))]),
        object(&[("event_ts", &ts(5)), ("event_type", "NULL, value=null")]),
        object(&[("event_ts", "STRING, value=2024-10-24"), ("event_type", "STRING, value=noop")]),
        object(&[]),
        // The typed column takes precedence over the value.
        object(&[("event_ts", &ts(8)), ("event_type", "STRING, value=login")]),
    ];
    assert_eq!(found, wanted);
}

/// Arrays of objects of arrays; a missing element is null.
#[test]
fn nested_arrays_and_objects() {
    let tags = group(
        vec![("value", values(&["", "00", "", "0c07"])), ("typed_value", texts(&[Some("a"), None, Some("b"), None]))],
        None,
    );
    let tags = group(vec![("typed_value", list(&[2, 0, 2], tags, Some(vec![true, false, true])))], None);
    let element = group(
        vec![
            ("value", values(&["", "0c01", ""])),
            ("typed_value", group(vec![("tags", tags)], Some(vec![true, false, true]))),
        ],
        None,
    );
    let parts = vec![
        ("metadata", names(&["tags"], 4)),
        ("value", values(&["", "", "08", ""])),
        ("typed_value", list(&[2, 1, 0, 0], element, Some(vec![true, true, false, true]))),
    ];
    let found = read("memory://variants/nested.parquet", &group(parts, None)).unwrap();
    let string = |text: &str| format!("Variant(type=STRING, value={text})");
    let tags = |tags: [String; 2]| format!("VariantObject(fields={{tags: VariantArray([{}])}})", tags.join(", "));
    let null = "Variant(type=NULL, value=null)";
    let wanted = [
        format!("VariantArray([{}, Variant(type=INT8, value=1)])", tags([string("a"), null.to_owned()])),
        format!("VariantArray([{}])", tags([string("b"), "Variant(type=INT8, value=7)".to_owned()])),
        "Variant(type=BOOLEAN_FALSE, value=false)".to_owned(),
        "VariantArray([])".to_owned(),
    ];
    assert_eq!(shown(&found), wanted);
    let missing = group(vec![("value", values(&["", "0c01"])), ("typed_value", texts(&[None, None]))], None);
    let parts = vec![("metadata", names(&[], 1)), ("typed_value", list(&[2], missing, None))];
    let found = read("memory://variants/missing.parquet", &group(parts, None)).unwrap();
    assert_eq!(shown(&found), [format!("VariantArray([{null}, Variant(type=INT8, value=1)])")]);
}

/// 300 fields and long values need wide offsets and counts; rows with different dictionaries have different ids.
#[test]
fn wide_objects_of_several_dictionaries() {
    let fields: Vec<String> = (0..300).map(|at| format!("f{at:03}")).collect();
    let long = "x".repeat(1000);
    let column = |at: usize| {
        let typed = texts(&[Some(long.as_str()), at.is_multiple_of(2).then_some("y"), None]);
        group(vec![("typed_value", typed)], None)
    };
    let columns = group(fields.iter().enumerate().map(|(at, name)| (name.as_str(), column(at))).collect(), None);
    let even: Vec<&str> = fields.iter().step_by(2).map(String::as_str).collect();
    let all: Vec<&str> = fields.iter().map(String::as_str).collect();
    let dictionaries =
        BinaryArray::from_iter_values([&all, &even, &Vec::new()].map(|names| metadata(names.iter().copied()).unwrap()));
    let parts = vec![("metadata", Arc::new(dictionaries) as ArrayRef), ("typed_value", columns)];
    let found = read("memory://variants/wide.parquet", &group(parts, None)).unwrap();
    let text = |names: &[&str], value: &str| {
        let fields: Vec<_> = names.iter().map(|name| format!("{name}: Variant(type=STRING, value={value})")).collect();
        format!("VariantObject(fields={{{}}})", fields.join(", "))
    };
    assert_eq!(shown(&found), [text(&all, &long), text(&even, "y"), text(&[], "")]);
}

/// Variants that the specification forbids, and that have no other meaning, give errors with file, column and row.
#[test]
fn invalid_variants_are_refused() {
    let path = "memory://variants/invalid.parquet";
    let shredded = |value: &[&str], typed: ArrayRef| {
        let parts = vec![("metadata", names(&["a"], typed.len())), ("value", values(value)), ("typed_value", typed)];
        group(parts, None)
    };
    let strings = texts(&[Some("x"), Some("y")]);
    refused(path, &shredded(&["", "0c01"], strings.clone()), "variant 1 of a batch: both value and typed_value");
    let element = group(vec![("typed_value", texts(&[Some("x")]))], None);
    let arrays = list(&[0, 1], element, Some(vec![false, true]));
    refused(path, &shredded(&["00", "030000"], arrays), "variant 1 of a batch: both value and typed_value");
    let object = |name| group(vec![(name, group(vec![("typed_value", strings.clone())], None))], None);
    refused(path, &shredded(&["", "0c01"], object("a")), "variant 1 of a batch: typed_value holds fields of an object");
    refused(
        path,
        &shredded(&["", ""], object("b")),
        "variant 0 of a batch: its dictionary lacks the name of the shredded field \"b\"",
    );
    refused(path, &shredded(&["", "0201"], object("a")), "variant 1 of a batch: the variant's value does not end");
    let plain = |metadata: Vec<u8>, value: &str| {
        let metadata: ArrayRef = Arc::new(BinaryArray::from_iter_values([metadata]));
        group(vec![("metadata", metadata), ("value", values(&[value]))], None)
    };
    refused(path, &plain(hex("02"), "00"), "variant 0 of a batch: the variant's metadata have version 2");
    refused(path, &plain(hex("010000"), "0201000002000000"), "field id 0 is not in the dictionary");
    let unsigned: ArrayRef = Arc::new(arrow_array::UInt32Array::from(vec![1]));
    let error = read(path, &shredded(&[""], unsigned)).unwrap_err();
    assert!(matches!(error, icefield_table::Error::Unsupported(_)), "{error}");
    let lacks = group(vec![("value", values(&["00"]))], None);
    refused(path, &lacks, "cannot be read as its type");
}

/// A value that is not shredded keeps its bytes, and rows without variants stay null.
#[test]
fn plain_variants_are_kept() {
    let tree = Tree::Array(vec![Tree::integer(1), Tree::integer(300)]);
    let (metadata, value) = tree.encode().unwrap();
    let column = |bytes: &[u8]| -> ArrayRef { Arc::new(BinaryArray::from_iter_values([bytes, bytes])) };
    let parts = vec![("metadata", column(&metadata)), ("value", column(&value))];
    let found = read("memory://variants/plain.parquet", &group(parts, Some(vec![true, false]))).unwrap();
    assert!(found.is_null(1));
    assert_eq!(found.as_struct().column(1).as_binary::<i32>().value(0), value);
    let DataType::Struct(fields) = found.data_type() else { panic!("{found:?}") };
    assert!(fields.iter().all(|field| !field.is_nullable()));
}

/// Statistics of shredded values can skip row groups, unless some of the values are not shredded.
#[test]
fn row_groups_are_left_out() {
    let rows = 4;
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(11), Some(12)]));
    // The value "x" of the second row group is not in the typed column.
    let mixed = vec![
        ("value", values(&["", "", "", "0578"])),
        ("typed_value", Arc::new(Int64Array::from(vec![Some(1), Some(2), Some(11), None])) as ArrayRef),
    ];
    let inner = group(vec![("typed_value", texts(&[Some("a"), Some("b"), Some("k"), None]))], None);
    let nested = vec![("value", values(&["", "", "", ""])), ("typed_value", group(vec![("s", inner)], None))];
    let fields = vec![
        ("n", group(vec![("value", values(&["", "", "", ""])), ("typed_value", longs)], None)),
        ("m", group(mixed, None)),
        ("o", group(nested, None)),
    ];
    let parts = vec![
        ("metadata", names(&["m", "n", "o", "s"], rows)),
        ("value", values(&["", "", "", ""])),
        ("typed_value", group(fields, None)),
    ];
    let variants = group(parts, None);
    let id = |id: i32| [(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())];
    let columns = vec![
        ArrowField::new("v", variants.data_type().clone(), true).with_metadata(id(1)),
        ArrowField::new("id", DataType::Int64, false).with_metadata(id(2)),
    ];
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(columns)), vec![variants, ids]).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(2)).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let storage = Storage::default();
    let path = "memory://variants/groups.parquet";
    storage.put(path, bytes, Existing::Replace).unwrap();
    let mut file = ParquetFile::open(&storage, path, None).unwrap();
    let fields = vec![Field::optional(1, "v", Type::Variant), Field::required(2, "id", PrimitiveType::Long)];
    let schema = Arc::new(Schema::new(0, fields).unwrap());
    file.bind(&Fields::clone, &schema);
    let cases: [(&str, &[usize]); 14] = [
        ("v:n::long = 2", &[0]),
        ("v:n::int = 2", &[0, 1]),
        ("v:n::long > 10", &[1]),
        ("v:n::long > 12", &[]),
        ("v:n::string = 'a'", &[0, 1]),
        ("v:n::long IS NULL", &[0, 1]),
        ("v:n::long != 2", &[0, 1]),
        ("v:m::long = 3", &[1]),
        ("v:o.s::string = 'k'", &[1]),
        ("v:o.s::string LIKE 'c%'", &[]),
        ("v:o::string = 'k'", &[0, 1]),
        ("v::long = 3", &[0, 1]),
        ("v:n::long = 2 AND id > 1", &[]),
        ("id > 1", &[1]),
    ];
    for (filter, wanted) in cases {
        let prune = Expr::parse(filter).unwrap().bind(&schema, true).unwrap();
        let mut request = Request { prune, ..Request::all(vec![0]) };
        let found = file.pieces(&mut request, u64::MAX).unwrap().concat();
        assert_eq!(found, wanted, "{filter}");
    }
}
