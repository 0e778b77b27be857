//! Micro-batches of a stream: the files in them, with any limits, and changes that a stream cannot represent.

use std::sync::Arc;

use icefield_format::avro::Compression;
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, ManifestContent, ManifestEntry, ManifestFile, Status};
use icefield_format::metadata::{
    MetadataBuilder, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests, SnapshotRef, Summary,
    TableDefinition, TableMetadata,
};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_table::operation::create::create;
use icefield_table::plan::Scan;
use icefield_table::plan::incremental::micro_batch::{Offset, ReadLimit, Stream};
use icefield_table::storage::{Existing, Storage};
use proptest::prelude::*;

use crate::planning::world::{file, schema};

/// A table and its history.
struct History {
    storage: Storage,
    metadata: Arc<TableMetadata>,
    manifests: Vec<ManifestFile>,
    /// Files that `append` snapshots added, in the order of a stream, with their numbers of rows.
    appended: Vec<(String, u64)>,
    /// The number of files.
    paths: usize,
}

impl History {
    fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let storage = Storage::default();
        let definition = TableDefinition {
            schema: schema(),
            partition_spec: PartitionSpec::unpartitioned(),
            sort_order: SortOrder::unsorted(),
            location: format!("memory://stream-{number}/t"),
            properties: [("format-version".to_owned(), "2".to_owned())].into_iter().collect(),
        };
        let metadata = create(&storage, &definition).unwrap().metadata;
        Self { storage, metadata, manifests: Vec::new(), appended: Vec::new(), paths: 0 }
    }

    /// Commits a snapshot that adds files in some manifests; `merge` merges the newest older manifest into the first of
    /// them.
    fn commit(&mut self, operation: Operation, files: &[usize], merge: bool) -> i64 {
        let id = 100 + i64::try_from(self.metadata.snapshots().len()).unwrap();
        let is_append = operation == Operation::Append;
        let mut new = Vec::new();
        for (place, count) in files.iter().enumerate() {
            let path = format!("{}/metadata/{id}-{place}.avro", self.metadata.location());
            let mut writer = self.writer(id);
            if merge && place == 0 && !self.manifests.is_empty() {
                let existing = unpartitioned(format!("existing-of-{id}"));
                let number = Some(1);
                writer
                    .add(&ManifestEntry {
                        status: Status::Existing,
                        snapshot_id: Some(id - 1),
                        sequence_number: number,
                        file_sequence_number: number,
                        file: existing,
                    })
                    .unwrap();
            }
            for _ in 0..*count {
                let mut added = unpartitioned(format!("file-{:03}", self.paths));
                added.record_count = i64::try_from(1 + self.paths % 7).unwrap();
                self.paths += 1;
                if is_append {
                    self.appended.push((added.file_path.clone(), added.record_count.unsigned_abs()));
                }
                let entry = ManifestEntry {
                    status: Status::Added,
                    snapshot_id: Some(id),
                    sequence_number: None,
                    file_sequence_number: None,
                    file: added,
                };
                writer.add(&entry).unwrap();
            }
            if *count > 0 {
                let (bytes, mut described) = writer.finish(&path).unwrap();
                (described.sequence_number, described.min_sequence_number) = (id - 99, 1);
                self.storage.put(&path, bytes, Existing::Refuse).unwrap();
                new.push(described);
            }
        }
        new.extend(self.manifests.clone());
        self.manifests = new;
        self.add_snapshot(id, operation);
        id
    }

    fn writer(&self, id: i64) -> ManifestWriter {
        ManifestWriter::new(ManifestOptions {
            format_version: 2,
            content: ManifestContent::Data,
            schema: &schema(),
            spec: &PartitionSpec::unpartitioned(),
            snapshot_id: id,
            first_row_id: None,
            compression: Compression::default(),
            sync: [7; 16],
        })
        .unwrap()
    }

    fn add_snapshot(&mut self, id: i64, operation: Operation) {
        let parent = self.metadata.current_snapshot_id();
        let mut list = ListWriter::new(ListOptions {
            format_version: 2,
            snapshot_id: id,
            parent_snapshot_id: parent,
            sequence_number: id - 99,
            first_row_id: None,
            compression: Compression::default(),
            sync: [1; 16],
        })
        .unwrap();
        self.manifests.iter().for_each(|manifest| list.add(manifest).unwrap());
        let path = format!("{}/metadata/snap-{id}.avro", self.metadata.location());
        self.storage.put(&path, list.finish().unwrap().bytes, Existing::Refuse).unwrap();
        let snapshot = Snapshot {
            snapshot_id: id,
            parent_snapshot_id: parent,
            sequence_number: id - 99,
            timestamp_ms: self.metadata.last_updated_ms() + 10,
            summary: Some(Summary { operation, properties: [].into_iter().collect() }),
            manifests: SnapshotManifests::List(path),
            schema_id: Some(0),
            first_row_id: None,
            added_rows: None,
            key_id: None,
            unknown: serde_json::Map::new(),
        };
        let unknown = serde_json::Map::new();
        let reference = SnapshotRef { snapshot_id: id, kind: RefKind::BRANCH, max_ref_age_ms: None, unknown };
        let at = snapshot.timestamp_ms;
        self.apply(
            at,
            [
                MetadataUpdate::AddSnapshot { snapshot: snapshot.into() },
                MetadataUpdate::SetSnapshotRef { ref_name: "main".to_owned(), reference },
            ],
        );
    }

    fn apply<const N: usize>(&mut self, at: i64, updates: [MetadataUpdate; N]) {
        let builder = MetadataBuilder::from_base(&self.metadata, at).apply_all(updates).unwrap();
        self.metadata = Arc::new(builder.build().unwrap());
    }

    fn latest(&self, stream: &Stream, start: Offset, limit: ReadLimit) -> icefield_table::Result<Offset> {
        stream.latest(&self.storage, &self.metadata, start, limit, None)
    }

    fn files(&self, stream: &Stream, start: Offset, end: Offset) -> icefield_table::Result<Vec<String>> {
        let plan = Scan::micro_batch(&self.storage, &self.metadata, stream, start, end)?.plan()?;
        let paths = |manifest: &icefield_table::plan::PlannedManifest| {
            manifest.entries.file_path.iter().flatten().map(str::to_owned).collect::<Vec<_>>()
        };
        let files: Vec<String> = plan.manifests.iter().flat_map(paths).collect();
        assert_eq!(plan.report.result_data_files, files.len());
        assert_eq!(plan.report.total_file_size_in_bytes, 1000 * i64::try_from(files.len()).unwrap());
        Ok(files)
    }

    /// Reads batches until there are no new files.
    fn batches(&self, stream: &Stream, mut start: Offset, limit: ReadLimit) -> Vec<(Offset, Vec<String>)> {
        let mut found = Vec::new();
        loop {
            let end = self.latest(stream, start, limit).unwrap();
            if end == start {
                return found;
            }
            found.push((end, self.files(stream, start, end).unwrap()));
            start = end;
        }
    }
}

fn unpartitioned(path: String) -> DataFile {
    DataFile { partition_spec_id: 0, ..file(path, 1, 0) }
}

fn skipping() -> Stream {
    Stream { skip_deletes: true, skip_overwrites: true, ..Stream::default() }
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        5 => Just(Operation::Append),
        1 => Just(Operation::Replace),
        1 => Just(Operation::Overwrite),
        1 => Just(Operation::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// With any limits, batches contain every appended file once and in order. Each batch is as large as the limits
    /// allow, and planning again from any offset gives the same rest.
    #[test]
    fn batches_hold_every_appended_file_once(
        commits in prop::collection::vec((operation(), prop::collection::vec(0usize..4, 0..3), any::<bool>()), 0..7),
        files in 1u64..6,
        rows in 1u64..20,
        limited in 0..4,
    ) {
        let mut history = History::new();
        for (operation, counts, merge) in commits {
            history.commit(operation, &counts, merge);
        }
        let limit = ReadLimit {
            files: if limited & 1 == 0 { u64::MAX } else { files },
            rows: if limited & 2 == 0 { u64::MAX } else { rows },
        };
        let stream = skipping();
        let batches = history.batches(&stream, Offset::START, limit);
        let read: Vec<String> = batches.iter().flat_map(|(_, files)| files.clone()).collect();
        let all: Vec<String> = history.appended.iter().map(|(path, _)| path.clone()).collect();
        prop_assert_eq!(&read, &all);
        let mut sizes = history.appended.iter().map(|(_, rows)| *rows);
        for (place, (_, files)) in batches.iter().enumerate() {
            let counts: Vec<u64> = sizes.by_ref().take(files.len()).collect();
            let before: u64 = counts.iter().rev().skip(1).sum();
            prop_assert!(u64::try_from(files.len()).unwrap() <= limit.files);
            prop_assert!(files.is_empty() || before < limit.rows, "a file too many: {counts:?}");
            let full = u64::try_from(files.len()).unwrap() == limit.files || counts.iter().sum::<u64>() >= limit.rows;
            prop_assert!(full || place + 1 >= batches.len() || batches[place + 1].1.is_empty(), "a file too few");
        }
        let mut rest = all.len();
        for (end, files) in &batches {
            rest -= files.len();
            let later = history.batches(&stream, *end, ReadLimit::default());
            let later: Vec<String> = later.into_iter().flat_map(|(_, files)| files).collect();
            prop_assert_eq!(&later[..], &all[all.len() - rest..]);
        }
    }
}

#[test]
fn an_empty_table_has_the_start() {
    let history = History::new();
    let stream = Stream::default();
    assert_eq!(stream.initial(&history.metadata).unwrap(), Offset::START);
    assert_eq!(history.latest(&stream, Offset::START, ReadLimit::default()).unwrap(), Offset::START);
    assert_eq!(history.files(&stream, Offset::START, Offset::START).unwrap(), Vec::<String>::new());
}

#[test]
fn a_stream_begins_with_the_first_snapshot_of_its_time() {
    let mut history = History::new();
    let ids: Vec<i64> = (0..3).map(|_| history.commit(Operation::Append, &[1], false)).collect();
    let time = |id: i64| history.metadata.snapshot(id).unwrap().timestamp_ms;
    for (from, first) in [
        (None, Some(ids[0])),
        (Some(0), Some(ids[0])),
        (Some(time(ids[1])), Some(ids[1])),
        (Some(time(ids[1]) + 1), Some(ids[2])),
        (Some(time(ids[2]) + 1), None),
    ] {
        let stream = Stream { from_timestamp: from, ..Stream::default() };
        let expected = first.map_or(Offset::START, |snapshot_id| Offset { snapshot_id, position: 0 });
        assert_eq!(stream.initial(&history.metadata).unwrap(), expected, "{from:?}");
        let count = first.map_or(0, |first| ids.iter().filter(|id| **id >= first).count());
        let end = history.latest(&stream, Offset::START, ReadLimit::default()).unwrap();
        assert_eq!(history.files(&stream, Offset::START, end).unwrap().len(), count);
    }
}

#[test]
fn a_stream_that_ends_goes_no_further() {
    let mut history = History::new();
    let first = history.commit(Operation::Append, &[2], false);
    history.commit(Operation::Append, &[1], false);
    let stream = Stream::default();
    let up_to = |last| stream.latest(&history.storage, &history.metadata, Offset::START, ReadLimit::default(), last);
    assert_eq!(up_to(Some(first)).unwrap(), Offset { snapshot_id: first, position: 2 });
    assert_eq!(up_to(Some(-1)).unwrap(), Offset::START);
    assert!(up_to(Some(5)).unwrap_err().to_string().contains("snapshot 5, the snapshot was expired or removed"));
}

#[test]
fn other_operations_are_errors_unless_they_are_skipped() {
    for (operation, option) in [
        (
            Operation::Delete,
            "cannot process delete snapshot: 101, to ignore deletes, set streaming-skip-delete-snapshots",
        ),
        (
            Operation::Overwrite,
            "cannot process overwrite snapshot: 101, to ignore overwrites, set streaming-skip-overwrite-snapshots",
        ),
        (Operation::Other("squash".to_owned()), "cannot process unknown snapshot operation: squash (snapshot id 101)"),
    ] {
        let mut history = History::new();
        history.commit(Operation::Append, &[1], false);
        let before = history.latest(&Stream::default(), Offset::START, ReadLimit::default()).unwrap();
        history.commit(operation.clone(), &[1], false);
        history.commit(Operation::Append, &[1], false);
        let error = history.latest(&Stream::default(), before, ReadLimit::default()).unwrap_err().to_string();
        assert!(error.contains(option), "{error}");
        let end = Offset { snapshot_id: 102, position: 1 };
        let error = history.files(&Stream::default(), before, end).unwrap_err().to_string();
        assert!(error.contains(option), "{error}");
        let skips = history.latest(&skipping(), before, ReadLimit::default());
        match operation {
            Operation::Other(_) => assert!(skips.is_err()),
            _ => assert_eq!(history.files(&skipping(), before, skips.unwrap()).unwrap(), ["file-002"]),
        }
    }
}

#[test]
fn a_start_that_is_gone_is_named() {
    let mut history = History::new();
    let first = history.commit(Operation::Append, &[1], false);
    let second = history.commit(Operation::Append, &[1], false);
    let stream = Stream::default();
    let (start, end) = (Offset { snapshot_id: first, position: 1 }, Offset { snapshot_id: second, position: 1 });
    let at = history.metadata.last_updated_ms();
    history.apply(at, [MetadataUpdate::RemoveSnapshots { snapshot_ids: vec![first] }]);
    let expected = format!("cannot load current offset at snapshot {first}, the snapshot was expired or removed");
    let latest = history.latest(&stream, start, ReadLimit::default());
    for error in [latest.unwrap_err(), history.files(&stream, start, end).unwrap_err()] {
        assert!(error.to_string().contains(&expected), "{error}");
    }
    // A batch that starts at the end is empty, whether the snapshot still exists or not.
    assert_eq!(history.files(&stream, start, start).unwrap(), Vec::<String>::new());
    assert_eq!(history.files(&stream, Offset { position: 0, ..end }, end).unwrap(), ["file-001"]);
}

#[test]
fn odd_offsets_and_limits_are_refused() {
    let mut history = History::new();
    history.commit(Operation::Append, &[1], false);
    for limit in [ReadLimit { files: 0, ..ReadLimit::default() }, ReadLimit { rows: 0, ..ReadLimit::default() }] {
        let error = history.latest(&Stream::default(), Offset::START, limit).unwrap_err();
        assert!(error.to_string().contains("must be positive"), "{error}");
    }
    assert!(Offset::stored(1, -1).unwrap_err().to_string().contains("invalid position -1"));
    assert_eq!(Offset::stored(-1, -1).unwrap(), Offset::START);
    let stream = Stream { branch: Some("b".to_owned()), ..Stream::default() };
    assert!(stream.initial(&history.metadata).unwrap_err().to_string().contains("no branch \"b\""));
}
