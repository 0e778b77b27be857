//! Rows that metadata count, without reading any.
//!
//! A file's rows are known without reading it where nothing of the filter is left to test and nothing of it is deleted, or
//! where a deletion vector alone applies: its count of positions is exact ("Deletion Vectors": `record_count` is the
//! cardinality). Files of positions may repeat each other, and how many rows files of values delete is unknown.

use arrow_array::Array;
use icefield_format::expr::Expression;

use super::deletes::{DeleteKind, Deletes};
use super::split::Piece;
use super::{Plan, PlannedManifest};
use crate::error::Result;

impl PlannedManifest {
    /// The rows of a file that the scan reads, where the metadata say.
    pub fn exact_rows(&self, row: usize, deletes: &Deletes) -> Result<Option<i64>> {
        // Nobody knows how many of the rows that some files delete are left by others.
        if !self.deleted_by(row).is_empty() {
            return Ok(None);
        }
        if *self.residual(row)? != Expression::True || !self.entries.record_count.is_valid(row) {
            return Ok(None);
        }
        let rows = self.entries.record_count.value(row);
        // An old import may not know the count.
        if rows < 0 {
            return Ok(None);
        }
        let mut applied = self.deletes(row).iter();
        match (applied.next(), applied.next()) {
            (None, _) => Ok(Some(rows)),
            (Some(place), None) if deletes.kind(*place)? == DeleteKind::Vector => {
                let deleted = deletes.record_count(*place)?;
                Ok((0..=rows).contains(&deleted).then(|| rows - deleted))
            }
            _ => Ok(None),
        }
    }
}

impl Plan {
    /// Rows of all files, where the metadata say.
    pub fn exact_row_count(&self) -> Result<Option<i64>> {
        let (rows, unknown) = self.known_rows()?;
        Ok(unknown.is_empty().then_some(rows))
    }

    /// Rows of the files that the metadata count, and the other files whole.
    pub fn known_rows(&self) -> Result<(i64, Vec<Piece>)> {
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
