//! Batches made ready to be written: in the form that files store, each row with its partition.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::conform::Conform;
use super::fault::{Fault, RowCount};
use super::route::{Router, Share, Tuple};
use crate::error::Result;

/// Makes batches ready, in the order in which they come.
#[derive(Debug)]
pub struct Intake {
    conform: Conform,
    /// None where the table is not partitioned.
    router: Option<Router>,
    /// Partitions that were returned already.
    reported: usize,
    count: RowCount,
}

/// A batch as files store it.
#[derive(Debug)]
pub struct Prepared {
    /// The rows.
    pub chunk: RecordBatch,
    /// Where they belong; none where the table is not partitioned.
    pub routed: Option<Routed>,
}

/// Rows by partition.
#[derive(Debug)]
pub struct Routed {
    /// The rows of each partition that has some, in the order in which the partitions appear.
    pub shares: Vec<Share>,
    /// Tuples and paths of the partitions that no batch before had; their numbers follow those of the ones before.
    pub new: Vec<(Tuple, String)>,
}

impl Intake {
    /// An intake of batches that `conform` brings into shape: all of a write, or of this task of one.
    pub fn new(conform: Conform, router: Option<Router>, task: Option<u32>) -> Self {
        Self { conform, router, reported: 0, count: RowCount::of(task) }
    }

    /// The columns of batches that are ready.
    pub fn schema(&self) -> &SchemaRef {
        self.conform.schema()
    }

    /// Makes a batch ready; an error names the row, counted over all batches.
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
