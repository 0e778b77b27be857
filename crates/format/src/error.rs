//! The one error type of this crate: what is wrong, and where.

use std::fmt;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Callers that know the file add it with [`Error::in_file`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes or JSON that violate the specification.
    #[error("{0}")]
    Corrupt(Box<Corrupt>),
    /// An argument or an operation that the specification does not allow.
    #[error("{0}")]
    Invalid(String),
    /// A schema, spec, order or expression that does not fit what it is used with.
    #[error("{0}")]
    Unfit(String),
    /// Valid under this or a newer specification, but not implemented.
    #[error("{0}")]
    Unsupported(String),
    /// A value of a column for which an operation on the column is not defined.
    #[error("{message} (row {row})")]
    Value {
        /// Where it stands, from 0.
        row: usize,
        /// What is wrong; names the value.
        message: String,
    },
    /// A commit requirement that the current metadata does not meet (REST protocol, `TableRequirement`).
    #[error("{0}")]
    RequirementFailed(String),
}

/// The place and the cause of corrupt input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The file, where the caller knows it.
    pub file: Option<String>,
    /// Where in the input: a JSON path (`/schemas/0/fields/2`), a part (`manifest block 3`), a field path.
    pub place: String,
    /// Byte offset in the input, where there is one.
    pub offset: Option<u64>,
    /// One sentence.
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
    /// Corrupt input at a named place.
    pub fn corrupt(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt(Box::new(Corrupt { file: None, place: place.into(), offset: None, message: message.into() }))
    }

    /// Corrupt input at a byte offset of a named part.
    pub fn corrupt_at(place: impl Into<String>, offset: u64, message: impl Into<String>) -> Self {
        Self::Corrupt(Box::new(Corrupt {
            file: None,
            place: place.into(),
            offset: Some(offset),
            message: message.into(),
        }))
    }

    /// An argument or operation that is not allowed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// A schema, spec, order or expression that does not fit what it is used with.
    pub fn unfit(message: impl Into<String>) -> Self {
        Self::Unfit(message.into())
    }

    /// Something that is not implemented.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// The same error, with the name of the file; the name of an inner file is kept.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        if let Self::Corrupt(corrupt) = &mut self {
            corrupt.file.get_or_insert_with(|| name.to_owned());
        }
        self
    }

    /// The same error, one step further out: `outer` is put before the place (`"/schemas/0"` + `"/fields/2"`).
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        if let Self::Corrupt(corrupt) = &mut self {
            corrupt.place.insert_str(0, outer);
        }
        self
    }
}
