//! A value of a file, and the rules by which it is converted.

use crate::types::StringForm;

/// What becomes of values that the type asked for cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// They are read as null, and text that is too long is cut, as by orc-core.
    #[default]
    Null,
    /// They are an [`Error::Value`].
    Error,
}

/// How values are converted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub overflow: Overflow,
    pub strings: StringForm,
}

/// A value of the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Boolean(bool),
    Long(i64),
    Double(f64),
    /// An unscaled value and its scale.
    Decimal(i128, u8),
    Text(&'a [u8]),
    Binary(&'a [u8]),
    /// Nanoseconds since 1970, and whether it is an instant.
    Time(i128, bool),
    Date(i64),
}
