//! What could not be deleted.

use crate::error::Error;

/// Failures whose messages are kept.
const MESSAGES: usize = 5;

/// What could not be read or deleted of files that were to go.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Files that could not be read, whose own files may be left, and files that could not be deleted.
    pub failures: usize,
    /// What the first of them said.
    pub first: Vec<String>,
}

impl Leftover {
    /// Counts a failure, and keeps what it says if it is one of the first.
    pub fn add(&mut self, error: &Error) {
        self.failures += 1;
        if self.first.len() < MESSAGES {
            self.first.push(error.to_string());
        }
    }
}
