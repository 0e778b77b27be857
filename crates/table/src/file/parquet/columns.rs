//! Batches of columns of which the library decodes some, and this crate the others.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{DataType, FieldRef, Fields, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups, RowSelection, RowSelector};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Encoding, Type as PhysicalType};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::SchemaDescriptor;

use super::booleans::Booleans;
use super::byte_arrays::ByteArrays;
use super::flat::{Column, FlatColumn};

/// The columns of some leaves, row for row.
pub(super) struct Columns {
    /// What the library decodes, unless that is nothing.
    others: Option<ParquetRecordBatchReader>,
    /// What is decoded here, each with its place among the columns.
    own: Vec<(usize, Box<dyn FlatColumn>)>,
    schema: SchemaRef,
    rows: RowsLeft,
    batch_rows: usize,
}

impl Columns {
    /// The columns of some leaves of some row groups, in batches of so many rows; all rows without a selection.
    pub(super) fn new(
        groups: &dyn RowGroups,
        descriptor: &SchemaDescriptor,
        fields: &Fields,
        leaves: &[usize],
        batch_rows: usize,
        selection: Option<RowSelection>,
    ) -> Result<Self> {
        // The library makes room for a whole batch of each column before it reads one.
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
            let place = roots.binary_search(&descriptor.get_column_root_idx(leaf)).unwrap_or_default();
            match flat_column(groups, descriptor, fields, leaf)? {
                Some(column) => own.push((place, column)),
                None => others.push(leaf),
            }
        }
        let rows = RowsLeft::new(selection.as_ref(), groups.num_rows());
        let mut of_others = Fields::empty();
        let others = if others.is_empty() && !own.is_empty() {
            None
        } else {
            let mask = ProjectionMask::leaves(descriptor, others);
            let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(fields))?;
            let made = ParquetRecordBatchReader::try_new_with_row_groups(&levels, groups, batch_rows, selection)?;
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

    /// The next batch; with `keys`, texts that are keys of a dictionary stay so until [`Columns::settled`].
    pub(super) fn next(&mut self, keys: bool) -> Result<Option<RecordBatch>> {
        let (count, columns) = match &mut self.others {
            Some(others) => match others.next().transpose()? {
                Some(batch) => (batch.num_rows(), batch.columns().to_vec()),
                None => return Ok(None),
            },
            None => (self.rows.left().min(self.batch_rows), Vec::new()),
        };
        if count == 0 {
            return Ok(None);
        }
        if self.own.is_empty() {
            return self.batch(columns, count).map(Some);
        }
        let rows = self.rows.take(count)?;
        let mut columns = columns;
        for (place, column) in &mut self.own {
            let found = column.read(&rows, keys)?;
            columns.insert((*place).min(columns.len()), found);
        }
        self.batch(columns, count).map(Some)
    }

    /// Some rows of the last batch, without keys of dictionaries.
    pub(super) fn settled(&mut self, batch: RecordBatch) -> Result<RecordBatch> {
        let (_, mut columns, rows) = batch.into_parts();
        for (place, column) in &mut self.own {
            if let Some(found) = columns.get_mut(*place) {
                *found = column.settled(found)?;
            }
        }
        self.batch(columns, rows)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
        let typed = |(field, column): (&FieldRef, &ArrayRef)| match field.data_type() == column.data_type() {
            true => Arc::clone(field),
            false => Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone())),
        };
        let fields = self.schema.fields();
        let schema = match fields.iter().zip(&columns).all(|(field, column)| field.data_type() == column.data_type()) {
            true => Arc::clone(&self.schema),
            false => Arc::new(Schema::new(fields.iter().zip(&columns).map(typed).collect::<Fields>())),
        };
        Ok(RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))?)
    }
}

/// The column of a leaf of some row groups; None where the library decodes it.
fn flat_column(
    groups: &dyn RowGroups,
    schema: &SchemaDescriptor,
    fields: &Fields,
    leaf: usize,
) -> Result<Option<Box<dyn FlatColumn>>> {
    let column = schema.column(leaf);
    let ty = fields.get(schema.get_column_root_idx(leaf)).map(|field| field.data_type());
    if column.max_rep_level() > 0 || column.max_def_level() > 1 || !schema.get_column_root(leaf).is_primitive() {
        return Ok(None);
    }
    let pages = || groups.column_chunks(leaf);
    Ok(match (column.physical_type(), ty) {
        // Where lengths come first, the library copies all values of a page together.
        (PhysicalType::BYTE_ARRAY, _) if has_lengths_first(groups, leaf) => None,
        (PhysicalType::BYTE_ARRAY, Some(ty @ (DataType::Utf8 | DataType::Binary))) => {
            Some(Box::new(Column::new(pages()?, column, ByteArrays::new(*ty == DataType::Utf8))))
        }
        (PhysicalType::BOOLEAN, Some(DataType::Boolean)) => {
            Some(Box::new(Column::new(pages()?, column, Booleans::default())))
        }
        _ => None,
    })
}

/// Whether a footer says that pages of a column have the lengths of all values before them.
fn has_lengths_first(groups: &dyn RowGroups, leaf: usize) -> bool {
    let mut chunks = groups.row_groups().filter_map(|group| group.columns().get(leaf));
    let are_first = |encoding| matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY);
    chunks.any(|chunk| chunk.encodings().any(are_first))
}

/// The rows that are to be read.
struct RowsLeft {
    runs: VecDeque<RowSelector>,
}

impl RowsLeft {
    fn new(selection: Option<&RowSelection>, all: usize) -> Self {
        let runs = match selection {
            Some(selection) => selection.iter().copied().filter(|run| run.row_count > 0).collect(),
            None => VecDeque::from([RowSelector::select(all)]),
        };
        Self { runs }
    }

    fn left(&self) -> usize {
        self.runs.iter().filter(|run| !run.skip).fold(0, |sum: usize, run| sum.saturating_add(run.row_count))
    }

    /// The next rows: how many are skipped before how many that are read.
    fn take(&mut self, mut count: usize) -> Result<Vec<(usize, usize)>> {
        let (mut taken, mut skipped) = (Vec::new(), 0);
        while count > 0 {
            let Some(run) = self.runs.front_mut() else {
                return Err(ParquetError::General("it has more rows than its footer says".to_owned()));
            };
            if run.skip {
                skipped += run.row_count;
                self.runs.pop_front();
                continue;
            }
            let read = count.min(run.row_count);
            taken.push((std::mem::take(&mut skipped), read));
            count -= read;
            run.row_count -= read;
            if run.row_count == 0 {
                self.runs.pop_front();
            }
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Int32Array, StringArray, StructArray};
    use arrow_schema::{DataType, Field};
    use arrow_select::concat::concat_batches;
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
    use parquet::basic::{Compression, Encoding};
    use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy};
    use parquet::file::properties::{WriterProperties, WriterVersion};
    use proptest::prelude::*;

    use super::super::guard::guarded;
    use super::super::loaded::LoadedGroups;
    use super::*;

    /// How a file is written.
    #[derive(Debug, Clone)]
    struct Writing {
        version: WriterVersion,
        compression: Compression,
        /// Of columns without a dictionary.
        encoding: Option<Encoding>,
        dictionary: bool,
        dictionary_bytes: usize,
        page_rows: usize,
        group_rows: usize,
    }

    fn writing() -> impl Strategy<Value = Writing> {
        let encodings = [None, Some(Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(Encoding::DELTA_BYTE_ARRAY)];
        (
            prop::sample::select(vec![WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0]),
            prop::sample::select(vec![Compression::UNCOMPRESSED, Compression::ZSTD(Default::default())]),
            prop::sample::select(encodings.to_vec()),
            any::<bool>(),
            prop::sample::select(vec![1 << 20, 40]),
            prop::sample::select(vec![1, 7, 50, 20_000]),
            prop::sample::select(vec![10, 64, 100_000]),
        )
            .prop_map(
                |(version, compression, encoding, dictionary, dictionary_bytes, page_rows, group_rows)| Writing {
                    version,
                    compression,
                    encoding,
                    dictionary,
                    dictionary_bytes,
                    page_rows,
                    group_rows,
                },
            )
    }

    /// Few values that come again, values of one length in a row, long ones, and ones that are no ASCII.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-c]{0,2}",
            4 => "[0-9a-f]{16}",
            2 => "[a-z]{30,40}",
            1 => "[äöü€]{0,9}",
        ]
    }

    type Row = (String, Option<String>, Option<Vec<u8>>, Option<bool>, bool, Option<i32>);

    fn row() -> impl Strategy<Value = Row> {
        let bytes = prop::collection::vec(any::<u8>(), 0..20);
        (
            text(),
            prop::option::of(text()),
            prop::option::of(bytes),
            any::<Option<bool>>(),
            any::<bool>(),
            any::<Option<i32>>(),
        )
    }

    /// Nulls in all rows of a column now and then, and runs of the same row.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let run = prop_oneof![3 => (row(), 1..2usize), 1 => (row(), 1..40usize)];
        (prop::collection::vec(run, 0..60), any::<[bool; 3]>()).prop_map(|(runs, nulls)| {
            let repeated = runs.into_iter().flat_map(|(row, times)| std::iter::repeat_n(row, times));
            let with_nulls = repeated.map(|mut row| {
                row.1 = row.1.filter(|_| !nulls[0]);
                row.2 = row.2.filter(|_| !nulls[1]);
                row.3 = row.3.filter(|_| !nulls[2]);
                row
            });
            with_nulls.collect()
        })
    }

    fn batch(rows: &[Row]) -> RecordBatch {
        let of_struct: ArrayRef = Arc::new(rows.iter().map(|row| row.1.clone()).collect::<StringArray>());
        let inner = Arc::new(Field::new("inner", DataType::Utf8, true));
        let columns: Vec<(&str, ArrayRef, bool)> = vec![
            ("number", Arc::new(rows.iter().map(|row| row.5).collect::<Int32Array>()), true),
            ("text", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.0))), false),
            ("maybe", Arc::new(rows.iter().map(|row| row.1.clone()).collect::<StringArray>()), true),
            ("struct", Arc::new(StructArray::new(vec![inner].into(), vec![of_struct], None)), false),
            ("bytes", Arc::new(rows.iter().map(|row| row.2.clone()).collect::<BinaryArray>()), true),
            ("yes", Arc::new(rows.iter().map(|row| row.3).collect::<BooleanArray>()), true),
            ("sure", Arc::new(rows.iter().map(|row| Some(row.4)).collect::<BooleanArray>()), false),
        ];
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
        for column in ["text", "maybe", "bytes"] {
            if let Some(encoding) = how.encoding {
                properties = properties.set_column_encoding(column.into(), encoding);
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

    /// The column chunks of a file; its footer says nothing of encodings if it `lies`.
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
            leaves in prop::collection::btree_set(0..7usize, 1..7),
            runs in prop::collection::vec((0..30usize, 1..50usize), 0..20),
            selects in any::<bool>(),
            batch_rows in prop::sample::select(vec![1, 9, 1000]),
            keys in any::<bool>(),
            lies in any::<bool>(),
        ) {
            let file = written(&rows, &how);
            let about = opened(&file);
            let (groups, descriptor) = (loaded(&file, &about, lies), about.parquet_schema());
            let leaves: Vec<usize> = leaves.into_iter().collect();
            let selection = selects.then(|| {
                let mut left = rows.len();
                let mut selectors = Vec::new();
                for (skipped, wanted) in runs {
                    let (skipped, wanted) = (skipped.min(left), wanted.min(left - skipped.min(left)));
                    left -= skipped + wanted;
                    selectors.extend([RowSelector::skip(skipped), RowSelector::select(wanted)]);
                }
                RowSelection::from([selectors, vec![RowSelector::skip(left)]].concat())
            });
            let mask = ProjectionMask::leaves(descriptor, leaves.iter().copied());
            let fields = about.schema().fields();
            let levels = parquet_to_arrow_field_levels(descriptor, mask, Some(fields)).unwrap();
            let library =
                ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, batch_rows, selection.clone()).unwrap();
            let schema = library.schema();
            let expected: Vec<RecordBatch> = library.collect::<std::result::Result<_, _>>().unwrap();

            let mut columns = Columns::new(&groups, descriptor, fields, &leaves, batch_rows, selection).unwrap();
            let mut found = Vec::new();
            while let Some(batch) = columns.next(keys).unwrap() {
                let batch = columns.settled(batch).unwrap();
                batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                found.push(batch);
            }
            let (expected, found) = (concat_batches(&schema, &expected), concat_batches(&schema, &found));
            prop_assert_eq!(found.unwrap(), expected.unwrap());
        }

        /// Whatever bytes are changed to, there is an error or there are rows of which each is what Arrow says.
        #[test]
        fn damaged_pages_are_errors_or_rows(
            rows in rows(),
            how in writing(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            keys in any::<bool>(),
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
            let groups = loaded(&bytes.into(), &about, keys);
            // The library has tests of its own.
            let leaves = [1, 2, 4, 5, 6];
            let open = || Columns::new(&groups, about.parquet_schema(), about.schema().fields(), &leaves, 100, None);
            let Ok(mut columns) = guarded("a", open) else { return Ok(()) };
            let mut read = 0;
            // Pages in other encodings are the library's, which may panic.
            let mut next = || guarded("a", || columns.next(keys)?.map(|batch| columns.settled(batch)).transpose());
            while let Ok(Some(batch)) = next() {
                batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
                read += batch.num_rows();
            }
            prop_assert!(read <= rows.len());
        }
    }

    #[test]
    fn a_column_that_ends_early_is_named() {
        let row = |text: &str| (text.to_owned(), None, None, None, true, None);
        let how = Writing {
            version: WriterVersion::PARQUET_1_0,
            compression: Compression::UNCOMPRESSED,
            encoding: None,
            dictionary: false,
            dictionary_bytes: 1 << 20,
            page_rows: 2,
            group_rows: 100,
        };
        let file = written(&["one", "two", "three", "four"].map(row), &how);
        let about = opened(&file);
        let chunk = about.metadata().row_group(0).column(1).byte_range();
        let mut groups = LoadedGroups::new(about.metadata().clone(), vec![0]);
        groups.add(0, 1, chunk.0, file.slice(chunk.0 as usize..(chunk.0 + chunk.1 / 2) as usize));
        let columns = Columns::new(&groups, about.parquet_schema(), about.schema().fields(), &[1], 100, None);
        let error = columns.unwrap().next(false).unwrap_err().to_string();
        assert!(error.contains("column text: "), "{error}");
    }
}
