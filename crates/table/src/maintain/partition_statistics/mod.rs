//! Partition statistics ("Partition Statistics"): rows, files and deletes of each partition of a snapshot, in a file of
//! the table's format that the metadata names.

mod counts;
mod file;
mod layout;

use std::sync::Arc;

use arrow_array::RecordBatch;
use icefield_format::manifest::ManifestFile;
use icefield_format::metadata::{
    MetadataUpdate, PartitionStatisticsFile, Snapshot, TableMetadata, requirements_for_update,
};
use serde_json::Map;

use crate::commit::metadata_folder;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::plan::{At, resolve};
use crate::snapshot::manifests::of_snapshot;
use crate::storage::Storage;
use crate::table::Table;
use crate::write::{WriteOptions, key_length};

use counts::{Counter, Counting};
use layout::Layout;

/// The result of [`compute_partition_stats`].
#[derive(Debug, Clone)]
pub struct ComputedPartitions {
    /// The table with the statistics.
    pub table: Table,
    /// The statistics file.
    pub file: PartitionStatisticsFile,
    /// The number of its rows; `None` if the file existed.
    pub partitions: Option<usize>,
}

/// Computes the statistics of all partitions of a snapshot, by default the current one, and adds them to the table.
///
/// As in the Java library: a snapshot that has statistics keeps them; if an ancestor has them, only the manifests of
/// the snapshots since then are read. The result is `None` if there is no snapshot, or no file in it.
///
/// # Errors
/// [`Error::Invalid`] if the table is not partitioned or the snapshot unknown; encrypted tables are refused, because
/// metadata has no place for the key of the file. Any error of reading and committing; the new file is then deleted,
/// unless it is unknown whether the commit landed.
pub fn compute_partition_stats(table: &Table, snapshot_id: Option<i64>) -> Result<Option<ComputedPartitions>> {
    let (storage, metadata) = (table.storage(), table.metadata());
    if key_length(metadata.properties())?.is_some() {
        return Err(Error::unsupported(
            "partition statistics of encrypted tables cannot be written: they would not be encrypted",
        ));
    }
    let at = At { snapshot_id, ..At::default() };
    let Some(snapshot) = resolve(metadata, &at)?.0 else { return Ok(None) };
    let layout = Layout::of(metadata)?;
    let known = nearest(metadata, &snapshot);
    if let Some(file) = known.filter(|file| file.snapshot_id == snapshot.snapshot_id) {
        return Ok(Some(ComputedPartitions { table: table.clone(), file: file.clone(), partitions: None }));
    }
    let since = known.map(|file| count_since(storage, metadata, &layout, &snapshot, file)).transpose()?;
    let counted = match since.flatten() {
        Some(counted) => counted,
        None => {
            let manifests = of_snapshot(storage, metadata, &snapshot, &limits()?)?;
            let mut counter = Counter::new(storage, metadata, &layout.union, Counting::Live)?;
            counter.add_manifests(&manifests)?;
            counter.finish()
        }
    };
    if counted.is_empty() {
        return Ok(None);
    }
    let batch = counted.batch(&layout)?;
    let options = WriteOptions::new(metadata.properties())?;
    let folder = metadata_folder(metadata)?;
    let name = format!("{folder}/partition-stats-{}-{}", snapshot.snapshot_id, uuid::Uuid::new_v4());
    let written = file::write(storage, &layout, &options.format, &name, &batch)?;
    let file = PartitionStatisticsFile {
        snapshot_id: snapshot.snapshot_id,
        statistics_path: written.path.clone(),
        file_size_in_bytes: i64::try_from(written.bytes).unwrap_or(i64::MAX),
        unknown: Map::new(),
    };
    let updates = vec![MetadataUpdate::SetPartitionStatistics { partition_statistics: file.clone() }];
    match table.update(requirements_for_update(metadata, &updates), updates) {
        Ok(table) => Ok(Some(ComputedPartitions { table, file, partitions: Some(batch.num_rows()) })),
        Err(error) => {
            if !matches!(error, Error::CommitStateUnknown { .. }) {
                storage.discard(&[written.path], "partition statistics of a commit that failed");
            }
            Err(error)
        }
    }
}

/// Reads the statistics file of a snapshot: a row for each partition, with the columns of the specification. `None` if
/// the snapshot has no such file.
///
/// # Errors
/// [`Error::Invalid`] if the table is not partitioned or the snapshot unknown; any error of reading the file.
pub fn read_partition_stats(storage: &Storage, metadata: &TableMetadata, at: &At) -> Result<Option<RecordBatch>> {
    let Some(snapshot) = resolve(metadata, at)?.0 else { return Ok(None) };
    let layout = Layout::of(metadata)?;
    let of_it = metadata.partition_statistics().iter().find(|file| file.snapshot_id == snapshot.snapshot_id);
    of_it.map(|found| file::read(storage, &layout, found)).transpose()
}

/// The statistics of a snapshot or of its nearest ancestor that has them.
fn nearest<'a>(metadata: &'a TableMetadata, snapshot: &Snapshot) -> Option<&'a PartitionStatisticsFile> {
    let of =
        |one: &Arc<Snapshot>| metadata.partition_statistics().iter().find(|file| file.snapshot_id == one.snapshot_id);
    metadata.ancestors(snapshot.snapshot_id).find_map(of)
}

/// The counts of an earlier file, and what later snapshots added and removed. `None` if the file cannot be read, does
/// not fit the table, or makes a count negative, so it was wrong.
fn count_since(
    storage: &Storage,
    metadata: &TableMetadata,
    layout: &Layout,
    snapshot: &Snapshot,
    earlier: &PartitionStatisticsFile,
) -> Result<Option<counts::Counted>> {
    let mut counter = Counter::new(storage, metadata, &layout.union, Counting::Changes)?;
    let read = file::read(storage, layout, earlier);
    match read.and_then(|rows| counter.add_file(&rows, &earlier.statistics_path)) {
        Ok(()) => {}
        Err(Error::CorruptFile { .. } | Error::NotFound { .. } | Error::Unsupported(_) | Error::Format(_)) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    }
    // Entries of removed files stay only in the manifests of the snapshot that removed them.
    for one in metadata.ancestors(snapshot.snapshot_id).take_while(|one| one.snapshot_id != earlier.snapshot_id) {
        let manifests = of_snapshot(storage, metadata, one, &limits()?)?;
        let own = |manifest: &ManifestFile| manifest.added_snapshot_id == one.snapshot_id;
        counter.add_manifests(&manifests.into_iter().filter(own).collect::<Vec<_>>())?;
    }
    let counted = counter.finish();
    Ok((!counted.has_negative()).then_some(counted))
}
