//! Table properties that set how a table is written and read, typed. Names and defaults are those of
//! [`icefield_format::metadata::properties`].

use std::collections::BTreeMap;

use icefield_format::metadata::properties::Property;

use crate::error::{Error, Result};

/// Properties of a table. Unknown ones are kept and mean nothing here; a known one with a bad value is an error that
/// names it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    /// The given properties.
    pub fn new<K: Into<String>, V: Into<String>>(properties: impl IntoIterator<Item = (K, V)>) -> Self {
        Self(properties.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    /// The value of a property, as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A number, or the default where the property is not set.
    pub fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Result<T> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.trim().parse().map_err(|_| Error::invalid(format!("table property {name}: {text:?} is no valid number")))
    }

    /// A number above zero.
    pub fn positive(&self, property: &Property<i64>) -> Result<usize> {
        let number = self.number(property.name, property.default)?;
        let positive = usize::try_from(number).ok().filter(|number| *number > 0);
        positive.ok_or_else(|| Error::invalid(format!("table property {}: must be above zero", property.name)))
    }

    /// `true` in any case; every other text is false, as in Java.
    pub fn flag(&self, property: &Property<bool>) -> bool {
        self.text(property.name).map_or(property.default, |text| text.trim().eq_ignore_ascii_case("true"))
    }

    /// The text, or the default.
    pub fn word(&self, property: &Property<&'static str>) -> &str {
        self.text(property.name).unwrap_or(property.default)
    }

    /// These settings, some of them set otherwise.
    #[must_use]
    pub fn with(mut self, others: impl IntoIterator<Item = (String, String)>) -> Self {
        self.0.extend(others);
        self
    }

    /// Properties below a prefix: what follows it, and the value.
    pub fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(name, value)| Some((name.strip_prefix(prefix)?, value.as_str())))
    }
}
