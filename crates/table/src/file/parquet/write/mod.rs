//! Writes Parquet data files, their schema and their options.

mod dictionary;
pub(super) mod options;
mod schema;
mod uuids;
pub(super) mod writer;
