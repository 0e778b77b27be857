//! Applies transforms to Arrow arrays: the results are those of [`Transform::apply`] for each value.
//!
//! Work is done in blocks with small buffers that stay in the L1 cache. The loop over a block has no branch and no
//! allocation, so the compiler can vectorize it. Slots under a null may contain anything; they are computed like the
//! others, and the result shares the null bitmap of the input.

mod bucket;
mod bytes;
mod remainder;
mod temporal;
mod truncate;
mod vectorized;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Int32Array, Int64Array, new_null_array};
use arrow_schema::DataType;
use arrow_select::take::take;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::transform::Transform;

pub use truncate::{SHORT_HEAD, Truncated, truncate_equally, truncate_unchecked};

impl Transform {
    /// Computes the results for all values of `array`; null for null.
    ///
    /// The Arrow type selects the type of the specification: small integers count as `int` or `long`, timestamps in any
    /// unit as what they mean, views and large offsets as `string` and `binary`. The result is an `Int32` array
    /// (`bucket`, `year`, `month`, `hour`), a `Date32` array (`day`), or has the type of the input. The values of a
    /// dictionary are transformed once each.
    ///
    /// # Errors
    /// `Invalid` if the transform does not accept the type, or if a result does not fit its type; `Unsupported` for an
    /// unknown transform.
    pub fn kernel(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if let DataType::Dictionary(_, _) = array.data_type() {
            return self.dictionary_kernel(array);
        }
        match self {
            Self::Identity if array.data_type().is_nested() => Err(refused(self, array)),
            Self::Identity => Ok(array.clone()),
            Self::Void => Ok(new_null_array(array.data_type(), array.len())),
            Self::Bucket(buckets) => bucket::kernel(&widened(array), *buckets)?.ok_or_else(|| refused(self, array)),
            Self::Truncate(width) => truncate::kernel(&widened(array), *width)?.ok_or_else(|| refused(self, array)),
            Self::Year | Self::Month | Self::Day | Self::Hour => {
                temporal::kernel(self, array)?.ok_or_else(|| refused(self, array))
            }
            Self::Unknown(text) => Err(Error::unsupported(format!("unknown transform {text}"))),
        }
    }

    fn dictionary_kernel(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return Err(refused(self, array)) };
        match self {
            Self::Identity => Ok(array.clone()),
            Self::Void => Ok(new_null_array(array.data_type(), array.len())),
            Self::Truncate(_) => Ok(dictionary.with_values(self.kernel(dictionary.values())?)),
            _ => {
                let plain = |values: &ArrayRef| {
                    let taken = take(values, dictionary.keys(), None);
                    taken.map_err(|error| Error::invalid(format!("transform {self}: {error}")))
                };
                match self.kernel(dictionary.values()) {
                    // Perhaps no row uses the value. Otherwise the error must be that of the first row that does.
                    Err(Error::Value { .. }) => self.kernel(&plain(dictionary.values())?),
                    results => plain(&results?),
                }
            }
        }
    }
}

fn refused(transform: &Transform, array: &ArrayRef) -> Error {
    Error::invalid(format!("transform {transform} does not take Arrow type {}", array.data_type()))
}

/// Widens small integers to `int` or `long`.
fn widened(array: &ArrayRef) -> ArrayRef {
    macro_rules! widen {
        ($from:ty, $to:ident) => {{
            let array = array.as_primitive::<$from>();
            let values = array.values().iter().map(|v| (*v).into()).collect();
            Arc::new($to::new(values, array.nulls().cloned()))
        }};
    }
    match array.data_type() {
        DataType::Int8 => widen!(Int8Type, Int32Array),
        DataType::Int16 => widen!(Int16Type, Int32Array),
        DataType::UInt8 => widen!(UInt8Type, Int32Array),
        DataType::UInt16 => widen!(UInt16Type, Int32Array),
        DataType::UInt32 => widen!(UInt32Type, Int64Array),
        _ => array.clone(),
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use std::cell::Cell;

    use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type, TimestampMicrosecondType};
    use arrow_array::{ArrowPrimitiveType, FixedSizeBinaryArray, PrimitiveArray};

    use super::vectorized::{Vectors, vectors};
    use super::*;

    thread_local! {
        /// Overrides the CPU features in tests of this thread.
        pub(super) static FORCED: Cell<Option<Vectors>> = const { Cell::new(None) };
    }

    fn of<T: ArrowPrimitiveType>(values: &[i64], native: impl Fn(i64) -> T::Native) -> ArrayRef {
        Arc::new(PrimitiveArray::<T>::from_iter_values(values.iter().map(|value| native(*value))))
    }

    /// The results must not depend on the vector instructions that a function is compiled for.
    #[test]
    fn all_vectors_give_the_same() {
        let values: Vec<i64> =
            (0..3000).map(|i: i64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64) >> (i % 60)).collect();
        let bytes: Vec<u8> =
            values.iter().flat_map(|value| [value.to_le_bytes(), value.to_be_bytes()].concat()).collect();
        let arrays: [ArrayRef; 6] = [
            of::<Int32Type>(&values, |value| value as i32),
            of::<Date32Type>(&values, |value| value as i32),
            of::<Int64Type>(&values, |value| value),
            of::<TimestampMicrosecondType>(&values, |value| value),
            of::<Decimal128Type>(&values, i128::from),
            Arc::new(FixedSizeBinaryArray::new(16, bytes.into(), None)),
        ];
        let machine = vectors();
        let names = ["bucket[7]", "bucket[1000]", "truncate[10]", "year", "month", "day"];
        for transform in names.map(|name| Transform::parse(name).unwrap()) {
            for array in &arrays {
                let results = [Vectors::Baseline, Vectors::Avx2, machine].map(|vectors| {
                    FORCED.set(Some(if vectors == Vectors::Avx2 && machine == Vectors::Baseline {
                        machine
                    } else {
                        vectors
                    }));
                    transform.kernel(array).ok()
                });
                FORCED.set(None);
                assert_eq!(results[0], results[1], "{transform} of {}", array.data_type());
                assert_eq!(results[0], results[2], "{transform} of {}", array.data_type());
            }
        }
    }
}
