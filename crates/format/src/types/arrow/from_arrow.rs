//! Converts Arrow schemas to Iceberg. All layouts of a type become the same type; for a type without a counterpart, the
//! error names the column, the Arrow type and a remedy.

use arrow_schema::{DataType, Field as ArrowField, FieldRef, Fields, Schema as ArrowSchema, TimeUnit};

use super::to_arrow::{geo_of, join};
use super::{BOOL8, DOC_KEY, EXTENSION_METADATA_KEY, EXTENSION_NAME_KEY, extension, field_id, meaning_lost};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::types::ids::{next_id, with_ids};
use crate::types::{Field, ListType, MAX_DECIMAL_PRECISION, MapType, PrimitiveType, Schema, StructType, Type};

/// How to convert nanoseconds if the table has no such type: timestamps before version 3, times in every version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nanoseconds {
    /// Fail.
    #[default]
    Refuse,
    /// Truncate to microseconds.
    Truncate,
}

/// How to convert 64-bit unsigned integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnsignedLongs {
    /// To `long`; the writer checks the range.
    #[default]
    Long,
    /// To `decimal(20, 0)`, which can hold all of them.
    Decimal,
}

/// Options where an Arrow type can be converted in several ways.
#[derive(Debug, Clone, Copy)]
pub struct FromArrow {
    /// Format version of the table; some types need a later version.
    pub format_version: u8,
    /// How to convert nanoseconds.
    pub nanoseconds: Nanoseconds,
    /// How to convert 64-bit unsigned integers.
    pub unsigned_longs: UnsignedLongs,
}

impl FromArrow {
    /// The default options for a format version.
    pub fn for_version(format_version: u8) -> Self {
        Self { format_version, nanoseconds: Nanoseconds::default(), unsigned_longs: UnsignedLongs::default() }
    }

    /// Converts the type of an Arrow field; nested fields without an id get one above the highest.
    pub fn type_of(&self, field: &ArrowField) -> Result<Type> {
        let mut reader = FieldReader { options: *self, faults: Vec::new(), limits: Limits::default() };
        let ty = reader.data_type(field, field.name(), 0);
        let ty = reader.finish(ty)?.ok_or_else(|| Error::invalid("the Arrow field has no Iceberg type"))?;
        let mut last_id = ty.children().into_iter().map(highest_id).max().unwrap_or(0);
        ty.with_ids(&mut |field| given_or_next(field, &mut last_id))
    }
}

impl Schema {
    /// Converts an Arrow schema. Fields keep their ids; fields without an id get one above the highest. All columns
    /// without a counterpart are reported in one error.
    pub fn from_arrow(arrow: &ArrowSchema, options: &FromArrow) -> Result<Self> {
        let mut reader = FieldReader { options: *options, faults: Vec::new(), limits: Limits::default() };
        let fields = reader.fields(arrow.fields(), "", 0);
        let fields = reader.finish(fields)?;
        let mut last_id = fields.iter().map(highest_id).max().unwrap_or(0);
        let numbered = with_ids(fields.iter(), &mut |field| given_or_next(field, &mut last_id))?;
        Self::new(0, numbered)
    }
}

/// Placeholder until all existing ids are known; valid ids are not negative.
const NO_ID: i32 = -1;

/// Returns the highest id of a field and its nested fields; 0 if there are no ids.
fn highest_id(field: &Field) -> i32 {
    field.ty.children().into_iter().map(highest_id).fold(field.id.max(0), i32::max)
}

fn given_or_next(field: &Field, last_id: &mut i32) -> Result<i32> {
    if field.id == NO_ID { next_id(last_id) } else { Ok(field.id) }
}

struct FieldReader {
    options: FromArrow,
    limits: Limits,
    /// Problems with columns, one message each.
    faults: Vec<String>,
}

impl FieldReader {
    fn finish<T>(self, result: T) -> Result<T> {
        match self.faults.as_slice() {
            [] => Ok(result),
            [only] => Err(Error::invalid(only.as_str())),
            all => Err(Error::invalid(format!("{} columns have no Iceberg type:\n- {}", all.len(), all.join("\n- ")))),
        }
    }

    fn fields(&mut self, fields: &Fields, parent: &str, depth: usize) -> Vec<Field> {
        fields.iter().filter_map(|field| self.field(field, field.name(), parent, depth)).collect()
    }

    /// Converts a field; `name` may differ from Arrow's (`item` becomes `element`).
    fn field(&mut self, field: &ArrowField, name: &str, parent: &str, depth: usize) -> Option<Field> {
        let path = join(parent, name);
        let ty = self.data_type(field, &path, depth)?;
        let metadata = field.metadata();
        let id = field_id(field);
        let required = !field.is_nullable() && ty != Type::Primitive(PrimitiveType::Unknown);
        let doc = metadata.get(DOC_KEY).cloned();
        Some(Field { required, doc, ..Field::optional(id.unwrap_or(NO_ID), name, ty) })
    }

    fn data_type(&mut self, field: &ArrowField, path: &str, depth: usize) -> Option<Type> {
        if depth > self.limits.type_depth {
            return self.refuse(
                path,
                "nested types",
                &format!("at most {} levels are allowed", self.limits.type_depth),
            );
        }
        let metadata = |key| field.metadata().get(key).map(String::as_str);
        if let Some((name, lost)) = metadata(EXTENSION_NAME_KEY).and_then(|name| Some((name, meaning_lost(name)?))) {
            return self.refuse(path, name, lost);
        }
        match (metadata(EXTENSION_NAME_KEY), field.data_type()) {
            (Some(extension::UUID), DataType::FixedSizeBinary(16)) => Some(PrimitiveType::Uuid.into()),
            (Some(BOOL8), DataType::Int8) => Some(PrimitiveType::Boolean.into()),
            (Some(extension::VARIANT), DataType::Struct(_)) => self.since_3(Type::Variant, field.data_type(), path),
            (Some(extension::WKB), DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
                match geo_of(metadata(EXTENSION_METADATA_KEY)) {
                    Ok(ty) => self.since_3(ty.into(), field.data_type(), path),
                    Err(error) => self.refuse(path, extension::WKB, &error.to_string()),
                }
            }
            (_, ty) => self.plain(ty, path, depth),
        }
    }

    fn plain(&mut self, ty: &DataType, path: &str, depth: usize) -> Option<Type> {
        match ty {
            DataType::Struct(fields) => Some(StructType { fields: self.fields(fields, path, depth + 1) }.into()),
            DataType::List(element)
            | DataType::LargeList(element)
            | DataType::ListView(element)
            | DataType::LargeListView(element)
            | DataType::FixedSizeList(element, _) => {
                let element = self.field(element, "element", path, depth + 1)?;
                Some(ListType { element }.into())
            }
            DataType::Map(entries, _) => self.map(entries, path, depth),
            // Dictionary and run-end encoding do not affect the type.
            DataType::Dictionary(_, values) => self.data_type(&unnamed(values), path, depth + 1),
            DataType::RunEndEncoded(_, values) => self.data_type(values, path, depth + 1),
            other => self.primitive(other, path).map(Type::Primitive),
        }
    }

    fn map(&mut self, entries: &FieldRef, path: &str, depth: usize) -> Option<Type> {
        let DataType::Struct(pair) = entries.data_type() else {
            return self.refuse(path, "Map", "its entries are not a struct of key and value");
        };
        let [key, value] = &pair[..] else {
            return self.refuse(path, "Map", "its entries are not a struct of key and value");
        };
        let key = self.field(key, "key", path, depth + 1);
        let value = self.field(value, "value", path, depth + 1);
        let key = Field { required: true, ..key? };
        if key.ty == Type::Primitive(PrimitiveType::Unknown) {
            return self.refuse(&join(path, "key"), "Null", "keys cannot be null: give them a type");
        }
        Some(MapType { key, value: value? }.into())
    }

    fn primitive(&mut self, ty: &DataType, path: &str) -> Option<PrimitiveType> {
        use PrimitiveType as P;
        Some(match ty {
            DataType::Boolean => P::Boolean,
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => P::Int,
            DataType::Int64 | DataType::UInt32 => P::Long,
            DataType::UInt64 => match self.options.unsigned_longs {
                UnsignedLongs::Long => P::Long,
                UnsignedLongs::Decimal => P::Decimal { precision: 20, scale: 0 },
            },
            DataType::Float16 | DataType::Float32 => P::Float,
            DataType::Float64 => P::Double,
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => return self.decimal(ty, *precision, *scale, path),
            DataType::Date32 | DataType::Date64 => P::Date,
            DataType::Time32(_)
            | DataType::Time64(TimeUnit::Microsecond | TimeUnit::Second | TimeUnit::Millisecond) => P::Time,
            DataType::Time64(TimeUnit::Nanosecond) => match self.options.nanoseconds {
                Nanoseconds::Truncate => P::Time,
                Nanoseconds::Refuse => {
                    return self.refuse(path, ty, "times have microseconds: cast to time64[us], or allow truncation");
                }
            },
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => return self.nanoseconds(ty, zone.is_some(), path),
            DataType::Timestamp(_, None) => P::Timestamp,
            // An instant is the same in every zone.
            DataType::Timestamp(_, Some(_)) => P::Timestamptz,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => P::String,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => P::Binary,
            DataType::FixedSizeBinary(length) => match u32::try_from(*length) {
                Ok(length) => P::Fixed(length),
                Err(_) => return self.refuse(path, ty, "its length is negative"),
            },
            DataType::Null if self.options.format_version >= 3 => P::Unknown,
            DataType::Null => {
                let remedy = "it has no values: leave the column out, give it a type, or use format version 3";
                return self.refuse(path, ty, remedy);
            }
            DataType::Duration(_) => return self.refuse(path, ty, "cast it to int64, a number of its unit"),
            DataType::Interval(_) => {
                return self.refuse(path, ty, "split it into integer columns (months, days, nanoseconds)");
            }
            DataType::Union(..) => {
                return self.refuse(path, ty, "make it a struct with one field for each of its types");
            }
            other => return self.refuse(path, other, "it is an unknown type"),
        })
    }

    fn nanoseconds(&mut self, ty: &DataType, zone: bool, path: &str) -> Option<PrimitiveType> {
        use PrimitiveType as P;
        match (self.options.format_version >= 3, self.options.nanoseconds, zone) {
            (true, _, false) => Some(P::TimestampNs),
            (true, _, true) => Some(P::TimestamptzNs),
            (false, Nanoseconds::Truncate, false) => Some(P::Timestamp),
            (false, Nanoseconds::Truncate, true) => Some(P::Timestamptz),
            (false, Nanoseconds::Refuse, _) => {
                let remedy = "cast to microseconds, allow truncation, or use format version 3, which has nanoseconds";
                self.refuse(path, ty, remedy)
            }
        }
    }

    fn decimal(&mut self, ty: &DataType, precision: u8, scale: i8, path: &str) -> Option<PrimitiveType> {
        // A negative scale means zeros before the point.
        let digits = if scale < 0 { precision.saturating_add(scale.unsigned_abs()) } else { precision };
        match u8::try_from(scale.max(0)) {
            Ok(scale) if digits <= MAX_DECIMAL_PRECISION && scale <= digits => {
                Some(PrimitiveType::Decimal { precision: digits, scale })
            }
            _ => self.refuse(path, ty, "decimals have at most 38 digits, and no more after the point: cast it"),
        }
    }

    /// Returns the type if the table's format version has it.
    fn since_3(&mut self, ty: Type, arrow: &DataType, path: &str) -> Option<Type> {
        if self.options.format_version >= 3 {
            return Some(ty);
        }
        self.refuse(
            path,
            arrow,
            &format!("{ty} requires format version 3; without its extension type it is another type"),
        )
    }

    fn refuse<T>(&mut self, path: &str, ty: impl std::fmt::Display, remedy: &str) -> Option<T> {
        self.faults.push(format!("column {path:?} of the Arrow type {ty} has no Iceberg type: {remedy}"));
        None
    }
}

fn unnamed(ty: &DataType) -> ArrowField {
    ArrowField::new("", ty.clone(), true)
}
