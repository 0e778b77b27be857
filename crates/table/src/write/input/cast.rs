//! Casts column values to what a data file stores: which Arrow types fit an Iceberg type, and how they are converted.
//!
//! Nothing is lost silently: a value that does not fit is an error with its position.

use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowTimestampType, Date64Type, Decimal128Type, Int8Type, Int64Type, Time64MicrosecondType, Time64NanosecondType,
    TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, PrimitiveArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_buffer::BooleanBuffer;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, TimeUnit};

use icefield_format::types::PrimitiveType;
use icefield_format::types::arrow::named;

use super::fault::Misfit;
use super::text;

const DAY_MS: i64 = 86_400_000;
const DAY_MICROS: i64 = DAY_MS * 1000;

/// How an array is converted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cast {
    /// No conversion.
    Keep,
    /// A decimal whose values must be checked against its precision.
    CheckPrecision(u8),
    /// Strings that must be valid UTF-8.
    CheckText,
    /// Microseconds that must be within a day.
    CheckTime,
    /// Arrow's cast, which fails at the first value that does not fit.
    Arrow(DataType),
    /// Nanoseconds to microseconds, if exact.
    WholeMicros(DataType),
    /// Milliseconds of a `date64` to days, if exact.
    WholeDays,
    /// Binary values, or UUID strings, to a fixed length.
    Fixed(i32),
    /// Bytes of `arrow.bool8` to booleans.
    Truth,
}

/// The stored type of a column of type `ty` given as `source`, and the conversion; an error says how to fix it.
pub(super) fn rule(ty: &PrimitiveType, source: &DataType) -> Result<(DataType, Cast), &'static str> {
    if let DataType::Dictionary(_, values) = source {
        let texts = matches!(ty, PrimitiveType::String) && is_text(values);
        return match texts {
            true => Ok((source.clone(), Cast::CheckText)),
            false => {
                let (target, cast) = rule(ty, values)?;
                // Arrow's cast decodes the dictionary, and its result is checked; the other conversions need the
                // value type.
                if matches!(cast, Cast::Keep | Cast::Arrow(_) | Cast::CheckPrecision(..) | Cast::CheckTime) {
                    Ok((target.clone(), Cast::Arrow(target)))
                } else {
                    Err("decode the dictionary first")
                }
            }
        };
    }
    let arrow = |target: DataType| {
        Ok(if *source == target { (target, Cast::Keep) } else { (target.clone(), Cast::Arrow(target)) })
    };
    match ty {
        PrimitiveType::Boolean if *source == DataType::Boolean => arrow(DataType::Boolean),
        PrimitiveType::Int if source.is_integer() => arrow(DataType::Int32),
        PrimitiveType::Long if source.is_integer() => arrow(DataType::Int64),
        PrimitiveType::Float if matches!(source, DataType::Float16 | DataType::Float32) => arrow(DataType::Float32),
        PrimitiveType::Float if *source == DataType::Float64 => Err("cast it to float32 first: that loses digits"),
        PrimitiveType::Double if source.is_floating() => arrow(DataType::Float64),
        PrimitiveType::Decimal { precision, scale } => decimal(*precision, *scale, source),
        PrimitiveType::Date if *source == DataType::Date64 => Ok((DataType::Date32, Cast::WholeDays)),
        PrimitiveType::Date if *source == DataType::Date32 => arrow(DataType::Date32),
        PrimitiveType::Time => time(source),
        PrimitiveType::Timestamp => timestamp(source, TimeUnit::Microsecond, false),
        PrimitiveType::Timestamptz => timestamp(source, TimeUnit::Microsecond, true),
        PrimitiveType::TimestampNs => timestamp(source, TimeUnit::Nanosecond, false),
        PrimitiveType::TimestamptzNs => timestamp(source, TimeUnit::Nanosecond, true),
        PrimitiveType::String if is_text(source) => Ok((source.clone(), Cast::CheckText)),
        PrimitiveType::Uuid if is_text(source) || is_bytes(source) => fixed(16, source),
        PrimitiveType::Fixed(length) if is_bytes(source) => {
            fixed(i32::try_from(*length).map_err(|_| "it is longer than Arrow allows")?, source)
        }
        PrimitiveType::Binary | PrimitiveType::Geometry { .. } | PrimitiveType::Geography { .. }
            if is_bytes(source) =>
        {
            match source {
                DataType::FixedSizeBinary(_) => arrow(DataType::Binary),
                _ => Ok((source.clone(), Cast::Keep)),
            }
        }
        _ => Err("cast it first, or change the type of the table's column"),
    }
}

fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(ty: &DataType) -> bool {
    matches!(ty, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

fn fixed(length: i32, source: &DataType) -> Result<(DataType, Cast), &'static str> {
    let target = DataType::FixedSizeBinary(length);
    match source {
        DataType::FixedSizeBinary(given) if *given == length => Ok((target, Cast::Keep)),
        DataType::FixedSizeBinary(_) => Err("its values have another length"),
        _ => Ok((target, Cast::Fixed(length))),
    }
}

fn decimal(precision: u8, scale: u8, source: &DataType) -> Result<(DataType, Cast), &'static str> {
    let scale = i8::try_from(scale).map_err(|_| "its scale is too large")?;
    let target = DataType::Decimal128(precision, scale);
    match source {
        DataType::Decimal128(..) if *source == target => Ok((target, Cast::CheckPrecision(precision))),
        DataType::Decimal32(_, given)
        | DataType::Decimal64(_, given)
        | DataType::Decimal128(_, given)
        | DataType::Decimal256(_, given) => match *given <= scale {
            true => Ok((target.clone(), Cast::Arrow(target))),
            false => Err("round it to the scale of the table's column first"),
        },
        _ => Err("cast it to a decimal of the table's precision and scale first"),
    }
}

fn time(source: &DataType) -> Result<(DataType, Cast), &'static str> {
    let target = DataType::Time64(TimeUnit::Microsecond);
    match source {
        DataType::Time64(TimeUnit::Microsecond) => Ok((target, Cast::CheckTime)),
        DataType::Time64(_) => Ok((target.clone(), Cast::WholeMicros(target))),
        DataType::Time32(_) => Ok((target.clone(), Cast::Arrow(target))),
        _ => Err("cast it to a time of microseconds first"),
    }
}

/// Instants and local times are never converted to each other: the user must choose the zone.
fn timestamp(source: &DataType, unit: TimeUnit, zoned: bool) -> Result<(DataType, Cast), &'static str> {
    let target = DataType::Timestamp(unit, zoned.then(|| "UTC".into()));
    match source {
        DataType::Timestamp(_, zone) if zone.is_some() != zoned => Err(match zoned {
            true => "it has no time zone: give it one first (an instant is needed)",
            false => "it has a time zone: convert it to local time first",
        }),
        DataType::Timestamp(TimeUnit::Nanosecond, _) if unit == TimeUnit::Microsecond => {
            Ok((target.clone(), Cast::WholeMicros(target)))
        }
        _ if *source == target => Ok((target, Cast::Keep)),
        DataType::Timestamp(..) => Ok((target.clone(), Cast::Arrow(target))),
        _ => Err("cast it to a timestamp first"),
    }
}

impl Cast {
    /// Converts an array for a column of type `ty`. The error names the value that does not fit.
    pub(super) fn apply(&self, array: &ArrayRef, ty: &PrimitiveType) -> Result<ArrayRef, Misfit> {
        match self {
            Self::Keep => Ok(array.clone()),
            Self::CheckPrecision(precision) => {
                check_precision(array, *precision, ty)?;
                Ok(array.clone())
            }
            Self::CheckText => text::checked(array),
            Self::CheckTime => {
                check_time(array)?;
                Ok(array.clone())
            }
            Self::Arrow(target) => {
                let strict = CastOptions { safe: false, ..CastOptions::default() };
                let made = match (cast_with_options(array, target, &strict), array.data_type()) {
                    // The value that does not fit may be unused by all rows.
                    (Err(_), DataType::Dictionary(_, values)) => {
                        let plain = cast_with_options(array, values, &strict).map_err(|error| shown(&error))?;
                        return self.apply(&plain, ty);
                    }
                    (made, _) => made,
                };
                let made =
                    made.map_err(|error| first_misfit(array, target, ty).unwrap_or_else(|| shown(&error).into()))?;
                match target {
                    DataType::Decimal128(precision, _) => check_precision(&made, *precision, ty)?,
                    DataType::Time64(_) => check_time(&made)?,
                    _ => {}
                }
                Ok(made)
            }
            Self::WholeMicros(target) => {
                let made = whole_micros(array, target)?;
                check_time(&made)?;
                Ok(made)
            }
            Self::WholeDays => whole_days(array, ty),
            Self::Fixed(length) => to_fixed(array, *length),
            Self::Truth => Ok(truth(array)?),
        }
    }
}

/// Describes a value that the table's type cannot hold.
fn misfit(array: &ArrayRef, row: usize, ty: &PrimitiveType) -> Misfit {
    let value = text_of(array, row);
    let what =
        format!("is {value}, which does not fit: the table's type is {ty}, the data's {}", named(array.data_type()));
    Misfit::Row(row, what)
}

/// A value as text; a date or time outside the calendar as its stored number.
fn text_of(array: &ArrayRef, row: usize) -> String {
    let strict = FormatOptions::new().with_display_error(false);
    let shown = ArrayFormatter::try_new(array, &strict).and_then(|formatter| formatter.value(row).try_to_string());
    shown.unwrap_or_else(|_| {
        let number = cast_with_options(&array.slice(row, 1), &DataType::Int64, &CastOptions::default());
        let number = number.ok().and_then(|number| Some(number.as_primitive_opt::<Int64Type>()?.value(0)));
        match (number, array.data_type()) {
            (Some(number), DataType::Timestamp(unit, _)) => format!("{number} ({unit:?}s from 1970)").to_lowercase(),
            (Some(number), DataType::Date64) => format!("{number} (milliseconds from 1970)"),
            (Some(number), _) => number.to_string(),
            (None, ty) => format!("a value of {ty} that cannot be shown"),
        }
    })
}

/// The first value that Arrow's cast turns into null: its own errors name the value, but not the row and the column.
fn first_misfit(array: &ArrayRef, target: &DataType, ty: &PrimitiveType) -> Option<Misfit> {
    let made = cast_with_options(array, target, &CastOptions { safe: true, ..CastOptions::default() }).ok()?;
    let (before, after) = (array.logical_nulls(), made.logical_nulls()?);
    let lost = |row: &usize| after.is_null(*row) && before.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
    (0..array.len()).find(lost).map(|row| misfit(array, row, ty))
}

/// The booleans of `arrow.bool8`: everything except 0 is true.
fn truth(array: &ArrayRef) -> Result<ArrayRef, String> {
    let bytes = array.as_primitive_opt::<Int8Type>().ok_or_else(|| format!("{} is no int8", array.data_type()))?;
    let values = BooleanBuffer::collect_bool(bytes.len(), |row| bytes.values().get(row).is_some_and(|byte| *byte != 0));
    Ok(Arc::new(BooleanArray::new(values, bytes.nulls().cloned())))
}

fn shown(error: &ArrowError) -> String {
    match error {
        ArrowError::CastError(message) | ArrowError::InvalidArgumentError(message) => message.clone(),
        other => other.to_string(),
    }
}

fn check_precision(array: &ArrayRef, precision: u8, ty: &PrimitiveType) -> Result<(), Misfit> {
    let Some(decimals) = array.as_primitive_opt::<Decimal128Type>() else { return Ok(()) };
    if decimals.validate_decimal_precision(precision).is_ok() {
        return Ok(());
    }
    let end = 10u128.checked_pow(precision.into()).unwrap_or(u128::MAX);
    let wide = decimals.iter().position(|value| value.is_some_and(|value| value.unsigned_abs() >= end));
    wide.map_or(Ok(()), |row| Err(misfit(array, row, ty)))
}

/// Arrow does not check times, and no reader accepts a time outside a day.
fn check_time(array: &ArrayRef) -> Result<(), Misfit> {
    let Some(times) = array.as_primitive_opt::<Time64MicrosecondType>() else { return Ok(()) };
    let day = 0..DAY_MICROS;
    // A branch-free check first; only if it fails, look for the value, which may be under a null.
    if times.values().iter().fold(true, |inside, time| inside & day.contains(time)) {
        return Ok(());
    }
    match times.iter().position(|time| time.is_some_and(|time| !day.contains(&time))) {
        Some(row) => {
            let what = format!("is {} microseconds from midnight, which is no time of day", times.value(row));
            Err(Misfit::Row(row, what))
        }
        None => Ok(()),
    }
}

/// Exact division of all values; the error names the first one with a remainder.
fn divided(values: &[i64], valid: Option<&arrow_buffer::NullBuffer>, by: i64, what: &str) -> Result<Vec<i64>, Misfit> {
    let mut out = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        if value.rem_euclid(by) != 0 && valid.is_none_or(|valid| valid.is_valid(row)) {
            return Err(Misfit::Row(row, format!("has {what}")));
        }
        out.push(value.div_euclid(by));
    }
    Ok(out)
}

fn whole_micros(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, Misfit> {
    const WHAT: &str = "nanoseconds that microseconds cannot hold: round them first, or make the column a timestamp_ns";
    let nulls = array.nulls().cloned();
    if let Some(nanos) = array.as_primitive_opt::<Time64NanosecondType>() {
        let micros = divided(nanos.values(), array.nulls(), 1000, WHAT)?;
        return Ok(Arc::new(Time64MicrosecondArray::new(micros.into(), nulls)));
    }
    let nanos: &PrimitiveArray<TimestampNanosecondType> =
        array.as_primitive_opt().ok_or_else(|| format!("{} is no column of nanoseconds", array.data_type()))?;
    debug_assert_eq!(TimestampNanosecondType::UNIT, TimeUnit::Nanosecond);
    let micros = divided(nanos.values(), array.nulls(), 1000, WHAT)?;
    let zone = match target {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    Ok(Arc::new(TimestampMicrosecondArray::new(micros.into(), nulls).with_timezone_opt(zone)))
}

fn whole_days(array: &ArrayRef, ty: &PrimitiveType) -> Result<ArrayRef, Misfit> {
    let given = array.as_primitive_opt::<Date64Type>().ok_or_else(|| format!("{} is no date64", array.data_type()))?;
    let days = divided(given.values(), array.nulls(), DAY_MS, "a time of day, which a date cannot hold")?;
    let days: Result<Vec<i32>, Misfit> = days
        .into_iter()
        .enumerate()
        .map(|(row, day)| match i32::try_from(day) {
            Ok(day) => Ok(day),
            Err(_) if array.is_null(row) => Ok(0),
            Err(_) => Err(misfit(array, row, ty)),
        })
        .collect();
    let days = days?;
    Ok(Arc::new(Date32Array::new(days.into(), array.nulls().cloned())))
}

fn to_fixed(array: &ArrayRef, length: i32) -> Result<ArrayRef, Misfit> {
    let mut builder = FixedSizeBinaryBuilder::with_capacity(array.len(), length);
    let wrong = |row: usize, given: usize| Misfit::Row(row, format!("has {given} bytes, not {length}"));
    let mut append = |row: usize, value: Option<&[u8]>| match value {
        Some(bytes) => builder.append_value(bytes).map_err(|_| wrong(row, bytes.len())),
        None => {
            builder.append_null();
            Ok(())
        }
    };
    match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().enumerate().try_for_each(|(row, v)| append(row, v))?,
        DataType::LargeBinary => array.as_binary::<i64>().iter().enumerate().try_for_each(|(row, v)| append(row, v))?,
        DataType::BinaryView => array.as_binary_view().iter().enumerate().try_for_each(|(row, v)| append(row, v))?,
        _ => {
            text::check(array.as_ref())?;
            let texts = cast_with_options(array, &DataType::Utf8View, &CastOptions::default());
            let texts = texts.map_err(|error| shown(&error))?;
            for (row, text) in texts.as_string_view().iter().enumerate() {
                let uuid = text.map(uuid::Uuid::try_parse).transpose();
                let no_uuid = |_| Misfit::Row(row, format!("is {:?}, which is no UUID", text.unwrap_or_default()));
                let uuid = uuid.map_err(no_uuid)?;
                append(row, uuid.as_ref().map(|uuid| uuid.as_bytes().as_slice()))?;
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Date64Array, Decimal128Array, Int64Array, StringArray, TimestampNanosecondArray, UInt64Array};

    use super::*;

    fn run(ty: &PrimitiveType, array: impl Array + 'static) -> Result<ArrayRef, String> {
        let array: ArrayRef = Arc::new(array);
        let (target, cast) = rule(ty, array.data_type()).map_err(str::to_owned)?;
        let made = cast.apply(&array, ty).map_err(|misfit| match misfit {
            Misfit::Row(row, what) => format!("row {row} {what}"),
            Misfit::Other(message) => message,
        })?;
        assert_eq!(*made.data_type(), target);
        Ok(made)
    }

    #[test]
    fn fits_or_fails() {
        let long = PrimitiveType::Long;
        assert_eq!(run(&long, UInt64Array::from(vec![Some(7), None])).unwrap().null_count(), 1);
        assert!(run(&long, UInt64Array::from(vec![u64::MAX])).unwrap_err().contains("row 0 is 18446744073709551615"));
        assert_eq!(
            run(&PrimitiveType::Int, Int64Array::from(vec![None, Some(-7), Some(1 << 31)])).unwrap_err(),
            "row 2 is 2147483648, which does not fit: the table's type is int, the data's long"
        );
        let seconds = arrow_array::TimestampSecondArray::from(vec![0, i64::MAX]);
        assert!(run(&PrimitiveType::Timestamp, seconds).unwrap_err().starts_with("row 1 is "));
        assert!(run(&PrimitiveType::Int, Int64Array::from(vec![i64::from(i32::MIN)])).is_ok());
        let decimal = PrimitiveType::Decimal { precision: 4, scale: 2 };
        let given = |value| Decimal128Array::from(vec![value]).with_precision_and_scale(4, 2).unwrap();
        assert!(run(&decimal, given(9999)).is_ok());
        assert!(run(&decimal, given(10_000)).unwrap_err().starts_with("row 0 is 100.00, which does not fit: "));
        let wide = Decimal128Array::from(vec![1, 1000]).with_precision_and_scale(5, 1).unwrap();
        assert!(
            run(&decimal, wide)
                .unwrap_err()
                .contains("row 1 is 100.0, which does not fit: the table's type is decimal(4, 2)")
        );
        let finer = Decimal128Array::from(vec![1]).with_precision_and_scale(6, 3).unwrap();
        assert!(run(&decimal, finer).unwrap_err().contains("scale"));
    }

    #[test]
    fn times_keep_their_meaning() {
        let nanos = |values: Vec<i64>| TimestampNanosecondArray::from(values);
        let micros = run(&PrimitiveType::Timestamp, nanos(vec![-2000, 3000])).unwrap();
        assert_eq!(micros.as_primitive::<arrow_array::types::TimestampMicrosecondType>().values(), &[-2, 3]);
        assert!(run(&PrimitiveType::Timestamp, nanos(vec![1])).unwrap_err().contains("timestamp_ns"));
        assert!(run(&PrimitiveType::Timestamptz, nanos(vec![0])).unwrap_err().contains("time zone"));
        assert!(run(&PrimitiveType::Timestamp, nanos(vec![0]).with_timezone("Asia/Tokyo")).is_err());
        let tokyo = run(&PrimitiveType::TimestamptzNs, nanos(vec![5]).with_timezone("Asia/Tokyo")).unwrap();
        assert_eq!(*tokyo.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())));
        assert!(run(&PrimitiveType::Date, Date64Array::from(vec![DAY_MS])).is_ok());
        assert!(run(&PrimitiveType::Date, Date64Array::from(vec![DAY_MS + 1])).is_err());
        let far = vec![0, DAY_MS << 31];
        assert!(run(&PrimitiveType::Date, Date64Array::from(far.clone())).unwrap_err().starts_with("row 1 is "));
        let under_null = Date64Array::new(far.into(), Some(vec![true, false].into()));
        assert!(run(&PrimitiveType::Date, under_null).is_ok());
    }

    #[test]
    fn times_of_day_are_within_a_day() {
        let time = PrimitiveType::Time;
        let micros = |values: Vec<Option<i64>>| Time64MicrosecondArray::from(values);
        assert!(run(&time, micros(vec![Some(0), None, Some(DAY_MICROS - 1)])).is_ok());
        assert!(run(&time, micros(vec![Some(0), Some(-1)])).unwrap_err().contains("row 1 is -1 micro"));
        assert!(run(&time, micros(vec![Some(DAY_MICROS)])).is_err());
        assert!(run(&time, arrow_array::Time64NanosecondArray::from(vec![-1000])).is_err());
        assert!(run(&time, arrow_array::Time32SecondArray::from(vec![86_400])).is_err());
        let under_null = Time64MicrosecondArray::new(vec![-1, 5].into(), Some(vec![false, true].into()));
        assert!(run(&time, under_null).is_ok());
    }

    #[test]
    fn dictionaries_of_what_is_checked() {
        let of = |values: ArrayRef| {
            arrow_array::DictionaryArray::new(arrow_array::Int8Array::from(vec![Some(0), None, Some(0)]), values)
        };
        let decimal = PrimitiveType::Decimal { precision: 4, scale: 2 };
        let given = |value| Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(4, 2).unwrap());
        assert_eq!(run(&decimal, of(given(9999))).unwrap().null_count(), 1);
        assert!(run(&decimal, of(given(10_000))).is_err());
        let time = |value| Arc::new(Time64MicrosecondArray::from(vec![value]));
        assert_eq!(run(&PrimitiveType::Time, of(time(5))).unwrap().null_count(), 1);
        assert!(run(&PrimitiveType::Time, of(time(-5))).is_err());
    }

    #[test]
    fn uuids_from_text_and_bytes() {
        let text = "f79c3e09-677c-4bbd-a479-3f349cb785e7";
        let made = run(&PrimitiveType::Uuid, StringArray::from(vec![Some(text), None])).unwrap();
        assert_eq!(made.as_fixed_size_binary().value(0)[..2], [0xf7, 0x9c]);
        assert!(run(&PrimitiveType::Uuid, StringArray::from(vec!["x"])).unwrap_err().contains("no UUID"));
        let short = arrow_array::BinaryArray::from(vec![&b"abc"[..]]);
        assert!(run(&PrimitiveType::Fixed(4), short).unwrap_err().contains("3 bytes, not 4"));
    }
}
