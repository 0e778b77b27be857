//! Documents that are each within their budget, but too large together: operations that hold them return an error.

use icefield_format::Limits;
use icefield_format::manifest::ManifestFile;
use icefield_table::commit::{Committed, write_metadata};
use icefield_table::error::Result;
use icefield_table::maintain::purge::purge;
use icefield_table::plan::Scan;
use icefield_table::storage::Storage;

use super::world::{Manifest, World, file};

const FILES: usize = 100;

/// A table with this many manifests; some of them contain deletes.
fn world(location: &str, manifests: usize, deletes: usize) -> World {
    let manifest = |number: usize| {
        let entry = |at: usize| {
            let mut made = file(format!("{location}/data/{number:04}/{at:0>100}.parquet"), 0, at as i32);
            if number < deletes {
                made.content = icefield_format::manifest::FileContent::PositionDeletes;
            }
            (true, made)
        };
        let entries = (0..FILES).map(entry).collect();
        Manifest { sequence_number: 1, deletes: number < deletes, entries, ..Manifest::default() }
    };
    World::write(&Storage::default(), location, 2, &(0..manifests).map(manifest).collect::<Vec<_>>())
}

fn within(operation_memory: usize) -> Limits {
    Limits { operation_memory, ..Limits::default() }
}

fn scan(world: &World, operation_memory: usize) -> Scan {
    Scan { cached: false, limits: within(operation_memory), ..world.scan("true") }
}

fn refused<T: std::fmt::Debug>(done: Result<T>) {
    let error = done.unwrap_err().to_string();
    assert!(error.contains("ICEFIELD_OPERATION_MEMORY=BYTES"), "{error}");
}

#[test]
fn a_plan_is_bounded_and_a_stream_of_it_is_not() {
    let world = world("memory://held/plan", 40, 0);
    // Each stored byte allows sixteen bytes of memory.
    assert_eq!(scan(&world, 1).plan().unwrap().len(), 40 * FILES);
    assert_eq!(scan(&world, 1).plan_stream().unwrap().map(|one| one.unwrap().entries.len()).sum::<usize>(), 40 * FILES);

    // A manifest that is listed many times is stored only once.
    let again: Vec<ManifestFile> = vec![world.listed[0].clone(); 400];
    let twice = scan(&world.with_list(&again), 1 << 30).plan_stream().unwrap_err().to_string();
    assert!(twice.contains("names the manifest") && twice.contains("twice"), "{twice}");
}

#[test]
fn deletes_and_their_links_are_bounded() {
    let world = world("memory://held/deletes", 2, 1);
    let again: Vec<ManifestFile> = std::iter::repeat_n(world.listed[0].clone(), 400).collect();
    let deletes = world.with_list(&again);
    let one = scan(&world, 1 << 30).plan_stream().unwrap().deletes().sources()[0].entries.memory();
    refused(scan(&deletes, 100 * one).plan_stream());

    // 20,000 delete files; each applies to some of 100 data files.
    let mut again: Vec<ManifestFile> = vec![world.listed[0].clone(); 200];
    again.push(world.listed[1].clone());
    let links = world.with_list(&again);
    let whole = scan(&links, 1 << 30).plan().unwrap();
    let links_of = |plan: &icefield_table::plan::Plan| plan.manifests[0].deletes.as_ref().unwrap().len();
    assert!(links_of(&whole) > 100_000);
    let held: usize = whole.deletes.sources().iter().map(|source| source.entries.memory()).sum();
    refused(scan(&links, held + 1000).plan());
}

#[test]
fn a_purge_is_bounded_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let world = world(folder.path().to_str().unwrap(), 4, 0);
    let metadata = world.metadata.clone();
    let table = Committed { location: write_metadata(&world.storage, &metadata, 1).unwrap(), metadata };
    let leftover = purge(&world.storage, &table, None, &within(1000));
    assert_eq!(leftover.failures, 1);
    assert!(leftover.first[0].contains("ICEFIELD_OPERATION_MEMORY=BYTES"), "{leftover:?}");
    assert!(!world.storage.exists(&table.location).unwrap());
}
