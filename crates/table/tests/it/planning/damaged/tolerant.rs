//! Mistakes of other writers, and old forms, that can be read nevertheless.

use std::sync::Arc;

use icefield_format::avro::Encoder;
use icefield_format::manifest::FileContent;
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate};
use icefield_format::types::Schema;
use icefield_table::storage::{Existing, Storage};

use crate::planning::world::{ID, Manifest, World, file, linked, schema};

fn data(location: &str) -> Manifest {
    let entries = (0..9).map(|n| (true, file(format!("{location}/{n}.parquet"), 0, n)));
    Manifest { sequence_number: 1, entries: entries.collect(), ..Manifest::default() }
}

/// A manifest with another header: `change` returns the new value of a key, or `None` to remove it.
fn with_header(bytes: &[u8], change: impl Fn(&str, &[u8]) -> Option<Vec<u8>>) -> Vec<u8> {
    let container = icefield_format::avro::Container::open(bytes).unwrap();
    let pairs: Vec<_> =
        container.metadata.iter().filter_map(|(key, value)| Some((*key, change(key, value)?))).collect();
    let mut out = Encoder::default();
    out.raw(b"Obj\x01");
    out.long(pairs.len() as i64);
    for (key, value) in &pairs {
        out.bytes(key.as_bytes());
        out.bytes(value);
    }
    out.long(0);
    let sync = [7; 16];
    let body = bytes.windows(16).position(|window| window == sync).unwrap();
    out.raw(&bytes[body..]);
    out.into_bytes()
}

/// The new value of a header's key, from its name and its old value.
type Header = dyn Fn(&str, &[u8]) -> Option<Vec<u8>>;

#[test]
fn headers_may_be_wrong_or_lack_keys() {
    let location = "memory://tolerant/headers";
    let manifest = data(location);
    let (whole, _) = manifest.bytes(2, "any");
    let needed = |key: &str| key.starts_with("avro.");
    let headers: [(&str, Box<Header>); 4] = [
        ("as it was", Box::new(|_, value| Some(value.to_vec()))),
        ("none but Avro's own", Box::new(move |key, value| needed(key).then(|| value.to_vec()))),
        ("of no sense", Box::new(move |key, value| Some(if needed(key) { value.to_vec() } else { b"{\xff".to_vec() }))),
        (
            "of another schema and spec",
            Box::new(|key, value| {
                Some(match key {
                    "schema" => br#"{"type":"struct","schema-id":7,"fields":[]}"#.to_vec(),
                    "partition-spec" => b"[]".to_vec(),
                    "partition-spec-id" | "schema-id" => b"77".to_vec(),
                    _ => value.to_vec(),
                })
            }),
        ),
    ];
    for (what, change) in headers {
        let world = World::write(
            &Storage::default(),
            &format!("{location}/{}", what.len()),
            2,
            std::slice::from_ref(&manifest),
        );
        // The manifest list has the length, so write a list for the changed manifest.
        let changed = with_header(&whole, change);
        let world = rewritten(&world, changed);
        let plan = world.scan("day = '2019-04-15'").plan().unwrap_or_else(|error| panic!("{what}: {error}"));
        // One of the three files of the day has a null instead.
        assert_eq!(plan.len(), 2, "{what}");
        assert_eq!(world.scan("true").plan().unwrap().len(), 9, "{what}");
    }
}

/// The world with other bytes for its only manifest, and a manifest list with their length.
fn rewritten(world: &World, bytes: Vec<u8>) -> World {
    use icefield_format::manifest::write::{ListOptions, ListWriter};
    use icefield_format::metadata::SnapshotManifests;
    let mut listed = world.listed[0].clone();
    listed.manifest_length = bytes.len() as i64;
    world.storage.put(&listed.manifest_path, bytes, Existing::Replace).unwrap();
    let mut list = ListWriter::new(ListOptions {
        format_version: 2,
        snapshot_id: listed.added_snapshot_id,
        parent_snapshot_id: None,
        sequence_number: 99,
        first_row_id: None,
        compression: icefield_format::avro::Compression::default(),
        sync: [1; 16],
    })
    .unwrap();
    list.add(&listed).unwrap();
    let SnapshotManifests::List(path) = &world.metadata.current_snapshot().unwrap().manifests else { panic!() };
    world.storage.put(path, list.finish().unwrap().bytes, Existing::Replace).unwrap();
    World { listed: vec![listed], ..world.clone() }
}

#[test]
fn manifests_of_version_1_in_a_table_of_version_2() {
    let location = "memory://tolerant/old";
    let old = Manifest { version: Some(1), sequence_number: 0, ..data(location) };
    let mut delete = file(format!("{location}/delete"), 1, 0);
    (delete.content, delete.equality_ids) = (FileContent::EqualityDeletes, Some(vec![ID]));
    let deletes = Manifest {
        spec_id: 1,
        sequence_number: 2,
        deletes: true,
        entries: vec![(true, delete)],
        ..Manifest::default()
    };
    let world = World::write(&Storage::default(), location, 2, &[old, deletes]);
    let plan = world.scan("true").plan().unwrap();
    assert_eq!(plan.len(), 9);
    for manifest in &plan.manifests {
        assert!(manifest.entries.sequence_number.iter().all(|number| number == Some(0)), "older than all");
        assert!((0..manifest.entries.len()).all(|row| linked(&plan, manifest, row).len() == 1));
    }
}

#[test]
fn specs_whose_column_was_dropped_still_have_their_values() {
    let location = "memory://tolerant/dropped";
    let world = World::write(&Storage::default(), location, 2, &[data(location)]);
    let left = schema().fields().iter().filter(|field| field.name != "day").cloned().collect();
    let builder = MetadataBuilder::from_base(&world.metadata, world.metadata.last_updated_ms()).apply_all([
        MetadataUpdate::SetDefaultSpec { spec_id: 1 },
        MetadataUpdate::AddSchema { schema: Schema::new(1, left).unwrap() },
        MetadataUpdate::SetCurrentSchema { schema_id: -1 },
    ]);
    let metadata = Arc::new(builder.unwrap().build().unwrap());
    assert!(metadata.current_schema().find_field(2).is_none());
    let dropped = World { metadata, ..world.clone() };
    let (before, after) = (world.scan("id = 3").plan().unwrap(), dropped.scan("id = 3").plan().unwrap());
    assert!(!after.is_empty());
    let partitions = |plan: &icefield_table::plan::Plan| {
        let batch = plan.to_batch().unwrap();
        batch.column_by_name("partition").unwrap().to_data()
    };
    assert_eq!(partitions(&after), partitions(&before));
    assert!(dropped.scan("day = '2019-04-15'").plan().is_err(), "the column is gone");
}
