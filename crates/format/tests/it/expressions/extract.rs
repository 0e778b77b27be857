//! Terms that extract values from variants, evaluated on values, rows and bounds.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StructArray};
use arrow_schema::{DataType, Field as ArrowField, Fields, Schema as ArrowSchema};
use icefield_format::expr::{Expr, FieldStatistics, FileStatistics, InclusiveMetrics, StrictMetrics, cast};
use icefield_format::types::{Field, PrimitiveType, Schema, Type};
use icefield_format::value::Value;
use icefield_format::value::variant::tree::Primitive;
use icefield_format::value::variant::{Node, Tree};

/// Metadata and value.
type Parts = (Vec<u8>, Vec<u8>);

fn schema() -> Schema {
    Schema::new(0, vec![Field::optional(1, "v", Type::Variant), Field::optional(2, "id", PrimitiveType::Long)]).unwrap()
}

fn object(fields: Vec<(&str, Tree)>) -> Tree {
    Tree::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn text(text: &str) -> Tree {
    Tree::Primitive(Primitive::String(text.to_owned()))
}

/// {"a": {"b": [n, "x"]}}
fn nested(n: i64) -> Tree {
    object(vec![("a", object(vec![("b", Tree::Array(vec![Tree::integer(n), text("x")]))]))])
}

/// Conversions between types, as in `VariantExpressionUtil.castTo` of the Java library.
#[test]
fn values_as_types() {
    let decimal = |unscaled, scale| Node::Decimal { unscaled, scale, bytes: 4 };
    let micros = |micros, is_utc| Node::Timestamp { micros, is_utc };
    let nanos = |nanos, is_utc| Node::TimestampNanos { nanos, is_utc };
    let day = 86_400_000_000;
    let cases: Vec<(&str, Node<'_>, Option<Value>)> = vec![
        ("boolean", Node::Boolean(true), Some(Value::Boolean(true))),
        ("boolean", Node::Int8(1), None),
        ("int", Node::Int8(-1), Some(Value::Int(-1))),
        ("int", Node::Int16(300), Some(Value::Int(300))),
        ("int", Node::Int32(7), Some(Value::Int(7))),
        ("int", Node::Int64(7), None),
        ("long", Node::Int8(-1), Some(Value::Long(-1))),
        ("long", Node::Int32(7), Some(Value::Long(7))),
        ("long", Node::Int64(i64::MIN), Some(Value::Long(i64::MIN))),
        ("long", Node::Double(1.0), None),
        ("long", Node::String("1"), None),
        ("float", Node::Float(0.5), Some(Value::Float(0.5))),
        ("float", Node::Double(0.5), None),
        ("double", Node::Float(0.5), Some(Value::Double(0.5))),
        ("double", Node::Double(0.5), Some(Value::Double(0.5))),
        ("double", Node::Int8(1), None),
        ("decimal(9, 2)", decimal(100, 2), Some(Value::Decimal(100))),
        ("decimal(9, 2)", decimal(100, 1), None),
        ("decimal(2, 2)", decimal(100, 2), None),
        ("decimal(9, 0)", Node::Int8(1), None),
        ("date", Node::Date(-1), Some(Value::Int(-1))),
        ("date", micros(-1, false), Some(Value::Int(-1))),
        ("date", nanos(-1, true), Some(Value::Int(-1))),
        ("date", micros(i64::MAX, true), Some(Value::Int(106_751_991))),
        ("time", Node::Time(5), Some(Value::Long(5))),
        ("timestamp", micros(5, false), Some(Value::Long(5))),
        ("timestamp", micros(5, true), None),
        ("timestamp", nanos(-1, true), Some(Value::Long(-1))),
        ("timestamp", Node::Date(1), Some(Value::Long(day))),
        ("timestamptz", micros(5, true), Some(Value::Long(5))),
        ("timestamptz", micros(5, false), None),
        ("timestamp_ns", nanos(5, false), Some(Value::Long(5))),
        ("timestamp_ns", nanos(5, true), None),
        ("timestamptz_ns", micros(5, false), Some(Value::Long(5000))),
        ("timestamptz_ns", micros(i64::MAX, false), None),
        ("timestamp_ns", Node::Date(i32::MAX), None),
        ("string", Node::String("x"), Some(Value::String("x".to_owned()))),
        ("string", Node::Int8(1), None),
        ("uuid", Node::Uuid([1; 16]), Some(Value::Uuid([1; 16]))),
        ("binary", Node::Binary(b"ab"), Some(Value::Binary(b"ab".to_vec()))),
        ("fixed[2]", Node::Binary(b"ab"), Some(Value::Binary(b"ab".to_vec()))),
        ("fixed[3]", Node::Binary(b"ab"), None),
        ("string", Node::Null, None),
    ];
    for (ty, node, wanted) in cases {
        assert_eq!(cast(&node, &PrimitiveType::parse(ty).unwrap()), wanted, "{node:?} as {ty}");
    }
}

/// Rows of a batch and single rows give the same answers.
#[test]
fn rows() {
    let trees = [
        Some(nested(5)),
        Some(nested(300)),
        Some(object(vec![("a", text("x")), ("c.d", Tree::fixed(Node::Double(f64::NAN)))])),
        Some(Tree::integer(5)),
        Some(Tree::fixed(Node::Null)),
        None,
    ];
    let encoded: Vec<_> = trees.iter().map(|tree| tree.as_ref().map(|tree| tree.encode().unwrap())).collect();
    let part = |which: fn(&Parts) -> &[u8]| -> ArrayRef {
        let bytes = encoded.iter().map(|parts| parts.as_ref().map_or(&[][..], which));
        Arc::new(BinaryArray::from_iter_values(bytes))
    };
    let fields: Fields =
        ["metadata", "value"].map(|name| ArrowField::new(name, DataType::Binary, false)).into_iter().collect();
    let nulls = encoded.iter().map(Option::is_some).collect::<Vec<_>>().into();
    let variants = StructArray::new(fields, vec![part(|parts| &parts.0), part(|parts| &parts.1)], Some(nulls));
    let column = ArrowField::new("v", variants.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(ArrowSchema::new(vec![column])), vec![Arc::new(variants)]).unwrap();
    let cases: [(&str, &[usize]); 17] = [
        ("v:a.b[0]::long = 5", &[0]),
        ("v:a.b[0]::int > 5", &[1]),
        ("v:a.b[0]::long < 1000", &[0, 1]),
        ("v:a.b[0]::long != 5", &[1, 2, 3, 4, 5]),
        ("v:a['b'][0]::long IN (5, 6)", &[0]),
        ("v:a.b[1]::string = 'x'", &[0, 1]),
        ("v:a.b[1]::string LIKE 'x%'", &[0, 1]),
        ("v:a.b[2]::string IS NOT NULL", &[]),
        ("v:a::string = 'x'", &[2]),
        ("v:A::string = 'x'", &[]),
        ("v:a::string IS NULL", &[0, 1, 3, 4, 5]),
        ("v:\"c.d\"::double IS NAN", &[2]),
        ("v::long = 5", &[3]),
        ("NOT v::long = 5", &[0, 1, 2, 4, 5]),
        ("v IS NULL", &[5]),
        ("v:a.b[0]::date = DATE '1970-01-06'", &[]),
        ("v:a.b[0]::boolean IS NOT NULL", &[]),
    ];
    for (filter, wanted) in cases {
        let bound = Expr::parse(filter).unwrap().bind(&schema(), true).unwrap();
        let found = bound.evaluate(&batch).unwrap();
        let found: Vec<usize> = (0..trees.len()).filter(|row| found.value(*row)).collect();
        assert_eq!(found, wanted, "{filter}");
        let matches = |parts: &Option<Parts>| {
            let value = parts.clone().map(|(metadata, value)| Value::Variant { metadata, value });
            bound.matches(&[value, None])
        };
        let one_by_one: Vec<usize> = (0..trees.len()).filter(|row| matches(&encoded[*row])).collect();
        assert_eq!(one_by_one, wanted, "{filter}, one by one");
    }
    let types = "boolean int long float double decimal(9,2) date time timestamp timestamptz timestamp_ns timestamptz_ns \
                 string uuid fixed[4] binary";
    for ty in types.split(' ') {
        let bound = Expr::parse(&format!("v:a::{ty} IS NULL")).unwrap().bind(&schema(), true).unwrap();
        assert!(bound.evaluate(&batch).unwrap().true_count() >= 5, "{ty}");
    }
}

struct File {
    lower: Vec<u8>,
    upper: Vec<u8>,
}

impl FileStatistics for File {
    fn record_count(&self) -> i64 {
        10
    }

    fn field(&self, id: i32) -> FieldStatistics<'_> {
        assert_eq!(id, 1);
        let (lower, upper) = (Some(&*self.lower), Some(&*self.upper));
        FieldStatistics { value_count: Some(10), null_count: Some(0), nan_count: None, lower, upper }
    }
}

/// Bounds of a variant: an object of normalized paths, as metadata followed by value.
fn bounds(fields: Vec<(&str, Tree)>) -> Vec<u8> {
    let (mut metadata, value) = object(fields).encode().unwrap();
    metadata.extend(value);
    metadata
}

/// Which filters skip a file whose `a.b` is 5 to 300 and whose `s` is `k` to `m`.
#[test]
fn files_are_left_out_by_bounds() {
    let file = File {
        lower: bounds(vec![("$['a']['b']", Tree::integer(5)), ("$['s']", text("k")), ("$", Tree::integer(1))]),
        upper: bounds(vec![("$['a']['b']", Tree::integer(300)), ("$['s']", text("m")), ("$", Tree::integer(1))]),
    };
    let cases = [
        ("v:a.b::long < 5", false),
        ("v:a.b::long <= 5", true),
        ("v:a.b::int > 300", false),
        ("v:a.b::int >= 300", true),
        ("v:a.b::long = 301", false),
        ("v:a.b::long IN (1, 2, 400)", false),
        ("v:a.b::long IN (1, 200)", true),
        ("v:a.b::long BETWEEN 1 AND 4", false),
        // With another type than that of the bounds, nothing is known.
        ("v:a.b::double < 0.0", true),
        ("v:a.c::long = 301", true),
        ("v:a.b[0]::long = 301", true),
        ("v:s::string = 'a'", false),
        ("v:s::string LIKE 'n%'", false),
        ("v:s::string LIKE 'l%'", true),
        ("v:a.b::long IS NULL", true),
        ("v:a.b::long IS NOT NULL", true),
        // All rows that have the value have the same; rows without it are not equal.
        ("v::long != 1", true),
        ("v::long NOT IN (1)", true),
        ("v:s::string NOT LIKE 'k%'", true),
        ("v::long = 2", false),
    ];
    for (filter, wanted) in cases {
        let bound = Expr::parse(filter).unwrap().bind(&schema(), true).unwrap();
        assert_eq!(InclusiveMetrics::new(&bound).might_match(&file), wanted, "{filter}");
        assert!(!StrictMetrics::new(&bound).must_match(&file), "{filter}: rows without the value");
    }
    for damaged in [vec![], vec![2], vec![1, 0, 0], vec![1, 0, 0, 3], b"nonsense".to_vec()] {
        let file = File { lower: damaged.clone(), upper: damaged };
        let bound = Expr::parse("v:a.b::long = 301").unwrap().bind(&schema(), true).unwrap();
        assert!(InclusiveMetrics::new(&bound).might_match(&file), "bounds that cannot be read say nothing");
    }
}

#[test]
fn what_cannot_be_bound_is_refused() {
    for (filter, message) in [
        ("id:a::long = 1", "id has the type long, expected variant"),
        ("v:a::long = 'x'", "column v"),
        ("v:a::string IS NAN", "never NaN"),
        ("w:a::string = 'x'", "w"),
    ] {
        let error = Expr::parse(filter).unwrap().bind(&schema(), true).unwrap_err().to_string();
        assert!(error.contains(message), "{filter}: {error}");
    }
}

#[test]
fn json_form() {
    let expr = Expr::parse("v:a['b.c'][0]::decimal(9, 2) > 1.50").unwrap();
    let json = expr.to_json().unwrap();
    let term = serde_json::json!({
        "type": "extract", "path": "$['a']['b.c'][0]", "data-type": "decimal(9, 2)", "term": "v",
    });
    assert_eq!(json["term"], term);
    assert_eq!(Expr::from_json(&json).unwrap(), expr);
    let bound = expr.bind(&schema(), true).unwrap();
    let again = Expr::from_json_typed(&bound.to_json().unwrap(), &schema()).unwrap();
    assert_eq!(again.bind(&schema(), true).unwrap(), bound);
}
