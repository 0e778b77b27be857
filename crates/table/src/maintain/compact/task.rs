//! The rewrite of one group: reads its live rows, with their ids from version 3 on, and writes them again. It travels as
//! bytes to workers of an engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::TableMetadata;
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::value::Value;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use uuid::Uuid;

use super::groups::Tuple;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::operation::distributed::Kind;
use crate::operation::matching::MEMORY_LIMIT;
use crate::operation::rewrite_groups::{Layout, Names, Rewrite, RowOrder, discard};
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::read::deletes::{Deletes, Kept};
use crate::read::options::ReadOptions;
use crate::read::task::rows_sharing;
use crate::read::wire as parts_wire;
use crate::storage::Storage;
use crate::stream::BatchStream;
use crate::write::curve::{Curve, CurveKind};
use crate::write::partitions::{PartitionCounts, partition_sources};
use crate::write::provider;
use crate::write::wire as files_wire;
use crate::{interrupt, runtime};

const TASK: Kind = Kind { magic: *b"ICECOMP\x01", name: "a task of a compaction" };
const WRITTEN: Kind = Kind { magic: *b"ICECOMW\x01", name: "a result of a task of a compaction" };

/// What groups that are rewritten at a time share.
#[derive(Debug)]
pub(super) struct Share {
    groups: usize,
    memory: usize,
    deletes: Arc<Kept>,
}

impl Share {
    /// A share of `memory` bytes for each of `groups` groups. A sixth of all is for what is not counted, such as buffers of
    /// codecs, and a quarter of the rest for deletes.
    pub(super) fn new(groups: usize, memory: usize) -> Self {
        let memory = memory - memory / 6;
        Self { groups: groups.max(1), memory, deletes: Arc::new(Kept::new(memory / 4)) }
    }
}

/// Everything that is needed to rewrite a group, except the storage.
#[derive(Debug, Clone)]
pub struct GroupTask {
    /// The table; in a deserialized task without its history.
    pub(super) table: Arc<TableMetadata>,
    /// The id of the compaction.
    pub(super) operation: Uuid,
    /// The number of the group.
    pub(super) number: usize,
    /// The parts of its files that each writer gets.
    pub(super) tasks: Vec<ReadTask>,
    /// The partition spec of new files.
    pub(super) spec: Arc<PartitionSpec>,
    /// The partition of all rows, if it is known.
    pub(super) partition: Option<Vec<Option<Value>>>,
    pub(super) order: RowOrder,
    /// The number of files that sorted rows are divided into.
    pub(super) files: Option<u64>,
    /// The size at which a new file is closed.
    pub(super) file_bytes: i64,
    /// Rows of its files that deletion vectors leave, if their manifests say so.
    pub(super) rows: Option<i64>,
    /// Whether any delete file applies to its files.
    pub(super) has_deletes: bool,
}

#[derive(Serialize, Deserialize)]
struct TaskForm {
    table: Json,
    operation: Uuid,
    number: usize,
    spec_id: i32,
    /// Whether all rows are in the partition of the first part.
    is_of_one: bool,
    order: OrderForm,
    files: Option<u64>,
    file_bytes: i64,
    rows: Option<i64>,
    has_deletes: bool,
}

#[derive(Serialize, Deserialize)]
enum OrderForm {
    Kept(Option<i32>),
    /// Its id, and its fields as of an order with the id 1: only the unsorted order may have the id 0.
    By(i32, Json),
    Along {
        is_hilbert: bool,
        columns: Vec<i32>,
        text_bytes: usize,
        key_bytes: usize,
    },
}

#[derive(Serialize, Deserialize)]
struct WrittenForm {
    operation: Uuid,
    number: usize,
}

impl GroupTask {
    /// Writes the rows to new files. Nothing is written if `stopped` is set meanwhile.
    ///
    /// # Errors
    /// An error of the files or the storage; no new file of the group is left then.
    pub(super) fn run(
        &self,
        storage: &Storage,
        names: Names,
        share: &Share,
        stopped: &AtomicBool,
    ) -> Result<Vec<DataFile>> {
        let Some(first) = self.tasks.first() else { return Ok(Vec::new()) };
        let units = (runtime::threads() / share.groups).clamp(1, self.tasks.len());
        let of_deletes = if self.has_deletes { share.deletes.most() } else { 0 };
        // Of the rest, half for reading, half for writing.
        let memory = ((share.memory - of_deletes) / share.groups / units / 2).max(1);
        let threads = (runtime::threads() / share.groups / units).max(1);
        let parts = self.tasks.iter().flat_map(|task| &task.parts);
        let deletes = Deletes::new(storage, &first.wanted, parts, &limits()?)?.within(&share.deletes);
        let deletes = Arc::new(deletes);
        let rewrite = Rewrite {
            storage,
            metadata: &self.table,
            columns: &first.wanted.projection,
            names,
            count: Arc::default(),
            file_bytes: Some(self.file_bytes),
            memory: Some(memory),
        };
        let (failed, written) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let outcome = runtime::for_each(&self.tasks, units, |_, task| {
            if stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            let layout = Layout {
                spec: self.spec.clone(),
                partition: self.partition.clone(),
                order: self.order.clone(),
                files: self.files,
            };
            let files = rewrite.write(self.number, layout, || rows(storage, task, &deletes, memory, threads), &failed);
            let files = files.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            written.lock().unwrap_or_else(PoisonError::into_inner).extend(files);
            Ok(())
        });
        let mut written: Vec<DataFile> = written.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stopped = stopped.load(Ordering::Relaxed);
        let outcome = outcome.and_then(|()| if stopped { Ok(()) } else { self.check_rows(&written) });
        if stopped || outcome.is_err() {
            discard(storage, &written);
            written.clear();
        }
        outcome?;
        written.sort_by(|a, b| a.file_path.cmp(&b.file_path));
        Ok(written)
    }

    /// The partitions of the rows, with the number of files that a run would write in each, from the size of all files.
    /// Nothing is written, and only the columns are read that partitions follow from.
    ///
    /// # Errors
    /// An error of the files, or a value that has no partition.
    pub(super) fn partitions(&self, storage: &Storage, share: &Share, bytes: i64) -> Result<Vec<(Tuple, i64)>> {
        let Some(first) = self.tasks.first() else { return Ok(Vec::new()) };
        let columns = partition_sources(&self.spec, self.table.current_schema())?;
        let wanted = Arc::new(Wanted { projection: columns.clone(), ..(*first.wanted).clone() });
        let parts = self.tasks.iter().flat_map(|task| &task.parts);
        let deletes = Arc::new(Deletes::new(storage, &wanted, parts, &limits()?)?.within(&share.deletes));
        let mut found = Vec::new();
        for task in &self.tasks {
            let task = ReadTask { wanted: wanted.clone(), parts: task.parts.clone() };
            let mut counts = PartitionCounts::new(self.spec.clone(), &columns, &*wanted.arrow()?)?;
            for batch in rows(storage, &task, &deletes, share.memory / 2, runtime::threads())? {
                interrupt::check()?;
                counts.add(&batch?)?;
            }
            found.push(counts.counts());
        }
        let all = found.iter().flatten().map(|(_, rows)| *rows).fold(0, u64::saturating_add).max(1);
        let files = |rows: u64| {
            let size = bytes as f64 * (rows as f64 / all as f64);
            (size / self.file_bytes.max(1) as f64).ceil().max(1.0) as i64
        };
        Ok(found.into_iter().flatten().map(|(tuple, rows)| (tuple, files(rows))).collect())
    }

    /// Rejects new files with more rows than the old ones have left, or with fewer unless deletes apply to them.
    fn check_rows(&self, written: &[DataFile]) -> Result<()> {
        let after = written.iter().map(|file| file.record_count).fold(0, i64::saturating_add);
        match self.rows {
            Some(before) if after > before || (after < before && !self.has_deletes) => {
                let number = self.number;
                Err(Error::Internal(format!(
                    "group {number}: {before} rows were to be rewritten, and {after} were written"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Rewrites the group on a worker, in an attempt at the task, and returns the result as bytes for the driver.
    ///
    /// # Errors
    /// An error of the files or the storage; no new file of the attempt is left then.
    pub fn rewrite(&self, storage: &Storage, attempt: u64, memory: Option<usize>) -> Result<Vec<u8>> {
        let task = u32::try_from(self.number).unwrap_or(u32::MAX);
        let names = Names::Task { operation: self.operation, task, attempt };
        let files =
            self.run(storage, names, &Share::new(1, memory.unwrap_or(MEMORY_LIMIT)), &AtomicBool::new(false))?;
        let sealed = || {
            let section = files_wire::to_bytes(&files, self.table.current_schema(), &self.spec)?;
            let form = WrittenForm { operation: self.operation, number: self.number };
            WRITTEN.seal(&form, &[section.into()])
        };
        sealed().inspect_err(|_| discard(storage, &files))
    }

    /// Serializes the task.
    ///
    /// # Errors
    /// A task of more than 4 GiB.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let order = match &self.order {
            RowOrder::Kept(id) => OrderForm::Kept(*id),
            RowOrder::By(order) => {
                let named = SortOrder { order_id: i32::from(!order.is_unsorted()), ..(**order).clone() };
                OrderForm::By(order.order_id, named.to_json())
            }
            RowOrder::Along(Curve { kind, columns, text_bytes, key_bytes }) => OrderForm::Along {
                is_hilbert: *kind == CurveKind::Hilbert,
                columns: columns.clone(),
                text_bytes: *text_bytes,
                key_bytes: *key_bytes,
            },
        };
        // Other properties may be secrets of catalogs and their users. A location provider reads any of them.
        let all = provider::is_named(self.table.properties());
        let needed = self.table.properties().iter().filter(|(name, _)| all || is_needed(name));
        let properties = needed.map(|(name, value)| (name.clone(), value.clone())).collect();
        let form = TaskForm {
            table: self.table.without_history(properties).to_json_value(),
            operation: self.operation,
            number: self.number,
            spec_id: self.spec.spec_id,
            is_of_one: self.partition.is_some(),
            order,
            files: self.files,
            file_bytes: self.file_bytes,
            rows: self.rows,
            has_deletes: self.has_deletes,
        };
        let sections = self.tasks.iter().map(|task| Ok(parts_wire::pack(&parts_wire::to_bytes(task)?)?.into()));
        TASK.seal(&form, &sections.collect::<Result<Vec<Bytes>>>()?)
    }

    /// Deserializes a task from [`GroupTask::to_bytes`].
    ///
    /// # Errors
    /// Bytes that are not a task.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let (form, sections): (TaskForm, Vec<Bytes>) = TASK.open(&Bytes::from(bytes))?;
        let table = TableMetadata::from_json(form.table.to_string().as_bytes(), &limits()?)?;
        let tasks = sections.iter().map(|section| parts_wire::from_bytes(&parts_wire::unpack(section)?));
        let tasks = tasks.collect::<Result<Vec<_>>>()?;
        let spec = table.partition_spec(form.spec_id).cloned().ok_or_else(damaged)?;
        let partition = match form.is_of_one {
            true => {
                let part = tasks.first().and_then(|task| task.parts.first()).ok_or_else(damaged)?;
                Some(part.partition.tuple.clone())
            }
            false => None,
        };
        let order = match form.order {
            OrderForm::Kept(id) => RowOrder::Kept(id),
            OrderForm::By(order_id, order) => {
                RowOrder::By(Arc::new(SortOrder { order_id, ..SortOrder::from_json(&order)? }))
            }
            OrderForm::Along { is_hilbert, columns, text_bytes, key_bytes } => {
                let kind = if is_hilbert { CurveKind::Hilbert } else { CurveKind::ZOrder };
                RowOrder::Along(Curve { kind, columns, text_bytes, key_bytes })
            }
        };
        Ok(Self {
            table: Arc::new(table),
            operation: form.operation,
            number: form.number,
            tasks,
            spec,
            partition,
            order,
            files: form.files,
            file_bytes: form.file_bytes,
            rows: form.rows,
            has_deletes: form.has_deletes,
        })
    }
}

/// The number of a group and its new files, from the result of a worker.
pub(super) fn written(
    bytes: &[u8],
    operation: Uuid,
    table: &TableMetadata,
    spec: &PartitionSpec,
) -> Result<(usize, Vec<DataFile>)> {
    let (form, sections): (WrittenForm, Vec<Bytes>) = WRITTEN.open(&Bytes::copy_from_slice(bytes))?;
    if form.operation != operation {
        return Err(Error::invalid("this result is of another compaction: commit it with the plan of its task"));
    }
    let section = sections.first().ok_or_else(damaged)?;
    Ok((form.number, files_wire::from_bytes(section, table.current_schema(), spec)?))
}

/// Whether a worker needs a property of the table.
fn is_needed(name: &str) -> bool {
    ["write.", "read.", "encryption."].iter().any(|prefix| name.starts_with(prefix))
}

fn damaged() -> Error {
    Error::invalid("not a task of a compaction: its parts do not fit together")
}

fn rows(
    storage: &Storage,
    task: &ReadTask,
    deletes: &Arc<Deletes>,
    memory: usize,
    threads: usize,
) -> Result<BatchStream> {
    let options = ReadOptions { memory: Some(memory), ..ReadOptions::default() };
    let threads = options.threads(threads, &task.parts);
    Ok(rows_sharing(task.clone(), storage, deletes, &options)?.with_width(threads))
}
