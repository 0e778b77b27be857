//! Refuses files that are in a snapshot twice by mistake: their rows would be read twice, or have the ids of other
//! rows.
//!
//! A file added in two commits has its rows twice, here as in the Java library, but then the entries differ in
//! snapshot and sequence number. Two equal entries are copies of one. All entries are hashed and sorted, which takes
//! some hundredths of a second for a million, and only entries with equal hashes are compared.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use arrow_array::Array;
use hashbrown::DefaultHashBuilder;

use super::PlannedManifest;
use crate::error::{Error, Result};

/// The identity of an entry.
#[derive(Debug, PartialEq, Eq, Hash)]
struct EntryIdentity<'a> {
    path: &'a str,
    snapshot_id: Option<i64>,
    sequence_number: Option<i64>,
}

impl<'a> EntryIdentity<'a> {
    fn of(manifest: &'a PlannedManifest, row: usize) -> Self {
        let entries = &*manifest.entries;
        let number = |array: &arrow_array::Int64Array| array.is_valid(row).then(|| array.value(row));
        Self {
            path: entries.file_path.value(row),
            snapshot_id: number(&entries.snapshot_id),
            sequence_number: number(&entries.file_sequence_number),
        }
    }
}

/// Refuses an entry that is there twice.
///
/// # Errors
/// [`Error::Corrupt`] that names the file.
pub(super) fn check_entries(manifests: &[PlannedManifest]) -> Result<()> {
    let builder = DefaultHashBuilder::default();
    let all = || {
        manifests
            .iter()
            .flat_map(|manifest| (0..manifest.entries.len()).map(move |row| EntryIdentity::of(manifest, row)))
    };
    let mut hashes: Vec<u64> = all().map(|entry| builder.hash_one(entry)).collect();
    hashes.sort_unstable();
    let mut pairs = hashes.windows(2).filter(|pair| matches!(pair, [one, other] if one == other));
    if pairs.next().is_none() {
        return Ok(());
    }
    let mut known: HashMap<EntryIdentity<'_>, ()> = HashMap::with_capacity(hashes.len());
    let Some(twice) = all().find_map(|entry| {
        let path = entry.path;
        known.insert(entry, ()).map(|()| path)
    }) else {
        return Ok(());
    };
    let message = "an entry of its snapshot is there twice, so that its rows would be read twice: remove the file from the table \
                   and add it again";
    Err(Error::corrupt_file(twice, message))
}

/// Refuses files whose row ids overlap, or go beyond those that the table has given: two rows would have the same.
///
/// # Errors
/// [`Error::Corrupt`] that names the file.
pub(super) fn check_row_ids(manifests: &[PlannedManifest], next_row_id: i64) -> Result<()> {
    let ids = |manifest: &PlannedManifest, row: usize| {
        let first = &manifest.entries.first_row_id;
        // Without a row count, the range of row ids is unknown.
        let rows = manifest.entries.record_count.value(row).max(0);
        first.is_valid(row).then(|| (first.value(row), first.value(row).saturating_add(rows)))
    };
    let all = || {
        manifests.iter().flat_map(|one| (0..one.entries.len()).filter_map(move |row| Some((one, row, ids(one, row)?))))
    };
    let mut ranges: Vec<(i64, i64)> = all().map(|(.., ids)| ids).filter(|(first, end)| first < end).collect();
    ranges.sort_unstable();
    let overlap = ranges.windows(2).find_map(|pair| match pair {
        [(_, end), (second, after)] if end > second => Some((*second, *after, *end)),
        _ => None,
    });
    let beyond = ranges.iter().find(|(_, end)| *end > next_row_id);
    let (wrong, message) = match (overlap, beyond) {
        (Some((first, end, before)), _) => {
            ((first, end), format!("its rows have the ids from {first} on, but another file has those up to {before}"))
        }
        (None, Some((first, end))) => (
            (*first, *end),
            format!("its rows have the ids {first} to {end}, but the next one of the table is {next_row_id}"),
        ),
        (None, None) => return Ok(()),
    };
    let found = all().find(|(.., ids)| *ids == wrong);
    let path = found.map_or("", |(manifest, row, _)| manifest.entries.file_path.value(row));
    Err(Error::corrupt_file(path, message))
}
