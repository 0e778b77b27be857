//! Errors from a server.

use std::fmt;

use super::form::messages;

messages! {
    /// Description of an error.
    ErrorModel, "an error" {
        /// Message for people.
        message: String = "message";
        /// The kind of error, such as `NoSuchNamespaceException`.
        kind: String = "type";
        /// The HTTP status.
        code: i32 = "code";
        /// Stack trace in the server.
        stack: Option<Vec<String>> = "stack";
    }

    /// Body of every error response.
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
