//! Chooses the reader for the format of a file.

use icefield_format::manifest::{FileContent, FileFormat};

use super::{DataFileReader, avro, orc, parquet};
use crate::error::{Error, Result};
use crate::storage::{FileKey, FileRef, Storage};

/// Opens a file for reading; `format` is the name in its manifest, in any case.
pub fn open(
    storage: &Storage,
    file: &FileRef<'_>,
    format: &str,
    content: FileContent,
) -> Result<Box<dyn DataFileReader>> {
    let format_of = FileFormat::from_name(format);
    let path = file.path;
    let (storage, size) = &match (file.key_metadata()?, format_of) {
        (None, _) => (storage.clone(), file.size),
        (Some(key), Some(FileFormat::Parquet)) => (storage.for_file(FileKey::OfFormat(key)), file.size),
        (Some(_), Some(FileFormat::Orc)) => {
            return Err(Error::unsupported(format!("{path}: reading encrypted ORC files is not supported")));
        }
        (Some(_), _) => storage.decrypting(file)?,
    };
    let size = *size;
    match format_of {
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
