//! Metrics of data files for the evaluators ("Data File Fields": counts and bounds by field id).

use std::cmp::Ordering;
use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray};
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::transform::Transform;
use crate::value::{Value, binary};

use crate::expr::bind::BoundTerm;
use crate::expr::datum::Datum;

/// The metrics of one file.
pub trait FileStatistics {
    /// Number of rows; negative if unknown, as in old imports.
    fn record_count(&self) -> i64;

    /// Known metrics of the field with this id.
    fn field(&self, id: i32) -> FieldStatistics<'_>;
}

/// Metrics of one field in one file; `None` if unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldStatistics<'a> {
    /// Number of values, including nulls and NaN.
    pub value_count: Option<i64>,
    /// Number of nulls.
    pub null_count: Option<i64>,
    /// Number of NaN.
    pub nan_count: Option<i64>,
    /// Lower bound of all values, in binary form.
    pub lower: Option<&'a [u8]>,
    /// Upper bound of all values, in binary form.
    pub upper: Option<&'a [u8]>,
}

/// Metrics of many files, stored as columns.
#[derive(Debug, Clone, Default)]
pub struct StatisticsColumns {
    record_counts: Vec<i64>,
    fields: HashMap<i32, FieldColumns>,
}

/// Metrics of one field in many files.
#[derive(Debug, Clone, Default)]
struct FieldColumns {
    value_counts: Option<Int64Array>,
    null_counts: Option<Int64Array>,
    nan_counts: Option<Int64Array>,
    lower: BoundsColumn,
    upper: BoundsColumn,
}

/// A column of bounds in any of its Arrow layouts.
#[derive(Debug, Clone, Default)]
enum BoundsColumn {
    #[default]
    None,
    Binary(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
}

impl StatisticsColumns {
    /// Starts with these row counts (`None` if unknown) and no metrics of fields.
    #[must_use]
    pub fn new(record_counts: &Int64Array) -> Self {
        Self { record_counts: record_counts.iter().map(|count| count.unwrap_or(-1)).collect(), fields: HashMap::new() }
    }

    /// Adds the counts of a field: values, nulls and NaN.
    pub fn with_counts(
        mut self,
        id: i32,
        values: Option<Int64Array>,
        nulls: Option<Int64Array>,
        nans: Option<Int64Array>,
    ) -> Result<Self> {
        for counts in [&values, &nulls, &nans].into_iter().flatten() {
            self.check(id, counts.len())?;
        }
        let field = self.fields.entry(id).or_default();
        (field.value_counts, field.null_counts, field.nan_counts) = (values, nulls, nans);
        Ok(self)
    }

    /// Adds the bounds of a field: binary, large binary or binary view.
    pub fn with_bounds(mut self, id: i32, lower: Option<&ArrayRef>, upper: Option<&ArrayRef>) -> Result<Self> {
        let (lower, upper) = (self.bounds(id, lower)?, self.bounds(id, upper)?);
        let field = self.fields.entry(id).or_default();
        (field.lower, field.upper) = (lower, upper);
        Ok(self)
    }

    /// Number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.record_counts.len()
    }

    /// Whether there are no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.record_counts.is_empty()
    }

    /// Metrics of one file.
    #[must_use]
    pub fn file(&self, row: usize) -> StatisticsOfFile<'_> {
        StatisticsOfFile { columns: self, row }
    }

    pub(super) fn record_counts(&self) -> &[i64] {
        &self.record_counts
    }

    /// Returns a function from file to the metrics of a field.
    pub(super) fn of_field<'a>(&'a self, id: i32) -> impl Fn(usize) -> FieldStatistics<'a> + use<'a> {
        let field = self.fields.get(&id);
        move |row| field.map_or_else(FieldStatistics::default, |field| field.get(row))
    }

    fn check(&self, id: i32, len: usize) -> Result<()> {
        if len == self.len() {
            return Ok(());
        }
        Err(Error::invalid(format!("metrics of field {id} for {len} files, but there are {}", self.len())))
    }

    fn bounds(&self, id: i32, array: Option<&ArrayRef>) -> Result<BoundsColumn> {
        let Some(array) = array else { return Ok(BoundsColumn::None) };
        self.check(id, array.len())?;
        Ok(match array.data_type() {
            DataType::Binary => BoundsColumn::Binary(array.as_binary().clone()),
            DataType::LargeBinary => BoundsColumn::Large(array.as_binary().clone()),
            DataType::BinaryView => BoundsColumn::View(array.as_binary_view().clone()),
            other => return Err(Error::invalid(format!("bounds of field {id} are {other}, not binary"))),
        })
    }
}

impl FieldColumns {
    fn get(&self, row: usize) -> FieldStatistics<'_> {
        let count = |counts: &Option<Int64Array>| counts.as_ref().filter(|c| c.is_valid(row)).map(|c| c.value(row));
        FieldStatistics {
            value_count: count(&self.value_counts),
            null_count: count(&self.null_counts),
            nan_count: count(&self.nan_counts),
            lower: self.lower.get(row),
            upper: self.upper.get(row),
        }
    }
}

impl BoundsColumn {
    fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Self::None => None,
            Self::Binary(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

/// Metrics of one of many files.
#[derive(Debug, Clone, Copy)]
pub struct StatisticsOfFile<'a> {
    columns: &'a StatisticsColumns,
    row: usize,
}

impl FileStatistics for StatisticsOfFile<'_> {
    fn record_count(&self) -> i64 {
        self.columns.record_counts.get(self.row).copied().unwrap_or(-1)
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        self.columns.fields.get(&id).map_or_else(FieldStatistics::default, |field| field.get(self.row))
    }
}

/// Metrics of a term's column in a file with this number of rows.
pub(super) struct TermStatistics<'a> {
    pub(super) term: &'a BoundTerm,
    pub(super) field: FieldStatistics<'a>,
    pub(super) record_count: i64,
}

impl TermStatistics<'_> {
    /// Whether the term may be null; a non-null variant need not contain the extracted value.
    pub(super) fn may_contain_null(&self) -> bool {
        self.term.extract.is_some() || self.field.null_count != Some(0) || !self.counts_all_rows()
    }

    /// Whether the counts cover all rows. In files of some writers, counts of nested columns leave out rows with a null
    /// parent.
    pub(super) fn counts_all_rows(&self) -> bool {
        let covers = |values| self.record_count >= 0 && values >= self.record_count;
        !self.term.reference.is_nested() || self.field.value_count.is_some_and(covers)
    }

    pub(super) fn contains_nulls_only(&self) -> bool {
        self.field.value_count.is_some() && self.field.value_count == self.field.null_count
    }

    pub(super) fn may_contain_nan(&self) -> bool {
        self.field.nan_count != Some(0)
    }

    pub(super) fn contains_nans_only(&self) -> bool {
        self.field.nan_count.is_some() && self.field.nan_count == self.field.value_count
    }

    /// Compares the term's bounds with a literal. A NaN lower bound is ignored: some ORC writers write it if the first
    /// value was NaN.
    pub(super) fn with_order(
        &self,
        literal: Datum<'_>,
        ask: impl FnOnce(Option<Ordering>, Option<Ordering>) -> bool,
    ) -> bool {
        self.with_bounds(|lower, upper| {
            let lower = lower.filter(|lower| !lower.is_nan()).map(|lower| lower.order(literal));
            ask(lower, upper.map(|upper| upper.order(literal)))
        })
    }

    /// Calls `ask` with the term's bounds; `None` if they are unknown or unusable.
    pub(super) fn with_bounds<R>(&self, ask: impl FnOnce(Option<Datum<'_>>, Option<Datum<'_>>) -> R) -> R {
        if let Some(extract) = &self.term.extract {
            let bound = |bytes: Option<&[u8]>| bytes.and_then(|bytes| extract.bound(bytes));
            let (lower, upper) = (bound(self.field.lower), bound(self.field.upper));
            return ask(lower.as_ref().and_then(Datum::of), upper.as_ref().and_then(Datum::of));
        }
        let Some(ty) = self.term.reference.primitive() else { return ask(None, None) };
        let (lower, upper) = (self.field.lower, self.field.upper);
        let transform = match &self.term.transform {
            None | Some(Transform::Identity) => {
                let (lower, upper) = Datum::of_bounds(ty, lower, upper);
                return ask(lower, upper);
            }
            Some(transform) if !transform.preserves_order() => return ask(None, None),
            Some(transform) => transform,
        };
        let value = |bytes: &[u8]| binary::from_bytes(bytes, ty).ok();
        let (low, high) = (lower.and_then(value), upper.and_then(value));
        // `truncate` wraps around near the smallest number. So its results have bounds only if the column's lower bound
        // does not wrap, or if the column has a single value.
        if transform.may_wrap(&self.term.reference.ty) && (lower.is_none() || lower != upper) {
            match &low {
                Some(low) if !transform.wraps(low) => {}
                _ => return ask(None, None),
            }
        }
        let apply = |value: &Value| transform.apply(&self.term.reference.ty, Some(value)).ok().flatten();
        let (lower, upper) = (low.as_ref().and_then(apply), high.as_ref().and_then(apply));
        ask(lower.as_ref().and_then(Datum::of), upper.as_ref().and_then(Datum::of))
    }
}
