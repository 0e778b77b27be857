//! Tests beyond the golden vectors.

use super::{NewColumn, UpdateSchema};
use crate::spec::{PartitionField, PartitionSpec};
use crate::transform::Transform;
use crate::types::{Field, ListType, MapType, NameMapping, PrimitiveType, Schema, StructType};
use crate::value::Value;

fn schema() -> Schema {
    let point =
        StructType::new(vec![Field::required(4, "x", PrimitiveType::Int), Field::optional(5, "y", PrimitiveType::Int)]);
    let fields = vec![
        Field::required(1, "id", PrimitiveType::Int),
        Field::optional(2, "day", PrimitiveType::Date),
        Field::optional(3, "point", point),
        Field::optional(6, "tags", ListType::optional(7, PrimitiveType::Unknown)),
        Field::optional(8, "m", MapType::optional(9, PrimitiveType::String, 10, PrimitiveType::Date)),
    ];
    Schema::new(0, fields).unwrap()
}

fn update(format_version: u8) -> UpdateSchema {
    UpdateSchema::new(&schema(), 10, format_version)
}

#[test]
fn promotions_of_version_3() {
    for (column, ty, versions) in [
        ("day", PrimitiveType::Timestamp, [false, true]),
        ("day", PrimitiveType::TimestampNs, [false, true]),
        ("day", PrimitiveType::Timestamptz, [false, false]),
        ("tags.element", PrimitiveType::String, [false, true]),
        ("m.value", PrimitiveType::Timestamp, [false, true]),
        ("m.key", PrimitiveType::Binary, [false, false]),
        ("id", PrimitiveType::Long, [true, true]),
    ] {
        for (version, expected) in [2, 3].into_iter().zip(versions) {
            let mut update = update(version);
            assert_eq!(update.update_type(column, &ty).is_ok(), expected, "{column} to {ty} in version {version}");
        }
    }
}

#[test]
fn dates_in_partitions_stay_dates() {
    let by = |transform: Transform| PartitionSpec {
        spec_id: 0,
        fields: vec![PartitionField { source_ids: vec![2], field_id: 1000, name: "p".into(), transform }],
    };
    for (transform, allowed) in
        [(Transform::Identity, false), (Transform::Bucket(4), false), (Transform::Day, true), (Transform::Void, true)]
    {
        let mut update = update(3);
        let spec = by(transform);
        let changed = update.partitioned_by([&spec]).update_type("day", &PrimitiveType::Timestamp);
        assert_eq!(changed.is_ok(), allowed, "{:?}", spec.fields[0].transform);
    }
}

#[test]
fn defaults_are_promoted_with_their_column() {
    let mut first = update(3);
    let column = NewColumn::new("since", PrimitiveType::Date).unwrap().with_default(Some(Value::Int(-1)));
    first.add(column).unwrap();
    first.update_type("since", &PrimitiveType::Timestamp).unwrap();
    let field = first.apply().unwrap().find_by_name("since", true).unwrap().unwrap().clone();
    assert_eq!(field.initial_default, Some(Value::Long(-86_400_000_000)));
    assert_eq!(field.write_default, field.initial_default);

    let mut far = update(3);
    let column = NewColumn::new("far", PrimitiveType::Date).unwrap().with_default(Some(Value::Int(i32::MAX)));
    far.add(column).unwrap();
    assert!(far.update_type("far", &PrimitiveType::TimestampNs).is_err(), "out of the range of nanoseconds");
}

#[test]
fn a_failed_operation_changes_nothing() {
    let mut update = update(3);
    update.rename("id", "key").unwrap();
    let before = update.apply().unwrap();
    let other = Schema::new(
        0,
        vec![Field::optional(1, "new", PrimitiveType::Int), Field::optional(2, "id", PrimitiveType::String)],
    );
    assert!(update.union_by_name(&other.unwrap()).is_err());
    assert!(update.delete("id").is_err());
    assert!(update.add(NewColumn::inside(Some("m"), "x", PrimitiveType::Int)).is_err());
    assert!(update.add(NewColumn::new("", PrimitiveType::Int).unwrap()).is_err());
    assert!(update.rename("point", "").is_err());
    assert!(update.add(NewColumn::new("v", PrimitiveType::Binary).unwrap().with_default(Some(Value::Int(1)))).is_err());
    assert_eq!(update.apply().unwrap(), before);
    assert_eq!(update.last_column_id(), 10);
}

#[test]
fn ids_run_out() {
    let mut update = UpdateSchema::new(&schema(), i32::MAX - 1, 3);
    update.add(NewColumn::new("last", PrimitiveType::Int).unwrap()).unwrap();
    assert!(update.add(NewColumn::new("none", PrimitiveType::Int).unwrap()).is_err());
}

#[test]
fn properties_follow_columns() {
    let mapping = NameMapping::of_schema(&schema()).unwrap().to_json().to_string();
    let properties = [
        ("schema.name-mapping.default", mapping.as_str()),
        ("write.metadata.metrics.column.point.x", "full"),
        ("write.metadata.metrics.column.day", "none"),
        ("write.parquet.bloom-filter-enabled.column.id", "true"),
        ("write.metadata.metrics.default", "counts"),
    ];
    let mut update = update(3);
    update.rename("point", "place").unwrap().delete("day").unwrap();
    let mut changes = update.property_changes(&update.apply().unwrap(), properties);
    changes.removed.sort();
    assert_eq!(
        changes.removed,
        ["write.metadata.metrics.column.day", "write.metadata.metrics.column.point.x"],
        "columns that are gone or have another name"
    );
    let set = |key: &str| changes.set.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    assert_eq!(set("write.metadata.metrics.column.place.x"), Some("full"));
    let mapping = NameMapping::parse(set("schema.name-mapping.default").unwrap()).unwrap();
    assert_eq!((mapping.id("place.x"), mapping.id("point.x"), mapping.id("day")), (Some(4), Some(4), Some(2)));
    assert_eq!(changes.set.len(), 2);

    let unreadable = update.property_changes(&update.apply().unwrap(), [("schema.name-mapping.default", "{")]);
    assert_eq!(unreadable, super::PropertyChanges::default());
}
