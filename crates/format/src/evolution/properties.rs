//! Updates table properties after a change of the schema: the name mapping, and properties of single columns.

use std::collections::{HashMap, HashSet};

use super::UpdateSchema;
use crate::types::{NAME_MAPPING_PROPERTY, NameMapping, Schema};

/// Prefixes of properties that are renamed or removed with their column, as in Java, which has not the last one.
pub(crate) const METRICS_MODE_PREFIX: &str = "write.metadata.metrics.column.";
pub(crate) const BLOOM_FILTER_PREFIX: &str = "write.parquet.bloom-filter-enabled.column.";
pub(crate) const STATISTICS_PREFIX: &str = "write.parquet.stats-enabled.column.";

pub(crate) const SHREDDING_PREFIX: &str = "write.parquet.shred-variants.column.";

const COLUMN_PREFIXES: [&str; 4] = [METRICS_MODE_PREFIX, BLOOM_FILTER_PREFIX, STATISTICS_PREFIX, SHREDDING_PREFIX];

/// Property changes that follow from a schema change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PropertyChanges {
    /// Properties to set.
    pub set: Vec<(String, String)>,
    /// Properties to remove, before others are set.
    pub removed: Vec<String>,
}

impl UpdateSchema {
    /// Returns the property changes that follow from the changed schema, `changed`. An unreadable name mapping is left
    /// unchanged.
    pub fn property_changes<'a>(
        &self,
        changed: &Schema,
        properties: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> PropertyChanges {
        let renamed = self.renamed(changed);
        let gone = self.base.ids().iter().filter(|id| changed.column_name(**id).is_none());
        let deleted: HashSet<_> = gone.filter_map(|id| self.base.column_name(*id)).collect();
        let mut changes = PropertyChanges::default();
        for (key, value) in properties {
            if key == NAME_MAPPING_PROPERTY {
                changes.set.extend(self.name_mapping(value).map(|mapping| (key.to_owned(), mapping)));
            }
            let split = COLUMN_PREFIXES.iter().find_map(|prefix| Some((prefix, key.strip_prefix(prefix)?)));
            let Some((prefix, column)) = split else { continue };
            if let Some(name) = renamed.get(column) {
                changes.removed.push(key.to_owned());
                changes.set.push((format!("{prefix}{name}"), value.to_owned()));
            } else if deleted.contains(column) {
                changes.removed.push(key.to_owned());
            }
        }
        changes
    }

    /// Returns the changed name mapping as text; `None` if it stays the same.
    fn name_mapping(&self, text: &str) -> Option<String> {
        let mapping = NameMapping::parse(text).ok()?;
        let updated = mapping.updated(&self.updates, &self.additions).ok()?;
        (updated != mapping).then(|| updated.to_json().to_string())
    }

    /// Maps old full names of columns to new ones.
    fn renamed<'a>(&'a self, changed: &'a Schema) -> HashMap<&'a str, &'a str> {
        let names =
            self.base.ids().iter().filter_map(|id| Some((self.base.column_name(*id)?, changed.column_name(*id)?)));
        names.filter(|(old, new)| old != new).collect()
    }
}
