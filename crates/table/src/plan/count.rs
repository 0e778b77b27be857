//! Counting rows: from metadata where they tell, else by reading no more than the filter needs.
//!
//! A file's rows are known without reading it where nothing of the filter is left to test and nothing of it is deleted, or
//! where a deletion vector alone applies: its count of positions is exact ("Deletion Vectors": `record_count` is the
//! cardinality). Files of positions may repeat each other, and files of values delete nobody knows how much.

use std::sync::Arc;

use arrow_array::Array;
use icefield_format::expr::Expression;

use super::deletes::{DeleteKind, Deletes};
use super::split::Piece;
use super::{Plan, PlannedManifest, Scan};
use crate::error::{Error, Result};
use crate::read::task::{FilePart, ReadTask};

impl PlannedManifest {
    /// The rows of a file that the scan reads, where the metadata tell.
    pub fn exact_rows(&self, row: usize, deletes: &Deletes) -> Result<Option<i64>> {
        let place = self.residual_places.get(row).copied().unwrap_or_default();
        if self.residuals.get(place as usize) != Some(&Expression::True) || !self.entries.record_count.is_valid(row) {
            return Ok(None);
        }
        let rows = self.entries.record_count.value(row);
        // An old import may not know the count.
        if rows < 0 {
            return Ok(None);
        }
        match self.deletes.as_ref().map(|links| links.of(row)).unwrap_or_default() {
            [] => Ok(Some(rows)),
            [place] if deletes.kind(*place)? == DeleteKind::Vector => {
                Ok(Some(rows - deletes.record_count(*place)?).filter(|rows| *rows >= 0))
            }
            _ => Ok(None),
        }
    }
}

impl Plan {
    /// Rows of all files, where the metadata tell.
    pub fn exact_row_count(&self) -> Result<Option<i64>> {
        let (rows, unknown) = self.known_rows()?;
        Ok(unknown.is_empty().then_some(rows))
    }

    /// Rows of the files that the metadata tell of, and the other files whole.
    fn known_rows(&self) -> Result<(i64, Vec<Piece>)> {
        let (mut rows, mut unknown) = (0i64, Vec::new());
        for (place, manifest) in self.manifests.iter().enumerate() {
            for row in 0..manifest.entries.len() {
                match manifest.exact_rows(row, &self.deletes)? {
                    Some(known) => rows = rows.saturating_add(known),
                    None => {
                        let length = manifest.entries.file_size_in_bytes.value(row);
                        unknown.push(Piece { manifest: place, row, start: 0, length });
                    }
                }
            }
        }
        Ok((rows, unknown))
    }
}

impl Scan {
    /// The number of rows, `limit` at the most.
    pub fn count(&self, limit: Option<usize>) -> Result<i64> {
        let most = limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(i64::MAX);
        let plan = self.plan()?;
        let (mut rows, unknown) = plan.known_rows()?;
        if rows >= most || unknown.is_empty() {
            return Ok(rows.min(most));
        }
        let part = |piece: &Piece| {
            let spec_id = plan.manifests.get(piece.manifest).map(|manifest| manifest.spec_id);
            let spec = spec_id.and_then(|id| self.metadata.partition_spec(id));
            FilePart::of_plan(&plan, piece, spec.ok_or_else(|| Error::Internal("a file of no known spec".to_owned()))?)
        };
        let parts = unknown.iter().map(part).collect::<Result<Vec<_>>>()?;
        let left = limit.map(|limit| limit.saturating_sub(usize::try_from(rows).unwrap_or(usize::MAX)));
        let task = ReadTask { wanted: Arc::clone(&self.wanted(Some(&[]))?), parts };
        for batch in task.batches(&self.storage, left)? {
            rows = rows.saturating_add(i64::try_from(batch?.num_rows()).unwrap_or(i64::MAX));
        }
        Ok(rows.min(most))
    }
}
