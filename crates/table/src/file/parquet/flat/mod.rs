//! Decodes flat string, binary, boolean and numeric columns, instead of the parquet crate.

pub(super) mod booleans;
pub(super) mod byte_arrays;
pub(super) mod column;
pub(super) mod hybrid;
pub(super) mod numbers;
pub(super) mod runs;
