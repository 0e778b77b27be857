//! Names of Arrow types in the terms of the table format, for error messages.

use arrow_schema::{DataType, TimeUnit};

/// Returns the familiar name of an Arrow type: `long`, not `Int64`. Types without a counterpart are described.
pub fn named(ty: &DataType) -> String {
    let instant = |zone: &Option<_>| if zone.is_some() { "timestamptz" } else { "timestamp" };
    match ty {
        DataType::Null => "null".to_owned(),
        DataType::Boolean => "boolean".to_owned(),
        DataType::Int8 => "8-bit integer".to_owned(),
        DataType::Int16 => "16-bit integer".to_owned(),
        DataType::Int32 => "int".to_owned(),
        DataType::Int64 => "long".to_owned(),
        DataType::UInt8 => "unsigned 8-bit integer".to_owned(),
        DataType::UInt16 => "unsigned 16-bit integer".to_owned(),
        DataType::UInt32 => "unsigned 32-bit integer".to_owned(),
        DataType::UInt64 => "unsigned 64-bit integer".to_owned(),
        DataType::Float16 => "16-bit float".to_owned(),
        DataType::Float32 => "float".to_owned(),
        DataType::Float64 => "double".to_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => instant(zone).to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => format!("{}_ns", instant(zone)),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => format!("{} in milliseconds", instant(zone)),
        DataType::Timestamp(TimeUnit::Second, zone) => format!("{} in seconds", instant(zone)),
        DataType::Date32 => "date".to_owned(),
        DataType::Date64 => "date in milliseconds".to_owned(),
        DataType::Time32(TimeUnit::Second) => "time in seconds".to_owned(),
        DataType::Time32(_) => "time in milliseconds".to_owned(),
        DataType::Time64(TimeUnit::Nanosecond) => "time in nanoseconds".to_owned(),
        DataType::Time64(_) => "time".to_owned(),
        DataType::Duration(_) => "duration".to_owned(),
        DataType::Interval(_) => "interval".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "binary".to_owned(),
        DataType::FixedSizeBinary(length) => format!("fixed[{length}]"),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("decimal({precision}, {scale})"),
        DataType::List(element)
        | DataType::LargeList(element)
        | DataType::ListView(element)
        | DataType::LargeListView(element)
        | DataType::FixedSizeList(element, _) => format!("list<{}>", named(element.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|field| format!("{}: {}", field.name(), named(field.data_type()))).collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let pair: Vec<_> = pair.iter().map(|field| named(field.data_type())).collect();
                format!("map<{}>", pair.join(", "))
            }
            other => format!("map<{}>", named(other)),
        },
        DataType::Dictionary(_, values) => named(values),
        DataType::RunEndEncoded(_, values) => named(values.data_type()),
        DataType::Union(..) => "union".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    #[test]
    fn as_the_table_names_them() {
        let utc = || Some("UTC".into());
        let text = Arc::new(Field::new("element", DataType::Utf8View, true));
        let cases = [
            (DataType::Int64, "long"),
            (DataType::LargeUtf8, "string"),
            (DataType::Timestamp(TimeUnit::Microsecond, utc()), "timestamptz"),
            (DataType::Timestamp(TimeUnit::Nanosecond, None), "timestamp_ns"),
            (DataType::Decimal256(50, 2), "decimal(50, 2)"),
            (DataType::List(text.clone()), "list<string>"),
            (DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)), "string"),
            (DataType::Struct(vec![text].into()), "struct<element: string>"),
        ];
        for (ty, expected) in cases {
            assert_eq!(named(&ty), expected);
        }
    }
}
