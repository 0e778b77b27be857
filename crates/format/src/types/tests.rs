//! Tests of limits, error positions and texts.

use serde_json::{Value as Json, json};

use super::{Field, ListType, NameMapping, PrimitiveType, Schema, StructType, Type};
use crate::error::Error;
use crate::limits::Limits;

fn column(ty: Json) -> Json {
    json!({"type": "struct", "fields": [{"id": 1, "name": "a", "required": false, "type": ty}]})
}

#[test]
fn errors_name_the_place() {
    let inner = json!({"type": "struct", "fields": [{"id": 2, "name": "b", "required": 1, "type": "int"}]});
    let list = json!({"type": "list", "element-id": 3, "element-required": true, "element": "decimal(99,3)"});
    for (schema, place) in [
        (column(json!("nothing")), "/fields/0/type"),
        (column(inner), "/fields/0/type/fields/0/required"),
        (column(list), "/fields/0/type/element"),
        (json!({"type": "struct", "fields": [5]}), "/fields/0"),
        (json!({"type": "struct", "schema-id": "x", "fields": []}), "/schema-id"),
        (json!({"type": "struct", "identifier-field-ids": [1, "x"], "fields": []}), "/identifier-field-ids/1"),
        (
            json!({"type": "struct", "fields":
                [{"id": 1, "name": "a", "required": false, "type": "int", "initial-default": "x"}]}),
            "/fields/0/initial-default",
        ),
    ] {
        match Schema::from_json(&schema) {
            Err(Error::Corrupt(corrupt)) => assert_eq!(corrupt.place, place, "{corrupt}"),
            other => panic!("{schema}: {other:?}"),
        }
    }
}

#[test]
fn types_of_later_versions_are_kept_in_metadata() {
    let limits = Limits::default();
    let read = |name: &str| Schema::from_metadata_json(&column(json!(name)), &limits);
    for name in ["interval", "bigint", "vector[16]", "file(x, y)"] {
        let schema = read(name).unwrap();
        assert_eq!(schema.find_type(1), Some(&PrimitiveType::Unrecognized(name.into()).into()));
        assert_eq!(schema.to_json()["fields"][0]["type"], name, "written as it was read");
        assert!(Schema::from_json(&column(json!(name))).is_err(), "{name}");
        for version in 1..=3 {
            assert!(schema.check_compatibility(version).is_err(), "{name} in version {version}");
        }
    }
    for name in ["decimal(99,3)", "fixed[-1]", "geometry()", "geography(a, b, c)", "int(3)", "list<int>", "", " int"] {
        assert!(read(name).is_err(), "{name:?}");
    }
}

#[test]
fn limits_hold() {
    let deep = |depth: usize| {
        (0..depth).fold(
            json!("int"),
            |element, id| json!({"type": "list", "element-id": id + 2, "element-required": true, "element": element}),
        )
    };
    let limits = Limits { type_depth: 20, fields: 30, ..Limits::default() };
    let read = |ty: Json| Schema::from_metadata_json(&column(ty), &limits);
    assert!(read(deep(18)).is_ok());
    let error = read(deep(25)).unwrap_err().to_string();
    assert!(error.contains("20 levels"), "{error}");
    let wide = |count: usize| {
        let field = |id: usize| json!({"id": id + 2, "name": id.to_string(), "required": true, "type": "int"});
        json!({"type": "struct", "fields": (0..count).map(field).collect::<Vec<_>>()})
    };
    assert!(read(wide(29)).is_ok());
    let error = read(wide(30)).unwrap_err().to_string();
    assert!(error.contains("30 fields"), "{error}");
}

#[test]
fn long_names_are_not_repeated_without_end() {
    let inner = (0..200).map(|id| Field::optional(id + 2, id.to_string(), PrimitiveType::Int)).collect();
    let outer = Field::optional(1, "n".repeat(1 << 20), StructType::new(inner));
    let error = Schema::new(0, vec![outer]).unwrap_err().to_string();
    assert!(error.contains("too long"), "{error}");
}

#[test]
fn schemas_print_for_people() {
    let st = StructType::new(vec![Field::required(3, "x", PrimitiveType::Double)]);
    let fields = vec![
        Field::required(1, "id", PrimitiveType::Long).with_doc("the key"),
        Field::optional(2, "st", st),
        Field::optional(4, "l", ListType::required(5, PrimitiveType::Decimal { precision: 9, scale: 2 })),
        Field::optional(6, "v", Type::Variant),
    ];
    let schema = Schema::with_identifiers(7, fields, vec![1, 1]).unwrap();
    let expected = "table {\n  1: id: required long (the key) (id)\n  2: st: optional struct<3: x: required double>\n  \
                    4: l: optional list<decimal(9, 2)>\n  6: v: optional variant\n}";
    assert_eq!(schema.to_string(), expected);
}

#[test]
fn crs_is_compared_without_regard_to_case() {
    let geometry = |text: &str| PrimitiveType::parse(text).unwrap();
    assert_eq!(geometry("geometry"), geometry("geometry(ogc:crs84)"));
    assert_eq!(geometry("geography"), geometry("geography(OGC:CRS84, spherical)"));
    assert_ne!(geometry("geography"), geometry("geography(OGC:CRS84, karney)"));
    assert_ne!(geometry("geometry"), geometry("geometry(EPSG:4326)"));
    let set = std::collections::HashSet::from([geometry("geometry(epsg:1)"), geometry("geometry(EPSG:1)")]);
    assert_eq!(set.len(), 1);
}

#[test]
fn selection_by_name() {
    let schema = Schema::new(
        0,
        vec![
            Field::optional(1, "a", PrimitiveType::Int),
            Field::optional(2, "St", StructType::new(vec![Field::optional(3, "B", PrimitiveType::Int)])),
        ],
    );
    let schema = schema.unwrap();
    assert_eq!(schema.select(&["St.B"], true).unwrap().ids(), [2, 3]);
    assert_eq!(schema.select(&["st.b"], false).unwrap().ids(), [2, 3]);
    assert_eq!(schema.select(&["a", "*"], true).unwrap(), schema);
    let error = schema.select(&["st"], true).unwrap_err().to_string();
    assert!(error.contains("\"st\""), "{error}");
}

#[test]
fn selection_in_the_order_of_the_names() {
    let inner = |from: i32| {
        let fields = ["x", "y", "z"].iter().zip(from..);
        StructType::new(fields.map(|(name, id)| Field::optional(id, *name, PrimitiveType::Int)).collect())
    };
    let fields = vec![
        Field::optional(1, "a", PrimitiveType::Int),
        Field::optional(2, "st", inner(10)),
        Field::optional(3, "l", ListType::optional(20, inner(21))),
        Field::optional(4, "m", super::MapType::optional(30, PrimitiveType::String, 31, inner(32))),
        Field::optional(5, "c", PrimitiveType::Int),
    ];
    let schema = Schema::new(0, fields).unwrap();
    let ids = |names: &[&str]| schema.select_in_order(names, true).unwrap().ids().to_vec();
    assert_eq!(ids(&["c", "a"]), [5, 1]);
    assert_eq!(ids(&["c", "a", "c"]), [5, 1]);
    assert_eq!(ids(&["st.z", "c", "st.x"]), [2, 12, 10, 5]);
    assert_eq!(ids(&["c", "st.y", "st"]), [5, 2, 11, 10, 12]);
    assert_eq!(ids(&["st", "st.y"]), [2, 10, 11, 12]);
    assert_eq!(ids(&["l.element.z", "l.element.x"]), [3, 20, 23, 21]);
    assert_eq!(ids(&["m.value.z", "a", "m.value.x"]), [4, 30, 31, 34, 32, 1]);
    assert_eq!(ids(&["*", "c"]), schema.ids());
    assert_eq!(ids(&["c", "*"])[..2], [5, 1]);
    assert_eq!(ids(&["c", "*"]).len(), schema.ids().len());
    assert_eq!(schema.select_in_order(&["C", "A"], false).unwrap().ids(), [5, 1]);
    assert!(schema.select_in_order(&["*", "nope"], true).is_err());
    assert_eq!(schema.select(&["c", "a"], true).unwrap().ids(), [1, 5]);
}

#[test]
fn hostile_name_mappings_end() {
    let deep = (0..200).fold(json!([]), |fields, id| json!([{"field-id": id, "names": ["n"], "fields": fields}]));
    assert!(NameMapping::from_json(&deep).unwrap_err().to_string().contains("levels"));
    // All combinations of names would be 10^20 paths, so they must be looked up step by step.
    let names: Vec<_> = (0..10).map(|name| name.to_string()).collect();
    let broad = (0..20).fold(json!([]), |fields, id| json!([{"field-id": id, "names": names, "fields": fields}]));
    let mapping = NameMapping::from_json(&broad).unwrap();
    assert_eq!(mapping.id("1.2.3.4.5"), Some(15));
    // Names with dots: the path can be split in very many ways, all dead ends.
    let dotted =
        (0..60).fold(json!([]), |fields, id| json!([{"field-id": id, "names": ["n", "n.n"], "fields": fields}]));
    let mapping = NameMapping::from_json(&dotted).unwrap();
    assert!(mapping.id(&["n"; 60].join(".")).is_some());
    assert_eq!(mapping.id(&(["n"; 100].join(".") + ".x")), None);
}

#[test]
fn wide_schemas_take_no_square_of_time() {
    let fields: Vec<_> = (1..=90_000).map(|id| Field::optional(id, format!("c{id}"), PrimitiveType::Int)).collect();
    let schema = Schema::new(0, fields).unwrap();
    assert_eq!(schema.compatibility_errors(&schema, super::Checks::WRITE).len(), 0);
    assert!(schema.with_ids_of(&schema, false).unwrap().same_schema(&schema));
    let mut update = crate::evolution::UpdateSchema::new(&schema, 90_000, 3);
    assert!(update.union_by_name(&schema).unwrap().apply().unwrap().same_schema(&schema));
    assert_eq!(NameMapping::of_schema(&schema).unwrap().id("c90000"), Some(90_000));
}
