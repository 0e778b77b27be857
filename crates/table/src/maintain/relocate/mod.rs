//! Copies of a table with its history at another location: Java's `rewrite_table_path`, and the copy itself.
//!
//! Metadata files, manifest lists, manifests, position delete files and deletion vectors have absolute paths in them,
//! so a copy of the files alone would still read those of the source. They are written again with other paths, and all
//! other files are copied as they are. Nothing of the source changes.

mod content;
mod deletes;
mod plan;
mod prefix;
mod run;
mod versions;

pub use run::{PathRewrite, PathsRewritten, TableCopied, TableCopy, copy_table, rewrite_table_path};
