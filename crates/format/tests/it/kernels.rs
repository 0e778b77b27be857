//! Compares the kernels of the transforms with the definition for single values, on random arrays of every type: with
//! nulls over arbitrary values, sliced, as views, as dictionaries.

use std::sync::Arc;

use arrow_array::builder::{BinaryViewBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, TimeUnit};
use icefield_format::transform::Transform;
use icefield_format::types::{PrimitiveType, Type};
use icefield_format::value::Value;
use proptest::prelude::*;

/// A column: its Iceberg type, and its values as an Arrow array.
#[derive(Debug, Clone)]
struct Column {
    ty: PrimitiveType,
    array: ArrayRef,
}

/// The value in one row, as an Iceberg value.
fn value_at(array: &ArrayRef, row: usize) -> Option<Value> {
    macro_rules! primitive {
        ($ty:ty) => {
            array.as_primitive::<$ty>().value(row)
        };
    }
    if array.is_null(row) {
        return None;
    }
    let in_micros = |value: i64, unit: &TimeUnit| match unit {
        TimeUnit::Second => value * 1_000_000,
        TimeUnit::Millisecond => value * 1_000,
        _ => value,
    };
    Some(match array.data_type() {
        DataType::Int8 => Value::Int(primitive!(Int8Type).into()),
        DataType::Int16 => Value::Int(primitive!(Int16Type).into()),
        DataType::UInt8 => Value::Int(primitive!(UInt8Type).into()),
        DataType::UInt16 => Value::Int(primitive!(UInt16Type).into()),
        DataType::Int32 => Value::Int(primitive!(Int32Type)),
        DataType::Date32 => Value::Int(primitive!(Date32Type)),
        DataType::UInt32 => Value::Long(primitive!(UInt32Type).into()),
        DataType::Int64 => Value::Long(primitive!(Int64Type)),
        DataType::Time64(TimeUnit::Microsecond) => Value::Long(primitive!(Time64MicrosecondType)),
        DataType::Time64(_) => Value::Long(primitive!(Time64NanosecondType).div_euclid(1000)),
        DataType::Time32(unit @ TimeUnit::Second) => Value::Long(in_micros(primitive!(Time32SecondType).into(), unit)),
        DataType::Time32(unit) => Value::Long(in_micros(primitive!(Time32MillisecondType).into(), unit)),
        DataType::Timestamp(unit, _) => Value::Long(match unit {
            TimeUnit::Second => in_micros(primitive!(TimestampSecondType), unit),
            TimeUnit::Millisecond => in_micros(primitive!(TimestampMillisecondType), unit),
            TimeUnit::Microsecond => primitive!(TimestampMicrosecondType),
            TimeUnit::Nanosecond => primitive!(TimestampNanosecondType),
        }),
        DataType::Decimal32(_, _) => Value::Decimal(primitive!(Decimal32Type).into()),
        DataType::Decimal64(_, _) => Value::Decimal(primitive!(Decimal64Type).into()),
        DataType::Decimal128(_, _) => Value::Decimal(primitive!(Decimal128Type)),
        DataType::Utf8 => Value::String(array.as_string::<i32>().value(row).into()),
        DataType::LargeUtf8 => Value::String(array.as_string::<i64>().value(row).into()),
        DataType::Utf8View => Value::String(array.as_string_view().value(row).into()),
        DataType::Binary => Value::Binary(array.as_binary::<i32>().value(row).into()),
        DataType::LargeBinary => Value::Binary(array.as_binary::<i64>().value(row).into()),
        DataType::BinaryView => Value::Binary(array.as_binary_view().value(row).into()),
        DataType::FixedSizeBinary(16) => Value::Uuid(array.as_fixed_size_binary().value(row).try_into().unwrap()),
        DataType::FixedSizeBinary(_) => Value::Binary(array.as_fixed_size_binary().value(row).into()),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            return value_at(dictionary.values(), dictionary.normalized_keys()[row]);
        }
        other => panic!("no column here is {other}"),
    })
}

fn check(transform: &Transform, column: &Column) {
    let ty = Type::from(column.ty.clone());
    let result = transform.kernel(&column.array);
    if transform.result_type(&ty).is_none() {
        assert!(result.is_err(), "{transform} took {}", column.array.data_type());
        return;
    }
    let values: Vec<_> = (0..column.array.len()).map(|row| value_at(&column.array, row)).collect();
    let expected: Result<Vec<_>, _> = values.iter().map(|value| transform.apply(&ty, value.as_ref())).collect();
    let Ok(expected) = expected else {
        assert!(result.is_err(), "{transform} gave a result that does not fit");
        return;
    };
    let result = result.unwrap();
    result.to_data().validate_full().unwrap();
    assert_eq!(result.len(), expected.len());
    for (row, (expected, source)) in expected.iter().zip(&values).enumerate() {
        let got = value_at(&result, row);
        assert_eq!(got, *expected, "{transform} of {source:?} in {}", column.array.data_type());
    }
}

fn transforms() -> Vec<Transform> {
    let widths = [1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 16, 17, 100, 1000, 1 << 30, i32::MAX as u32];
    let mut all = vec![Transform::Identity, Transform::Year, Transform::Month, Transform::Day, Transform::Hour];
    all.extend(widths.iter().flat_map(|width| [Transform::Bucket(*width), Transform::Truncate(*width)]));
    all
}

/// Numbers of all sizes, with frequent extremes.
fn long() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => (any::<i64>(), 0u32..64).prop_map(|(value, shift)| value >> shift),
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1), Just(i64::MIN + 1)],
    ]
}

fn wide() -> impl Strategy<Value = i128> {
    let limit = 10i128.pow(38) - 1;
    prop_oneof![
        4 => (any::<i128>(), 0u32..128).prop_map(|(value, shift)| value >> shift),
        1 => prop_oneof![Just(i128::MAX), Just(i128::MIN), Just(0), Just(-1)],
    ]
    .prop_map(move |value| value.clamp(-limit, limit))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,20}", "[a-zé日😀\u{0}]{0,9}", "\\PC{0,40}", "[a-z]{100,130}"]
}

/// Nulls for a column, or none at all.
fn nulls(len: usize) -> impl Strategy<Value = Option<NullBuffer>> {
    prop::option::of(
        prop::collection::vec(any::<bool>(), len).prop_map(|bits| NullBuffer::new(BooleanBuffer::from(bits))),
    )
}

/// Adds nulls to an array; the slots keep their values.
fn with_nulls(array: &ArrayRef, nulls: Option<NullBuffer>) -> ArrayRef {
    let data = array.to_data().into_builder().nulls(nulls).build().unwrap();
    make_array(data)
}

fn timestamps(values: &[i64]) -> Vec<Column> {
    use PrimitiveType as T;
    // For coarse units, only values that fit microseconds; another test has the others.
    let coarse = |unit: i64| values.iter().map(move |value| value / unit).collect::<Vec<_>>();
    let zoned = |ty: T, array: ArrayRef, with_zone: ArrayRef| {
        let zoned = if ty == T::Timestamp { T::Timestamptz } else { T::TimestamptzNs };
        [Column { ty, array }, Column { ty: zoned, array: with_zone }]
    };
    macro_rules! of {
        ($array:ident, $ty:expr, $values:expr) => {{
            let array = $array::from($values);
            zoned($ty, Arc::new(array.clone()), Arc::new(array.with_timezone("UTC")))
        }};
    }
    [
        of!(TimestampSecondArray, T::Timestamp, coarse(1_000_000)),
        of!(TimestampMillisecondArray, T::Timestamp, coarse(1_000)),
        of!(TimestampMicrosecondArray, T::Timestamp, values.to_vec()),
        of!(TimestampNanosecondArray, T::TimestampNs, values.to_vec()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn number_columns(values: &[i64]) -> Vec<Column> {
    use PrimitiveType as T;
    let column = |ty: T, array: ArrayRef| Column { ty, array };
    let of_day = || values.iter().map(|value| value.rem_euclid(86_400_000_000));
    let mut columns = timestamps(values);
    columns.extend([
        column(T::Int, Arc::new(Int8Array::from_iter_values(values.iter().map(|v| *v as i8)))),
        column(T::Int, Arc::new(Int16Array::from_iter_values(values.iter().map(|v| *v as i16)))),
        column(T::Int, Arc::new(UInt8Array::from_iter_values(values.iter().map(|v| *v as u8)))),
        column(T::Int, Arc::new(UInt16Array::from_iter_values(values.iter().map(|v| *v as u16)))),
        column(T::Long, Arc::new(UInt32Array::from_iter_values(values.iter().map(|v| *v as u32)))),
        column(T::Int, Arc::new(Int32Array::from_iter_values(values.iter().map(|v| *v as i32)))),
        column(T::Date, Arc::new(Date32Array::from_iter_values(values.iter().map(|v| *v as i32)))),
        column(T::Long, Arc::new(Int64Array::from_iter_values(values.iter().copied()))),
        column(T::Time, Arc::new(Time64MicrosecondArray::from_iter_values(of_day()))),
        column(T::Time, Arc::new(Time64NanosecondArray::from_iter_values(of_day().map(|v| v * 1000)))),
        column(T::Time, Arc::new(Time32SecondArray::from_iter_values(of_day().map(|v| (v / 1_000_000) as i32)))),
        column(T::Time, Arc::new(Time32MillisecondArray::from_iter_values(of_day().map(|v| (v / 1000) as i32)))),
    ]);
    let decimal = |precision| T::Decimal { precision, scale: 2 };
    let (short, long) = (Decimal32Array::from_iter_values, Decimal64Array::from_iter_values);
    columns.extend([
        column(decimal(9), Arc::new(short(values.iter().map(|v| (v % 1_000_000_000) as i32)))),
        column(decimal(18), Arc::new(long(values.iter().map(|v| v % 1_000_000_000_000_000_000)))),
        column(decimal(38), Arc::new(Decimal128Array::from_iter_values(values.iter().map(|v| i128::from(*v))))),
    ]);
    columns
}

fn byte_columns(values: &[String]) -> Vec<Column> {
    use PrimitiveType as T;
    let column = |ty: T, array: ArrayRef| Column { ty, array };
    let mut views = StringViewBuilder::new().with_fixed_block_size(64);
    let mut binary_views = BinaryViewBuilder::new().with_fixed_block_size(64);
    for value in values {
        views.append_value(value);
        binary_views.append_value(value);
    }
    let dictionary: DictionaryArray<Int16Type> = values.iter().map(|value| value.as_str()).collect();
    let reversed = |width: usize| {
        let padded = values
            .iter()
            .flat_map(|value| value.bytes().chain(std::iter::repeat(0xfe)).take(width).collect::<Vec<_>>());
        let array = FixedSizeBinaryArray::new(width as i32, padded.collect::<Vec<_>>().into(), None);
        Arc::new(array)
    };
    vec![
        column(T::String, Arc::new(StringArray::from_iter_values(values))),
        column(T::String, Arc::new(LargeStringArray::from_iter_values(values))),
        column(T::String, Arc::new(views.finish())),
        column(T::Binary, Arc::new(BinaryArray::from_iter_values(values))),
        column(T::Binary, Arc::new(LargeBinaryArray::from_iter_values(values))),
        column(T::Binary, Arc::new(binary_views.finish())),
        column(T::String, Arc::new(dictionary)),
        column(T::Uuid, reversed(16)),
        column(T::Fixed(1), reversed(1)),
        column(T::Fixed(7), reversed(7)),
        column(T::Fixed(32), reversed(32)),
    ]
}

fn check_all(columns: Vec<Column>, nulls: Option<&NullBuffer>, skip: usize) {
    for mut column in columns {
        // In a dictionary, the keys have the nulls; any other array has them itself.
        column.array = with_nulls(&column.array, nulls.cloned());
        let skip = skip.min(column.array.len());
        let sliced = Column { array: column.array.slice(skip, column.array.len() - skip), ..column.clone() };
        for transform in transforms() {
            check(&transform, &column);
            check(&transform, &sliced);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn numbers_times_and_decimals(
        (values, nulls) in prop::collection::vec(long(), 0..24).prop_flat_map(|v| (Just(v.clone()), nulls(v.len()))),
        skip in 0usize..9,
    ) {
        check_all(number_columns(&values), nulls.as_ref(), skip);
    }

    #[test]
    fn wide_decimals(
        (values, nulls) in prop::collection::vec(wide(), 1..24).prop_flat_map(|v| (Just(v.clone()), nulls(v.len()))),
        skip in 0usize..9,
    ) {
        let array = Decimal128Array::from_iter_values(values).with_precision_and_scale(38, 2).unwrap();
        let ty = PrimitiveType::Decimal { precision: 38, scale: 2 };
        check_all(vec![Column { ty, array: Arc::new(array) }], nulls.as_ref(), skip);
    }

    #[test]
    fn texts_and_bytes(
        (values, nulls) in prop::collection::vec(text(), 0..24).prop_flat_map(|v| (Just(v.clone()), nulls(v.len()))),
        skip in 0usize..9,
    ) {
        check_all(byte_columns(&values), nulls.as_ref(), skip);
    }

    #[test]
    fn the_hash_is_murmur3(bytes: Vec<u8>) {
        let expected = murmur3::murmur3_32(&mut bytes.as_slice(), 0).unwrap();
        prop_assert_eq!(icefield_format::transform::murmur3_32(&bytes), expected);
    }
}

#[test]
fn longer_than_a_block() {
    let values: Vec<i64> = (0..5000).map(|i| (i * 7_919_999_983) ^ (i << 40)).collect();
    let texts: Vec<String> = values.iter().map(|value| format!("{value:x}é")).collect();
    let longs = Column { ty: PrimitiveType::Timestamp, array: Arc::new(TimestampMicrosecondArray::from(values)) };
    let texts = Column { ty: PrimitiveType::String, array: Arc::new(StringArray::from(texts)) };
    for transform in transforms() {
        check(&transform, &longs);
        check(&transform, &texts);
    }
}

/// Blocks in which no value is shorter than its head, with and without a multi-byte code point in or after a head.
#[test]
fn heads_of_one_length() {
    for width in 1..=17 {
        for odd in [None, Some(width - 1), Some(width), Some(0)] {
            let texts = (0..3000usize).map(|row| {
                let length = width + row % 3;
                let text = (0..length).map(|place| if row == 1500 && Some(place) == odd { 'é' } else { 'a' });
                text.collect::<String>()
            });
            let texts: Vec<String> = texts.collect();
            let transform = Transform::Truncate(width as u32);
            for rows in [0..3000, 7..2990, 1400..1600] {
                let some = &texts[rows];
                let ty = PrimitiveType::String;
                check(&transform, &Column { ty, array: Arc::new(StringArray::from_iter_values(some)) });
                let ty = PrimitiveType::Binary;
                check(&transform, &Column { ty, array: Arc::new(LargeBinaryArray::from_iter_values(some)) });
            }
        }
    }
}

#[test]
fn results_keep_the_types_of_the_specification() {
    let instants: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None]).with_timezone("UTC"));
    let decimals: ArrayRef = Arc::new(Decimal128Array::from(vec![-5]).with_precision_and_scale(20, 3).unwrap());
    for (transform, array, expected) in [
        (Transform::Day, &instants, DataType::Date32),
        (Transform::Hour, &instants, DataType::Int32),
        (Transform::Bucket(4), &instants, DataType::Int32),
        (Transform::Void, &instants, instants.data_type().clone()),
        (Transform::Identity, &instants, instants.data_type().clone()),
        (Transform::Truncate(4), &decimals, decimals.data_type().clone()),
    ] {
        let result = transform.kernel(array).unwrap();
        assert_eq!(*result.data_type(), expected, "{transform}");
        assert_eq!(result.null_count(), if transform.is_void() { 2 } else { array.null_count() }, "{transform}");
    }
}

#[test]
fn results_that_do_not_fit_are_refused_but_not_under_a_null() {
    let far = TimestampMicrosecondArray::from(vec![0, i64::MAX]);
    let hidden = NullBuffer::from(vec![true, false]);
    let far_second = TimestampSecondArray::from(vec![0, i64::MAX]);
    let cases: [(Transform, ArrayRef); 5] = [
        (Transform::Hour, Arc::new(far)),
        (Transform::Hour, Arc::new(far_second.clone())),
        (Transform::Day, Arc::new(far_second.clone())),
        (Transform::Year, Arc::new(far_second.clone())),
        (Transform::Bucket(3), Arc::new(far_second)),
    ];
    for (transform, array) in cases {
        assert!(transform.kernel(&array).is_err(), "{transform}");
        let result = transform.kernel(&with_nulls(&array, Some(hidden.clone()))).unwrap();
        assert_eq!((result.is_valid(0), result.is_null(1)), (true, true), "{transform}");
    }
}

#[test]
fn dictionaries_may_repeat_and_hold_nulls() {
    let values = StringArray::from(vec![Some("iceberg"), None, Some("icefield"), Some("unused")]);
    let keys = Int8Array::from(vec![Some(2), Some(0), None, Some(1), Some(2)]);
    let array: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
    let plain: ArrayRef =
        Arc::new(StringArray::from(vec![Some("icefield"), Some("iceberg"), None, None, Some("icefield")]));
    let bucket = Transform::Bucket(100);
    assert_eq!(&bucket.kernel(&array).unwrap(), &bucket.kernel(&plain).unwrap());
    let cut = Transform::Truncate(4).kernel(&array).unwrap();
    let cut = cut.as_dictionary::<Int8Type>().downcast_dict::<StringArray>().unwrap();
    let texts: Vec<_> = cut.into_iter().map(|text| text.map(str::to_owned)).collect();
    assert_eq!(texts, [Some("icef".into()), Some("iceb".into()), None, None, Some("icef".into())]);
}

#[test]
fn unknown_transforms_and_other_types_are_refused() {
    let booleans: ArrayRef = Arc::new(BooleanArray::from(vec![true]));
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let nested: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)])]));
    for array in [&booleans, &floats, &nested] {
        for transform in transforms().into_iter().filter(|transform| !transform.is_identity()) {
            assert!(transform.kernel(array).is_err(), "{transform} took {}", array.data_type());
        }
    }
    assert!(Transform::Identity.kernel(&nested).is_err());
    assert!(Transform::Unknown("zorder[2]".into()).kernel(&floats).is_err());
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    assert!(Transform::Bucket(0).kernel(&longs).is_err() && Transform::Truncate(u32::MAX).kernel(&longs).is_err());
}
