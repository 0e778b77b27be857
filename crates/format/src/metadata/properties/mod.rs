//! Table properties ("Table Metadata", `properties`): the names that mean something here, and what holds without them.
//!
//! Names and defaults are those of the Java library. Unknown properties are never an error; a known one whose value
//! cannot be read is, where it is used.

mod check;
mod list;

use std::fmt::Display;

pub use check::{check_set, nearest};
pub use list::*;

use super::StringMap;
use crate::{Error, Result};

/// A property that is known, and what is done about it.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its name; one that ends with a dot is followed by that of a column.
    pub name: &'static str,
    /// The default as text, where there is one.
    pub default: Option<fn() -> String>,
    /// What it may be set to.
    pub values: Values,
    /// What is done about it.
    pub effect: Effect,
    /// What it is.
    pub about: &'static str,
}

/// What is done about a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does what its name says.
    Honoured,
    /// It has no effect here and does no harm: why.
    Harmless(&'static str),
    /// It cannot be set, and why: what was asked for would not happen.
    Refused(&'static str),
}

/// What a property may be set to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values {
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

/// A property and its default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Property<T> {
    /// Its name.
    pub name: &'static str,
    /// What holds without it.
    pub default: T,
}

impl Property<i64> {
    /// The number.
    pub fn read(&self, properties: &StringMap) -> Result<i64> {
        match properties.get(self.name) {
            None => Ok(self.default),
            Some(text) => text.trim().parse().map_err(|error| self.unreadable(text, error)),
        }
    }
}

impl Property<f64> {
    /// The number.
    pub fn read(&self, properties: &StringMap) -> Result<f64> {
        match properties.get(self.name) {
            None => Ok(self.default),
            Some(text) => text.trim().parse().map_err(|error| self.unreadable(text, error)),
        }
    }
}

impl Property<bool> {
    /// Whether it is `true`, in any case; all else is false.
    pub fn read(&self, properties: &StringMap) -> bool {
        properties.get(self.name).map_or(self.default, |text| text.trim().eq_ignore_ascii_case("true"))
    }
}

impl Property<&'static str> {
    /// The text.
    pub fn read<'a>(&self, properties: &'a StringMap) -> &'a str {
        properties.get(self.name).map_or(self.default, String::as_str)
    }
}

impl<T> Property<T> {
    fn unreadable(&self, text: &str, error: impl Display) -> Error {
        Error::invalid(format!("property {}: {text:?}: {error}", self.name))
    }
}

/// Names whose values the metadata itself holds: they are never stored as properties.
pub const RESERVED: &[&str] = &[
    "current-schema",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "default-partition-spec",
    "default-sort-order",
    FORMAT_VERSION,
    "snapshot-count",
    "uuid",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_kind() {
        let properties: StringMap = [
            (COMMIT_NUM_RETRIES.name, "7"),
            (SPLIT_SIZE.name, "many"),
            (GC_ENABLED.name, "FALSE"),
            (ORC_BLOOM_FILTER_FPP.name, "0.5"),
            (METADATA_COMPRESSION.name, "gzip"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(COMMIT_NUM_RETRIES.read(&properties), Ok(7));
        assert_eq!(COMMIT_MIN_RETRY_WAIT_MS.read(&properties), Ok(100));
        let error = SPLIT_SIZE.read(&properties).unwrap_err().to_string();
        assert_eq!(error, "property read.split.target-size: \"many\": invalid digit found in string");
        assert!(!GC_ENABLED.read(&properties));
        assert!(MANIFEST_MERGE_ENABLED.read(&properties));
        assert_eq!(ORC_BLOOM_FILTER_FPP.read(&properties), Ok(0.5));
        assert_eq!(METADATA_COMPRESSION.read(&properties), "gzip");
        assert_eq!(DEFAULT_FILE_FORMAT.read(&properties), "parquet");
    }
}
