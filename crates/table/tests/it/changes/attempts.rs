//! What the attempts of one commit share, and which files failed attempts leave behind.

use icefield_format::manifest::ManifestContent;
use icefield_table::Error;
use icefield_table::commit::{Content, SnapshotOptions, SnapshotProducer};
use icefield_table::operation::append::Append;
use icefield_table::operation::delete::Delete;
use icefield_table::operation::overwrite::Overwrite;
use icefield_table::operation::row_delta::RowDelta;
use icefield_table::storage::{Fault, FaultPlan};

use crate::changes::world::{World, equality, file, filter, names, vector};

fn replacement() -> Overwrite {
    let mut overwrite = Overwrite::new();
    overwrite.overwrite_by_filter(filter("cat = 'x'"));
    overwrite.add_file(file("new", Some("x"), (0, 9))).unwrap();
    overwrite
}

#[test]
fn a_lost_attempt_is_made_again_of_what_is_still_right() {
    for version in 1..=3 {
        let world = World::new(version, &[("commit.manifest-merge.enabled", "false")]);
        world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9))]);
        world.lose_to(|world| {
            world.append(&[file("c", Some("z"), (0, 9))]);
        });
        let plan = FaultPlan::new(usize::MAX, Fault::Error);
        let table = world.table(&world.storage.with_faults(plan.clone()));
        table.change(replacement(), SnapshotOptions::default()).unwrap();
        assert_eq!(world.live(ManifestContent::Data), names(["b", "c", "new"]));
        // Two manifests once, a manifest list and a metadata file for each attempt, and two deletes: of the list and
        // the metadata file of the first attempt.
        assert_eq!(plan.steps(), 2 + 2 * 2 + 2, "v{version}");
        assert_eq!(world.summary("manifests-replaced").as_deref(), Some("1"));
        assert!(world.orphans().is_empty(), "{:?}", world.orphans());
        if version > 1 {
            let all = world.all(ManifestContent::Data);
            let new = all.iter().find(|entry| entry.name == "new").unwrap();
            assert_eq!((new.snapshot, new.sequence_number), (2, 3));
        }
    }
}

/// The manifests of a transaction's first change get new sequence numbers and row ids in the next attempt; manifests
/// that later changes rewrote must not keep the old ones.
#[test]
fn a_transaction_that_is_made_again_hands_down_new_numbers() {
    for merge in ["true", "false"] {
        let properties = [("commit.manifest-merge.enabled", merge), ("commit.manifest.min-count-to-merge", "2")];
        let world = World::new(3, &properties);
        world.append(&[file("a", Some("x"), (0, 9))]);
        let table = world.table(&world.storage);
        let mut transaction = table.transaction();
        let append = Append::new(vec![file("b", Some("x"), (0, 9)), file("c", Some("x"), (0, 9))]).unwrap();
        let append = SnapshotProducer::new(world.storage.clone(), append, SnapshotOptions::default());
        transaction.stage(append).unwrap();
        let mut delete = Delete::new();
        delete.delete_path("b");
        let delete = SnapshotProducer::new(world.storage.clone(), delete, SnapshotOptions::default());
        transaction.stage(delete).unwrap();
        world.append(&[file("between", Some("x"), (0, 9))]);
        table.commit(&mut transaction).unwrap();

        let metadata = world.metadata();
        let numbers: Vec<i64> = metadata.snapshots().iter().map(|snapshot| snapshot.sequence_number).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let live = world.all(ManifestContent::Data).into_iter().filter(|entry| entry.status.is_live());
        let live: Vec<_> = live.map(|entry| (entry.name, entry.snapshot, entry.sequence_number)).collect();
        assert_eq!(live.len(), 3, "{live:?}");
        for (name, snapshot, number) in [("a", 0, 1), ("between", 1, 2), ("c", 2, 3)] {
            assert!(live.contains(&(name.to_owned(), snapshot, number)), "merging {merge}: {name} in {live:?}");
        }
        assert!(world.orphans().is_empty(), "{:?}", world.orphans());
    }
}

#[test]
fn what_another_commit_took_is_found_at_the_next_attempt() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("x"), (0, 9))]);
    let delete = || {
        let mut delete = Delete::new();
        delete.delete_path("a");
        delete.validate_files_exist();
        delete
    };
    world.lose_to(move |world| drop(world.change(delete()).unwrap()));
    let refused = world.change(delete()).unwrap_err();
    assert!(matches!(&refused, Error::Validation(message) if message.contains("not in the table: a")), "{refused}");
    assert!(world.orphans().is_empty());
    // A filter matches more files in the next attempt than in the first.
    world.lose_to(|world| {
        world.append(&[file("c", Some("x"), (0, 9))]);
    });
    world.change(replacement()).unwrap();
    assert_eq!(world.live(ManifestContent::Data), names(["new"]));
    assert_eq!(world.summary("deleted-data-files").as_deref(), Some("2"));
}

#[test]
fn deletes_that_have_become_useless_meanwhile_are_removed() {
    let world = World::new(3, &[]);
    let (a, b) = (file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9)));
    world.append(&[a.clone(), b]);
    let of_a = a.clone();
    world.lose_to(move |world| {
        let mut delta = RowDelta::new();
        delta.add_deletes(vector("v", &of_a, 4)).unwrap();
        world.change(delta).unwrap();
    });
    world.change(replacement()).unwrap();
    assert!(world.live(ManifestContent::Deletes).is_empty(), "the vector of a went with it");
    assert_eq!(world.summary("removed-dvs").as_deref(), Some("1"));
    assert_eq!(world.summary("total-delete-files").as_deref(), Some("0"));
}

#[test]
fn a_failure_at_any_step_leaves_the_table_as_before_or_after() {
    for fault in [Fault::Error, Fault::LostReply, Fault::Killed] {
        for step in 0.. {
            let world = World::new(2, &[("commit.manifest.min-count-to-merge", "2")]);
            world.append(&[file("a", Some("x"), (0, 9)), file("b", Some("y"), (0, 9))]);
            let mut delta = RowDelta::new();
            delta.add_deletes(equality("e", "x")).unwrap();
            world.change(delta).unwrap();
            let plan = FaultPlan::new(step, fault);
            let table = world.table(&world.storage.with_faults(plan.clone()));
            let landed = table.change(replacement(), SnapshotOptions::default()).is_ok();
            let expected = if landed { names(["b", "new"]) } else { names(["a", "b"]) };
            assert_eq!(world.live(ManifestContent::Data), expected, "{fault:?} at {step}");
            if fault == Fault::Error && !landed {
                assert!(world.orphans().is_empty(), "step {step}: {:?}", world.orphans());
            }
            if plan.steps() <= step {
                assert!(landed);
                break;
            }
        }
    }
}

#[test]
fn nothing_is_deleted_while_the_outcome_is_unknown() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9))]);
    let before = world.metadata();
    let catalog = world.catalog.clone();
    world.catalog.before.lock().unwrap().push(Box::new(move || {
        *catalog.unknown.lock().unwrap() = true;
        false
    }));
    let own = world.storage.clone();
    own.put("memory://changes/new", b"rows".to_vec(), icefield_table::storage::Existing::Replace).unwrap();
    let mut overwrite = Overwrite::new();
    overwrite.changes_mut().own_files(own.clone());
    overwrite.overwrite_by_filter(filter("cat = 'x'"));
    overwrite.add_file(file("memory://changes/new", Some("x"), (0, 9))).unwrap();
    let result = world.change(overwrite);
    *world.catalog.unknown.lock().unwrap() = false;
    // The swap took place, whatever the catalog reported.
    assert_eq!(world.metadata().snapshots().len(), before.snapshots().len() + 1);
    assert!(result.is_ok() || matches!(result, Err(Error::CommitStateUnknown { .. })), "{result:?}");
    assert_eq!(world.live(ManifestContent::Data), names(["memory://changes/new"]));
    assert!(own.exists("memory://changes/new").unwrap());
}

#[test]
fn files_that_a_change_owns_go_with_it() {
    let world = World::new(2, &[]);
    world.append(&[file("a", Some("x"), (0, 9))]);
    let path = "memory://changes/owned";
    for owns in [true, false] {
        world.storage.put(path, b"rows".to_vec(), icefield_table::storage::Existing::Replace).unwrap();
        let mut delta = RowDelta::new();
        if owns {
            delta.changes_mut().own_files(world.storage.clone());
        }
        delta.add_rows(file(path, Some("x"), (0, 9))).unwrap();
        delta.validate_from_snapshot(99);
        world.refusal(delta);
        assert_eq!(world.storage.exists(path).unwrap(), !owns);
    }
}
