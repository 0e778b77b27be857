//! Parquet decimals with more bytes than their numbers need, at any depth: values, statistics, and overflow.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Decimal128Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Fields, Schema as ArrowSchema};
use icefield_format::expr::Expr;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, ListType, PrimitiveType, Schema, StructType};
use icefield_format::value::Value;
use icefield_table::file::leaves::projected;
use icefield_table::file::parquet::read::ParquetFile;
use icefield_table::file::{DataFileReader, Request};
use icefield_table::read::columns::{Rules, leaves};
use icefield_table::read::reshape::Reshape;
use icefield_table::storage::{Existing, Storage};
use icefield_table::{Error, Result};
use parquet::data_type::{ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const PATH: &str = "memory://files/decimals.parquet";

const MESSAGE: &str = "message m {
    optional fixed_len_byte_array(20) f (DECIMAL(20, 2)) = 1;
    optional binary b (DECIMAL(20, 2)) = 2;
    optional group s = 3 { optional binary x (DECIMAL(20, 2)) = 4; }
    optional group l (LIST) = 5 { repeated group list { optional fixed_len_byte_array(32) element (DECIMAL(20, 2)) = 6; } }
}";

/// The number in `length` bytes.
fn bytes(number: i128, length: usize) -> Vec<u8> {
    let fill = if number < 0 { 0xff } else { 0 };
    let whole = [vec![fill; 32], number.to_be_bytes().to_vec()].concat();
    whole[whole.len() - length..].to_vec()
}

/// A file with a row group for each value, which is in all columns.
fn file(storage: &Storage, values: &[Option<i128>]) -> ParquetFile {
    let schema = Arc::new(parse_message_type(MESSAGE).unwrap());
    let properties = WriterProperties::builder().set_bloom_filter_enabled(true).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for (place, value) in values.iter().enumerate() {
        let mut group = writer.next_row_group().unwrap();
        // Byte arrays of every length from 64 bits on.
        let short = 16 + place * 3 % 25;
        let columns = [(true, 20, 1, 0), (false, short, 1, 0), (false, short + 1, 2, 1), (true, 32, 3, 2)];
        for (is_fixed, length, present, absent) in columns {
            let level = if value.is_some() { present } else { absent };
            let stored = value.iter().map(|number| ByteArray::from(bytes(*number, length)));
            let mut column = group.next_column().unwrap().unwrap();
            let repetition = (length == 32).then_some(&[0_i16][..]);
            if is_fixed {
                let stored: Vec<_> = stored.map(FixedLenByteArray::from).collect();
                column.typed::<FixedLenByteArrayType>().write_batch(&stored, Some(&[level]), repetition).unwrap();
            } else {
                let stored: Vec<_> = stored.collect();
                column.typed::<ByteArrayType>().write_batch(&stored, Some(&[level]), None).unwrap();
            }
            column.close().unwrap();
        }
        group.close().unwrap();
    }
    storage.put(PATH, writer.into_inner().unwrap(), Existing::Replace).unwrap();
    ParquetFile::open(storage, PATH, None).unwrap()
}

fn table(precision: u8) -> Arc<Schema> {
    let decimal = PrimitiveType::Decimal { precision, scale: 2 };
    let inner = StructType::new(vec![Field::optional(4, "x", decimal.clone())]);
    let fields = vec![
        Field::optional(1, "f", decimal.clone()),
        Field::optional(2, "b", decimal.clone()),
        Field::optional(3, "s", inner),
        Field::optional(5, "l", ListType::optional(6, decimal)),
    ];
    Arc::new(Schema::new(0, fields).unwrap())
}

/// Reads some columns of the table, as a scan does.
fn read(file: &ParquetFile, fields: &Fields, schema: &Schema, groups: usize) -> Result<Vec<RecordBatch>> {
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let wanted: Vec<_> = schema.fields().iter().cloned().zip(arrow.fields().iter().cloned()).collect();
    let rules = Rules { path: PATH, constants: &() };
    let marks = leaves(&rules.plan(&wanted, fields)?, fields);
    let planned = rules.plan(&wanted, &projected(fields, &marks))?;
    let reshape = Reshape::new(PATH, Arc::new(ArrowSchema::clone(&arrow)), planned);
    file.decode((0..groups).collect(), &Request::all(marks))?.map(|batch| reshape.apply(&batch?)).collect()
}

fn numbers(array: &ArrayRef) -> Vec<Option<i128>> {
    array.as_primitive::<Decimal128Type>().iter().collect()
}

#[test]
fn the_value_counts_and_not_the_bytes_before_it() {
    let storage = Storage::default();
    let values =
        [Some(-128), None, Some(256), Some(0), Some(-1), Some(i128::from(i64::MAX)), Some(i128::from(i64::MIN))];
    let mut opened = file(&storage, &values);
    let schema = table(20);
    let fields = opened.bind(&Fields::clone, &schema);
    let found = read(&opened, &fields, &schema, values.len()).unwrap();
    let column = |place: usize| found.iter().map(move |batch| batch.column(place).clone());
    assert_eq!(column(0).flat_map(|array| numbers(&array)).collect::<Vec<_>>(), values);
    assert_eq!(column(1).flat_map(|array| numbers(&array)).collect::<Vec<_>>(), values);
    assert_eq!(column(2).flat_map(|array| numbers(array.as_struct().column(0))).collect::<Vec<_>>(), values);
    assert_eq!(column(3).flat_map(|array| numbers(array.as_list::<i32>().values())).collect::<Vec<_>>(), values);

    // Statistics, dictionaries and Bloom filters skip no matching row; statistics of fixed-length columns skip other
    // rows.
    for name in ["f", "b", "s.x"] {
        for value in values.iter().flatten() {
            let text = icefield_format::value::decimal::to_plain_string(*value, 2);
            let equal = Expr::parse(&format!("{name} = {text}")).unwrap().bind(&schema, true).unwrap();
            let mut request = Request { prune: equal, ..Request::all(vec![0]) };
            let groups = opened.pieces(&mut request, u64::MAX).unwrap().concat();
            let own = values.iter().position(|other| other.as_ref() == Some(value)).unwrap();
            assert!(groups.contains(&own), "{name} = {text} skips its own row");
            assert!(name != "f" || groups == [own], "{name} = {text} reads {groups:?}");
        }
    }
    let bounds = |id: i32| {
        let metrics =
            opened.metrics(&icefield_table::file::modes::Modes::new(&Default::default(), &schema, None).unwrap());
        let metrics = metrics.unwrap();
        let ty = PrimitiveType::Decimal { precision: 20, scale: 2 };
        let value = |bytes: Option<&Vec<u8>>| icefield_format::value::binary::from_bytes(bytes?, &ty).ok();
        (value(metrics.lower_bounds.get(&id)), value(metrics.upper_bounds.get(&id)))
    };
    let all = |number: i64| Some(Value::Decimal(i128::from(number)));
    assert_eq!(bounds(1), (all(i64::MIN), all(i64::MAX)));
    assert_eq!(bounds(2), (None, None), "the order of byte arrays is not known");
}

#[test]
fn a_value_that_does_not_fit_is_an_error_that_names_its_column() {
    for (number, precision) in [(10_i128.pow(20), 20), (-(10_i128.pow(9)), 9), (i128::MAX, 38)] {
        let storage = Storage::default();
        let mut opened = file(&storage, &[Some(1), Some(number)]);
        let schema = table(precision);
        let fields = opened.bind(&Fields::clone, &schema);
        for column in schema.fields() {
            let one = Schema::new(0, vec![column.clone()]).unwrap();
            let error = read(&opened, &fields, &one, 2).unwrap_err();
            let Error::CorruptFile { message, .. } = error else { panic!("{error}") };
            assert!(message.starts_with(&format!("column {}", column.name)) && message.contains("digits"), "{message}");
        }
    }
}

#[test]
fn what_no_table_has_stays_a_decimal() {
    let storage = Storage::default();
    let mut opened = file(&storage, &[Some(1)]);
    let none = Arc::new(Schema::new(0, Vec::new()).unwrap());
    let fields = opened.bind(&Fields::clone, &none);
    let types: Vec<String> = fields.iter().take(2).map(|field| field.data_type().to_string()).collect();
    assert_eq!(types, ["Decimal256(20, 2)", "Decimal128(20, 2)"]);
    let text = Schema::new(0, vec![Field::optional(2, "b", PrimitiveType::Binary)]).unwrap();
    let fields = opened.bind(&Fields::clone, &Arc::new(text.clone()));
    let message = read(&opened, &fields, &text, 1).unwrap_err().to_string();
    assert!(message.contains("column b (id 2) is stored as decimal(20, 2)"), "{message}");
}
