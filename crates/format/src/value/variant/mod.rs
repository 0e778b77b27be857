//! Variant values (Parquet's `VariantEncoding.md`, version 1): two byte strings that hold a value of any type.
//!
//! [`metadata`] is the dictionary of field names, [`node`] decodes a value, [`encode`] encodes one, [`tree`] builds
//! values, [`shape`] says what variants are shredded as and [`infer`] finds it from their values, [`json`] and [`human`]
//! format them, [`parse`] reads JSON, [`path`] finds a value inside another, and [`column`] is the Arrow form.
//! Offsets and counts are never trusted, and nesting is limited to [`DEPTH`], as in the Java library.

pub mod column;
pub mod encode;
pub mod human;
pub mod infer;
pub mod json;
pub mod metadata;
pub mod node;
pub mod parse;
pub mod path;
pub mod shape;
pub mod tree;

pub use column::Column;
pub use metadata::Metadata;
pub use node::{Elements, Node, Object, Variant};
pub use path::Path;
pub use shape::{Kind, Shape};
pub use tree::Tree;

use crate::error::{Error, Result};

/// Maximum nesting of objects and arrays (the Java library's `MAX_VARIANT_DEPTH`).
pub const DEPTH: usize = 1000;

/// Reads an unsigned little-endian number of one to four bytes.
fn unsigned(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    let number = bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    usize::try_from(number).ok()
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::corrupt("", message)
}

/// Decodes UTF-8, the encoding of all strings in a variant.
fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str> {
    simdutf8::basic::from_utf8(bytes).map_err(|_| corrupt(format!("{what} is not UTF-8")))
}
