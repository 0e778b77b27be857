//! Tasks to Arrow batches ("Column Projection", "Scan Planning").
//!
//! A format gives a file's columns and the batches of some of them ([`parquet`], [`orc`]); [`columns`] decides where every wanted
//! value comes from, [`metadata_columns`] what those have that no file stores, [`reshape`] applies that, [`task`] puts them together
//! for the files of one task, [`stream`] runs many, and [`scan`] is the path from a scan to rows. A new rule is a line in
//! [`columns::Rules`], a new format a file beside these.

pub mod columns;
pub mod constant;
pub mod engine;
pub mod metadata_columns;
pub mod orc;
pub mod orc_ahead;
pub mod orc_filter;
pub mod orc_predicate;
pub mod parquet;
pub mod promote;
pub mod reshape;
pub mod row_groups;
pub mod scan;
pub mod stream;
pub mod task;
pub mod wire;
