//! The Arrow columns of an Avro file, with its stored field ids ("Appendix A: Avro").

use std::sync::Arc;

use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit, UnionFields, UnionMode};
use icefield_format::avro::{ArraySchema, Logical, RecordField, RecordSchema, Schema};
use icefield_format::types::arrow::{FIELD_ID_KEY, field_id};
use icefield_format::types::{PrimitiveType, Schema as TableSchema, Type};

/// Maximum digits of a decimal.
const MOST_DIGITS: u8 = 38;

/// How a value can be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Never.
    Required,
    /// A union of one type: its branch is written, and is 0.
    Single,
    /// A union of null and one type, with the index of the null branch.
    Optional {
        /// 0 or 1.
        null: i64,
    },
}

/// A schema without its union with null; `None` if the union has more types, which Iceberg does not use.
pub(crate) fn value(schema: &Schema) -> Option<(Presence, &Schema)> {
    let Schema::Union(branches) = schema else { return Some((Presence::Required, schema)) };
    match &branches[..] {
        [only] => Some((Presence::Single, only)),
        [Schema::Null, other] => Some((Presence::Optional { null: 0 }, other)),
        [other, Schema::Null] => Some((Presence::Optional { null: 1 }, other)),
        _ => None,
    }
}

/// Key and value of an array that represents a map.
pub(crate) fn map_pair(array: &ArraySchema) -> Option<&RecordSchema> {
    match &array.items {
        Schema::Record(record) if array.is_map && record.fields.len() == 2 => Some(record),
        _ => None,
    }
}

/// The columns of a file.
pub(crate) fn fields(record: &RecordSchema) -> Fields {
    record.fields.iter().map(of_record_field).collect()
}

fn of_record_field(field: &RecordField) -> FieldRef {
    let name = field.iceberg_name.as_deref().unwrap_or(&field.name);
    named(name, &field.schema, field.field_id)
}

fn named(name: &str, schema: &Schema, id: Option<i32>) -> FieldRef {
    let (ty, nullable) = match value(schema) {
        Some((presence, inner)) => (data_type(inner), matches!(presence, Presence::Optional { .. })),
        None => (DataType::Union(UnionFields::empty(), UnionMode::Sparse), true),
    };
    let nullable = nullable || ty == DataType::Null;
    let mut field = Field::new(name, ty, nullable);
    if let Some(id) = id {
        field.metadata_mut().insert(FIELD_ID_KEY, id.to_string());
    }
    if matches!(value(schema), Some((_, Schema::Fixed(16, Some(Logical::Uuid))))) {
        field.metadata_mut().insert(EXTENSION_TYPE_NAME_KEY.to_owned(), "arrow.uuid".to_owned());
    }
    Arc::new(field)
}

fn data_type(schema: &Schema) -> DataType {
    let instant = |unit, utc: Option<bool>| DataType::Timestamp(unit, (utc == Some(true)).then(|| "UTC".into()));
    match schema {
        Schema::Null => DataType::Null,
        Schema::Boolean => DataType::Boolean,
        Schema::Int(Some(Logical::Date)) => DataType::Date32,
        Schema::Int(Some(Logical::TimeMillis)) => DataType::Time32(TimeUnit::Millisecond),
        Schema::Int(_) => DataType::Int32,
        Schema::Long(Some(Logical::TimeMicros)) => DataType::Time64(TimeUnit::Microsecond),
        Schema::Long(Some(Logical::TimestampMillis { utc })) => instant(TimeUnit::Millisecond, *utc),
        Schema::Long(Some(Logical::TimestampMicros { utc })) => instant(TimeUnit::Microsecond, *utc),
        Schema::Long(Some(Logical::TimestampNanos { utc })) => instant(TimeUnit::Nanosecond, *utc),
        Schema::Long(_) => DataType::Int64,
        Schema::Float => DataType::Float32,
        Schema::Double => DataType::Float64,
        Schema::Bytes(logical) => decimal(*logical).unwrap_or(DataType::Binary),
        Schema::String(_) | Schema::Enum(_) => DataType::Utf8,
        Schema::Fixed(16, Some(Logical::Uuid)) => DataType::FixedSizeBinary(16),
        Schema::Fixed(size, logical) => {
            // The schema parser refuses larger sizes.
            decimal(*logical).unwrap_or(DataType::FixedSizeBinary(i32::try_from(*size).unwrap_or(i32::MAX)))
        }
        Schema::Array(array) => match map_pair(array) {
            Some(pair) => map(fields(pair)),
            None => DataType::List(named("element", &array.items, array.element_id)),
        },
        Schema::Map(own) => {
            let key = named("key", &Schema::String(None), own.key_id);
            map(Fields::from(vec![key, named("value", &own.values, own.value_id)]))
        }
        Schema::Record(record) => DataType::Struct(fields(record)),
        Schema::Union(_) => DataType::Union(UnionFields::empty(), UnionMode::Sparse),
    }
}

fn map(pair: Fields) -> DataType {
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(pair), false)), false)
}

fn decimal(logical: Option<Logical>) -> Option<DataType> {
    match logical {
        Some(Logical::Decimal { precision: precision @ 1..=MOST_DIGITS, scale }) if scale <= precision => {
            Some(DataType::Decimal128(precision, scale.cast_signed()))
        }
        _ => None,
    }
}

/// The columns with the ids they are read by, and with types that only the table knows: whether a timestamp without
/// `adjust-to-utc` is in UTC, and which strings are uuids.
pub(crate) fn settled(record: &RecordSchema, columns: &Fields, table: &TableSchema) -> Fields {
    record.fields.iter().zip(columns).map(|(own, field)| settle(&own.schema, field, table)).collect()
}

fn settle(schema: &Schema, field: &FieldRef, table: &TableSchema) -> FieldRef {
    let wanted = || field_id(field).and_then(|id| table.find_type(id)).and_then(Type::as_primitive);
    let Some((_, schema)) = value(schema) else { return field.clone() };
    let ty = match (schema, field.data_type()) {
        (
            Schema::Long(Some(
                Logical::TimestampMillis { utc: None }
                | Logical::TimestampMicros { utc: None }
                | Logical::TimestampNanos { utc: None },
            )),
            DataType::Timestamp(unit, _),
        ) if matches!(wanted(), Some(PrimitiveType::Timestamptz | PrimitiveType::TimestamptzNs)) => {
            DataType::Timestamp(*unit, Some("UTC".into()))
        }
        (Schema::String(Some(Logical::Uuid)), _) if matches!(wanted(), Some(PrimitiveType::Uuid)) => {
            DataType::FixedSizeBinary(16)
        }
        (Schema::Record(record), DataType::Struct(children)) => DataType::Struct(settled(record, children, table)),
        (Schema::Array(array), DataType::List(element)) => DataType::List(settle(&array.items, element, table)),
        (Schema::Array(array), DataType::Map(entries, sorted)) => match (map_pair(array), entries.data_type()) {
            (Some(pair), DataType::Struct(children)) => {
                DataType::Map(with_fields(entries, settled(pair, children, table)), *sorted)
            }
            _ => return field.clone(),
        },
        (Schema::Map(own), DataType::Map(entries, sorted)) => match entries.data_type() {
            DataType::Struct(children) => match &children[..] {
                [key, value] => {
                    let pair = vec![key.clone(), settle(&own.values, value, table)];
                    DataType::Map(with_fields(entries, pair.into()), *sorted)
                }
                _ => return field.clone(),
            },
            _ => return field.clone(),
        },
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(ty))
}

fn with_fields(entries: &FieldRef, pair: Fields) -> FieldRef {
    Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(pair)))
}
