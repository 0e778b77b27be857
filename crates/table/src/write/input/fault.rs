//! Faults in rows to be written, from where they are found to the row of the input.

use crate::error::Error;

/// A value that does not fit.
#[derive(Debug, PartialEq)]
pub(super) enum Misfit {
    /// Its index in the array, and what it is.
    Row(usize, String),
    /// An error without a known position.
    Other(String),
}

impl From<String> for Misfit {
    fn from(message: String) -> Self {
        Self::Other(message)
    }
}

/// Why rows cannot be stored.
#[derive(Debug)]
pub(super) enum Fault {
    /// A fault in one row.
    Row {
        /// Full name of the column, or of the nested field.
        column: String,
        /// Index in the array being checked; in the end, the row of the batch.
        row: usize,
        /// What is wrong.
        wrong: Wrong,
    },
    /// Anything else.
    Other(Error),
}

/// What is wrong with a value.
#[derive(Debug, PartialEq)]
pub(super) enum Wrong {
    /// It is null in a required column.
    Null,
    /// A description of the value.
    Value(String),
}

impl Fault {
    /// A fault in a column's value.
    pub(super) fn of_column(column: &str, misfit: Misfit) -> Self {
        match misfit {
            Misfit::Row(row, what) => Self::Row { column: column.to_owned(), row, wrong: Wrong::Value(what) },
            Misfit::Other(message) => Self::Other(Error::column(column, message)),
        }
    }

    /// The same fault in the enclosing value: in the list that contains an element.
    pub(super) fn around(self, outer: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::Row { column, row, wrong } => Self::Row { column, row: outer(row), wrong },
            other => other,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// Counts the rows of one writer, so that errors name the row of the whole input.
#[derive(Debug, Default)]
pub(super) struct RowCount {
    before: u64,
    task: Option<u32>,
}

impl RowCount {
    /// For a whole write, or for one task of a distributed one, since no task knows the rows of others.
    pub(super) fn of(task: Option<u32>) -> Self {
        Self { before: 0, task }
    }

    /// Advances by `rows`.
    pub(super) fn add(&mut self, rows: usize) {
        self.before = self.before.saturating_add(rows as u64);
    }

    /// The error of a batch that starts at the current row.
    pub(super) fn error(&self, fault: Fault) -> Error {
        match fault {
            Fault::Other(error) => error,
            Fault::Row { column, row, wrong } => {
                let row = self.before.saturating_add(row as u64);
                let place = match self.task {
                    Some(task) => format!("row {row} of task {task}"),
                    None => format!("row {row}"),
                };
                Error::column(
                    column,
                    match (wrong, self.task) {
                        (Wrong::Value(what), _) => format!("{place} {what}"),
                        (Wrong::Null, Some(_)) => format!("required, but {place} is null"),
                        (Wrong::Null, None) => format!("required, but {place} of the data is null"),
                    },
                )
            }
        }
    }
}
