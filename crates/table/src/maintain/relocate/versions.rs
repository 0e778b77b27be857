//! The metadata files that are written again.

use std::collections::HashSet;
use std::sync::Arc;

use icefield_format::metadata::properties::ENCRYPTION_TABLE_KEY;
use icefield_format::metadata::{FormatVersion, TableMetadata};

use crate::commit::{Committed, read_metadata};
use crate::error::{Error, Result};
use crate::storage::Storage;

/// The versions of a table from one to another.
#[derive(Debug)]
pub(super) struct Versions {
    /// The last one.
    pub(super) end: Committed,
    /// Metadata files before it, oldest first.
    pub(super) between: Vec<String>,
    /// The last version that was copied before.
    pub(super) start: Option<Start>,
}

/// What an earlier version of a table has.
#[derive(Debug)]
pub(super) struct Start {
    snapshots: HashSet<i64>,
    /// From version 2 on, everything up to this sequence number is older.
    last_sequence_number: Option<i64>,
    /// Its statistics files.
    pub(super) statistics: HashSet<String>,
}

impl Start {
    fn of(metadata: &TableMetadata) -> Self {
        let of_columns = metadata.statistics().iter().map(|file| file.statistics_path.clone());
        let of_partitions = metadata.partition_statistics().iter().map(|file| file.statistics_path.clone());
        Self {
            snapshots: metadata.snapshots().iter().map(|snapshot| snapshot.snapshot_id).collect(),
            last_sequence_number: (metadata.format_version() >= FormatVersion::V2)
                .then(|| metadata.last_sequence_number()),
            statistics: of_columns.chain(of_partitions).collect(),
        }
    }

    pub(super) fn has_snapshot(&self, snapshot_id: i64) -> bool {
        self.snapshots.contains(&snapshot_id)
    }

    /// Whether it has what a snapshot added; that snapshot may have expired since.
    pub(super) fn has(&self, snapshot_id: i64, sequence_number: i64) -> bool {
        self.has_snapshot(snapshot_id) || self.last_sequence_number.is_some_and(|last| sequence_number <= last)
    }
}

impl Versions {
    /// # Errors
    /// Versions that the metadata log does not have, in another order, or of an encrypted table.
    pub(super) fn of(storage: &Storage, table: &Committed, start: Option<&str>, end: Option<&str>) -> Result<Self> {
        let end = match end.map(|end| find(table, "end_version", end)).transpose()? {
            Some(location) if location != table.location => {
                Committed { metadata: Arc::new(read_metadata(storage, &location)?), location }
            }
            _ => table.clone(),
        };
        refuse_encrypted(&end.metadata)?;
        let mut between: Vec<String> =
            end.metadata.metadata_log().iter().map(|entry| entry.metadata_file.clone()).collect();
        let Some(start) = start else { return Ok(Self { end, between, start: None }) };
        let start = find(table, "start_version", start)?;
        let Some(place) = between.iter().rposition(|file| *file == start) else {
            return Err(Error::invalid(format!(
                "start_version {start} is not older than end_version {}",
                end.location
            )));
        };
        between.drain(..=place);
        let known = Start::of(&read_metadata(storage, &start)?);
        Ok(Self { end, between, start: Some(known) })
    }
}

/// A metadata file of the table by its path or its name.
fn find(table: &Committed, argument: &str, version: &str) -> Result<String> {
    let all = table.metadata.metadata_log().iter().map(|entry| entry.metadata_file.as_str());
    let is_it = |path: &&str| *path == version || path.rsplit('/').next() == Some(version);
    match [table.location.as_str()].into_iter().chain(all).find(is_it) {
        Some(path) => Ok(path.to_owned()),
        None => Err(Error::invalid(format!(
            "{argument} {version:?} is neither the metadata file of the table nor in its metadata log"
        ))),
    }
}

fn refuse_encrypted(metadata: &TableMetadata) -> Result<()> {
    let is_encrypted = ENCRYPTION_TABLE_KEY.read(metadata.properties()).is_some()
        || !metadata.encryption_keys().is_empty()
        || metadata.snapshots().iter().any(|snapshot| snapshot.key_id.is_some());
    match is_encrypted {
        true => Err(Error::unsupported(
            "copies of encrypted tables are not supported: what is written again would not be encrypted; write the rows \
             to a new table",
        )),
        false => Ok(()),
    }
}
