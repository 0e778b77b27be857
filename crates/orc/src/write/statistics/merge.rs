//! Merges the statistics of several files, whichever writers they are from.
//!
//! A value that is unknown for one file is unknown for all. Statistics of no values do not change the others.

use crate::proto::{
    BinaryStatistics, BoundingBox, BucketStatistics, CollectionStatistics, ColumnStatistics, DateStatistics,
    DecimalStatistics, DoubleStatistics, GeospatialStatistics, IntegerStatistics, StringStatistics,
    TimestampStatistics,
};

/// Adds the statistics of the next file to those of the files before it, which are empty for the first file.
pub(crate) fn merge(own: &mut Vec<ColumnStatistics>, later: &[ColumnStatistics], columns: usize) {
    let unknown = ColumnStatistics::default();
    if own.is_empty() {
        own.extend_from_slice(later);
        own.resize(columns, unknown);
        return;
    }
    for (index, own) in own.iter_mut().enumerate() {
        *own = merged(own, later.get(index).unwrap_or(&unknown));
    }
}

fn both<T>(own: Option<T>, later: Option<T>, join: impl FnOnce(T, T) -> Option<T>) -> Option<T> {
    join(own?, later?)
}

fn least<T: PartialOrd>(own: T, later: T) -> Option<T> {
    Some(if later < own { later } else { own })
}

fn most<T: PartialOrd>(own: T, later: T) -> Option<T> {
    Some(if later > own { later } else { own })
}

fn merged(own: &ColumnStatistics, later: &ColumnStatistics) -> ColumnStatistics {
    let total = |own: Option<u64>, later: Option<u64>| both(own, later, u64::checked_add);
    let count = total(own.number_of_values, later.number_of_values);
    let nulls = match (own.has_null, later.has_null) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    };
    let counted = ColumnStatistics {
        number_of_values: count,
        has_null: nulls,
        // `bytes_on_disk` is absent if a column has no bytes.
        bytes_on_disk: match (own.bytes_on_disk, later.bytes_on_disk) {
            (None, None) => None,
            (own, later) => Some(own.unwrap_or(0).saturating_add(later.unwrap_or(0))),
        },
        ..ColumnStatistics::default()
    };
    // If one side has no values, its other statistics do not matter.
    let kinds = match (own.number_of_values, later.number_of_values) {
        (_, Some(0)) => own.clone(),
        (Some(0), _) => later.clone(),
        _ => of_kind(own, later),
    };
    ColumnStatistics {
        number_of_values: counted.number_of_values,
        has_null: counted.has_null,
        bytes_on_disk: counted.bytes_on_disk,
        ..kinds
    }
}

/// Merges the statistics that depend on the kind of values.
fn of_kind(own: &ColumnStatistics, later: &ColumnStatistics) -> ColumnStatistics {
    macro_rules! kind {
        ($field:ident, $join:path) => {
            own.$field.as_deref().zip(later.$field.as_deref()).map(|(own, later)| Box::new($join(own, later)))
        };
    }
    ColumnStatistics {
        int_statistics: kind!(int_statistics, integers),
        double_statistics: kind!(double_statistics, doubles),
        string_statistics: kind!(string_statistics, texts),
        bucket_statistics: kind!(bucket_statistics, buckets),
        decimal_statistics: kind!(decimal_statistics, decimals),
        date_statistics: kind!(date_statistics, dates),
        binary_statistics: kind!(binary_statistics, binaries),
        timestamp_statistics: kind!(timestamp_statistics, timestamps),
        collection_statistics: kind!(collection_statistics, collections),
        geospatial_statistics: kind!(geospatial_statistics, geometries),
        ..ColumnStatistics::default()
    }
}

fn integers(own: &IntegerStatistics, later: &IntegerStatistics) -> IntegerStatistics {
    IntegerStatistics {
        minimum: both(own.minimum, later.minimum, least),
        maximum: both(own.maximum, later.maximum, most),
        sum: both(own.sum, later.sum, i64::checked_add),
    }
}

fn doubles(own: &DoubleStatistics, later: &DoubleStatistics) -> DoubleStatistics {
    DoubleStatistics {
        minimum: both(own.minimum, later.minimum, least),
        maximum: both(own.maximum, later.maximum, most),
        // The sum stays NaN, which shows that one of the values is NaN.
        sum: both(own.sum, later.sum, |own, later| Some(own + later)),
    }
}

/// Merges statistics of text, whose bounds may be exact or truncated on either side.
fn texts(own: &StringStatistics, later: &StringStatistics) -> StringStatistics {
    type Side<'a> = (Option<&'a Vec<u8>>, Option<&'a Vec<u8>>);
    /// The bound, exact or truncated, of the side with the wider range.
    fn further(
        own: Side<'_>,
        later: Side<'_>,
        is_further: fn(&[u8], &[u8]) -> bool,
    ) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        let (Some(left), Some(right)) = (own.0.or(own.1), later.0.or(later.1)) else { return (None, None) };
        let (exact, cut) = if is_further(right, left) { later } else { own };
        (exact.cloned(), cut.filter(|_| exact.is_none()).cloned())
    }
    let low = |own: &StringStatistics| (own.minimum.clone(), own.lower_bound.clone());
    let high = |own: &StringStatistics| (own.maximum.clone(), own.upper_bound.clone());
    let (own_low, later_low, own_high, later_high) = (low(own), low(later), high(own), high(later));
    fn side(of: &(Option<Vec<u8>>, Option<Vec<u8>>)) -> Side<'_> {
        (of.0.as_ref(), of.1.as_ref())
    }
    let (minimum, lower_bound) = further(side(&own_low), side(&later_low), |one, other| one < other);
    let (maximum, upper_bound) = further(side(&own_high), side(&later_high), |one, other| one > other);
    StringStatistics { minimum, maximum, sum: both(own.sum, later.sum, i64::checked_add), lower_bound, upper_bound }
}

fn buckets(own: &BucketStatistics, later: &BucketStatistics) -> BucketStatistics {
    let pairs = own.count.iter().zip(&later.count);
    BucketStatistics { count: pairs.map(|(own, later)| own.saturating_add(*later)).collect() }
}

fn decimals(own: &DecimalStatistics, later: &DecimalStatistics) -> DecimalStatistics {
    let further = |own: &Option<Vec<u8>>, later: &Option<Vec<u8>>, wanted: std::cmp::Ordering| {
        let (left, right) = (Digits::read(own.as_deref()?)?, Digits::read(later.as_deref()?)?);
        if right.compare(&left)? == wanted { later.clone() } else { own.clone() }
    };
    let sum = || {
        let sum = Digits::read(own.sum.as_deref()?)?.add(&Digits::read(later.sum.as_deref()?)?)?;
        Some(crate::predicate::decimal_text(sum.unscaled, sum.scale).into_bytes())
    };
    DecimalStatistics {
        minimum: further(&own.minimum, &later.minimum, std::cmp::Ordering::Less),
        maximum: further(&own.maximum, &later.maximum, std::cmp::Ordering::Greater),
        sum: sum(),
    }
}

/// A decimal of the statistics, parsed from its text.
struct Digits {
    unscaled: i128,
    scale: u8,
}

impl Digits {
    fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let unscaled = format!("{whole}{decimals}").parse().ok()?;
        Some(Self { unscaled, scale: u8::try_from(decimals.len()).ok()? })
    }

    /// Both unscaled values at the larger of the two scales, and this scale; `None` on overflow.
    fn aligned(&self, other: &Self) -> Option<(i128, i128, u8)> {
        let scale = self.scale.max(other.scale);
        let of = |own: &Self| own.unscaled.checked_mul(10i128.checked_pow(u32::from(scale - own.scale))?);
        Some((of(self)?, of(other)?, scale))
    }

    fn compare(&self, other: &Self) -> Option<std::cmp::Ordering> {
        let (own, other, _) = self.aligned(other)?;
        Some(own.cmp(&other))
    }

    /// The sum; `None` for more than 38 digits.
    fn add(&self, other: &Self) -> Option<Self> {
        let (own, other, scale) = self.aligned(other)?;
        let unscaled = own.checked_add(other)?;
        (unscaled.unsigned_abs() < 10u128.pow(38)).then_some(Self { unscaled, scale })
    }
}

fn dates(own: &DateStatistics, later: &DateStatistics) -> DateStatistics {
    DateStatistics { minimum: both(own.minimum, later.minimum, least), maximum: both(own.maximum, later.maximum, most) }
}

fn binaries(own: &BinaryStatistics, later: &BinaryStatistics) -> BinaryStatistics {
    BinaryStatistics { sum: both(own.sum, later.sum, i64::checked_add) }
}

/// Merges statistics of timestamps. If milliseconds are equal, the nanoseconds decide; if these are missing, a minimum
/// is at the start of its millisecond, and a maximum at the end.
fn timestamps(own: &TimestampStatistics, later: &TimestampStatistics) -> TimestampStatistics {
    let low = |own: &TimestampStatistics| Some((own.minimum_utc?, own.minimum_nanos.unwrap_or(1)));
    let high = |own: &TimestampStatistics| Some((own.maximum_utc?, own.maximum_nanos.unwrap_or(1_000_000)));
    let minimum = both(low(own), low(later), least);
    let maximum = both(high(own), high(later), most);
    TimestampStatistics {
        minimum: both(own.minimum, later.minimum, least),
        maximum: both(own.maximum, later.maximum, most),
        minimum_utc: minimum.map(|(millis, _)| millis),
        maximum_utc: maximum.map(|(millis, _)| millis),
        minimum_nanos: minimum.map(|(_, nanos)| nanos).filter(|nanos| *nanos != 1),
        maximum_nanos: maximum.map(|(_, nanos)| nanos).filter(|nanos| *nanos != 1_000_000),
    }
}

fn collections(own: &CollectionStatistics, later: &CollectionStatistics) -> CollectionStatistics {
    CollectionStatistics {
        min_children: both(own.min_children, later.min_children, least),
        max_children: both(own.max_children, later.max_children, most),
        total_children: both(own.total_children, later.total_children, u64::checked_add),
    }
}

fn geometries(own: &GeospatialStatistics, later: &GeospatialStatistics) -> GeospatialStatistics {
    let mut types = own.geospatial_types.clone();
    types.extend(&later.geospatial_types);
    types.sort_unstable();
    types.dedup();
    // An empty list of types means that they are unknown.
    if own.geospatial_types.is_empty() || later.geospatial_types.is_empty() {
        types.clear();
    }
    let bbox = own.bbox.as_deref().zip(later.bbox.as_deref()).map(|(own, later)| {
        Box::new(BoundingBox {
            xmin: both(own.xmin, later.xmin, least),
            xmax: both(own.xmax, later.xmax, most),
            ymin: both(own.ymin, later.ymin, least),
            ymax: both(own.ymax, later.ymax, most),
            zmin: both(own.zmin, later.zmin, least),
            zmax: both(own.zmax, later.zmax, most),
            mmin: both(own.mmin, later.mmin, least),
            mmax: both(own.mmax, later.mmax, most),
        })
    });
    GeospatialStatistics { bbox, geospatial_types: types }
}
