//! Divides both sides into parts that fit into memory, and compares these.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};

use super::super::merge::spill::Spill;
use super::columns::Columns;
use super::compare::{Comparing, Part};
use super::counts::DiffCounts;
use crate::error::Result;
use crate::interrupt;

/// Number of parts of one division.
const PARTS: usize = 32;
/// How many times a part that does not fit into memory is divided further. Equal keys are never divided.
const DEEPEST: u32 = 4;
/// A part of at most this many bytes is not divided further.
const LEAST_PART: usize = 1 << 20;

/// The rows of one side.
pub struct Side {
    /// Their columns.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch>> + Send>,
}

/// How rows are compared.
#[derive(Debug, Clone)]
pub struct DiffOptions {
    /// Columns that identify a row on each side; without them, whole rows are counted.
    pub keys: Option<Vec<String>>,
    /// Approximate number of bytes of rows in memory.
    pub memory_limit: usize,
}

/// The differences, as a stream.
pub struct Diff {
    comparing: Comparing,
    sides: Option<[Side; 2]>,
    memory: usize,
    /// Divisions that are not done, with the next part of each.
    open: Vec<(Spill, Spill, usize, u32)>,
    part: Option<Part>,
}

/// Compares two sides by the columns that both have. Nothing is read before the first batch is asked for.
///
/// The batches have the column `_change` (`added`, `removed`, `changed_before`, `changed_after`), the column
/// `_changed_columns`, and the common columns in the order of the right side. Both rows of a change follow each other.
/// Null equals null, NaN equals NaN, -0.0 does not equal 0.0, and maps are equal whatever the order of their entries.
///
/// # Errors
/// Sides without common columns, columns whose types do not fit, columns of variants, and unknown keys; later, errors of
/// reading, and a key that a side has twice.
pub fn diff(left: Side, right: Side, options: &DiffOptions) -> Result<Diff> {
    let columns = Columns::new([&left.schema, &right.schema])?;
    let keys = options.keys.as_deref().map(|keys| columns.places(keys)).transpose()?;
    let comparing = Comparing::new(columns, keys, Arc::default());
    let memory = options.memory_limit;
    Ok(Diff { comparing, sides: Some([left, right]), memory, open: Vec::new(), part: None })
}

impl Diff {
    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.comparing.output
    }

    /// How many rows differ; complete at the end of the stream.
    pub fn counts(&self) -> &Arc<DiffCounts> {
        &self.comparing.counts
    }

    /// Names of the columns of one side only, which are not compared: those of the left side, and of the right one.
    pub fn only(&self) -> &[Vec<String>; 2] {
        &self.comparing.columns.only
    }

    /// Names of the compared columns.
    pub fn compared(&self) -> &ArrowSchema {
        &self.comparing.columns.arrow
    }

    fn step(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(sides) = self.sides.take() {
            let counts = self.comparing.counts.clone();
            let [left, right] = sides;
            let left = self.divided_side(left, &counts.left_rows)?;
            let right = self.divided_side(right, &counts.right_rows)?;
            self.open.push((left, right, 0, 0));
        }
        loop {
            interrupt::check()?;
            if let Some(part) = &mut self.part {
                match part.next(&self.comparing)? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.part = None,
                }
            }
            let Some((left, right, next, depth)) = self.open.last_mut() else { return Ok(None) };
            let (number, depth) = (*next, *depth);
            if number >= left.parts() {
                self.open.pop();
                continue;
            }
            *next += 1;
            // Keys and values as bytes take about as much as the rows; of the right side, only keys are held.
            let bytes = left.bytes(number).max(right.bytes(number) / 2);
            let is_large = bytes > (self.memory / 4).max(LEAST_PART);
            let (rows, others) = (left.take(number), right.take(number));
            if is_large && depth < DEEPEST {
                let left = self.divided(rows, depth + 1, None)?;
                let right = self.divided(others, depth + 1, None)?;
                self.open.push((left, right, 0, depth + 1));
            } else {
                self.part = Some(Part::new(&self.comparing, rows, others)?);
            }
        }
    }

    fn divided_side(&self, side: Side, count: &AtomicU64) -> Result<Spill> {
        let mut intake = self.comparing.columns.intake(&side.schema)?;
        let columns = &self.comparing.columns;
        let batches = side.batches.map(move |batch| columns.of(&batch?, &mut intake));
        self.divided(batches, 0, Some(count))
    }

    fn divided(
        &self,
        batches: impl Iterator<Item = Result<RecordBatch>>,
        depth: u32,
        count: Option<&AtomicU64>,
    ) -> Result<Spill> {
        // Rows of encrypted tables must not be readable on disk, and here it is not known where rows are from.
        let mut spill = Spill::new(self.comparing.columns.arrow.clone(), PARTS, self.memory / 8, true)?;
        for batch in batches {
            interrupt::check()?;
            let batch = batch?;
            let keys = self.comparing.keys_of(&batch)?;
            let parts: Vec<Option<usize>> =
                keys.iter().map(|key| Some(self.comparing.part(key.data(), depth, PARTS))).collect();
            spill.add(&batch, &parts)?;
            if let Some(count) = count {
                count.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
            }
        }
        Ok(spill)
    }
}

impl Iterator for Diff {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            (self.part, self.open, self.sides) = (None, Vec::new(), None);
        }
        step.transpose()
    }
}
