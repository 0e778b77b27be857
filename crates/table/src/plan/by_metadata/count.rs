//! Row counts from metadata.
//!
//! The row count of a file is exact without reading the file if no residual filter is left and nothing is deleted, or
//! only a deletion vector applies, because its count of positions is exact ("Deletion Vectors": `record_count` is the
//! cardinality). Position delete files may overlap, and the number of rows that equality deletes delete is unknown.

use arrow_array::Array;
use icefield_format::expr::Expression;

use crate::error::Result;
use crate::plan::deletes::{DeleteKind, Deletes};
use crate::plan::tasks::split::Piece;
use crate::plan::{Plan, PlannedManifest};

impl PlannedManifest {
    /// The number of rows the scan reads from a file, if the metadata is exact.
    pub fn exact_rows(&self, row: usize, deletes: &Deletes) -> Result<Option<i64>> {
        // It is unknown how many of the rows that some delete files delete remain after others.
        if !self.deleted_by(row).is_empty() {
            return Ok(None);
        }
        if *self.residual(row)? != Expression::True || !self.entries.record_count.is_valid(row) {
            return Ok(None);
        }
        let rows = self.entries.record_count.value(row);
        // Old imports may lack the count.
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
    /// The number of rows of all files, if the metadata is exact.
    pub fn exact_row_count(&self) -> Result<Option<i64>> {
        let (rows, unknown) = self.known_rows()?;
        Ok(unknown.is_empty().then_some(rows))
    }

    /// The total of files with exact counts, and the other files as whole pieces.
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
