//! Checks the snapshots of branches and tags as a whole: files listed twice, deletion vectors and their data files,
//! ranges of row ids, totals in summaries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use icefield_format::limits::Held;
use icefield_format::manifest::{Entries, FileContent, FileFormat, ManifestEntry, Metrics, Status};
use icefield_format::metadata::Snapshot;
use icefield_format::value::Value;

use super::context::{Check, OF_A_HASH};
use super::listed::{Listed, listed, read};
use crate::commit::ManifestKey;
use crate::error::{Error, Result};
use crate::snapshot::parallel::{locked, side_by_side};

/// As many bytes of manifests are kept for the other branches and tags, which mostly list the same ones.
const MOST_KEPT: usize = 128 << 20;

/// What is compared of a live file.
struct ComparedFile {
    /// The row of its entry, by which its path is found again.
    row: usize,
    /// Of its path, of a vector also of its offset.
    hash: u64,
    content: FileContent,
    rows: i64,
    size: i64,
    first_row_id: Option<i64>,
    sequence_number: Option<i64>,
    /// Of its spec and its partition.
    partition: u64,
    vector: Option<Box<Vector>>,
}

/// The paths of a deletion vector and of its data file.
struct Vector {
    path: String,
    target: String,
}

impl ComparedFile {
    fn of(check: &Check<'_>, row: usize, entry: &ManifestEntry) -> Self {
        let file = &entry.file;
        let is_vector = file.content != FileContent::Data && file.format() == Some(FileFormat::Puffin);
        let target = file.referenced_data_file.as_ref().filter(|_| is_vector);
        let vector = |target: &String| Box::new(Vector { path: file.file_path.clone(), target: target.clone() });
        let hash = match file.content {
            FileContent::Data => check.hash.hash_one(&file.file_path),
            _ => check.hash.hash_one((&file.file_path, file.content_offset)),
        };
        // Manifests from before a promotion have the older type.
        let widened = |value: &Option<Value>| match value {
            Some(Value::Int(number)) => Some(Value::Long(i64::from(*number))),
            Some(Value::Float(number)) => Some(Value::Double(f64::from(*number))),
            other => other.clone(),
        };
        let partition: Vec<Option<Value>> = file.partition.iter().map(widened).collect();
        Self {
            row,
            hash,
            content: file.content,
            rows: file.record_count,
            size: file.content_size_in_bytes.unwrap_or(file.file_size_in_bytes),
            first_row_id: file.first_row_id,
            sequence_number: entry.sequence_number,
            partition: check.hash.hash_one((file.partition_spec_id, format!("{partition:?}"))),
            vector: target.map(vector),
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() + self.vector.as_ref().map_or(0, |vector| vector.memory())
    }
}

impl Vector {
    fn memory(&self) -> usize {
        size_of::<Self>() + self.path.len() + self.target.len()
    }
}

/// Live files of manifests that several snapshots may list.
#[derive(Default)]
struct LiveFiles {
    files: HashMap<ManifestKey, Arc<Vec<ComparedFile>>>,
    bytes: usize,
}

/// A live data file.
struct Data {
    rows: i64,
    first_row_id: Option<i64>,
    sequence_number: Option<i64>,
    partition: u64,
}

/// A live deletion vector, by its manifest and its place in that.
struct LiveVector {
    manifest: usize,
    files: Arc<Vec<ComparedFile>>,
    place: usize,
}

struct Live {
    data: HashMap<u64, Data>,
    deletes: HashSet<u64>,
    vectors: Vec<LiveVector>,
    totals: BTreeMap<&'static str, i64>,
    is_whole: bool,
    held: Held,
}

pub(super) fn check(check: &Check<'_>) -> Result<()> {
    let (mut done, kept) = (HashSet::new(), Mutex::new(LiveFiles::default()));
    let current = check.metadata.current_snapshot_id();
    let others = check.metadata.all_refs().map(|(_, head)| head.snapshot_id);
    let heads = current.into_iter().chain(others.filter(|_| !check.options.only_current));
    for snapshot in heads.filter_map(|id| check.metadata.snapshot(id)) {
        if check.has_manifests(snapshot) && done.insert(snapshot.snapshot_id) && check.goes_on() {
            check_snapshot(check, snapshot, &kept)?;
        }
    }
    Ok(())
}

/// Checks one snapshot.
pub(super) fn check_one(check: &Check<'_>, snapshot: &Snapshot) -> Result<()> {
    check_snapshot(check, snapshot, &Mutex::default())
}

fn check_snapshot(check: &Check<'_>, snapshot: &Snapshot, kept: &Mutex<LiveFiles>) -> Result<()> {
    let live = Mutex::new(Live::new(check));
    let Some(mut manifests) = listed(check, snapshot, false) else { return Ok(()) };
    let mut known = HashSet::new();
    // A manifest that is listed twice is a finding of its own.
    manifests.retain(|manifest| known.insert(manifest.file.manifest_path.clone()));
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    let numbers: Vec<usize> = (0..manifests.len()).collect();
    side_by_side(check.storage, check.metadata.location(), &numbers, |number| {
        let Some(manifest) = manifests.get(*number) else { return };
        if !check.goes_on() || locked(&failed).is_some() {
            return;
        }
        match compared(check, manifest, kept) {
            Ok(files) => {
                if let Err(error) = add(check, *number, manifest, &files, &live) {
                    *locked(&failed) = Some(error);
                }
            }
            // It is a finding already, and what it lists is not known.
            Err(_) => locked(&live).is_whole = false,
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let live = live.into_inner().unwrap_or_else(PoisonError::into_inner);
    check_vectors(check, &manifests, &live);
    if live.is_whole {
        check_row_ids(check, snapshot, &live);
        check_totals(check, snapshot, &live);
    }
    Ok(())
}

/// The live files of a manifest.
fn compared(check: &Check<'_>, manifest: &Listed, kept: &Mutex<LiveFiles>) -> Result<Arc<Vec<ComparedFile>>> {
    let key = ManifestKey::of(&manifest.file);
    let known = locked(kept).files.get(&key).cloned();
    if let Some(known) = known {
        return Ok(known);
    }
    let (_, entries) = read(check, manifest, Metrics::none())?;
    let mut files = Vec::new();
    for row in 0..entries.len() {
        if entries.status_of(row)? == Status::Deleted {
            continue;
        }
        // An entry that cannot be read is a finding already.
        if let Ok(entry) = entries.entry(row, manifest.file.partition_spec_id) {
            files.push(ComparedFile::of(check, row, &entry));
        }
    }
    let bytes = files.iter().map(ComparedFile::memory).sum::<usize>();
    let files = Arc::new(files);
    let kept = &mut *locked(kept);
    if kept.bytes.saturating_add(bytes) <= MOST_KEPT {
        kept.bytes += bytes;
        kept.files.insert(key, files.clone());
    }
    Ok(files)
}

fn add(
    check: &Check<'_>,
    number: usize,
    manifest: &Listed,
    files: &Arc<Vec<ComparedFile>>,
    live: &Mutex<Live>,
) -> Result<()> {
    let mut twice = Vec::new();
    {
        let live = &mut *locked(live);
        for (place, file) in files.iter().enumerate() {
            live.held.keep(2 * OF_A_HASH + size_of::<Data>())?;
            if !live.add(number, files, place, file)? {
                twice.push(file.row);
            }
        }
    }
    if twice.is_empty() {
        return Ok(());
    }
    let (_, entries) = read(check, manifest, Metrics::none())?;
    for row in twice {
        let path = path_of(&entries, row);
        check.at(&path, &manifest.file.manifest_path).error(
            "file-listed-twice",
            "file_path",
            "once",
            "twice in a snapshot",
        );
    }
    Ok(())
}

fn path_of(entries: &Entries, row: usize) -> String {
    if row < entries.len() { entries.file_path.value(row).to_owned() } else { String::new() }
}

impl Live {
    fn new(check: &Check<'_>) -> Self {
        Self {
            data: HashMap::new(),
            deletes: HashSet::new(),
            vectors: Vec::new(),
            totals: BTreeMap::new(),
            is_whole: true,
            held: check.limits.held(),
        }
    }

    /// Adds a file; returns whether it was not listed before.
    fn add(
        &mut self,
        manifest: usize,
        files: &Arc<Vec<ComparedFile>>,
        place: usize,
        file: &ComparedFile,
    ) -> Result<bool> {
        let mut count = |name: &'static str, by: i64| {
            let total = self.totals.entry(name).or_default();
            *total = total.saturating_add(by);
        };
        count("total-files-size", file.size);
        match file.content {
            FileContent::Data => {
                count("total-data-files", 1);
                count("total-records", file.rows);
                let data = Data {
                    rows: file.rows,
                    first_row_id: file.first_row_id,
                    sequence_number: file.sequence_number,
                    partition: file.partition,
                };
                return Ok(self.data.insert(file.hash, data).is_none());
            }
            FileContent::PositionDeletes => {
                count("total-delete-files", 1);
                count("total-position-deletes", file.rows);
            }
            FileContent::EqualityDeletes => {
                count("total-delete-files", 1);
                count("total-equality-deletes", file.rows);
            }
        }
        if let Some(vector) = &file.vector {
            self.held.keep(size_of::<LiveVector>() + vector.memory())?;
            self.vectors.push(LiveVector { manifest, files: files.clone(), place });
        }
        Ok(self.deletes.insert(file.hash))
    }
}

fn check_vectors(check: &Check<'_>, manifests: &[Listed], live: &Live) {
    let mut known = HashSet::new();
    for one in &live.vectors {
        let (Some(file), Some(manifest)) = (one.files.get(one.place), manifests.get(one.manifest)) else { continue };
        let Some(vector) = &file.vector else { continue };
        let at = check.at(&vector.path, &manifest.file.manifest_path);
        let target = check.hash.hash_one(&vector.target);
        if !known.insert(target) {
            at.error("vector-twice", "referenced_data_file", "one vector a data file", &vector.target);
        }
        let Some(data) = live.data.get(&target) else {
            if live.is_whole {
                at.warning("vector-dangling", "referenced_data_file", "a data file of the snapshot", &vector.target);
            }
            continue;
        };
        if file.rows > data.rows {
            let expected = format!("at most {} rows of its data file", data.rows);
            at.error("vector-rows", "record_count", expected, file.rows);
        }
        // Deletes apply to rows that are not newer.
        if let (Some(number), Some(least)) = (file.sequence_number, data.sequence_number)
            && number < least
        {
            let expected = format!("at least {least}, that of its data file");
            at.error("vector-sequence-number", "sequence_number", expected, number);
        }
        if file.partition != data.partition {
            let expected = format!("that of its data file {}", vector.target);
            at.error("vector-partition", "partition", expected, "another spec or partition");
        }
    }
}

fn check_row_ids(check: &Check<'_>, snapshot: &Snapshot, live: &Live) {
    let range = |data: &Data| data.first_row_id.map(|first| (first, first.saturating_add(data.rows)));
    let mut ranges: Vec<(i64, i64)> = live.data.values().filter(|data| data.rows > 0).filter_map(range).collect();
    ranges.sort_unstable();
    let overlap = ranges.windows(2).find(|pair| matches!(pair, [(_, end), (first, _)] if first < end));
    if let Some([(_, end), (first, _)]) = overlap {
        let list = snapshot.manifest_list().unwrap_or(check.location);
        let expected = format!("at least {end}, after those of another file");
        check.at(list, check.location).error("row-ids-overlap", "first_row_id", expected, first);
    }
}

/// Compares the totals in the summary of the snapshot.
fn check_totals(check: &Check<'_>, snapshot: &Snapshot, live: &Live) {
    let Some(summary) = &snapshot.summary else { return };
    let at = check.at(check.location, check.location);
    for name in
        ["total-data-files", "total-delete-files", "total-records", "total-position-deletes", "total-equality-deletes"]
    {
        let found = summary.get(name).and_then(|text| text.parse::<i64>().ok());
        let expected = live.totals.get(name).copied().unwrap_or(0);
        if let Some(found) = found.filter(|found| *found != expected) {
            let field = format!("snapshots[snapshot-id={}].summary.{name}", snapshot.snapshot_id);
            at.warning("summary-total", &field, expected, found);
        }
    }
}
