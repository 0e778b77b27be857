//! The partition fields of all specs of a table in one struct (Java's `Partitioning.partitionType`).

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{FieldRef, Fields};
use icefield_format::metadata::TableMetadata;
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::transform::Transform;
use icefield_format::types::arrow::field_id;
use icefield_format::types::{Field, StructType};

use crate::error::{Error, Result};

/// The fields whose source column is in the current schema, by ascending id, under their newest names.
///
/// # Errors
/// An unknown transform, or different fields with one id.
pub fn partition_union(metadata: &TableMetadata) -> Result<StructType> {
    let schema = metadata.current_schema();
    let mut specs: Vec<&Arc<PartitionSpec>> = metadata.partition_specs().iter().collect();
    specs.sort_by_key(|spec| std::cmp::Reverse(spec.spec_id));
    let mut found: BTreeMap<i32, (Field, &PartitionField)> = BTreeMap::new();
    for (field, column) in specs.iter().flat_map(|spec| spec.fields.iter().zip(spec.partition_type(schema).fields)) {
        if let Transform::Unknown(name) = &field.transform {
            return Err(Error::unsupported(format!(
                "the partition transform {name} is not known, so the type of its values is not either"
            )));
        }
        if !field.source_ids.iter().all(|id| schema.find_field(*id).is_some()) {
            continue;
        }
        match found.get_mut(&field.field_id) {
            None => {
                found.insert(field.field_id, (column, field));
            }
            Some((_, known)) if !compatible(known, field) => {
                return Err(Error::Validation(format!("conflicting partition fields: [{field}] and [{known}]")));
            }
            // A field dropped in a version 1 table has lost its type; an older spec still has it.
            Some((kept, known)) if known.transform.is_void() && !field.transform.is_void() => {
                kept.ty = column.ty;
                *known = field;
            }
            Some(_) => {}
        }
    }
    Ok(StructType::new(found.into_values().map(|(column, _)| column).collect()))
}

/// Arrow fields of the tuples of several specs by id, as stored in manifests. Of two with one id the later wins,
/// unless it is `void` (true), which version 1 leaves in place of a removed field, with the type of the source.
pub(in crate::plan) fn stored_union(all: impl Iterator<Item = (FieldRef, bool)>) -> Fields {
    let mut found: Vec<FieldRef> = Vec::new();
    for (field, void) in all {
        match found.iter_mut().find(|known| field_id(known) == field_id(&field)) {
            Some(_) if void => {}
            Some(known) => *known = field,
            None => found.push(field),
        }
    }
    found.into()
}

/// Whether two fields with one id are the same field; names may differ, and one may have been dropped.
fn compatible(one: &PartitionField, other: &PartitionField) -> bool {
    let void = one.transform.is_void() || other.transform.is_void();
    one.source_ids == other.source_ids && (void || one.transform == other.transform)
}
