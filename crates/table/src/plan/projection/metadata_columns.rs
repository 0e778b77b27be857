//! Metadata columns ("Reserved Field IDs"): which ones a scan has in addition to table columns, and their values
//! where all rows of a file share one.
//!
//! A metadata column is found by name if the table has no column of that name, and read by its reserved id. In a
//! changelog `_change_type` is `INSERT` or `DELETE`, `_change_ordinal` the index of the snapshot in the changelog,
//! from 0, and `_commit_snapshot_id` the snapshot.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;

use icefield_format::expr::{BoundExpr, BoundPredicate, BoundReference, BoundTerm, Expression, PathStep};
use icefield_format::spec::PartitionSpec;
use icefield_format::transform::Transform;
use icefield_format::types::reserved::{
    CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID, DELETED, FILE, LAST_UPDATED_SEQUENCE_NUMBER, MAX_COLUMN_ID,
    PARTITION, POS, ROW_ID, ReservedField, SPEC_ID,
};
use icefield_format::types::{Field, PrimitiveType, Schema, StructType, Type};
use icefield_format::value::Value;

use super::partition_union::partition_union;
use crate::error::{Error, Result};
use crate::plan::Scan;
use crate::plan::changes::Change;

/// The metadata columns of every scan except `_partition`, whose type depends on the table.
const ROW_COLUMNS: [ReservedField<PrimitiveType>; 6] =
    [FILE, POS, DELETED, SPEC_ID, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER];

/// The additional columns of changelogs, in order.
const CHANGE_COLUMNS: [ReservedField<PrimitiveType>; 3] = [CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID];

/// Whether an id belongs to a metadata column.
pub fn is_metadata_column(id: i32) -> bool {
    id > MAX_COLUMN_ID
}

/// Ids of fields of `_partition` that differ from their partition fields, because the table has columns with those
/// ids.
pub type PartitionFieldIds = BTreeMap<i32, i32>;

/// Table columns and the named metadata columns.
#[derive(Debug, Clone)]
pub struct NamedColumns {
    /// All columns.
    pub schema: Arc<Schema>,
    /// The partition field of each field of `_partition`.
    pub partition_fields: PartitionFieldIds,
}

impl Scan {
    /// Table columns and named metadata columns; a changelog always has its own.
    pub(crate) fn columns_named<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<NamedColumns> {
        let mut added: Vec<Field> = Vec::new();
        let mut partition_fields = PartitionFieldIds::new();
        if self.changes.as_ref().is_some_and(|changes| changes.is_changelog()) {
            for column in CHANGE_COLUMNS {
                if self.schema.find_by_name(column.name, true)?.is_some() {
                    let name = column.name;
                    return Err(Error::invalid(format!(
                        "the table has a column {name}: rename it to read a changelog"
                    )));
                }
                added.push(column.to_field());
            }
        }
        let is_named = |column: &str, name: &str| match self.case_sensitive {
            true => column == name,
            false => column.eq_ignore_ascii_case(name),
        };
        for name in names {
            if !name.starts_with('_') || self.schema.find_by_name(name, self.case_sensitive)?.is_some() {
                continue;
            }
            let first = name.split('.').next().unwrap_or(name);
            let field = if is_named(PARTITION.name, first) {
                let (ty, ids) = self.partition_column()?;
                partition_fields = ids;
                Some(PARTITION.to_field(ty))
            } else {
                ROW_COLUMNS.iter().find(|column| is_named(column.name, name)).map(|column| column.to_field())
            };
            added.extend(field.filter(|field| added.iter().all(|known| known.id != field.id)));
        }
        if added.is_empty() {
            return Ok(NamedColumns { schema: self.schema.clone(), partition_fields });
        }
        let fields = self.schema.fields().iter().cloned().chain(added).collect();
        Ok(NamedColumns { schema: Arc::new(Schema::new(self.schema.schema_id(), fields)?), partition_fields })
    }

    /// The filter, bound to table columns and the metadata columns it names, and these columns.
    pub fn bound_filter(&self) -> Result<(BoundExpr, NamedColumns)> {
        let named = self.columns_named(self.filter.predicates().map(|predicate| &*predicate.term.name))?;
        Ok((self.filter.bind(&named.schema, self.case_sensitive)?, named))
    }

    /// The type of `_partition`. Values have the types of the scan's schema if it has their columns.
    fn partition_column(&self) -> Result<(StructType, PartitionFieldIds)> {
        let mut union = partition_union(&self.metadata)?;
        for spec in self.metadata.partition_specs() {
            for (field, column) in spec.fields.iter().zip(spec.partition_type(&self.schema).fields) {
                let is_there = field.source_ids.iter().all(|id| self.schema.find_field(*id).is_some());
                if is_there && !field.transform.is_void() {
                    let known = union.fields.iter_mut().filter(|known| known.id == field.field_id);
                    known.for_each(|known| known.ty = column.ty.clone());
                }
            }
        }
        let taken: HashSet<i32> =
            self.schema.ids().iter().chain(union.fields.iter().map(|field| &field.id)).copied().collect();
        let mut free = (1..=MAX_COLUMN_ID).rev().filter(|id| !taken.contains(id));
        let mut ids = PartitionFieldIds::new();
        for field in &mut union.fields {
            if self.schema.find_field(field.id).is_some()
                && let Some(id) = free.next()
            {
                ids.insert(id, field.id);
                field.id = id;
            }
        }
        Ok((union, ids))
    }
}

/// What is known about a data file before it is opened.
#[derive(Debug, Clone, Copy)]
pub struct FileFacts<'a> {
    /// Location.
    pub path: &'a str,
    /// The partition spec.
    pub spec: &'a PartitionSpec,
    /// The partition, in the order of the spec's fields.
    pub tuple: &'a [Option<Value>],
    /// Whether deleted rows may be among those that are read.
    pub has_deleted_rows: bool,
    /// Whether rows may have ids.
    pub has_row_ids: bool,
    /// In a changelog: the change of its rows.
    pub change: Option<Change>,
}

impl FileFacts<'_> {
    /// The value of a column in all rows, with this type; `None` if it is not a metadata column, or rows may differ.
    pub fn constant(&self, id: i32, ty: &Type, ids: &PartitionFieldIds) -> Option<Option<Value>> {
        Some(match id {
            _ if id == FILE.id => Some(Value::String(self.path.to_owned())),
            _ if id == SPEC_ID.id => Some(Value::Int(self.spec.spec_id)),
            _ if id == DELETED.id && !self.has_deleted_rows => Some(Value::Boolean(false)),
            // Not every engine has empty structs, so an unpartitioned table has a null partition, as in the Java
            // library.
            _ if id == PARTITION.id => ty.as_struct().filter(|ty| !ty.fields.is_empty()).map(|ty| {
                Value::Struct(ty.fields.iter().map(|field| self.partition_value(field.id, ids).cloned()).collect())
            }),
            _ if (id == ROW_ID.id || id == LAST_UPDATED_SEQUENCE_NUMBER.id) && !self.has_row_ids => None,
            _ if id == CHANGE_TYPE.id => Some(Value::String(self.change?.change_type.as_str().into())),
            _ if id == CHANGE_ORDINAL.id => Some(Value::Int(self.change?.ordinal)),
            _ if id == COMMIT_SNAPSHOT_ID.id => Some(Value::Long(self.change?.snapshot_id)),
            _ => return None,
        })
    }

    /// The value of a field of `_partition`; null if the file's spec lacks it.
    fn partition_value(&self, id: i32, ids: &PartitionFieldIds) -> Option<&Value> {
        let id = ids.get(&id).copied().unwrap_or(id);
        let mut fields = self.spec.fields.iter().zip(self.tuple);
        // A void field may have any type in a manifest, depending on the writer.
        fields.find(|(field, _)| field.field_id == id && field.transform != Transform::Void)?.1.as_ref()
    }

    /// The filter without metadata column tests that all rows pass; or a filter that matches nothing.
    pub fn fold(&self, filter: &BoundExpr, ids: &PartitionFieldIds) -> BoundExpr {
        decided(filter, |predicate| {
            let path = predicate.term.reference.path.as_deref()?;
            let value = match path {
                [column] => self.constant(column.id, &predicate.term.reference.ty, ids)?,
                [column, field] if column.id == PARTITION.id => self.partition_value(field.id, ids).cloned(),
                _ => return None,
            };
            Some(predicate.matches_value(value.as_ref()))
        })
    }
}

/// The filter without metadata column tests: it matches at least the same rows.
pub(in crate::plan) fn without_metadata_columns(filter: &BoundExpr) -> BoundExpr {
    decided(filter, |predicate| tests_metadata(predicate).then_some(true))
}

/// The filter on partitions of a spec that follows from tests of `_partition` fields: it matches every partition with
/// matching rows.
pub(in crate::plan) fn of_partition(filter: &BoundExpr, spec: &PartitionSpec, ids: &PartitionFieldIds) -> BoundExpr {
    let of_spec: Result<_, Infallible> = filter.rewrite_not().try_map(&mut |predicate| {
        let Some([column, step]) = predicate.term.reference.path.as_deref().filter(|path| path.len() == 2) else {
            return Ok(Expression::True);
        };
        if column.id != PARTITION.id {
            return Ok(Expression::True);
        }
        let id = ids.get(&step.id).copied().unwrap_or(step.id);
        let mut fields = spec.fields.iter().enumerate();
        let Some((position, field)) =
            fields.find(|(_, field)| field.field_id == id && field.transform != Transform::Void)
        else {
            let matches = predicate.matches_value(None);
            return Ok(if matches { Expression::True } else { Expression::False });
        };
        let place = PathStep { position, id: field.field_id, name: field.name.clone() };
        let reference = BoundReference { path: Some(vec![place]), ..predicate.term.reference.clone() };
        let term = Arc::new(BoundTerm { reference, ..(*predicate.term).clone() });
        Ok(Expression::Predicate(Arc::new(BoundPredicate { term, test: predicate.test.clone() })))
    });
    match of_spec {
        Ok(of_spec) => of_spec,
    }
}

/// Whether a filter tests a metadata column.
pub(in crate::plan) fn names_metadata_columns(filter: &BoundExpr) -> bool {
    filter.predicates().any(|predicate| tests_metadata(predicate))
}

fn tests_metadata(predicate: &BoundPredicate) -> bool {
    let path = predicate.term.reference.path.as_deref().unwrap_or_default();
    path.first().is_some_and(|column| is_metadata_column(column.id))
}

/// Replaces the tests for which `decide` knows the answer of all rows.
pub fn decided(filter: &BoundExpr, decide: impl Fn(&BoundPredicate) -> Option<bool>) -> BoundExpr {
    let rest: Result<_, Infallible> = filter.rewrite_not().try_map(&mut |predicate| {
        Ok(match decide(predicate) {
            Some(true) => Expression::True,
            Some(false) => Expression::False,
            None => Expression::Predicate(predicate.clone()),
        })
    });
    match rest {
        Ok(rest) => rest,
    }
}
