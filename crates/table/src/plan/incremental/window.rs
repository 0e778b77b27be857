//! Selects the files of a plan between two offsets of a stream; see [`micro_batch`](super::micro_batch).

use std::sync::Arc;

use arrow_array::{Array, BooleanArray, UInt32Array};
use arrow_select::filter::filter;

use crate::error::{Error, Result};
use crate::plan::planned::PlannedManifest;
use crate::plan::report::FileCounts;

/// A position in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offset {
    /// The snapshot.
    pub snapshot_id: i64,
    /// The number of its added files that have been read.
    pub position: i64,
}

impl Offset {
    /// The offset of a table that has nothing to read yet.
    pub const START: Self = Self { snapshot_id: -1, position: -1 };

    /// A stored offset; only [`START`](Self::START) is before the first file.
    pub fn stored(snapshot_id: i64, position: i64) -> Result<Self> {
        let offset = Self { snapshot_id, position };
        match offset == Self::START || position >= 0 {
            true => Ok(offset),
            false => Err(Error::invalid(format!("invalid position {position} of a stream in snapshot {snapshot_id}"))),
        }
    }
}

/// Counts the files of a plan, snapshot by snapshot, and keeps those of a batch.
#[derive(Debug)]
pub(in crate::plan) struct Window {
    first: Offset,
    end: Option<Offset>,
    at: Offset,
}

impl Window {
    pub(in crate::plan) fn new((first, end): (Offset, Option<Offset>)) -> Self {
        Self { first, end, at: Offset { position: 0, ..first } }
    }

    /// The files of a manifest that belong to the batch, with their counts.
    pub(in crate::plan) fn keep(
        &mut self,
        manifest: PlannedManifest,
        counts: FileCounts,
    ) -> Result<(PlannedManifest, FileCounts)> {
        let entries = &manifest.entries;
        let mask: BooleanArray = (0..entries.len()).map(|row| Some(self.has(entries.snapshot_id.value(row)))).collect();
        if mask.true_count() == mask.len() {
            return Ok((manifest, counts));
        }
        let entries = Arc::new(entries.filter(&mask)?);
        let places = UInt32Array::from(manifest.residual_places);
        let places = filter(&places, &mask).map_err(|error| Error::Internal(error.to_string()))?;
        let places = places.as_any().downcast_ref::<UInt32Array>().map(|kept| kept.values().to_vec());
        let size = entries.file_size_in_bytes.values().iter().fold(0i64, |sum, size| sum.saturating_add(*size));
        let counts =
            FileCounts { kept: entries.len(), skipped: counts.skipped + mask.false_count(), size, links: 0, ..counts };
        Ok((
            PlannedManifest { entries, residual_places: places.unwrap_or_default(), deletes: None, ..manifest },
            counts,
        ))
    }

    /// Whether the next file of this snapshot belongs to the batch.
    fn has(&mut self, snapshot_id: i64) -> bool {
        if self.at.snapshot_id != snapshot_id {
            self.at = Offset { snapshot_id, position: 0 };
        }
        let position = self.at.position;
        self.at.position = position.saturating_add(1);
        let begun = snapshot_id != self.first.snapshot_id || position >= self.first.position;
        begun && self.end.is_none_or(|end| snapshot_id != end.snapshot_id || position < end.position)
    }
}
