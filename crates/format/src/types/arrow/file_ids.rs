//! Assigns field ids to the columns of data files without ids, by a name mapping or by position ("Column Projection").
//!
//! The columns of a file of any format are passed as Arrow fields, with ids in their metadata.

use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields};

use super::FIELD_ID_KEY;
use super::to_arrow::join;
use crate::types::NameMapping;

/// Returns the id of a field, if it has one.
pub fn field_id(field: &ArrowField) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY).and_then(|text| text.parse().ok()).filter(|id| *id >= 0)
}

/// Whether any field has an id, nested ones included.
pub fn has_ids(fields: &Fields) -> bool {
    fields
        .iter()
        .any(|field| field_id(field).is_some() || children(field).iter().any(|(child, _)| has_ids(&one(child))))
}

/// Returns the fields with ids from a name mapping. Fields that the mapping does not contain keep their ids.
pub fn with_mapped_ids(fields: &Fields, mapping: &NameMapping) -> Fields {
    fields.iter().map(|field| mapped(field, field.name(), mapping)).collect()
}

/// Returns the fields with their positions, counted from 1, as ids. This is how the first Iceberg tables used Parquet
/// and ORC files without ids. Nested fields get no ids, and are not read.
pub fn with_positional_ids(fields: &Fields) -> Fields {
    fields.iter().zip(1..).map(|(field, id)| Arc::new(with_id(field, Some(id)))).collect()
}

/// Returns the fields that can be read by id. Omits structs without any such field, lists whose element has no id, and
/// maps whose key or value has none.
pub fn with_ids_only(fields: &Fields) -> Fields {
    fields.iter().filter(|field| field_id(field).is_some()).filter_map(readable).collect()
}

fn mapped(field: &FieldRef, path: &str, mapping: &NameMapping) -> FieldRef {
    let inner = children(field).into_iter().map(|(child, name)| {
        // Mappings always use `element`, `key` and `value`, whatever the file calls them.
        let path = join(path, name.unwrap_or(child.name()));
        mapped(&child, &path, mapping)
    });
    let inner: Vec<_> = inner.collect();
    Arc::new(with_id(&with_children(field, inner), mapping.id(path)))
}

fn with_id(field: &ArrowField, id: Option<i32>) -> ArrowField {
    let mut field = field.clone();
    if let Some(id) = id {
        field.metadata_mut().insert(FIELD_ID_KEY, id.to_string());
    }
    field
}

fn readable(field: &FieldRef) -> Option<FieldRef> {
    let children = children(field);
    let (given, is_struct) = (children.len(), matches!(field.data_type(), DataType::Struct(_)));
    let kept: Vec<_> = children
        .iter()
        .filter(|(child, _)| field_id(child).is_some())
        .filter_map(|(child, _)| readable(child))
        .collect();
    let enough = if is_struct { !kept.is_empty() } else { kept.len() == given };
    enough.then(|| Arc::new(with_children(field, kept)))
}

fn one(field: &FieldRef) -> Fields {
    Fields::from(vec![field.clone()])
}

/// Returns the direct children, with the name of their role (element, key, value) if they have one.
fn children(field: &ArrowField) -> Vec<(FieldRef, Option<&'static str>)> {
    match field.data_type() {
        DataType::Struct(fields) => fields.iter().map(|child| (child.clone(), None)).collect(),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => vec![(element.clone(), Some("element"))],
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                pair.iter().zip(["key", "value"]).map(|(child, name)| (child.clone(), Some(name))).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns the field with other children; a list or map needs as many as [`children`] returns.
fn with_children(field: &ArrowField, inner: Vec<FieldRef>) -> ArrowField {
    let mut first = inner.first().cloned();
    let mut element = |old: &FieldRef| first.take().unwrap_or_else(|| old.clone());
    let ty = match field.data_type() {
        DataType::Struct(_) => DataType::Struct(inner.into()),
        DataType::List(old) => DataType::List(element(old)),
        DataType::LargeList(old) => DataType::LargeList(element(old)),
        DataType::ListView(old) => DataType::ListView(element(old)),
        DataType::LargeListView(old) => DataType::LargeListView(element(old)),
        DataType::FixedSizeList(old, length) => DataType::FixedSizeList(element(old), *length),
        DataType::Map(entries, sorted) => {
            let pair = DataType::Struct(inner.into());
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(pair)), *sorted)
        }
        other => other.clone(),
    };
    field.clone().with_data_type(ty)
}
