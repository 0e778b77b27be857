//! The steps of a merge.
//!
//! The source is read first. Where it fits into half of the memory that is allowed, the table's rows are read once, and each
//! meets the rows of its key; otherwise both sides go to disk, divided by the hash of the key, and one part after the other is
//! joined. Only files are read that may have keys of the source, unless rows without a partner matter. Changed rows are
//! written as they come.

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

/// Parts that a source on disk is divided into, whose size is not known before.
const PARTS: usize = 64;
/// Bytes of a part that is not divided once more, however little memory is allowed.
const LEAST_PART: usize = 16 << 10;
/// Times that a part on disk is divided once more, where it does not fit into memory: all rows of one key are one part.
const MOST_DEPTH: u32 = 3;
/// Bits of hashes of keys of the source that are kept to leave rows of the table out early.
const SEEN_BITS: u64 = 1 << 26;
/// Bytes that the table of a join has for each row of the source.
const BYTES_PER_ROW: usize = 32;

/// What a merge does.
#[derive(Debug, Clone)]
pub struct MergeOptions {
    /// What is compared, and what is done.
    pub rules: Rules,
    /// Whether columns of the source that the table lacks are added to it, in the same commit, where a clause takes all columns.
    pub evolve: bool,
    /// Bytes that it may take, about.
    pub memory_limit: usize,
    /// How rows are changed.
    pub rows: RowOptions,
}

/// What a merge has done, or would do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Rows of the table that were changed.
    pub rows_updated: i64,
    /// Rows that were added.
    pub rows_inserted: i64,
    /// Rows of the table that were deleted.
    pub rows_deleted: i64,
    /// What became of the files.
    pub replaced: RowsReplaced,
}

impl Transaction {
    /// Changes, deletes and adds rows by those of a source, in one snapshot.
    ///
    /// # Errors
    /// What is wrong with the rules or the rows, several rows of the source for one row of the table, and what is wrong with the
    /// table or the storage. What was written is deleted then.
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
        let mut source = Source { range, held: Held::Memory(Vec::new(), 0), rows: 0, memory: memory_limit / 2 };
        for batch in batches {
            interrupt::check()?;
            source.add(&mut plan, batch?)?;
        }
        let Source { range, held, .. } = source;
        let filter = Expr::or(range.filter(rules.exact), alone(&rules.clauses));
        let branch = &rows.snapshot.branch;
        // Only who asks for less than usual pays with fewer threads.
        let memory = Some(memory_limit).filter(|limit| *limit < MEMORY_LIMIT);
        let candidates =
            Matches::candidates(self.storage(), &table.metadata, branch, &filter, rules.case_sensitive, memory)?;
        let config = writer_config(&rows.written_to(self.storage()), &table.metadata, &plan.written)?;
        let memory_bytes = config.memory_bytes.min((memory_limit / 4).max(16 << 20));
        let writer = TableWriter::new(WriterConfig { memory_bytes, ..config }, &plan.written)?;
        let mut changes = Changes::new(writer);
        let mut files = FileNumbers::default();
        match held {
            Held::Memory(source, _) => {
                let keyed = KeyedRows::new(plan.source.clone(), source, &mut plan.key, plan.doubles)?;
                let read = plan.read.clone();
                let mut join = Join::new(&mut plan, keyed);
                for batch in candidates.rows(read)? {
                    interrupt::check()?;
                    join.meet(&files.number(&batch?)?, &mut changes)?;
                }
                join.finish(&mut changes)?;
            }
            Held::Disk(mut source, seen) => {
                let target = spilled(&plan, &candidates, &mut files, &seen, memory_limit / 4)?;
                match target {
                    Some(mut target) => join_parts(&mut plan, &mut source, &mut target, &mut changes, memory_limit, 1)?,
                    None => {
                        let empty = FileNumbers::default().number(&RecordBatch::new_empty(arrow_of(&plan)?))?;
                        let mut target = Spill::new(empty.schema(), PARTS, memory_limit / 4)?;
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

/// The columns of the source that the table is to have: not those that are only compared with a column of another name.
fn wanted(schema: &ArrowSchema, rules: &Rules) -> ArrowSchema {
    let is_key = |name: &str| rules.on.iter().any(|(ours, theirs)| theirs == name && ours != name);
    let fields = schema.fields().iter().filter(|field| !is_key(field.name()));
    ArrowSchema::new(fields.cloned().collect::<Vec<_>>())
}

fn arrow_of(plan: &Plan) -> Result<SchemaRef> {
    Ok(plan.read.to_arrow(&ToArrow::default())?.into())
}

/// The rows of a source as they come.
struct Source {
    range: KeyRange,
    held: Held,
    rows: usize,
    memory: usize,
}

/// Where the rows of a source are.
enum Held {
    /// With their keys, and the bytes that they take.
    Memory(Vec<(RecordBatch, Keys)>, usize),
    /// On disk, with what is known of their keys.
    Disk(Spill, Seen),
}

/// Hashes of keys that a source may have.
struct Seen(Vec<u64>);

impl Seen {
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

impl Source {
    fn add(&mut self, plan: &mut Plan, batch: RecordBatch) -> Result<()> {
        let batch = plan.prepared(batch)?;
        let columns = plan.key.source_columns(&batch)?;
        self.range.add(&columns)?;
        let keys = plan.key.of_columns(columns)?;
        self.rows += batch.num_rows();
        match &mut self.held {
            Held::Disk(spill, seen) => spill_source(plan, spill, seen, &batch, &keys),
            Held::Memory(held, bytes) => {
                *bytes += bytes_of(&batch) + keys.bytes() + BYTES_PER_ROW * batch.num_rows();
                held.push((batch, keys));
                if *bytes <= self.memory {
                    return Ok(());
                }
                let held = std::mem::take(held);
                let (mut spill, mut seen) = (Spill::new(plan.source.clone(), PARTS, self.memory / 2)?, Seen::new());
                for (batch, keys) in held {
                    interrupt::check()?;
                    spill_source(plan, &mut spill, &mut seen, &batch, &keys)?;
                }
                self.held = Held::Disk(spill, seen);
                Ok(())
            }
        }
    }
}

fn spill_source(plan: &Plan, spill: &mut Spill, seen: &mut Seen, batch: &RecordBatch, keys: &Keys) -> Result<()> {
    for key in (0..keys.len()).filter_map(|row| keys.get(row)) {
        seen.add(plan.key.hash(key));
    }
    spill.add(batch, &parts(plan, keys, 0, PARTS))
}

/// The part of each row at a depth. Rows whose key matches nothing may be anywhere.
fn parts(plan: &Plan, keys: &Keys, depth: u32, count: usize) -> Vec<Option<usize>> {
    let part = |row: usize| match keys.get(row) {
        // Other bits than those that the table of a join goes by.
        Some(key) => usize::try_from(plan.key.hash(key) >> (32 + 6 * depth)).unwrap_or(usize::MAX) % count,
        None => row % count,
    };
    (0..keys.len()).map(part).map(Some).collect()
}

/// Rows of the table on disk: those that may have a partner, or all where those without one matter. None without any.
fn spilled(
    plan: &Plan,
    candidates: &Candidates,
    files: &mut FileNumbers,
    seen: &Seen,
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
            slot => slot.insert(Spill::new(batch.schema(), PARTS, memory)?),
        };
        spill.add(&batch, &parts)?;
    }
    Ok(spill)
}

/// Joins what is on disk, part by part; a part that is too large is divided once more.
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
            let mut divided = Spill::new(source.schema().clone(), count, memory / 8)?;
            for batch in source.take(part) {
                let batch = batch?;
                let columns = plan.key.source_columns(&batch)?;
                divided.add(&batch, &parts(plan, &plan.key.of_columns(columns)?, depth, count))?;
            }
            let mut others = Spill::new(target.schema().clone(), count, memory / 8)?;
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

/// Bytes that a batch holds, without what else its buffers hold.
fn bytes_of(batch: &RecordBatch) -> usize {
    let column =
        |array: &ArrayRef| array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size());
    batch.columns().iter().map(column).sum()
}
