//! Property declarations, and how each kind of value is parsed.

use super::MetricsMode;
use crate::metadata::StringMap;
use crate::{Error, Result};

/// A known property, for checks and documentation.
#[derive(Debug, Clone, Copy)]
pub struct KnownProperty {
    /// Name; if it ends with a dot, a column name follows.
    pub name: &'static str,
    /// Default as text, if any.
    pub default: Option<fn() -> String>,
    /// Allowed values.
    pub values: AllowedValues,
    /// How icefield treats it.
    pub effect: Effect,
    /// Description for the documentation.
    pub about: &'static str,
}

/// How icefield treats a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does what its name says.
    Honoured,
    /// It has no effect in icefield, which does no harm, for this reason.
    Harmless(&'static str),
    /// Setting it is refused because it would have no effect, for this reason.
    Refused(&'static str),
}

/// The values that a property allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AllowedValues {
    /// Any text.
    Text,
    /// Any text but the empty one.
    Filled,
    /// `true` or `false`.
    Flag,
    /// An integer, at least this.
    AtLeast(i64),
    /// An integer, or empty for the codec's default.
    Level,
    /// A number between 0 and 1.
    Fraction,
    /// A name mapping as JSON.
    NameMapping,
    /// `none`, `counts`, `truncate(16)` or `full`.
    MetricsMode,
    /// A type that variants are shredded as: `struct<a: long, b: string>`.
    Shape,
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
}

/// A property with its allowed values and default. `T` is the type of the parsed value, an `Option` if there is no
/// default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Property<T> {
    /// Name.
    pub name: &'static str,
    /// Value if the property is not set.
    pub default: T,
    /// Allowed values.
    pub values: AllowedValues,
}

/// A property for each column: `prefix` is followed by the column's name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnProperty<T> {
    /// Start of the name; it ends with a dot.
    pub prefix: &'static str,
    /// Value if the property is not set.
    pub default: T,
    /// Allowed values.
    pub values: AllowedValues,
}

impl Property<i64> {
    /// Reads the number as Java does: any integer is accepted.
    pub fn read(&self, properties: &StringMap) -> Result<i64> {
        properties.get(self.name).map_or(Ok(self.default), |text| integer(self.name, self.values, text))
    }

    /// Reads the number; an error if the property does not allow it.
    pub fn read_valid(&self, properties: &StringMap) -> Result<i64> {
        properties.get(self.name).map_or(Ok(self.default), |text| valid(self.name, self.values, text, integer))
    }

    /// Like [`Property::read_valid`], for sizes and counts.
    pub fn read_size(&self, properties: &StringMap) -> Result<usize> {
        let number = self.read_valid(properties)?;
        usize::try_from(number).map_err(|_| unexpected(self.name, self.values, &number.to_string()))
    }
}

impl Property<Option<i64>> {
    /// Reads the number, if it is set; an empty string and `null` count as unset.
    pub fn read(&self, properties: &StringMap) -> Result<Option<i64>> {
        let text = properties.get(self.name).filter(|text| !matches!(text.trim(), "" | "null"));
        text.map(|text| integer(self.name, self.values, text)).transpose()
    }
}

impl Property<f64> {
    /// Reads the number; an error if the property does not allow it.
    pub fn read(&self, properties: &StringMap) -> Result<f64> {
        properties.get(self.name).map_or(Ok(self.default), |text| valid(self.name, self.values, text, number))
    }
}

impl Property<bool> {
    /// Reads the flag: `true` in any case; every other text is false, as in Java.
    pub fn read(&self, properties: &StringMap) -> bool {
        properties.get(self.name).map_or(self.default, |text| is_true(text))
    }
}

impl Property<&'static str> {
    /// Reads the text, without a check.
    pub fn read<'a>(&self, properties: &'a StringMap) -> &'a str {
        properties.get(self.name).map_or(self.default, String::as_str)
    }

    /// Reads the choice, spelled as in the list of allowed values.
    pub fn read_choice(&self, properties: &StringMap) -> Result<&'static str> {
        properties.get(self.name).map_or(Ok(self.default), |text| self.choose(text))
    }

    /// Like [`Property::read_choice`], for a text that is already at hand.
    pub fn choose(&self, text: &str) -> Result<&'static str> {
        let AllowedValues::OneOf(allowed) = self.values else { return Err(self.unexpected(text)) };
        let chosen = allowed.iter().find(|one| one.eq_ignore_ascii_case(text.trim()));
        chosen.copied().ok_or_else(|| self.unexpected(text))
    }
}

impl Property<Option<&'static str>> {
    /// Reads the text, if it is set.
    pub fn read<'a>(&self, properties: &'a StringMap) -> Option<&'a str> {
        properties.get(self.name).map(String::as_str)
    }

    /// Reads the text, if it is set; an error if the property does not allow it.
    pub fn read_valid<'a>(&self, properties: &'a StringMap) -> Result<Option<&'a str>> {
        match self.read(properties) {
            Some(text) if !self.values.allow(text) => Err(self.unexpected(text)),
            text => Ok(text),
        }
    }
}

impl Property<MetricsMode> {
    /// Reads the mode, if it is set. An invalid one counts as the default, as in Java: metrics never stop a write.
    pub fn read(&self, properties: &StringMap) -> Option<MetricsMode> {
        properties.get(self.name).map(|text| MetricsMode::parse(text).unwrap_or(self.default))
    }
}

impl<T> Property<T> {
    /// Creates the error for a value that the property does not allow.
    pub fn unexpected(&self, text: &str) -> Error {
        unexpected(self.name, self.values, text)
    }
}

impl<T> ColumnProperty<T> {
    /// Returns the columns for which the property is set, with the values.
    pub fn columns<'a>(&self, properties: &'a StringMap) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a, T> {
        let prefix = self.prefix;
        properties.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }

    fn valid<V>(&self, column: &str, properties: &StringMap, read: Read<V>) -> Result<Option<V>> {
        let name = format!("{}{column}", self.prefix);
        properties.get(&name).map(|text| valid(&name, self.values, text, read)).transpose()
    }
}

impl ColumnProperty<bool> {
    /// Returns the columns for which the flag is set, with its values.
    pub fn flags<'a>(&self, properties: &'a StringMap) -> impl Iterator<Item = (&'a str, bool)> + use<'a> {
        self.columns(properties).map(|(column, text)| (column, is_true(text)))
    }
}

impl ColumnProperty<f64> {
    /// Reads the number for a column.
    pub fn of(&self, column: &str, properties: &StringMap) -> Result<f64> {
        Ok(self.valid(column, properties, number)?.unwrap_or(self.default))
    }
}

impl ColumnProperty<Option<i64>> {
    /// Reads the number for a column, if there is one.
    pub fn of(&self, column: &str, properties: &StringMap) -> Result<Option<i64>> {
        Ok(self.valid(column, properties, integer)?.or(self.default))
    }
}

/// Parses a text; the arguments are the property's name, its allowed values, and the text.
type Read<V> = fn(&str, AllowedValues, &str) -> Result<V>;

fn valid<V>(name: &str, values: AllowedValues, text: &str, read: Read<V>) -> Result<V> {
    match values.allow(text) {
        true => read(name, values, text),
        false => Err(unexpected(name, values, text)),
    }
}

fn integer(name: &str, values: AllowedValues, text: &str) -> Result<i64> {
    text.trim().parse().map_err(|_| unexpected(name, values, text))
}

fn number(name: &str, values: AllowedValues, text: &str) -> Result<f64> {
    text.trim().parse().map_err(|_| unexpected(name, values, text))
}

fn is_true(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

pub(super) fn unexpected(name: &str, expected: AllowedValues, text: &str) -> Error {
    Error::invalid(format!("table property '{name}': expected {expected}, got '{text}'"))
}
