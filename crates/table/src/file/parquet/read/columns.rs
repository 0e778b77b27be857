//! Assembles batches from columns decoded here and columns decoded by the parquet crate.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

use super::selection::{Rows, Selected};
use crate::arrow::filter::rows_in;
use crate::file::parquet::flat::booleans::Booleans;
use crate::file::parquet::flat::byte_arrays::ByteArrays;
use crate::file::parquet::flat::column::{Chunks, Column, FlatColumn};
use crate::file::parquet::flat::numbers::{Doubles, Floats, IntDecimals, Ints, LongDecimals, Longs, Number, Numbers};
use crate::file::parquet::guard::internal;

/// The columns of some leaves, read in step.
pub(super) struct Columns {
    /// Reader of the columns that the parquet crate decodes; `None` if there are none.
    others: Option<ParquetRecordBatchReader>,
    /// Columns decoded here, each with its position in the batch.
    own: Vec<(usize, Box<dyn FlatColumn>)>,
    schema: SchemaRef,
    rows: Rows,
    batch_rows: usize,
}

impl Columns {
    /// The columns of some leaves in some row groups: all rows, or the selected ones, in batches of `batch_rows`
    /// decoded rows.
    pub(super) fn new(
        groups: &dyn RowGroups,
        descriptor: &SchemaDescriptor,
        fields: &Fields,
        leaves: &[usize],
        batch_rows: usize,
        selected: Option<Selected>,
    ) -> Result<Self> {
        // The parquet crate reserves memory for a whole batch of each column before it reads.
        let batch_rows = batch_rows.min(groups.num_rows().max(1));
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let leaves: BTreeSet<usize> = leaves.iter().copied().collect();
        let roots: Vec<usize> = leaves
            .iter()
            .map(|leaf| descriptor.get_column_root_idx(*leaf))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        for leaf in leaves {
            let place = roots.binary_search(&descriptor.get_column_root_idx(leaf));
            let place = place.map_err(|_| internal("a leaf without its column"))?;
            match flat_column(groups, descriptor, fields, leaf)? {
                Some(column) => own.push((place, column)),
                None => others.push(leaf),
            }
        }
        let rows = selected.map_or_else(|| Rows::all(groups.num_rows()), Selected::joined);
        let mut of_others = Fields::empty();
        let others = if others.is_empty() && !own.is_empty() {
            None
        } else {
            let mask = ProjectionMask::leaves(descriptor, others);
            let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(fields))?;
            let made =
                ParquetRecordBatchReader::try_new_with_row_groups(&levels, groups, batch_rows, rows.selection())?;
            of_others = made.schema().fields().clone();
            Some(made)
        };
        let of_own = roots.iter().map(|root| fields.get(*root).cloned());
        let mut all = of_others.iter().cloned();
        let field = |(place, own_field): (usize, Option<FieldRef>)| match own.iter().any(|(own, _)| *own == place) {
            true => own_field,
            false => all.next(),
        };
        let schema: Option<Fields> = of_own.enumerate().map(field).collect();
        let schema =
            schema.ok_or_else(|| ParquetError::General("its columns are not those of its schema".to_owned()))?;
        Ok(Self { others, own, schema: Arc::new(Schema::new(schema)), rows, batch_rows })
    }

    /// The columns of each batch.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next batch.
    pub(super) fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.next_of(None)
    }

    /// The next batch; `numbers` receives the numbers of its rows through the row groups.
    pub(super) fn next_of(&mut self, numbers: Option<&mut Vec<Range<usize>>>) -> Result<Option<RecordBatch>> {
        let others = match &mut self.others {
            Some(others) => match others.next().transpose()? {
                Some(batch) => Some(batch),
                None => return Ok(None),
            },
            None => None,
        };
        let count = others.as_ref().map_or_else(|| self.rows.left().min(self.batch_rows), RecordBatch::num_rows);
        if count == 0 {
            return Ok(None);
        }
        let taken = self.rows.take(count)?;
        if let Some(numbers) = numbers {
            numbers.extend(taken.wanted.numbers());
        }
        let places = if others.is_some() { taken.places() } else { None };
        let others = match (others, places) {
            (Some(batch), Some(places)) => Some(rows_in(batch, &places)?),
            (others, _) => others,
        };
        let count = taken.wanted.count();
        let mut columns = others.map(|batch| batch.into_parts().1).unwrap_or_default();
        for (place, column) in &mut self.own {
            columns.insert((*place).min(columns.len()), column.read(&taken.wanted, count)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?))
    }
}

/// The column of a leaf in some row groups; `None` if the parquet crate has to decode it.
pub(super) fn flat_column(
    groups: &dyn RowGroups,
    schema: &SchemaDescriptor,
    fields: &Fields,
    leaf: usize,
) -> Result<Option<Box<dyn FlatColumn>>> {
    let column = schema.column(leaf);
    let ty = fields.get(schema.get_column_root_idx(leaf)).map(|field| field.data_type());
    // Lists, maps and structs need record assembly from levels, which is the parquet crate's.
    if column.max_rep_level() > 0 || column.max_def_level() > 1 || !schema.get_column_root(leaf).is_primitive() {
        return Ok(None);
    }
    let chunks = || -> Result<_> {
        let rows = groups.row_groups().map(|group| usize::try_from(group.num_rows()));
        Ok((groups.column_chunks(leaf)?, rows.collect::<Result<_, _>>()?))
    };
    Ok(match (column.physical_type(), ty) {
        // DELTA_LENGTH_BYTE_ARRAY stores lengths first, and the parquet crate copies all values of a page together.
        (PhysicalType::BYTE_ARRAY, _) if has_lengths_first(groups, leaf) => None,
        (PhysicalType::BYTE_ARRAY, Some(ty @ (DataType::Utf8 | DataType::Binary))) => {
            Some(Box::new(Column::new(chunks()?, column, ByteArrays::new(*ty == DataType::Utf8))))
        }
        (PhysicalType::BOOLEAN, Some(DataType::Boolean)) => {
            Some(Box::new(Column::new(chunks()?, column, Booleans::default())))
        }
        // The parquet crate decodes other encodings a batch at a time, and not a page at a time.
        _ if !is_plain_or_keys(groups, leaf) => None,
        (PhysicalType::INT32, Some(DataType::Int32 | DataType::Date32)) => numbers::<Ints>(chunks()?, column, ty),
        (PhysicalType::INT32, Some(DataType::Decimal128(..))) => numbers::<IntDecimals>(chunks()?, column, ty),
        (PhysicalType::INT64, Some(DataType::Int64 | DataType::Time64(_) | DataType::Timestamp(..))) => {
            numbers::<Longs>(chunks()?, column, ty)
        }
        (PhysicalType::INT64, Some(DataType::Decimal128(..))) => numbers::<LongDecimals>(chunks()?, column, ty),
        (PhysicalType::FLOAT, Some(DataType::Float32)) => numbers::<Floats>(chunks()?, column, ty),
        (PhysicalType::DOUBLE, Some(DataType::Float64)) => numbers::<Doubles>(chunks()?, column, ty),
        _ => None,
    })
}

/// A numeric column.
fn numbers<N: Number + 'static>(
    chunks: Chunks,
    column: ColumnDescPtr,
    ty: Option<&DataType>,
) -> Option<Box<dyn FlatColumn>> {
    Some(Box::new(Column::new(chunks, column, Numbers::<N>::new(ty?.clone()))))
}

/// Whether the footer says that all pages of a column are PLAIN or dictionary-encoded; RLE is that of levels and keys.
fn is_plain_or_keys(groups: &dyn RowGroups, leaf: usize) -> bool {
    let mut chunks = groups.row_groups().filter_map(|group| group.columns().get(leaf));
    chunks.all(|chunk| {
        let mut others = chunk.encodings();
        others.all(|encoding| {
            matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY | Encoding::RLE)
        })
    })
}

/// Whether the footer says that pages of a column store the lengths of all values first (DELTA_LENGTH_BYTE_ARRAY).
fn has_lengths_first(groups: &dyn RowGroups, leaf: usize) -> bool {
    let mut chunks = groups.row_groups().filter_map(|group| group.columns().get(leaf));
    let are_first = |encoding| matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY);
    chunks.any(|chunk| chunk.encodings().any(are_first))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{
        Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array,
        Int64Array, StringArray, StructArray, make_array,
    };
    use arrow_schema::{DataType, Field, TimeUnit};
    use arrow_select::concat::concat_batches;
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
    use parquet::basic::{Compression, Encoding};
    use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use proptest::prelude::*;

    use super::*;
    use crate::file::parquet::guard::guarded;
    use crate::file::parquet::pages::loaded::LoadedGroups;

    /// How a test file is written.
    #[derive(Debug, Clone)]
    struct Writing {
        version: WriterVersion,
        compression: Compression,
        /// Encodings of columns without a dictionary: for strings, and for numbers.
        encodings: [Option<Encoding>; 2],
        dictionary: bool,
        dictionary_bytes: usize,
        page_rows: usize,
        group_rows: usize,
    }

    fn writing() -> impl Strategy<Value = Writing> {
        let encodings = [None, Some(Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(Encoding::DELTA_BYTE_ARRAY)];
        let of_numbers = [None, None, Some(Encoding::BYTE_STREAM_SPLIT)];
        (
            prop::sample::select(vec![WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0]),
            prop::sample::select(vec![Compression::UNCOMPRESSED, Compression::ZSTD(Default::default())]),
            (prop::sample::select(encodings.to_vec()), prop::sample::select(of_numbers.to_vec())),
            any::<bool>(),
            prop::sample::select(vec![1 << 20, 40]),
            prop::sample::select(vec![1, 7, 50, 20_000]),
            prop::sample::select(vec![10, 64, 100_000]),
        )
            .prop_map(
                |(version, compression, encodings, dictionary, dictionary_bytes, page_rows, group_rows)| Writing {
                    version,
                    compression,
                    encodings: encodings.into(),
                    dictionary,
                    dictionary_bytes,
                    page_rows,
                    group_rows,
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
    struct Row {
        text: String,
        maybe: Option<String>,
        bytes: Option<Vec<u8>>,
        yes: Option<bool>,
        sure: bool,
        /// The value that all numeric columns are derived from.
        number: i64,
        maybe_number: Option<i64>,
    }

    fn row() -> impl Strategy<Value = Row> {
        let bytes = prop::collection::vec(any::<u8>(), 0..20);
        let number = || prop_oneof![0..4i64, any::<i64>()];
        let numbers = (number(), prop::option::of(number()));
        (text(), prop::option::of(text()), prop::option::of(bytes), any::<Option<bool>>(), any::<bool>(), numbers)
            .prop_map(|(text, maybe, bytes, yes, sure, (number, maybe_number))| Row {
                text,
                maybe,
                bytes,
                yes,
                sure,
                number,
                maybe_number,
            })
    }

    /// Rows with columns that are sometimes all null, and with runs of equal rows.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let run = prop_oneof![3 => (row(), 1..2usize), 1 => (row(), 1..40usize)];
        (prop::collection::vec(run, 0..60), any::<[bool; 4]>()).prop_map(|(runs, nulls)| {
            let repeated = runs.into_iter().flat_map(|(row, times)| std::iter::repeat_n(row, times));
            let with_nulls = repeated.map(|mut row| {
                row.maybe = row.maybe.filter(|_| !nulls[0]);
                row.bytes = row.bytes.filter(|_| !nulls[1]);
                row.yes = row.yes.filter(|_| !nulls[2]);
                row.maybe_number = row.maybe_number.filter(|_| !nulls[3]);
                row
            });
            with_nulls.collect()
        })
    }

    /// The first columns are decoded by the parquet crate.
    const OTHERS: usize = 3;
    const COLUMNS: usize = 20;

    fn batch(rows: &[Row]) -> RecordBatch {
        let of_struct: ArrayRef = Arc::new(rows.iter().map(|row| row.maybe.clone()).collect::<StringArray>());
        let inner = Arc::new(Field::new("inner", DataType::Utf8, true));
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
            ("struct", Arc::new(StructArray::new(vec![inner].into(), vec![of_struct], None)), false),
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
        assert_eq!(columns.len(), COLUMNS);
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn written(rows: &[Row], how: &Writing) -> Bytes {
        let mut properties = WriterProperties::builder()
            .set_writer_version(how.version)
            .set_compression(how.compression)
            .set_dictionary_enabled(how.dictionary)
            .set_dictionary_page_size_limit(how.dictionary_bytes)
            .set_data_page_row_count_limit(how.page_rows)
            .set_write_batch_size(how.page_rows.min(16))
            .set_max_row_group_row_count(Some(how.group_rows));
        let numbers =
            ["int", "day", "long", "maybe long", "float", "double", "small decimal", "decimal", "time", "hour"];
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

    fn opened(file: &Bytes) -> ArrowReaderMetadata {
        let options =
            ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_page_index_policy(PageIndexPolicy::Optional);
        ArrowReaderMetadata::load(file, options).unwrap()
    }

    /// The column chunks of a file; if it `lies`, its footer names no encodings.
    fn loaded(file: &Bytes, about: &ArrowReaderMetadata, lies: bool) -> LoadedGroups {
        let without_encodings = |chunk: &ColumnChunkMetaData| {
            let chunk = chunk.clone().into_builder();
            chunk.set_encodings(vec![Encoding::PLAIN]).build().unwrap()
        };
        let groups = about.metadata().row_groups().iter().map(|group| {
            let chunks = group.columns().iter().map(without_encodings).collect();
            group.clone().into_builder().set_column_metadata(chunks).build().unwrap()
        });
        let metadata = match lies {
            true => Arc::new(about.metadata().as_ref().clone().into_builder().set_row_groups(groups.collect()).build()),
            false => about.metadata().clone(),
        };
        with_bytes(file, metadata)
    }

    /// All column chunks of a file.
    fn with_bytes(file: &Bytes, metadata: Arc<ParquetMetaData>) -> LoadedGroups {
        let mut groups = LoadedGroups::new(metadata.clone(), (0..metadata.num_row_groups()).collect());
        for (group, of_group) in metadata.row_groups().iter().enumerate() {
            for (column, chunk) in of_group.columns().iter().enumerate() {
                let (start, length) = chunk.byte_range();
                groups.add(group, column, start, file.slice(start as usize..(start + length) as usize));
            }
        }
        groups
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn columns_are_those_of_the_library(
            rows in rows(),
            how in writing(),
            leaves in prop::collection::btree_set(0..COLUMNS, 1..COLUMNS),
            runs in prop::collection::vec((prop_oneof![4 => 0..4usize, 1 => 0..30usize], 1..50usize), 0..20),
            selects in any::<bool>(),
            batch_rows in prop::sample::select(vec![1, 9, 1000]),
            lies in any::<bool>(),
        ) {
            let file = written(&rows, &how);
            let about = opened(&file);
            let (groups, descriptor) = (loaded(&file, &about, lies), about.parquet_schema());
            let leaves: Vec<usize> = leaves.into_iter().collect();
            let selected = selects.then(|| {
                let (mut ranges, mut at) = (Vec::new(), 0);
                for (skipped, wanted) in runs {
                    ranges.push(at + skipped as u64..at + (skipped + wanted) as u64);
                    at += (skipped + wanted) as u64;
                }
                Selected::new(std::slice::from_ref(&(0..rows.len() as u64)), &ranges, None)
            });
            let mask = ProjectionMask::leaves(descriptor, leaves.iter().copied());
            let fields = about.schema().fields();
            let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(fields)).unwrap();
            let selection = selected.as_ref().map(Selected::selection);
            let library =
                ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, selection).unwrap();
            let schema = library.schema();
            let expected: Vec<RecordBatch> = library.collect::<std::result::Result<_, _>>().unwrap();

            let mut columns = Columns::new(&groups, descriptor, fields, &leaves, batch_rows, selected).unwrap();
            let mut found = Vec::new();
            while let Some(batch) = columns.next().unwrap() {
                batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                found.push(batch);
            }
            let (expected, found) = (concat_batches(&schema, &expected), concat_batches(&schema, &found));
            prop_assert_eq!(found.unwrap(), expected.unwrap());
        }

        /// Corrupted bytes give an error, or rows that Arrow accepts as valid.
        #[test]
        fn damaged_pages_are_errors_or_rows(
            rows in rows(),
            how in writing(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            wanted in prop::option::of(1..9u64),
            lies in any::<bool>(),
        ) {
            let how = Writing { compression: Compression::UNCOMPRESSED, ..how };
            let file = written(&rows, &how);
            let about = opened(&file);
            let mut bytes = file.to_vec();
            let end = about.metadata().row_groups().iter().flat_map(|group| group.columns());
            let end = end.map(|chunk| chunk.byte_range()).map(|(start, length)| start + length).max().unwrap_or(4) as usize;
            for (place, byte) in damage {
                let place = 4 + place.index((end - 4).max(1));
                bytes[place] = byte;
            }
            let groups = loaded(&bytes.into(), &about, lies);
            // The parquet crate has its own tests.
            let leaves: Vec<usize> = (OTHERS..COLUMNS).collect();
            let all = 0..rows.len() as u64;
            let selected = wanted.map(|wanted| {
                let ranges: Vec<_> = all.clone().step_by(10).map(|start| start..start + wanted).collect();
                Selected::new(std::slice::from_ref(&all), &ranges, None)
            });
            let (schema, fields) = (about.parquet_schema(), about.schema().fields());
            let open = || Columns::new(&groups, schema, fields, &leaves, 100, selected);
            let Ok(mut columns) = guarded("a", open) else { return Ok(()) };
            let mut read = 0;
            // Pages in other encodings go to the parquet crate, which may panic.
            let mut next = || guarded("a", || columns.next());
            while let Ok(Some(batch)) = next() {
                batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                read += batch.num_rows();
            }
            prop_assert!(read <= rows.len());
        }
    }

    /// A row in which only the string matters.
    fn of_text(text: &str) -> Row {
        Row { text: text.to_owned(), maybe: None, bytes: None, yes: None, sure: true, number: 0, maybe_number: None }
    }

    /// Pages and row groups of two rows, uncompressed.
    fn in_twos(dictionary: bool) -> Writing {
        Writing {
            version: WriterVersion::PARQUET_1_0,
            compression: Compression::UNCOMPRESSED,
            encodings: [None, None],
            dictionary,
            dictionary_bytes: 1 << 20,
            page_rows: 2,
            group_rows: if dictionary { 2 } else { 100 },
        }
    }

    #[test]
    fn a_column_that_ends_early_is_named() {
        let file = written(&["one", "two", "three", "four"].map(of_text), &in_twos(false));
        let about = opened(&file);
        let chunk = about.metadata().row_group(0).column(3).byte_range();
        let mut groups = LoadedGroups::new(about.metadata().clone(), vec![0]);
        groups.add(0, 3, chunk.0, file.slice(chunk.0 as usize..(chunk.0 + chunk.1 / 2) as usize));
        let columns = Columns::new(&groups, about.parquet_schema(), about.schema().fields(), &[3], 100, None);
        let error = columns.unwrap().next().unwrap_err().to_string();
        assert!(error.contains("column text: "), "{error}");
    }

    #[test]
    fn a_column_with_other_rows_than_its_row_groups_is_named() {
        let file = written(&["one", "two", "three", "four"].map(of_text), &in_twos(true));
        let about = opened(&file);
        for (counts, expected) in [([3, 1], "fewer rows than its row group"), ([1, 3], "more rows than its row group")]
        {
            let of = |(group, count): (&RowGroupMetaData, i64)| {
                group.clone().into_builder().set_num_rows(count).build().unwrap()
            };
            let groups = about.metadata().row_groups().iter().zip(counts).map(of).collect();
            let metadata = about.metadata().as_ref().clone().into_builder().set_row_groups(groups).build();
            let groups = with_bytes(&file, metadata.into());
            for wanted in [0..4, 3..4] {
                let selected = Selected::new(std::slice::from_ref(&(0..4)), &[wanted], None);
                let (schema, fields) = (about.parquet_schema(), about.schema().fields());
                let columns = Columns::new(&groups, schema, fields, &[3], 100, Some(selected));
                let error = columns.unwrap().next().unwrap_err().to_string();
                assert!(error.contains("column text: ") && error.contains(expected), "{error}");
            }
        }
    }

    /// The second row group has no dictionary; its keys must not be looked up in the first one's.
    #[test]
    fn a_dictionary_is_that_of_its_column_chunk() {
        let file = written(&["one", "one", "two", "two"].map(of_text), &in_twos(true));
        let about = opened(&file);
        let without = |chunk: &ColumnChunkMetaData| {
            let (start, length) = chunk.byte_range();
            let lost = chunk.data_page_offset() - start as i64;
            let chunk = chunk.clone().into_builder().set_dictionary_page_offset(None);
            chunk.set_total_compressed_size(length as i64 - lost).build().unwrap()
        };
        let [first, second] = about.metadata().row_groups() else { panic!("two row groups") };
        let chunks = second.columns().iter().map(without).collect();
        let second = second.clone().into_builder().set_column_metadata(chunks).build().unwrap();
        let metadata = about.metadata().as_ref().clone().into_builder().set_row_groups(vec![first.clone(), second]);
        let metadata = Arc::new(metadata.build());
        for (leaf, name) in [(3, "text"), (10, "long")] {
            let groups = with_bytes(&file, metadata.clone());
            let mut columns =
                Columns::new(&groups, about.parquet_schema(), about.schema().fields(), &[leaf], 2, None).unwrap();
            assert_eq!(columns.next().unwrap().unwrap().num_rows(), 2);
            let error = columns.next().unwrap_err().to_string();
            assert!(
                error.contains(&format!("column {name}: ")) && error.contains("dictionary that is missing"),
                "{error}"
            );
        }
    }
}
