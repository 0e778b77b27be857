//! Reads a stored type as a wider one ("Schema Evolution"), or as another layout of the same values.

use std::sync::Arc;

use arrow_array::types::{Date32Type, Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{ArrayRef, Decimal128Array, cast::AsArray, make_array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, TimeUnit};
use icefield_format::avro::decimal::unscaled;

use crate::error::{Error, Result};
use crate::file::parquet::decimals;

/// Microseconds per day.
const DAY: i64 = 86_400_000_000;

/// How values are converted to the wanted Arrow type.
#[derive(Debug, Clone, PartialEq)]
pub enum Promotion {
    /// Arrow's own cast, which cannot fail for legal data.
    Cast(DataType),
    /// `date` to `timestamp` and `timestamp_ns` (v3): midnight of the day.
    DateToTimestamp(DataType),
    /// Nanoseconds stored for a microsecond column, as in INT96 and ORC: rounded down. Arrow's cast rounds toward
    /// zero, which is wrong before 1970.
    NanosToMicros(DataType),
    /// Timestamps with a zone flag that differs from the table's. The numbers are the wall clock in UTC either way,
    /// as in the Java library.
    OtherZone(DataType),
    /// Plain numbers without a unit, which take the unit of the table's type.
    Counted(DataType),
    /// Big-endian bytes of decimals, which may be longer than necessary.
    DecimalBytes(DataType),
    /// A column of Arrow type null, which holds no values and fits any type.
    Nulls(DataType),
}

/// The conversion of a file's column to a wanted Arrow type. ORC has no type for some of Iceberg's types and uses
/// attributes ("Appendix A: ORC").
pub fn of_field(field: &Field, wanted: &DataType) -> Option<Promotion> {
    let is = |key: &str, value: &str| field.metadata().get(key).is_some_and(|found| found == value);
    if let Some((_, scale)) = decimals::declared(field) {
        let is_same = matches!(wanted, DataType::Decimal128(_, wanted) if *wanted == scale);
        return is_same.then(|| Promotion::DecimalBytes(wanted.clone()));
    }
    match (field.data_type(), wanted) {
        (DataType::Binary, DataType::FixedSizeBinary(_))
            if is("iceberg.binary-type", "UUID") || is("iceberg.binary-type", "FIXED") =>
        {
            Some(Promotion::Cast(wanted.clone()))
        }
        (stored, wanted) => rule(stored, wanted),
    }
}

/// The conversion of a stored Arrow type to a wanted one; `None` if it cannot be read as that.
pub fn rule(stored: &DataType, wanted: &DataType) -> Option<Promotion> {
    use DataType::{
        Binary, BinaryView, Boolean, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, Dictionary,
        FixedSizeBinary, Float16, Float32, Float64, Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8, Null, Time32,
        Time64, Timestamp, UInt8, UInt16, UInt32, Utf8, Utf8View,
    };
    let cast = || Some(Promotion::Cast(wanted.clone()));
    match (stored, wanted) {
        (Null, _) => Some(Promotion::Nulls(wanted.clone())),
        (Dictionary(_, values), _) if values.as_ref() == wanted => cast(),
        (Int8 | Int16 | UInt8 | UInt16, Int32 | Int64)
        | (Int32 | UInt32, Int64)
        | (Float16, Float32 | Float64)
        | (Float32, Float64)
        | (Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView, Utf8 | LargeUtf8 | Utf8View)
        | (
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) | Utf8 | LargeUtf8 | Utf8View,
            Binary | LargeBinary | BinaryView,
        )
        | (Boolean, Boolean)
        | (Date64, Date32)
        | (Time32(_), Time64(_)) => cast(),
        (Time64(_), Time64(TimeUnit::Microsecond)) => cast(),
        // A type with more digits than the table's: each value that fits is read.
        (
            Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale),
            Decimal128(_, wanted_scale),
        ) if scale == wanted_scale => cast(),
        // A file may use another unit than the table (milliseconds, INT96): the values are the same instants.
        (Timestamp(unit, zone), Timestamp(wanted_unit, wanted_zone)) => match (unit, wanted_unit) {
            (TimeUnit::Nanosecond, TimeUnit::Microsecond) => Some(Promotion::NanosToMicros(wanted.clone())),
            _ if zone.is_some() != wanted_zone.is_some() => Some(Promotion::OtherZone(wanted.clone())),
            _ => cast(),
        },
        (Int64, Timestamp(..) | Time64(TimeUnit::Microsecond)) | (Int32, Date32) => {
            Some(Promotion::Counted(wanted.clone()))
        }
        (Date32, Timestamp(_, None)) => Some(Promotion::DateToTimestamp(wanted.clone())),
        _ => None,
    }
}

impl Promotion {
    /// Converts an array to the wanted type.
    pub fn apply(&self, array: &ArrayRef, path: &str) -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let cast = |wanted: &DataType| {
            cast_with_options(array, wanted, &strict).map_err(|error| Error::corrupt_file(path, error))
        };
        match self {
            Self::Cast(wanted) => cast(wanted),
            Self::NanosToMicros(wanted) => {
                let nanos = array.as_primitive::<TimestampNanosecondType>();
                let micros = nanos.unary::<_, TimestampMicrosecondType>(|nanos| nanos.div_euclid(1000));
                Ok(Arc::new(micros.with_data_type(wanted.clone())))
            }
            Self::OtherZone(wanted) => {
                let (DataType::Timestamp(unit, _), DataType::Timestamp(_, zone)) = (array.data_type(), wanted) else {
                    return cast(wanted);
                };
                let moved = relabelled(array, DataType::Timestamp(*unit, zone.clone()), path)?;
                cast_with_options(&moved, wanted, &strict).map_err(|error| Error::corrupt_file(path, error))
            }
            Self::Counted(wanted) => {
                let counted = relabelled(array, wanted.clone(), path)?;
                let times = counted.as_primitive_opt::<Time64MicrosecondType>();
                if let Some(other) =
                    times.into_iter().flat_map(|times| times.iter().flatten()).find(|micros| !(0..DAY).contains(micros))
                {
                    return Err(Error::corrupt_file(path, format!("{other} microseconds are no time of a day")));
                }
                Ok(counted)
            }
            Self::DecimalBytes(wanted) => {
                from_bytes(array, wanted).map_err(|message| Error::corrupt_file(path, message))
            }
            Self::Nulls(wanted) => Ok(arrow_array::new_null_array(wanted, array.len())),
            Self::DateToTimestamp(wanted) => {
                // A day outside the timestamp's range is corrupt; Arrow's cast would wrap.
                let limit =
                    if *wanted == DataType::Timestamp(TimeUnit::Nanosecond, None) { 106_751 } else { 106_751_991 };
                let days = array.as_primitive::<Date32Type>();
                if days.iter().flatten().any(|day| i64::from(day).abs() > limit) {
                    return Err(Error::corrupt_file(path, format!("a date does not fit {wanted}")));
                }
                cast(wanted)
            }
        }
    }
}

/// The same numbers under another type of the same width.
fn relabelled(array: &ArrayRef, ty: DataType, path: &str) -> Result<ArrayRef> {
    let data = array.to_data().into_builder().data_type(ty).build();
    data.map(make_array).map_err(|error| Error::corrupt_file(path, error))
}

/// Decimals from their bytes.
fn from_bytes(array: &ArrayRef, wanted: &DataType) -> std::result::Result<ArrayRef, String> {
    let number = |bytes: &[u8]| match (unscaled(bytes), bytes) {
        (Ok(number), _) => Ok(number),
        // An empty byte string is 0, as in other readers.
        (Err(_), []) => Ok(0),
        (Err(_), bytes) => {
            Err(format!("a decimal of {} bytes has more than the 38 digits that can be read", bytes.len()))
        }
    };
    let found: std::result::Result<Decimal128Array, String> = if let Some(array) = array.as_binary_opt::<i32>() {
        array.iter().map(|bytes| bytes.map(number).transpose()).collect()
    } else if let Some(array) = array.as_fixed_size_binary_opt() {
        array.iter().map(|bytes| bytes.map(number).transpose()).collect()
    } else {
        Err(format!("decimals come as {}", array.data_type()))
    };
    Ok(Arc::new(found?.with_data_type(wanted.clone())))
}
