//! Prepares batches for writing: in stored form, with the partition of each row.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::conform::Conform;
use super::fault::{Fault, RowCount};
use super::route::{Router, Share, Tuple};
use crate::error::Result;

/// Prepares batches in order.
#[derive(Debug)]
pub struct Intake {
    conform: Conform,
    /// `None` for an unpartitioned table.
    router: Option<Router>,
    /// Number of partitions returned already.
    reported: usize,
    count: RowCount,
}

/// A batch in stored form.
#[derive(Debug)]
pub struct Prepared {
    /// The rows.
    pub chunk: RecordBatch,
    /// The partitions of the rows; `None` for an unpartitioned table.
    pub routed: Option<Routed>,
}

/// Rows by partition.
#[derive(Debug)]
pub struct Routed {
    /// The rows of each partition in the batch, in order of first appearance.
    pub shares: Vec<Share>,
    /// Tuples and paths of new partitions, numbered after the previous ones.
    pub new: Vec<(Tuple, String)>,
}

impl Intake {
    /// Prepares batches with `conform`: all of a write, or of this task of one.
    pub fn new(conform: Conform, router: Option<Router>, task: Option<u32>) -> Self {
        Self { conform, router, reported: 0, count: RowCount::of(task) }
    }

    /// The columns of prepared batches.
    pub fn schema(&self) -> &SchemaRef {
        self.conform.schema()
    }

    /// Prepares a batch; an error names the row, counted over all batches.
    pub fn prepare(&mut self, batch: &RecordBatch) -> Result<Prepared> {
        let prepared = self.stored(batch).map_err(|fault| self.count.error(fault))?;
        self.count.add(batch.num_rows());
        Ok(prepared)
    }

    fn stored(&mut self, batch: &RecordBatch) -> Result<Prepared, Fault> {
        let chunk = self.conform.apply(batch)?;
        let Some(router) = &mut self.router else { return Ok(Prepared { chunk, routed: None }) };
        let shares = router.route(&chunk)?;
        let mut new = Vec::new();
        while let Some(tuple) = router.tuple(self.reported) {
            new.push((tuple.clone(), router.path(self.reported)?));
            self.reported += 1;
        }
        Ok(Prepared { chunk, routed: Some(Routed { shares, new }) })
    }
}
