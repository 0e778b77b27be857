//! The files that a purge finds in unusual manifests.

use icefield_format::Limits;
use icefield_table::commit::{Committed, write_metadata};
use icefield_table::maintain::purge::purge;
use icefield_table::storage::Leftover;
use icefield_table::storage::{Existing, Storage};

use super::world::{Manifest, World, file};

#[test]
fn files_of_deleted_entries_go_with_the_table() {
    for (version, gc) in [(2, true), (3, true), (2, false)] {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().to_str().unwrap().to_owned();
        let storage = Storage::default();
        let data = |name: &str| format!("{location}/data/{name}.parquet");
        let names = ["live", "replaced", "replaced-alone", "named-twice"];
        for name in names {
            storage.put(&data(name), name, Existing::Refuse).unwrap();
        }
        let entry = |live, name| (live, file(data(name), 0, 1));
        let some = Manifest {
            sequence_number: 1,
            entries: vec![entry(true, "live"), entry(true, "named-twice"), entry(false, "replaced")],
            ..Manifest::default()
        };
        let none_live = Manifest {
            sequence_number: 2,
            entries: vec![entry(false, "replaced-alone"), entry(false, "named-twice")],
            ..Manifest::default()
        };
        let world = World::write(&storage, &location, version, &[some, none_live]);
        let mut metadata = world.metadata;
        if !gc {
            let updates = [("gc.enabled".to_owned(), "false".to_owned())].into_iter().collect();
            let update = icefield_format::metadata::MetadataUpdate::SetProperties { updates };
            let at = metadata.last_updated_ms();
            let builder = icefield_format::metadata::MetadataBuilder::from_base(&metadata, at).apply_all([update]);
            metadata = builder.unwrap().build().unwrap().into();
        }
        let table = Committed { location: write_metadata(&storage, &metadata, 1).unwrap(), metadata };
        assert_eq!(purge(&storage, &table, None, &Limits::default()), Leftover::default(), "version {version}");
        let left = storage.list(&format!("{location}/data")).unwrap();
        assert_eq!(left.len(), if gc { 0 } else { names.len() }, "version {version}");
        assert!(!storage.exists(&table.location).unwrap());
        assert!(world.listed.iter().all(|manifest| !storage.exists(&manifest.manifest_path).unwrap()));
    }
}
