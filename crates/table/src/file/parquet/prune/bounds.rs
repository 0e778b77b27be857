//! Converts the statistics of a Parquet column chunk to Iceberg bounds.

use std::cmp::Ordering;

use icefield_format::avro::decimal::unscaled;
use icefield_format::types::PrimitiveType;
use parquet::file::statistics::Statistics;

/// A lower and an upper bound.
pub(super) type Bounds = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Bounds in single-value form; `None` if the statistics cannot be trusted (deprecated order, NaN).
pub(in crate::file::parquet) fn bounds(statistics: &Statistics, ty: &PrimitiveType) -> Option<Bounds> {
    use PrimitiveType as P;
    let decimal = matches!(ty, P::Decimal { .. });
    Some(match statistics {
        Statistics::Boolean(found) => both(found.min_opt(), found.max_opt(), |value| vec![u8::from(*value)]),
        Statistics::Int32(found) if decimal => {
            both(found.min_opt(), found.max_opt(), |value| value.to_be_bytes().to_vec())
        }
        Statistics::Int64(found) if decimal => {
            both(found.min_opt(), found.max_opt(), |value| value.to_be_bytes().to_vec())
        }
        Statistics::Int32(found) if *ty == P::Long => {
            both(found.min_opt(), found.max_opt(), |value| i64::from(*value).to_le_bytes().to_vec())
        }
        Statistics::Int32(found) => both(found.min_opt(), found.max_opt(), |value| value.to_le_bytes().to_vec()),
        Statistics::Int64(found) => both(found.min_opt(), found.max_opt(), |value| value.to_le_bytes().to_vec()),
        Statistics::Float(found) => {
            let (min, max) = (found.min_opt().map(|v| f64::from(*v)), found.max_opt().map(|v| f64::from(*v)));
            let wide = *ty == P::Double;
            #[expect(clippy::cast_possible_truncation, reason = "the values came from f32")]
            let bytes =
                |value: &f64| if wide { value.to_le_bytes().to_vec() } else { (*value as f32).to_le_bytes().to_vec() };
            floats(min, max, bytes)?
        }
        Statistics::Double(found) => {
            floats(found.min_opt().copied(), found.max_opt().copied(), |value| value.to_le_bytes().to_vec())?
        }
        Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_) if statistics.is_min_max_deprecated() => {
            return None;
        }
        // The file does not say how the writer ordered byte arrays of different lengths.
        Statistics::ByteArray(_) if decimal => return None,
        Statistics::FixedLenByteArray(found) if decimal => decimals(found.min_opt()?.data(), found.max_opt()?.data())?,
        Statistics::ByteArray(found) => both(found.min_opt(), found.max_opt(), |value| value.data().to_vec()),
        Statistics::FixedLenByteArray(found) => both(found.min_opt(), found.max_opt(), |value| value.data().to_vec()),
        Statistics::Int96(_) => return None,
    })
}

fn both<T>(min: Option<&T>, max: Option<&T>, bytes: impl Fn(&T) -> Vec<u8>) -> Bounds {
    (min.map(&bytes), max.map(&bytes))
}

/// Bounds of decimals, which may use more bytes than they need; `None` for writers that compared bytes instead of
/// numbers.
fn decimals(min: &[u8], max: &[u8]) -> Option<Bounds> {
    let (min, max) = (unscaled(min).ok()?, unscaled(max).ok()?);
    (min <= max).then(|| (Some(min.to_be_bytes().to_vec()), Some(max.to_be_bytes().to_vec())))
}

/// Widens zero bounds to cover -0.0 and 0.0, because writers differ in which one they store. NaN gives no bound.
fn floats(min: Option<f64>, max: Option<f64>, bytes: impl Fn(&f64) -> Vec<u8>) -> Option<Bounds> {
    if min.is_some_and(f64::is_nan) || max.is_some_and(f64::is_nan) {
        return None;
    }
    let zero =
        |value: f64, instead: f64| if value.partial_cmp(&0.0) == Some(Ordering::Equal) { instead } else { value };
    Some((min.map(|value| bytes(&zero(value, -0.0))), max.map(|value| bytes(&zero(value, 0.0)))))
}
