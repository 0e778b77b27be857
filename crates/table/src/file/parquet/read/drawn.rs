//! Files for the property tests of this folder: columns of all types that are decoded here, written in all ways.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array,
    Int64Array, ListArray, RecordBatch, StringArray, StructArray, make_array,
};
use arrow_schema::{DataType, Field, TimeUnit};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use proptest::prelude::*;
use proptest::sample::select;

/// How a test file is written.
#[derive(Debug, Clone)]
pub(super) struct Writing {
    pub(super) version: WriterVersion,
    pub(super) compression: Compression,
    /// Encodings of columns without a dictionary: for strings, and for numbers.
    pub(super) encodings: [Option<Encoding>; 2],
    pub(super) dictionary: bool,
    pub(super) dictionary_bytes: usize,
    pub(super) page_rows: usize,
    pub(super) group_rows: usize,
    /// Whether the file has a page index.
    pub(super) indexed: bool,
}

/// All ways of writing files.
pub(super) fn writing() -> impl Strategy<Value = Writing> {
    let of_texts = [
        None,
        Some(Encoding::PLAIN),
        Some(Encoding::PLAIN),
        Some(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        Some(Encoding::DELTA_BYTE_ARRAY),
    ];
    let of_numbers = [None, Some(Encoding::PLAIN), Some(Encoding::PLAIN), Some(Encoding::BYTE_STREAM_SPLIT)];
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
    ];
    (
        select(vec![WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0]),
        select(codecs.to_vec()),
        (select(of_texts.to_vec()), select(of_numbers.to_vec())),
        // Without a dictionary, with one, and with one that is full in the middle of a column chunk.
        select(vec![(false, 1 << 20), (true, 1 << 20), (true, 40)]),
        select(vec![1, 7, 50, 20_000]),
        select(vec![10, 64, 100_000]),
        any::<bool>(),
    )
        .prop_map(
            |(version, compression, encodings, (dictionary, dictionary_bytes), page_rows, group_rows, indexed)| {
                Writing {
                    version,
                    compression,
                    encodings: encodings.into(),
                    dictionary,
                    dictionary_bytes,
                    page_rows,
                    group_rows,
                    indexed,
                }
            },
        )
}

/// Strings with repeated values, runs of one length, long values and non-ASCII characters.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c]{0,2}",
        4 => "[0-9a-f]{16}",
        2 => "[a-z]{30,40}",
        1 => "[äöü€]{0,9}",
    ]
}

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) text: String,
    pub(super) maybe: Option<String>,
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) yes: Option<bool>,
    pub(super) sure: bool,
    /// The value that all numeric columns are derived from.
    pub(super) number: i64,
    pub(super) maybe_number: Option<i64>,
}

fn row() -> impl Strategy<Value = (Row, [u8; 4])> {
    let bytes = prop::collection::vec(any::<u8>(), 0..20).prop_map(Some);
    let number = || prop_oneof![0..4i64, any::<i64>()];
    let numbers = (number(), number().prop_map(Some));
    let values = (text(), text().prop_map(Some), bytes, any::<bool>().prop_map(Some), any::<bool>(), numbers);
    let row = values.prop_map(|(text, maybe, bytes, yes, sure, (number, maybe_number))| Row {
        text,
        maybe,
        bytes,
        yes,
        sure,
        number,
        maybe_number,
    });
    (row, prop::array::uniform4(0..100_u8))
}

/// Rows with columns that have nulls in no row, in one of a hundred, in half of them or in all, and with runs of equal
/// rows.
pub(super) fn rows() -> impl Strategy<Value = Vec<Row>> {
    let run = prop_oneof![3 => (row(), 1..2usize), 1 => (row(), 1..40usize)];
    let share = || select(vec![0, 1, 50, 100_u8]);
    (prop::collection::vec(run, 0..60), prop::array::uniform4(share())).prop_map(|(runs, nulls)| {
        let repeated = runs.into_iter().flat_map(|(row, times)| std::iter::repeat_n(row, times));
        let with_nulls = repeated.map(|(mut row, rolls)| {
            let is_present = |column: usize| rolls[column] >= nulls[column];
            row.maybe = row.maybe.filter(|_| is_present(0));
            row.bytes = row.bytes.filter(|_| is_present(1));
            row.yes = row.yes.filter(|_| is_present(2));
            row.maybe_number = row.maybe_number.filter(|_| is_present(3));
            row
        });
        with_nulls.collect()
    })
}

/// The first leaves are decoded by the parquet crate.
pub(super) const OTHERS: usize = 5;
/// Leaves of a file: a struct has two, each other column one.
pub(super) const COLUMNS: usize = 22;

pub(super) fn batch(rows: &[Row]) -> RecordBatch {
    let of_struct: ArrayRef = Arc::new(rows.iter().map(|row| row.maybe.clone()).collect::<StringArray>());
    let items = |text: &String| text.bytes().take(3).map(|byte| Some(i32::from(byte))).collect::<Vec<_>>();
    let lists = rows.iter().map(|row| row.maybe.as_ref().map(items));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(lists);
    let numbers: ArrayRef =
        Arc::new(rows.iter().map(|row| row.maybe_number.map(|number| number as i32)).collect::<Int32Array>());
    let fields = [("inner", DataType::Utf8), ("other", DataType::Int32)].map(|(name, ty)| Field::new(name, ty, true));
    let longs = |is_required: bool| -> Int64Array {
        rows.iter().map(|row| if is_required { Some(row.number) } else { row.maybe_number }).collect()
    };
    let cast = |is_required: bool, ty: DataType| -> ArrayRef {
        let numbers: ArrayRef = Arc::new(longs(is_required));
        let make = |data: arrow_data::ArrayDataBuilder| make_array(data.data_type(ty.clone()).build().unwrap());
        match &ty {
            DataType::Int32 | DataType::Date32 => {
                let ints: Int32Array = numbers.as_primitive::<Int64Type>().unary(|number| number as i32);
                make(ints.into_data().into_builder())
            }
            DataType::Float32 => {
                let floats: Float32Array = numbers.as_primitive::<Int64Type>().unary(|number| number as f32);
                Arc::new(floats)
            }
            DataType::Float64 => {
                let doubles: Float64Array = numbers.as_primitive::<Int64Type>().unary(|number| number as f64);
                Arc::new(doubles)
            }
            DataType::Decimal128(precision, scale) => {
                let most = 10_i128.pow(u32::from(*precision));
                let decimals: Decimal128Array =
                    numbers.as_primitive::<Int64Type>().unary(|number| i128::from(number) % most);
                Arc::new(decimals.with_precision_and_scale(*precision, *scale).unwrap())
            }
            _ => make(numbers.into_data().into_builder()),
        }
    };
    let utc = || Some("UTC".into());
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("struct", Arc::new(StructArray::new(fields.to_vec().into(), vec![of_struct, numbers], None)), false),
        ("list", Arc::new(lists), true),
        ("int8", Arc::new(rows.iter().map(|row| Some(row.number as i8)).collect::<Int8Array>()), false),
        ("large decimal", cast(false, DataType::Decimal128(20, 3)), true),
        ("text", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.text))), false),
        ("maybe", Arc::new(rows.iter().map(|row| row.maybe.clone()).collect::<StringArray>()), true),
        ("bytes", Arc::new(rows.iter().map(|row| row.bytes.clone()).collect::<BinaryArray>()), true),
        ("yes", Arc::new(rows.iter().map(|row| row.yes).collect::<BooleanArray>()), true),
        ("sure", Arc::new(rows.iter().map(|row| Some(row.sure)).collect::<BooleanArray>()), false),
        ("int", cast(false, DataType::Int32), true),
        ("day", cast(true, DataType::Date32), false),
        ("long", cast(true, DataType::Int64), false),
        ("maybe long", cast(false, DataType::Int64), true),
        ("float", cast(true, DataType::Float32), false),
        ("double", cast(false, DataType::Float64), true),
        ("small decimal", cast(true, DataType::Decimal128(9, 2)), false),
        ("decimal", cast(false, DataType::Decimal128(18, 0)), true),
        ("time", cast(true, DataType::Timestamp(TimeUnit::Microsecond, utc())), false),
        ("nanos", cast(false, DataType::Timestamp(TimeUnit::Nanosecond, None)), true),
        ("millis", cast(true, DataType::Timestamp(TimeUnit::Millisecond, None)), false),
        ("hour", cast(false, DataType::Time64(TimeUnit::Microsecond)), true),
    ];
    assert_eq!(columns.len() + 1, COLUMNS);
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// The bytes of a file.
pub(super) fn written(rows: &[Row], how: &Writing) -> Bytes {
    let mut properties = WriterProperties::builder()
        .set_writer_version(how.version)
        .set_compression(how.compression)
        .set_dictionary_enabled(how.dictionary)
        .set_dictionary_page_size_limit(how.dictionary_bytes)
        .set_data_page_row_count_limit(how.page_rows)
        .set_write_batch_size(how.page_rows.min(16))
        .set_max_row_group_row_count(Some(how.group_rows));
    if !how.indexed {
        properties = properties.set_statistics_enabled(EnabledStatistics::Chunk).set_offset_index_disabled(true);
    }
    let numbers = ["int", "day", "long", "maybe long", "float", "double", "small decimal", "decimal", "time", "hour"];
    let [of_texts, of_numbers] = how.encodings;
    for (columns, encoding) in [(&["text", "maybe", "bytes"][..], of_texts), (&numbers, of_numbers)] {
        for (column, encoding) in columns.iter().zip(std::iter::repeat(encoding)) {
            if let Some(encoding) = encoding {
                properties = properties.set_column_encoding((*column).into(), encoding);
            }
        }
    }
    let batch = batch(rows);
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file.into()
}

/// The footer of a file, and its page index.
pub(super) fn opened(file: &Bytes) -> ArrowReaderMetadata {
    let options =
        ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_page_index_policy(PageIndexPolicy::Optional);
    ArrowReaderMetadata::load(file, options).unwrap()
}
