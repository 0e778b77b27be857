//! Decodes flat string, binary, boolean and numeric columns, instead of the parquet crate.

mod bits;
pub(super) mod booleans;
pub(super) mod byte_arrays;
pub(super) mod column;
pub(super) mod hybrid;
mod nulls;
pub(super) mod numbers;
pub(super) mod runs;
