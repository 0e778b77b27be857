//! Checks the mapping against the tables of `docs/types.md`, and what the tables do not cover.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field as ArrowField, Schema as ArrowSchema};

use super::{FIELD_ID_KEY, FromArrow, Nanoseconds, StringLayout, ToArrow, UnsignedLongs};
use crate::types::{Field, PrimitiveType, Schema, Type};

const DOCUMENT: &str = include_str!("../../../../../docs/types.md");

/// Returns the cells of one table of the document, without code marks.
fn table(heading: &str) -> Vec<Vec<String>> {
    let section = DOCUMENT.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(2);
    let cells = |line: &str| {
        let inner = line.trim_start_matches("| ").trim_end_matches('|').to_owned();
        inner.split(" | ").map(|cell| cell.trim().trim_matches('`').to_owned()).collect::<Vec<_>>()
    };
    rows.map(cells).collect()
}

fn read(ty: &DataType, options: &FromArrow) -> String {
    match options.type_of(&ArrowField::new("c", ty.clone(), true)) {
        Ok(ty) => ty.to_string(),
        Err(error) => {
            assert!(error.to_string().contains("\"c\""), "{error}");
            "!".to_owned()
        }
    }
}

#[test]
fn arrow_to_iceberg_is_the_table() {
    let rows = table("From Arrow to Iceberg");
    assert!(rows.len() > 45, "{}", rows.len());
    for row in rows {
        let ty: DataType = row[0].parse().unwrap_or_else(|error| panic!("{}: {error}", row[0]));
        for version in 1..=3 {
            let expected = if version < 3 { &row[1] } else { &row[2] };
            assert_eq!(&read(&ty, &FromArrow::for_version(version)), expected, "{} in version {version}", row[0]);
        }
    }
}

#[test]
fn iceberg_to_arrow_is_the_table_and_comes_back() {
    let rows = table("From Iceberg to Arrow");
    assert_eq!(rows.len(), 20);
    for row in rows {
        let ty = Type::parse(&row[0]).unwrap();
        let field = ToArrow::default().field(&Field::optional(7, "c", ty.clone())).unwrap();
        assert_eq!(field.data_type(), &row[1].parse::<DataType>().unwrap(), "{}", row[0]);
        let extension = field.metadata().get("ARROW:extension:name").map_or("", String::as_str);
        assert_eq!(extension, row.get(2).map_or("", String::as_str), "{}", row[0]);
        assert_eq!(FromArrow::for_version(3).type_of(&field).unwrap(), ty, "{}", row[0]);
    }
}

#[test]
fn choices() {
    let choose =
        |version, nanoseconds, unsigned_longs| FromArrow { format_version: version, nanoseconds, unsigned_longs };
    let truncate = choose(2, Nanoseconds::Truncate, UnsignedLongs::Decimal);
    for (arrow, expected) in [
        ("Timestamp(ns)", "timestamp"),
        ("Timestamp(ns, \"Z\")", "timestamptz"),
        ("Time64(ns)", "time"),
        ("UInt64", "decimal(20, 0)"),
    ] {
        assert_eq!(read(&arrow.parse().unwrap(), &truncate), expected, "{arrow}");
    }
    let text = Field::optional(1, "s", PrimitiveType::String);
    for (strings, expected) in [(StringLayout::Large, DataType::LargeUtf8), (StringLayout::View, DataType::Utf8View)] {
        let field = ToArrow { strings, metadata: false }.field(&text).unwrap();
        assert_eq!((field.data_type(), field.metadata().len()), (&expected, 0));
    }
}

#[test]
fn geography_keeps_its_parameters() {
    for text in ["geometry(EPSG:4326)", "geography(OGC:CRS84, karney)", "geography(EPSG:4326, spherical)"] {
        let ty = Type::parse(text).unwrap();
        let field = ToArrow::default().field(&Field::optional(1, "g", ty.clone())).unwrap();
        assert_eq!(FromArrow::for_version(3).type_of(&field).unwrap(), ty);
        let error = FromArrow::for_version(2).type_of(&field).unwrap_err().to_string();
        assert!(error.contains("version 3"), "{error}");
    }
}

#[test]
fn all_bad_columns_are_told_at_once() {
    let bad = |name: &str, ty: &str| ArrowField::new(name, ty.parse::<DataType>().unwrap(), true);
    let inner = ArrowField::new("st", DataType::Struct(vec![bad("d", "Duration(s)")].into()), true);
    let list = ArrowField::new("l", DataType::List(Arc::new(bad("item", "Null"))), true);
    let schema = ArrowSchema::new(vec![bad("ok", "Int8"), inner, list, bad("i", "Interval(YearMonth)")]);
    let error = Schema::from_arrow(&schema, &FromArrow::for_version(2)).unwrap_err().to_string();
    for part in ["3 columns", "\"st.d\"", "\"l.element\"", "\"i\"", "Duration(s)", "Interval(YearMonth)"] {
        assert!(error.contains(part), "{part} in {error}");
    }
}

#[test]
fn ids_are_kept_and_fresh_ones_lie_above() {
    let field = |name: &str, id: Option<&str>| {
        let metadata = id.map(|id| (FIELD_ID_KEY.to_owned(), id.to_owned()));
        ArrowField::new(name, DataType::Int32, true).with_metadata(metadata.into_iter().collect::<HashMap<_, _>>())
    };
    let columns = [(["4", "2"], [4, 2]), (["-1", "9"], [10, 9]), (["x", "9"], [10, 9])];
    for (given, expected) in columns {
        let schema = ArrowSchema::new(vec![field("a", Some(given[0])), field("b", Some(given[1]))]);
        assert_eq!(Schema::from_arrow(&schema, &FromArrow::for_version(3)).unwrap().ids(), expected);
    }
    let nested = ArrowField::new("st", DataType::Struct(vec![field("x", None)].into()), false);
    let schema = ArrowSchema::new(vec![nested, field("b", None)]);
    let schema = Schema::from_arrow(&schema, &FromArrow::for_version(3)).unwrap();
    let names: Vec<_> = [1, 2, 3].map(|id| schema.column_name(id).unwrap()).into();
    assert_eq!(names, ["st", "b", "st.x"], "columns before what is inside of them");
    let kept = ArrowField::new("st", DataType::Struct(vec![field("x", Some("5")), field("y", None)].into()), false);
    let ty = FromArrow::for_version(3).type_of(&kept).unwrap();
    assert_eq!(ty.to_string(), "struct<5: x: optional int, 6: y: optional int>");
    let twice = ArrowSchema::new(vec![field("a", Some("1")), field("b", Some("1"))]);
    assert!(Schema::from_arrow(&twice, &FromArrow::for_version(3)).is_err());
}

#[test]
fn what_arrow_has_not_is_refused() {
    let odd = ["decimal(0, 0)", "decimal(5, 6)", "fixed[2147483647]"];
    let refused =
        odd.map(|text| ToArrow::default().field(&Field::optional(1, "c", Type::parse(text).unwrap())).is_err());
    assert_eq!(refused, [true, true, false]);
    let later = Field::optional(1, "c", PrimitiveType::Unrecognized("interval".into()));
    let schema = Schema::new(0, vec![Field::optional(2, "st", crate::types::StructType::new(vec![later]))]).unwrap();
    let error = schema.to_arrow(&ToArrow::default()).unwrap_err().to_string();
    assert!(error.contains("st.c") && error.contains("interval"), "{error}");
}

#[test]
fn deep_types_end() {
    let deep = (0..100_000).fold(DataType::Int32, |ty, _| DataType::List(Arc::new(ArrowField::new("item", ty, true))));
    let field = ArrowField::new("c", deep, true);
    assert!(FromArrow::for_version(3).type_of(&field).is_err());
    std::mem::forget(field); // Arrow's own drop is recursive
}
