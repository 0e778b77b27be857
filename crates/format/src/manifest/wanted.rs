//! Which metrics of an entry a reader wants, and for which fields.

use std::sync::Arc;

/// A metrics map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    ColumnSizes,
    ValueCounts,
    NullValueCounts,
    NanValueCounts,
    LowerBounds,
    UpperBounds,
}

impl Metric {
    pub(super) const ALL: [Self; 6] = [
        Self::ColumnSizes,
        Self::ValueCounts,
        Self::NullValueCounts,
        Self::NanValueCounts,
        Self::LowerBounds,
        Self::UpperBounds,
    ];

    /// Ids of the key and the value.
    pub(super) fn pair_ids(self) -> (i32, i32) {
        match self {
            Self::ColumnSizes => (117, 118),
            Self::ValueCounts => (119, 120),
            Self::NullValueCounts => (121, 122),
            Self::NanValueCounts => (138, 139),
            Self::LowerBounds => (126, 127),
            Self::UpperBounds => (129, 130),
        }
    }

    /// Whether the values are bytes; else they are numbers.
    pub(super) fn is_bound(self) -> bool {
        matches!(self, Self::LowerBounds | Self::UpperBounds)
    }
}

/// For which fields a metrics map is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FieldIds {
    /// None: the map is passed over, and its column is absent.
    #[default]
    None,
    /// All.
    All,
    /// These, in ascending order.
    Only(Arc<[i32]>),
}

impl FieldIds {
    /// The fields of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::None, ids) | (ids, Self::None) => ids.clone(),
            (Self::Only(left), Self::Only(right)) => Self::only(left.iter().chain(right.iter()).copied()),
        }
    }

    /// These fields.
    pub fn only(ids: impl IntoIterator<Item = i32>) -> Self {
        let mut ids: Vec<i32> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Self::Only(ids.into())
    }

    /// Whether all fields of the other are among these.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::None) => true,
            (Self::Only(_), Self::Only(ids)) => ids.iter().all(|id| self.contains(*id)),
            (Self::None | Self::Only(_), _) => false,
        }
    }

    /// How many, if not all.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Self::None => Some(0),
            Self::All => None,
            Self::Only(ids) => Some(ids.len()),
        }
    }

    #[inline]
    pub(super) fn contains(&self, id: i32) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Only(ids) if ids.len() <= 8 => ids.contains(&id),
            Self::Only(ids) => ids.binary_search(&id).is_ok(),
        }
    }
}

/// Which metrics are read, and for which fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Metrics {
    /// Bytes of a column.
    pub column_sizes: FieldIds,
    /// Values of a column.
    pub value_counts: FieldIds,
    /// Nulls of a column.
    pub null_value_counts: FieldIds,
    /// NaNs of a column.
    pub nan_value_counts: FieldIds,
    /// Lower bound of a column.
    pub lower_bounds: FieldIds,
    /// Upper bound of a column.
    pub upper_bounds: FieldIds,
}

impl Metrics {
    /// None: a scan without a filter needs none.
    pub fn none() -> Self {
        Self::default()
    }

    /// All of all fields.
    pub fn all() -> Self {
        Self {
            column_sizes: FieldIds::All,
            value_counts: FieldIds::All,
            null_value_counts: FieldIds::All,
            nan_value_counts: FieldIds::All,
            lower_bounds: FieldIds::All,
            upper_bounds: FieldIds::All,
        }
    }

    /// What evaluating a filter on these fields needs: counts and bounds, no sizes.
    pub fn for_filter(ids: impl IntoIterator<Item = i32>) -> Self {
        let ids = FieldIds::only(ids);
        Self {
            column_sizes: FieldIds::None,
            value_counts: ids.clone(),
            null_value_counts: ids.clone(),
            nan_value_counts: ids.clone(),
            lower_bounds: ids.clone(),
            upper_bounds: ids,
        }
    }

    /// The metrics of both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self {
            column_sizes: self.column_sizes.union(&other.column_sizes),
            value_counts: self.value_counts.union(&other.value_counts),
            null_value_counts: self.null_value_counts.union(&other.null_value_counts),
            nan_value_counts: self.nan_value_counts.union(&other.nan_value_counts),
            lower_bounds: self.lower_bounds.union(&other.lower_bounds),
            upper_bounds: self.upper_bounds.union(&other.upper_bounds),
        }
    }

    /// Whether all metrics of the other are among these.
    pub fn covers(&self, other: &Self) -> bool {
        Metric::ALL.into_iter().all(|metric| self.of(metric).covers(other.of(metric)))
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::none()
    }

    pub(super) fn of(&self, metric: Metric) -> &FieldIds {
        match metric {
            Metric::ColumnSizes => &self.column_sizes,
            Metric::ValueCounts => &self.value_counts,
            Metric::NullValueCounts => &self.null_value_counts,
            Metric::NanValueCounts => &self.nan_value_counts,
            Metric::LowerBounds => &self.lower_bounds,
            Metric::UpperBounds => &self.upper_bounds,
        }
    }

    pub(super) fn wants(&self, metric: Metric) -> bool {
        *self.of(metric) != FieldIds::None
    }
}
