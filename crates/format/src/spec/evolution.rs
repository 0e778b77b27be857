//! Changes partition specs ("Partition Evolution"): adds, removes and renames fields.
//!
//! v1 requires that fields keep their positions, so a removed field stays as `void`. In later versions it is removed,
//! and a field that is added again gets the id that it had in an earlier spec.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{PartitionField, PartitionSpec, SpecUse};
use crate::nearest::{hint, listed};
use crate::transform::Transform;
use crate::types::Schema;
use crate::{Error, FormatVersion, Result};

/// A change of the default partition spec of a table.
#[derive(Debug, Clone)]
pub struct UpdatePartitionSpec {
    format_version: FormatVersion,
    schema: Arc<Schema>,
    spec: Arc<PartitionSpec>,
    history: Vec<Arc<PartitionSpec>>,
    last_partition_id: i32,
    case_sensitive: bool,
    added: Vec<PartitionField>,
    /// Ids of removed fields.
    removed: HashSet<i32>,
    /// New names by old names.
    renamed: HashMap<String, String>,
}

impl UpdatePartitionSpec {
    /// Starts from `spec`, the default spec; `history` has all specs, and `schema` is the current schema.
    pub fn new(
        format_version: FormatVersion,
        schema: Arc<Schema>,
        spec: Arc<PartitionSpec>,
        history: Vec<Arc<PartitionSpec>>,
        last_partition_id: i32,
    ) -> Self {
        Self {
            format_version,
            schema,
            spec,
            history,
            last_partition_id,
            case_sensitive: true,
            added: Vec::new(),
            removed: HashSet::new(),
            renamed: HashMap::new(),
        }
    }

    /// Sets whether column names are case-sensitive in later operations; the default is true.
    pub fn case_sensitive(&mut self, case_sensitive: bool) -> &mut Self {
        self.case_sensitive = case_sensitive;
        self
    }

    /// Adds a field: a transform of a column. Without a name it gets a default one such as `id_bucket_16`.
    pub fn add_field(&mut self, transform: Transform, column: &str, name: Option<&str>) -> Result<&mut Self> {
        if let Some(added) = name.and_then(|name| self.added_named(name)) {
            return Err(Error::invalid(format!("partition field {added} was already added")));
        }
        let source_id = self.find_column(column)?;
        if let Some(existing) = find(&self.spec.fields, source_id, &transform).cloned() {
            if self.removed.remove(&existing.field_id) {
                return match name.filter(|name| *name != existing.name) {
                    Some(name) => self.rename_field(&existing.name, name),
                    None => Ok(self),
                };
            }
            return Err(Error::invalid(format!("partition field {existing} already exists")));
        }
        if let Some(added) = find(&self.added, source_id, &transform) {
            return Err(Error::invalid(format!("partition field {added} was already added")));
        }
        let field = self.new_field(source_id, transform, name)?;
        field.check_new(&self.schema)?;
        self.check_not_redundant(&field)?;
        self.make_room_for(&field.name)?;
        self.added.push(field);
        Ok(self)
    }

    /// Removes the field with this name.
    pub fn remove_field(&mut self, name: &str) -> Result<&mut Self> {
        if let Some(added) = self.added_named(name) {
            return Err(Error::invalid(format!("partition field {added} has just been added, it cannot be removed")));
        }
        let field = self.field_named(name).ok_or_else(|| self.missing(name))?;
        self.remove(field.field_id, name)
    }

    /// Removes the field with this transform of a column.
    pub fn remove_transform(&mut self, transform: &Transform, column: &str) -> Result<&mut Self> {
        let source_id = self.find_column(column)?;
        if let Some(added) = find(&self.added, source_id, transform) {
            return Err(Error::invalid(format!("partition field {added} has just been added, it cannot be removed")));
        }
        match find(&self.spec.fields, source_id, transform).cloned() {
            Some(field) => self.remove(field.field_id, &field.name),
            None => Err(self.missing(&format!("{transform}({column})"))),
        }
    }

    /// Renames a field.
    pub fn rename_field(&mut self, name: &str, new_name: &str) -> Result<&mut Self> {
        if self.field_named(new_name).is_some_and(|taken| taken.transform == Transform::Void) {
            self.set_aside(new_name)?;
        }
        if let Some(added) = self.added_named(name) {
            return Err(Error::invalid(format!("partition field {added} has just been added, it cannot be renamed")));
        }
        match self.field_named(name) {
            None => Err(self.missing(name)),
            Some(field) if self.removed.contains(&field.field_id) => {
                Err(Error::invalid(format!("partition field {name:?} cannot be both removed and renamed")))
            }
            Some(_) => {
                self.renamed.insert(name.to_owned(), new_name.to_owned());
                Ok(self)
            }
        }
    }

    /// Returns the spec with all changes, checked against the schema. The metadata builder assigns its id.
    pub fn apply(&self) -> Result<PartitionSpec> {
        let kept = self.spec.fields.iter().filter_map(|field| self.changed(field));
        let spec = PartitionSpec { spec_id: 0, fields: kept.chain(self.added.iter().cloned()).collect() };
        spec.check(&self.schema, SpecUse::Default)?;
        Ok(spec)
    }

    /// Returns an existing field after the changes; `None` if it is removed.
    fn changed(&self, field: &PartitionField) -> Option<PartitionField> {
        let name = self.renamed.get(&field.name).unwrap_or(&field.name).clone();
        match (self.removed.contains(&field.field_id), self.format_version) {
            (false, _) => Some(PartitionField { name, ..field.clone() }),
            (true, FormatVersion::V1) => Some(PartitionField { name, ..field.voided(false) }),
            (true, _) => None,
        }
    }

    fn find_column(&self, column: &str) -> Result<i32> {
        self.schema.named(column, self.case_sensitive).map(|field| field.id)
    }

    fn missing(&self, name: &str) -> Error {
        let names = || self.spec.fields.iter().map(|field| field.name.as_str());
        let list = match self.spec.fields.is_empty() {
            true => "the table is not partitioned".to_owned(),
            false => format!("partition fields: {}", listed(names())),
        };
        Error::unfit(format!("there is no partition field {name:?}{} ({list})", hint(name, names())))
    }

    fn field_named(&self, name: &str) -> Option<&PartitionField> {
        self.spec.fields.iter().find(|field| field.name == name)
    }

    fn added_named(&self, name: &str) -> Option<&PartitionField> {
        self.added.iter().find(|field| field.name == name)
    }

    fn remove(&mut self, field_id: i32, name: &str) -> Result<&mut Self> {
        if self.renamed.contains_key(name) {
            return Err(Error::invalid(format!("partition field {name:?} cannot be both renamed and removed")));
        }
        self.removed.insert(field_id);
        Ok(self)
    }

    /// Returns an equal field of an earlier spec (with the same name, if one is given), else a field with a new id.
    fn new_field(&mut self, source_id: i32, transform: Transform, name: Option<&str>) -> Result<PartitionField> {
        if self.format_version > FormatVersion::V1 {
            let mut earlier = self.history.iter().flat_map(|spec| &spec.fields);
            let same = |field: &&PartitionField| {
                is(field, source_id, &transform) && name.is_none_or(|name| field.name == name)
            };
            if let Some(field) = earlier.find(same) {
                return Ok(field.clone());
            }
        }
        let name = match name {
            Some(name) => name.to_owned(),
            None => default_name(self.schema.column_name(source_id).unwrap_or_default(), &transform)?,
        };
        let next = self.last_partition_id.checked_add(1);
        self.last_partition_id = next.ok_or_else(|| Error::invalid("all partition field ids are used up"))?;
        Ok(PartitionField { source_ids: vec![source_id], field_id: self.last_partition_id, name, transform })
    }

    /// Checks that a column has only one time granularity, since days are within months, and months within years.
    fn check_not_redundant(&self, field: &PartitionField) -> Result<()> {
        let rival = |other: &&PartitionField| other.source_ids == field.source_ids && is_time(&other.transform);
        match self.added.iter().find(rival).filter(|_| is_time(&field.transform)) {
            Some(other) => Err(Error::invalid(format!("partition field {field} is redundant beside {other}"))),
            None => Ok(()),
        }
    }

    /// Makes a name available if its field is removed, now or in an earlier spec.
    fn make_room_for(&mut self, name: &str) -> Result<()> {
        match self.field_named(name) {
            None => Ok(()),
            Some(taken) if self.removed.contains(&taken.field_id) => {
                let aside = taken.name_aside();
                self.renamed.insert(name.to_owned(), aside);
                Ok(())
            }
            Some(taken) if taken.transform == Transform::Void => self.set_aside(name),
            Some(taken) => Err(Error::invalid(format!("partition field {taken} has that name already"))),
        }
    }

    /// Renames an unused field to make its name available.
    fn set_aside(&mut self, name: &str) -> Result<()> {
        match self.field_named(name).map(PartitionField::name_aside) {
            Some(aside) => self.rename_field(name, &aside).map(|_| ()),
            None => Ok(()),
        }
    }
}

fn is(field: &PartitionField, source_id: i32, transform: &Transform) -> bool {
    field.source_id() == Some(source_id) && field.transform == *transform
}

fn find<'a>(fields: &'a [PartitionField], source_id: i32, transform: &Transform) -> Option<&'a PartitionField> {
    // Use the last one if there are two.
    fields.iter().rev().find(|field| is(field, source_id, transform))
}

fn is_time(transform: &Transform) -> bool {
    matches!(transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour)
}

/// Returns the default name of a field.
fn default_name(column: &str, transform: &Transform) -> Result<String> {
    Ok(match transform {
        Transform::Identity => column.to_owned(),
        Transform::Bucket(count) => format!("{column}_bucket_{count}"),
        Transform::Truncate(width) => format!("{column}_trunc_{width}"),
        Transform::Year => format!("{column}_year"),
        Transform::Month => format!("{column}_month"),
        Transform::Day => format!("{column}_day"),
        Transform::Hour => format!("{column}_hour"),
        Transform::Void => format!("{column}_null"),
        Transform::Unknown(name) => return Err(Error::unsupported(format!("partitioning by transform {name:?}"))),
    })
}
