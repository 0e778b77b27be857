//! Checks the snapshots of branches and tags as a whole: files listed twice, deletion vectors and their data files,
//! ranges of row ids, totals in summaries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Mutex;

use icefield_format::manifest::{Entries, FileContent, FileFormat, ManifestEntry, Metrics, Status};
use icefield_format::metadata::Snapshot;

use super::context::{Check, OF_A_HASH};
use super::listed::{Listed, listed, read};
use crate::error::Result;
use crate::snapshot::parallel::{locked, side_by_side};

/// A live data file.
struct Data {
    rows: i64,
    first_row_id: Option<i64>,
}

/// A live deletion vector.
struct Vector {
    path: String,
    manifest: String,
    target: String,
    rows: i64,
}

#[derive(Default)]
struct Live {
    data: HashMap<u64, Data>,
    deletes: HashSet<u64>,
    vectors: Vec<Vector>,
    totals: BTreeMap<&'static str, i64>,
    is_whole: bool,
}

pub(super) fn check(check: &Check<'_>) -> Result<()> {
    let mut done = HashSet::new();
    let heads = check.metadata.all_refs().map(|(_, head)| head.snapshot_id);
    let heads = heads.chain(check.metadata.current_snapshot_id());
    for snapshot in heads.filter_map(|id| check.metadata.snapshot(id)) {
        if done.insert(snapshot.snapshot_id) && check.goes_on() {
            check_snapshot(check, snapshot)?;
        }
    }
    Ok(())
}

fn check_snapshot(check: &Check<'_>, snapshot: &Snapshot) -> Result<()> {
    let live = Mutex::new(Live { is_whole: true, ..Live::default() });
    let mut manifests = listed(check, snapshot, false);
    let mut known = HashSet::new();
    // A manifest that is listed twice is a finding of its own.
    manifests.retain(|manifest| known.insert(manifest.file.manifest_path.clone()));
    if manifests.is_empty() && snapshot.manifest_list().is_some_and(|list| !check.storage.exists(list).unwrap_or(false))
    {
        return Ok(());
    }
    let failed: Mutex<Option<crate::Error>> = Mutex::new(None);
    side_by_side(check.storage, check.metadata.location(), &manifests, |manifest| {
        if !check.goes_on() || locked(&failed).is_some() {
            return;
        }
        match read(check, manifest, Metrics::none()) {
            Ok((_, entries)) => {
                if let Err(error) = add(check, manifest, &entries, &live) {
                    *locked(&failed) = Some(error);
                }
            }
            // It is a finding already, and what it lists is not known.
            Err(_) => locked(&live).is_whole = false,
        }
    });
    if let Some(error) = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(error);
    }
    let live = live.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    check_vectors(check, &live);
    if live.is_whole {
        check_row_ids(check, snapshot, &live);
        check_totals(check, snapshot, &live);
    }
    Ok(())
}

fn add(check: &Check<'_>, manifest: &Listed, entries: &Entries, live: &Mutex<Live>) -> Result<()> {
    for row in 0..entries.len() {
        if entries.status_of(row)? == Status::Deleted {
            continue;
        }
        // An entry that cannot be read is a finding already.
        let Ok(entry) = entries.entry(row, manifest.file.partition_spec_id) else { continue };
        locked(&check.state).held.keep(2 * OF_A_HASH + size_of::<Data>())?;
        let path = &manifest.file.manifest_path;
        let is_first = locked(live).add(check, path, &entry);
        if !is_first {
            check.at(&entry.file.file_path, path).error(
                "file-listed-twice",
                "file_path",
                "once",
                "twice in a snapshot",
            );
        }
    }
    Ok(())
}

impl Live {
    /// Adds a file; returns whether it was not listed before.
    fn add(&mut self, check: &Check<'_>, manifest: &str, entry: &ManifestEntry) -> bool {
        let file = &entry.file;
        let mut count = |name: &'static str, by: i64| {
            let total = self.totals.entry(name).or_default();
            *total = total.saturating_add(by);
        };
        count("total-files-size", file.content_size_in_bytes.unwrap_or(file.file_size_in_bytes));
        match file.content {
            FileContent::Data => {
                count("total-data-files", 1);
                count("total-records", file.record_count);
                let data = Data { rows: file.record_count, first_row_id: file.first_row_id };
                return self.data.insert(check.hash.hash_one(&file.file_path), data).is_none();
            }
            FileContent::PositionDeletes => {
                count("total-delete-files", 1);
                count("total-position-deletes", file.record_count);
            }
            FileContent::EqualityDeletes => {
                count("total-delete-files", 1);
                count("total-equality-deletes", file.record_count);
            }
        }
        if file.format() == Some(FileFormat::Puffin)
            && let Some(target) = &file.referenced_data_file
        {
            self.vectors.push(Vector {
                path: file.file_path.clone(),
                manifest: manifest.to_owned(),
                target: target.clone(),
                rows: file.record_count,
            });
        }
        self.deletes.insert(check.hash.hash_one((&file.file_path, file.content_offset)))
    }
}

fn check_vectors(check: &Check<'_>, live: &Live) {
    let mut known = HashSet::new();
    for vector in &live.vectors {
        let at = check.at(&vector.path, &vector.manifest);
        if !known.insert(&vector.target) {
            at.error("vector-twice", "referenced_data_file", "one vector a data file", &vector.target);
        }
        match live.data.get(&check.hash.hash_one(&vector.target)) {
            Some(data) if vector.rows > data.rows => {
                at.error(
                    "vector-rows",
                    "record_count",
                    format!("at most {} rows of its data file", data.rows),
                    vector.rows,
                );
            }
            None if live.is_whole => {
                at.warning("vector-dangling", "referenced_data_file", "a data file of the snapshot", &vector.target);
            }
            _ => {}
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
