//! Errors about a row name the row in the whole input, however the input is split, and however deeply the value is
//! nested.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, Date64Array, Decimal128Array, DictionaryArray, FixedSizeListArray,
    GenericListArray, GenericStringArray, Int8Array, Int32Array, Int64Array, MapArray, NullArray, OffsetSizeTrait,
    RecordBatch, StringArray, StructArray, Time64MicrosecondArray, Time64NanosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, make_array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use icefield_format::spec::{NullOrder, PartitionField, PartitionSpec, SortDirection, SortField, SortOrder};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, ListType, MapType, PrimitiveType, Schema, StructType, Type};
use icefield_table::storage::Storage;
use icefield_table::write::{TableWriter, WriterConfig};

const ROWS: usize = 11;
const BAD: usize = 8;

/// The values of one column; one value may be invalid.
struct Leaf {
    name: &'static str,
    ty: PrimitiveType,
    /// Creates values, given their number and the index of the invalid one.
    values: fn(usize, usize) -> ArrayRef,
    /// The text of the error about the row.
    said: &'static str,
}

fn longs(count: usize, bad: usize) -> Int64Array {
    (0..count).map(|n| (n % 4 != 3 || n == bad).then_some(if n == bad { 1 << 31 } else { n as i64 })).collect()
}

fn bytes(count: usize, bad: usize) -> Vec<Option<&'static [u8]>> {
    let text = |n: usize| if n == bad { &b"a text that is longer than a view\xc3"[..] } else { "é".as_bytes() };
    (0..count).map(|n| (n % 4 != 3 || n == bad).then(|| text(n))).collect()
}

fn texts<O: OffsetSizeTrait>(count: usize, bad: usize) -> ArrayRef {
    let values = bytes(count, bad);
    let offsets = OffsetBuffer::<O>::from_lengths(values.iter().map(|text| text.map_or(0, <[u8]>::len)));
    let data: Vec<u8> = values.iter().flatten().flat_map(|text| text.iter().copied()).collect();
    let nulls = values.iter().map(Option::is_some).collect();
    // SAFETY: data from the C data interface is not checked either.
    Arc::new(unsafe { GenericStringArray::new_unchecked(offsets, Buffer::from_vec(data), Some(nulls)) })
}

fn leaves() -> Vec<Leaf> {
    let leaf = |name, ty, said, values| Leaf { name, ty, values, said };
    let decimal = PrimitiveType::Decimal { precision: 4, scale: 2 };
    vec![
        leaf("int", PrimitiveType::Int, "is 2147483648, which does not fit", |count, bad| Arc::new(longs(count, bad))),
        leaf("ints of a dictionary", PrimitiveType::Int, "is 2147483648, which does not fit", |count, bad| {
            let keys = (0..count).map(|n| (n % 4 != 3 || n == bad).then_some(i8::from(n == bad)));
            Arc::new(DictionaryArray::new(keys.collect::<Int8Array>(), Arc::new(longs(2, 1))))
        }),
        leaf("decimal", decimal, "is 100.00, which does not fit", |count, bad| {
            let values = (0..count).map(|n| if n == bad { 10_000 } else { n as i128 });
            Arc::new(Decimal128Array::from_iter_values(values).with_precision_and_scale(4, 2).unwrap())
        }),
        leaf("time", PrimitiveType::Time, "is -1 microseconds from midnight", |count, bad| {
            Arc::new(Time64MicrosecondArray::from_iter_values((0..count).map(|n| if n == bad { -1 } else { n as i64 })))
        }),
        leaf("time of nanoseconds", PrimitiveType::Time, "has nanoseconds", |count, bad| {
            Arc::new(Time64NanosecondArray::from_iter_values((0..count).map(|n| i64::from(n == bad))))
        }),
        leaf("timestamp", PrimitiveType::Timestamp, "has nanoseconds", |count, bad| {
            Arc::new(TimestampNanosecondArray::from_iter_values((0..count).map(|n| i64::from(n == bad))))
        }),
        leaf("date", PrimitiveType::Date, "has a time of day", |count, bad| {
            Arc::new(Date64Array::from_iter_values((0..count).map(|n| i64::from(n == bad))))
        }),
        leaf("far date", PrimitiveType::Date, "is ", |count, bad| {
            Arc::new(Date64Array::from_iter_values((0..count).map(|n| if n == bad { 86_400_000 << 31 } else { 0 })))
        }),
        leaf("fixed", PrimitiveType::Fixed(2), "has 3 bytes, not 2", |count, bad| {
            let value = |n| if n == bad { &b"abc"[..] } else { b"ab" };
            Arc::new(BinaryArray::from_iter_values((0..count).map(value)))
        }),
        leaf("uuid", PrimitiveType::Uuid, "is \"x\", which is no UUID", |count, bad| {
            let value = |n| if n == bad { "x" } else { "f79c3e09-677c-4bbd-a479-3f349cb785e7" };
            Arc::new(StringArray::from_iter_values((0..count).map(value)))
        }),
        leaf("uuid of no text", PrimitiveType::Uuid, "is no UTF-8", |count, bad| {
            let sound = ["f79c3e09-677c-4bbd-a479-3f349cb785e7".as_bytes(), b"\xff"];
            let values: Vec<&[u8]> = (0..count).map(|n| sound[usize::from(n == bad)]).collect();
            let data = BinaryArray::from_vec(values).into_data().into_builder().data_type(DataType::Utf8);
            // SAFETY: as above.
            make_array(unsafe { data.build_unchecked() })
        }),
        leaf("string", PrimitiveType::String, "is no UTF-8", texts::<i32>),
        leaf("large string", PrimitiveType::String, "is no UTF-8", texts::<i64>),
        leaf("view", PrimitiveType::String, "is no UTF-8", |count, bad| {
            let data = BinaryViewArray::from_iter(bytes(count, bad)).into_data().into_builder();
            // SAFETY: as above.
            make_array(unsafe { data.data_type(DataType::Utf8View).build_unchecked() })
        }),
        leaf("dictionary", PrimitiveType::String, "is no UTF-8", |count, bad| {
            let keys = (0..count).map(|n| (n % 4 != 3 || n == bad).then_some(i8::from(n == bad)));
            Arc::new(DictionaryArray::new(keys.collect::<Int8Array>(), texts::<i32>(2, 1)))
        }),
        leaf("null", PrimitiveType::Int, "null", |count, bad| {
            Arc::new((0..count).map(|n| (n != bad).then_some(n as i32)).collect::<Int32Array>())
        }),
    ]
}

/// How values are nested in rows: the outer type, the path of the column, and a function that creates rows from values.
struct Nest {
    name: &'static str,
    path: &'static str,
    ty: fn(Field) -> Type,
    rows: fn(&Leaf, usize, usize) -> ArrayRef,
}

/// Lengths of lists, where the invalid value is the second of its list; also its index among all values.
fn lengths(count: usize, bad: usize) -> (Vec<usize>, usize) {
    let lengths: Vec<usize> = (0..count).map(|row| if row == bad { 3 } else { row % 3 }).collect();
    let before: usize = lengths[..bad].iter().sum();
    (lengths, before + 1)
}

fn list<O: OffsetSizeTrait>(rows: usize, bad: usize, values: &dyn Fn(usize, usize) -> ArrayRef) -> ArrayRef {
    let (lengths, bad) = lengths(rows, bad);
    let values = values(lengths.iter().sum(), bad);
    let field = Arc::new(ArrowField::new("item", values.data_type().clone(), true));
    let nulls: NullBuffer = (0..rows).map(|row| row % 6 != 0).collect();
    Arc::new(GenericListArray::<O>::new(field, OffsetBuffer::from_lengths(lengths), values, Some(nulls)))
}

fn map(rows: usize, bad: usize, pairs: &dyn Fn(usize, usize) -> [ArrayRef; 2]) -> ArrayRef {
    let (lengths, bad) = lengths(rows, bad);
    let [keys, values] = pairs(lengths.iter().sum(), bad);
    let fields: Fields = vec![
        ArrowField::new("key", keys.data_type().clone(), false),
        ArrowField::new("value", values.data_type().clone(), true),
    ]
    .into();
    let entries = StructArray::new(fields.clone(), vec![keys, values], None);
    let field = Arc::new(ArrowField::new("entries", DataType::Struct(fields), false));
    Arc::new(MapArray::new(field, OffsetBuffer::from_lengths(lengths), entries, None, false))
}

fn numbers(count: usize) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(0..count as i32))
}

fn field(id: i32, name: &str, required: bool, ty: impl Into<Type>) -> Field {
    if required { Field::required(id, name, ty) } else { Field::optional(id, name, ty) }
}

fn list_of(element: Field, id: i32) -> Type {
    Type::List(ListType { element: field(id, "element", element.required, element.ty) }.into())
}

fn nests() -> Vec<Nest> {
    let nest = |name, path, ty, rows| Nest { name, path, ty, rows };
    let in_list = |leaf| list_of(leaf, 10);
    vec![
        nest("column", "v", |leaf| leaf.ty, |leaf, rows, bad| (leaf.values)(rows, bad)),
        nest(
            "struct",
            "v.x",
            |leaf| StructType::new(vec![field(10, "x", leaf.required, leaf.ty)]).into(),
            |leaf, rows, bad| {
                let values = (leaf.values)(rows, bad);
                let x = Arc::new(ArrowField::new("x", values.data_type().clone(), true));
                Arc::new(StructArray::from(vec![(x, values)]))
            },
        ),
        nest("list", "v.element", in_list, |leaf, rows, bad| list::<i32>(rows, bad, &leaf.values)),
        nest("large list", "v.element", in_list, |leaf, rows, bad| list::<i64>(rows, bad, &leaf.values)),
        nest("fixed list", "v.element", in_list, |leaf, rows, bad| {
            let values = (leaf.values)(3 * rows, 3 * bad + 1);
            let field = Arc::new(ArrowField::new("item", values.data_type().clone(), true));
            Arc::new(FixedSizeListArray::new(field, 3, values, None))
        }),
        nest(
            "list of lists",
            "v.element.element",
            |leaf| list_of(Field::optional(0, "", list_of(leaf, 10)), 11),
            |leaf, rows, bad| list::<i32>(rows, bad, &|rows, bad| list::<i64>(rows, bad, &leaf.values)),
        ),
        nest(
            "values of a map in a list",
            "v.element.value",
            |leaf| {
                let value = field(13, "value", leaf.required, leaf.ty);
                let key = Field::required(12, "key", PrimitiveType::Int);
                list_of(Field::optional(0, "", Type::Map(MapType { key, value }.into())), 11)
            },
            |leaf, rows, bad| {
                list::<i32>(rows, bad, &|rows, bad| map(rows, bad, &|n, bad| [numbers(n), (leaf.values)(n, bad)]))
            },
        ),
        nest(
            "keys of a map",
            "v.key",
            |leaf| {
                let key = Field::required(12, "key", leaf.ty);
                Type::Map(MapType { key, value: Field::optional(13, "value", PrimitiveType::Int) }.into())
            },
            |leaf, rows, bad| {
                let keys = |count: usize, bad: usize| {
                    let whole = (leaf.values)(2 * count, 2 * bad);
                    // Take every second value, because keys cannot be null.
                    let even: Int32Array = (0..count as i32).map(|n| Some(2 * n)).collect();
                    arrow_select::take::take(&whole, &even, None).unwrap()
                };
                map(rows, bad, &|count, bad| [keys(count, bad), numbers(count)])
            },
        ),
    ]
}

fn schema(v: Field) -> Arc<Schema> {
    Arc::new(Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long), v]).unwrap())
}

fn spec(source: i32, transform: Transform) -> Arc<PartitionSpec> {
    let field = PartitionField { source_ids: vec![source], field_id: 1000, name: "p".to_owned(), transform };
    Arc::new(PartitionSpec { spec_id: 0, fields: vec![field] })
}

fn unpartitioned() -> Arc<PartitionSpec> {
    Arc::new(PartitionSpec { spec_id: 0, fields: Vec::new() })
}

fn config(format: &str, schema: Arc<Schema>, spec: Arc<PartitionSpec>) -> WriterConfig {
    let mut config = WriterConfig::new(Storage::default(), "memory://write-rows", schema, spec);
    config.properties.insert("write.format.default".to_owned(), format.to_owned());
    config
}

fn rows(v: ArrayRef) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..v.len() as i64));
    RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("v", v, true)]).unwrap()
}

/// The error of writing rows in batches of these lengths.
fn error_of(config: WriterConfig, rows: &RecordBatch, cuts: &[usize]) -> String {
    let mut writer = TableWriter::new(config, &rows.schema()).unwrap();
    let mut start = 0;
    let mut written = cuts.iter().map(|length| {
        start += length;
        writer.write(&rows.slice(start - length, *length))
    });
    let error = written.find_map(Result::err);
    let error = error.or_else(|| writer.finish().err()).expect("an error");
    error.to_string()
}

#[test]
fn the_row_is_that_of_all_batches() {
    let mut cases = 0;
    for (nest, leaf) in nests().iter().flat_map(|nest| leaves().into_iter().map(move |leaf| (nest, leaf))) {
        let required = leaf.said == "null";
        if required && nest.name == "keys of a map" {
            continue; // Arrow itself has no such keys
        }
        let ty = (nest.ty)(field(0, "", required, leaf.ty.clone()));
        let schema = schema(field(2, "v", required && nest.path == "v", ty));
        let whole = rows((nest.rows)(&leaf, ROWS, BAD));
        for (format, spec, cuts) in [
            ("parquet", unpartitioned(), &[ROWS][..]),
            ("parquet", spec(1, Transform::Bucket(2)), &[4, 1, 0, 6]),
            ("orc", unpartitioned(), &[5, 6]),
            ("orc", spec(1, Transform::Identity), &[1, 7, 1, 2]),
        ] {
            let what = format!("{} in {} ({format}, {cuts:?})", leaf.name, nest.name);
            for task in [None, Some(3)] {
                let mut config = config(format, schema.clone(), spec.clone());
                (config.distributed, config.task) = (task.is_some(), task.unwrap_or(0));
                let found = error_of(config, &whole, cuts);
                let path = nest.path;
                let expected = match (required, task) {
                    (false, None) => format!("column {path}: row {BAD} {}", leaf.said),
                    (false, Some(task)) => format!("column {path}: row {BAD} of task {task} {}", leaf.said),
                    (true, None) => format!("column {path}: required, but row {BAD} of the data is null"),
                    (true, Some(task)) => format!("column {path}: required, but row {BAD} of task {task} is null"),
                };
                assert!(found.starts_with(&expected), "{what}: {found}");
                cases += 1;
            }
        }
    }
    assert_eq!(cases, (8 * 16 - 1) * 4 * 2);
    assert!(Storage::default().list("memory://write-rows").unwrap().is_empty());
}

#[test]
fn batches_that_are_cut_before_they_are_written() {
    const MANY: usize = 400_000;
    const LATE: usize = 270_001; // beyond two chunks
    let leaf = &leaves()[0];
    for nest in nests().iter().filter(|nest| ["column", "list"].contains(&nest.name)) {
        let schema = schema(Field::optional(2, "v", (nest.ty)(Field::optional(0, "", PrimitiveType::Int))));
        for spec in [unpartitioned(), spec(1, Transform::Bucket(2))] {
            let found =
                error_of(config("parquet", schema.clone(), spec), &rows((nest.rows)(leaf, MANY, LATE)), &[7, MANY - 7]);
            assert!(found.contains(&format!("column {}: row {LATE} is 2147483648", nest.path)), "{found}");
        }
    }
}

#[test]
fn columns_of_nothing_where_something_is_required() {
    let whole = rows(Arc::new(NullArray::new(4)));
    let found = error_of(
        config("parquet", schema(Field::required(2, "v", PrimitiveType::Int)), unpartitioned()),
        &whole,
        &[0, 4],
    );
    assert_eq!(found, "column v: required, but row 0 of the data is null");
}

#[test]
fn values_without_a_partition_or_a_place_in_the_order() {
    let values = (0..ROWS).map(|row| if row == BAD { i64::MAX } else { 0 });
    let whole = rows(Arc::new(TimestampMicrosecondArray::from_iter_values(values)));
    let schema = schema(Field::optional(2, "v", PrimitiveType::Timestamp));
    let message = format!("transform hour: the result for {} does not fit 32 bits", i64::MAX);
    let found = error_of(config("parquet", schema.clone(), spec(2, Transform::Hour)), &whole, &[4, 7]);
    assert_eq!(found, format!("column v: row {BAD} has no partition: {message}"));

    let mut sorted = config("parquet", schema, unpartitioned());
    let by_hour = SortField {
        source_ids: vec![2],
        transform: Transform::Hour,
        direction: SortDirection::Ascending,
        null_order: NullOrder::First,
    };
    sorted.order = Some(Arc::new(SortOrder { order_id: 1, fields: vec![by_hour] }));
    let found = error_of(sorted, &whole, &[4, 7]);
    assert_eq!(found, format!("column v: a row has no place in the sort order: {message}"));
}
