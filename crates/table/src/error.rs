//! The one error type of this crate. Python's exceptions are chosen by its variants.

use icefield_format::limits::MEMORY_VARIABLE;

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Corrupt, invalid or unsupported by the format itself.
    #[error(transparent)]
    Format(#[from] icefield_format::Error),
    /// No object at a path.
    #[error("{path}: not found")]
    NotFound {
        /// The path as it was asked for.
        path: String,
    },
    /// An object that should have been created exists.
    #[error("{path}: exists already")]
    AlreadyExists {
        /// The path as it was asked for.
        path: String,
    },
    /// A store failed: network, permission, disk. Whether a write took effect is not known.
    #[error("{path}: cannot {operation}: {message}")]
    Storage {
        /// The path as it was asked for.
        path: String,
        /// What was tried: `read`, `write`, …
        operation: &'static str,
        /// What the store said; never with credentials.
        message: String,
    },
    /// An object that is longer than what is read of its kind; nothing of it was read.
    #[error(
        "{path}: has {length} bytes, and at most {most} are read of such a file; if you trust it, raise this limit with \
         {}=BYTES",
        MEMORY_VARIABLE
    )]
    TooLong {
        /// The path as it was asked for.
        path: String,
        /// Its bytes.
        length: u64,
        /// Bytes that are read at the most.
        most: u64,
    },
    /// An argument that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// Allowed by the specification, but not built here; names the thing.
    #[error("{0}")]
    Unsupported(String),
    /// Data given to a writer that do not fit the table's schema; names the column and what to do.
    #[error("column {column}: {message}")]
    Column {
        /// Path of the column in the table's schema, or in the data where the schema lacks it.
        column: String,
        /// What is wrong and how to mend it.
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
        /// What its reader said.
        message: String,
    },
    /// The commit lost to another one and will not land; files it wrote are gone.
    #[error("commit failed: {0}")]
    CommitFailed(String),
    /// Whether the commit landed is unknown; nothing was deleted.
    #[error("commit state unknown: {message}")]
    CommitStateUnknown {
        /// What was to be committed.
        commit: Box<UnknownCommit>,
        /// What happened.
        message: String,
        /// The exception of the catalog, or what the caller ended the checks with.
        cause: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// Another table has taken the place of the one that was opened; nothing was changed.
    #[error(
        "the table was replaced: it was opened with uuid {expected}, but the catalog now has a table with uuid {found} \
         under this name ({location}): load it again"
    )]
    TableReplaced {
        /// The uuid of the table that was opened.
        expected: String,
        /// The uuid of the table that is there now, or `none`.
        found: String,
        /// Its metadata file.
        location: String,
    },
    /// An operation whose conditions the table does not meet.
    #[error("{0}")]
    Validation(String),
    /// Of an ORC file that belongs to no table.
    #[error("{0}")]
    Orc(#[source] icefield_orc::Error),
    /// An exception of a caller's callback, passed through as it is.
    #[error("{0}")]
    Callback(Box<dyn std::error::Error + Send + Sync>),
    /// A catalog's refusal, passed through as it is: it has certainly changed nothing.
    #[error("{0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The caller ended the call (Ctrl-C), or a callback was stopped before it had any effect.
    #[error("{0}")]
    Interrupted(Box<dyn std::error::Error + Send + Sync>),
    /// A defect of this library.
    #[error("internal error: {0}")]
    Internal(String),
}

/// A commit that may have landed or not: what is needed to find that out later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownCommit {
    /// Snapshot to look for in the table's history, if the commit makes one.
    pub snapshot_id: Option<i64>,
    /// Files that were written for it, but for its metadata file; a table that has the snapshot needs them.
    pub files: Vec<String>,
    /// The metadata file that it was made of.
    pub base: Option<String>,
    /// The metadata file that was to follow; none where the catalog writes it.
    pub location: Option<String>,
}

impl Error {
    /// An argument that cannot be.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Something that is not built here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::Unsupported(message.into())
    }

    /// Data that do not fit a column.
    pub fn column(column: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Column { column: column.into(), message: message.into() }
    }

    /// A file whose content is wrong.
    pub fn corrupt_file(path: impl Into<String>, message: impl std::fmt::Display) -> Self {
        Self::CorruptFile { path: path.into(), message: message.to_string() }
    }

    /// What the reader of an ORC file said, with the file; an error of the storage, or of a filter, is returned as itself.
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

    /// The same error, with the file it was met in where its place lacks one.
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
