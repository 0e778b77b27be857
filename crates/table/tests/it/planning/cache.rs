//! The cache of decoded manifests only changes the time of planning: after any earlier plans, a plan is the same as
//! without the cache.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use icefield_format::manifest::Metrics;
use icefield_format::value::Value;
use icefield_table::plan::{Plan, Scan};
use icefield_table::snapshot::cache::{DEFAULT_BYTES, ENABLED_PROPERTY, ManifestCache};
use icefield_table::storage::Storage;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::planning::world::{ID, Manifest, NAME, World, file, set_metrics, shown};

/// The process has only one cache, so its tests run one at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = ManifestCache::shared().unwrap();
    cache.resize(DEFAULT_BYTES);
    cache.clear();
    turn
}

/// Data files in partitions of three specs, each with ids near its number; `salt` makes different tables with the same
/// paths.
fn manifests(salt: i64) -> Vec<Manifest> {
    manifests_of(10, salt)
}

fn manifests_of(files: i64, salt: i64) -> Vec<Manifest> {
    let manifest = |number: i64| {
        let spec_id = (number % 3) as usize;
        let entry = |at: i64| {
            let n = number * files + at;
            let mut made = file(format!("{n}.parquet"), spec_id, n as i32);
            made.record_count = n + salt;
            set_metrics(&mut made, ID, &[Some(Value::Long(n + salt)), Some(Value::Long(n + salt + 3))], true, true);
            let name = (at % 4 != 3).then(|| Value::String(format!("{}{at}", ["ab", "bc", "c"][(n % 3) as usize])));
            set_metrics(&mut made, NAME, &[name], at % 2 == 0, true);
            (at % 7 != 6, made)
        };
        Manifest {
            spec_id,
            sequence_number: 1 + number % 3,
            deletes: false,
            entries: (0..files).map(entry).collect(),
            ..Manifest::default()
        }
    };
    (0..9).map(manifest).collect()
}

const FILTERS: [&str; 9] = [
    "true",
    "id >= 20 AND id < 35",
    "id = 42",
    "name = 'ab1'",
    "name IS NULL",
    "day = '2019-04-15'",
    "day = '2019-04-15' AND id > 30",
    "name LIKE 'b%' OR id < 5",
    "day IS NULL AND bucket(4, id) = 1",
];

fn metrics() -> [Metrics; 4] {
    [Metrics::none(), Metrics::for_filter([ID]), Metrics::for_filter([NAME]), Metrics::all()]
}

fn planned(scan: &Scan) -> (Plan, BTreeMap<String, String>) {
    let plan = scan.plan().unwrap();
    let files = shown(&plan, &scan.metrics);
    (plan, files)
}

/// All counts of a plan except those about the cache.
fn counts(plan: &Plan) -> Vec<(&'static str, i64)> {
    plan.report
        .counts()
        .into_iter()
        .filter(|(name, _)| !matches!(*name, "cached_manifests" | "manifest_bytes_read"))
        .collect()
}

fn same_without(scan: &Scan) {
    let (with, with_files) = planned(scan);
    let (without, files) = planned(&Scan { cached: false, ..scan.clone() });
    assert_eq!(with_files, files, "{}", scan.filter);
    assert_eq!(counts(&with), counts(&without), "{}", scan.filter);
    assert_eq!(without.report.cached_manifests, 0);
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Plan(usize, usize),
    Clear,
    Resize(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..FILTERS.len(), 0..4usize).prop_map(|(filter, metrics)| Step::Plan(filter, metrics)),
        1 => Just(Step::Clear),
        1 => prop_oneof![Just(0), 10_000..60_000usize, Just(DEFAULT_BYTES)].prop_map(Step::Resize),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_changes_a_plan(steps in vec(step(), 4..16)) {
        let _turn = alone();
        let folder = tempfile::tempdir().unwrap();
        let world = World::write(&Storage::default(), folder.path().to_str().unwrap(), 2, &manifests(0));
        let cache = ManifestCache::shared().unwrap();
        for step in steps {
            match step {
                Step::Plan(filter, which) => {
                    let scan = Scan { metrics: metrics()[which].clone(), ..world.scan(FILTERS[filter]) };
                    same_without(&scan);
                }
                Step::Clear => cache.clear(),
                Step::Resize(bytes) => cache.resize(bytes),
            }
            let info = cache.info();
            prop_assert!(info.bytes <= info.max_bytes, "{info:?}");
        }
    }
}

#[test]
fn a_second_plan_reads_nothing() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let world = World::write(&Storage::default(), folder.path().to_str().unwrap(), 2, &manifests(0));
    for filter in FILTERS {
        let scan = world.scan(filter);
        scan.plan().unwrap();
        let again = scan.plan().unwrap().report;
        assert_eq!((again.cached_manifests, again.manifest_bytes_read), (again.scanned_data_manifests, 0), "{filter}");
    }
    // Another filter needs other metrics, so the manifests are read once more; then all metrics are cached.
    let all = Scan { metrics: Metrics::all(), ..world.scan("true") };
    assert!(all.plan().unwrap().report.manifest_bytes_read > 0);
    for filter in FILTERS {
        assert_eq!(world.scan(filter).plan().unwrap().report.manifest_bytes_read, 0, "{filter}");
    }
    // The manifests themselves are not read.
    let list = &world.metadata.current_snapshot().unwrap().manifests;
    assert!(matches!(list, icefield_format::metadata::SnapshotManifests::List(_)));
    assert!(world.listed.iter().all(|manifest| std::fs::metadata(&manifest.manifest_path).is_ok()));
}

#[test]
fn tables_with_the_same_paths_are_told_apart() {
    let _turn = alone();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |folder: &tempfile::TempDir| {
        let moved = (String::from("/somewhere/else"), folder.path().to_str().unwrap().to_owned());
        Storage::default().relocated([moved]).unwrap()
    };
    let worlds = [
        World::write(&at(&one), "/somewhere/else", 2, &manifests(0)),
        World::write(&at(&two), "/somewhere/else", 2, &manifests(1000)),
    ];
    for filter in FILTERS {
        for world in &worlds {
            same_without(&world.scan(filter));
        }
    }
    let rows = |world: &World| planned(&world.scan("true")).1;
    assert_ne!(rows(&worlds[0]), rows(&worlds[1]));
    // With another storage object for the same location, the first table uses the same cache entries.
    let entries = ManifestCache::shared().unwrap().info().entries;
    let direct = World { storage: at(&one), ..worlds[0].clone() };
    same_without(&direct.scan("true"));
    assert_eq!(ManifestCache::shared().unwrap().info().entries, entries);
}

#[test]
fn it_can_be_turned_off() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().to_str().unwrap();
    let world = World::write(&Storage::default(), location, 2, &manifests(0));
    let cache = ManifestCache::shared().unwrap();
    let kept_out = Storage::new([(ENABLED_PROPERTY.to_owned(), "false".to_owned())].into());
    let off = World { storage: kept_out, ..world.clone() };
    for _ in 0..2 {
        assert_eq!(off.scan("true").plan().unwrap().report.cached_manifests, 0);
        let scan = Scan { cached: false, ..world.scan("true") };
        assert_eq!(scan.plan().unwrap().report.cached_manifests, 0);
    }
    assert_eq!(cache.info().entries, 0);
    cache.resize(0);
    for _ in 0..2 {
        assert_eq!(world.scan("true").plan().unwrap().report.cached_manifests, 0);
    }
    assert_eq!((cache.info().entries, cache.info().bytes), (0, 0));
    cache.resize(DEFAULT_BYTES);
    world.scan("true").plan().unwrap();
    assert_eq!(cache.info().entries, 1 + world.listed.len(), "the list and its manifests");
}

#[test]
fn a_small_cache_stays_within_its_bound_under_many_threads() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let world = World::write(&Storage::default(), folder.path().to_str().unwrap(), 2, &manifests(0));
    let wanted: Vec<_> =
        FILTERS.map(|filter| planned(&Scan { cached: false, ..world.scan(filter) }).1).into_iter().collect();
    let cache = ManifestCache::shared().unwrap();
    cache.resize(40_000);
    std::thread::scope(|threads| {
        for first in 0..4 {
            let (world, wanted) = (&world, &wanted);
            threads.spawn(move || {
                for round in 0..18 {
                    let at = (first * 5 + round) % FILTERS.len();
                    assert_eq!(planned(&world.scan(FILTERS[at])).1, wanted[at], "{}", FILTERS[at]);
                    let info = cache.info();
                    assert!(info.bytes <= 40_000, "{info:?}");
                }
            });
        }
    });
    assert!(cache.info().hits > 0, "some of it fits");
}

#[test]
fn what_manifests_have_in_common_is_held_and_counted_once() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let world = World::write(&Storage::default(), folder.path().to_str().unwrap(), 2, &manifests_of(700, 0));
    let cache = ManifestCache::shared().unwrap();
    let scan = world.scan("id >= 0");
    let alone = Scan { cached: false, ..scan.clone() };
    let columns: usize = alone.plan().unwrap().manifests.iter().map(|manifest| manifest.entries.memory()).sum();
    let (first, wanted) = planned(&scan);
    let whole = cache.info().bytes;
    assert!(5 * whole < 4 * columns, "{whole} bytes of the cache for columns of {columns}");
    let (second, found) = planned(&scan);
    assert_eq!((found, counts(&second)), (wanted.clone(), counts(&first)));
    assert_eq!(second.report.cached_manifests, second.report.scanned_data_manifests);
    // A plan stays valid after its entries are evicted, and the cache frees data that no entry shares any more.
    cache.resize(whole / 2);
    assert!(cache.info().bytes <= whole / 2 && cache.info().entries > 1, "{:?}", cache.info());
    cache.clear();
    assert_eq!(cache.info().bytes, 0);
    assert_eq!(shown(&second, &scan.metrics), wanted);
    cache.resize(whole / 2);
    for _ in 0..3 {
        assert_eq!(planned(&scan).1, wanted);
        assert!(cache.info().bytes <= whole / 2);
    }
}

#[test]
fn failures_are_not_kept() {
    let _turn = alone();
    let folder = tempfile::tempdir().unwrap();
    let world = World::write(&Storage::default(), folder.path().to_str().unwrap(), 2, &manifests(0));
    let victim = &world.listed[4].manifest_path;
    let whole = std::fs::read(victim).unwrap();
    std::fs::write(victim, vec![b'x'; whole.len()]).unwrap();
    for _ in 0..2 {
        assert!(world.scan("true").plan().unwrap_err().to_string().contains(victim.as_str()));
    }
    std::fs::write(victim, &whole).unwrap();
    same_without(&world.scan("true"));
}
