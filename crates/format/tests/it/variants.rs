//! Variants: the bytes of every type, nested values, damage, paths, and laws of writing and reading.

use icefield_format::Result;
use icefield_format::value::variant::path::Step;
use icefield_format::value::variant::tree::Primitive;
use icefield_format::value::variant::{DEPTH, Metadata, Node, Path, Tree, Variant, encode, human, json};
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn json(metadata: &str, value: &str) -> Result<String> {
    json::to_json(&Variant::new(&hex(metadata), &hex(value))?)
}

/// Every type: the bytes of the value, its JSON, its text.
#[test]
fn primitive_types() {
    let cases = [
        ("00", "null", "NULL, value=null"),
        ("04", "true", "BOOLEAN_TRUE, value=true"),
        ("08", "false", "BOOLEAN_FALSE, value=false"),
        ("0c80", "-128", "INT8, value=-128"),
        ("10ff7f", "32767", "INT16, value=32767"),
        ("1400000080", "-2147483648", "INT32, value=-2147483648"),
        ("18ffffffffffffff7f", "9223372036854775807", "INT64, value=9223372036854775807"),
        ("1c000000000000f83f", "1.5", "DOUBLE, value=1.5"),
        ("1c000000000000f87f", r#""NaN""#, "DOUBLE, value=NaN"),
        ("380000c07f", r#""NaN""#, "FLOAT, value=NaN"),
        ("38000080ff", r#""-Infinity""#, "FLOAT, value=-Infinity"),
        ("380000003f", "0.5", "FLOAT, value=0.5"),
        ("200264000000", "1.00", "DECIMAL4, value=1.00"),
        ("24019cffffffffffffff", "-10.0", "DECIMAL8, value=-10.0"),
        ("282601000000000000000000000000000000", "0.00000000000000000000000000000000000001", "DECIMAL16, value=1E-38"),
        ("2cffffffff", r#""1969-12-31""#, "DATE, value=1969-12-31"),
        ("2c00000080", r#""-5877641-06-23""#, "DATE, value=-5877641-06-23"),
        (
            "300100000000000000",
            r#""1970-01-01T00:00:00.000001+00:00""#,
            "TIMESTAMPTZ, value=1970-01-01T00:00:00.000001+00:00",
        ),
        ("34ffffffffffffffff", r#""1969-12-31T23:59:59.999999""#, "TIMESTAMPNTZ, value=1969-12-31T23:59:59.999999"),
        ("3c02000000cafe", r#""yv4=""#, "BINARY, value=CAFE"),
        ("4002000000c3a9", r#""é""#, "STRING, value=é"),
        ("09c3a9", r#""é""#, "STRING, value=é"),
        ("44018307e012000000", r#""22:31:08.000001""#, "TIME, value=22:31:08.000001"),
        (
            "480100000000000000",
            r#""1970-01-01T00:00:00.000000001+00:00""#,
            "TIMESTAMPTZ_NANOS, value=1970-01-01T00:00:00.000000001+00:00",
        ),
        (
            "4cffffffffffffffff",
            r#""1969-12-31T23:59:59.999999999""#,
            "TIMESTAMPNTZ_NANOS, value=1969-12-31T23:59:59.999999999",
        ),
        (
            "50f24f9b6481fa49d1b74e8c09a6e31c56",
            r#""f24f9b64-81fa-49d1-b74e-8c09a6e31c56""#,
            "UUID, value=f24f9b64-81fa-49d1-b74e-8c09a6e31c56",
        ),
    ];
    for (value, text, human) in cases {
        let bytes = hex(value);
        let variant = Variant::new(&Metadata::EMPTY, &bytes).unwrap();
        assert_eq!(json::to_json(&variant).as_deref(), Ok(text), "{value}");
        assert_eq!(human::to_human_string(&variant).unwrap(), format!("Variant(type={human})"), "{value}");
        let mut again = Vec::new();
        encode::primitive(&mut again, &variant.node().unwrap()).unwrap();
        assert!(again == bytes || value.starts_with("40"), "short strings are written short: {value}");
        assert_eq!(variant.exact().unwrap().len(), bytes.len());
        // Every truncation is an error, and bytes after the value are not part of it.
        for cut in 0..bytes.len() {
            assert!(Variant::new(&Metadata::EMPTY, &bytes[..cut]).unwrap().check().is_err(), "{value} cut at {cut}");
        }
        let more = [&bytes[..], &[1, 2, 3]].concat();
        assert_eq!(Variant::new(&Metadata::EMPTY, &more).unwrap().exact().unwrap(), bytes);
    }
}

/// Variants that Spark wrote (golden table v3_variant).
#[test]
fn nested_values() {
    let cases = [
        ("01020001026162", "020200010002040c010578", r#"{"a":1,"b":"x"}"#),
        (
            "0103000607086e65737465647879",
            "0201000011020101000c020102000703020001020408",
            r#"{"nested":{"x":{"y":[true,false]}}}"#,
        ),
        (
            "0104000102030461626364",
            "0203000102000204140c02057903030002040a0c010c02020103000100",
            r#"{"a":2,"b":"y","c":[1,2,{"d":null}]}"#,
        ),
        ("010000", "030000", "[]"),
        ("010000", "020000", "{}"),
        ("0100", "020000", "{}"),
    ];
    for (metadata, value, text) in cases {
        assert_eq!(json(metadata, value).as_deref(), Ok(text));
        for cut in 0..value.len() / 2 {
            assert!(json(metadata, &value[..2 * cut]).is_err(), "{text} cut at {cut}");
        }
        for cut in (0..metadata.len() / 2).filter(|cut| !metadata.starts_with("0100") || *cut < 2) {
            assert!(json(&metadata[..2 * cut], value).is_err(), "metadata of {text} cut at {cut}");
        }
    }
}

#[test]
fn damage_is_named() {
    let cases = [
        ("", "00", "metadata are empty"),
        ("020000", "00", "version 2"),
        ("0102000102ff62", "00", "a field name is not UTF-8"),
        ("0102000261", "00", "within the dictionary"),
        ("01020003026162", "00", "name 0 of the dictionary has invalid offsets"),
        ("010000", "", "value is empty"),
        ("010000", "0201000002000000", "field id 0 is not in the dictionary"),
        ("0101000161", "02010009010000", "offset of value 0 is beyond"),
        ("010000", "03ff", "does not end within its bytes"),
        ("010000", "13ffffffff00", "does not end within its bytes"),
        ("010000", "05ff", "a string is not UTF-8"),
        ("010000", "202701000000", "scale 39"),
        ("010000", "3cffffffff00", "does not end within its bytes"),
        ("010000", "54", "primitive type 21"),
    ];
    for (metadata, value, message) in cases {
        let error = json(metadata, value).unwrap_err().to_string();
        assert!(error.contains(message), "{metadata} {value}: {error}");
    }
}

/// Nested arrays of one element; each level takes four bytes.
fn nested(levels: usize) -> Vec<u8> {
    let mut out = Vec::new();
    encode::primitive(&mut out, &Node::Null).unwrap();
    for _ in 0..levels {
        encode::finish_array(&mut out, 0, &[0]).unwrap();
    }
    out
}

#[test]
fn depth_is_limited() {
    let deepest = nested(DEPTH);
    let variant = Variant::new(&Metadata::EMPTY, &deepest).unwrap();
    assert_eq!(json::to_json(&variant).unwrap(), format!("{}null{}", "[".repeat(DEPTH), "]".repeat(DEPTH)));
    for levels in [DEPTH + 1, 20_000] {
        let deeper = nested(levels);
        let error = Variant::new(&Metadata::EMPTY, &deeper).unwrap().check().unwrap_err().to_string();
        assert!(error.contains("deeper than 1000"), "{error}");
    }
}

/// Arrays whose two elements are the same bytes: a tree of 2^40 values in 200 bytes.
#[test]
fn values_that_share_bytes_end() {
    let mut bytes = vec![0];
    for _ in 0..40 {
        let mut outer = vec![0x03 | 1 << 2, 2];
        for offset in [0, 0, bytes.len()] {
            outer.extend((offset as u16).to_le_bytes());
        }
        outer.extend(&bytes);
        bytes = outer;
    }
    let error = Variant::new(&Metadata::EMPTY, &bytes).unwrap().check().unwrap_err().to_string();
    assert!(error.contains("overlap"), "{error}");
}

#[test]
fn paths() {
    let cases = [
        ("$", "$"),
        ("$.a.b", "$['a']['b']"),
        ("$.a[0][12]", "$['a'][0][12]"),
        ("$['user.name']", "$['user.name']"),
        (r#"$["a'b"].ü"#, r"$['a\'b']['ü']"),
        (r"$['\u0001\n']", r"$['\u0001\n']"),
    ];
    for (text, normalized) in cases {
        let path = Path::parse(text).unwrap();
        assert_eq!(path.to_string(), normalized);
        assert_eq!(Path::parse(normalized), Ok(path));
    }
    for wrong in
        ["", "a", "$a", "$.", "$..a", "$.1", "$[", "$[]", "$[-1]", "$[01]", "$['a", "$['a'", "$[*]", "$.*", "$['\\x']"]
    {
        assert!(Path::parse(wrong).unwrap_err().to_string().contains("character"), "{wrong}");
    }
    let (metadata, value) =
        (hex("0104000102030461626364"), hex("0203000102000204140c02057903030002040a0c010c02020103000100"));
    let variant = Variant::new(&metadata, &value).unwrap();
    let found =
        [("$.a", "2"), ("$.c[1]", "2"), ("$.c[2].d", "null"), ("$.c[3]", ""), ("$.A", ""), ("$[0]", ""), ("$.a.b", "")];
    for (path, wanted) in found {
        let found = Path::parse(path).unwrap().find(variant).unwrap();
        assert_eq!(found.map(|found| json::to_json(&found).unwrap()).unwrap_or_default(), wanted, "{path}");
    }
    assert_eq!(Path::new(vec![Step::Field("a".into())]), Path::parse("$.a").unwrap());
}

fn leaf() -> impl Strategy<Value = Tree> {
    let fixed = prop_oneof![
        Just(Node::Null),
        any::<bool>().prop_map(Node::Boolean),
        any::<i64>().prop_map(Node::Int64),
        any::<i32>().prop_map(Node::Date),
        any::<[u8; 16]>().prop_map(Node::Uuid),
        any::<f64>().prop_map(Node::Double),
        (any::<i64>(), any::<bool>()).prop_map(|(nanos, is_utc)| Node::TimestampNanos { nanos, is_utc }),
    ];
    let fixed = fixed.prop_map(Primitive::Fixed);
    let primitive =
        prop_oneof![fixed, ".{0,80}".prop_map(Primitive::String), any::<Vec<u8>>().prop_map(Primitive::Binary)];
    primitive.prop_map(Tree::Primitive)
}

fn tree() -> impl Strategy<Value = Tree> {
    leaf().prop_recursive(5, 600, 300, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..300).prop_map(Tree::Array),
            prop::collection::btree_map("[a-d]{0,3}|.{0,9}", inner, 0..20).prop_map(Tree::Object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(tree in tree()) {
        let (metadata, value) = tree.encode().unwrap();
        let variant = Variant::new(&metadata, &value).unwrap();
        variant.check().unwrap();
        prop_assert_eq!(variant.exact().unwrap(), &value[..]);
        prop_assert_eq!(format!("{:?}", Tree::read(variant).unwrap()), format!("{tree:?}"));
        if let (Tree::Object(fields), Node::Object(object)) = (&tree, variant.node().unwrap()) {
            for name in fields.keys() {
                prop_assert!(object.get(name).unwrap().is_some());
                prop_assert!(variant.metadata().id(name).unwrap().is_some());
            }
            prop_assert!(object.get("no such name, or so").unwrap().is_none());
        }
    }

    #[test]
    fn no_bytes_are_too_much(metadata in any::<Vec<u8>>(), value in any::<Vec<u8>>(), tree in tree(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (own_metadata, mut own) = tree.encode().unwrap();
        let place = at.index(own.len());
        own[place] = byte;
        for (metadata, value) in [(&metadata, &value), (&Metadata::EMPTY.to_vec(), &value), (&own_metadata, &own)] {
            if let Ok(variant) = Variant::new(metadata, value) {
                let _ = (variant.check(), json::to_json(&variant), human::to_human_string(&variant), variant.exact());
            }
        }
    }
}
