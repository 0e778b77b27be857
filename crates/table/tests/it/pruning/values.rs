//! Values at the extremes of their types, their order and their bytes, implemented independently of the tested code.

use std::cmp::Ordering;

use icefield_format::transform::Transform;
use icefield_format::types::PrimitiveType;
use icefield_format::value::Value;

use PrimitiveType as P;

const DAY: i64 = 86_400_000_000;

/// The types of a column: when its first files were written, and today. Types with an unusual order or unusual extremes
/// are more frequent.
pub fn kinds() -> Vec<(P, P)> {
    let decimal = |precision| P::Decimal { precision, scale: 2 };
    let promoted = [
        (P::Int, P::Long),
        (P::Date, P::Timestamp),
        (P::Date, P::TimestampNs),
        (P::Float, P::Double),
        (decimal(9), decimal(18)),
    ];
    let often = [P::Int, P::Long, P::Uuid, P::Double];
    let seldom = [
        P::Float,
        P::Date,
        P::Timestamp,
        P::Timestamptz,
        P::TimestampNs,
        P::TimestamptzNs,
        P::Time,
        decimal(9),
        decimal(38),
        P::String,
        P::Binary,
        P::Fixed(2),
        P::Boolean,
    ];
    let same = often.iter().chain(&often).chain(&seldom).map(|ty| (ty.clone(), ty.clone()));
    same.chain(promoted.iter().cloned()).chain([(P::Int, P::Long)]).collect()
}

/// Values of a type, including the least and the greatest.
pub fn pool(ty: &P) -> Vec<Value> {
    let longs = |unit: i64| {
        let near = [0, 1, -1, 9, -8, unit, -unit, unit - 1, -unit - 1, 17_532 * unit + 5, i64::MAX, i64::MAX - 1];
        let least = [0, 1, 2, 3, 5, 8, 100].map(|above| i64::MIN + above);
        near.iter().chain(&least).map(|number| Value::Long(*number)).collect()
    };
    match ty {
        P::Boolean => [false, true].map(Value::Boolean).to_vec(),
        P::Int => {
            let near = [0, 1, -1, 7, -7, 10, 699, 700, i32::MAX, i32::MAX - 1, i32::MAX - 6];
            let least = [0, 1, 2, 3, 5, 8, 100].map(|above| i32::MIN + above);
            near.iter().chain(&least).map(|number| Value::Int(*number)).collect()
        }
        P::Date => [0, -1, 1, -365, -366, 364, 365, 17_532, 106_751, -106_751, i32::MIN, i32::MIN + 1, i32::MAX]
            .map(Value::Int)
            .to_vec(),
        P::Long => longs(1 << 31),
        P::Time => [0, 1, DAY - 1, DAY / 24, DAY / 24 - 1].map(Value::Long).to_vec(),
        P::Timestamp | P::Timestamptz => longs(DAY),
        P::TimestampNs | P::TimestamptzNs => longs(DAY * 1000),
        P::Float => {
            let near = [0.0, -0.0, 0.0, -0.0, 1.5, -1.5, f32::MIN_POSITIVE, f32::MIN, f32::MAX];
            let far = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
            near.iter().chain(&far).map(|number| Value::Float(*number)).collect()
        }
        P::Double => {
            let near = [0.0, -0.0, 0.0, -0.0, 1.5, -1.5, f64::MIN_POSITIVE, f64::MIN, f64::MAX];
            let far = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
            near.iter().chain(&far).map(|number| Value::Double(*number)).collect()
        }
        P::Decimal { precision, .. } => {
            let most = 10_i128.pow(u32::from(*precision)) - 1;
            [0, 1, -1, 9, -9, 10, -10, 1420, most, most - 1, -most, 1 - most, 8 - most].map(Value::Decimal).to_vec()
        }
        P::String => ["", "a", "ab", "abc", "abd", "b", "é", "éa", "😀", "😀a", "\u{ffff}z", "\u{10ffff}"]
            .map(|text| Value::String(text.to_owned()))
            .to_vec(),
        P::Uuid => {
            let halves = [0, 1, 5, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 63) + 5, u64::MAX];
            let joined =
                halves.iter().flat_map(|first| halves.map(|second| u128::from(*first) << 64 | u128::from(second)));
            joined.map(|uuid| Value::Uuid(uuid.to_be_bytes())).collect()
        }
        P::Fixed(_) => {
            [[0, 0], [0, 1], [0x7f, 0xff], [0x80, 0], [0xff, 0xff]].map(|b| Value::Binary(b.to_vec())).to_vec()
        }
        _ => [&[][..], &[0], &[0, 1], &[0x7f], &[0x80, 1], &[0xff], &[0xff, 0xff], &[0xff, 0xff, 1]]
            .map(|bytes| Value::Binary(bytes.to_vec()))
            .to_vec(),
    }
}

/// The next greater or smaller value, for types that have one; for a zero, with regard to its sign.
pub fn neighbour(value: &Value, up: bool) -> Value {
    match value {
        Value::Int(number) => Value::Int(if up { number.saturating_add(1) } else { number.saturating_sub(1) }),
        Value::Long(number) => Value::Long(if up { number.saturating_add(1) } else { number.saturating_sub(1) }),
        Value::Float(0.0) => Value::Float(if up { 0.0 } else { -0.0 }),
        Value::Double(0.0) => Value::Double(if up { 0.0 } else { -0.0 }),
        other => other.clone(),
    }
}

/// A value after the promotion of its column; `None` if it does not fit today's type.
pub fn promoted(value: &Value, to: &P) -> Option<Value> {
    Some(match (value, to) {
        (Value::Int(number), P::Long) => Value::Long(i64::from(*number)),
        (Value::Int(days), P::Timestamp) => Value::Long(i64::from(*days).checked_mul(DAY)?),
        (Value::Int(days), P::TimestampNs) => Value::Long(i64::from(*days).checked_mul(DAY * 1000)?),
        (Value::Float(number), P::Double) => Value::Double(f64::from(*number)),
        (other, _) => other.clone(),
    })
}

/// The transforms that can partition a column with both types.
pub fn transforms((written, today): &(P, P)) -> Vec<Transform> {
    use Transform as T;
    let all = [
        T::Identity,
        T::Truncate(1),
        T::Truncate(2),
        T::Truncate(7),
        T::Truncate(10),
        T::Truncate(1000),
        T::Bucket(4),
        T::Bucket(1),
        T::Year,
        T::Month,
        T::Day,
        T::Hour,
        T::Void,
    ];
    // The promotion would change the results of these transforms, so it is not allowed with them.
    let changes =
        |transform: &T| *written == P::Date && written != today && matches!(transform, T::Identity | T::Bucket(_));
    let takes = |transform: &T, ty: &P| transform.result_type(&ty.clone().into()).is_some();
    all.into_iter()
        .filter(|transform| takes(transform, written) && takes(transform, today) && !changes(transform))
        .collect()
}

/// The result of a transform; `None` also for values without a result.
pub fn apply(transform: &Transform, ty: &P, value: Option<&Value>) -> Option<Value> {
    let width = |width: u32| i128::from(width);
    match (transform, value?) {
        (Transform::Identity, value) => Some(value.clone()),
        // Results below the least number of the type wrap around.
        (Transform::Truncate(w), Value::Int(v)) => {
            let exact = i128::from(*v) - i128::from(*v).rem_euclid(width(*w));
            let wrapped = if exact < i128::from(i32::MIN) { exact + (1 << 32) } else { exact };
            Some(Value::Int(wrapped.try_into().unwrap()))
        }
        (Transform::Truncate(w), Value::Long(v)) => {
            let exact = i128::from(*v) - i128::from(*v).rem_euclid(width(*w));
            let wrapped = if exact < i128::from(i64::MIN) { exact + (1 << 64) } else { exact };
            Some(Value::Long(wrapped.try_into().unwrap()))
        }
        (Transform::Truncate(w), Value::Decimal(v)) => Some(Value::Decimal(v - v.rem_euclid(width(*w)))),
        (Transform::Truncate(w), Value::String(v)) => Some(Value::String(v.chars().take(*w as usize).collect())),
        (transform, value) => transform.apply(&ty.clone().into(), Some(value)).ok().flatten(),
    }
}

pub fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(number) if number.is_nan())
        || matches!(value, Value::Double(number) if number.is_nan())
}

/// The order of two values of one type that are not NaN: -0.0 before 0.0, bytes unsigned.
pub fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Long(a), Value::Long(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.chars().cmp(b.chars()),
        (Value::Uuid(a), Value::Uuid(b)) => a.cmp(b),
        (Value::Binary(a), Value::Binary(b)) => a.cmp(b),
        _ => panic!("{a:?} beside {b:?}"),
    }
}

/// The order of Java, which compares UUIDs as two signed numbers.
pub fn java_order(a: &Value, b: &Value) -> Ordering {
    let halves = |bytes: &[u8; 16]| {
        let half = |from: usize| i64::from_be_bytes(bytes[from..from + 8].try_into().unwrap());
        (half(0), half(8))
    };
    match (a, b) {
        (Value::Uuid(a), Value::Uuid(b)) => halves(a).cmp(&halves(b)),
        _ => order(a, b),
    }
}

/// The form of single values in manifests.
pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Boolean(value) => vec![u8::from(*value)],
        Value::Int(value) => value.to_le_bytes().to_vec(),
        Value::Long(value) => value.to_le_bytes().to_vec(),
        Value::Float(value) => value.to_le_bytes().to_vec(),
        Value::Double(value) => value.to_le_bytes().to_vec(),
        Value::Decimal(value) => {
            let mut bytes = value.to_be_bytes().to_vec();
            // A leading byte is redundant if the first bit of the next byte implies it.
            while bytes.len() > 1 && bytes[0] == if bytes[1] < 0x80 { 0 } else { 0xff } {
                bytes.remove(0);
            }
            bytes
        }
        Value::String(value) => value.as_bytes().to_vec(),
        Value::Uuid(value) => value.to_vec(),
        Value::Binary(value) => value.clone(),
        other => panic!("{other:?}"),
    }
}
