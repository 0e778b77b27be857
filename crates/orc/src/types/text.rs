//! Formats and parses schemas as text, as orc-core does: `struct<a:int,b:array<char(3)>>`.

use std::fmt;

use super::{Kind, TypeDescription};

impl fmt::Display for TypeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !matches!(self.kind, Kind::List | Kind::Map | Kind::Struct | Kind::Union) {
            return Ok(());
        }
        f.write_str("<")?;
        for (index, child) in self.children.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            if let Some(name) = self.names.get(index) {
                write_name(f, name)?;
                f.write_str(":")?;
            }
            write!(f, "{child}")?;
        }
        f.write_str(">")
    }
}

/// Writes the name of a field, in backticks if it contains more than letters, digits and underscores.
fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if plain { f.write_str(name) } else { write!(f, "`{}`", name.replace('`', "``")) }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Decimal { precision, scale } => write!(f, "({precision},{scale})"),
            Self::Char { length } | Self::Varchar { length } => write!(f, "({length})"),
            Self::Geometry { crs } => write!(f, "({})", crs.as_deref().unwrap_or(DEFAULT_CRS)),
            Self::Geography { crs, algorithm } => {
                write!(f, "({},{})", crs.as_deref().unwrap_or(DEFAULT_CRS), algorithm.unwrap_or_default())
            }
            _ => Ok(()),
        }
    }
}

/// The coordinate reference system of geometries that have none.
const DEFAULT_CRS: &str = "OGC:CRS84";

impl std::str::FromStr for Kind {
    type Err = crate::Error;

    /// Parses a kind without children, in the form that [`Kind`] prints.
    fn from_str(text: &str) -> crate::Result<Self> {
        let refused = || crate::Error::invalid(format!("invalid ORC type: {text}"));
        let (name, arguments) = match text.split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(refused)?),
            None => (text, ""),
        };
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| refused());
        let geography = || arguments.rsplit_once(',').unwrap_or((arguments, ""));
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(match name {
            "char" => Self::Char { length: number(arguments)? },
            "varchar" => Self::Varchar { length: number(arguments)? },
            "decimal" => {
                let (precision, scale) = arguments.split_once(',').ok_or_else(refused)?;
                let digits = |text: &str| text.trim().parse::<u8>().map_err(|_| refused());
                Self::Decimal { precision: digits(precision)?, scale: digits(scale)? }
            }
            "geometry" => Self::Geometry { crs: filled(arguments) },
            "geography" => {
                let (crs, algorithm) = geography();
                let algorithms = (0..5).map(crate::proto::EdgeAlgorithm::from_number);
                let algorithm = algorithms.into_iter().find(|known| known.name() == algorithm);
                Self::Geography { crs: filled(crs), algorithm }
            }
            _ => [
                Self::Boolean,
                Self::Byte,
                Self::Short,
                Self::Int,
                Self::Long,
                Self::Float,
                Self::Double,
                Self::String,
                Self::Binary,
                Self::Timestamp,
                Self::TimestampInstant,
                Self::Date,
            ]
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(refused)?,
        })
    }
}
