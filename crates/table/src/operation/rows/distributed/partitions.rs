//! Replaces all rows of the partitions that the tasks of a write have written to.

use std::sync::Arc;

use icefield_format::manifest::DataFile;
use icefield_format::metadata::TableMetadata;

use super::commit::check_added;
use crate::commit::{Change, SnapshotOptions, SnapshotProducer, Updates, WithUpdates};
use crate::error::{Error, Result};
use crate::operation::matching::Matches;
use crate::operation::overwrite_rows::of_partitions;
use crate::operation::replace_partitions::ReplacePartitions;
use crate::operation::replace_rows::RowsReplaced;
use crate::operation::row_change::{Command, FileCounts, Isolation};
use crate::storage::Storage;
use crate::write::WritePlan;

/// Plans the replacement of the partitions of these files, which are grouped by the task that wrote them. Returns the
/// change of the table and its counts; `None` without files. The isolation level decides which commits since the write
/// was planned are conflicts.
///
/// # Errors
/// A table without partitions, files of other partition specs that may have rows of these partitions, or two results of
/// one task.
pub(crate) fn replace_written(
    storage: &Storage,
    metadata: &Arc<TableMetadata>,
    plan: &WritePlan,
    written: Vec<Vec<DataFile>>,
    isolation: Option<Isolation>,
    options: SnapshotOptions,
) -> Result<Option<(Box<dyn Change>, RowsReplaced)>> {
    let spec = plan.spec();
    if spec.is_unpartitioned() {
        return Err(Error::invalid("the table has no partitions: overwrite it with a filter instead"));
    }
    check_added(&written, plan.operation)?;
    let added: Vec<DataFile> = written.into_iter().flatten().collect();
    if added.is_empty() {
        return Ok(None);
    }
    let isolation = Isolation::of(isolation, Command::Delete, metadata.properties())?;
    let filter = of_partitions(spec, plan.schema(), &added)?;
    let candidates = Matches::candidates(storage, metadata, &options.branch, &filter, true, None)?;
    if let Some(old) = candidates.files().find(|file| file.partition_spec_id != spec.spec_id) {
        let (path, id) = (&old.file_path, old.partition_spec_id);
        return Err(Error::Validation(format!(
            "{path} is of the partition spec {id}, not of {}, and may have rows of partitions that are replaced: overwrite with a \
             filter",
            spec.spec_id
        )));
    }
    let mut done = RowsReplaced {
        rows_removed: candidates.row_count()?,
        rows_added: added.iter().map(|file| file.record_count).fold(0, i64::saturating_add),
        ..RowsReplaced::default()
    };
    done.files = FileCounts::of_dropped(candidates.files());
    done.files = done.files.with_added(&added);
    let content = ReplacePartitions::of_files(added, plan.head(&options.branch), isolation == Isolation::Serializable)?;
    let (requirements, updates) = plan.widening();
    let updates = match updates.is_empty() {
        true => None,
        false => Some(Updates::new(requirements.clone(), updates.clone())?),
    };
    let change = WithUpdates::new(updates, SnapshotProducer::new(storage.clone(), content, options));
    Ok(Some((Box::new(change), done)))
}
