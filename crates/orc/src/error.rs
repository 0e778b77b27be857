//! The error type of this crate, which says what is wrong and where.

use std::error::Error as StdError;
use std::fmt;
use std::io;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong. Callers that know the name of the file add it with [`Error::in_file`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that violate the specification.
    #[error("{0}")]
    Corrupt(Box<Corrupt>),
    /// An argument or an operation that the specification or the schema of the file does not allow.
    #[error("{0}")]
    Invalid(String),
    /// Something that the specification, or a newer one, allows and this crate does not support.
    #[error("{0}")]
    Unsupported(String),
    /// More than the [`Limits`](crate::Limits) allow.
    #[error("{0}")]
    Limit(String),
    /// A value that the Arrow type, or ORC, cannot hold.
    #[error("{0}")]
    Value(String),
    /// Bytes could not be read or written.
    #[error("{0}")]
    Io(#[source] io::Error),
    /// An error of the caller's own code: a [`Source`](crate::Source), a [`Sink`](crate::Sink), a
    /// [`RowFilter`](crate::RowFilter) or a provider of keys. It passes through unchanged; [`Error::downcast`] returns
    /// it.
    #[error("{0}")]
    External(#[source] Box<dyn StdError + Send + Sync>),
}

/// The place and the reason of corrupt input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// The name of the file, if the caller has added it.
    pub file: Option<String>,
    /// Where in the file: a part (`postscript`, `stripe 3 footer`) or a stream (`stripe 3, column 5 LENGTH`).
    pub place: String,
    /// Byte offset in that part, if known.
    pub offset: Option<u64>,
    /// The reason.
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

    /// Something that is not supported.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Something beyond a limit.
    pub fn limit(message: impl Into<String>) -> Self {
        Self::Limit(message.into())
    }

    /// A value that a type cannot hold.
    pub fn value(message: impl Into<String>) -> Self {
        Self::Value(message.into())
    }

    /// Bytes that could not be read or written.
    pub fn io(message: impl Into<String>) -> Self {
        Self::Io(io::Error::other(message.into()))
    }

    /// An error of the caller's own code, to be passed through.
    pub fn external(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::External(error.into())
    }

    /// The caller's own error, if this is one of type `E`; it may be wrapped in an [`io::Error`] of a
    /// [`Write`](io::Write).
    ///
    /// # Errors
    ///
    /// Any other error, unchanged.
    pub fn downcast<E: StdError + Send + Sync + 'static>(self) -> Result<E, Self> {
        match self {
            Self::External(cause) => cause.downcast().map(|own| *own).map_err(Self::External),
            Self::Io(cause) => cause.downcast().map_err(Self::Io),
            other => Err(other),
        }
    }

    /// Adds the name of the file; an existing name is kept.
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

    /// Adds an outer place: `outer` is put before the place (`stripe 3` + `column 5 DATA`).
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        match &mut self {
            Self::Corrupt(corrupt) if corrupt.place.is_empty() => corrupt.place.push_str(outer),
            Self::Corrupt(corrupt) => corrupt.place.insert_str(0, &format!("{outer}, ")),
            Self::Unsupported(text) | Self::Limit(text) | Self::Value(text) => {
                text.insert_str(0, &format!("{outer}: "))
            }
            Self::Invalid(_) | Self::Io(_) | Self::External(_) => {}
        }
        self
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<arrow_schema::ArrowError> for Error {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::ExternalError(cause) => Self::External(cause),
            other => Self::Value(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("row {0} is bad")]
    struct Own(u64);

    #[test]
    fn errors_of_the_caller_pass_through() {
        let arrow = arrow_schema::ArrowError::ExternalError(Box::new(Own(3)));
        let errors = [Error::external(Own(3)), Error::from(io::Error::other(Own(3))), Error::from(arrow)];
        for error in errors {
            assert_eq!(error.to_string(), "row 3 is bad");
            let error = error.within("stripe 0").in_file("a.orc").downcast::<fmt::Error>().unwrap_err();
            assert_eq!(error.downcast::<Own>().unwrap(), Own(3));
        }
        assert!(matches!(Error::invalid("x").downcast::<Own>(), Err(Error::Invalid(_))));
        let missing = Error::from(io::Error::from(io::ErrorKind::NotFound));
        let Err(Error::Io(cause)) = missing.downcast::<Own>() else { panic!("another error") };
        assert_eq!(cause.kind(), io::ErrorKind::NotFound);
    }
}
