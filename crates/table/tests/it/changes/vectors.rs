//! Deletion vectors: one per data file, which is removed together with it.

use icefield_format::manifest::ManifestContent;
use icefield_table::operation::delete::Delete;
use icefield_table::operation::row_delta::RowDelta;

use crate::changes::world::{World, file, filter, names, vector};

#[test]
fn a_vector_takes_the_place_of_the_one_before() {
    let world = World::new(3, &[]);
    let (a, b) = (file("a", Some("x"), (0, 9)), file("b", Some("x"), (0, 9)));
    world.append(&[a.clone(), b.clone()]);
    let mut delta = RowDelta::new();
    delta.add_deletes(vector("v1", &a, 4)).unwrap();
    delta.add_deletes(vector("v1", &b, 44)).unwrap();
    let from = world.change(delta).unwrap().snapshot_id.unwrap();

    let second = |remove: bool| {
        let mut delta = RowDelta::new();
        delta.validate_from_snapshot(from);
        delta.add_deletes(vector("v2", &a, 4)).unwrap();
        if remove {
            delta.remove_deletes(vector("v1", &a, 4)).unwrap();
        }
        delta
    };
    let refused = world.refusal(second(false));
    assert!(
        refused.starts_with("a: the snapshot adds a deletion vector for the file, which has one already, in v1"),
        "{refused}"
    );
    world.change(second(true)).unwrap();
    // The other vector of the same Puffin file stays.
    assert_eq!(world.live(ManifestContent::Deletes), names(["v1", "v2"]));
    assert_eq!(world.summary("total-delete-files").as_deref(), Some("2"));
    assert_eq!(
        (world.summary("added-dvs").as_deref(), world.summary("removed-dvs").as_deref()),
        (Some("1"), Some("1"))
    );
    assert_eq!(world.summary("removed-files-size").as_deref(), Some("40"), "a part of its file");
}

#[test]
fn two_vectors_for_one_file_in_one_commit_are_refused() {
    let a = file("a", Some("x"), (0, 9));
    let mut delta = RowDelta::new();
    delta.add_deletes(vector("v1", &a, 4)).unwrap();
    delta.add_deletes(vector("v1", &a, 4)).unwrap();
    let refused = delta.add_deletes(vector("v1", &a, 44)).unwrap_err().to_string();
    assert_eq!(refused, "a: v1 is a second deletion vector for it: merge both");
}

#[test]
fn vectors_go_with_their_data_files() {
    let world = World::new(3, &[]);
    let (a, b) = (file("a", Some("x"), (0, 9)), file("b", Some("x"), (20, 30)));
    world.append(&[a.clone(), b.clone()]);
    let mut delta = RowDelta::new();
    delta.add_deletes(vector("v", &a, 4)).unwrap();
    delta.add_deletes(vector("v", &b, 44)).unwrap();
    world.change(delta).unwrap();
    let mut delete = Delete::new();
    delete.delete_by_filter(filter("id < 10"));
    world.change(delete).unwrap();
    assert_eq!(world.summary("removed-dvs").as_deref(), Some("1"));
    let mut delete = Delete::new();
    delete.delete_file(b).unwrap();
    world.change(delete).unwrap();
    assert!(world.live(ManifestContent::Deletes).is_empty());
}
