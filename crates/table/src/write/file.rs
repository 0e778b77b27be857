//! Data files in the making, whatever their format.

use std::fmt::Debug;

use arrow_array::RecordBatch;

use super::metrics::FileMetrics;
use crate::error::Result;

/// A file in the making. After an error it can only be given up.
pub trait FileWriter: Debug + Send {
    /// Appends batches; `side_by_side` encodes their columns on the pool, where the format lets columns be encoded apart.
    fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()>;
    /// Ends the open row group or stripe, so that its memory is free again.
    fn close_group(&mut self) -> Result<()>;
    /// Memory that the open row group or stripe holds.
    fn memory(&self) -> usize;
    /// Bytes that the file would have if it were closed now.
    fn size(&self) -> u64;
    /// Closes the file, which appears under its name.
    fn finish(self: Box<Self>) -> Result<WrittenFile>;
    /// Gives up: nothing stays behind.
    fn abort(self: Box<Self>);
}

/// A finished file.
#[derive(Debug)]
pub struct WrittenFile {
    /// Where it lies.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// What a manifest says of it.
    pub metrics: FileMetrics,
}
