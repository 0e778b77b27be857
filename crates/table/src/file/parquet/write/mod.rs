//! Writes Parquet data files, their schema and their options.

mod dictionary;
pub(super) mod late;
pub(super) mod options;
mod schema;
mod shredding;
mod uuids;
pub(super) mod writer;
