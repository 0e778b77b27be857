//! Implements the Apache Iceberg table specification, versions 1, 2 and 3.
//!
//! Input is bytes and Arrow arrays, output is values and Arrow arrays. There is no I/O, no thread, no async and no
//! clock: the caller supplies the bytes and the time. Each module implements a part of the specification and names its
//! section.
//!
//! ```
//! use icefield_format::expr::Expr;
//! use icefield_format::transform::Transform;
//! use icefield_format::types::{Field, PrimitiveType, Schema};
//! use icefield_format::value::Value;
//!
//! let schema = Schema::new(0, vec![Field::required(1, "id", PrimitiveType::Long)])?;
//! let filter = Expr::parse("id > 5 AND id < 40")?.bind(&schema, true)?;
//! assert!(filter.matches(&[Some(Value::Long(34))]));
//!
//! // The specification hashes the long 34 to 2017239379.
//! let bucket: Transform = "bucket[16]".parse()?;
//! let partition = bucket.apply(&PrimitiveType::Long.into(), Some(&Value::Long(34)))?;
//! assert_eq!(partition, Some(Value::Int(2_017_239_379 % 16)));
//! # Ok::<(), icefield_format::Error>(())
//! ```

#![deny(missing_docs, unreachable_pub)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod avro;
pub mod encryption;
pub mod error;
pub mod evolution;
pub mod expr;
pub mod json;
pub mod limits;
pub mod manifest;
pub mod metadata;
pub mod nearest;
mod primitive;
pub mod puffin;
pub mod rest;
pub mod secret;
pub mod spec;
pub mod transform;
pub mod types;
pub mod value;
pub mod version;

pub use error::{Error, Result};
pub use limits::Limits;
pub use version::FormatVersion;
