//! The steps of a merge.
//!
//! The source is read first. If it fits in half of the memory limit, the table is read once and joined with it.
//! Otherwise both sides are written to disk, partitioned by the hash of the key, and joined part by part. Only files
//! that may have keys of the source are read, unless a clause applies to rows without a partner. Changed rows are
//! written immediately.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use icefield_format::expr::Expr;
use icefield_format::types::arrow::ToArrow;

use super::changes::{Changes, FileNumbers};
use super::clause::{Action, Rules, When};
use super::join::Join;
use super::key::Keys;
use super::key_range::KeyRange;
use super::keyed::KeyedRows;
use super::plan::{Plan, alone};
use super::spill::Spill;
use crate::commit::Transaction;
use crate::error::Result;
use crate::interrupt;
use crate::operation::matching::{Candidates, MEMORY_LIMIT, Matches};
use crate::operation::replace_rows::{RowOptions, RowsReplaced, replace_with, writer_config};
use crate::operation::row_change::Command;
use crate::operation::rows::widened::Widened;
use crate::write::{TableWriter, WriterConfig};

/// Number of parts of a source on disk, whose size is not known in advance.
const PARTS: usize = 64;
/// A part of at most this many bytes is not divided further, however low the memory limit.
const LEAST_PART: usize = 16 << 10;
/// How many times a part that does not fit in memory is divided further. The limit is needed because rows with the same
/// key always stay in one part.
const MOST_DEPTH: u32 = 3;
/// Size in bits of the bitmap of source key hashes, which skips rows of the table that have no partner.
const SEEN_BITS: u64 = 1 << 26;
/// Memory for each source row in the hash table of a join.
const BYTES_PER_ROW: usize = 32;

/// Options of a merge.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// How rows are matched and what is done with them.
    pub rules: Rules,
    /// Whether source columns that the table lacks are added to it in the same commit, if a clause writes all columns.
    pub evolve: bool,
    /// Approximate memory limit in bytes.
    pub memory_limit: usize,
    /// Options of the row change.
    pub rows: RowOptions,
}

/// The effects of a merge, made or planned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Number of changed rows of the table.
    pub rows_updated: i64,
    /// Number of added rows.
    pub rows_inserted: i64,
    /// Number of deleted rows of the table.
    pub rows_deleted: i64,
    /// Counts of the row change.
    pub replaced: RowsReplaced,
}

impl Transaction {
    /// Updates, deletes and inserts rows according to a source, in one snapshot.
    ///
    /// # Errors
    /// Invalid rules or rows, several source rows for one row of the table, or an error of the table or the storage;
    /// written files are deleted.
    pub fn merge(
        &mut self,
        schema: &ArrowSchema,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        options: MergeOptions,
    ) -> Result<Merged> {
        self.check_open()?;
        let MergeOptions { rules, evolve, memory_limit, rows } = options;
        let takes_all = rules.clauses.iter().any(|clause| matches!(clause.action, Action::WriteAll));
        let table = Widened::of(self, &wanted(schema, &rules), evolve && takes_all)?;
        let mut plan = Plan::new(&table.metadata, schema, &rules)?;
        let range = KeyRange::new(table.metadata.current_schema(), &plan.key);
        let mut source = SourceRows { range, held: HeldRows::Memory(Vec::new(), 0), rows: 0, memory: memory_limit / 2 };
        for batch in batches {
            interrupt::check()?;
            source.add(&mut plan, batch?)?;
        }
        let SourceRows { range, held, .. } = source;
        let filter = Expr::or(range.filter(rules.exact), alone(&rules.clauses));
        let branch = &rows.snapshot.branch;
        // A limit reduces the number of threads, so it is passed on only if it is below the default.
        let memory = Some(memory_limit).filter(|limit| *limit < MEMORY_LIMIT);
        let candidates =
            Matches::candidates(self.storage(), &table.metadata, branch, &filter, rules.case_sensitive, memory)?;
        let config = writer_config(&rows.written_to(self.storage()), &table.metadata, &plan.written, &rows.properties)?;
        let memory_bytes = config.memory_bytes.min((memory_limit / 4).max(16 << 20));
        let writer = TableWriter::new(WriterConfig { memory_bytes, ..config }, &plan.written)?;
        let mut changes = Changes::new(writer);
        let mut files = FileNumbers::default();
        match held {
            HeldRows::Memory(source, _) => {
                let keyed = KeyedRows::new(plan.source.clone(), source, &mut plan.key, plan.doubles)?;
                let read = plan.read.clone();
                let mut join = Join::new(&mut plan, keyed);
                for batch in candidates.rows(read)? {
                    interrupt::check()?;
                    join.meet(&files.number(&batch?)?, &mut changes)?;
                }
                join.finish(&mut changes)?;
            }
            HeldRows::Disk(mut source, seen) => {
                let target = spilled(&plan, &candidates, &mut files, &seen, memory_limit / 4)?;
                match target {
                    Some(mut target) => join_parts(&mut plan, &mut source, &mut target, &mut changes, memory_limit, 1)?,
                    None => {
                        let empty = FileNumbers::default().number(&RecordBatch::new_empty(arrow_of(&plan)?))?;
                        let mut target = Spill::new(empty.schema(), PARTS, memory_limit / 4, plan.is_encrypted)?;
                        join_parts(&mut plan, &mut source, &mut target, &mut changes, memory_limit, 1)?;
                    }
                }
            }
        }
        let (updated, inserted, deleted) = (changes.updated, changes.inserted, changes.deleted);
        let (written, removed) = changes.finish(&files)?;
        let matches = candidates.choose(removed);
        let mut replaced = replace_with(self, table, &matches, Command::Merge, written, rows)?;
        replaced.rows_added = updated.saturating_add(inserted);
        Ok(Merged { rows_updated: updated, rows_inserted: inserted, rows_deleted: deleted, replaced })
    }
}

/// The source columns that the table should have: all except those that are only compared with a column of another
/// name.
fn wanted(schema: &ArrowSchema, rules: &Rules) -> ArrowSchema {
    let is_key = |name: &str| rules.on.iter().any(|(ours, theirs)| theirs == name && ours != name);
    let fields = schema.fields().iter().filter(|field| !is_key(field.name()));
    ArrowSchema::new(fields.cloned().collect::<Vec<_>>())
}

fn arrow_of(plan: &Plan) -> Result<SchemaRef> {
    Ok(plan.read.to_arrow(&ToArrow::default())?.into())
}

/// Receives the rows of a source.
struct SourceRows {
    range: KeyRange,
    held: HeldRows,
    rows: usize,
    memory: usize,
}

/// Where the rows of a source are held.
enum HeldRows {
    /// In memory, with their keys and their size in bytes.
    Memory(Vec<(RecordBatch, Keys)>, usize),
    /// On disk, with a bitmap of their keys.
    Disk(Spill, KeyBitmap),
}

/// A bitmap of key hashes: a missing bit proves that the source does not have the key.
struct KeyBitmap(Vec<u64>);

impl KeyBitmap {
    fn new() -> Self {
        Self(vec![0; usize::try_from(SEEN_BITS / 64).unwrap_or(usize::MAX)])
    }

    fn place(hash: u64) -> (usize, u64) {
        let bit = hash & (SEEN_BITS - 1);
        (usize::try_from(bit / 64).unwrap_or(usize::MAX), 1 << (bit % 64))
    }

    fn add(&mut self, hash: u64) {
        let (word, bit) = Self::place(hash);
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    fn has(&self, hash: u64) -> bool {
        let (word, bit) = Self::place(hash);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

impl SourceRows {
    fn add(&mut self, plan: &mut Plan, batch: RecordBatch) -> Result<()> {
        let batch = plan.prepared(batch)?;
        let columns = plan.key.source_columns(&batch)?;
        self.range.add(&columns)?;
        let keys = plan.key.of_columns(columns)?;
        self.rows += batch.num_rows();
        match &mut self.held {
            HeldRows::Disk(spill, seen) => spill_source(plan, spill, seen, &batch, &keys),
            HeldRows::Memory(held, bytes) => {
                *bytes += bytes_of(&batch) + keys.bytes() + BYTES_PER_ROW * batch.num_rows();
                held.push((batch, keys));
                if *bytes <= self.memory {
                    return Ok(());
                }
                let held = std::mem::take(held);
                let (mut spill, mut seen) =
                    (Spill::new(plan.source.clone(), PARTS, self.memory / 2, plan.is_encrypted)?, KeyBitmap::new());
                for (batch, keys) in held {
                    interrupt::check()?;
                    spill_source(plan, &mut spill, &mut seen, &batch, &keys)?;
                }
                self.held = HeldRows::Disk(spill, seen);
                Ok(())
            }
        }
    }
}

fn spill_source(plan: &Plan, spill: &mut Spill, seen: &mut KeyBitmap, batch: &RecordBatch, keys: &Keys) -> Result<()> {
    for key in (0..keys.len()).filter_map(|row| keys.get(row)) {
        seen.add(plan.key.hash(key));
    }
    spill.add(batch, &parts(plan, keys, 0, PARTS))
}

/// The part of each row at a depth. Rows with a key that matches nothing are distributed evenly.
fn parts(plan: &Plan, keys: &Keys, depth: u32, count: usize) -> Vec<Option<usize>> {
    let part = |row: usize| match keys.get(row) {
        // Uses other bits than the hash table of a join, which would otherwise get many collisions.
        Some(key) => usize::try_from(plan.key.hash(key) >> (32 + 6 * depth)).unwrap_or(usize::MAX) % count,
        None => row % count,
    };
    (0..keys.len()).map(part).map(Some).collect()
}

/// Writes rows of the table to disk: those that may have a partner, or all if a clause applies to rows without one.
/// `None` if there are no rows.
fn spilled(
    plan: &Plan,
    candidates: &Candidates,
    files: &mut FileNumbers,
    seen: &KeyBitmap,
    memory: usize,
) -> Result<Option<Spill>> {
    let all = plan.has(When::NotMatchedBySource);
    let mut spill: Option<Spill> = None;
    for batch in candidates.rows(plan.read.clone())? {
        interrupt::check()?;
        let batch = files.number(&batch?)?;
        let keys = plan.key.of_target(&batch)?;
        let mut parts = parts(plan, &keys, 0, PARTS);
        for (row, part) in parts.iter_mut().enumerate().filter(|_| !all) {
            if !keys.get(row).is_some_and(|key| seen.has(plan.key.hash(key))) {
                *part = None;
            }
        }
        let spill = match &mut spill {
            Some(spill) => spill,
            slot => slot.insert(Spill::new(batch.schema(), PARTS, memory, plan.is_encrypted)?),
        };
        spill.add(&batch, &parts)?;
    }
    Ok(spill)
}

/// Joins rows on disk part by part; a part that is too large is divided further.
fn join_parts(
    plan: &mut Plan,
    source: &mut Spill,
    target: &mut Spill,
    changes: &mut Changes,
    memory: usize,
    depth: u32,
) -> Result<()> {
    for part in 0..source.parts() {
        interrupt::check()?;
        let (bytes, most) = (source.bytes(part), (memory / 2).max(LEAST_PART));
        if bytes > most && depth <= MOST_DEPTH {
            let count = (2 * bytes / most).clamp(2, PARTS);
            let mut divided = Spill::new(source.schema().clone(), count, memory / 8, plan.is_encrypted)?;
            for batch in source.take(part) {
                let batch = batch?;
                let columns = plan.key.source_columns(&batch)?;
                divided.add(&batch, &parts(plan, &plan.key.of_columns(columns)?, depth, count))?;
            }
            let mut others = Spill::new(target.schema().clone(), count, memory / 8, plan.is_encrypted)?;
            for batch in target.take(part) {
                let batch = batch?;
                others.add(&batch, &parts(plan, &plan.key.of_target(&batch)?, depth, count))?;
            }
            join_parts(plan, &mut divided, &mut others, changes, memory, depth + 1)?;
            continue;
        }
        let mut rows = Vec::new();
        for batch in source.take(part) {
            let batch = batch?;
            let columns: Vec<ArrayRef> = plan.key.source_columns(&batch)?;
            let keys = plan.key.of_columns(columns)?;
            rows.push((batch, keys));
        }
        let keyed = KeyedRows::new(plan.source.clone(), rows, &mut plan.key, plan.doubles)?;
        let mut join = Join::new(plan, keyed);
        for batch in target.take(part) {
            interrupt::check()?;
            join.meet(&batch?, changes)?;
        }
        join.finish(changes)?;
    }
    Ok(())
}

/// The size of a batch in bytes, without the unused parts of shared buffers.
fn bytes_of(batch: &RecordBatch) -> usize {
    let column =
        |array: &ArrayRef| array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size());
    batch.columns().iter().map(column).sum()
}
