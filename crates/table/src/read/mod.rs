//! Tasks to Arrow batches ("Column Projection", "Scan Planning").
//!
//! A [file](crate::file) has columns and batches of some of them; [`columns`] decides where every wanted value comes
//! from, [`reshape`] applies that, [`task`] puts them together for the files of one task, and [`scan`] is the path from a scan to
//! rows,
//! [`row_scan`] says which rows of a table those are. A new rule is a line in [`columns::Rules`].

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
