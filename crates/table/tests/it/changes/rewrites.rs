//! Equality deletes that are committed while their data files are rewritten: deleted rows must not come back.

use icefield_format::manifest::{DataFile, ManifestContent};
use icefield_format::metadata::MetadataUpdate;
use icefield_format::spec::PartitionSpec;
use icefield_table::commit::SnapshotOptions;
use icefield_table::operation::cherry_pick::CherryPick;
use icefield_table::operation::delete::Delete;
use icefield_table::operation::overwrite::Overwrite;
use icefield_table::operation::replace_partitions::ReplacePartitions;
use icefield_table::operation::rewrite_files::RewriteFiles;
use icefield_table::operation::row_delta::RowDelta;

use crate::changes::world::{World, equality, file, filter, names, positions};

/// The unpartitioned spec, besides that by `cat`.
const WHOLE: i32 = 1;

/// A table with data files `a` of category x and `old` of category y, both with ids 0 to 9, and an additional
/// unpartitioned spec.
fn world() -> (World, i64) {
    let world = World::new(2, &[]);
    let spec = PartitionSpec { spec_id: WHOLE, ..PartitionSpec::unpartitioned() };
    world.table(&world.storage).update(Vec::new(), vec![MetadataUpdate::AddSpec { spec }]).unwrap();
    let from = world.append(&[file("a", Some("x"), (0, 9)), file("old", Some("y"), (0, 9))]);
    (world, from)
}

/// A file of the unpartitioned spec.
fn whole(file: DataFile) -> DataFile {
    DataFile { partition: Vec::new(), partition_spec_id: WHOLE, ..file }
}

/// Deletes of ids in a range.
fn of_ids(deletes: DataFile, ids: (i64, i64)) -> DataFile {
    let bounded = file("", None, ids);
    DataFile {
        value_counts: bounded.value_counts,
        null_value_counts: bounded.null_value_counts,
        lower_bounds: bounded.lower_bounds,
        upper_bounds: bounded.upper_bounds,
        ..deletes
    }
}

fn commit_deletes(world: &World, deletes: DataFile) {
    let mut delta = RowDelta::new();
    delta.add_deletes(deletes).unwrap();
    world.change(delta).unwrap();
}

/// Deletes that others commit, and whether they conflict with a change that rewrites the rows of file `a`.
fn of_rewritten() -> [(&'static str, DataFile, bool); 7] {
    [
        ("ids beside the filter", of_ids(equality("theirs", "x"), (7, 8)), true),
        ("ids that the filter names", of_ids(equality("theirs", "x"), (0, 8)), true),
        ("ids without bounds", equality("theirs", "x"), true),
        ("ids of all partitions", of_ids(whole(equality("theirs", "x")), (7, 8)), true),
        ("positions", positions("theirs", "x"), true),
        ("ids that the file does not have", of_ids(equality("theirs", "x"), (70, 80)), false),
        ("ids of another partition", of_ids(equality("theirs", "y"), (7, 8)), false),
    ]
}

#[test]
fn deletes_beside_the_filter_of_a_rewrite_are_conflicts() {
    for (what, deletes, is_conflict) in of_rewritten() {
        for is_delta in [false, true] {
            let (world, from) = world();
            commit_deletes(&world, deletes.clone());
            let (a, rewritten) = (file("a", Some("x"), (0, 9)), file("rewritten", Some("x"), (0, 9)));
            let changed = if is_delta {
                let mut delta = RowDelta::new();
                delta.remove_rows(a).unwrap();
                delta.add_rows(rewritten).unwrap();
                delta.validate_from_snapshot(from);
                delta.conflict_detection_filter(filter("id = 1"));
                delta.validate_no_conflicting_delete_files();
                world.change(delta)
            } else {
                let mut overwrite = Overwrite::new();
                overwrite.delete_file(a).unwrap();
                overwrite.add_file(rewritten).unwrap();
                overwrite.validate_from_snapshot(from);
                overwrite.conflict_detection_filter(filter("id = 1"));
                overwrite.validate_no_conflicting_deletes();
                world.change(overwrite)
            };
            match changed {
                Ok(_) => assert!(!is_conflict, "{what}: committed"),
                Err(error) => {
                    let error = error.to_string();
                    // Position deletes may be of matching rows; in a row delta they are rejected for another reason.
                    assert!(is_conflict && error.contains("added the delete file theirs"), "{what}: {error}");
                }
            }
        }
    }
}

/// If no row is rewritten, none can come back, and a change knows the delete files that it removes itself.
#[test]
fn deletes_of_rows_that_are_not_written_again_are_no_conflicts() {
    let (world, from) = world();
    commit_deletes(&world, of_ids(equality("theirs", "x"), (7, 8)));
    let removal = |checks: &dyn Fn(&mut Overwrite)| {
        let mut overwrite = Overwrite::new();
        overwrite.delete_file(file("a", Some("x"), (0, 9))).unwrap();
        overwrite.conflict_detection_filter(filter("id = 1"));
        overwrite.validate_no_conflicting_deletes();
        checks(&mut overwrite);
        overwrite
    };
    world.change(removal(&|it| it.validate_from_snapshot(from))).unwrap();

    let (world, _) = self::world();
    let deletes = of_ids(equality("theirs", "x"), (7, 8));
    commit_deletes(&world, deletes.clone());
    world
        .change(removal(&|it| {
            it.add_file(file("rewritten", Some("x"), (0, 6))).unwrap();
            it.remove_deletes(deletes.clone()).unwrap();
        }))
        .unwrap();
    assert_eq!(world.live(ManifestContent::Data), names(["old", "rewritten"]));
}

/// Compacted files keep a sequence number, so that equality deletes still apply; but not in another partition spec, and
/// not if the number is not smaller than theirs.
#[test]
fn a_compaction_must_leave_its_rows_in_reach_of_new_equality_deletes() {
    let to_own = || file("compacted", Some("x"), (0, 9));
    let to_whole = || whole(to_own());
    for (what, deletes, compacted, number, is_conflict) in [
        ("the same spec", equality("theirs", "x"), to_own(), 1, false),
        ("another spec", equality("theirs", "x"), to_whole(), 1, true),
        ("deletes of all partitions", whole(equality("theirs", "x")), to_whole(), 1, false),
        ("the number of the deletes", equality("theirs", "x"), to_own(), 2, true),
        ("a number above that", whole(equality("theirs", "x")), to_own(), 3, true),
        ("ids that the file does not have", of_ids(equality("theirs", "x"), (70, 80)), to_whole(), 1, false),
    ] {
        let (world, from) = world();
        commit_deletes(&world, deletes);
        let mut rewrite = RewriteFiles::new();
        rewrite.delete_data_file(file("a", Some("x"), (0, 9))).unwrap();
        rewrite.add_data_file(compacted).unwrap();
        rewrite.data_sequence_number(number);
        rewrite.validate_from_snapshot(from);
        let changed = world.change(rewrite);
        assert_eq!(changed.is_err(), is_conflict, "{what}: {:?}", changed.err());
    }
}

#[test]
fn deletes_of_all_partitions_are_conflicts_of_replaced_ones() {
    for (what, deletes, is_conflict) in [
        ("of all partitions", whole(equality("theirs", "x")), true),
        ("of the partition", equality("theirs", "x"), true),
        ("of another", equality("theirs", "y"), false),
    ] {
        let replacement = || {
            let mut replace = ReplacePartitions::new();
            replace.add_file(file("new", Some("x"), (0, 9))).unwrap();
            replace
        };
        let (world, from) = world();
        commit_deletes(&world, deletes.clone());
        let mut replace = replacement();
        replace.validate_from_snapshot(from);
        replace.validate_no_conflicting_deletes();
        let changed = world.change(replace);
        assert_eq!(changed.is_err(), is_conflict, "{what}: {:?}", changed.err());

        // The same for a staged replacement that is picked now.
        let (world, _) = self::world();
        let staged = SnapshotOptions { stage_only: true, ..SnapshotOptions::default() };
        let staged = world.table(&world.storage).change(replacement(), staged).unwrap().snapshot_id.unwrap();
        commit_deletes(&world, deletes);
        let picked = world.table(&world.storage).make(&mut CherryPick::new(world.storage.clone(), staged));
        assert_eq!(picked.is_err(), is_conflict, "{what}, picked: {:?}", picked.err());
    }
}

/// An equality delete file may have more columns than those it deletes by. Their values may be outdated, so they must
/// not be used to exclude conflicts.
#[test]
fn columns_beside_the_key_say_nothing_of_deleted_rows() {
    let deletes = DataFile {
        lower_bounds: Some(vec![(1, 7_i64.to_le_bytes().to_vec()), (2, b"x".to_vec())]),
        upper_bounds: Some(vec![(1, 8_i64.to_le_bytes().to_vec()), (2, b"x".to_vec())]),
        value_counts: Some(vec![(1, 2), (2, 2)]),
        null_value_counts: Some(vec![(1, 0), (2, 0)]),
        ..whole(equality("theirs", "x"))
    };
    let (world, from) = world();
    commit_deletes(&world, deletes);
    for (text, is_conflict) in [("cat = 'y'", true), ("cat = 'y' and id = 7", true), ("cat = 'y' and id = 1", false)] {
        let mut delta = RowDelta::new();
        delta.add_deletes(positions("mine", "x")).unwrap();
        delta.validate_from_snapshot(from);
        delta.conflict_detection_filter(filter(text));
        delta.validate_no_conflicting_delete_files();
        let changed = world.change(delta);
        assert_eq!(changed.is_err(), is_conflict, "{text}: {:?}", changed.err());
    }
    // It is still needed when all rows of that category are deleted.
    world.append(&[file("b", Some("x"), (0, 9))]);
    let mut delete = Delete::new();
    delete.delete_by_filter(filter("cat = 'x' and id < 10"));
    world.change(delete).unwrap();
    assert!(world.live(ManifestContent::Deletes).contains("theirs"));
}
