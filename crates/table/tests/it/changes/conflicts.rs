//! Conflicts with other commits: each kind, before the first attempt and in a retry.

use icefield_format::expr::Expr;
use icefield_format::manifest::ManifestContent;
use icefield_table::operation::delete::Delete;
use icefield_table::operation::overwrite::Overwrite;
use icefield_table::operation::replace_partitions::ReplacePartitions;
use icefield_table::operation::rewrite_files::RewriteFiles;
use icefield_table::operation::row_delta::RowDelta;

use crate::changes::world::{World, equality, file, filter, names, positions, vector};

fn row_delta(from: i64, checks: impl FnOnce(&mut RowDelta)) -> RowDelta {
    let mut delta = RowDelta::new();
    delta.validate_from_snapshot(from);
    delta.add_deletes(equality("mine", "x")).unwrap();
    checks(&mut delta);
    delta
}

/// Commits of another writer after the first snapshot.
fn remove(world: &World, name: &str) {
    let mut delete = Delete::new();
    delete.delete_path(name);
    world.change(delete).unwrap();
}

fn delete_rows(world: &World, deletes: icefield_format::manifest::DataFile) {
    let mut delta = RowDelta::new();
    delta.add_deletes(deletes).unwrap();
    world.change(delta).unwrap();
}

#[test]
fn row_deltas_find_what_was_added_and_removed() {
    let world = World::new(2, &[]);
    let from = world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9))]);
    world.append(&[file("c", Some("x"), (0, 9))]);
    delete_rows(&world, equality("theirs", "x"));
    remove(&world, "b");
    let refused = |checks: &dyn Fn(&mut RowDelta)| world.refusal(row_delta(from, checks));
    let snapshots: Vec<i64> = world.metadata().snapshots().iter().map(|snapshot| snapshot.snapshot_id).collect();

    let found = refused(&|delta| delta.validate_no_conflicting_data_files());
    assert_eq!(found, format!("row delta: snapshot {} (append) added the data file c", snapshots[1]));
    let found = refused(&|delta| {
        delta.conflict_detection_filter(filter("cat = 'x'"));
        delta.validate_no_conflicting_delete_files();
    });
    let expected =
        format!("row delta: snapshot {} (delete) added the delete file theirs, which may have", snapshots[2]);
    assert!(found.starts_with(&expected), "{found}");
    let found = refused(&|delta| delta.validate_data_files_exist(["a".to_owned(), "b".to_owned()]));
    let expected = format!("row delta: snapshot {} (delete) removed the data file b, which new deletes", snapshots[3]);
    assert!(found.starts_with(&expected), "{found}");

    // A file that the filter excludes is not a conflict.
    world
        .change(row_delta(from, |delta| {
            delta.conflict_detection_filter(filter("cat = 'z'"));
            delta.validate_no_conflicting_data_files();
            delta.validate_no_conflicting_delete_files();
            delta.validate_data_files_exist(["a".to_owned()]);
        }))
        .unwrap();
}

#[test]
fn a_start_that_is_not_of_the_branch_is_refused() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9))]);
    let refused = world.refusal(row_delta(99, |_| {}));
    assert!(refused.starts_with("row delta: snapshot 99, which it is validated from, is not an ancestor"), "{refused}");
    let mut overwrite = Overwrite::new();
    overwrite.validate_from_snapshot(99);
    overwrite.overwrite_by_filter(filter("cat = 'x'"));
    overwrite.validate_no_conflicting_data();
    let refused = world.refusal(overwrite);
    assert!(refused.starts_with("overwrite: what was committed since snapshot 99 is not known"), "{refused}");
}

#[test]
fn overwrites_find_what_they_would_lose() {
    let world = World::new(2, &[]);
    let from = world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9))]);
    let overwrite = |checks: &dyn Fn(&mut Overwrite)| {
        let mut overwrite = Overwrite::new();
        overwrite.validate_from_snapshot(from);
        overwrite.add_file(file("new", Some("x"), (0, 9))).unwrap();
        checks(&mut overwrite);
        overwrite
    };
    let by_filter = |overwrite: &mut Overwrite| overwrite.overwrite_by_filter(filter("cat = 'x'"));
    world.append(&[file("c", Some("x"), (0, 9))]);
    delete_rows(&world, positions("theirs", "x"));
    remove(&world, "c");

    let found = world.refusal(overwrite(&|it| {
        by_filter(it);
        it.validate_no_conflicting_data();
    }));
    assert!(found.contains("added the data file c, which may have rows that match"), "{found}");
    let found = world.refusal(overwrite(&|it| {
        by_filter(it);
        it.validate_no_conflicting_deletes();
    }));
    assert!(found.contains("added the delete file theirs"), "{found}");
    let found = world.refusal(overwrite(&|it| {
        it.delete_file(file("a", Some("x"), (0, 9))).unwrap();
        it.validate_no_conflicting_deletes();
    }));
    assert!(found.contains("added the delete file theirs, which applies to a"), "{found}");
    // Deletes of another partition do not apply.
    world
        .change(overwrite(&|it| {
            it.delete_file(file("b", Some("y"), (0, 9))).unwrap();
            it.validate_no_conflicting_deletes();
        }))
        .unwrap();
}

#[test]
fn added_files_match_the_filter_of_the_overwrite() {
    let world = World::new(2, &[]);
    let overwrite = |text: &str, added: &[icefield_format::manifest::DataFile]| {
        let mut overwrite = Overwrite::new();
        overwrite.overwrite_by_filter(filter(text));
        added.iter().for_each(|file| overwrite.add_file(file.clone()).unwrap());
        overwrite.validate_added_files_match_overwrite_filter();
        overwrite
    };
    let a = file("a", Some("x"), (0, 9));
    let refused = world.refusal(overwrite("cat = 'y'", std::slice::from_ref(&a)));
    assert!(refused.contains("the added data file a may have rows that do not match"), "{refused}");
    let refused = world.refusal(overwrite("id < 9", std::slice::from_ref(&a)));
    assert!(refused.contains("the added data file a"), "{refused}");
    world.refusal(overwrite("cat = 'x'", &[]));
    world.change(overwrite("id < 10", std::slice::from_ref(&a))).unwrap();
    world.change(overwrite("cat = 'x'", &[file("b", Some("x"), (0, 900))])).unwrap();
    assert_eq!(world.live(ManifestContent::Data), names(["b"]));
}

#[test]
fn rewrites_find_new_deletes_of_what_they_replace() {
    let world = World::new(2, &[]);
    let from = world.append(&[file("a", Some("x"), (0, 9))]);
    let rewrite = |number: Option<i64>| {
        let mut rewrite = RewriteFiles::new();
        rewrite.validate_from_snapshot(from);
        rewrite.delete_data_file(file("a", Some("x"), (0, 9))).unwrap();
        rewrite.add_data_file(file("a2", Some("x"), (0, 9))).unwrap();
        number.into_iter().for_each(|number| rewrite.data_sequence_number(number));
        rewrite
    };
    delete_rows(&world, equality("theirs", "x"));
    let refused = world.refusal(rewrite(None));
    assert!(refused.contains("added the delete file theirs, which applies to a"), "{refused}");
    // Equality deletes still apply to a file with the old sequence number; position deletes do not.
    world.lose_to(|world| delete_rows(world, positions("positions", "x")));
    let refused = world.change(rewrite(Some(1))).unwrap_err().to_string();
    assert!(refused.contains("added the delete file positions, which applies to a"), "{refused}");
    assert!(world.orphans().is_empty());
}

#[test]
fn a_vector_of_another_writer_is_found_in_a_lost_attempt() {
    let world = World::new(3, &[]);
    let a = file("a", Some("x"), (0, 9));
    let from = world.append(std::slice::from_ref(&a));
    let theirs = a.clone();
    world.lose_to(move |world| delete_rows(world, vector("theirs", &theirs, 4)));
    let mut delta = RowDelta::new();
    delta.validate_from_snapshot(from);
    delta.add_deletes(vector("mine", &a, 4)).unwrap();
    let refused = world.change(delta).unwrap_err().to_string();
    assert!(refused.contains("added a deletion vector for a, in theirs"), "{refused}");
    assert!(world.orphans().is_empty());
}

/// Data files that another row delta removed are detected as missing, even if its snapshot only has deletes.
#[test]
fn data_files_that_deletes_are_for_must_exist() {
    let world = World::new(3, &[]);
    let (a, b) = (file("a", Some("x"), (0, 9)), file("b", Some("x"), (0, 9)));
    let from = world.append(&[a.clone(), b.clone()]);
    let mut delta = RowDelta::new();
    delta.remove_rows(a.clone()).unwrap();
    delta.add_deletes(vector("theirs", &b, 4)).unwrap();
    world.change(delta).unwrap();
    assert_eq!(world.operation(), "delete");
    let mut delta = RowDelta::new();
    delta.validate_from_snapshot(from);
    delta.add_deletes(vector("mine", &a, 4)).unwrap();
    delta.validate_data_files_exist(["a".to_owned()]);
    let refused = world.refusal(delta);
    assert!(refused.contains("removed the data file a, which new deletes are for"), "{refused}");
    let mut delta = RowDelta::new();
    delta.remove_rows(b).unwrap();
    delta.validate_data_files_exist(["b".to_owned()]);
    assert!(world.refusal(delta).contains("the data file b is removed, and new delete files are for it"));
}

#[test]
fn replaced_partitions_find_changes_of_theirs_alone() {
    let world = World::new(2, &[]);
    let from = world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9))]);
    let replace = |cat: &str, checks: &dyn Fn(&mut ReplacePartitions)| {
        let mut replace = ReplacePartitions::new();
        replace.validate_from_snapshot(from);
        replace.add_file(file("new", Some(cat), (0, 9))).unwrap();
        checks(&mut replace);
        replace
    };
    world.append(&[file("c", Some("x"), (0, 9))]);
    let found = world.refusal(replace("x", &ReplacePartitions::validate_no_conflicting_data));
    assert!(found.contains("added the data file c, which is in a partition that is replaced"), "{found}");
    remove(&world, "a");
    let found = world.refusal(replace("x", &ReplacePartitions::validate_no_conflicting_deletes));
    assert!(found.contains("removed the data file a"), "{found}");
    world
        .change(replace("y", &|it| {
            it.validate_no_conflicting_data();
            it.validate_no_conflicting_deletes();
        }))
        .unwrap();
    delete_rows(&world, equality("theirs", "y"));
    let found = world.refusal(replace("y", &ReplacePartitions::validate_no_conflicting_deletes));
    assert!(found.contains("added the delete file theirs") || found.contains("removed the data file"), "{found}");
}

#[test]
fn a_filter_that_does_not_fit_is_refused_before_anything_is_read() {
    let world = World::new(2, &[]);
    let from = world.append(&[file("a", Some("x"), (0, 9))]);
    let refused = world.refusal(row_delta(from, |delta| delta.conflict_detection_filter(filter("nothing > 1"))));
    assert!(refused.contains("nothing"), "{refused}");
    let all: Expr = filter("true");
    world.change(row_delta(from, |delta| delta.conflict_detection_filter(all))).unwrap();
}
