//! The formats of data files, and the choice between them by the write options.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_format::manifest::FileFormat;
use icefield_format::types::Schema;

use super::FileWriter;
use super::avro::{AvroLayout, AvroOptions, AvroWriter};
use super::modes::Modes;
use super::orc::{OrcLayout, OrcOptions, OrcWriter};
use super::parquet::{ParquetLayout, ParquetOptions, ParquetWriter};
use crate::error::Result;
use crate::storage::Storage;

/// The format of data files (`write.format.default`) and its options.
#[derive(Debug, Clone)]
pub enum FormatOptions {
    /// `write.parquet.*`
    Parquet(ParquetOptions),
    /// `write.orc.*`
    Orc(OrcOptions),
    /// `write.avro.*`
    Avro(AvroOptions),
}

/// Shared by all files of one writer.
#[derive(Debug, Clone)]
pub enum FileLayout {
    /// Parquet files.
    Parquet(Arc<ParquetLayout>),
    /// ORC files.
    Orc(Arc<OrcLayout>),
    /// Avro files.
    Avro(Arc<AvroLayout>),
}

impl FileLayout {
    /// The layout of files with a table schema whose batches arrive as `arrow`.
    pub fn new(schema: &Arc<Schema>, arrow: SchemaRef, options: &FormatOptions, modes: Modes) -> Result<Self> {
        Ok(match options {
            FormatOptions::Parquet(options) => {
                Self::Parquet(Arc::new(ParquetLayout::new(schema, arrow, options, modes)?))
            }
            FormatOptions::Orc(options) => Self::Orc(Arc::new(OrcLayout::new(schema, &arrow, options, modes)?)),
            FormatOptions::Avro(options) => Self::Avro(Arc::new(AvroLayout::new(schema, options)?)),
        })
    }

    /// The format.
    pub fn format(&self) -> FileFormat {
        match self {
            Self::Parquet(_) => FileFormat::Parquet,
            Self::Orc(_) => FileFormat::Orc,
            Self::Avro(_) => FileFormat::Avro,
        }
    }

    /// Starts a file that will begin with the batches `first`, which are not written yet.
    pub fn create(&self, storage: &Storage, path: String, first: &[RecordBatch]) -> Result<Box<dyn FileWriter>> {
        Ok(match self {
            Self::Parquet(layout) => Box::new(ParquetWriter::create(storage, path, layout.clone(), first)?),
            Self::Orc(layout) => Box::new(OrcWriter::create(storage, path, layout.clone())?),
            Self::Avro(layout) => Box::new(AvroWriter::create(storage, path, layout.clone())?),
        })
    }
}
