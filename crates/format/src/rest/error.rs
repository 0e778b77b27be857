//! Errors of a server.

use std::fmt;

use super::form::messages;

messages! {
    /// What went wrong.
    ErrorModel, "an error" {
        /// For people.
        message: String = "message";
        /// The kind of error, such as `NoSuchNamespaceException`.
        kind: String = "type";
        /// The HTTP status.
        code: i32 = "code";
        /// Where it happened in the server.
        stack: Option<Vec<String>> = "stack";
    }

    /// The body of every answer that is an error.
    ErrorResponse, "an error response" {
        /// The error.
        error: ErrorModel = "error";
    }
}

impl fmt::Display for ErrorModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.kind, self.code, self.message)
    }
}
