//! The error type of this crate: what is wrong, and where.

use std::fmt;

/// Result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error. Callers that know the file add its name with [`Error::in_file`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes or JSON that violate the specification.
    #[error("{0}")]
    Corrupt(Box<Corrupt>),
    /// An argument or an operation that the specification does not allow.
    #[error("{0}")]
    Invalid(String),
    /// A schema, spec, sort order or expression that does not fit what it is used with.
    #[error("{0}")]
    Unfit(String),
    /// Valid in this or a later version of the specification, but not implemented.
    #[error("{0}")]
    Unsupported(String),
    /// A value in a column for which an operation is not defined.
    #[error("{message} (row {row})")]
    Value {
        /// Row of the value, from 0.
        row: usize,
        /// What is wrong; includes the value.
        message: String,
    },
    /// A commit requirement that the current metadata does not meet (REST protocol, `TableRequirement`).
    #[error("{0}")]
    RequirementFailed(String),
}

/// Place and cause of corrupt input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The file, if known.
    pub file: Option<String>,
    /// Place in the input: a JSON path (`/schemas/0/fields/2`), a part (`manifest block 3`) or a field path.
    pub place: String,
    /// Byte offset in the input, if known.
    pub offset: Option<u64>,
    /// Message of one sentence.
    pub message: String,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if !self.place.is_empty() {
            write!(f, "{}", self.place)?;
        }
        match self.offset {
            Some(offset) if self.place.is_empty() => write!(f, "at byte {offset}: ")?,
            Some(offset) => write!(f, " at byte {offset}: ")?,
            None if self.place.is_empty() => {}
            None => write!(f, ": ")?,
        }
        write!(f, "{}", self.message)
    }
}

impl Error {
    /// Creates an error for corrupt input at a named place.
    pub fn corrupt(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt(Box::new(Corrupt { file: None, place: place.into(), offset: None, message: message.into() }))
    }

    /// Creates an error for corrupt input at a byte offset in a named part.
    pub fn corrupt_at(place: impl Into<String>, offset: u64, message: impl Into<String>) -> Self {
        Self::Corrupt(Box::new(Corrupt {
            file: None,
            place: place.into(),
            offset: Some(offset),
            message: message.into(),
        }))
    }

    /// Creates an error for an argument or operation that is not allowed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Creates an error for a schema, spec, sort order or expression that does not fit what it is used with.
    pub fn unfit(message: impl Into<String>) -> Self {
        Self::Unfit(message.into())
    }

    /// Creates an error for something that is not implemented.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Adds the name of the file, unless the error already has one.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        if let Self::Corrupt(corrupt) = &mut self {
            corrupt.file.get_or_insert_with(|| name.to_owned());
        }
        self
    }

    /// Prefixes the place with that of the outer value: `outer` is put before it (`"/schemas/0"` + `"/fields/2"`).
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        if let Self::Corrupt(corrupt) = &mut self {
            corrupt.place.insert_str(0, outer);
        }
        self
    }
}
