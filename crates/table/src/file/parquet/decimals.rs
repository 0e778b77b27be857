//! Reads decimals stored in more bytes than they need: in byte arrays, or in fixed-length arrays of more than 16
//! bytes.
//!
//! The parquet crate reads at most 16 bytes of a decimal. So these columns are read as binary, and converted to
//! decimals when they are brought to the table's type.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};
use icefield_format::types::arrow::field_id;
use icefield_format::types::{PrimitiveType, Schema, Type};
use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type as ParquetType, TypePtr};

use crate::file::leaves::skip;

/// Metadata key of a binary field that holds the declared precision and scale.
const KEY: &str = "icefield.decimal";

/// Maximum number of bytes of a decimal that the parquet crate reads.
const MOST_BYTES: i32 = 16;

/// Declared precision and scale of a column that is read as the bytes of its decimals.
pub fn declared(field: &Field) -> Option<(u32, i8)> {
    let (precision, scale) = field.metadata().get(KEY)?.as_str().split_once(',')?;
    Some((precision.parse().ok()?, scale.parse().ok()?))
}

/// Whether a file has such columns.
pub(super) fn are_in(descriptor: &SchemaDescriptor) -> bool {
    descriptor.columns().iter().any(is_long)
}

/// The leaves of a file to read as binary, with their declared precision and scale: decimals of the table, except
/// inside variants. `fields` carry the field ids.
pub(super) fn leaves(descriptor: &SchemaDescriptor, fields: &Fields, schema: &Schema) -> BTreeMap<usize, (i32, i32)> {
    let mut next = 0;
    let mut found = BTreeMap::new();
    for field in fields {
        let mut place = next;
        skip(field.data_type(), &mut next);
        if field_id(field).and_then(|id| schema.find_field(id)).is_some() {
            visit(field, schema, &mut place, &mut |leaf, ty| {
                let is_decimal = matches!(ty, Some(Type::Primitive(PrimitiveType::Decimal { .. })));
                let column = descriptor.columns().get(leaf).filter(|column| is_decimal && is_long(column));
                found.extend(column.map(|column| (leaf, (column.type_precision(), column.type_scale()))));
            });
        }
    }
    found
}

/// Visits the leaves of a column outside variants.
fn visit(field: &Field, schema: &Schema, next: &mut usize, see: &mut dyn FnMut(usize, Option<&Type>)) {
    match field.data_type() {
        DataType::Struct(_) if field_id(field).and_then(|id| schema.find_type(id)) == Some(&Type::Variant) => {
            skip(field.data_type(), next);
        }
        DataType::Struct(fields) => fields.iter().for_each(|field| visit(field, schema, next, see)),
        DataType::List(inner) | DataType::Map(inner, _) => visit(inner, schema, next, see),
        _ => see(std::mem::replace(next, *next + 1), field_id(field).and_then(|id| schema.find_type(id))),
    }
}

fn is_long(column: &ColumnDescPtr) -> bool {
    let is_decimal = column.converted_type() == ConvertedType::DECIMAL
        || matches!(column.logical_type_ref(), Some(LogicalType::Decimal { .. }));
    is_decimal
        && match column.physical_type() {
            PhysicalType::BYTE_ARRAY => true,
            PhysicalType::FIXED_LEN_BYTE_ARRAY => column.type_length() > MOST_BYTES,
            _ => false,
        }
}

/// The footer with these leaves declared as plain binary.
pub(super) fn as_bytes(metadata: &ParquetMetaData, leaves: &BTreeMap<usize, (i32, i32)>) -> Result<ParquetMetaData> {
    let file = metadata.file_metadata();
    let root = plain(&file.schema_descr().root_schema_ptr(), leaves, &mut 0)?;
    let changed = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(root)),
        file.column_orders().cloned(),
    );
    let built = ParquetMetaDataBuilder::new(changed).set_row_groups(metadata.row_groups().to_vec());
    Ok(built.set_page_index(metadata.page_index().cloned()).build())
}

/// The type with these leaves declared as plain binary; `next` is the number of its first leaf.
fn plain(ty: &TypePtr, leaves: &BTreeMap<usize, (i32, i32)>, next: &mut usize) -> Result<TypePtr> {
    let info = ty.get_basic_info();
    let id = info.has_id().then(|| info.id());
    match &**ty {
        ParquetType::GroupType { fields, .. } => {
            let fields = fields.iter().map(|field| plain(field, leaves, next)).collect::<Result<_>>()?;
            let mut group = ParquetType::group_type_builder(info.name())
                .with_converted_type(info.converted_type())
                .with_logical_type(info.logical_type_ref().cloned())
                .with_id(id)
                .with_fields(fields);
            if info.has_repetition() {
                group = group.with_repetition(info.repetition());
            }
            Ok(Arc::new(group.build()?))
        }
        ParquetType::PrimitiveType { physical_type, type_length, .. } => {
            let leaf = std::mem::replace(next, *next + 1);
            if !leaves.contains_key(&leaf) {
                return Ok(Arc::clone(ty));
            }
            let bytes = ParquetType::primitive_type_builder(info.name(), *physical_type)
                .with_repetition(info.repetition())
                .with_length(*type_length)
                .with_id(id);
            Ok(Arc::new(bytes.build()?))
        }
    }
}

/// The columns of a file, with the declared precision and scale noted in the metadata of these leaves.
pub(super) fn marked(fields: &Fields, leaves: &BTreeMap<usize, (i32, i32)>) -> Fields {
    fn visit(fields: &Fields, leaves: &BTreeMap<usize, (i32, i32)>, next: &mut usize) -> Fields {
        fields.iter().map(|field| mark(field, leaves, next)).collect()
    }
    fn mark(field: &FieldRef, leaves: &BTreeMap<usize, (i32, i32)>, next: &mut usize) -> FieldRef {
        let ty = match field.data_type() {
            DataType::Struct(fields) => DataType::Struct(visit(fields, leaves, next)),
            DataType::List(element) => DataType::List(mark(element, leaves, next)),
            DataType::Map(entries, is_sorted) => DataType::Map(mark(entries, leaves, next), *is_sorted),
            other => {
                let leaf = std::mem::replace(next, *next + 1);
                let Some((precision, scale)) = leaves.get(&leaf) else { return Arc::clone(field) };
                let mut marked = field.as_ref().clone().with_data_type(other.clone());
                marked.metadata_mut().insert(KEY.to_owned(), format!("{precision},{scale}"));
                return Arc::new(marked);
            }
        };
        Arc::new(field.as_ref().clone().with_data_type(ty))
    }
    visit(fields, leaves, &mut 0)
}
