//! Commits are atomic, none is lost, and after a crash the table is in the state before or after the commit.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{MetadataUpdate, StringMap, TableDefinition, TableMetadata};
use icefield_format::spec::{PartitionField, PartitionSpec, SortOrder};
use icefield_format::transform::Transform;
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::commit::{Committed, Pointer, PointerCatalog, SnapshotOptions, read_metadata};
use icefield_table::operation::create::create;
use icefield_table::plan::{At, Scan};
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};
use icefield_table::write::{TableWriter, WriterConfig};
use icefield_table::{Appended, Error, Result};

/// The pointer of one table.
struct Catalog {
    location: Mutex<String>,
    /// How the next swaps misbehave.
    moods: Mutex<Vec<Mood>>,
    /// Whether the pointer cannot be loaded.
    unread: AtomicBool,
}

#[derive(Clone, Copy, PartialEq)]
enum Mood {
    /// Reports a conflict, as if another commit had been first.
    Conflict,
    /// Swaps, but the reply is lost.
    AppliedButLost,
    /// Does nothing, and the reply is lost.
    Lost,
    /// Swaps, and replies as if the request had come twice.
    Twice,
    /// The same, and then the table cannot be read for a while.
    TwiceThenUnread,
}

impl Pointer for Catalog {
    fn load(&self) -> Result<String> {
        if self.unread.load(Ordering::Relaxed) {
            return Err(Error::Callback("the catalog is down".into()));
        }
        Ok(self.location.lock().unwrap().clone())
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        let mood = self.moods.lock().unwrap().pop();
        let mut location = self.location.lock().unwrap();
        if mood == Some(Mood::Conflict) || *location != base {
            return Err(Error::CommitFailed("the table has changed".into()));
        }
        if mood != Some(Mood::Lost) {
            *location = new.to_owned();
        }
        match mood {
            Some(Mood::AppliedButLost | Mood::Lost) => Err(Error::Callback("the reply was lost".into())),
            Some(mood @ (Mood::Twice | Mood::TwiceThenUnread)) => {
                self.unread.store(mood == Mood::TwiceThenUnread, Ordering::Relaxed);
                Err(Error::CommitFailed("the table has changed".into()))
            }
            _ => Ok(()),
        }
    }
}

struct Table {
    storage: Storage,
    catalog: Arc<Catalog>,
    /// The table as it was created.
    opened: Committed,
    root: String,
}

impl Table {
    fn create(name: &str, properties: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let root = format!("memory://commit/{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let waits = [
            ("commit.retry.min-wait-ms", "1"),
            ("commit.status-check.min-wait-ms", "1"),
            ("commit.retry.num-retries", "1000"),
        ];
        let properties = waits.iter().chain(properties).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let field = PartitionField {
            source_ids: vec![1],
            field_id: 1000,
            name: "id_bucket".into(),
            transform: Transform::Bucket(2),
        };
        let definition = TableDefinition {
            schema: Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long)]).unwrap(),
            partition_spec: PartitionSpec { spec_id: 0, fields: vec![field] },
            sort_order: SortOrder::default(),
            location: root.clone(),
            properties: properties.collect(),
        };
        let storage = Storage::default();
        let opened = create(&storage, &definition).unwrap();
        let catalog = Catalog {
            location: Mutex::new(opened.location.clone()),
            moods: Mutex::default(),
            unread: AtomicBool::default(),
        };
        Self { storage, catalog: Arc::new(catalog), opened, root }
    }

    fn metadata(&self) -> TableMetadata {
        read_metadata(&self.storage, &self.catalog.load().unwrap()).unwrap()
    }

    /// Data files of one row each.
    fn files(&self, ids: &[i64]) -> Vec<DataFile> {
        let metadata = self.metadata();
        let schema = metadata.current_schema().clone();
        let config = WriterConfig::new(self.storage.clone(), &self.root, schema, metadata.default_spec().clone());
        let ids: ArrayRef = Arc::new(Int64Array::from(ids.to_vec()));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let mut writer = TableWriter::new(config, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap()
    }

    /// Opens the table as it was created, with another storage, which may fail.
    fn open(&self, storage: &Storage) -> icefield_table::Table {
        let catalog = PointerCatalog::new(storage.clone(), self.catalog.clone());
        icefield_table::Table::new(storage.clone(), Arc::new(catalog), self.opened.clone())
    }

    fn append_files(&self, files: Vec<DataFile>, options: SnapshotOptions) -> Result<Appended> {
        self.open(&self.storage).append_files(files, options)
    }

    fn append(&self, ids: &[i64]) -> Result<Appended> {
        self.append_files(self.files(ids), SnapshotOptions::default())
    }

    fn update(&self, update: MetadataUpdate) -> Result<Committed> {
        Ok(self.open(&self.storage).update(Vec::new(), vec![update])?.committed().clone())
    }

    /// Sets a property like another writer that does not check it.
    fn set_elsewhere(&self, name: &str, value: &str) {
        let mut document = self.metadata().to_json_value();
        document["properties"][name] = value.into();
        let old = self.catalog.load().unwrap();
        let new = format!("{}/metadata/00001-elsewhere.metadata.json", self.root);
        self.storage.put(&new, document.to_string().into_bytes(), Existing::Refuse).unwrap();
        *self.catalog.location.lock().unwrap() = new;
        self.storage.delete(&old).unwrap();
    }

    /// The number of rows of the current snapshot, from its plan.
    fn rows(&self) -> i64 {
        let scan = Scan::new(self.storage.clone(), Arc::new(self.metadata()), &At::default()).unwrap();
        let plan = scan.plan().unwrap();
        plan.manifests.iter().map(|m| total(&m.entries.record_count)).sum()
    }

    /// Files of the metadata folder that no snapshot uses and that are not metadata files.
    fn orphans(&self) -> Vec<String> {
        let metadata = self.metadata();
        let mut used = BTreeSet::new();
        for snapshot in metadata.snapshots() {
            used.insert(snapshot.manifest_list().unwrap().to_owned());
            let manifests = icefield_table::snapshot::manifests::of_snapshot(
                &self.storage,
                &metadata,
                snapshot,
                &Default::default(),
            );
            used.extend(manifests.unwrap().into_iter().map(|manifest| manifest.manifest_path));
        }
        let all = self.storage.list(&format!("{}/metadata", self.root)).unwrap();
        let all = all.into_iter().map(|entry| entry.path).filter(|path| path.ends_with(".avro"));
        all.filter(|path| !used.contains(path)).collect()
    }

    fn check_line(&self, snapshots: usize) {
        let metadata = self.metadata();
        assert_eq!(metadata.snapshots().len(), snapshots);
        let current = metadata.current_snapshot_id().unwrap();
        assert_eq!(metadata.ancestors(current).count(), snapshots, "the ancestry is one line");
    }
}

fn total(counts: &Int64Array) -> i64 {
    counts.values().iter().sum()
}

#[test]
fn appends_of_every_version() {
    for version in ["1", "2", "3"] {
        let table = Table::create("versions", &[("format-version", version)]);
        for round in 0..3 {
            let appended = table.append(&[1, 2, 3, 4]).unwrap();
            let metadata = appended.table.metadata();
            assert_eq!((metadata.current_snapshot_id(), appended.rows), (appended.snapshot_id, 4));
            let snapshot = metadata.current_snapshot().unwrap();
            let summary = snapshot.summary.as_ref().unwrap();
            for (name, value) in [
                ("operation", "append".to_owned()),
                ("added-records", "4".to_owned()),
                ("total-records", (4 * (round + 1)).to_string()),
                ("changed-partition-count", "2".to_owned()),
                ("manifests-created", "1".to_owned()),
                ("manifests-kept", round.to_string()),
            ] {
                assert_eq!(summary.get(name), Some(value.as_str()), "v{version} {name}");
            }
            assert_eq!(snapshot.sequence_number, if version == "1" { 0 } else { round + 1 });
            let row_ids = (version == "3").then_some((4 * round, 4));
            assert_eq!(snapshot.first_row_id.zip(snapshot.added_rows), row_ids);
            assert_eq!(metadata.next_row_id(), if version == "3" { 4 * (round + 1) } else { 0 });
        }
        assert_eq!(table.rows(), 12);
        table.check_line(3);
        assert!(table.orphans().is_empty());
    }
}

#[test]
fn manifests_are_merged_when_there_are_enough() {
    let table = Table::create("merge", &[("commit.manifest.min-count-to-merge", "3"), ("format-version", "3")]);
    for round in 0..7_i64 {
        table.append(&[round]).unwrap();
        let metadata = table.metadata();
        let snapshot = metadata.current_snapshot().unwrap().clone();
        let manifests =
            icefield_table::snapshot::manifests::of_snapshot(&table.storage, &metadata, &snapshot, &Default::default())
                .unwrap();
        assert!(manifests.len() < 3, "{}", manifests.len());
        assert_eq!(
            manifests.iter().map(|m| m.added_rows_count.unwrap() + m.existing_rows_count.unwrap()).sum::<i64>(),
            round + 1
        );
    }
    assert_eq!(table.rows(), 7);
    assert!(table.orphans().is_empty(), "{:?}", table.orphans());
}

#[test]
fn branches_and_staged_snapshots_leave_main_alone() {
    let table = Table::create("branch", &[]);
    table.append(&[1]).unwrap();
    let options = SnapshotOptions { branch: "audit".into(), ..SnapshotOptions::default() };
    table.append_files(table.files(&[2, 3]), options).unwrap();
    let staged = SnapshotOptions { stage_only: true, ..SnapshotOptions::default() };
    table.append_files(table.files(&[4]), staged).unwrap();
    assert_eq!(table.rows(), 1);
    let metadata = table.metadata();
    let audit = metadata.snapshot(metadata.reference("audit").unwrap().snapshot_id).unwrap();
    assert_eq!(audit.summary.as_ref().unwrap().get("total-records"), Some("3"), "a branch begins at main");
    assert_eq!(metadata.snapshots().len(), 3);
}

#[test]
fn appends_at_once_all_land() {
    let table = Table::create("at-once", &[("format-version", "3")]);
    std::thread::scope(|scope| {
        for thread in 0..8_i64 {
            let table = &table;
            scope.spawn(move || (0..6).for_each(|round| drop(table.append(&[thread * 100 + round]).unwrap())));
        }
    });
    assert_eq!(table.rows(), 48);
    table.check_line(48);
    assert!(table.orphans().is_empty(), "{:?}", table.orphans());
    assert_eq!(table.metadata().next_row_id(), 48);
}

#[test]
fn outcomes_are_told_apart() {
    let table = Table::create("outcomes", &[("commit.retry.num-retries", "2")]);
    table.append(&[1]).unwrap();
    let cases: [(&[Mood], bool, usize); 7] = [
        (&[Mood::Conflict, Mood::Conflict], true, 2),
        (&[Mood::Conflict, Mood::Conflict, Mood::Conflict], false, 2),
        (&[Mood::AppliedButLost], true, 3),
        (&[Mood::Lost, Mood::Conflict], false, 3),
        (&[Mood::AppliedButLost, Mood::Conflict], true, 4),
        (&[Mood::Twice], true, 5),
        (&[Mood::Twice, Mood::Conflict, Mood::Conflict], true, 6),
    ];
    for (number, (moods, lands, snapshots)) in cases.into_iter().enumerate() {
        *table.catalog.moods.lock().unwrap() = moods.to_vec();
        let result = table.append(&[2]);
        assert_eq!(result.is_ok(), lands, "case {number}: {result:?}");
        table.check_line(snapshots);
        match result {
            Err(Error::CommitStateUnknown { commit, .. }) => {
                assert!(moods.contains(&Mood::Lost) && commit.snapshot_id.is_some());
                assert!(table.orphans().iter().all(|path| commit.files.contains(path) || path.ends_with(".json")));
                assert!(!table.orphans().is_empty(), "nothing was deleted");
            }
            Err(Error::CommitFailed(_)) => assert!(table.orphans().is_empty()),
            other => assert!(other.is_ok(), "{other:?}"),
        }
    }
}

/// A refusal is certain only if the table was read afterwards and does not contain the commit.
#[test]
fn a_refusal_deletes_nothing_while_the_table_cannot_be_read() {
    let table = Table::create("unread", &[("commit.status-check.num-retries", "1")]);
    *table.catalog.moods.lock().unwrap() = vec![Mood::TwiceThenUnread];
    let result = table.append(&[1]);
    assert!(matches!(result, Err(Error::CommitStateUnknown { .. })), "{result:?}");
    table.catalog.unread.store(false, Ordering::Relaxed);
    table.check_line(1);
    assert_eq!(table.rows(), 1);
}

/// A conflict is an error if the retry properties are invalid, instead of guessing the number of retries. A commit
/// without a conflict does not need these properties, so a commit that corrects them succeeds.
#[test]
fn a_lost_commit_refuses_retry_properties_that_cannot_be_read() {
    let expected = "an integer of at least 0";
    for (name, value) in [
        ("commit.retry.num-retries", "often"),
        ("commit.retry.min-wait-ms", "-1"),
        ("commit.retry.max-wait-ms", "1.5"),
        ("commit.retry.total-timeout-ms", ""),
    ] {
        let table = Table::create("unreadable", &[]);
        let set = |value: &str| MetadataUpdate::SetProperties {
            updates: [(name.to_owned(), value.to_owned())].into_iter().collect(),
        };
        table.set_elsewhere(name, value);
        table.append(&[1]).unwrap();
        table.catalog.moods.lock().unwrap().push(Mood::Conflict);
        let refused = table.append(&[2]).unwrap_err();
        assert_eq!(refused.to_string(), format!("table property '{name}': expected {expected}, got '{value}'"));
        assert!(table.orphans().is_empty(), "{:?}", table.orphans());
        table.update(set("7")).unwrap();
        table.catalog.moods.lock().unwrap().push(Mood::Conflict);
        table.append(&[3]).unwrap();
        assert_eq!(table.rows(), 2);
    }
}

#[test]
fn a_failure_at_any_step_leaves_the_table_as_before_or_after() {
    for fault in [Fault::Error, Fault::LostReply, Fault::Killed] {
        for step in 0.. {
            let table = Table::create("faults", &[("commit.manifest.min-count-to-merge", "2")]);
            table.append(&[1]).unwrap();
            let files = table.files(&[2, 3]);
            let plan = FaultPlan::new(step, fault);
            let storage = table.storage.with_faults(plan.clone());
            let result = table.open(&storage).append_files(files, SnapshotOptions::default());
            let landed = result.is_ok();
            assert_eq!(table.rows(), if landed { 3 } else { 1 }, "{fault:?} at {step}");
            table.check_line(if landed { 2 } else { 1 });
            if fault == Fault::Error && !landed {
                assert!(table.orphans().is_empty(), "step {step}: {:?}", table.orphans());
            }
            if plan.steps() <= step {
                assert!(landed);
                break;
            }
        }
    }
}

#[test]
fn updates_of_metadata_go_the_same_way() {
    let table = Table::create(
        "updates",
        &[("write.metadata.previous-versions-max", "2"), ("write.metadata.delete-after-commit.enabled", "true")],
    );
    for round in 0..5 {
        let updates: StringMap = [("round".to_owned(), round.to_string())].into_iter().collect();
        let committed = table.update(MetadataUpdate::SetProperties { updates }).unwrap();
        assert_eq!(committed.metadata.property("round"), Some(round.to_string().as_str()));
    }
    assert_eq!(table.metadata().metadata_log().len(), 2);
    let left = table.storage.list(&format!("{}/metadata", table.root)).unwrap();
    assert_eq!(left.len(), 3, "{left:?}");
}

/// A table that replaced another one, with the same name and folder, is left alone.
#[test]
fn a_table_that_took_the_place_of_another_is_left_alone() {
    let table = Table::create("replaced", &[]);
    table.append(&[1]).unwrap();
    let files = table.files(&[2]);
    let written = |table: &Table| -> Vec<String> {
        table.storage.list(&table.root).unwrap().into_iter().map(|entry| entry.path).collect()
    };
    // The first attempt fails because of the table that replaces this one.
    let definition = TableDefinition {
        schema: Schema::new(0, vec![Field::required(1, "s", PrimitiveType::String)]).unwrap(),
        partition_spec: PartitionSpec::default(),
        sort_order: SortOrder::default(),
        location: table.root.clone(),
        properties: StringMap::new(),
    };
    let other = create(&table.storage, &definition).unwrap();
    table.catalog.location.lock().unwrap().clone_from(&other.location);
    let before = written(&table);
    let uuids =
        [table.opened.metadata.table_uuid().unwrap().to_owned(), other.metadata.table_uuid().unwrap().to_owned()];
    let property = MetadataUpdate::SetProperties { updates: [("a".to_owned(), "b".to_owned())].into_iter().collect() };
    for failure in
        [table.append_files(files, SnapshotOptions::default()).unwrap_err(), table.update(property).unwrap_err()]
    {
        assert!(matches!(failure, Error::TableReplaced { .. }), "{failure}");
        assert!(uuids.iter().all(|uuid| failure.to_string().contains(uuid)), "{failure}");
    }
    assert_eq!(written(&table), before);
    assert_eq!(*table.catalog.location.lock().unwrap(), other.location);
}

/// A clock that is behind the last commit, even by a year, does not prevent commits: they get the time of the last
/// commit.
#[test]
fn a_clock_that_is_behind_stops_nothing() {
    let table = Table::create("clock", &[]);
    table.append(&[1]).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&table.metadata().to_json()).unwrap();
    let year_ms = 365 * 24 * 3_600_000_i64;
    let ahead = document["last-updated-ms"].as_i64().unwrap() + year_ms;
    document["last-updated-ms"] = ahead.into();
    document["snapshots"][0]["timestamp-ms"] = ahead.into();
    document["snapshot-log"][0]["timestamp-ms"] = ahead.into();
    let location = format!("{}/metadata/00002-ahead.metadata.json", table.root);
    table.storage.put(&location, document.to_string(), Existing::Refuse).unwrap();
    *table.catalog.location.lock().unwrap() = location;
    let first = table.metadata().current_snapshot_id().unwrap();

    let appended = table.append(&[2]).unwrap();
    let metadata = appended.table.metadata();
    assert_eq!(metadata.snapshot(appended.snapshot_id.unwrap()).unwrap().timestamp_ms, ahead);
    let rollback = metadata.set_current(first).unwrap();
    let property = MetadataUpdate::SetProperties { updates: [("a".to_owned(), "b".to_owned())].into_iter().collect() };
    for update in [rollback, property] {
        table.update(update).unwrap();
    }
    let left = table.metadata();
    assert_eq!(left.last_updated_ms(), ahead);
    assert_eq!(left.snapshot_log().iter().map(|entry| entry.timestamp_ms).collect::<Vec<_>>(), [ahead; 3]);
    assert!(left.metadata_log().iter().all(|entry| entry.timestamp_ms <= ahead));
}
