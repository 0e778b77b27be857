//! The error type of this crate. Its variants map to Python's exceptions.

use icefield_format::limits::MEMORY_VARIABLE;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error and its place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Corrupt, invalid or unsupported by the format itself.
    #[error(transparent)]
    Format(#[from] icefield_format::Error),
    /// No object at a path.
    #[error("{path}: not found")]
    NotFound {
        /// The path as requested.
        path: String,
    },
    /// An object that should have been created exists already.
    #[error("{path}: exists already")]
    AlreadyExists {
        /// The path as requested.
        path: String,
    },
    /// A store failed: network, permission, disk. It is unknown whether a write took effect.
    #[error("{path}: cannot {operation}: {message}")]
    Storage {
        /// The path as requested.
        path: String,
        /// The attempted operation: `read`, `write`, …
        operation: &'static str,
        /// The store's message, without credentials.
        message: String,
    },
    /// An object larger than the limit for its kind; nothing was read.
    #[error(
        "{path}: has {length} bytes, and at most {most} are read of such a file; if you trust it, raise this limit with \
         {}=BYTES",
        MEMORY_VARIABLE
    )]
    TooLong {
        /// The path as requested.
        path: String,
        /// Its size in bytes.
        length: u64,
        /// The limit in bytes.
        most: u64,
    },
    /// An invalid argument.
    #[error("{0}")]
    Invalid(String),
    /// Allowed by the specification but not implemented; names the feature.
    #[error("{0}")]
    Unsupported(String),
    /// Data for a writer that does not fit the table's schema; names the column and what to do.
    #[error("column {column}: {message}")]
    Column {
        /// Path of the column in the table's schema, or in the data if the schema lacks it.
        column: String,
        /// What is wrong and how to fix it.
        message: String,
    },
    /// Several columns of the data that do not fit.
    #[error("{} columns do not fit:\n  {}", .0.len(), .0.join("\n  "))]
    Columns(Vec<String>),
    /// A data file that cannot be decoded.
    #[error("{path}: {message}")]
    CorruptFile {
        /// The file.
        path: String,
        /// The reader's message.
        message: String,
    },
    /// The commit lost to another one and will not succeed; its files were deleted.
    #[error("commit failed: {0}")]
    CommitFailed(String),
    /// It is unknown whether the commit succeeded; nothing was deleted.
    #[error("commit state unknown: {message}")]
    CommitStateUnknown {
        /// The commit.
        commit: Box<UnknownCommit>,
        /// The cause.
        message: String,
        /// The exception of the catalog, or the one with which the caller ended the checks.
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Another table now has the name of the opened one; nothing was changed.
    #[error(
        "the table was replaced: it was opened with uuid {expected}, but the catalog now has a table with uuid {found} \
         under this name ({location}): load it again"
    )]
    TableReplaced {
        /// The uuid of the opened table.
        expected: String,
        /// The uuid of the current table, or `none`.
        found: String,
        /// Its metadata file.
        location: String,
    },
    /// An operation whose conditions the table does not meet.
    #[error("{0}")]
    Validation(String),
    /// An error of an ORC file without a table.
    #[error("{0}")]
    Orc(#[source] icefield_orc::Error),
    /// An exception of a caller's callback, unchanged.
    #[error("{0}")]
    Callback(Box<dyn std::error::Error + Send + Sync>),
    /// A catalog's refusal, unchanged: it has certainly changed nothing.
    #[error("{0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The caller ended the call (Ctrl-C), or a callback was stopped before it had an effect.
    #[error("{0}")]
    Interrupted(Box<dyn std::error::Error + Send + Sync>),
    /// A bug in this library.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A commit that may or may not have succeeded, with what is needed to find out later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownCommit {
    /// Snapshot to look for in the table's history, if the commit makes one.
    pub snapshot_id: Option<i64>,
    /// Files written for it, except its metadata file; a table with the snapshot needs them.
    pub files: Vec<String>,
    /// The metadata file it was based on.
    pub base: Option<String>,
    /// The metadata file it would write; `None` if the catalog writes it.
    pub location: Option<String>,
}

impl Error {
    /// An invalid argument.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// A feature that is not implemented.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Data that does not fit a column.
    pub fn column(column: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Column { column: column.into(), message: message.into() }
    }

    /// A file with invalid content.
    pub fn corrupt_file(path: impl Into<String>, message: impl std::fmt::Display) -> Self {
        Self::CorruptFile { path: path.into(), message: message.to_string() }
    }

    /// An error of the ORC reader, with the file; errors of the storage or of a filter are returned unchanged.
    pub fn of_orc(path: &str, error: icefield_orc::Error) -> Self {
        use icefield_orc::Error as Orc;
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(Orc::External(cause)) => Self::Callback(cause),
            Err(Orc::Io(cause)) => {
                Self::Storage { path: path.to_owned(), operation: "read", message: cause.to_string() }
            }
            Err(Orc::Unsupported(message)) => Self::unsupported(format!("{path}: {message}")),
            Err(Orc::Corrupt(corrupt)) => {
                let icefield_orc::Corrupt { place, offset, message, .. } = *corrupt;
                let file = Some(path.to_owned());
                let corrupt = icefield_format::error::Corrupt { file, place, offset, message };
                Self::Format(icefield_format::Error::Corrupt(Box::new(corrupt)))
            }
            Err(other) => Self::corrupt_file(path, other),
        }
    }

    /// The same error with the file, if its place lacks one.
    #[must_use]
    pub fn in_file(self, path: &str) -> Self {
        match self {
            Self::Format(icefield_format::Error::Unsupported(message)) => {
                Self::unsupported(format!("{path}: {message}"))
            }
            Self::Format(error) => Self::Format(error.in_file(path)),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use icefield_format::error::Corrupt;

    use super::*;

    #[test]
    fn damage_of_an_orc_file_keeps_its_place() {
        let damage = icefield_orc::Error::corrupt_at("stripe 3 footer", 17, "truncated");
        let Error::Format(icefield_format::Error::Corrupt(corrupt)) = Error::of_orc("a/b.orc", damage) else {
            panic!("not an error with a place")
        };
        let expected = Corrupt {
            file: Some("a/b.orc".to_owned()),
            place: "stripe 3 footer".to_owned(),
            offset: Some(17),
            message: "truncated".to_owned(),
        };
        assert_eq!(*corrupt, expected);
        assert_eq!(corrupt.to_string(), "a/b.orc: stripe 3 footer at byte 17: truncated");
    }

    #[test]
    fn errors_of_our_own_pass_through_the_orc_reader() {
        let own = icefield_orc::Error::external(Error::Validation("no".to_owned()));
        assert!(matches!(Error::of_orc("a", own), Error::Validation(message) if message == "no"));
    }
}
