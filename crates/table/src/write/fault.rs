//! What is wrong with rows to be written, on its way from where it was found to the row of the input that has it.

use crate::error::Error;

/// A value that does not fit.
#[derive(Debug, PartialEq)]
pub(super) enum Misfit {
    /// Its place in the array, and what it is or has.
    Row(usize, String),
    /// Something that no place is known of.
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
    /// A value of one row.
    Row {
        /// Full name of the column, or of the part of one, that the value is of.
        column: String,
        /// Place in the array that was looked at: at the end, the row of the batch.
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
    /// It is null, and must not be.
    Null,
    /// What the row is said to be or to have.
    Value(String),
}

impl Fault {
    /// Of a column's value.
    pub(super) fn of_column(column: &str, misfit: Misfit) -> Self {
        match misfit {
            Misfit::Row(row, what) => Self::Row { column: column.to_owned(), row, wrong: Wrong::Value(what) },
            Misfit::Other(message) => Self::Other(Error::column(column, message)),
        }
    }

    /// The same fault of what is around the values: of the list that has an element.
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

/// The rows of one writer, counted as they come: errors name the row of its whole input.
#[derive(Debug, Default)]
pub(super) struct RowCount {
    before: u64,
    task: Option<u32>,
}

impl RowCount {
    /// Of a whole write, or of one task of a distributed one: no task knows what rows others have.
    pub(super) fn of(task: Option<u32>) -> Self {
        Self { before: 0, task }
    }

    /// Goes on behind so many rows.
    pub(super) fn add(&mut self, rows: usize) {
        self.before = self.before.saturating_add(rows as u64);
    }

    /// The error of a batch that begins here.
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
