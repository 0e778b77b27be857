//! Chooses the reader for the format of a file.

use icefield_format::manifest::{FileContent, FileFormat};

use super::{DataFileReader, avro, orc, parquet};
use crate::error::{Error, Result};
use crate::storage::Storage;

/// Opens a file for reading; `format` is the name in its manifest, in any case.
pub fn open(
    storage: &Storage,
    path: &str,
    format: &str,
    content: FileContent,
    size: u64,
) -> Result<Box<dyn DataFileReader>> {
    match FileFormat::from_name(format) {
        Some(FileFormat::Parquet) => Ok(Box::new(parquet::read::ParquetFile::open(storage, path, Some(size))?)),
        Some(FileFormat::Orc) => Ok(Box::new(orc::read::OrcFile::open(storage, path, size)?)),
        Some(FileFormat::Avro) => Ok(Box::new(avro::read::AvroFile::open(storage, path, size)?)),
        _ => {
            let what = if content == FileContent::Data { "data" } else { "delete" };
            let format = format.to_lowercase();
            Err(Error::unsupported(format!("{path}: reading {format} {what} files is not built yet")))
        }
    }
}
