//! Laws of pruning: a plan has all files with matching rows, and their residuals are right.
//!
//! Most tables have manifests but no data files. Their rows have values at the extremes of the types. The tests have
//! their own rules to compute bounds, summaries and partition values, in the forms of several writers, and to evaluate
//! filters.

mod draw;
mod filters;
mod laws;
mod parquet;
mod rows;
mod stored;
mod values;
mod world;
