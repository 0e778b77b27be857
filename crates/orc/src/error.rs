//! The one error type of this crate: what is wrong, and where.

use std::fmt;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Callers that know the file add it with [`Error::in_file`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that do not mean what the specification says they should.
    #[error("{0}")]
    Corrupt(Box<Corrupt>),
    /// An argument or an operation that the specification or the file's schema does not allow.
    #[error("{0}")]
    Invalid(String),
    /// Valid by the specification (or by a newer one), but not built here.
    #[error("{0}")]
    Unsupported(String),
    /// More than [`crate::Limits`] allow.
    #[error("{0}")]
    Limit(String),
    /// A value that the wanted Arrow type cannot hold.
    #[error("{0}")]
    Value(String),
    /// The source of the bytes failed.
    #[error("{0}")]
    Io(String),
}

/// The place and the cause of corrupt input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The file, where the caller knows it.
    pub file: Option<String>,
    /// Where in the file: a part (`postscript`, `stripe 3 footer`) or a stream (`stripe 3, column 5 LENGTH`).
    pub place: String,
    /// Byte offset in that part, where there is one.
    pub offset: Option<u64>,
    /// One sentence.
    pub message: String,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        write!(f, "{}", self.place)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        if !self.place.is_empty() || self.offset.is_some() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

impl Error {
    /// Corrupt input at a named place.
    pub fn corrupt(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Corrupt(Box::new(Corrupt { file: None, place: place.into(), offset: None, message: message.into() }))
    }

    /// Corrupt input at a byte offset of a named part.
    pub fn corrupt_at(place: impl Into<String>, offset: u64, message: impl Into<String>) -> Self {
        let (place, message) = (place.into(), message.into());
        Self::Corrupt(Box::new(Corrupt { file: None, place, offset: Some(offset), message }))
    }

    /// An argument or operation that is not allowed.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Something that is not built here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Something beyond a limit.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::Limit(message.into())
    }

    /// A value that the wanted type cannot hold.
    pub fn value(message: impl Into<String>) -> Self {
        Self::Value(message.into())
    }

    /// The same error, with the file it was met in; an inner file name is kept.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Self {
        match &mut self {
            Self::Corrupt(corrupt) => {
                corrupt.file.get_or_insert_with(|| name.to_owned());
            }
            Self::Unsupported(text) | Self::Limit(text) | Self::Value(text) if !text.starts_with(name) => {
                text.insert_str(0, &format!("{name}: "));
            }
            _ => {}
        }
        self
    }

    /// The same error, one step further out: `outer` is put before the place (`stripe 3` + `column 5 DATA`).
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        match &mut self {
            Self::Corrupt(corrupt) if corrupt.place.is_empty() => corrupt.place.push_str(outer),
            Self::Corrupt(corrupt) => corrupt.place.insert_str(0, &format!("{outer}, ")),
            Self::Unsupported(text) | Self::Limit(text) | Self::Value(text) => {
                text.insert_str(0, &format!("{outer}: "))
            }
            Self::Invalid(_) | Self::Io(_) => {}
        }
        self
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error.to_string())
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Value(error.to_string())
    }
}
