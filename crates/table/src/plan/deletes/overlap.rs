//! Whether rows of an equality delete file may equal rows of a data file, by the metrics of both.

use std::cmp::Ordering;

use icefield_format::expr::Datum;
use icefield_format::types::PrimitiveType;

use crate::plan::field_metrics::FieldMetrics;

/// The metrics of one column of a file; `B` holds the bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Of<B> {
    values: Option<i64>,
    nulls: Option<i64>,
    lower: Option<B>,
    upper: Option<B>,
}

/// A bound that outlives the manifest.
#[derive(Debug)]
pub(super) enum Bound {
    Plain(Datum<'static>),
    Bytes(Box<[u8]>),
}

impl Bound {
    pub(super) fn of(datum: Datum<'_>) -> Self {
        match datum {
            Datum::Bytes(bytes) => Self::Bytes(bytes.into()),
            Datum::Boolean(value) => Self::Plain(Datum::Boolean(value)),
            Datum::Integer(value) => Self::Plain(Datum::Integer(value)),
            Datum::Float(value) => Self::Plain(Datum::Float(value)),
            Datum::Decimal(value) => Self::Plain(Datum::Decimal(value)),
            Datum::Uuid(value) => Self::Plain(Datum::Uuid(value)),
        }
    }

    fn datum(&self) -> Datum<'_> {
        match self {
            Self::Plain(datum) => *datum,
            Self::Bytes(bytes) => Datum::Bytes(bytes),
        }
    }
}

impl<'m> Of<Datum<'m>> {
    /// The metrics of a file; bounds that do not fit the type are treated as unknown.
    pub(super) fn file(metrics: &'m FieldMetrics, row: usize, ty: &PrimitiveType) -> Self {
        let (lower, upper) = Datum::of_bounds(ty, metrics.bounds.lower(row), metrics.bounds.upper(row));
        Self { values: metrics.value_count(row), nulls: metrics.null_count(row), lower, upper }
    }
}

impl<B> Of<B> {
    pub(super) fn map<C>(self, change: impl Fn(B) -> C) -> Of<C> {
        Of { values: self.values, nulls: self.nulls, lower: self.lower.map(&change), upper: self.upper.map(&change) }
    }

    /// Whether any metric could exclude another file.
    pub(super) fn tells(&self) -> bool {
        self.nulls.is_some() || self.lower.is_some() || self.upper.is_some()
    }

    fn may_have_null(&self) -> bool {
        self.nulls.is_none_or(|nulls| nulls > 0)
    }

    fn all_null(&self) -> bool {
        self.values.is_some() && self.values == self.nulls
    }

    fn no_null(&self) -> bool {
        self.nulls == Some(0)
    }
}

pub(super) fn column_may_meet(data: &Of<Datum<'_>>, delete: &Of<Bound>) -> bool {
    if data.may_have_null() && delete.may_have_null() {
        return true;
    }
    if data.all_null() && delete.no_null() || delete.all_null() && data.no_null() {
        return false;
    }
    let bounds = (data.lower, data.upper, &delete.lower, &delete.upper);
    let (Some(data_lower), Some(data_upper), Some(lower), Some(upper)) = bounds else { return true };
    let is_above = |left: Datum<'_>, right: Datum<'_>| left.row_order(right) == Some(Ordering::Greater);
    !is_above(data_lower, upper.datum()) && !is_above(lower.datum(), data_upper)
}
