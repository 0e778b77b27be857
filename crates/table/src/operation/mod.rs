//! What can be done to a table as a whole: each file has the steps of one operation, made of those for planning,
//! reading, writing and committing.

pub mod add_files;
pub mod append;
pub mod cherry_pick;
pub mod create;
pub mod delete;
pub mod overwrite;
pub mod replace;
pub mod replace_partitions;
pub mod rewrite_files;
pub mod rewrite_manifests;
pub mod row_delta;
