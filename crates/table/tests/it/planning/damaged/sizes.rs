//! Arbitrary sizes and counts in manifests: no plan ends the process, and no row is lost silently.

use icefield_table::Error;
use icefield_table::plan::tasks::split::{SplitOptions, SplitOverrides};
use icefield_table::read::scan as rows;
use icefield_table::storage::Storage;

use crate::planning::world::{Manifest, World, file};

/// A table of one file, changed.
fn world(name: &str, change: impl FnOnce(&mut icefield_format::manifest::DataFile)) -> World {
    let location = format!("memory://sizes/{name}");
    let mut one = file(format!("{location}/data/one.parquet"), 1, 0);
    change(&mut one);
    let manifest = Manifest { spec_id: 1, sequence_number: 1, entries: vec![(true, one)], ..Manifest::default() };
    World::write(&Storage::default(), &location, 2, &[manifest])
}

fn pieces(world: &World, options: &SplitOptions) -> icefield_table::Result<Vec<(i64, i64)>> {
    let tasks = world.scan("true").plan()?.tasks(options)?;
    Ok(tasks.into_iter().flatten().map(|piece| (piece.start, piece.length)).collect())
}

#[test]
fn huge_sizes_are_an_error_that_names_the_file() {
    for (number, size) in [1 << 55, i64::MAX, i64::MAX - 1].into_iter().enumerate() {
        let world = world(&format!("huge{number}"), |file| file.file_size_in_bytes = size);
        let error = pieces(&world, &SplitOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        for part in ["one.parquet", &size.to_string(), "read.split.target-size"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        // With split offsets, there is one piece per offset.
        let world = self::world(&format!("cut{number}"), |file| {
            (file.file_size_in_bytes, file.split_offsets) = (size, Some(vec![4, 1 << 40]));
        });
        assert_eq!(
            pieces(&world, &SplitOptions::default()).unwrap(),
            [(4, (1 << 40) - 4), (1 << 40, size - (1 << 40))]
        );
    }
}

#[test]
fn splits_of_a_byte_are_an_error_and_not_the_end() {
    let world = world("byte", |file| file.file_size_in_bytes = 1 << 40);
    let options = SplitOptions { split_size: 1, lookback: 10, open_file_cost: i64::MAX, ..SplitOptions::default() };
    assert!(matches!(pieces(&world, &options), Err(Error::Invalid(_))));
    let options = SplitOptions { split_size: i64::MAX, ..options };
    assert_eq!(pieces(&world, &options).unwrap(), [(0, 1 << 40)]);
}

#[test]
fn files_without_bytes_do_not_lose_their_rows() {
    for (number, size) in [0, -1, i64::MIN].into_iter().enumerate() {
        for (count, records) in [100, -1].into_iter().enumerate() {
            let world = world(&format!("none{number}{count}"), |file| {
                (file.file_size_in_bytes, file.record_count) = (size, records);
            });
            let error = world.scan("true").plan().unwrap_err();
            let (manifest, text) = (&world.listed[0].manifest_path, error.to_string());
            assert!(matches!(&error, Error::CorruptFile { path, .. } if path == manifest), "{error:?}");
            assert!(text.contains("one.parquet") && text.contains(&format!("{size} bytes")), "{text}");
        }
    }
    // An empty file gives no pieces.
    let world = world("empty", |file| (file.file_size_in_bytes, file.record_count) = (0, 0));
    assert!(pieces(&world, &SplitOptions::default()).unwrap().is_empty());
    assert_eq!(rows::count(&world.scan("true"), None).unwrap(), 0);
}

#[test]
fn what_lies_before_the_first_split_offset_is_read() {
    for (offsets, expected) in [(vec![4, 500], vec![(4, 496), (500, 500)]), (vec![600], vec![(0, 1000)])] {
        let world = world(&format!("before{}", offsets[0]), |file| file.split_offsets = Some(offsets));
        let scan = world.scan("true");
        let options = SplitOptions { split_size: 1, lookback: 1, open_file_cost: 0, ..SplitOptions::default() };
        let tasks = scan.tasks(&scan.plan().unwrap(), &scan.wanted(None).unwrap(), &options).unwrap();
        let mut parts: Vec<_> =
            tasks.iter().flat_map(|task| &task.parts).map(|part| (part.start, part.length)).collect();
        parts.sort_unstable();
        assert_eq!(parts, expected);
    }
}

#[test]
fn extreme_counts_and_numbers_neither_overflow_nor_end_the_process() {
    for (number, count) in [i64::MIN, -1, 0, 1 << 62, i64::MAX].into_iter().enumerate() {
        let world = world(&format!("count{number}"), |file| {
            file.record_count = count;
            file.split_offsets = Some(vec![count, count]);
            file.sort_order_id = Some(i32::MIN);
            file.value_counts = Some(vec![(1, count), (3, count)]);
            file.null_value_counts = Some(vec![(1, i64::MAX), (3, i64::MIN)]);
        });
        for filter in ["true", "id > 5", "name IS NULL", "id IS NULL OR price IS NAN"] {
            let plan = world.scan(filter).plan().unwrap();
            let _ = plan.tasks(&SplitOptions::default()).unwrap();
            let _ = plan.exact_row_count().unwrap();
        }
    }
}

/// Files with a number of bytes each, and one row group.
fn files(name: &str, count: usize, bytes: i64) -> World {
    let location = format!("memory://sizes/{name}");
    let one = |number: usize| {
        let mut one = file(format!("{location}/data/{number:04}.parquet"), 1, 0);
        (one.file_size_in_bytes, one.split_offsets) = (bytes, Some(vec![4]));
        (true, one)
    };
    let entries = (0..count).map(one).collect();
    let manifest = Manifest { spec_id: 1, sequence_number: 1, entries, ..Manifest::default() };
    World::write(&Storage::default(), &location, 2, &[manifest])
}

/// `adjustSplitSize` of the Java connector for Spark: as many tasks as can run at a time, if they have at least 16 MiB.
#[test]
fn tasks_are_made_smaller_where_fewer_would_be_than_run_at_a_time() {
    const MIB: i64 = 1 << 20;
    for (count, mib, parallelism, tasks) in [
        // The split size of the table, 128 MiB.
        (2, 20, None, 1),
        (16, 20, None, 3),
        // Smaller than that.
        (2, 20, Some(2), 2),
        (16, 20, Some(4), 4),
        (16, 20, Some(16), 16),
        // At least 16 MiB.
        (16, 8, Some(100), 8),
        (2, 8, Some(2), 1),
        (1, 200, Some(8), 1),
        // As many tasks as can run at a time, or more.
        (16, 20, Some(3), 3),
        (16, 20, Some(1), 3),
        (600, 20, Some(8), 100),
    ] {
        let world = files(&format!("of{count}of{mib}"), count, mib * MIB);
        let options = SplitOptions { parallelism, ..SplitOptions::default() };
        let found = world.scan("true").plan().unwrap().tasks(&options).unwrap();
        assert_eq!(found.len(), tasks, "{count} files of {mib} MiB, {parallelism:?} at a time");
        assert_eq!(found.iter().map(Vec::len).sum::<usize>(), count);
    }
    // Small files have the weight of opening them, 4 MiB: as many tasks as for the table's split size, or more up to
    // the parallelism.
    let world = files("small", 2_000, 10 << 10);
    for (parallelism, tasks) in [(None, 63), (Some(2), 63), (Some(100), 100)] {
        let options = SplitOptions { parallelism, ..SplitOptions::default() };
        let found = world.scan("true").plan().unwrap().tasks(&options).unwrap();
        assert_eq!(found.len(), tasks, "{parallelism:?} at a time");
    }
    let options = SplitOptions { parallelism: Some(0), ..SplitOptions::default() };
    let error = pieces(&world, &options).unwrap_err().to_string();
    assert!(error.contains("parallelism must be positive"), "{error}");
}

#[test]
fn a_size_that_is_asked_for_and_the_property_go_before_parallelism() {
    let location = "memory://sizes/adaptive";
    let world = World::write(&Storage::default(), location, 2, &[]);
    let overrides = SplitOverrides { parallelism: Some(7), ..SplitOverrides::default() };
    assert_eq!(overrides.for_table(&world.metadata).unwrap().parallelism, Some(7));
    let sized = SplitOverrides { split_size: Some(1 << 20), ..overrides };
    assert_eq!(sized.for_table(&world.metadata).unwrap().parallelism, None);
}
