//! What must hold of the table at the end of every schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use icefield_format::metadata::Snapshot;

use crate::contents::{Live, Row};
use crate::schedule::{Ended, NUMBER, Schedule};

type Checked = Result<(), String>;

/// Checks a schedule that has ended.
pub fn check(schedule: &Schedule) -> Checked {
    let metadata = schedule.metadata();
    let line = line(&metadata)?;
    let numbers: Vec<usize> = line.iter().map(|snapshot| number(snapshot)).collect();
    check_told(schedule, &numbers)?;

    let contents = schedule.contents.lock().unwrap();
    let made = schedule.made.lock().unwrap();
    let mut expected: Vec<Row> = Vec::new();
    let mut used = BTreeSet::new();
    for (snapshot, number) in line.iter().zip(&numbers) {
        let live = Live::of(&schedule.storage, &metadata, Some(snapshot))?;
        let change =
            &made[*number].as_ref().ok_or_else(|| format!("{number} has committed and had nothing to do"))?.change;
        change.apply(*number, &mut expected);
        let found = live.all(&contents);
        if found != expected {
            return Err(format!("after {number}: expected the rows {expected:?}, found {found:?}"));
        }
        check_vectors(&live)?;
        check_row_ids(schedule, &live)?;
        used.extend(files_of(schedule, &metadata, snapshot));
    }
    if !*schedule.is_untidy.lock().unwrap() {
        let all = schedule.storage.list(&format!("{}/metadata", schedule.root)).unwrap();
        let left: Vec<String> = all
            .into_iter()
            .map(|entry| entry.path)
            .filter(|path| path.ends_with(".avro") && !used.contains(path))
            .collect();
        if !left.is_empty() {
            return Err(format!("files that no snapshot uses are left over: {left:?}"));
        }
    }
    Ok(())
}

/// The snapshots, which are one line.
fn line(metadata: &icefield_format::metadata::TableMetadata) -> Result<Vec<Arc<Snapshot>>, String> {
    let Some(current) = metadata.current_snapshot_id() else { return Ok(Vec::new()) };
    let mut line: Vec<Arc<Snapshot>> = metadata.ancestors(current).cloned().collect();
    line.reverse();
    match line.len() == metadata.snapshots().len() {
        true => Ok(line),
        false => Err(format!("{} of {} snapshots are in the line", line.len(), metadata.snapshots().len())),
    }
}

fn number(snapshot: &Snapshot) -> usize {
    snapshot.summary.as_ref().unwrap().get(NUMBER).unwrap().parse().unwrap()
}

/// Whether writers were told what happened, and nothing happened twice.
fn check_told(schedule: &Schedule, numbers: &[usize]) -> Checked {
    let times = |number| numbers.iter().filter(|landed| **landed == number).count();
    for (number, made) in schedule.made.lock().unwrap().iter().enumerate() {
        let Some(made) = made else { continue };
        match (made.ended, times(number)) {
            (Ended::Landed, 1) | (Ended::Failed, 0) | (Ended::Unknown, 0 | 1) => {}
            (ended, times) => return Err(format!("{number} was told {ended:?}, and is in the table {times} times")),
        }
    }
    Ok(())
}

/// One vector a data file, for a file that is there.
fn check_vectors(live: &Live) -> Checked {
    let mut seen = BTreeSet::new();
    for (vector, _) in live.deletes.iter().filter(|(file, _)| file.file_format == "PUFFIN") {
        let of = vector.referenced_data_file.clone().unwrap();
        if !seen.insert(of.clone()) {
            return Err(format!("{of} has two deletion vectors"));
        }
    }
    Ok(())
}

/// No row id is that of two rows.
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

/// The manifest list and the manifests of a snapshot.
fn files_of(
    schedule: &Schedule,
    metadata: &icefield_format::metadata::TableMetadata,
    snapshot: &Snapshot,
) -> Vec<String> {
    let manifests =
        icefield_table::snapshot::manifests::of_snapshot(&schedule.storage, metadata, snapshot, &Default::default());
    let manifests = manifests.unwrap().into_iter().map(|manifest| manifest.manifest_path);
    manifests.chain([snapshot.manifest_list().unwrap().to_owned()]).collect()
}
