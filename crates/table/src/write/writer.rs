//! Writes a stream of batches to the data files of one task: routed to partitions, sorted, rolled over by size, in
//! bounded memory.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::Schema as ArrowSchema;
use arrow_select::take::take_record_batch;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{StringMap, TableMetadata};
use icefield_format::spec::path::partition_path;
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_format::value::Value;
use rayon::prelude::*;
use uuid::Uuid;

use super::conform::{Conform, Matching};
use super::curve::Curve;
use super::describe::described;
use super::input::route::{Router, Share, Tuple};
use super::intake::{Intake, Prepared};
use super::location::{DataLocations, FileNames};
use super::options::{WriteOptions, check_shapes};
use super::roll;
use super::runs::Runs;
use super::sort::Sorter;
use crate::arrow::size::bytes_of;
use crate::error::{Error, Result};
use crate::file::modes::Modes;
use crate::file::{FileLayout, FileWriter, WrittenFile};
use crate::spill::SpillFile;
use crate::storage::Storage;
use crate::{interrupt, runtime};

/// Rows routed or encoded at once.
const CHUNK_ROWS: usize = 1 << 17;
/// Buffered bytes at which an unpartitioned lane encodes.
const CHUNK_BYTES: usize = 32 << 20;
/// Rows of a sorted batch.
const SORTED_ROWS: usize = 1 << 16;
/// Buffered bytes at which a partition's lane encodes.
const LANE_BYTES: usize = 1 << 20;

/// The order of rows of different partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Any order: one open file per partition, up to a limit.
    #[default]
    Fanout,
    /// One partition after the other: one open file at a time.
    Clustered,
}

/// What a writer needs to know about the table and its write.
#[derive(Debug, Clone)]
pub struct WriterConfig {
    /// Where the files go.
    pub storage: Storage,
    /// Location of the table.
    pub location: String,
    /// Properties of the table.
    pub properties: StringMap,
    /// The schema of the files.
    pub schema: Arc<Schema>,
    /// The partition spec of the files.
    pub spec: Arc<PartitionSpec>,
    /// The partition of all rows, whatever their values; `None` computes it from the values.
    pub partition: Option<Vec<Option<Value>>>,
    /// The sort order of the files; `None` keeps the order of arrival.
    pub order: Option<Arc<SortOrder>>,
    /// The id of an order that rows are known to arrive in, if `order` is `None`.
    pub sorted_by: Option<i32>,
    /// The curve that rows are sorted along, instead of `order`.
    pub curve: Option<Curve>,
    /// The number of files that sorted rows of one partition are divided into evenly; more if these become too large.
    pub files: Option<u64>,
    /// How the columns of the data may differ from the table's.
    pub matching: Matching,
    /// The order of rows of different partitions.
    pub distribution: Distribution,
    /// Number of the task within the write.
    pub task: u32,
    /// Whether the write has other tasks: errors then count the rows of the task.
    pub distributed: bool,
    /// Number of the attempt at the task.
    pub attempt: u64,
    /// The id of the write, shared by all its tasks.
    pub operation: Uuid,
    /// Suffix of file names, before the extension.
    pub suffix: &'static str,
    /// Counts the files in their names; shared by several writers of one attempt at a task.
    pub count: Arc<AtomicU32>,
    /// Maximum bytes of buffered rows.
    pub memory_bytes: usize,
    /// Maximum open files. Rows of further partitions are buffered in memory and then in a temporary file; with
    /// `write.distribution-mode` `none`, files are closed and new ones opened instead.
    pub open_files: usize,
}

impl WriterConfig {
    /// A configuration for rows of a table: current schema, default spec and sort order.
    pub fn of_table(storage: Storage, metadata: &TableMetadata) -> Self {
        let (schema, spec) = (metadata.current_schema().clone(), metadata.default_spec().clone());
        Self {
            properties: metadata.properties().clone(),
            order: Some(metadata.default_sort_order().clone()),
            ..Self::new(storage, metadata.location(), schema, spec)
        }
    }

    /// The same with other values of some table properties, for one write.
    ///
    /// # Errors
    /// A shape for a column that has no variants, or of files that are not Parquet.
    pub fn with_properties(mut self, properties: StringMap) -> Result<Self> {
        self.properties.extend(properties.clone());
        check_shapes(&properties, &self.properties, &self.schema)?;
        Ok(self)
    }

    /// A configuration with defaults for everything not specific to the table.
    pub fn new(storage: Storage, location: impl Into<String>, schema: Arc<Schema>, spec: Arc<PartitionSpec>) -> Self {
        Self {
            storage,
            location: location.into(),
            properties: StringMap::new(),
            schema,
            spec,
            partition: None,
            order: None,
            sorted_by: None,
            curve: None,
            files: None,
            matching: Matching::default(),
            distribution: Distribution::default(),
            task: 0,
            distributed: false,
            attempt: 0,
            operation: Uuid::new_v4(),
            suffix: "",
            count: Arc::default(),
            memory_bytes: 512 << 20,
            open_files: 512,
        }
    }
}

/// Writes the data files of one task.
#[derive(Debug)]
pub struct TableWriter {
    intake: Intake,
    lanes: Lanes,
    /// Rows with known partitions, encoded while the next ones are prepared.
    held: Option<Prepared>,
}

/// One lane for each partition; an unpartitioned table has one.
#[derive(Debug)]
struct Lanes {
    shared: Arc<SharedByLanes>,
    lanes: Vec<Lane>,
    clock: u64,
}

/// Shared by all lanes.
#[derive(Debug)]
struct SharedByLanes {
    config: WriterConfig,
    options: WriteOptions,
    layout: FileLayout,
    locations: DataLocations,
    names: FileNames,
    sorter: Option<Sorter>,
    /// The temporary file for rows beyond memory that must be sorted or whose file cannot be opened yet.
    spill: Mutex<Option<SpillFile>>,
    /// Number of open files.
    open: AtomicUsize,
}

/// The buffered rows of one partition.
#[derive(Debug, Default)]
struct Lane {
    tuple: Tuple,
    path: String,
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    pending_bytes: usize,
    /// All rows so far.
    rows: u64,
    /// Rows of the open file.
    file_rows: u64,
    /// Earlier rows in a temporary file, sorted per run if rows are sorted.
    runs: Runs,
    file: Option<Box<dyn FileWriter>>,
    done: Vec<DataFile>,
    /// When it last received rows.
    used: u64,
}

impl TableWriter {
    /// A writer for a stream of batches of the schema `data`.
    pub fn new(config: WriterConfig, data: &ArrowSchema) -> Result<Self> {
        let options = WriteOptions::new(&config.properties)?;
        let conform = Conform::new(&config.schema, data, config.matching)?;
        let modes = Modes::new(&config.properties, &config.schema, config.order.as_deref())?;
        let layout = FileLayout::new(&config.schema, conform.schema().clone(), &options.format, modes)?
            .encrypted(options.key_length);
        let locations = DataLocations::new(&config.location, &config.properties)?;
        let names = FileNames::new(config.task, config.attempt, config.operation, layout.format().extension())
            .with_suffix(config.suffix)
            .counting(config.count.clone());
        let sorter = match &config.curve {
            Some(curve) => Some(Sorter::along(curve, &config.schema)?),
            None => config.order.as_deref().map(|order| Sorter::new(order, &config.schema)).transpose()?.flatten(),
        };
        let routed = !config.spec.fields.is_empty() && config.partition.is_none();
        let router = routed.then(|| Router::new(config.spec.clone(), &config.schema)).transpose()?;
        let lanes = match &config.partition {
            Some(tuple) => {
                let path = partition_path(&config.spec, &source_types(&config.spec, &config.schema), tuple)?;
                vec![Lane { tuple: tuple.clone(), path, ..Lane::default() }]
            }
            None if routed => Vec::new(),
            None => vec![Lane::default()],
        };
        let task = config.distributed.then_some(config.task);
        let (spill, open) = (Mutex::new(None), AtomicUsize::new(0));
        let shared = Arc::new(SharedByLanes { config, options, layout, locations, names, sorter, spill, open });
        Ok(Self { intake: Intake::new(conform, router, task), lanes: Lanes { shared, lanes, clock: 0 }, held: None })
    }

    /// Writes a batch. After an error nothing more can be written: call [`TableWriter::abort`].
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut start = 0;
        while start < batch.num_rows() {
            interrupt::check()?;
            let length = CHUNK_ROWS.min(batch.num_rows() - start);
            let chunk = batch.slice(start, length);
            let ready = match self.held.take() {
                None => self.intake.prepare(&chunk),
                Some(held) => {
                    let (intake, lanes) = (&mut self.intake, &mut self.lanes);
                    let both = || rayon::join(|| lanes.accept(held), || intake.prepare(&chunk));
                    let (accepted, ready) = runtime::pool()?.install(both);
                    accepted.and(ready)
                }
            };
            self.held = Some(ready?);
            start += length;
        }
        Ok(())
    }

    /// Closes all files and returns them. No file is created without rows.
    pub fn finish(mut self) -> Result<Vec<DataFile>> {
        let accepted = self.held.take().map_or(Ok(()), |held| self.lanes.accept(held));
        match accepted.and_then(|()| self.lanes.close()) {
            Ok(()) => Ok(self.lanes.lanes.into_iter().flat_map(|lane| lane.done).collect()),
            Err(error) => {
                self.abort();
                Err(error)
            }
        }
    }

    /// Aborts: deletes every file of this writer, as far as the store allows it.
    pub fn abort(self) {
        let mut done = Vec::new();
        for lane in self.lanes.lanes {
            if let Some(file) = lane.file {
                file.abort();
            }
            done.extend(lane.done.into_iter().map(|file| file.file_path));
        }
        self.lanes.shared.config.storage.discard(&done, "data files of a write that failed");
    }
}

impl Lanes {
    /// Buffers rows, and encodes lanes that have enough.
    fn accept(&mut self, rows: Prepared) -> Result<()> {
        let Some(routed) = rows.routed else { return self.gather(rows.chunk) };
        self.clock += 1;
        self.lanes.extend(routed.new.into_iter().map(|(tuple, path)| Lane { tuple, path, ..Lane::default() }));
        match self.shared.config.distribution {
            Distribution::Fanout => self.fan_out(&rows.chunk, routed.shares)?,
            Distribution::Clustered => self.cluster(&rows.chunk, &routed.shares)?,
        }
        self.keep_limits()
    }

    fn close(&mut self) -> Result<()> {
        let shared = &self.shared;
        // No more rows: the file is deleted as soon as its last run is merged.
        shared.spill.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let [lane] = self.lanes.as_mut_slice() {
            return lane.close(shared, true);
        }
        runtime::pool()?.install(|| self.lanes.par_iter_mut().try_for_each(|lane| lane.close(shared, false)))
    }

    /// Buffers rows of an unpartitioned table.
    fn gather(&mut self, chunk: RecordBatch) -> Result<()> {
        let Some(lane) = self.lanes.first_mut() else { return Err(Error::Internal("no lane".into())) };
        lane.push(chunk);
        match self.shared.sorter {
            // Sort keys and sorted rows also take memory.
            Some(_) if lane.pending_bytes >= self.shared.config.memory_bytes / 2 => lane.make_room(&self.shared),
            None if lane.pending_bytes >= CHUNK_BYTES || lane.pending_rows >= 4 * CHUNK_ROWS => {
                lane.flush(&self.shared, true)
            }
            _ => Ok(()),
        }
    }

    fn fan_out(&mut self, chunk: &RecordBatch, shares: Vec<Share>) -> Result<()> {
        let (shared, clock) = (self.shared.clone(), self.clock);
        let mut rows_of: Vec<Option<Vec<u32>>> = vec![None; self.lanes.len()];
        for share in shares {
            if let Some(rows) = rows_of.get_mut(share.partition) {
                *rows = Some(share.rows);
            }
        }
        let mut touched: Vec<(&mut Lane, Vec<u32>)> =
            self.lanes.iter_mut().zip(rows_of).filter_map(|(lane, rows)| Some((lane, rows?))).collect();
        let whole = touched.len() == 1;
        runtime::pool()?.install(|| {
            touched.par_iter_mut().try_for_each(|(lane, rows)| {
                lane.used = clock;
                lane.push(if whole { chunk.clone() } else { taken(chunk, std::mem::take(rows))? });
                if shared.sorter.is_none() && lane.pending_bytes >= LANE_BYTES && lane.may_encode(&shared) {
                    lane.flush(&shared, whole)
                } else {
                    Ok(())
                }
            })
        })
    }

    /// Closes the lanes of all partitions except the last when another one begins.
    fn cluster(&mut self, chunk: &RecordBatch, shares: &[Share]) -> Result<()> {
        for share in shares {
            for (number, lane) in self.lanes.iter_mut().enumerate() {
                if number != share.partition && (lane.file.is_some() || lane.pending_rows > 0) {
                    lane.close(&self.shared, true)?;
                }
            }
            let Some(lane) = self.lanes.get_mut(share.partition) else { continue };
            lane.used = self.clock;
            lane.push(taken(chunk, share.rows.clone())?);
            if self.shared.sorter.is_none() && lane.pending_bytes >= CHUNK_BYTES {
                lane.flush(&self.shared, true)?;
            }
        }
        Ok(())
    }

    /// Reduces memory to the limit, largest lanes first, and closes the least recently used files.
    fn keep_limits(&mut self) -> Result<()> {
        let config = &self.shared.config;
        let mut held: Vec<(usize, &mut Lane)> = self.lanes.iter_mut().map(|lane| (lane.memory(), lane)).collect();
        let mut total: usize = held.iter().map(|(bytes, _)| *bytes).sum();
        if total > config.memory_bytes {
            held.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
            for (bytes, lane) in held {
                lane.make_room(&self.shared)?;
                total -= bytes;
                if total <= config.memory_bytes / 2 {
                    break;
                }
            }
        }
        if self.shared.options.gathers {
            // Partitions after the open ones wait for their turn.
            return Ok(());
        }
        let mut open: Vec<&mut Lane> = self.lanes.iter_mut().filter(|lane| lane.file.is_some()).collect();
        if open.len() > config.open_files {
            open.sort_by_key(|lane| lane.used);
            let surplus = open.len() - config.open_files;
            for lane in open.into_iter().take(surplus) {
                lane.close(&self.shared, true)?;
            }
        }
        Ok(())
    }
}

/// Copies the rows of one share, so that a rare partition does not keep whole chunks alive.
fn taken(chunk: &RecordBatch, rows: Vec<u32>) -> Result<RecordBatch> {
    if rows.len() == chunk.num_rows() {
        return Ok(chunk.clone());
    }
    take_record_batch(chunk, &UInt32Array::from(rows))
        .map_err(|error| Error::Internal(format!("routing rows: {error}")))
}

impl Lane {
    fn push(&mut self, batch: RecordBatch) {
        self.rows += batch.num_rows() as u64;
        self.pending_rows += batch.num_rows();
        self.pending_bytes += bytes_of(&batch);
        self.pending.push(batch);
    }

    fn memory(&self) -> usize {
        self.pending_bytes + self.file.as_ref().map_or(0, |file| file.memory())
    }

    fn take_pending(&mut self) -> Vec<RecordBatch> {
        (self.pending_rows, self.pending_bytes) = (0, 0);
        std::mem::take(&mut self.pending)
    }

    /// Whether unsorted rows may be encoded now; otherwise they wait until files of other partitions are closed.
    fn may_encode(&self, shared: &SharedByLanes) -> bool {
        let is_free = || self.runs.is_empty() && shared.open.load(Ordering::Relaxed) < shared.config.open_files;
        !shared.options.gathers || self.file.is_some() || is_free()
    }

    /// Frees the memory of pending rows: rows to be sorted, or whose file cannot be opened yet, go to a temporary
    /// file, others into the data file.
    fn make_room(&mut self, shared: &SharedByLanes) -> Result<()> {
        if shared.sorter.is_none() && self.may_encode(shared) {
            self.flush(shared, true)?;
            return self.file.as_mut().map_or(Ok(()), |file| file.close_group());
        }
        let pending = self.take_pending();
        let mut spill = shared.spill.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *spill {
            Some(file) => file,
            none => none.insert(SpillFile::create(shared.options.key_length.is_some())?),
        };
        match &shared.sorter {
            Some(sorter) => self.runs.spill(sorter, &pending, file),
            None => self.runs.keep(&pending, file),
        }
    }

    /// Encodes pending rows after those in the temporary file; all rows of a sorted lane at once.
    fn flush(&mut self, shared: &SharedByLanes, side_by_side: bool) -> Result<()> {
        let pending = self.take_pending();
        let Some(sorter) = &shared.sorter else {
            let waiting = self.runs.take();
            self.append_all(shared, waiting, side_by_side)?;
            return self.append(shared, &pending, side_by_side);
        };
        if self.runs.is_empty() {
            return self.append_all(shared, sorter.sort(&pending, SORTED_ROWS)?, side_by_side);
        }
        // The other half is for the rows that are left in memory.
        let memory = shared.config.memory_bytes / 2 / if side_by_side { 1 } else { runtime::threads() };
        let merged = self.runs.merge(sorter, &pending, memory)?;
        drop(pending);
        self.append_all(shared, merged, side_by_side)
    }

    fn append_all(
        &mut self,
        shared: &SharedByLanes,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        side_by_side: bool,
    ) -> Result<()> {
        for batch in batches {
            self.append(shared, &[batch?], side_by_side)?;
        }
        Ok(())
    }

    fn append(&mut self, shared: &SharedByLanes, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        let mut rest = batches.to_vec();
        while !rest.is_empty() {
            let file = match &mut self.file {
                Some(file) => file,
                none => {
                    let path = shared.locations.file(&self.path, &shared.names.next())?;
                    let file = shared.layout.create(&shared.config.storage, path, &rest)?;
                    shared.open.fetch_add(1, Ordering::Relaxed);
                    none.insert(file)
                }
            };
            let room = shared.options.target_file_bytes.saturating_sub(file.size());
            let mut piece = roll::piece(&mut rest, usize::try_from(room).unwrap_or(usize::MAX));
            let most = shared.rows_per_file(self.rows);
            roll::limit(&mut piece, &mut rest, most.saturating_sub(self.file_rows));
            file.write(&piece, side_by_side)?;
            self.file_rows += piece.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
            if file.size() >= shared.options.target_file_bytes || self.file_rows >= most {
                self.end_file(shared)?;
            }
        }
        Ok(())
    }

    fn close(&mut self, shared: &SharedByLanes, side_by_side: bool) -> Result<()> {
        self.flush(shared, side_by_side)?;
        self.end_file(shared)
    }

    fn end_file(&mut self, shared: &SharedByLanes) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        self.file_rows = 0;
        shared.open.fetch_sub(1, Ordering::Relaxed);
        let written = file.finish()?;
        self.done.push(shared.describe(written, self.tuple.clone()));
        Ok(())
    }
}

impl SharedByLanes {
    /// The number of rows at which a file of a partition is closed; sorted rows are all known before the first is
    /// written.
    fn rows_per_file(&self, rows: u64) -> u64 {
        match self.config.files.filter(|files| *files > 1 && self.sorter.is_some()) {
            Some(files) => rows.div_ceil(files).max(1),
            None => u64::MAX,
        }
    }

    /// The manifest entry of a file.
    fn describe(&self, written: WrittenFile, partition: Tuple) -> DataFile {
        let order = self.config.order.as_ref().filter(|_| self.config.curve.is_none());
        let sorted = self.sorter.as_ref().and(order).map(|order| order.order_id);
        let order = sorted.or(self.config.sorted_by).unwrap_or(0);
        described(written, self.layout.format(), self.config.spec.spec_id, partition, order)
    }
}

/// The types of the source columns of a spec's fields, for partition paths; `None` for a dropped column.
pub(super) fn source_types(spec: &PartitionSpec, schema: &Schema) -> Vec<PrimitiveType> {
    let of = |id: Option<i32>| id.and_then(|id| schema.find_type(id)).and_then(Type::as_primitive).cloned();
    spec.fields.iter().map(|field| of(field.source_id()).unwrap_or(PrimitiveType::Unknown)).collect()
}
