//! The partition column of metadata tables: the fields of all specs in one struct (Java's
//! `Partitioning.partitionType`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, Fields};
use icefield_format::metadata::TableMetadata;
use icefield_format::spec::{PartitionField, PartitionSpec};
use icefield_format::types::arrow::{ToArrow, field_id};
use icefield_format::types::{Field, PrimitiveType, Schema, StructType, Type};

use super::batch::{conform, internal};
use crate::error::{Error, Result};
use crate::plan::projection::partition_union::partition_union;

/// The partition fields of a table by id, and how each spec maps to them.
#[derive(Debug)]
pub(crate) struct PartitionUnion {
    /// All fields whose source column still exists, by ascending id, under their newest names.
    pub(crate) union: StructType,
    arrow: Fields,
    specs: HashMap<i32, OfSpec>,
}

/// How one spec maps to the union.
#[derive(Debug)]
pub(crate) struct OfSpec {
    /// The spec.
    pub(crate) spec: Arc<PartitionSpec>,
    /// The fields for reading its manifests.
    pub(crate) read: StructType,
    /// The type of each of its fields; `unknown` if it is no longer known.
    pub(crate) types: Vec<PrimitiveType>,
}

impl PartitionUnion {
    /// For all specs of a table.
    pub(crate) fn of(metadata: &TableMetadata) -> Result<Self> {
        let union = partition_union(metadata)?;
        let arrow = Schema::new(0, union.fields.clone())?.to_arrow(&ToArrow::default())?.fields().clone();
        let specs = metadata.partition_specs().iter().map(|spec| (spec.spec_id, OfSpec::new(spec, &union, metadata)));
        let specs = specs.collect();
        Ok(Self { union, arrow, specs })
    }

    /// How a spec maps to the union.
    pub(crate) fn of_spec(&self, spec_id: i32, manifest: &str) -> Result<&OfSpec> {
        self.specs.get(&spec_id).ok_or_else(|| {
            Error::corrupt_file(manifest, format!("its partition spec {spec_id} is not one of the table's"))
        })
    }

    /// Converts tuples of one spec to the union; fields that the spec lacks are null.
    pub(crate) fn coerce(&self, tuples: &StructArray) -> Result<StructArray> {
        let rows = tuples.len();
        let column = |wanted: &arrow_schema::FieldRef| -> Result<ArrayRef> {
            let place = tuples.fields().iter().position(|field| field_id(field) == field_id(wanted));
            match place.and_then(|place| tuples.columns().get(place)) {
                Some(found) if *found.data_type() != DataType::Null => conform(found, wanted.data_type()),
                _ => Ok(arrow_array::new_null_array(wanted.data_type(), rows)),
            }
        };
        let columns = self.arrow.iter().map(column).collect::<Result<Vec<_>>>()?;
        StructArray::try_new_with_length(self.arrow.clone(), columns, None, rows).map_err(internal)
    }
}

impl OfSpec {
    fn new(spec: &Arc<PartitionSpec>, union: &StructType, metadata: &TableMetadata) -> Self {
        let read = spec.fields.iter().filter_map(|field| {
            let column = union.field(field.field_id)?;
            // A void field may have any type in a manifest, depending on the writer, and has no value.
            let ty =
                if field.transform.is_void() { Type::Primitive(PrimitiveType::Unknown) } else { column.ty.clone() };
            Some(Field::optional(field.field_id, field.name.as_str(), ty))
        });
        let read = StructType::new(read.collect());
        let types = spec.fields.iter().map(|field| value_type(field, metadata)).collect();
        Self { spec: spec.clone(), read, types }
    }
}

/// The type of a field's values; `unknown` for a field whose source was dropped, as in Java.
fn value_type(field: &PartitionField, metadata: &TableMetadata) -> PrimitiveType {
    if field.has_unknown_values() {
        return PrimitiveType::Unknown;
    }
    let source = field.source_id().and_then(|id| metadata.current_schema().find_type(id));
    let result = source.and_then(|source| field.transform.result_type(source));
    result.as_ref().and_then(Type::as_primitive).cloned().unwrap_or(PrimitiveType::Unknown)
}
