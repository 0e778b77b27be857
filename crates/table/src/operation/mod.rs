//! Operations on a table. Each file has the steps of one operation, built on planning, reading, writing and committing.

pub mod add_files;
mod condition;
pub mod create;
pub mod diff;
mod files;
pub mod keyed_batch;
pub mod merge;
pub mod migrate;
pub mod replace;
mod rows;
pub mod upsert;

pub use files::{
    append, cherry_pick, delete, overwrite, replace_partitions, rewrite_files, rewrite_manifests, row_delta,
};
pub(crate) use rows::rewrite_groups;
pub use rows::{delete_rows, distributed, matching, overwrite_rows, replace_rows, row_change};
