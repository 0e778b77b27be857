use arrow_array::Array;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::WriterVersion;
use proptest::prelude::*;

use super::super::drawn::{COLUMNS, OTHERS, Row, Writing, opened, rows, writing, written};
use super::*;
use crate::file::parquet::guard::guarded;
use crate::file::parquet::pages::loaded::LoadedGroups;

/// The leaf of the column `text`.
const TEXT: usize = OTHERS;

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
        indexed: true,
    }
}

#[test]
fn a_column_that_ends_early_is_named() {
    let file = written(&["one", "two", "three", "four"].map(of_text), &in_twos(false));
    let about = opened(&file);
    let chunk = about.metadata().row_group(0).column(TEXT).byte_range();
    let mut groups = LoadedGroups::new(about.metadata().clone(), vec![0]);
    groups.add(0, TEXT, chunk.0, file.slice(chunk.0 as usize..(chunk.0 + chunk.1 / 2) as usize));
    let columns = Columns::new(&groups, about.parquet_schema(), about.schema().fields(), &[TEXT], 100, None);
    let error = columns.unwrap().next().unwrap_err().to_string();
    assert!(error.contains("column text: "), "{error}");
}

#[test]
fn a_column_with_other_rows_than_its_row_groups_is_named() {
    let file = written(&["one", "two", "three", "four"].map(of_text), &in_twos(true));
    let about = opened(&file);
    for (counts, expected) in [([3, 1], "fewer rows than its row group"), ([1, 3], "more rows than its row group")] {
        let of = |(group, count): (&RowGroupMetaData, i64)| {
            group.clone().into_builder().set_num_rows(count).build().unwrap()
        };
        let groups = about.metadata().row_groups().iter().zip(counts).map(of).collect();
        let metadata = about.metadata().as_ref().clone().into_builder().set_row_groups(groups).build();
        let groups = with_bytes(&file, metadata.into());
        for wanted in [0..4, 3..4] {
            let selected = Selected::new(std::slice::from_ref(&(0..4)), &[wanted], None);
            let (schema, fields) = (about.parquet_schema(), about.schema().fields());
            let columns = Columns::new(&groups, schema, fields, &[TEXT], 100, Some(selected));
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
    for (leaf, name) in [(TEXT, "text"), (TEXT + 7, "long")] {
        let groups = with_bytes(&file, metadata.clone());
        let mut columns =
            Columns::new(&groups, about.parquet_schema(), about.schema().fields(), &[leaf], 2, None).unwrap();
        assert_eq!(columns.next().unwrap().unwrap().num_rows(), 2);
        let error = columns.next().unwrap_err().to_string();
        assert!(error.contains(&format!("column {name}: ")) && error.contains("dictionary that is missing"), "{error}");
    }
}
