//! What can be done to a table as a whole: each file has the steps of one operation, made of those for planning,
//! reading, writing and committing.

pub mod add_files;
pub mod append;
mod checked_rows;
pub mod cherry_pick;
mod compared;
pub mod create;
pub mod delete;
pub mod delete_rows;
mod differences;
pub mod keyed_batch;
pub mod matching;
pub mod merge;
pub mod migrate;
pub mod overwrite;
pub mod overwrite_rows;
mod places;
pub mod replace;
pub mod replace_partitions;
pub mod replace_rows;
pub mod rewrite_files;
mod rewrite_groups;
pub mod rewrite_manifests;
pub mod row_change;
mod row_condition;
pub mod row_delta;
pub mod upsert;
mod widened;
