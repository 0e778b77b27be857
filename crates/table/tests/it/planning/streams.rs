//! Plans as streams: they return the same files, in the order of the manifest list, and leave nothing behind when
//! stopped early.

use arrow_select::concat::concat_batches;
use icefield_table::plan::Plan;
use icefield_table::read::scan as rows;
use icefield_table::storage::Storage;

use crate::planning::world::{Manifest, World, file};

fn world(location: &str, manifests: i32) -> World {
    let manifest = |number: i32| {
        let entry = |at: i32| (at % 3 != 2, file(format!("{number:03}-{at}"), 0, number + at));
        Manifest {
            spec_id: 0,
            sequence_number: 1,
            deletes: false,
            entries: (0..5).map(entry).collect(),
            ..Manifest::default()
        }
    };
    World::write(&Storage::default(), location, 2, &(0..manifests).map(manifest).collect::<Vec<_>>())
}

fn paths(plan: &Plan) -> Vec<String> {
    let entries = plan.manifests.iter().map(|manifest| &manifest.entries);
    entries.flat_map(|entries| entries.file_path.iter().flatten().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn a_stream_gives_the_plan_in_the_order_of_the_list() {
    let world = world("memory://streams/order", 50);
    for filter in ["true", "day = '2019-04-15'", "id = 3", "false"] {
        let scan = world.scan(filter);
        let plan = scan.plan().unwrap();
        let mut stream = scan.plan_stream().unwrap();
        let mut streamed = Vec::new();
        for manifest in stream.by_ref() {
            streamed.extend(manifest.unwrap().entries.file_path.iter().flatten().map(str::to_owned));
        }
        assert_eq!(streamed, paths(&plan), "{filter}");
        assert_eq!(stream.report(), &plan.report, "{filter}");
        let batches = scan.plan_batches().unwrap();
        let schema = batches.schema().clone();
        let batches = batches.collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(concat_batches(&schema, &batches).unwrap(), plan.to_batch().unwrap(), "{filter}");
        assert_eq!(plan.to_batch().unwrap().num_rows(), plan.len());
    }
    let all = paths(&world.scan("true").plan().unwrap());
    assert!(all.is_sorted(), "the order of the list");
    assert_eq!(all.len(), 200);
}

#[test]
fn whoever_stops_early_may() {
    let world = world("memory://streams/early", 80);
    for taken in [0, 1, 7] {
        let mut stream = world.scan("true").plan_stream().unwrap();
        assert_eq!(stream.by_ref().take(taken).filter_map(Result::ok).count(), taken);
        drop(stream);
        assert_eq!(world.scan("true").plan().unwrap().len(), 320);
    }
}

#[test]
fn an_error_is_given_in_its_place_and_ends_the_stream() {
    let world = world("memory://streams/error", 30);
    let lost = &world.listed[11].manifest_path;
    world.storage.delete(lost).unwrap();
    let mut stream = world.scan("true").plan_stream().unwrap();
    assert_eq!(stream.by_ref().take(11).filter_map(Result::ok).count(), 11);
    let error = stream.next().unwrap().unwrap_err().to_string();
    assert!(error.contains(lost.as_str()), "{error}");
    assert!(stream.next().is_none());
}

#[test]
fn a_table_without_snapshot_has_an_empty_plan() {
    let mut scan = world("memory://streams/empty", 1).scan("id > 3");
    scan.snapshot = None;
    let plan = scan.plan().unwrap();
    assert!(plan.is_empty());
    assert_eq!(plan.to_batch().unwrap().num_rows(), 0);
    assert_eq!(rows::count(&scan, None).unwrap(), 0);
}
