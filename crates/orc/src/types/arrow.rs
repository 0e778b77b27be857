//! Converts ORC types to Arrow types and back.
//!
//! Attributes become metadata of the field with the same keys. Types that Arrow lacks (`char(7)`, `geometry`) are kept
//! in the metadata under [`TYPE_KEY`], which determines the ORC type in the other direction. The value `bigint` allows
//! a time of day to be stored as an integer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, UnionFields, UnionMode};

pub use arrow_schema::TimeUnit;

use super::{Kind, MAX_PRECISION, TypeDescription};
use crate::error::{Error, Result};

/// The key of an Arrow field's metadata whose value is the exact ORC type, as text such as `char(7)`.
pub const TYPE_KEY: &str = "orc.type";

/// Maximum variants of an Arrow union, whose type ids are signed bytes.
const MAX_ARROW_VARIANTS: usize = 128;

/// The Arrow type of text columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StringForm {
    /// `Utf8`; text that is not UTF-8 is an [`Error::Value`] that names the column.
    #[default]
    Utf8,
    /// `Dictionary<Int32, Utf8>` with the dictionaries of the file; columns without one get one too.
    Dictionary,
    /// `Binary`, unchecked, for files whose text is not UTF-8.
    Binary,
}

/// What to do with a timestamp that the unit cannot hold. The range of nanoseconds is 1677 to 2262.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutOfRange {
    /// Read it as null.
    #[default]
    Null,
    /// Read it as the nearest value that fits.
    Saturate,
    /// Return [`Error::Value`].
    Error,
}

/// How ORC types become Arrow types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrowOptions {
    /// The unit of both kinds of timestamps. Microseconds hold all of the years 1 to 9999.
    pub timestamp_unit: TimeUnit,
    /// The units of columns with another unit, by column id.
    pub column_units: BTreeMap<u32, TimeUnit>,
    /// Columns of timestamps, by id, that are read as nanoseconds since 1970 in a `Decimal128(38, 9)`, which holds all.
    pub exact_times: BTreeSet<u32>,
    /// What to do with timestamps that the unit cannot hold.
    pub out_of_range: OutOfRange,
    /// The Arrow type of `string`, `char` and `varchar`.
    pub strings: StringForm,
    /// Whether unions get one more variant, of type `Null`, for null unions. Without it a null union is read as a null
    /// of the first variant.
    pub null_variant: bool,
    /// Whether trailing spaces of `char` are removed, as orc-core does.
    pub trim_char: bool,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        Self {
            timestamp_unit: TimeUnit::Microsecond,
            column_units: BTreeMap::new(),
            exact_times: BTreeSet::new(),
            out_of_range: OutOfRange::Null,
            strings: StringForm::Utf8,
            null_variant: true,
            trim_char: true,
        }
    }
}

impl ArrowOptions {
    /// The unit of a timestamp column.
    pub fn unit_of(&self, column: u32) -> TimeUnit {
        self.column_units.get(&column).copied().unwrap_or(self.timestamp_unit)
    }
}

impl TypeDescription {
    /// The Arrow schema of the rows: the fields of the root struct, or one field `value` if the root is not a struct.
    pub fn to_arrow(&self, options: &ArrowOptions) -> Schema {
        match self.arrow_type(options) {
            DataType::Struct(fields) if self.kind == Kind::Struct => Schema::new(fields),
            _ => Schema::new(vec![self.arrow_field("value", options)]),
        }
    }

    /// The Arrow field of this type under a name; always nullable.
    pub fn arrow_field(&self, name: &str, options: &ArrowOptions) -> Field {
        let mut metadata: HashMap<String, String> = self.attributes.iter().cloned().collect();
        let exact = matches!(
            self.kind,
            Kind::Char { .. } | Kind::Varchar { .. } | Kind::Geometry { .. } | Kind::Geography { .. }
        );
        if exact {
            metadata.insert(TYPE_KEY.to_owned(), self.kind.to_string());
        }
        Field::new(name, self.arrow_type(options), true).with_metadata(metadata)
    }

    /// The Arrow type.
    pub fn arrow_type(&self, options: &ArrowOptions) -> DataType {
        match &self.kind {
            Kind::Boolean => DataType::Boolean,
            Kind::Byte => DataType::Int8,
            Kind::Short => DataType::Int16,
            Kind::Int => DataType::Int32,
            Kind::Long => DataType::Int64,
            Kind::Float => DataType::Float32,
            Kind::Double => DataType::Float64,
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => string_type(options.strings),
            Kind::Binary | Kind::Geometry { .. } | Kind::Geography { .. } => DataType::Binary,
            Kind::Timestamp | Kind::TimestampInstant if options.exact_times.contains(&self.column) => {
                DataType::Decimal128(38, 9)
            }
            Kind::Timestamp => DataType::Timestamp(options.unit_of(self.column), None),
            Kind::TimestampInstant => DataType::Timestamp(options.unit_of(self.column), Some("UTC".into())),
            Kind::Date => DataType::Date32,
            Kind::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale as i8),
            Kind::List => DataType::List(Arc::new(self.child_field(0, options))),
            Kind::Map => {
                let key = self.child_field(0, options).with_nullable(false);
                let entries = DataType::Struct(Fields::from(vec![key, self.child_field(1, options)]));
                DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
            }
            Kind::Struct => DataType::Struct(self.child_fields(options)),
            Kind::Union => self.arrow_union(options),
        }
    }

    fn child_field(&self, index: usize, options: &ArrowOptions) -> Field {
        let name = self.child_name(index);
        self.children
            .get(index)
            .map_or_else(|| Field::new(name.as_ref(), DataType::Null, true), |child| child.arrow_field(&name, options))
    }

    fn child_fields(&self, options: &ArrowOptions) -> Fields {
        (0..self.children.len()).map(|index| self.child_field(index, options)).collect()
    }

    /// Whether the variants fit Arrow's dense union; wider ones become a struct of `tag` and all variants.
    pub(crate) fn fits_arrow_union(&self, options: &ArrowOptions) -> bool {
        self.children.len() + usize::from(options.null_variant) <= MAX_ARROW_VARIANTS
    }

    fn arrow_union(&self, options: &ArrowOptions) -> DataType {
        let variants = self.child_fields(options);
        if !self.fits_arrow_union(options) {
            let tag = Arc::new(Field::new("tag", DataType::UInt8, true));
            return DataType::Struct(std::iter::once(tag).chain(variants.iter().cloned()).collect());
        }
        let null = options.null_variant.then(|| Arc::new(Field::new("null", DataType::Null, true)));
        let numbered = variants.iter().cloned().chain(null).enumerate();
        let fields: UnionFields = numbered.map(|(number, field)| (number as i8, field)).collect();
        DataType::Union(fields, UnionMode::Dense)
    }

    /// The ORC type of an Arrow schema.
    pub fn from_arrow(schema: &Schema) -> Result<Self> {
        let mut root = from_arrow_type(&DataType::Struct(schema.fields().clone()), None)?;
        root.number();
        Ok(root)
    }

    /// The ORC type of an Arrow field, with the attributes that its metadata holds.
    pub fn from_arrow_field(field: &Field) -> Result<Self> {
        let within = |error: Error| error.within(&format!("field {}", field.name()));
        let exact = field.metadata().get(TYPE_KEY).map(String::as_str);
        let mut this = from_arrow_type(field.data_type(), exact).map_err(within)?;
        let mut attributes: Vec<_> =
            field.metadata().iter().filter(|(key, _)| !key.starts_with("ARROW:") && *key != TYPE_KEY).collect();
        attributes.sort();
        this.attributes = attributes.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        Ok(this)
    }
}

fn string_type(form: StringForm) -> DataType {
    match form {
        StringForm::Utf8 => DataType::Utf8,
        StringForm::Dictionary => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        StringForm::Binary => DataType::Binary,
    }
}

fn from_arrow_type(data_type: &DataType, exact: Option<&str>) -> Result<TypeDescription> {
    let child = |field: &Arc<Field>| TypeDescription::from_arrow_field(field);
    let kind = match data_type {
        DataType::Boolean => Kind::Boolean,
        DataType::Int8 => Kind::Byte,
        DataType::Int16 | DataType::UInt8 => Kind::Short,
        DataType::Int32 | DataType::UInt16 => Kind::Int,
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Kind::Long,
        // ORC has no time of day. It is stored as an integer if the metadata asks for it.
        DataType::Time64(_) if exact == Some(Kind::Long.name()) => Kind::Long,
        DataType::Float16 | DataType::Float32 => Kind::Float,
        DataType::Float64 => Kind::Double,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text_kind(exact)?,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            binary_kind(exact)?
        }
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Timestamp(_, None) => Kind::Timestamp,
        DataType::Timestamp(_, Some(_)) => Kind::TimestampInstant,
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => decimal_kind(*precision, *scale)?,
        DataType::Dictionary(_, values) => return from_arrow_type(values, exact),
        DataType::RunEndEncoded(_, values) if !values.data_type().is_nested() => {
            return from_arrow_type(values.data_type(), exact);
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => return Ok(TypeDescription::nested(Kind::List, vec![child(field)?])),
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else {
                return Err(Error::invalid("the entries of a map are not a struct"));
            };
            let children = fields.iter().map(child).collect::<Result<Vec<_>>>()?;
            return Ok(TypeDescription::nested(Kind::Map, children));
        }
        DataType::Struct(fields) => {
            let children = fields.iter().map(|field| Ok((field.name().clone(), child(field)?)));
            return Ok(TypeDescription::structure(children.collect::<Result<Vec<_>>>()?));
        }
        DataType::Union(fields, _) => {
            let real = fields.iter().filter(|(_, field)| field.data_type() != &DataType::Null);
            let children = real.map(|(_, field)| child(field)).collect::<Result<Vec<_>>>()?;
            return Ok(TypeDescription::nested(Kind::Union, children));
        }
        other => return Err(Error::unsupported(format!("ORC has no type for Arrow's {other}"))),
    };
    Ok(TypeDescription::leaf(kind))
}

fn text_kind(exact: Option<&str>) -> Result<Kind> {
    match exact.map(str::parse::<Kind>).transpose()? {
        Some(kind @ (Kind::Char { .. } | Kind::Varchar { .. })) => Ok(kind),
        _ => Ok(Kind::String),
    }
}

fn binary_kind(exact: Option<&str>) -> Result<Kind> {
    match exact.map(str::parse::<Kind>).transpose()? {
        Some(
            kind @ (Kind::Geometry { .. }
            | Kind::Geography { .. }
            | Kind::String
            | Kind::Char { .. }
            | Kind::Varchar { .. }),
        ) => Ok(kind),
        _ => Ok(Kind::Binary),
    }
}

fn decimal_kind(precision: u8, scale: i8) -> Result<Kind> {
    let scale = u8::try_from(scale).ok().filter(|scale| *scale <= precision && precision <= MAX_PRECISION);
    let scale =
        scale.ok_or_else(|| Error::unsupported(format!("ORC has no decimal of {precision} digits with this scale")))?;
    Ok(Kind::Decimal { precision, scale })
}
