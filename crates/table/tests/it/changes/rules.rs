//! The conflict rules on entries only, without storage or catalog.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use icefield_format::avro::Compression;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent, ManifestEntry, Metrics, Status};
use icefield_format::metadata::{MetadataBuilder, TableDefinition, TableMetadata};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::value::Value;
use icefield_table::commit::validate::{self, Conflict, Fate, Kept, MOST, Scope, Successors, Written};
use icefield_table::commit::{Partitions, Selection, Specs};

use crate::changes::world::{equality, file, filter, positions, schema, vector};

fn metadata() -> TableMetadata {
    let definition = TableDefinition {
        schema: schema(),
        partition_spec: PartitionSpec::from_text(0, &["cat"], &schema()).unwrap(),
        sort_order: SortOrder::unsorted(),
        location: "memory://rules".to_owned(),
        properties: Default::default(),
    };
    let updates = definition.create_updates("9c12d441-03fe-4693-9a96-a0705ddf69c1".to_owned()).unwrap();
    MetadataBuilder::new_table(0).apply_all(updates).unwrap().build().unwrap()
}

/// A manifest of entries: status, snapshot, sequence number, file.
fn written(entries_: &[(Status, i64, i64, DataFile)]) -> Written {
    let specs = Specs::of(&metadata());
    let spec = specs.of_file(&entries_[0].3).unwrap().clone();
    let data = entries_[0].3.content == FileContent::Data;
    let mut writer = ManifestWriter::new(ManifestOptions {
        format_version: 3,
        content: if data { ManifestContent::Data } else { ManifestContent::Deletes },
        schema: &spec.schema,
        spec: &spec.spec,
        snapshot_id: 1,
        first_row_id: None,
        compression: Compression::default(),
        sync: [0; 16],
    })
    .unwrap();
    for (status, snapshot_id, number, file) in entries_ {
        let (snapshot_id, number) = (Some(*snapshot_id), Some(*number));
        let entry = ManifestEntry {
            status: *status,
            snapshot_id,
            sequence_number: number,
            file_sequence_number: number,
            file: file.clone(),
        };
        writer.add(&entry).unwrap();
    }
    let options =
        ReadOptions { metrics: Metrics::all(), partition_type: Some(&spec.partition_type), ..ReadOptions::default() };
    let bytes = writer.finish("m").unwrap().0;
    let entries = Arc::new(entries::read(&bytes, &options, &Default::default()).unwrap());
    Written { spec, entries }
}

fn selection(text: &str) -> Selection {
    let metadata = metadata();
    Selection::new(&filter(text), &metadata, &Specs::of(&metadata), true).unwrap()
}

fn paths(found: Vec<Conflict>) -> Vec<String> {
    found.into_iter().map(|conflict| conflict.path).collect()
}

#[test]
fn only_what_the_snapshots_did_counts() {
    let manifest = written(&[
        (Status::Added, 1, 1, file("added", Some("x"), (0, 9))),
        (Status::Existing, 1, 1, file("existing", Some("x"), (0, 9))),
        (Status::Deleted, 1, 1, file("deleted", Some("x"), (0, 9))),
        (Status::Added, 2, 2, file("added elsewhere", Some("x"), (0, 9))),
        (Status::Deleted, 2, 2, file("deleted elsewhere", Some("x"), (0, 9))),
    ]);
    let snapshots = HashSet::from([1]);
    let added = validate::added_data_files([Ok(manifest.clone())], &snapshots, Scope::All).unwrap();
    assert_eq!(added, [Conflict { snapshot_id: 1, path: "added".to_owned(), of: None }]);
    let removed = validate::removed_data_files([Ok(manifest.clone())], &snapshots, Scope::All).unwrap();
    assert_eq!(paths(removed), ["deleted"]);
    let all = ["added", "existing", "deleted", "deleted elsewhere"].map(str::to_owned).into();
    let missing = validate::missing_data_files([Ok(manifest.clone())], &snapshots, Scope::All, &all).unwrap();
    assert_eq!(paths(missing), ["deleted"]);
    let others = HashSet::from(["existing".to_owned()]);
    assert!(validate::missing_data_files([Ok(manifest)], &snapshots, Scope::All, &others).unwrap().is_empty());
}

#[test]
fn a_scope_leaves_files_out_by_partition_and_metrics() {
    let manifest = written(&[
        (Status::Added, 1, 1, file("x low", Some("x"), (0, 9))),
        (Status::Added, 1, 1, file("x high", Some("x"), (10, 19))),
        (Status::Added, 1, 1, file("y low", Some("y"), (0, 9))),
        (Status::Added, 1, 1, file("null", None, (0, 9))),
    ]);
    let snapshots = HashSet::from([1]);
    let found =
        |scope: Scope<'_>| paths(validate::added_data_files([Ok(manifest.clone())], &snapshots, scope).unwrap());
    assert_eq!(found(Scope::Rows(&selection("cat = 'x' AND id < 10"))), ["x low"]);
    assert_eq!(found(Scope::Rows(&selection("id > 9"))), ["x high"]);
    assert_eq!(found(Scope::Rows(&selection("cat IS NULL"))), ["null"]);
    assert!(found(Scope::Rows(&selection("false"))).is_empty());
    let mut partitions = Partitions::default();
    assert!(found(Scope::Partitions(&partitions)).is_empty());
    partitions.insert(0, &[None]);
    partitions.insert(0, &[Some(Value::String("y".to_owned()))]);
    partitions.insert(7, &[Some(Value::String("x".to_owned()))]);
    assert_eq!(found(Scope::Partitions(&partitions)), ["y low", "null"]);
}

#[test]
fn deletes_are_conflicts_where_they_are_newer_and_apply() {
    let manifest = written(&[
        (Status::Added, 1, 5, equality("old", "x")),
        (Status::Added, 1, 6, equality("equality", "x")),
        (Status::Added, 1, 6, positions("positions", "x")),
        (Status::Existing, 1, 7, positions("other partition", "y")),
        (Status::Deleted, 1, 8, positions("gone", "x")),
    ]);
    let newer = validate::added_delete_files([Ok(manifest.clone())], 5, Scope::All).unwrap();
    assert_eq!(paths(newer), ["equality", "positions", "other partition"]);
    let metadata = metadata();
    let kept = |successors: Option<Successors>| {
        let fate = successors.as_ref().map_or(Fate::Changed, Fate::Moved);
        let files = [written(&[(Status::Existing, 1, 5, file("data", Some("x"), (0, 9)))])];
        let kept = Kept { files: &files, after: 5, fate, schema: metadata.current_schema() };
        let found = validate::deletes_of_data_files([Ok(manifest.clone())], Scope::All, &kept, &Default::default());
        let found = found.unwrap();
        assert!(found.iter().all(|conflict| conflict.of.as_deref() == Some("data")));
        paths(found)
    };
    assert_eq!(kept(None), ["equality", "positions"]);
    // Replacing files keep a sequence number: equality deletes still apply if it is smaller than theirs and the spec is
    // the same.
    let successors = |sequence_number, spec| Some(Successors { sequence_number, specs: BTreeSet::from([spec]) });
    assert_eq!(kept(successors(5, 0)), ["positions"]);
    assert_eq!(kept(successors(6, 0)), ["equality", "positions"]);
    assert_eq!(kept(successors(5, 1)), ["equality", "positions"]);
}

#[test]
fn vectors_are_conflicts_for_their_data_file_alone() {
    let (a, b) = (file("a", Some("x"), (0, 9)), file("b", Some("x"), (0, 9)));
    let manifest = written(&[
        (Status::Added, 1, 5, vector("v", &a, 4)),
        (Status::Added, 1, 5, vector("v", &b, 44)),
        (Status::Added, 2, 5, vector("w", &b, 4)),
        (Status::Deleted, 1, 5, vector("u", &b, 4)),
    ]);
    let found = |of: &str| {
        let files = HashSet::from([of.to_owned()]);
        validate::added_vectors([Ok(manifest.clone())], &HashSet::from([1]), Scope::All, &files).unwrap()
    };
    let expected = Conflict { snapshot_id: 1, path: "v".to_owned(), of: Some("b".to_owned()) };
    assert_eq!(found("b"), [expected]);
    assert!(found("c").is_empty());
}

#[test]
fn as_many_files_are_found_as_a_message_names() {
    let many: Vec<_> =
        (0..40).map(|number| (Status::Added, 1, 1, file(&format!("f{number}"), Some("x"), (0, 9)))).collect();
    let found = validate::added_data_files([Ok(written(&many))], &HashSet::from([1]), Scope::All).unwrap();
    assert_eq!(found.len(), MOST);
}
