use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow_array::{ArrayRef, BooleanArray};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};
use parquet::basic::Compression;
use parquet::file::properties::WriterVersion;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::drawn::{COLUMNS, OTHERS, Row, Writing, opened, rows, writing, written};
use super::*;
use crate::file::parquet::pages::paged::PagedGroups;
use crate::storage::OpenObject;

/// The leaf of the position.
const POSITION: usize = COLUMNS;

/// An open file, and the number of its bytes that were read.
#[derive(Debug)]
struct Counted(Bytes, AtomicU64);

impl Counted {
    fn new(bytes: &Bytes) -> Arc<Self> {
        Arc::new(Self(bytes.clone(), AtomicU64::new(0)))
    }
}

impl OpenObject for Counted {
    fn range(&self, range: Range<u64>) -> crate::error::Result<Bytes> {
        self.1.fetch_add(range.end - range.start, Ordering::AcqRel);
        Ok(self.0.slice(range.start as usize..range.end as usize))
    }
}

/// What a filter keeps of its column.
#[derive(Debug, Clone)]
enum Keeps {
    /// Rows with the value of this row.
    Equal(Index),
    /// Values whose hash with a seed is below a share of a thousand.
    Share(u64, u64),
}

fn keeps() -> impl Strategy<Value = Keeps> {
    let shares = select(vec![0, 10, 10, 500, 1000_u64]);
    prop_oneof![1 => any::<Index>().prop_map(Keeps::Equal), 4 => (any::<u64>(), shares).prop_map(|(seed, share)| Keeps::Share(seed, share))]
}

/// The values of a column as text.
fn texts(column: &dyn Array) -> Vec<Option<String>> {
    // Dates and times of any number have no text.
    let numbers = column.data_type().is_temporal().then(|| cast(column, &DataType::Int64).unwrap());
    let column = numbers.as_deref().unwrap_or(column);
    let options = FormatOptions::default();
    let format = ArrayFormatter::try_new(column, &options).unwrap();
    (0..column.len()).map(|row| column.is_valid(row).then(|| format.value(row).to_string())).collect()
}

/// Which rows of a column are kept; null for nulls, which is not true. `value` is that of [`Keeps::Equal`].
fn kept(column: &dyn Array, keeps: &Keeps, value: Option<&str>) -> BooleanArray {
    let is_kept = |text: &String| match keeps {
        Keeps::Equal(_) => Some(&**text) == value,
        Keeps::Share(seed, share) => {
            let mut hasher = DefaultHasher::new();
            (seed, text).hash(&mut hasher);
            hasher.finish() % 1000 < *share
        }
    };
    // Under a null is the value `true`, as a comparison may leave it.
    let kept = texts(column).iter().map(|text| text.as_ref().is_none_or(is_kept)).collect();
    BooleanArray::new(kept, column.nulls().cloned())
}

/// All rows of a file and their positions, by the parquet crate.
fn all_rows(file: &Bytes, about: &ArrowReaderMetadata) -> RecordBatch {
    let all = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), about.clone());
    let batches: Vec<RecordBatch> = all.with_batch_size(1000).build().unwrap().map(|batch| batch.unwrap()).collect();
    let batch = concat_batches(about.schema(), &batches).unwrap();
    let positions: ArrayRef = Arc::new((0..batch.num_rows() as i64).collect::<Int64Array>());
    let fields: Fields = batch.schema_ref().fields().iter().cloned().chain([position_field()]).collect();
    let columns = batch.columns().iter().cloned().chain([positions]).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// The first row of each row group.
fn firsts(about: &ArrowReaderMetadata) -> Vec<u64> {
    let groups = about.metadata().row_groups().iter();
    let firsts = groups.scan(0, |next, group| {
        let start = *next;
        *next += group.num_rows() as u64;
        Some(start)
    });
    firsts.collect()
}

/// The column of a batch that has a leaf.
fn column_of(batch: &RecordBatch, about: &ArrowReaderMetadata, leaf: usize) -> ArrayRef {
    match leaf {
        POSITION => Arc::clone(batch.columns().last().unwrap()),
        leaf => Arc::clone(batch.column_by_name(about.parquet_schema().get_column_root(leaf).name()).unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_kept_rows_are_those_of_filtering_afterwards(
        rows in rows(),
        how in writing(),
        batch_rows in select(vec![1, 9, 100, 1000]),
        asked in prop::collection::btree_set(0..=POSITION, 0..=8),
        by in prop_oneof![4 => OTHERS..COLUMNS, 1 => OTHERS - 2..=POSITION],
        others in prop_oneof![3 => Just([].into()), 1 => prop::collection::btree_set(0..=POSITION, 1..3)],
        keeps in keeps(),
        runs in prop::option::of(prop::collection::vec((0..60usize, 1..60usize), 0..20)),
        only_flat in prop::bool::weighted(0.9),
        nested in select(vec![(vec![], vec![]), (vec![], vec![]), (vec![0, 1], vec![0, 1]), (vec![0, 1], vec![1]), (vec![2], vec![2])]),
        read in prop::collection::vec(prop::bool::weighted(0.8), 100),
    ) {
        let file = written(&rows, &how);
        let about = opened(&file);
        let metadata = about.metadata();
        let (descriptor, fields) = (about.parquet_schema(), about.schema().fields());
        let is_indexed = |group| metadata.page_index_for_row_group(group).page_locations(by.min(COLUMNS - 1)).is_some();
        prop_assert!((0..metadata.num_row_groups()).all(|group| is_indexed(group) == how.indexed));
        let all = all_rows(&file, &about);

        let wanted: Vec<Range<u64>> = runs.iter().flatten().scan(0, |next, (skipped, some)| {
            let start = *next + *skipped as u64;
            *next = start + *some as u64;
            Some(start..*next)
        }).collect();
        let firsts = firsts(&about);
        let bounds: Vec<u64> = firsts.iter().copied().chain([rows.len() as u64]).collect();
        let numbers: Vec<usize> = (0..metadata.num_row_groups()).filter(|group| read[group % read.len()]).collect();
        let groups_rows: Vec<Range<u64>> = numbers.iter().map(|group| bounds[*group]..bounds[group + 1]).collect();
        let selected = runs.as_ref().map(|_| Selected::new(&groups_rows, &wanted, None));
        let groups = PagedGroups::new(metadata.clone(), numbers, Counted::new(&file), selected.is_some());

        let (mut tested, mut asked) = (others, asked);
        tested.insert(by);
        tested.extend(nested.0);
        asked.extend(nested.1);
        let tested: Vec<usize> = tested.into_iter().collect();
        let is_flat = |leaf: usize| flat_column(&groups, descriptor, fields, leaf).unwrap().is_some();
        let is_late = |leaf: &usize| *leaf != POSITION && !tested.contains(leaf);
        let asked: Vec<usize> =
            asked.into_iter().filter(|leaf| !only_flat || !is_late(leaf) || is_flat(*leaf)).collect();

        let column = column_of(&all, &about, by);
        let value = match &keeps {
            Keeps::Equal(row) if !rows.is_empty() => texts(&column).swap_remove(row.index(rows.len())),
            _ => None,
        };
        let is_in = |ranges: &[Range<u64>], row| ranges.iter().any(|range| range.contains(&(row as u64)));
        let is_selected = |row: usize| is_in(&groups_rows, row) && (runs.is_none() || is_in(&wanted, row));
        let answers = kept(&column, &keeps, value.as_deref());
        let answers: BooleanArray =
            answers.iter().enumerate().map(|(row, kept)| Some(kept == Some(true) && is_selected(row))).collect();
        let every: Vec<usize> = (0..=POSITION).collect();
        let expected = pick(&filter_record_batch(&all, &answers).unwrap(), &every, &asked).unwrap();

        let shared = about.clone();
        let test: RowTest =
            Arc::new(move |batch| Ok(kept(&column_of(batch, &shared, by), &keeps, value.as_deref())));
        let filter = Filter { leaves: tested.clone(), test };
        let (leaves, firsts) = (&*asked, groups_rows.iter().map(|rows| rows.start).collect());
        let what = Wanted { descriptor, fields, leaves, filter: &filter, batch_rows, firsts };
        let late = Late::new(&groups, &groups.sparse(), &what, selected).unwrap();
        prop_assert_eq!(late.is_some(), what.late_leaves().all(is_flat));
        let Some(mut late) = late else { return Ok(()) };
        let schema = late.schema.clone();
        let mut found = Vec::new();
        while let Some(batch) = late.next().unwrap() {
            prop_assert!((1..=batch_rows).contains(&batch.num_rows()));
            batch.columns().iter().for_each(|column| column.to_data().validate_full().unwrap());
            found.push(batch);
        }
        let found = concat_batches(&schema, &found).unwrap();
        prop_assert_eq!(found.num_rows(), expected.num_rows());
        prop_assert_eq!(found.columns(), expected.columns());
        prop_assert!(groups.failure().lock().unwrap().is_none());
    }
}

/// A file of 4,000 numbered rows in pages of 50, and the leaf of `long`.
fn numbered(indexed: bool) -> (Bytes, usize) {
    let row = |number: i64| Row {
        text: format!("text of the row {number}"),
        maybe: None,
        bytes: None,
        yes: None,
        sure: true,
        number,
        maybe_number: Some(number),
    };
    let how = Writing {
        version: WriterVersion::PARQUET_1_0,
        compression: Compression::UNCOMPRESSED,
        encodings: [None, None],
        dictionary: false,
        dictionary_bytes: 1 << 20,
        page_rows: 50,
        group_rows: 100_000,
        indexed,
    };
    (written(&(0..4000).map(row).collect::<Vec<_>>(), &how), OTHERS + 7)
}

/// The batches of `text` and the position where `long` is one of some numbers, each with the calls of the filter
/// before it; and how many bytes were read.
fn where_long_is(numbers: &'static [i64], indexed: bool, batch_rows: usize) -> (Vec<(RecordBatch, usize)>, u64) {
    let (file, long) = numbered(indexed);
    let about = opened(&file);
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let test: RowTest = Arc::new(move |batch| {
        counted.fetch_add(1, Ordering::AcqRel);
        let is_kept = |text: &Option<String>| text.as_ref().map(|text| numbers.contains(&text.parse().unwrap()));
        Ok(texts(batch.column(0)).iter().map(is_kept).collect())
    });
    let filter = Filter { leaves: vec![long], test };
    let open = Counted::new(&file);
    let groups = PagedGroups::new(about.metadata().clone(), vec![0], open.clone(), false);
    let (descriptor, fields, firsts) = (about.parquet_schema(), about.schema().fields(), firsts(&about));
    let what = Wanted { descriptor, fields, leaves: &[OTHERS, POSITION], filter: &filter, batch_rows, firsts };
    let mut late = Late::new(&groups, &groups.sparse(), &what, None).unwrap().unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = late.next().unwrap() {
        batches.push((batch, calls.load(Ordering::Acquire)));
    }
    (batches, open.1.load(Ordering::Acquire))
}

#[test]
fn pages_without_kept_rows_are_not_read() {
    let numbers = 4000 * 8;
    for (indexed, most) in [(true, numbers * 3 / 2), (false, u64::MAX)] {
        let (batches, bytes) = where_long_is(&[3210], indexed, 1000);
        let [(batch, _)] = &*batches else { panic!("one batch") };
        assert_eq!(texts(batch.column(0)), [Some("text of the row 3210".to_owned())]);
        assert_eq!(texts(batch.column(1)), [Some("3210".to_owned())]);
        assert!((numbers..most).contains(&bytes), "{bytes} bytes of {numbers} in the filter's column");
    }
}

#[test]
fn few_rows_are_returned_before_the_file_ends() {
    let (batches, _) = where_long_is(&[5, 7, 3990], true, 100);
    let found: Vec<(usize, usize)> = batches.iter().map(|(batch, calls)| (batch.num_rows(), *calls)).collect();
    assert_eq!(found, [(2, MOST_BATCHES), (1, 40)]);
}
