//! Schema evolution: a batch of changes, checked one by one and applied at once ("Schema Evolution").
//!
//! Operations, checks and their order are those of the Java library's `UpdateSchema`.

mod apply;
mod change;
mod properties;
mod union;

pub use change::NewColumn;
pub use properties::PropertyChanges;
pub(crate) use properties::{BLOOM_FILTER_PREFIX, METRICS_MODE_PREFIX, SHREDDING_PREFIX, STATISTICS_PREFIX};

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::spec::PartitionSpec;
use crate::transform::Transform;
use crate::types::{Field, Schema};

/// Pending changes of a schema.
///
/// Names are full names in the original schema, with dots; new columns have the name under which they were added. A
/// failed operation does not affect the others.
#[derive(Debug, Clone)]
pub struct UpdateSchema {
    base: Schema,
    format_version: u8,
    last_column_id: i32,
    case_sensitive: bool,
    allow_incompatible: bool,
    deletes: HashSet<i32>,
    /// Changed and new fields by id.
    updates: HashMap<i32, Field>,
    /// New fields in order, by the id of their parent; `None` is the top level.
    additions: HashMap<Option<i32>, Vec<i32>>,
    /// Full names of new fields.
    added_names: HashMap<String, i32>,
    /// Parents of new nested fields.
    added_parents: HashMap<i32, i32>,
    moves: HashMap<Option<i32>, Vec<Move>>,
    identifiers: BTreeSet<Identifier>,
    /// Columns that a partition field uses by more than their year, month or day.
    partition_sources: HashSet<i32>,
}

/// An identifier field of the changed schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    /// A field of the original schema, by id.
    Known(i32),
    /// A field of the changed schema, by name.
    Named(String),
}

/// The move of a field within its struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    id: i32,
    to: Target,
}

/// Destination of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    First,
    Before(i32),
    After(i32),
}

impl UpdateSchema {
    /// Starts from the current schema of a table, and the highest column id that it ever assigned.
    pub fn new(schema: &Schema, last_column_id: i32, format_version: u8) -> Self {
        Self {
            base: schema.clone(),
            format_version,
            last_column_id,
            case_sensitive: true,
            allow_incompatible: false,
            deletes: HashSet::new(),
            updates: HashMap::new(),
            additions: HashMap::new(),
            added_names: HashMap::new(),
            added_parents: HashMap::new(),
            moves: HashMap::new(),
            identifiers: schema.identifier_field_ids().iter().copied().map(Identifier::Known).collect(),
            partition_sources: HashSet::new(),
        }
    }

    /// Sets whether names are case-sensitive in later operations; the default is true.
    pub fn case_sensitive(&mut self, case_sensitive: bool) -> &mut Self {
        self.case_sensitive = case_sensitive;
        self
    }

    /// Allows changes that may conflict with old data: adding required columns without a default, and making optional
    /// columns required.
    pub fn allow_incompatible(&mut self) -> &mut Self {
        self.allow_incompatible = true;
        self
    }

    /// Sets the partition specs of the table. A date that a spec uses by value or by hash cannot become a timestamp,
    /// since partition values would no longer match.
    pub fn partitioned_by<'a>(&mut self, specs: impl IntoIterator<Item = &'a PartitionSpec>) -> &mut Self {
        for field in specs.into_iter().flat_map(|spec| &spec.fields) {
            if !matches!(field.transform, Transform::Year | Transform::Month | Transform::Day | Transform::Void) {
                self.partition_sources.extend(&field.source_ids);
            }
        }
        self
    }

    /// The highest column id, including those of new columns.
    pub fn last_column_id(&self) -> i32 {
        self.last_column_id
    }
}

#[cfg(test)]
mod tests;
