//! Reports files that could not be deleted.

use super::Storage;
use crate::error::Error;

/// Maximum number of messages kept.
const MESSAGES: usize = 5;

/// The failures of an operation that deletes files.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Number of files that could not be deleted, or not be read to find the files they reference.
    pub failures: usize,
    /// Messages of the first failures.
    pub first: Vec<String>,
}

impl Leftover {
    /// Counts a failure, and keeps its message if it is one of the first.
    pub fn add(&mut self, error: &Error) {
        self.failures += 1;
        if self.first.len() < MESSAGES {
            self.first.push(error.to_string());
        }
    }
}

impl Storage {
    /// Deletes unused files and logs this. A file that cannot be deleted remains as an orphan.
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
