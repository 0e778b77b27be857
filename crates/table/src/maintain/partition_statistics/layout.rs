//! The columns of partition statistics files ("Partition Statistics File").

use std::sync::Arc;

use arrow_schema::SchemaRef;
use icefield_format::metadata::{FormatVersion, TableMetadata};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, PrimitiveType as P, Schema, StructType, Type};
use icefield_format::value::Value;

use crate::error::{Error, Result};
use crate::inspect::partition::PartitionUnion;

/// The columns of statistics files of a table.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) union: PartitionUnion,
    pub(super) schema: Arc<Schema>,
    pub(super) arrow: SchemaRef,
}

impl Layout {
    pub(super) fn of(metadata: &TableMetadata) -> Result<Self> {
        let union = PartitionUnion::of(metadata)?;
        if union.union.fields.is_empty() {
            return Err(Error::invalid("the table is not partitioned, so its partitions have no statistics"));
        }
        let schema = Arc::new(Schema::new(0, fields(&union.union, metadata.format_version()))?);
        let arrow = Arc::new(schema.to_arrow(&ToArrow::default())?);
        Ok(Self { union, schema, arrow })
    }
}

/// The fields of the specification. Counts of deletes are optional before version 3, and always written.
fn fields(partition: &StructType, version: FormatVersion) -> Vec<Field> {
    let has_vectors = version >= FormatVersion::V3;
    let of_deletes = |id, name, ty| Field { required: has_vectors, ..Field::optional(id, name, ty) };
    let mut fields = vec![
        Field::required(1, "partition", Type::Struct(Arc::new(partition.clone()))),
        Field::required(2, "spec_id", P::Int),
        Field::required(3, "data_record_count", P::Long),
        Field::required(4, "data_file_count", P::Int),
        Field::required(5, "total_data_file_size_in_bytes", P::Long),
        of_deletes(6, "position_delete_record_count", P::Long),
        of_deletes(7, "position_delete_file_count", P::Int),
        of_deletes(8, "equality_delete_record_count", P::Long),
        of_deletes(9, "equality_delete_file_count", P::Int),
        Field::optional(10, "total_record_count", P::Long),
        Field::optional(11, "last_updated_at", P::Long),
        Field::optional(12, "last_updated_snapshot_id", P::Long),
    ];
    if has_vectors {
        // Files of version 2 lack it.
        let zero = Some(Value::Int(0));
        let count = Field::required(13, "dv_count", P::Int);
        fields.push(Field { initial_default: zero.clone(), write_default: zero, ..count });
    }
    fields
}
