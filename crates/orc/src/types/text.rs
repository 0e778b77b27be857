//! Formats and parses schemas as text, as orc-core does: `struct<a:int,b:array<char(3)>>`.

use std::fmt;

use super::{Kind, TypeDescription};
use crate::error::{Error, Result};

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

/// Most types inside one another in a text.
const MOST_DEPTH: usize = 100;

impl std::str::FromStr for TypeDescription {
    type Err = Error;

    /// Parses a type in the form that [`TypeDescription`] prints, as orc-core does.
    fn from_str(text: &str) -> Result<Self> {
        let mut parser = Parser { text, rest: text };
        let mut parsed = parser.node(0)?;
        if !parser.rest.trim().is_empty() {
            return Err(parser.refused("the end"));
        }
        parsed.number();
        Ok(parsed)
    }
}

/// The text of a type, and what is left of it.
struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    fn refused(&self, expected: &str) -> Error {
        let at = self.text.len() - self.rest.len();
        Error::invalid(format!("invalid ORC type {:?}: expected {expected} at character {at}", self.text))
    }

    fn accept(&mut self, mark: char) -> bool {
        let found = self.rest.trim_start().strip_prefix(mark);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn expect(&mut self, mark: char) -> Result<()> {
        if self.accept(mark) { Ok(()) } else { Err(self.refused(&format!("{mark:?}"))) }
    }

    fn node(&mut self, depth: usize) -> Result<TypeDescription> {
        if depth > MOST_DEPTH {
            return Err(Error::limit(format!("types are nested deeper than the limit of {MOST_DEPTH}")));
        }
        self.rest = self.rest.trim_start();
        let end = self.rest.find(['<', '>', '(', ',']).unwrap_or(self.rest.len());
        let (name, after) = self.rest.split_at(end);
        let kind = match name.trim() {
            "array" => Kind::List,
            "map" => Kind::Map,
            "struct" => Kind::Struct,
            "uniontype" => Kind::Union,
            _ => {
                let close = if after.starts_with('(') { after.find(')').map(|at| at + 1) } else { Some(0) };
                let length = end + close.ok_or_else(|| self.refused("a closing parenthesis"))?;
                let (leaf, after) = self.rest.split_at(length);
                let arguments = leaf.get(end..).unwrap_or_default();
                let kind = format!("{}{arguments}", name.trim().to_ascii_lowercase());
                let kind = kind.parse().map_err(|_| self.refused("a type"))?;
                self.rest = after;
                return Ok(TypeDescription::leaf(kind));
            }
        };
        self.rest = after;
        self.expect('<')?;
        let (mut names, mut children) = (Vec::new(), Vec::new());
        while !(children.is_empty() && self.accept('>')) {
            if kind == Kind::Struct {
                names.push(self.name()?);
                self.expect(':')?;
            }
            children.push(self.node(depth + 1)?);
            if self.accept('>') {
                break;
            }
            self.expect(',')?;
        }
        let right = match kind {
            Kind::List => children.len() == 1,
            Kind::Map => children.len() == 2,
            _ => true,
        };
        if !right {
            return Err(self.refused(if kind == Kind::List { "one type of elements" } else { "two types of a map" }));
        }
        Ok(TypeDescription { names, children, ..TypeDescription::leaf(kind) })
    }

    /// The name of a field: letters, digits and underscores, or anything in backticks.
    fn name(&mut self) -> Result<String> {
        self.rest = self.rest.trim_start();
        let Some(quoted) = self.rest.strip_prefix('`') else {
            let end = self.rest.find(|letter: char| !letter.is_alphanumeric() && !"_.- ".contains(letter));
            let (name, after) = self.rest.split_at(end.unwrap_or(self.rest.len()));
            if name.trim().is_empty() {
                return Err(self.refused("the name of a field"));
            }
            self.rest = after;
            return Ok(name.trim().to_owned());
        };
        let mut name = String::new();
        let mut letters = quoted.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            if letter != '`' {
                name.push(letter);
            } else if letters.peek().is_some_and(|(_, next)| *next == '`') {
                letters.next();
                name.push('`');
            } else {
                self.rest = quoted.get(at + 1..).unwrap_or_default();
                return Ok(name);
            }
        }
        Err(self.refused("a closing backtick"))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_as_text() {
        for text in [
            "struct<>",
            "int",
            "struct<a:int,`b c`:array<char(3)>,`d``e`:map<string,struct<x:decimal(38,10)>>>",
            "uniontype<int,timestamp with local time zone,geography(OGC:CRS84,KARNEY)>",
        ] {
            assert_eq!(text.parse::<TypeDescription>().unwrap().to_string(), text);
        }
        let spaced = "struct < a : int , b : Decimal( 5, 2 ) >".parse::<TypeDescription>().unwrap();
        assert_eq!(spaced.to_string(), "struct<a:int,b:decimal(5,2)>");
        assert_eq!(spaced.children[1].column, 2);
        for (text, expected) in [
            ("struct<a:int", "expected ',' at character 12"),
            ("struct<a int>", "expected ':' at character 12"),
            ("struct<a:integer>", "expected a type at character 9"),
            ("array<int,int>", "expected one type of elements"),
            ("int int", "expected a type at character 0"),
            ("map<int,int>x", "expected the end at character 12"),
        ] {
            let error = text.parse::<TypeDescription>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
