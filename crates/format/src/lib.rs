//! What the bytes and words of the Apache Iceberg table specification mean, in versions 1, 2 and 3.
//!
//! Bytes and Arrow arrays in, values and Arrow arrays out. There is no I/O here, no thread, no async and no clock: whoever
//! calls brings the bytes and the time. Each module is a thing of the specification and names its section.

pub mod avro;
pub mod error;
pub mod expr;
pub mod json;
pub mod limits;
pub mod manifest;
pub mod metadata;
pub mod nearest;
pub mod puffin;
pub mod rest;
pub mod spec;
pub mod transform;
pub mod types;
pub mod value;
pub mod version;

pub use error::{Error, Result};
pub use limits::Limits;
pub use version::FormatVersion;
