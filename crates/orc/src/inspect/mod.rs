//! Describes the contents of a file for people and tools: its metadata as JSON, the chunks and runs of its streams.

mod filters;
mod json;
mod streams;

pub use filters::{Lacking, lacking};
pub use json::{describe, message, messages};
pub(crate) use streams::report;
