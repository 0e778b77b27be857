//! Reads INT96 timestamps, which Impala, Hive and Spark write and the specification does not mention. INT96 stores a
//! day and its nanoseconds, without a time zone. It is read as the table's timestamp type for the column.

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

/// Whether a file has INT96 columns.
pub(super) fn is_in(descriptor: &SchemaDescriptor) -> bool {
    descriptor.columns().iter().any(is_int96)
}

/// The columns of a file, with each INT96 column typed as the table's timestamp; `with_ids` carries the field ids.
/// INT96 columns without a table column are microseconds with a zone, because 64-bit nanoseconds end in 2262.
pub(super) fn typed(
    descriptor: &SchemaDescriptor,
    fields: &Fields,
    with_ids: &Fields,
    schema: Option<&Schema>,
) -> Fields {
    walk(descriptor, fields, with_ids, schema, timestamp).0
}

/// As [`typed`], but with [`checked`] instead of nanoseconds, and the leaves that use it.
pub(super) fn to_check(
    descriptor: &SchemaDescriptor,
    fields: &Fields,
    with_ids: &Fields,
    schema: &Schema,
) -> (Fields, Vec<usize>) {
    let of_type = |ty: Option<&Type>| match timestamp(ty) {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => checked(),
        other => other,
    };
    let (fields, found) = walk(descriptor, fields, with_ids, Some(schema), of_type);
    let is_checked = |(leaf, ty): (usize, DataType)| (ty == checked()).then_some(leaf);
    (fields, found.into_iter().filter_map(is_checked).collect())
}

/// A marker type, microseconds with a special zone that no other column of a file has.
fn checked() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
}

/// The name of a [`checked`] column with a value outside the range of 64-bit nanoseconds.
pub(super) fn not_in_nanos(batch: &RecordBatch) -> Option<String> {
    let mut columns = batch.schema_ref().fields().iter().zip(batch.columns());
    columns.find_map(|(field, column)| beyond(field, &column.to_data()))
}

fn beyond(field: &Field, array: &ArrayData) -> Option<String> {
    if *field.data_type() == checked() {
        let all = i64::MIN.div_euclid(1000)..=i64::MAX.div_euclid(1000);
        let micros = TimestampMicrosecondArray::from(array.clone());
        return micros.iter().flatten().any(|micros| !all.contains(&micros)).then(|| field.name().clone());
    }
    let fields: &[FieldRef] = match field.data_type() {
        DataType::Struct(fields) => fields,
        DataType::List(inner) | DataType::Map(inner, _) => slice::from_ref(inner),
        _ => &[],
    };
    let found = fields.iter().zip(array.child_data()).find_map(|(field, array)| beyond(field, array))?;
    Some(format!("{}.{found}", field.name()))
}

fn walk<'a>(
    descriptor: &'a SchemaDescriptor,
    fields: &Fields,
    with_ids: &Fields,
    schema: Option<&'a Schema>,
    of_type: impl Fn(Option<&Type>) -> DataType,
) -> (Fields, Vec<(usize, DataType)>) {
    let mut walk = Walk { leaves: descriptor.columns().iter().enumerate(), found: Vec::new(), schema, of_type };
    (walk.fields(fields, with_ids, None), walk.found)
}

fn is_int96(leaf: &ColumnDescPtr) -> bool {
    leaf.physical_type() == PhysicalType::INT96
}

/// Walks the columns of a file in leaf order.
struct Walk<'a, F> {
    leaves: Enumerate<slice::Iter<'a, ColumnDescPtr>>,
    /// INT96 leaves and the types to read them as.
    found: Vec<(usize, DataType)>,
    schema: Option<&'a Schema>,
    /// Maps the table's type to the type to read INT96 as.
    of_type: F,
}

impl<'a, F: Fn(Option<&Type>) -> DataType> Walk<'a, F> {
    /// `parent` is the table's type of the enclosing field.
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
                    let found = (self.of_type)(ty);
                    self.found.push((leaf, found.clone()));
                    found
                }
                _ => other.clone(),
            },
        };
        Arc::new(field.as_ref().clone().with_data_type(found))
    }

    /// The table's type of a nested field: elements, keys and values may lack ids, so they are found by position in
    /// the parent.
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
    use icefield_format::types::{Field as TableField, ListType, MapType, StructType};
    use parquet::arrow::parquet_to_arrow_schema;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    fn of(id: i32, ty: impl Into<Type>) -> TableField {
        TableField::optional(id, format!("f{id}"), ty)
    }

    /// Only INT96 columns take the table's type; the walk keeps its position across the others.
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
        let list = |id, ty| Type::List(Arc::new(ListType { element: of(id, ty) }));
        let map = MapType { key: of(21, PrimitiveType::TimestampNs), value: of(22, PrimitiveType::Timestamp) };
        let inner = StructType::new(vec![of(4, PrimitiveType::TimestamptzNs), of(5, PrimitiveType::TimestampNs)]);
        let fields = vec![
            of(1, PrimitiveType::Timestamp),
            of(2, PrimitiveType::TimestampNs),
            of(3, Type::Struct(Arc::new(inner))),
            of(6, list(20, PrimitiveType::TimestampNs)),
            of(7, Type::Map(Arc::new(map))),
            of(8, list(23, PrimitiveType::TimestamptzNs)),
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
        let read = typed(&descriptor, found.fields(), found.fields(), Some(&schema));
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
        let (read, in_nanos) = to_check(&descriptor, found.fields(), found.fields(), &schema);
        assert_eq!(in_nanos, [2, 4, 5, 7]);
        for (leaf, (ty, expected)) in types(&read).into_iter().zip(expected).enumerate() {
            assert_eq!(ty, if in_nanos.contains(&leaf) { checked() } else { expected });
        }
        let read = typed(&descriptor, found.fields(), found.fields(), None);
        let stored = |place| if place == 1 || place == 3 { nanos(no) } else { micros(utc) };
        assert_eq!(types(&read), (0..10).map(stored).collect::<Vec<_>>());
    }
}
