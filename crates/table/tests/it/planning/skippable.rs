//! The text columns by which a filter could skip files: those whose bounds are disjoint in two files, or missing in
//! one.

use icefield_format::value::Value;
use icefield_table::storage::Storage;

use crate::planning::world::{Manifest, NAME, World, file, set_metrics};

/// The names in each file of each manifest; a file that is `None` has no bounds.
type Manifests = &'static [&'static [Option<&'static [&'static str]>]];

const CASES: &[(&str, Manifests, bool)] = &[
    ("no file", &[], false),
    ("one file", &[&[Some(&["a", "z"])]], false),
    ("ranges that all overlap", &[&[Some(&["a", "m"]), Some(&["b", "z"])], &[Some(&["c", "d"])]], false),
    ("ranges that meet in one value", &[&[Some(&["a", "m"])], &[Some(&["m", "z"])]], false),
    ("disjoint in one manifest", &[&[Some(&["a", "b"]), Some(&["c", "d"])]], true),
    ("disjoint in two manifests", &[&[Some(&["c", "d"])], &[Some(&["a", "z"])], &[Some(&["a", "b"])]], true),
    ("beyond ASCII, by bytes", &[&[Some(&["é", "é"])], &[Some(&["z", "z"])]], true),
    ("no bounds", &[&[Some(&["a", "z"]), None]], true),
    ("a manifest without bounds", &[&[Some(&["a", "z"])], &[None]], true),
];

#[test]
fn files_can_be_skipped_by_bounds_that_are_disjoint_or_missing() {
    for (what, manifests, expected) in CASES {
        let folder = tempfile::tempdir().unwrap();
        let storage = Storage::default();
        let manifest = |(place, files): (usize, &&[Option<&[&str]>])| Manifest {
            sequence_number: 1,
            entries: (files.iter().enumerate())
                .map(|(number, names)| {
                    let mut made = file(format!("data-{place}-{number}"), 0, 1);
                    let values = names.unwrap_or_default().iter().map(|name| Some(Value::String((*name).to_owned())));
                    set_metrics(&mut made, NAME, &values.collect::<Vec<_>>(), true, names.is_some());
                    (true, made)
                })
                .collect(),
            ..Manifest::default()
        };
        let manifests: Vec<_> = manifests.iter().enumerate().map(manifest).collect();
        let location = folder.path().to_str().unwrap();
        for version in 2..=3 {
            let world = World::write(&storage, &format!("{location}/v{version}"), version, &manifests);
            let mut scan = world.scan("true");
            scan.cached = false;
            scan.metrics = scan.metrics_of(&["name".to_owned()]).unwrap();
            assert_eq!(scan.plan().unwrap().skippable_by(NAME), *expected, "{what}, version {version}");
        }
    }
}
