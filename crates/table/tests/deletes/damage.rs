//! Delete files that are damaged, or are not what the manifest says.
