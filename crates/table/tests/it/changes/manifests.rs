//! The manifests and summaries of changes.

use icefield_format::manifest::{ManifestContent, Status};
use icefield_table::commit::SnapshotOptions;
use icefield_table::operation::append::Append;
use icefield_table::operation::delete::Delete;
use icefield_table::operation::overwrite::Overwrite;
use icefield_table::operation::replace_partitions::ReplacePartitions;
use icefield_table::operation::rewrite_files::RewriteFiles;
use icefield_table::operation::row_delta::RowDelta;
use icefield_table::storage::{Fault, FaultPlan};

use crate::changes::world::{Entry, World, equality, file, filter, names, positions};

fn entry(status: Status, name: &str, snapshot: usize, sequence_number: i64) -> Entry {
    Entry { status, name: name.to_owned(), snapshot, sequence_number }
}

#[test]
fn removed_files_are_entries_of_the_snapshot_that_removed_them() {
    for version in 1..=3 {
        let world = World::new(version, &[("write.summary.partition-limit", "5")]);
        world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9))]);
        world.append(&[file("c", Some("x"), (5, 20))]);
        let before = world.manifests();
        let mut delete = Delete::new();
        delete.delete_by_filter(filter("cat = 'y'"));
        world.change(delete).unwrap();

        let after = world.manifests();
        assert_eq!(after[0], before[0], "a manifest without such files stays as it is");
        let number = |number| if version == 1 { 0 } else { number };
        let expected = [entry(Status::Existing, "a", 0, number(1)), entry(Status::Deleted, "b", 2, number(1))];
        assert_eq!(world.entries(&after[1]), expected, "v{version}");
        let counts = (after[1].existing_files_count, after[1].deleted_files_count, after[1].deleted_rows_count);
        assert_eq!(counts, (Some(1), Some(1), Some(10)));
        for (name, value) in [
            ("deleted-data-files", "1"),
            ("deleted-records", "10"),
            ("removed-files-size", "100"),
            ("total-data-files", "2"),
            ("total-records", "20"),
            ("changed-partition-count", "1"),
            ("manifests-created", "1"),
            ("manifests-kept", "1"),
            ("manifests-replaced", "1"),
        ] {
            assert_eq!(world.summary(name).as_deref(), Some(value), "v{version} {name}");
        }
        assert_eq!(world.operation(), "delete");

        // Rewritten manifests omit entries that another snapshot removed.
        let mut delete = Delete::new();
        delete.delete_path("a");
        world.change(delete).unwrap();
        let all = world.all(ManifestContent::Data);
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all.contains(&entry(Status::Deleted, "a", 3, number(1))), "{all:?}");
        assert!(world.orphans().is_empty());
    }
}

#[test]
fn a_filter_removes_whole_files_only() {
    let world = World::new(2, &[]);
    world.append(&[file("low", Some("x"), (0, 9)), file("mid", Some("x"), (5, 20)), file("high", None, (21, 30))]);
    let delete = |text| {
        let mut delete = Delete::new();
        delete.delete_by_filter(filter(text));
        delete
    };
    let refused = world.refusal(delete("id < 10"));
    assert!(refused.starts_with("mid: cannot delete the file: some of its rows match"), "{refused}");
    world.change(delete("id < 5 AND cat = 'y'")).unwrap();
    assert_eq!(world.live(ManifestContent::Data).len(), 3, "no row matches");
    // The partition decides one part of the filter, and the metrics the other.
    world.change(delete("cat = 'x' AND id <= 20")).unwrap();
    assert_eq!(world.live(ManifestContent::Data), names(["high"]));
    world.change(delete("cat IS NULL")).unwrap();
    assert!(world.live(ManifestContent::Data).is_empty());
    assert!(world.refusal(delete("nothing = 1")).contains("nothing"));
}

#[test]
fn the_case_of_names_matters_unless_it_is_said_not_to() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9))]);
    let delete = |case_sensitive| {
        let mut delete = Delete::new();
        delete.set_case_sensitive(case_sensitive);
        delete.delete_by_filter(filter("CAT = 'x'"));
        delete
    };
    world.refusal(delete(true));
    world.change(delete(false)).unwrap();
    assert!(world.live(ManifestContent::Data).is_empty());
}

#[test]
fn files_that_are_not_there_are_missed_where_that_is_asked() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9))]);
    let delete = |validate: bool| {
        let mut delete = Delete::new();
        delete.delete_file(file("a", Some("x"), (0, 9))).unwrap();
        delete.delete_path("b");
        delete.delete_file(file("c", Some("x"), (0, 9))).unwrap();
        if validate {
            delete.validate_files_exist();
        }
        delete
    };
    let refused = world.refusal(delete(true));
    assert_eq!(refused, "files to remove that are not in the table: c, b");
    world.change(delete(false)).unwrap();
    assert!(world.live(ManifestContent::Data).is_empty());
}

/// Manifests that cannot contain the files are not read, however many there are.
#[test]
fn a_change_reads_the_manifests_that_can_match() {
    let world = World::new(2, &[("commit.manifest-merge.enabled", "false")]);
    for number in 0..40 {
        world.append(&[file(&format!("f{number}"), Some(&format!("{number:02}")), (0, 9))]);
    }
    let plan = FaultPlan::new(usize::MAX, Fault::Error);
    let table = world.table(&world.storage.with_faults(plan.clone()));
    let mut overwrite = Overwrite::new();
    overwrite.overwrite_by_filter(filter("cat = '07'"));
    overwrite.add_file(file("new", Some("07"), (0, 9))).unwrap();
    table.change(overwrite, SnapshotOptions::default()).unwrap();
    // It reads the metadata file, the manifest list and one manifest.
    assert_eq!(plan.read().0, 3);
    assert_eq!(world.live(ManifestContent::Data).len(), 40);
    assert_eq!(world.operation(), "overwrite");
    let replaced = world.summary("manifests-replaced");
    assert_eq!((replaced.as_deref(), world.summary("manifests-kept").as_deref()), (Some("1"), Some("39")));
}

#[test]
fn rewritten_manifests_are_merged_with_others_and_keep_what_the_snapshot_removed() {
    let world = World::new(2, &[("commit.manifest.min-count-to-merge", "2")]);
    world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("x"), (10, 19))]);
    let mut overwrite = Overwrite::new();
    overwrite.delete_file(file("a", Some("x"), (0, 9))).unwrap();
    overwrite.add_file(file("c", Some("x"), (0, 9))).unwrap();
    world.change(overwrite).unwrap();
    let [manifest] = world.manifests().try_into().unwrap();
    let expected =
        [entry(Status::Added, "c", 1, 2), entry(Status::Deleted, "a", 1, 1), entry(Status::Existing, "b", 0, 1)];
    assert_eq!(world.entries(&manifest), expected);
    assert_eq!(manifest.min_sequence_number, 1);
    assert!(world.orphans().is_empty(), "the manifests that were merged are deleted: {:?}", world.orphans());
}

#[test]
fn rewritten_files_keep_their_data_sequence_number() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("x"), (0, 9))]);
    world.append(&[file("c", Some("x"), (0, 9))]);
    let mut rewrite = RewriteFiles::new();
    rewrite.delete_data_file(file("a", Some("x"), (0, 9))).unwrap();
    rewrite.delete_data_file(file("b", Some("x"), (0, 9))).unwrap();
    let mut compact = file("ab", Some("x"), (0, 9));
    compact.record_count = 20;
    rewrite.add_data_file(compact).unwrap();
    rewrite.data_sequence_number(1);
    world.change(rewrite).unwrap();
    assert_eq!(world.operation(), "replace");
    let all = world.all(ManifestContent::Data);
    assert!(all.contains(&entry(Status::Added, "ab", 2, 1)), "{all:?}");
    assert_eq!(world.live(ManifestContent::Data), names(["ab", "c"]));
    assert_eq!(world.manifests()[0].min_sequence_number, 1);
}

#[test]
fn a_rewrite_adds_no_rows_and_removes_something() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9))]);
    let refused = world.refusal(RewriteFiles::new());
    assert_eq!(refused, "rewrite of files: no file is removed");
    let mut rewrite = RewriteFiles::new();
    rewrite.delete_data_file(file("a", Some("x"), (0, 9))).unwrap();
    let mut more = file("b", Some("x"), (0, 9));
    more.record_count = 11;
    rewrite.add_data_file(more).unwrap();
    let refused = world.refusal(rewrite);
    assert_eq!(refused, "rewrite of files: 11 rows are added, and the replaced files have only 10");
    let mut rewrite = RewriteFiles::new();
    rewrite.delete_data_file(file("b", Some("x"), (0, 9))).unwrap();
    assert_eq!(world.refusal(rewrite), "files to remove that are not in the table: b");
}

#[test]
fn partitions_are_replaced_whole() {
    for version in 1..=3 {
        let world = World::new(version, &[]);
        world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("x"), (0, 9)), file("c", None, (0, 9))]);
        let replace = |cat, append_only: bool| {
            let mut replace = ReplacePartitions::new();
            replace.add_file(file("new", cat, (0, 9))).unwrap();
            if append_only {
                replace.validate_append_only();
            }
            replace
        };
        let refused = world.refusal(replace(Some("x"), true));
        assert_eq!(refused, "a: the partition \"cat=x\" has files already, and only an append is allowed");
        world.change(replace(Some("x"), false)).unwrap();
        assert_eq!(world.live(ManifestContent::Data), names(["new", "c"]));
        assert_eq!(world.summary("replace-partitions").as_deref(), Some("true"));
        world.change(replace(Some("z"), true)).unwrap();
        assert_eq!(world.live(ManifestContent::Data), names(["new", "c"]));
        assert!(world.refusal(ReplacePartitions::new()).contains("no data file is added"));
    }
}

#[test]
fn an_unpartitioned_table_is_replaced_whole() {
    let world = World::partitioned(2, &[], &[]);
    let unpartitioned =
        |name| icefield_format::manifest::DataFile { partition: Vec::new(), ..file(name, None, (0, 9)) };
    world.append(&[unpartitioned("a"), unpartitioned("b")]);
    let mut replace = ReplacePartitions::new();
    replace.add_file(unpartitioned("c")).unwrap();
    world.change(replace).unwrap();
    assert_eq!(world.live(ManifestContent::Data), names(["c"]));
}

#[test]
fn delete_files_go_with_what_they_deleted() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9))]);
    let mut delta = RowDelta::new();
    delta.add_deletes(equality("ea", "x")).unwrap();
    delta.add_deletes(positions("pb", "y")).unwrap();
    world.change(delta).unwrap();
    assert_eq!(world.operation(), "delete");
    assert_eq!(world.summary("added-equality-delete-files").as_deref(), Some("1"));
    // The partition is removed with its deletes; those of the other partition stay.
    let mut delete = Delete::new();
    delete.delete_by_filter(filter("cat = 'x'"));
    world.change(delete).unwrap();
    assert_eq!(world.live(ManifestContent::Deletes), names(["pb"]));
    assert_eq!(world.summary("removed-equality-delete-files").as_deref(), Some("1"));
    // A delete file has nothing to delete once all data files are newer.
    let mut overwrite = Overwrite::new();
    overwrite.delete_file(file("b", Some("y"), (0, 9))).unwrap();
    overwrite.add_file(file("c", Some("y"), (0, 9))).unwrap();
    world.change(overwrite).unwrap();
    let mut overwrite = Overwrite::new();
    overwrite.delete_file(file("c", Some("y"), (0, 9))).unwrap();
    overwrite.add_file(file("d", Some("y"), (0, 9))).unwrap();
    world.change(overwrite).unwrap();
    assert!(world.live(ManifestContent::Deletes).is_empty(), "{:?}", world.all(ManifestContent::Deletes));
    assert_eq!(world.summary("total-delete-files").as_deref(), Some("0"));
}

#[test]
fn delete_files_are_those_of_the_format_version() {
    let data = file("a", Some("x"), (0, 9));
    for (version, deletes, expected) in [
        (1, equality("e", "x"), Some("version 1 has no delete files")),
        (2, equality("e", "x"), None),
        (2, positions("p", "x"), None),
        (2, crate::changes::world::vector("v", &data, 4), Some("version 2 has no deletion vectors")),
        (3, equality("e", "x"), None),
        (3, positions("p", "x"), Some("as deletion vectors only")),
        (3, crate::changes::world::vector("v", &data, 4), None),
    ] {
        let world = World::new(version, &[]);
        world.append(std::slice::from_ref(&data));
        let mut delta = RowDelta::new();
        delta.add_deletes(deletes).unwrap();
        match expected {
            None => drop(world.change(delta).unwrap()),
            Some(expected) => {
                let refused = world.refusal(delta);
                assert!(refused.contains(expected), "{refused}");
            }
        }
    }
}

#[test]
fn a_computed_entry_of_the_summary_is_not_the_callers() {
    let world = World::new(2, &[]);
    for name in ["added-data-files", "total-records", "changed-partition-count"] {
        let properties = [(name.to_owned(), "7".to_owned())].into_iter().collect();
        let options = SnapshotOptions { properties, ..SnapshotOptions::default() };
        let append = Append::new(vec![file("a", Some("x"), (0, 9))]).unwrap();
        let refused = world.table(&world.storage).change(append, options).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
        assert!(world.head().is_none() && world.orphans().is_empty());
    }
}

#[test]
fn appended_manifests_become_the_tables() {
    for version in 1..=3 {
        let world = World::new(version, &[]);
        // A manifest of a staged snapshot.
        let append = Append::new(vec![file("a", Some("x"), (0, 9)), file("b", None, (0, 9))]).unwrap();
        let options = SnapshotOptions { stage_only: true, ..SnapshotOptions::default() };
        let staged = world.table(&world.storage).change(append, options).unwrap();
        let snapshot = staged.table.metadata().snapshot(staged.snapshot_id.unwrap()).unwrap().clone();
        let metadata = staged.table.metadata();
        let [manifest] =
            icefield_table::snapshot::manifests::of_snapshot(&world.storage, metadata, &snapshot, &Default::default())
                .unwrap()
                .try_into()
                .unwrap();
        let mut append = Append::default();
        let refused = append.add_manifest(manifest.clone()).unwrap_err().to_string();
        assert!(refused.contains("it has a snapshot id"), "{refused}");
        let mut unassigned = icefield_format::manifest::ManifestFile {
            added_snapshot_id: 0,
            sequence_number: icefield_format::manifest::ManifestFile::UNASSIGNED,
            min_sequence_number: icefield_format::manifest::ManifestFile::UNASSIGNED,
            first_row_id: None,
            ..manifest.clone()
        };
        append.add_manifest(unassigned.clone()).unwrap();
        world.change(append).unwrap();
        assert_eq!(world.summary("added-data-files").as_deref(), Some("2"), "v{version}");
        let live = world.manifests();
        assert_eq!(live[0].added_files_count, Some(2));
        // Version 1 requires the snapshot id in each entry, so the manifest is rewritten.
        assert_eq!(live[0].manifest_path == manifest.manifest_path, version > 1);
        let partitions = world.summary("changed-partition-count");
        assert_eq!(partitions.is_some(), version == 1, "whose partitions are known");
        unassigned.deleted_files_count = Some(1);
        assert!(Append::default().add_manifest(unassigned).unwrap_err().to_string().contains("deleted files"));
    }
}
