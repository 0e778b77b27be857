//! Planning with damaged manifests and manifest lists: the error names the file, whatever the damage.

use icefield_format::avro::Container;
use icefield_format::manifest::FileContent;
use icefield_format::metadata::SnapshotManifests;
use icefield_table::Error;
use icefield_table::storage::{Existing, Storage};

use crate::planning::world::{Manifest, World, file};

/// A manifest of several blocks, one of few entries, and one of equality deletes.
fn world(location: &str) -> World {
    let data = |count: i32| Manifest {
        spec_id: 0,
        sequence_number: 1,
        deletes: false,
        entries: (0..count).map(|n| (true, file(format!("{location}/data/{count}-{n:0>200}.parquet"), 0, n))).collect(),
        ..Manifest::default()
    };
    let mut deletes = data(600);
    (deletes.deletes, deletes.sequence_number) = (true, 2);
    for (number, (_, file)) in deletes.entries.iter_mut().enumerate() {
        file.content = FileContent::EqualityDeletes;
        file.file_path = format!("{location}/delete/{number:0>200}.parquet");
        file.equality_ids = Some(vec![1]);
    }
    World::write(&Storage::default(), location, 2, &[data(600), data(3), deletes])
}

fn error(world: &World) -> Error {
    let planned = world.scan("true").plan().map(|plan| plan.len());
    let streamed = world.scan("true").plan_stream().and_then(|stream| stream.collect::<Result<Vec<_>, _>>());
    assert_eq!(streamed.is_err(), planned.is_err());
    planned.unwrap_err()
}

/// The ends of the blocks.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let container = Container::open(bytes).unwrap();
    let mut ends: Vec<usize> = vec![container.blocks().next().unwrap().unwrap().offset as usize];
    ends.extend(
        container.blocks().map(|block| block.unwrap()).map(|block| block.offset as usize + block.data.len() + 16),
    );
    ends
}

#[test]
fn a_manifest_that_is_not_as_listed_is_told() {
    let world = world("memory://damage/length");
    assert_eq!(world.scan("true").plan().unwrap().len(), 603);
    for listed in [&world.listed[0], &world.listed[2]] {
        let path = &listed.manifest_path;
        let whole = world.storage.read(path).unwrap();
        let ends = ends(&whole);
        assert!(ends.len() > 3, "several blocks: {ends:?}");
        let inner = &ends[1..ends.len() - 1];
        let cuts = inner.iter().copied().chain([0, 1, whole.len() / 3, whole.len() - 1]);
        let other = world.storage.read(&world.listed[1].manifest_path).unwrap().to_vec();
        let longer = [&whole[..], b"more"].concat();
        for damaged in cuts.map(|cut| whole[..cut].to_vec()).chain([other, longer, vec![b'x'; whole.len()]]) {
            world.storage.put(path, damaged, Existing::Replace).unwrap();
            let error = error(&world);
            assert!(matches!(error, Error::Format(_) | Error::CorruptFile { .. }), "{error:?}");
            assert!(error.to_string().contains(path.as_str()), "{error}");
        }
        world.storage.delete(path).unwrap();
        assert!(error(&world).to_string().contains(path.as_str()));
        world.storage.put(path, whole.to_vec(), Existing::Replace).unwrap();
    }
    assert_eq!(world.scan("true").plan().unwrap().len(), 603);
}

#[test]
fn bits_of_a_manifest_and_of_a_list_may_flip() {
    let world = world("memory://damage/bits");
    let SnapshotManifests::List(list) = &world.metadata.current_snapshot().unwrap().manifests else { panic!() };
    for path in [&world.listed[1].manifest_path, list] {
        let whole = world.storage.read(path).unwrap();
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 1 << (at % 8);
            world.storage.put(path, damaged, Existing::Replace).unwrap();
            // Damage that no checksum covers may go unnoticed; an error must name a file.
            if let Err(error) = world.scan("id = 7").plan() {
                let text = error.to_string();
                assert!(text.contains(".avro") || text.contains("memory"), "{at}: {text}");
                assert!(!matches!(error, Error::Internal(_)), "{at}: {text}");
            }
        }
        world.storage.put(path, whole.to_vec(), Existing::Replace).unwrap();
    }
}

#[test]
fn cuts_of_a_list_are_told() {
    let world = world("memory://damage/list");
    let SnapshotManifests::List(path) = &world.metadata.current_snapshot().unwrap().manifests else { panic!() };
    let whole = world.storage.read(path).unwrap();
    let header = ends(&whole)[0];
    for cut in (0..whole.len()).filter(|cut| *cut != header) {
        world.storage.put(path, whole[..cut].to_vec(), Existing::Replace).unwrap();
        match world.scan("true").plan() {
            Err(error) => assert!(error.to_string().contains(path.as_str()), "{cut}: {error}"),
            // A header alone is a valid list without manifests.
            Ok(plan) => assert!(cut < header && plan.is_empty(), "{cut}"),
        }
    }
}
