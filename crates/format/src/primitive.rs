//! Primitive types, and how they are parsed and formatted ("Primitive Types"; Appendix C, "Schemas").
//!
//! The text form is that of the Java library: names in any case, blanks only where the library accepts them, and
//! parameters always written (`geometry` becomes `geometry(OGC:CRS84)`).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::nearest::{hint, listed};

/// Default coordinate reference system of geometry and geography.
pub const DEFAULT_CRS: &str = "OGC:CRS84";

/// Maximum precision of a decimal.
pub const MAX_DECIMAL_PRECISION: u8 = 38;

/// A primitive type of the specification.
///
/// Geometries whose coordinate reference systems differ only in case are equal, as in the Java library.
#[derive(Debug, Clone)]
pub enum PrimitiveType {
    /// v3: always null; for a column whose type is not known yet.
    Unknown,
    /// True or false.
    Boolean,
    /// 32-bit signed integer.
    Int,
    /// 64-bit signed integer.
    Long,
    /// 32-bit IEEE 754.
    Float,
    /// 64-bit IEEE 754.
    Double,
    /// Fixed-point decimal, precision 1 to 38.
    Decimal {
        /// Total number of digits.
        precision: u8,
        /// Number of fractional digits.
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds, without a zone.
    Timestamp,
    /// Microseconds since the epoch, in UTC.
    Timestamptz,
    /// v3: nanoseconds, without a zone.
    TimestampNs,
    /// v3: nanoseconds since the epoch, in UTC.
    TimestamptzNs,
    /// UTF-8 text.
    String,
    /// 16 bytes, big endian.
    Uuid,
    /// Bytes of a fixed length.
    Fixed(u32),
    /// Bytes of any length.
    Binary,
    /// v3: planar shapes as WKB; without a CRS, the default `OGC:CRS84` applies.
    Geometry {
        /// Coordinate reference system, as written.
        crs: Option<Arc<str>>,
    },
    /// v3: shapes on the ellipsoid as WKB.
    Geography {
        /// Coordinate reference system, as written.
        crs: Option<Arc<str>>,
        /// Interpolation of edges; `None` is the default, spherical.
        algorithm: Option<EdgeAlgorithm>,
    },
    /// A type name of a later specification, kept as written so that the table loads; any use of it is refused.
    Unrecognized(Arc<str>),
}

/// Interpolation of the edges of a geography.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EdgeAlgorithm {
    /// Great circles (the default).
    #[default]
    Spherical,
    /// Vincenty's formulae.
    Vincenty,
    /// Thomas' formulae.
    Thomas,
    /// Andoyer's formulae.
    Andoyer,
    /// Karney's method.
    Karney,
}

impl EdgeAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 5] = [Self::Spherical, Self::Vincenty, Self::Thomas, Self::Andoyer, Self::Karney];

    /// Parses a name in any case.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| Error::invalid(format!("invalid edge interpolation algorithm: {name:?}")))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Spherical => "spherical",
            Self::Vincenty => "vincenty",
            Self::Thomas => "thomas",
            Self::Andoyer => "andoyer",
            Self::Karney => "karney",
        }
    }
}

impl fmt::Display for EdgeAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Types without parameters, by name.
const PLAIN: [(&str, PrimitiveType); 17] = [
    ("unknown", PrimitiveType::Unknown),
    ("boolean", PrimitiveType::Boolean),
    ("int", PrimitiveType::Int),
    ("long", PrimitiveType::Long),
    ("float", PrimitiveType::Float),
    ("double", PrimitiveType::Double),
    ("date", PrimitiveType::Date),
    ("time", PrimitiveType::Time),
    ("timestamp", PrimitiveType::Timestamp),
    ("timestamptz", PrimitiveType::Timestamptz),
    ("timestamp_ns", PrimitiveType::TimestampNs),
    ("timestamptz_ns", PrimitiveType::TimestamptzNs),
    ("string", PrimitiveType::String),
    ("uuid", PrimitiveType::Uuid),
    ("binary", PrimitiveType::Binary),
    ("geometry", PrimitiveType::Geometry { crs: None }),
    ("geography", PrimitiveType::Geography { crs: None, algorithm: None }),
];

/// Names that a later specification cannot give to a type, because they already have a meaning.
const TAKEN: [&str; 6] = ["decimal", "fixed", "struct", "list", "map", "variant"];

impl PrimitiveType {
    /// Parses a primitive type; an unknown name is an error.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some(plain) = plain(text) {
            return Ok(plain);
        }
        if let Some(parameters) = after_name(text, "geometry") {
            return geometry(text, parameters);
        }
        if let Some(parameters) = after_name(text, "geography") {
            return geography(text, parameters);
        }
        if let Some(parameters) = after_name(text, "fixed") {
            return fixed(text, parameters);
        }
        if let Some(parameters) = after_name(text, "decimal") {
            return decimal(text, parameters);
        }
        Err(not_a_type(text))
    }

    /// Like [`PrimitiveType::parse`], but keeps an unknown name as [`PrimitiveType::Unrecognized`]. Invalid parameters
    /// of a known type are still an error.
    pub fn parse_lenient(text: &str) -> Result<Self> {
        Self::parse(text).or_else(|error| {
            let name: String =
                text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').flat_map(char::to_lowercase).collect();
            if name.is_empty() || TAKEN.contains(&name.as_str()) || plain(&name).is_some() {
                return Err(error);
            }
            Ok(Self::Unrecognized(text.into()))
        })
    }

    /// Coordinate reference system of a geometry or geography, by default [`DEFAULT_CRS`].
    pub fn crs(&self) -> Option<&str> {
        match self {
            Self::Geometry { crs } | Self::Geography { crs, .. } => Some(crs.as_deref().unwrap_or(DEFAULT_CRS)),
            _ => None,
        }
    }

    /// Interpolation of a geography's edges, by default spherical.
    pub fn edge_algorithm(&self) -> Option<EdgeAlgorithm> {
        match self {
            Self::Geography { algorithm, .. } => Some(algorithm.unwrap_or_default()),
            _ => None,
        }
    }
}

fn plain(name: &str) -> Option<PrimitiveType> {
    PLAIN.iter().find(|(plain, _)| plain.eq_ignore_ascii_case(name)).map(|(_, ty)| ty.clone())
}

/// Type names of other systems and languages, with the names used here.
const ALIASES: [(&str, &str); 34] = [
    ("bigint", "long"),
    ("int64", "long"),
    ("i64", "long"),
    ("integer", "int"),
    ("int32", "int"),
    ("i32", "int"),
    ("int16", "int"),
    ("int8", "int"),
    ("smallint", "int"),
    ("tinyint", "int"),
    ("short", "int"),
    ("byte", "int"),
    ("bool", "boolean"),
    ("real", "float"),
    ("float32", "float"),
    ("float64", "double"),
    ("number", "double"),
    ("numeric", "decimal(10, 2)"),
    ("decimal", "decimal(10, 2)"),
    ("varchar", "string"),
    ("char", "string"),
    ("text", "string"),
    ("str", "string"),
    ("utf8", "string"),
    ("object", "string"),
    ("datetime", "timestamp"),
    ("datetime64", "timestamp"),
    ("timestamp_ntz", "timestamp"),
    ("timestamp_ltz", "timestamptz"),
    ("date32", "date"),
    ("bytes", "binary"),
    ("blob", "binary"),
    ("varbinary", "binary"),
    ("fixed", "fixed[16]"),
];

/// Creates the error for a text that is not a type: the type that was probably meant, and the existing types.
fn not_a_type(text: &str) -> Error {
    let name = text.split(['(', '[', '<']).next().unwrap_or_default().trim();
    let lower = name.to_ascii_lowercase();
    let plain = || PLAIN.iter().map(|(name, _)| *name);
    let nested = match lower.as_str() {
        "struct" | "list" | "array" | "map" | "row" => "; nested types are made by icefield.types or as JSON",
        _ => "",
    };
    let meant = match ALIASES.iter().find(|(alias, _)| *alias == lower) {
        Some((_, meant)) => format!("; did you mean {meant:?}?"),
        None if nested.is_empty() => hint(name, plain().chain(["variant"])),
        None => nested.to_owned(),
    };
    let parameters = "decimal(P, S), fixed[L], variant";
    Error::invalid(format!("not a type: {text:?}{meant} (types: {}, {parameters})", listed(plain())))
}

/// Returns the text after `name`, if the text starts with that name in any case.
fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(name.len())?;
    head.eq_ignore_ascii_case(name).then_some(tail)
}

/// Removes the blanks of Java's `\s`.
fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r'])
}

fn between(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// Returns the text in the parentheses of a geometry or geography; `None` without parentheses.
fn geo_parameters<'a>(text: &str, rest: &'a str) -> Result<Option<&'a str>> {
    let rest = rest.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    if rest.is_empty() {
        return Ok(None);
    }
    between(rest, '(', ')').map(Some).ok_or_else(|| not_a_type(text))
}

fn crs(text: &str, written: &str) -> Result<Arc<str>> {
    match trim(written) {
        "" => Err(Error::invalid(format!("empty coordinate reference system: {text:?}"))),
        crs => Ok(crs.into()),
    }
}

fn geometry(text: &str, rest: &str) -> Result<PrimitiveType> {
    let Some(inner) = geo_parameters(text, rest)? else {
        return Ok(PrimitiveType::Geometry { crs: None });
    };
    if inner.contains(')') {
        return Err(not_a_type(text));
    }
    Ok(PrimitiveType::Geometry { crs: Some(crs(text, inner)?) })
}

fn geography(text: &str, rest: &str) -> Result<PrimitiveType> {
    let Some(inner) = geo_parameters(text, rest)? else {
        return Ok(PrimitiveType::Geography { crs: None, algorithm: None });
    };
    let (system, algorithm) = match inner.split_once(',') {
        None => (inner, None),
        Some((system, algorithm)) => (system, Some(trim(algorithm))),
    };
    if algorithm.is_some_and(|name| !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
        return Err(not_a_type(text));
    }
    let crs = Some(crs(text, system)?);
    Ok(PrimitiveType::Geography { crs, algorithm: algorithm.map(EdgeAlgorithm::parse).transpose()? })
}

fn fixed(text: &str, rest: &str) -> Result<PrimitiveType> {
    let length = between(rest, '[', ']').and_then(number).ok_or_else(|| not_a_type(text))?;
    // The Java library stores lengths as 32-bit signed integers.
    match i32::try_from(length) {
        Ok(length) => Ok(PrimitiveType::Fixed(length.unsigned_abs())),
        Err(_) => Err(Error::invalid(format!("length out of range: {text:?}"))),
    }
}

fn decimal(text: &str, rest: &str) -> Result<PrimitiveType> {
    let parameters = between(rest, '(', ')').and_then(|inner| inner.split_once(','));
    let (precision, scale) = parameters
        .and_then(|(precision, scale)| Some((number(precision)?, number(scale)?)))
        .ok_or_else(|| not_a_type(text))?;
    // A scale above the precision is unusual, but valid: 0.00012 is a decimal(2, 5).
    let digits = |n: u64| u8::try_from(n).ok().filter(|n| *n <= MAX_DECIMAL_PRECISION);
    match (digits(precision), digits(scale)) {
        (Some(precision), Some(scale)) => Ok(PrimitiveType::Decimal { precision, scale }),
        _ => Err(Error::invalid(format!("decimals have at most {MAX_DECIMAL_PRECISION} digits: {text:?}"))),
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = trim(text);
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    // An overflow is still a number, which every use rejects as too large.
    all_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimal { precision, scale } => write!(f, "decimal({precision}, {scale})"),
            Self::Fixed(length) => write!(f, "fixed[{length}]"),
            Self::Geometry { crs } => write!(f, "geometry({})", crs.as_deref().unwrap_or(DEFAULT_CRS)),
            Self::Geography { crs, algorithm } => {
                write!(f, "geography({}, {})", crs.as_deref().unwrap_or(DEFAULT_CRS), algorithm.unwrap_or_default())
            }
            Self::Unrecognized(text) => f.write_str(text),
            plain => {
                let name = PLAIN.iter().find(|(_, ty)| discriminant(ty) == discriminant(plain)).map(|(name, _)| *name);
                f.write_str(name.unwrap_or("?"))
            }
        }
    }
}

impl PartialEq for PrimitiveType {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Decimal { precision: p, scale: s }, Self::Decimal { precision: q, scale: t }) => p == q && s == t,
            (Self::Fixed(a), Self::Fixed(b)) => a == b,
            (Self::Unrecognized(a), Self::Unrecognized(b)) => a == b,
            _ => {
                discriminant(self) == discriminant(other)
                    && self.edge_algorithm() == other.edge_algorithm()
                    && match (self.crs(), other.crs()) {
                        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
                        (a, b) => a == b,
                    }
            }
        }
    }
}

impl Eq for PrimitiveType {}

impl Hash for PrimitiveType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::Decimal { precision, scale } => (precision, scale).hash(state),
            Self::Fixed(length) => length.hash(state),
            Self::Unrecognized(text) => text.hash(state),
            Self::Geometry { .. } | Self::Geography { .. } => {
                self.crs().map(str::to_ascii_uppercase).hash(state);
                self.edge_algorithm().hash(state);
            }
            _ => {}
        }
    }
}
