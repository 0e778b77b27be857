//! Rewrites groups of rows, each to new files: a group is one data file without some of its rows, or several data files
//! together.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use icefield_format::manifest::DataFile;
use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::WRITE_TARGET_FILE_SIZE_BYTES;
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::Schema;
use icefield_format::types::arrow::ToArrow;
use icefield_format::value::Value;
use uuid::Uuid;

use crate::error::Result;
use crate::storage::Storage;
use crate::stream::BatchStream;
use crate::write::curve::Curve;
use crate::write::{TableWriter, WriterConfig};
use crate::{interrupt, runtime};

/// What the names of new files contain.
#[derive(Debug, Clone, Copy)]
pub enum Names {
    /// The id of a change that a single process makes.
    Alone(Uuid),
    /// The id of a change with several tasks, and one attempt at one task.
    Task {
        /// Id of the change.
        operation: Uuid,
        /// Number of the task.
        task: u32,
        /// Number of the attempt.
        attempt: u64,
    },
}

/// Suffix, before the extension, of files that a task has rewritten.
const REWRITTEN: &str = "-rewritten";

/// Settings shared by all groups of a rewrite.
pub(crate) struct Rewrite<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) metadata: &'a TableMetadata,
    /// The columns that are read and written: those of the table, with row lineage from version 3 on.
    pub(crate) columns: &'a Arc<Schema>,
    /// What the names of the new files contain.
    pub(crate) names: Names,
    /// Counts the new files, for their names.
    pub(crate) count: Arc<AtomicU32>,
    /// The size at which a new file is closed; by default that of the table.
    pub(crate) file_bytes: Option<i64>,
    /// Maximum bytes of rows that a writer buffers; by default its own.
    pub(crate) memory: Option<usize>,
}

/// How the rows of a group are written.
pub(crate) struct Layout {
    pub(crate) spec: Arc<PartitionSpec>,
    /// The partition of all rows; `None` if it follows from their values.
    pub(crate) partition: Option<Vec<Option<Value>>>,
    pub(crate) order: RowOrder,
    /// The number of files that sorted rows are divided into.
    pub(crate) files: Option<u64>,
}

/// The order of the rows of a group.
#[derive(Debug, Clone)]
pub(crate) enum RowOrder {
    /// That in which they are read; the id of the sort order that they already have.
    Kept(Option<i32>),
    /// A sort order.
    By(Arc<SortOrder>),
    /// A curve through several columns.
    Along(Curve),
}

impl Rewrite<'_> {
    /// Writes groups, several at a time. `rows` reads the rows of a group; its second argument is the number of groups
    /// read at the same time. The new files are sorted by path.
    ///
    /// # Errors
    /// The first error of a group; the files of all groups are then deleted.
    pub(super) fn run<G: Sync>(
        &self,
        groups: &[G],
        layout: impl Fn(&G) -> Layout + Sync,
        rows: impl Fn(&G, usize) -> Result<BatchStream> + Sync,
    ) -> Result<Vec<DataFile>> {
        let workers = runtime::threads().min(groups.len());
        let (stopped, written) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let outcome = runtime::for_each(groups, workers, |number, group| {
            let files = self.write(number, layout(group), || rows(group, workers), &stopped);
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

    /// Writes the rows of one group. If `stopped` is set meanwhile, nothing is written.
    ///
    /// # Errors
    /// An error of the rows or the storage; no file of the group is left then.
    pub(crate) fn write(
        &self,
        number: usize,
        layout: Layout,
        rows: impl FnOnce() -> Result<BatchStream>,
        stopped: &AtomicBool,
    ) -> Result<Vec<DataFile>> {
        let writer = self.writer(number, layout)?;
        copy(rows()?, writer, stopped)
    }

    /// A writer for a group.
    fn writer(&self, number: usize, layout: Layout) -> Result<TableWriter> {
        let mut config = WriterConfig::of_table(self.storage.clone(), self.metadata);
        config.schema = self.columns.clone();
        config.spec = layout.spec;
        config.partition = layout.partition;
        (config.order, config.files) = (None, layout.files);
        match layout.order {
            RowOrder::Kept(order) => config.sorted_by = order,
            RowOrder::By(order) => config.order = Some(order),
            RowOrder::Along(curve) => config.curve = Some(curve),
        }
        if let Some(bytes) = self.file_bytes {
            config.properties.insert(WRITE_TARGET_FILE_SIZE_BYTES.name.to_owned(), bytes.to_string());
        }
        config.memory_bytes = self.memory.unwrap_or(config.memory_bytes);
        match self.names {
            Names::Alone(operation) => {
                (config.operation, config.task) = (operation, u32::try_from(number).unwrap_or(u32::MAX));
            }
            // Files with new rows of the same task have no suffix, so the names do not collide.
            Names::Task { operation, task, attempt } => {
                (config.operation, config.task, config.attempt) = (operation, task, attempt);
                config.suffix = REWRITTEN;
            }
        }
        config.count = self.count.clone();
        TableWriter::new(config, &self.columns.to_arrow(&ToArrow::default())?)
    }
}

/// Writes rows; stops early if another group has failed.
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

/// Deletes the files of a failed change.
pub(crate) fn discard(storage: &Storage, files: &[DataFile]) {
    let paths: Vec<String> = files.iter().map(|file| file.file_path.clone()).collect();
    storage.discard(&paths, "files of a change of rows that failed");
}
