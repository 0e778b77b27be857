//! The delete files of a plan: which apply to which data files ("Scan Planning"), linked as runs of shared lists.

pub mod delete_parts;
mod index;
pub mod links;
pub(crate) mod of_key;
mod overlap;

pub(crate) use index::partition_key;
pub use index::{DeleteFile, DeleteIndex, DeleteKind, Deletes, Source};
