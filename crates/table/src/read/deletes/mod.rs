//! Deleted rows, by the kind of the delete file.

pub mod vectors;
