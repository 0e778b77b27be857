//! Reads tasks to Arrow batches ("Column Projection", "Scan Planning").
//!
//! A [file](crate::file) has columns and returns batches of some of them. [`columns`] decides where each selected
//! value comes from, and [`reshape`] applies this. [`task`] combines them for the files of one task. [`scan`] is the
//! path from a scan to rows, and [`row_scan`] chooses which rows of a table these are. A new projection rule is a
//! line in [`columns::Rules`].

pub mod changelog;
pub mod columns;
pub mod deletes;
pub(crate) mod file_columns;
pub mod options;
pub mod orc_filter;
pub mod promote;
pub mod reshape;
mod row_ranges;
pub mod row_scan;
pub mod scan;
pub mod task;
pub mod wire;
