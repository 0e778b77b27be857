//! Float metrics that ORC statistics lack: bounds without NaN, and NaN counts.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use icefield_format::metadata::properties::MetricsMode;
use icefield_format::types::{PrimitiveType, Schema, Type};

use crate::arrow::cells::StoredColumn;
use crate::error::Result;
use crate::file::modes::Modes;

/// The `float` and `double` columns outside lists and maps whose metrics are needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Floats {
    columns: BTreeMap<i32, (StoredColumn, Found)>,
}

/// The metrics of a column so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    /// Number of NaNs.
    pub nans: u64,
    bounds: Option<(f64, f64)>,
}

impl Floats {
    /// For the columns of a schema, with nothing found yet.
    pub(super) fn new(schema: &Schema, modes: &Modes) -> Result<Self> {
        let mut columns = BTreeMap::new();
        for id in schema.ids().iter().copied() {
            let float =
                matches!(schema.find_type(id), Some(Type::Primitive(PrimitiveType::Float | PrimitiveType::Double)));
            if float && schema.accessor(id).is_some() && modes.of(id) != MetricsMode::None {
                columns.insert(id, (StoredColumn::find(schema, id)?, Found::default()));
            }
        }
        Ok(Self { columns })
    }

    /// Adds the values of a stored batch.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.columns.values_mut().try_for_each(|(column, found)| {
            found.add(&column.of(batch)?);
            Ok(())
        })
    }

    /// The metrics of a column.
    pub(super) fn of(&self, id: i32) -> Option<&Found> {
        self.columns.get(&id).map(|(_, found)| found)
    }
}

impl Found {
    /// The smallest and the largest number; -0.0 is less than 0.0.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        self.bounds
    }

    fn add(&mut self, array: &ArrayRef) {
        if let Some(array) = array.as_primitive_opt::<Float64Type>() {
            self.values::<Float64Type>(array.values(), array);
        } else if let Some(array) = array.as_primitive_opt::<Float32Type>() {
            self.values::<Float32Type>(array.values(), array);
        }
    }

    fn values<T: ArrowPrimitiveType>(&mut self, values: &[T::Native], array: &dyn Array)
    where
        T::Native: Into<f64>,
    {
        match array.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => self.run(values),
            Some(nulls) => {
                nulls.valid_slices().for_each(|(start, end)| self.run(values.get(start..end).unwrap_or_default()));
            }
        }
    }

    fn run<T: Into<f64> + Copy>(&mut self, values: &[T]) {
        let (mut nans, mut least, mut most) = (0, f64::INFINITY, f64::NEG_INFINITY);
        // One flag for each zero, because comparisons do not distinguish them.
        let (mut negative_zero, mut zero) = (false, false);
        for value in values {
            let value: f64 = (*value).into();
            nans += u64::from(value.is_nan());
            least = if value < least { value } else { least };
            most = if value > most { value } else { most };
            negative_zero |= value.to_bits() == (-0.0_f64).to_bits();
            zero |= value.to_bits() == 0;
        }
        self.nans += nans;
        if nans == values.len() as u64 {
            return;
        }
        if least == 0.0 {
            least = if negative_zero { -0.0 } else { 0.0 };
        }
        if most == 0.0 {
            most = if zero { 0.0 } else { -0.0 };
        }
        let (lower, upper) = self.bounds.unwrap_or((least, most));
        let lower = if least.total_cmp(&lower).is_lt() { least } else { lower };
        let upper = if most.total_cmp(&upper).is_gt() { most } else { upper };
        self.bounds = Some((lower, upper));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Float32Array, Float64Array};

    use super::*;

    #[test]
    fn nan_is_counted_and_zeros_are_told_apart() {
        let nan = f64::NAN;
        for (batches, nans, bounds) in [
            (vec![vec![]], 0, None),
            (vec![vec![None]], 0, None),
            (vec![vec![Some(nan), None], vec![Some(nan)]], 2, None),
            (vec![vec![Some(nan), Some(2.0)], vec![Some(-1.0), Some(nan)]], 2, Some((-1.0, 2.0))),
            (vec![vec![Some(0.0), Some(-0.0)]], 0, Some((-0.0, 0.0))),
            (vec![vec![Some(-0.0)]], 0, Some((-0.0, -0.0))),
            (vec![vec![Some(0.0)], vec![Some(-0.0)]], 0, Some((-0.0, 0.0))),
            (vec![vec![Some(f64::INFINITY)]], 0, Some((f64::INFINITY, f64::INFINITY))),
        ] {
            let (mut double, mut single) = (Found::default(), Found::default());
            for batch in &batches {
                double.add(&(Arc::new(Float64Array::from(batch.clone())) as ArrayRef));
                let batch: Float32Array = batch.iter().map(|value| value.map(|value| value as f32)).collect();
                single.add(&(Arc::new(batch) as ArrayRef));
            }
            for found in [double, single] {
                let bits = |(lower, upper): (f64, f64)| (lower.to_bits(), upper.to_bits());
                assert_eq!((found.nans, found.bounds().map(bits)), (nans, bounds.map(bits)), "{batches:?}");
            }
        }
    }
}
