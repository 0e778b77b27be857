//! Operations on files and manifests named by the caller: appends, deletes, overwrites, rewrites and cherry-picks. They
//! do not read rows.

pub mod append;
pub mod cherry_pick;
pub mod delete;
pub mod overwrite;
pub mod replace_partitions;
pub mod rewrite_files;
pub mod rewrite_manifests;
pub mod row_delta;
