//! Finds the partitions of rows that are not written.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema as ArrowSchema;
use icefield_format::spec::PartitionSpec;
use icefield_format::types::Schema;

use super::conform::{Conform, Matching};
use super::intake::{Intake, Routed};
use super::route::{Router, Tuple};
use crate::error::Result;

/// Counts rows by partition.
#[derive(Debug)]
pub(crate) struct PartitionCounts {
    intake: Intake,
    counts: Vec<(Tuple, u64)>,
}

impl PartitionCounts {
    /// For rows of the columns of `schema`, that come as `data`.
    ///
    /// # Errors
    /// A spec that rows cannot be written with, or whose source columns are missing.
    pub(crate) fn new(spec: Arc<PartitionSpec>, schema: &Schema, data: &ArrowSchema) -> Result<Self> {
        let conform = Conform::new(schema, data, Matching::default())?;
        Ok(Self { intake: Intake::new(conform, Some(Router::new(spec, schema)?), None), counts: Vec::new() })
    }

    /// Counts the rows of a batch.
    ///
    /// # Errors
    /// A value that has no partition.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(Routed { shares, new }) = self.intake.prepare(batch)?.routed else { return Ok(()) };
        self.counts.extend(new.into_iter().map(|(tuple, _)| (tuple, 0)));
        for share in shares {
            if let Some((_, count)) = self.counts.get_mut(share.partition) {
                *count = count.saturating_add(share.rows.len() as u64);
            }
        }
        Ok(())
    }

    /// The partitions, in order of first appearance, with their numbers of rows.
    pub(crate) fn counts(self) -> Vec<(Tuple, u64)> {
        self.counts
    }
}

/// The columns of a schema that the partitions of a spec follow from; all columns if there are none.
///
/// # Errors
/// A source column that is not in the schema.
pub(crate) fn partition_sources(spec: &PartitionSpec, schema: &Arc<Schema>) -> Result<Arc<Schema>> {
    let fields = spec.fields.iter().filter(|field| !field.transform.is_void());
    let ids: HashSet<i32> = fields.flat_map(|field| field.source_ids.iter().copied()).collect();
    if ids.is_empty() { Ok(schema.clone()) } else { Ok(Arc::new(schema.select_ids(&ids)?)) }
}
