//! Data files in the making, whatever their format.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_format::types::Schema;

use super::metrics::FileMetrics;
use super::modes::Modes;
use super::options::{FormatOptions, WriteOptions};
use super::orc::{OrcLayout, OrcWriter};
use super::parquet::{ParquetLayout, ParquetWriter};
use crate::error::Result;
use crate::storage::Storage;

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

/// What all files of one writer have in common.
#[derive(Debug, Clone)]
pub enum FileLayout {
    /// Parquet files.
    Parquet(Arc<ParquetLayout>),
    /// ORC files.
    Orc(Arc<OrcLayout>),
}

impl FileLayout {
    /// The layout of files of a table schema whose batches come as `arrow`.
    pub fn new(schema: &Arc<Schema>, arrow: SchemaRef, options: &WriteOptions, modes: Modes) -> Result<Self> {
        Ok(match &options.format {
            FormatOptions::Parquet(options) => {
                Self::Parquet(Arc::new(ParquetLayout::new(schema, arrow, options, modes)?))
            }
            FormatOptions::Orc(options) => Self::Orc(Arc::new(OrcLayout::new(schema, &arrow, options, modes)?)),
        })
    }

    /// The name of the format in manifests.
    pub fn format(&self) -> &'static str {
        match self {
            Self::Parquet(_) => "PARQUET",
            Self::Orc(_) => "ORC",
        }
    }

    /// The end of the names of files.
    pub fn extension(&self) -> &'static str {
        match self {
            Self::Parquet(_) => "parquet",
            Self::Orc(_) => "orc",
        }
    }

    /// Starts a file that will begin with the batches `first`, which are still to be written.
    pub fn create(&self, storage: &Storage, path: String, first: &[RecordBatch]) -> Result<Box<dyn FileWriter>> {
        Ok(match self {
            Self::Parquet(layout) => Box::new(ParquetWriter::create(storage, path, layout.clone(), first)?),
            Self::Orc(layout) => Box::new(OrcWriter::create(storage, path, layout.clone())?),
        })
    }
}
