//! Planned files all of whose rows match the filter, as far as metadata tell ("Scan Planning": strict evaluation).

use std::collections::BTreeSet;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use icefield_format::expr::{Expression, StrictMetrics};

use super::of_key::statistics;
use super::planned::PlannedManifest;
use crate::error::{Error, Result};

impl PlannedManifest {
    /// For each file whether every row of it matches the filter of the plan: by its partition, or by metrics that the plan
    /// keeps.
    pub fn certain(&self) -> Result<BooleanBuffer> {
        let ids: BTreeSet<i32> = self
            .residuals
            .iter()
            .flat_map(|residual| residual.predicates().map(|predicate| predicate.term.reference.id))
            .collect();
        let metrics = statistics(&self.entries, &ids)?;
        let of_residual = |residual| match residual {
            &Expression::True => Ok(BooleanBuffer::new_set(self.entries.len())),
            residual => StrictMetrics::new(residual).evaluate(&metrics),
        };
        let by_residual = self.residuals.iter().map(of_residual).collect::<std::result::Result<Vec<_>, _>>()?;
        let mut certain = BooleanBufferBuilder::new(self.entries.len());
        for (row, place) in self.residual_places.iter().enumerate() {
            let of_file = by_residual.get(*place as usize).filter(|found| row < found.len());
            let of_file = of_file.ok_or_else(|| Error::Internal("a planned file without its residual".to_owned()))?;
            certain.append(of_file.value(row));
        }
        Ok(certain.finish())
    }
}
