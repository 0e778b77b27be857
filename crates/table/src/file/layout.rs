//! The formats of data files, and the choice between them by the write options.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use icefield_format::encryption::KeyMetadata;
use icefield_format::manifest::FileFormat;
use icefield_format::types::Schema;

use super::FileWriter;
use super::avro::{AvroLayout, AvroOptions, AvroWriter};
use super::encrypted::EncryptedFile;
use super::modes::Modes;
use super::orc::{OrcLayout, OrcOptions, OrcWriter};
use super::parquet::{self, ParquetLayout, ParquetOptions};
use crate::error::{Error, Result};
use crate::storage::{FileKey, Storage};

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
pub struct FileLayout {
    of_format: OfFormat,
    /// Length in bytes of the keys of files; `None` if they are not encrypted.
    key_length: Option<usize>,
}

#[derive(Debug, Clone)]
enum OfFormat {
    Parquet(Arc<ParquetLayout>),
    Orc(Arc<OrcLayout>),
    Avro(Arc<AvroLayout>),
}

impl FileLayout {
    /// The layout of files with a table schema whose batches arrive as `arrow`.
    pub fn new(schema: &Arc<Schema>, arrow: SchemaRef, options: &FormatOptions, modes: Modes) -> Result<Self> {
        let of_format = match options {
            FormatOptions::Parquet(options) => {
                OfFormat::Parquet(Arc::new(ParquetLayout::new(schema, arrow, options, modes)?))
            }
            FormatOptions::Orc(options) => OfFormat::Orc(Arc::new(OrcLayout::new(schema, &arrow, options, modes)?)),
            FormatOptions::Avro(options) => OfFormat::Avro(Arc::new(AvroLayout::new(schema, options)?)),
        };
        Ok(Self { of_format, key_length: None })
    }

    /// The same, where each file is encrypted by a new key of this length in bytes, if there is one.
    #[must_use]
    pub fn encrypted(self, key_length: Option<usize>) -> Self {
        Self { key_length, ..self }
    }

    /// The format.
    pub fn format(&self) -> FileFormat {
        match &self.of_format {
            OfFormat::Parquet(_) => FileFormat::Parquet,
            OfFormat::Orc(_) => FileFormat::Orc,
            OfFormat::Avro(_) => FileFormat::Avro,
        }
    }

    /// Starts a file that will begin with the batches `first`, which are not written yet.
    pub fn create(&self, storage: &Storage, path: String, first: &[RecordBatch]) -> Result<Box<dyn FileWriter>> {
        let Some(key_length) = self.key_length else { return self.create_in(storage, path, first) };
        let key = KeyMetadata::random(key_length)?;
        let (file_key, is_stream) = match &self.of_format {
            OfFormat::Parquet(_) => (FileKey::OfFormat(key.clone()), false),
            OfFormat::Avro(_) => (FileKey::NewStream(key.clone()), true),
            OfFormat::Orc(_) => {
                return Err(Error::unsupported(format!("{path}: writing encrypted ORC files is not supported")));
            }
        };
        let file = self.create_in(&storage.for_file(file_key), path, first)?;
        Ok(Box::new(EncryptedFile { file, key, is_stream }))
    }

    fn create_in(&self, storage: &Storage, path: String, first: &[RecordBatch]) -> Result<Box<dyn FileWriter>> {
        Ok(match &self.of_format {
            OfFormat::Parquet(layout) => parquet::create(layout, storage, path, first)?,
            OfFormat::Orc(layout) => Box::new(OrcWriter::create(storage, path, layout.clone())?),
            OfFormat::Avro(layout) => Box::new(AvroWriter::create(storage, path, layout.clone())?),
        })
    }
}
