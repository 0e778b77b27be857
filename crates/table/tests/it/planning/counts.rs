//! Counts and bounds from metadata: exact answers are correct, and they are given whenever the metadata suffices.

use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::value::Value;
use icefield_table::plan::by_metadata::bounds::ColumnBounds;
use icefield_table::read::scan as rows;
use icefield_table::storage::Storage;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::planning::world::{ID, Manifest, NAME, World, file, set_metrics};

#[derive(Debug, Clone)]
struct Data {
    partition: i32,
    ids: Vec<i64>,
    counts: bool,
    bounds: bool,
    /// Rows that a deletion vector deletes; never zero, because delete files without rows are ignored under a filter.
    vector: Option<usize>,
    /// Whether a position delete file refers to it.
    positions: bool,
}

prop_compose! {
    fn data()(
        partition in 0..4i32, ids in vec(-20..20i64, 0..5), counts in prop::bool::weighted(0.8),
        bounds in prop::bool::weighted(0.8), vector in option::weighted(0.3, 1..4usize), positions in prop::bool::weighted(0.1),
    ) -> Data {
        let vector = vector.filter(|rows| *rows <= ids.len());
        Data { partition, ids, counts, bounds, vector, positions }
    }
}

fn world(location: &str, files: &[Data]) -> World {
    let mut data = Manifest { sequence_number: 1, ..Manifest::default() };
    let mut deletes = Manifest { sequence_number: 2, deletes: true, ..Manifest::default() };
    for (number, of) in files.iter().enumerate() {
        let name = format!("data-{number}");
        let mut made = file(&name, 0, of.partition);
        made.record_count = of.ids.len() as i64;
        let ids: Vec<_> = of.ids.iter().map(|id| Some(Value::Long(*id))).collect();
        set_metrics(&mut made, ID, &ids, of.counts, of.bounds);
        set_metrics(&mut made, NAME, &vec![None; of.ids.len()], of.counts, of.bounds);
        data.entries.push((true, made));
        let delete = DataFile {
            content: FileContent::PositionDeletes,
            referenced_data_file: Some(name),
            ..file(format!("delete-{number}"), 0, of.partition)
        };
        if let Some(rows) = of.vector {
            let vector = DataFile { file_format: "puffin".to_owned(), content_offset: Some(4), ..delete.clone() };
            deletes
                .entries
                .push((true, DataFile { record_count: rows as i64, content_size_in_bytes: Some(9), ..vector }));
        }
        if of.positions {
            deletes.entries.push((true, delete));
        }
    }
    let manifests = if deletes.entries.is_empty() { vec![data] } else { vec![data, deletes] };
    World::write(&Storage::default(), location, 3, &manifests)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn counts_and_bounds_are_exact_or_not_given(
        files in vec(data(), 0..8), number in any::<u64>(), day in option::of(0..3i32),
    ) {
        let world = world(&format!("memory://counts/{number}"), &files);
        // Days are partition values, so the residual of the files of a day is always true.
        let filter = day.map_or_else(|| "true".to_owned(), |day| format!("day = '2019-04-{}'", 14 + day));
        // With a filter, files without rows are not read.
        let in_day = |of: &&Data| {
            day.is_none_or(|day| of.partition % 5 != 4 && of.partition % 3 == day && !of.ids.is_empty())
        };
        let read: Vec<&Data> = files.iter().filter(in_day).collect();
        let scan = world.scan(&filter);
        let plan = scan.plan().unwrap();

        // A deletion vector is the only position delete of its file; position delete files may delete a row twice.
        let known = read.iter().all(|of| of.vector.is_some() || !of.positions);
        let rows: usize = read.iter().map(|of| of.ids.len() - of.vector.unwrap_or(0)).sum();
        prop_assert_eq!(plan.exact_row_count().unwrap(), known.then_some(rows as i64));
        if known {
            prop_assert_eq!(rows::count(&scan, None).unwrap(), rows as i64);
            prop_assert_eq!(rows::count(&scan, Some(3)).unwrap(), rows.min(3) as i64);
        }

        let (_, found) = scan.bounds("id").unwrap();
        let deleted = read.iter().any(|of| of.vector.is_some() || of.positions);
        let told = read.iter().all(|of| of.ids.is_empty() || of.bounds);
        let ids = || read.iter().flat_map(|of| of.ids.iter().copied());
        let truth = ids().min().map(|least| (Value::Long(least), Value::Long(ids().max().unwrap())));
        match found {
            ColumnBounds::Exact(found) => prop_assert_eq!(found, truth),
            ColumnBounds::Unknown(why) => {
                prop_assert!(deleted || !told, "{why}");
                prop_assert!(why.contains("deleted") || why.contains("bound"), "{}", why);
            }
        }
        let (_, names) = scan.bounds("name").unwrap();
        prop_assert!(matches!(names, ColumnBounds::Unknown(why) if why.contains("cut")));
    }
}

#[test]
fn a_filter_that_partitions_do_not_decide_is_said() {
    let of =
        |partition| Data { partition, ids: vec![1, 2], counts: true, bounds: true, vector: None, positions: false };
    let world = world("memory://counts/undecided", &[of(0), of(1)]);
    let scan = world.scan("id > 1");
    assert_eq!(scan.plan().unwrap().exact_row_count().unwrap(), None);
    let (_, found) = scan.bounds("id").unwrap();
    assert!(matches!(found, ColumnBounds::Unknown(why) if why.contains("filter")));
    assert!(scan.bounds("nobody").unwrap_err().to_string().contains("nobody"));
    // Nothing matches: no file remains, so the count is known.
    let none = world.scan("id > 100");
    assert_eq!(rows::count(&none, None).unwrap(), 0);
    assert_eq!(none.bounds("id").unwrap().1, ColumnBounds::Exact(None));
}

#[test]
fn a_count_of_rows_that_nobody_knows_is_not_taken() {
    let mut unknown = file("old-import", 0, 0);
    unknown.record_count = -1;
    let manifest = Manifest { sequence_number: 1, entries: vec![(true, unknown)], ..Manifest::default() };
    let world = World::write(&Storage::default(), "memory://counts/unknown", 2, &[manifest]);
    assert_eq!(world.scan("true").plan().unwrap().exact_row_count().unwrap(), None);
}
