//! Laws of what a plan skips: no file with a matching row is missing, and what is left to test of its rows is right.
//!
//! Most tables are manifests without data files. Their rows lie at the extremes of their types; bounds, summaries and
//! partition values come from the rows by rules of these tests, in the forms of several writers, and the answers of
//! filters likewise.

mod draw;
mod filters;
mod laws;
mod parquet;
mod rows;
mod stored;
mod values;
mod world;
