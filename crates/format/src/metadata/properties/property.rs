//! What a property is, and how the text of each kind of value is read.

use super::MetricsMode;
use crate::metadata::StringMap;
use crate::{Error, Result};

/// A known property and how it is treated.
#[derive(Debug, Clone, Copy)]
pub struct KnownProperty {
    /// Its name; one that ends with a dot is followed by that of a column.
    pub name: &'static str,
    /// The default as text, if there is one.
    pub default: Option<fn() -> String>,
    /// What it may be set to.
    pub values: AllowedValues,
    /// What is done about it.
    pub effect: Effect,
    /// What it is.
    pub about: &'static str,
}

/// How a property is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does what its name says.
    Honoured,
    /// It has no effect in icefield and does no harm: the reason.
    Harmless(&'static str),
    /// It cannot be set, since it would have no effect: the reason.
    Refused(&'static str),
}

/// The values that a property allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AllowedValues {
    /// Any text.
    Text,
    /// A text that is not empty.
    Filled,
    /// `true` or `false`.
    Flag,
    /// A whole number from this on.
    AtLeast(i64),
    /// A whole number, or nothing: the codec's own.
    Level,
    /// A number between zero and one.
    Fraction,
    /// A name mapping as JSON.
    NameMapping,
    /// `none`, `counts`, `truncate(16)` or `full`.
    MetricsMode,
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
}

/// A property: its name, its allowed values and its default. `T` is the type that it is read as, `Option` of
/// a type where it has no default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Property<T> {
    /// Its name.
    pub name: &'static str,
    /// What holds without it.
    pub default: T,
    /// What it may be set to.
    pub values: AllowedValues,
}

/// A property of a column: `prefix` is followed by the column's name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnProperty<T> {
    /// The beginning of the name; it ends with a dot.
    pub prefix: &'static str,
    /// What holds without it.
    pub default: T,
    /// What it may be set to.
    pub values: AllowedValues,
}

impl Property<i64> {
    /// The number, as Java reads it: any integer.
    pub fn read(&self, properties: &StringMap) -> Result<i64> {
        properties.get(self.name).map_or(Ok(self.default), |text| integer(self.name, self.values, text))
    }

    /// The number, which must be one that the property may be set to.
    pub fn read_valid(&self, properties: &StringMap) -> Result<i64> {
        properties.get(self.name).map_or(Ok(self.default), |text| valid(self.name, self.values, text, integer))
    }

    /// As [`Property::read_valid`], for sizes and counts.
    pub fn read_size(&self, properties: &StringMap) -> Result<usize> {
        let number = self.read_valid(properties)?;
        usize::try_from(number).map_err(|_| unexpected(self.name, self.values, &number.to_string()))
    }
}

impl Property<Option<i64>> {
    /// The number, if there is one; an empty string and `null` count as unset.
    pub fn read(&self, properties: &StringMap) -> Result<Option<i64>> {
        let text = properties.get(self.name).filter(|text| !matches!(text.trim(), "" | "null"));
        text.map(|text| integer(self.name, self.values, text)).transpose()
    }
}

impl Property<f64> {
    /// The number, which must be one that the property may be set to.
    pub fn read(&self, properties: &StringMap) -> Result<f64> {
        properties.get(self.name).map_or(Ok(self.default), |text| valid(self.name, self.values, text, number))
    }
}

impl Property<bool> {
    /// Whether it is `true`, in any case; every other text is false, as in Java.
    pub fn read(&self, properties: &StringMap) -> bool {
        properties.get(self.name).map_or(self.default, |text| is_true(text))
    }
}

impl Property<&'static str> {
    /// The text, whatever it is.
    pub fn read<'a>(&self, properties: &'a StringMap) -> &'a str {
        properties.get(self.name).map_or(self.default, String::as_str)
    }

    /// The choice, spelled as in the list of allowed values.
    pub fn read_choice(&self, properties: &StringMap) -> Result<&'static str> {
        properties.get(self.name).map_or(Ok(self.default), |text| self.choose(text))
    }

    /// As [`Property::read_choice`], of a text.
    pub fn choose(&self, text: &str) -> Result<&'static str> {
        let AllowedValues::OneOf(allowed) = self.values else { return Err(self.unexpected(text)) };
        let chosen = allowed.iter().find(|one| one.eq_ignore_ascii_case(text.trim()));
        chosen.copied().ok_or_else(|| self.unexpected(text))
    }
}

impl Property<Option<&'static str>> {
    /// The text, if there is one.
    pub fn read<'a>(&self, properties: &'a StringMap) -> Option<&'a str> {
        properties.get(self.name).map(String::as_str)
    }

    /// The string, if it is set; an error if the property does not allow it.
    pub fn read_valid<'a>(&self, properties: &'a StringMap) -> Result<Option<&'a str>> {
        match self.read(properties) {
            Some(text) if !self.values.allow(text) => Err(self.unexpected(text)),
            text => Ok(text),
        }
    }
}

impl Property<MetricsMode> {
    /// The mode, if the property is set. One that cannot be read is the default, as in Java: metrics never stop a write.
    pub fn read(&self, properties: &StringMap) -> Option<MetricsMode> {
        properties.get(self.name).map(|text| MetricsMode::parse(text).unwrap_or(self.default))
    }
}

impl<T> Property<T> {
    /// The error of a value that cannot be used.
    pub fn unexpected(&self, text: &str) -> Error {
        unexpected(self.name, self.values, text)
    }
}

impl<T> ColumnProperty<T> {
    /// The columns for which it is set: their names and the value.
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
    /// The columns for which it is set, and whether it is `true` for them.
    pub fn flags<'a>(&self, properties: &'a StringMap) -> impl Iterator<Item = (&'a str, bool)> + use<'a> {
        self.columns(properties).map(|(column, text)| (column, is_true(text)))
    }
}

impl ColumnProperty<f64> {
    /// The number of a column.
    pub fn of(&self, column: &str, properties: &StringMap) -> Result<f64> {
        Ok(self.valid(column, properties, number)?.unwrap_or(self.default))
    }
}

impl ColumnProperty<Option<i64>> {
    /// The number of a column, if there is one.
    pub fn of(&self, column: &str, properties: &StringMap) -> Result<Option<i64>> {
        Ok(self.valid(column, properties, integer)?.or(self.default))
    }
}

/// Reads a text: the property's name, what it may be set to, and the text.
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
