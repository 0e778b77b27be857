//! Single values: tables of the specification, laws of both serializations, order, bounds, text.

use std::cmp::Ordering;
use std::sync::Arc;

use icefield_format::spec::path;
use icefield_format::transform::{Transform, murmur3, murmur3_32};
use icefield_format::types::value_json;
use icefield_format::types::{Field, ListType, MapType, PrimitiveType, StructType, Type};
use icefield_format::value::geo::GeoBound;
use icefield_format::value::order::compare;
use icefield_format::value::{Value, binary, bounds, calendar, decimal, human};
use proptest::prelude::*;

/// "Appendix B: 32-bit Hash Requirements": type, value in its JSON form, hash.
#[test]
fn appendix_b() {
    let table = [
        ("int", "34", 2_017_239_379),
        ("long", "34", 2_017_239_379),
        ("decimal(4, 2)", "\"14.20\"", -500_754_589),
        ("date", "\"2017-11-16\"", -653_330_422),
        ("time", "\"22:31:08\"", -662_762_989),
        ("timestamp", "\"2017-11-16T22:31:08\"", -2_047_944_441),
        ("timestamp", "\"2017-11-16T22:31:08.000001\"", -1_207_196_810),
        ("timestamptz", "\"2017-11-16T22:31:08+00:00\"", -2_047_944_441),
        ("timestamptz", "\"2017-11-16T22:31:08.000001+00:00\"", -1_207_196_810),
        ("timestamp_ns", "\"2017-11-16T22:31:08\"", -2_047_944_441),
        ("timestamp_ns", "\"2017-11-16T22:31:08.000001001\"", -1_207_196_810),
        ("timestamptz_ns", "\"2017-11-16T22:31:08+00:00\"", -2_047_944_441),
        ("timestamptz_ns", "\"2017-11-16T22:31:08.000001001+00:00\"", -1_207_196_810),
        ("string", "\"iceberg\"", 1_210_000_089),
        ("uuid", "\"f79c3e09-677c-4bbd-a479-3f349cb785e7\"", 1_488_055_340),
        ("fixed[4]", "\"00010203\"", -188_683_207),
        ("binary", "\"00010203\"", -188_683_207),
    ];
    let buckets = i32::MAX as u32;
    for (ty, text, hash) in table {
        let ty = Type::parse(ty).unwrap();
        let value = value_json::from_json(&serde_json::from_str(text).unwrap(), &ty).unwrap();
        let expected = ((hash as u32) & 0x7fff_ffff) % buckets;
        let bucket = Transform::Bucket(buckets).apply(&ty, Some(&value)).unwrap();
        assert_eq!(bucket, Some(Value::Int(expected as i32)), "{ty} {text}");
    }
    // Types that no longer have a hash.
    assert_eq!(murmur3::hash_long(1) as i32, 1_392_991_556);
    for (double, hash) in [(1.0, -142_385_009), (0.0, 1_669_671_676), (-0.0, 1_669_671_676)] {
        assert_eq!(murmur3::hash_double(double) as i32, hash, "{double}");
    }
    let nan = murmur3::hash_double(f64::from_bits(0xfff8_dead_beef_0000));
    assert_eq!(nan, murmur3_32(&0x7ff8_0000_0000_0000u64.to_le_bytes()));
}

/// Values of every primitive type, including extremes.
fn primitive() -> impl Strategy<Value = (PrimitiveType, Value)> {
    use PrimitiveType as T;
    let long = || prop_oneof![any::<i64>(), -1_000_000i64..1_000_000, Just(i64::MIN), Just(i64::MAX)];
    let longs = prop::sample::select(vec![T::Long, T::Timestamp, T::Timestamptz, T::TimestampNs, T::TimestamptzNs]);
    let limit = 10i128.pow(38) - 1;
    prop_oneof![
        any::<bool>().prop_map(|v| (T::Boolean, Value::Boolean(v))),
        any::<i32>().prop_map(|v| (T::Int, Value::Int(v))),
        any::<i32>().prop_map(|v| (T::Date, Value::Int(v))),
        (longs, long()).prop_map(|(ty, v)| (ty, Value::Long(v))),
        (0i64..86_400_000_000).prop_map(|v| (T::Time, Value::Long(v))),
        any::<u32>().prop_map(|v| (T::Float, Value::Float(f32::from_bits(v)))),
        any::<u64>().prop_map(|v| (T::Double, Value::Double(f64::from_bits(v)))),
        (-limit..=limit, 0u8..=38, 0u32..128)
            .prop_map(|(v, scale, shift)| (T::Decimal { precision: 38, scale }, Value::Decimal(v >> shift))),
        any::<String>().prop_map(|v| (T::String, Value::String(v))),
        any::<[u8; 16]>().prop_map(|v| (T::Uuid, Value::Uuid(v))),
        any::<Vec<u8>>().prop_map(|v| (T::Binary, Value::Binary(v))),
        any::<[u8; 5]>().prop_map(|v| (T::Fixed(5), Value::Binary(v.to_vec()))),
    ]
}

fn any_type() -> impl Strategy<Value = PrimitiveType> {
    use PrimitiveType as T;
    let geometry = T::Geometry { crs: None };
    let geography = T::Geography { crs: None, algorithm: None };
    prop_oneof![
        primitive().prop_map(|(ty, _)| ty),
        prop::sample::select(vec![geometry, geography, T::Unknown, T::Fixed(u32::MAX), T::Unrecognized("new".into())]),
    ]
}

fn is_finite(value: &Value) -> bool {
    match value {
        Value::Float(v) => v.is_finite(),
        Value::Double(v) => v.is_finite(),
        _ => true,
    }
}

proptest! {
    #[test]
    fn binary_form_reads_back((ty, value) in primitive()) {
        let bytes = binary::to_bytes(&value, &ty).unwrap();
        prop_assert_eq!(binary::from_bytes(&bytes, &ty).unwrap(), value);
    }

    #[test]
    fn any_bytes_are_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..40), ty in any_type()) {
        if let Ok(value) = binary::from_bytes(&bytes, &ty) {
            // A value that was read can be written, and is read as the same.
            let written = binary::to_bytes(&value, &ty).unwrap();
            prop_assert_eq!(binary::from_bytes(&written, &ty).unwrap(), value);
        }
        if let Ok(point) = GeoBound::from_bytes(&bytes) {
            prop_assert!(point.to_bytes().len() <= bytes.len());
        }
    }

    #[test]
    fn json_form_reads_back((ty, value) in primitive().prop_filter("JSON has these numbers", |(_, v)| is_finite(v))) {
        let ty = Type::from(ty);
        let json = value_json::to_json(&value, &ty).unwrap();
        let text = json.to_string();
        let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(value_json::from_json(&parsed, &ty).unwrap(), value, "{}", text);
    }

    #[test]
    fn any_text_is_a_value_or_an_error(text in "[-+0-9TtZz:.eE ]{0,32}|\\PC{0,20}", ty in any_type()) {
        let _ = path::from_partition_string(&text, &ty);
        let _ = value_json::from_json(&text.clone().into(), &ty.into());
        let _ = Transform::parse(&text);
        let _ = decimal::parse(&text);
    }

    #[test]
    fn human_texts_of_numbers_read_back((ty, value) in primitive()) {
        let text = human::to_human_string(Some(&value), &ty);
        let back = match ty {
            // The text of these types cannot be parsed.
            PrimitiveType::Fixed(_) | PrimitiveType::Binary => return Ok(()),
            PrimitiveType::Float => Some(Value::Float(text.parse().unwrap())),
            PrimitiveType::Double => Some(Value::Double(text.parse().unwrap())),
            PrimitiveType::Date => return Ok(()),
            PrimitiveType::String | PrimitiveType::Int | PrimitiveType::Uuid | PrimitiveType::Boolean => {
                path::from_partition_string(&text, &ty).unwrap()
            }
            PrimitiveType::Decimal { scale, .. } => {
                decimal::parse(&text).unwrap().rescaled(scale).map(Value::Decimal)
            }
            _ => return Ok(()),
        };
        let same = back.as_ref().is_some_and(|back| compare(&ty, back, &value).is_eq());
        prop_assert!(same, "{text} of {value:?} reads back as {back:?}");
    }

    #[test]
    fn dates_are_those_of_another_calendar(days in -4_000_000i64..2_900_000) {
        // Compare with jiff, within its range of years.
        let epoch = jiff::civil::date(1970, 1, 1);
        let days = days.max(-4_371_222);
        let date = epoch.checked_add(jiff::Span::new().days(days)).unwrap();
        let ours = calendar::CivilDate::from_days(days);
        prop_assert_eq!((ours.year, ours.month, ours.day), (date.year().into(), date.month() as u32, date.day() as u32));
        prop_assert_eq!(ours.to_days(), days);
        prop_assert_eq!(calendar::parse_date(&calendar::format_date(days)), Some(days));
    }

    #[test]
    fn minimal_bytes_are_minimal(value: i128, shift in 0u32..128) {
        let value = value >> shift;
        let minimal = decimal::minimal_bytes(value);
        let bytes = minimal.as_slice();
        prop_assert_eq!(decimal::from_big_endian(bytes), Some(value));
        if bytes.len() > 1 {
            prop_assert_ne!(decimal::from_big_endian(&bytes[1..]), Some(value));
        }
        let padded: Vec<u8> = std::iter::repeat_n(if value < 0 { 0xff } else { 0 }, 30).chain(bytes.iter().copied()).collect();
        prop_assert_eq!(decimal::from_big_endian(&padded), Some(value));
    }

    #[test]
    fn the_order_is_total((ty, a) in primitive(), seeds in prop::collection::vec(primitive(), 2)) {
        let [(_, b), (_, c)] = &seeds[..] else { unreachable!() };
        let (ab, bc, ac) = (compare(&ty, &a, b), compare(&ty, b, c), compare(&ty, &a, c));
        prop_assert_eq!(compare(&ty, b, &a), ab.reverse());
        prop_assert_eq!(compare(&ty, &a, &a), Ordering::Equal);
        if ab == bc || bc.is_eq() {
            prop_assert_eq!(ac, ab);
        }
    }

    #[test]
    fn bounds_enclose_what_they_shorten(text in "[a-c\u{d7ff}\u{10ffff}é😀]{0,8}", length in 0usize..9) {
        let lower = bounds::truncate_text(&text, length);
        prop_assert!(lower <= text.as_str() && lower.chars().count() <= length.max(text.chars().count().min(length)));
        match bounds::upper_text(&text, length) {
            Some(upper) => prop_assert!(*upper >= *text && upper.chars().count() <= length.max(1)),
            None => prop_assert!(lower.chars().all(|c| c == char::MAX)),
        }
        let bytes = text.as_bytes();
        prop_assert!(bounds::truncate_bytes(bytes, length) <= bytes);
        match bounds::upper_bytes(bytes, length) {
            Some(upper) => prop_assert!(*upper >= *bytes && upper.len() <= length),
            None => prop_assert!(bytes[..length].iter().all(|byte| *byte == 0xff)),
        }
    }

    #[test]
    fn transforms_that_preserve_order_do(
        width in 1u32..=i32::MAX as u32,
        ((ty, a), (_, b)) in primitive().prop_flat_map(|(ty, a)| {
            let wanted = ty.clone();
            (Just((ty, a)), primitive().prop_filter("of one type", move |(ty, _)| *ty == wanted))
        }),
    ) {
        let source = Type::from(ty.clone());
        let orders = [Transform::Truncate(width), Transform::Year, Transform::Month, Transform::Day, Transform::Hour];
        for transform in orders.iter().filter(|transform| transform.result_type(&source).is_some()) {
            let results = [&a, &b].map(|value| transform.apply(&source, Some(value)));
            let [Ok(Some(to_a)), Ok(Some(to_b))] = results else { continue };
            // Near the smallest number truncation wraps around (docs/differences.md).
            let wraps = compare(&ty, &to_a, &a).is_gt() || compare(&ty, &to_b, &b).is_gt();
            if *transform == Transform::Truncate(width) && wraps {
                continue;
            }
            if compare(&ty, &a, &b).is_le() {
                prop_assert!(compare(&ty, &to_a, &to_b).is_le(), "{transform} of {a:?}, {b:?}: {to_a:?}, {to_b:?}");
            }
        }
    }
}

#[test]
fn the_order_of_floats_and_uuids() {
    let ascending = [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN].map(Value::Double);
    for pair in ascending.windows(2) {
        assert_eq!(compare(&PrimitiveType::Double, &pair[0], &pair[1]), Ordering::Less, "{pair:?}");
    }
    let negative_nan = Value::Float(f32::from_bits(0xffc0_0001));
    assert_eq!(compare(&PrimitiveType::Float, &negative_nan, &Value::Float(f32::NAN)), Ordering::Equal);
    assert_eq!(compare(&PrimitiveType::Float, &negative_nan, &Value::Float(f32::INFINITY)), Ordering::Greater);
    let (low, high) = (Value::Uuid([0x7f; 16]), Value::Uuid([0x80; 16]));
    assert_eq!(compare(&PrimitiveType::Uuid, &low, &high), Ordering::Less, "bytes are unsigned");
    let (low, high) = (Value::String("\u{ffff}".into()), Value::String("\u{10000}".into()));
    assert_eq!(compare(&PrimitiveType::String, &low, &high), Ordering::Less, "code points, not UTF-16");
}

#[test]
fn values_of_another_type_are_refused() {
    let types = ["boolean", "int", "long", "float", "double", "decimal(9, 2)", "date", "string", "uuid", "binary"];
    let values = [Value::Boolean(true), Value::Long(1), Value::Double(1.0), Value::Uuid([0; 16]), Value::List(vec![])];
    for ty in types.map(|ty| Type::parse(ty).unwrap()) {
        let accepted = values.iter().filter(|value| binary::to_bytes(value, ty.as_primitive().unwrap()).is_ok());
        assert!(accepted.count() <= 1, "{ty}");
        assert!(value_json::to_json(&Value::List(vec![]), &ty).is_err(), "{ty}");
        let error = Transform::Bucket(4).apply(&ty, Some(&Value::List(vec![]))).unwrap_err();
        assert!(error.to_string().contains(&ty.to_string()), "{error}");
    }
}

#[test]
fn nested_json() {
    let map = MapType {
        key: Field::required(3, "key", PrimitiveType::String),
        value: Field::optional(4, "value", PrimitiveType::Int),
    };
    let list = ListType { element: Field::optional(2, "element", Type::Map(Arc::new(map))) };
    let ty = Type::Struct(Arc::new(StructType { fields: vec![Field::optional(1, "l", Type::List(Arc::new(list)))] }));
    for (text, message) in [
        (r#"{"1":[{"keys":["a"],"values":[1]},null]}"#, ""),
        (r#"{"1":[{"keys":["a"],"values":[]}]}"#, "/1/0: a map of 1 keys and 0 values"),
        (r#"{"1":[{"keys":[null],"values":[1]}]}"#, "/1/0/keys: a key is null"),
        (r#"{"1":[{"keys":["a","a"],"values":[1,2]}]}"#, "/1/0/keys: two keys are equal"),
        (r#"{"1":[{"keys":["a"],"values":["x"]}]}"#, "/1/0/values/0: \"x\" is not a value of type int"),
        (r#"{"1":[{"values":[]}]}"#, "/1/0: {\"values\":[]} is not a value of type map<string, int>"),
    ] {
        let parsed = serde_json::from_str(text).unwrap();
        match value_json::from_json(&parsed, &ty) {
            Ok(value) => {
                assert_eq!((value_json::to_json(&value, &ty).unwrap().to_string().as_str(), ""), (text, message))
            }
            Err(error) => assert_eq!(error.to_string(), message, "{text}"),
        }
    }
}

#[test]
fn java_texts_of_floats() {
    for (value, text) in [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (9.999e-4, "9.999E-4"),
        (9_999_999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123.456, "123.456"),
        (1e21, "1.0E21"),
        (f64::MIN_POSITIVE, "2.2250738585072014E-308"),
        (5e-324, "4.9E-324"),
        (2e-323, "2.0E-323"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
        (100.0, "100.0"),
        (0.012, "0.012"),
    ] {
        assert_eq!(human::double(value), text);
    }
    assert_eq!(
        (human::float(1.1), human::float(f32::MIN_POSITIVE.next_down())),
        ("1.1".into(), "1.1754942E-38".into())
    );
}
