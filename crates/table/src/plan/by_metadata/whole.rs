//! Finds planned files whose rows all match the filter, by metadata ("Scan Planning": strict evaluation).

use std::collections::BTreeSet;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use icefield_format::expr::{Expression, StrictMetrics};

use crate::error::{Error, Result};
use crate::plan::deletes::of_key::statistics;
use crate::plan::planned::PlannedManifest;

impl PlannedManifest {
    /// For each file, whether all of its rows match the plan's filter, by partition or by metrics in the plan.
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
