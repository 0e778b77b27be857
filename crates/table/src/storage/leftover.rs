//! What could not be deleted.

use super::Storage;
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

impl Storage {
    /// Deletes files that nothing uses and says so in the log. What cannot be deleted stays as an orphan.
    pub fn discard(&self, paths: &[String], what: &str) {
        let Some(first) = paths.first() else { return };
        let errors = self.delete_all(paths);
        let deleted = paths.len().saturating_sub(errors.len());
        log::info!("deleted {deleted} of {} {what}, such as {first}", paths.len());
        if let Some(error) = errors.first() {
            log::warn!("{} {what} could not be deleted, and stay as orphans: {error}", errors.len());
        }
    }
}
