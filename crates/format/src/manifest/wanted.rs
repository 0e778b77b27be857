//! Which metrics of an entry to read, and for which fields.

use std::sync::Arc;

use super::fields::EntryField;

/// The fields for which a metrics map is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum FieldIds {
    /// No fields: the map is skipped, and its column is absent.
    #[default]
    None,
    /// All fields.
    All,
    /// These fields, in ascending order.
    Only(Arc<[i32]>),
}

impl FieldIds {
    /// The fields in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::All, _) | (_, Self::All) => Self::All,
            (Self::None, ids) | (ids, Self::None) => ids.clone(),
            (Self::Only(left), Self::Only(right)) => Self::only(left.iter().chain(right.iter()).copied()),
        }
    }

    /// Only these fields.
    pub fn only(ids: impl IntoIterator<Item = i32>) -> Self {
        let mut ids: Vec<i32> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        Self::Only(ids.into())
    }

    /// Whether it includes all fields of the other.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) | (_, Self::None) => true,
            (Self::Only(_), Self::Only(ids)) => ids.iter().all(|id| self.contains(*id)),
            (Self::None | Self::Only(_), _) => false,
        }
    }

    /// Number of fields; `None` for all.
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

macro_rules! metrics {
    ($($group:ident { $(#[$doc:meta])* $name:ident: $($declared:tt)* })*) => {
        /// Which metrics to read, and for which fields.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct Metrics {
            $($(#[$doc])* pub $name: FieldIds,)*
        }

        impl Metrics {
            /// All metrics of all fields.
            pub fn all() -> Self {
                Self { $($name: FieldIds::All,)* }
            }

            /// The metrics in either.
            #[must_use]
            pub fn union(&self, other: &Self) -> Self {
                Self { $($name: self.$name.union(&other.$name),)* }
            }

            /// Whether it includes all metrics of the other.
            pub fn covers(&self, other: &Self) -> bool {
                $(self.$name.covers(&other.$name))&&*
            }

            /// The fields for which a metric is read; `None` if the field is not a metric.
            pub(super) fn of(&self, field: EntryField) -> Option<&FieldIds> {
                match field {
                    $(EntryField::$name => Some(&self.$name),)*
                    _ => None,
                }
            }
        }
    };
}

entry_fields!(metric, metrics);

impl Metrics {
    /// No metrics: enough for a scan without a filter.
    pub fn none() -> Self {
        Self::default()
    }

    /// What the evaluation of a filter on these fields needs: counts and bounds, but no sizes.
    pub fn for_filter(ids: impl IntoIterator<Item = i32>) -> Self {
        let ids = FieldIds::only(ids);
        Self {
            value_counts: ids.clone(),
            null_value_counts: ids.clone(),
            nan_value_counts: ids.clone(),
            lower_bounds: ids.clone(),
            upper_bounds: ids,
            ..Self::none()
        }
    }

    /// Whether no metrics are read.
    pub fn is_none(&self) -> bool {
        *self == Self::none()
    }
}
