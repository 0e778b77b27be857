//! What the metadata alone says of a plan: row counts, exact bounds, files whose rows all match, and whether a filter could skip
//! files.

pub mod bounds;
pub mod count;
mod skippable;
mod whole;
