//! INT96, which the specification does not know and Impala, Hive and Spark write: a day and its nanoseconds, of which the file does
//! not say whether they are of UTC. They are read as the timestamp that the table has there.

use std::iter::Enumerate;
use std::slice;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, TimestampMicrosecondArray};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use icefield_format::types::arrow::field_id;
use icefield_format::types::{PrimitiveType, Schema, Type};
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};

/// Whether a file has columns of INT96.
pub(super) fn is_in(descriptor: &SchemaDescriptor) -> bool {
    descriptor.columns().iter().any(is_int96)
}

/// The columns of a file with those of INT96 as the timestamps of a schema, where it has their ids, which `with_ids` gives. All
/// others are microseconds with a zone: nanoseconds of 64 bits end in 2262. The leaves beside them are those of nanoseconds.
pub(super) fn typed(
    descriptor: &SchemaDescriptor,
    fields: &Fields,
    with_ids: &Fields,
    schema: Option<&Schema>,
) -> (Fields, Vec<usize>) {
    let mut walk = Walk { leaves: descriptor.columns().iter().enumerate(), nanos: Vec::new(), schema };
    (walk.fields(fields, with_ids, None), walk.nanos)
}

/// Whether all timestamps in some columns, which are microseconds, could be nanoseconds as well.
pub(super) fn fit_nanos(batch: &RecordBatch) -> bool {
    batch.columns().iter().all(|column| are_small(&column.to_data()))
}

fn are_small(array: &ArrayData) -> bool {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let micros = TimestampMicrosecondArray::from(array.clone());
            micros.iter().flatten().all(|micros| micros.checked_mul(1000).is_some())
        }
        _ => array.child_data().iter().all(are_small),
    }
}

fn is_int96(leaf: &ColumnDescPtr) -> bool {
    leaf.physical_type() == PhysicalType::INT96
}

/// A walk through the columns of a file, in the order of its leaves.
struct Walk<'a> {
    leaves: Enumerate<slice::Iter<'a, ColumnDescPtr>>,
    nanos: Vec<usize>,
    schema: Option<&'a Schema>,
}

impl<'a> Walk<'a> {
    /// `parent` is the table's type of the field that these are in.
    fn fields(&mut self, fields: &Fields, with_ids: &Fields, parent: Option<&'a Type>) -> Fields {
        let pairs = fields.iter().zip(with_ids).enumerate();
        pairs.map(|(place, (field, with_id))| self.field(field, with_id, self.inner(parent, place, with_id))).collect()
    }

    fn field(&mut self, field: &FieldRef, with_id: &FieldRef, ty: Option<&'a Type>) -> FieldRef {
        let found = match (field.data_type(), with_id.data_type()) {
            (DataType::Struct(fields), DataType::Struct(with_ids)) => {
                DataType::Struct(self.fields(fields, with_ids, ty))
            }
            (DataType::List(element), DataType::List(with_id)) => {
                DataType::List(self.field(element, with_id, self.inner(ty, 0, with_id)))
            }
            (DataType::Map(entries, is_sorted), DataType::Map(with_ids, _)) => {
                DataType::Map(self.field(entries, with_ids, ty), *is_sorted)
            }
            (other, _) => match self.leaves.next() {
                Some((leaf, column)) if is_int96(column) => {
                    let found = timestamp(ty);
                    if matches!(found, DataType::Timestamp(TimeUnit::Nanosecond, _)) {
                        self.nanos.push(leaf);
                    }
                    found
                }
                _ => other.clone(),
            },
        };
        Arc::new(field.as_ref().clone().with_data_type(found))
    }

    /// The table's type of a field in one of this type: elements, keys and values have no ids of their own to be asked for.
    fn inner(&self, parent: Option<&'a Type>, place: usize, with_id: &Field) -> Option<&'a Type> {
        match parent {
            Some(Type::List(list)) => Some(&list.element.ty),
            Some(Type::Map(map)) => Some(if place == 0 { &map.key.ty } else { &map.value.ty }),
            _ => self.schema?.find_type(field_id(with_id)?),
        }
    }
}

fn timestamp(ty: Option<&Type>) -> DataType {
    let utc = || Some("UTC".into());
    match ty {
        Some(Type::Primitive(PrimitiveType::Timestamp)) => DataType::Timestamp(TimeUnit::Microsecond, None),
        Some(Type::Primitive(PrimitiveType::TimestampNs)) => DataType::Timestamp(TimeUnit::Nanosecond, None),
        Some(Type::Primitive(PrimitiveType::TimestamptzNs)) => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        _ => DataType::Timestamp(TimeUnit::Microsecond, utc()),
    }
}

#[cfg(test)]
mod tests {
    use icefield_format::types::{ListType, MapType, StructType};
    use parquet::arrow::parquet_to_arrow_schema;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Only what is stored as INT96 is read as what the table has; the walk does not lose its place in what else there is.
    #[test]
    fn columns_of_int96_are_the_timestamps_of_the_table_at_any_depth() {
        let message = "message m {
            required int96 plain = 1;
            required int64 nanos (TIMESTAMP(NANOS, false)) = 2;
            optional group in_struct = 3 { optional int96 zoned = 4; optional int64 nanos (TIMESTAMP(NANOS, false)) = 5; }
            optional group in_list (LIST) = 6 { repeated group list { optional int96 element; } }
            optional group in_map (MAP) = 7 { repeated group key_value { required int96 key; optional int96 value; } }
            repeated int96 alone = 8;
            optional int96 unknown = 9;
            optional int96 other = 10;
        }";
        let descriptor = SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()));
        let found = parquet_to_arrow_schema(&descriptor, None).unwrap();
        let of = |id, ty: PrimitiveType| icefield_format::types::Field::optional(id, format!("f{id}"), ty);
        let nested = |id, ty: Type| icefield_format::types::Field::optional(id, format!("f{id}"), ty);
        let list = |id, ty| Type::List(Arc::new(ListType { element: of(id, ty) }));
        let map = MapType { key: of(21, PrimitiveType::TimestampNs), value: of(22, PrimitiveType::Timestamp) };
        let inner = StructType::new(vec![of(4, PrimitiveType::TimestamptzNs), of(5, PrimitiveType::TimestampNs)]);
        let fields = vec![
            of(1, PrimitiveType::Timestamp),
            of(2, PrimitiveType::TimestampNs),
            nested(3, Type::Struct(Arc::new(inner))),
            nested(6, list(20, PrimitiveType::TimestampNs)),
            nested(7, Type::Map(Arc::new(map))),
            nested(8, list(23, PrimitiveType::TimestamptzNs)),
            of(10, PrimitiveType::Long),
        ];
        let schema = Schema::new(0, fields).unwrap();
        let types = |fields: &Fields| {
            let mut types = Vec::new();
            fn leaves(field: &Field, types: &mut Vec<DataType>) {
                match field.data_type() {
                    DataType::Struct(fields) => fields.iter().for_each(|field| leaves(field, types)),
                    DataType::List(inner) | DataType::Map(inner, _) => leaves(inner, types),
                    other => types.push(other.clone()),
                }
            }
            fields.iter().for_each(|field| leaves(field, &mut types));
            types
        };
        let micros = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let nanos = |zone: Option<&str>| DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
        let (no, utc) = (None, Some("UTC"));
        let (read, in_nanos) = typed(&descriptor, found.fields(), found.fields(), Some(&schema));
        let expected = [
            micros(no),
            nanos(no),
            nanos(utc),
            nanos(no),
            nanos(no),
            nanos(no),
            micros(no),
            nanos(utc),
            micros(utc),
            micros(utc),
        ];
        assert_eq!(types(&read), expected);
        assert_eq!(in_nanos, [2, 4, 5, 7]);
        let (read, in_nanos) = typed(&descriptor, found.fields(), found.fields(), None);
        assert!(in_nanos.is_empty());
        let stored = |place| if place == 1 || place == 3 { nanos(no) } else { micros(utc) };
        assert_eq!(types(&read), (0..10).map(stored).collect::<Vec<_>>());
    }
}
