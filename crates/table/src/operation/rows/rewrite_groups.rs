//! Groups of rows that are written again, each as new files: of one data file without some of its rows, or of several data
//! files together.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use icefield_format::manifest::DataFile;
use icefield_format::metadata::TableMetadata;
use icefield_format::spec::PartitionSpec;
use icefield_format::types::Schema;
use icefield_format::types::arrow::ToArrow;
use icefield_format::value::Value;
use uuid::Uuid;

use crate::error::Result;
use crate::storage::Storage;
use crate::stream::BatchStream;
use crate::write::{TableWriter, WriterConfig};
use crate::{interrupt, runtime};

/// What the names of new files are made of.
#[derive(Debug, Clone, Copy)]
pub enum Names {
    /// The id of a change that this process makes alone.
    Alone(Uuid),
    /// The id of a change that several tasks make, and an attempt at one of them.
    Task {
        /// Id of the change.
        operation: Uuid,
        /// Number of the task.
        task: u32,
        /// Number of the attempt.
        attempt: u64,
    },
}

/// Suffix of the names of files that a task has written again, before the extension.
const REWRITTEN: &str = "-rewritten";

/// What all groups of a rewrite have in common.
pub(super) struct Rewrite<'a> {
    pub(super) storage: &'a Storage,
    pub(super) metadata: &'a TableMetadata,
    /// The columns that rows are read and written with: those of the table, and from version 3 on their lineage.
    pub(super) columns: &'a Arc<Schema>,
    /// What the names of the new files are made of.
    pub(super) names: Names,
    /// Counts the new files of a task.
    pub(super) count: Arc<AtomicU32>,
}

/// How the rows of a group are written. They keep the order that they are read in.
pub(super) struct Layout {
    pub(super) spec: Arc<PartitionSpec>,
    /// The partition of all rows.
    pub(super) partition: Vec<Option<Value>>,
    /// The sort order that the rows have already.
    pub(super) sorted_by: Option<i32>,
}

impl Rewrite<'_> {
    /// Writes groups, several at a time. `rows` reads those of a group; it is told how many are read at the same time. The new
    /// files are sorted by path.
    ///
    /// # Errors
    /// The first error of a group. The files of all groups are deleted then.
    pub(super) fn run<G: Sync>(
        &self,
        groups: &[G],
        layout: impl Fn(&G) -> Layout + Sync,
        rows: impl Fn(&G, usize) -> Result<BatchStream> + Sync,
    ) -> Result<Vec<DataFile>> {
        let workers = runtime::threads().min(groups.len());
        let (stopped, written) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let outcome = runtime::for_each(groups, workers, |number, group| {
            let files =
                self.writer(number, layout(group)).and_then(|writer| copy(rows(group, workers)?, writer, &stopped));
            let files = files.inspect_err(|_| stopped.store(true, Ordering::Relaxed))?;
            written.lock().unwrap_or_else(PoisonError::into_inner).extend(files);
            Ok(())
        });
        let mut written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = outcome {
            discard(self.storage, &written);
            return Err(error);
        }
        written.sort_by(|a: &DataFile, b| a.file_path.cmp(&b.file_path));
        Ok(written)
    }

    /// The writer of a group.
    fn writer(&self, number: usize, layout: Layout) -> Result<TableWriter> {
        let mut config = WriterConfig::of_table(self.storage.clone(), self.metadata);
        config.schema = self.columns.clone();
        config.spec = layout.spec;
        config.partition = Some(layout.partition);
        // Rows keep their order, and so the name of it.
        (config.order, config.sorted_by) = (None, layout.sorted_by);
        match self.names {
            Names::Alone(operation) => {
                (config.operation, config.task) = (operation, u32::try_from(number).unwrap_or(u32::MAX));
            }
            // The new rows of the same task have names without the suffix.
            Names::Task { operation, task, attempt } => {
                (config.operation, config.task, config.attempt) = (operation, task, attempt);
                (config.suffix, config.count) = (REWRITTEN, self.count.clone());
            }
        }
        TableWriter::new(config, &self.columns.to_arrow(&ToArrow::default())?)
    }
}

/// Writes rows; none of them where another thread fails meanwhile.
fn copy(rows: BatchStream, mut writer: TableWriter, stopped: &AtomicBool) -> Result<Vec<DataFile>> {
    for batch in rows {
        if stopped.load(Ordering::Relaxed) {
            writer.abort();
            return Ok(Vec::new());
        }
        if let Err(error) = interrupt::check().and(batch).and_then(|batch| writer.write(&batch)) {
            writer.abort();
            return Err(error);
        }
    }
    writer.finish()
}

/// Deletes files of a change that failed.
pub(super) fn discard(storage: &Storage, files: &[DataFile]) {
    let paths: Vec<String> = files.iter().map(|file| file.file_path.clone()).collect();
    storage.discard(&paths, "files of a change of rows that failed");
}
