//! Checks of the table at the end of every schedule, before and after a clean-up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::retention::ExpireSnapshots;
use icefield_table::Table;
use icefield_table::commit::PointerCatalog;
use icefield_table::maintain::expire::{Cleanup, External, expire};

use crate::client::{Client, Message};
use crate::contents::Live;
use crate::schedule::{Ended, Now, Schedule, Wrong};

type Checked = Result<(), Wrong>;

/// Checks a schedule that has ended.
pub fn check(schedule: &Arc<Schedule>) -> Checked {
    if let Some(wrong) = schedule.now.lock().unwrap().wrong.take() {
        return Err(wrong);
    }
    check_told(schedule)?;
    check_table(schedule)?;
    if schedule.committed().metadata.snapshots().is_empty() {
        return Ok(());
    }
    schedule.tell("the table is cleaned up".to_owned());
    schedule.begin(usize::MAX);
    let client = Client::new(schedule.clone(), Message::Sound, None, i64::MAX);
    let catalog = PointerCatalog::new(schedule.storage.clone(), Arc::new(client));
    let table = Table::new(schedule.storage.clone(), Arc::new(catalog), schedule.committed());
    let request = ExpireSnapshots { older_than_ms: Some(i64::MAX), retain_last: Some(1), ..ExpireSnapshots::default() };
    expire(&table, request, Cleanup::All, External::default()).map_err(|error| format!("the clean-up: {error}"))?;
    schedule.began_ms.lock().unwrap().clear();
    check_table(schedule)?;
    schedule.tell("orphans are removed".to_owned());
    schedule.begin(usize::MAX);
    let removed = schedule.remove_orphans(&table, schedule.oldest_ms());
    removed.map_err(|error| format!("the removal of orphans: {error}"))?;
    schedule.now.lock().unwrap().wrong.take().map_or(Ok(()), Err)?;
    check_table(schedule)
}

/// Each snapshot has the expected rows; all of its files exist, and no others.
fn check_table(schedule: &Schedule) -> Checked {
    let contents = schedule.contents.lock().unwrap();
    let now = schedule.now.lock().unwrap();
    let metadata = &now.metadata;
    let all = schedule.storage.list(&schedule.root).map_err(|error| error.to_string())?;
    let all: BTreeSet<String> = all.into_iter().map(|entry| entry.path).collect();
    let mut named = BTreeSet::new();
    for snapshot in metadata.snapshots() {
        let expected = &now.snapshots[&snapshot.snapshot_id];
        let number = expected.number;
        let named_here = schedule.named(metadata, Some(snapshot))?;
        let live = &named_here.live;
        let found = live.all(&contents);
        if found != expected.rows {
            return Err(format!("after {number}: expected the rows {:?}, found {found:?}", expected.rows));
        }
        check_vectors(live)?;
        check_row_ids(schedule, live)?;
        let files = || live.data.iter().chain(&live.deletes).map(|(file, _)| file.file_path.clone());
        let used = || files().chain(named_here.metadata.iter().cloned());
        if let Some(missing) = used().find(|path| !all.contains(path)) {
            return Err(format!("after {number}: {missing} was deleted"));
        }
        named.extend(used().chain(named_here.removed.iter().cloned()));
    }
    if !*schedule.is_untidy.lock().unwrap() {
        let is_metadata = |path: &&String| path.ends_with(".json");
        let left: Vec<&String> = all.difference(&named).filter(|path| !is_metadata(path)).collect();
        if !left.is_empty() {
            return Err(format!("files that no snapshot uses are left over: {left:?}"));
        }
        check_metadata(&now, metadata, &all)?;
    }
    Ok(())
}

/// Metadata files of rejected swaps are deleted.
fn check_metadata(now: &Now, metadata: &TableMetadata, all: &BTreeSet<String>) -> Checked {
    let logged = metadata.metadata_log().iter().map(|entry| &entry.metadata_file);
    let named: BTreeSet<&String> = logged.chain([&now.location]).collect();
    match all.iter().find(|path| path.ends_with(".json") && !named.contains(path)) {
        Some(path) => Err(format!("{path} is left over")),
        None => Ok(()),
    }
}

/// Writers got the right outcome of their changes, and no change was applied twice.
fn check_told(schedule: &Schedule) -> Checked {
    let now = schedule.now.lock().unwrap();
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    let made = schedule.made.lock().unwrap();
    let picked = |number: usize| matches!(made[number], Some(ref made) if !made.change.is_snapshot());
    now.snapshots.values().for_each(|snapshot| *times.entry(snapshot.number).or_default() += 1);
    for (number, made) in made.iter().enumerate().filter(|(number, _)| !picked(*number)) {
        let Some(made) = made else { continue };
        let (staged, parts) = (made.change.is_staged(), made.parts.len().max(1));
        let snapshots = times.get(&number).copied().unwrap_or(0);
        if snapshots % parts != 0 {
            return Err(format!("{number} has {snapshots} snapshots, and {parts} parts"));
        }
        match (made.ended, snapshots / parts) {
            (Some(Ended::Landed), 1) | (Some(Ended::Failed) | None, 0) | (Some(Ended::Unknown), 0 | 1) => {}
            // Once as a staged snapshot, and once cherry-picked; never twice in one branch.
            (Some(Ended::Landed | Ended::Unknown), 2) if staged => {}
            (ended, times) => return Err(format!("{number} was told {ended:?}, and is in the table {times} times")),
        }
    }
    Ok(())
}

/// Each data file has at most one vector, and each vector belongs to a live file.
fn check_vectors(live: &Live) -> Checked {
    let mut seen = BTreeSet::new();
    for (vector, _) in live.deletes.iter().filter(|(file, _)| file.file_format == "PUFFIN") {
        let of = vector.referenced_data_file.clone().unwrap();
        if !live.data.iter().any(|(file, _)| file.file_path == of) {
            return Err(format!("{of} has a deletion vector, and is not in the table"));
        }
        if !seen.insert(of.clone()) {
            return Err(format!("{of} has two deletion vectors"));
        }
    }
    Ok(())
}

/// No two rows have the same row id.
fn check_row_ids(schedule: &Schedule, live: &Live) -> Checked {
    if schedule.version < 3 {
        return Ok(());
    }
    let mut ranges = BTreeMap::new();
    for (file, _) in &live.data {
        let first = file.first_row_id.ok_or_else(|| format!("{} has no first row id", file.file_path))?;
        if let Some(other) = ranges.insert(first, (first + file.record_count, &file.file_path)) {
            return Err(format!("{} and {} begin with one row id", other.1, file.file_path));
        }
    }
    let mut end = 0;
    for (first, (next, path)) in ranges {
        if first < end {
            return Err(format!("{path} has row ids of another file"));
        }
        end = next;
    }
    Ok(())
}
