//! The Arrow types that the columns of a file are read as: the parquet crate's, except for INT96.

use std::sync::Arc;

use arrow_schema::{FieldRef, Fields, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::int96;

/// The Arrow schema of a file without a table.
pub(super) fn as_arrow(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata, ParquetError> {
    let plain = arrow_metadata(metadata, &[], None)?;
    let (descriptor, fields) = (plain.parquet_schema(), plain.schema().fields());
    if !int96::is_in(descriptor) {
        return Ok(plain);
    }
    let typed = int96::typed(descriptor, fields, fields, None);
    arrow_metadata(plain.metadata().clone(), &[], Some(&typed))
}

/// The Arrow schema of a file, with virtual columns added; `typed` replaces the library's types, if given.
pub(super) fn arrow_metadata(
    metadata: Arc<ParquetMetaData>,
    made_up: &[FieldRef],
    typed: Option<&Fields>,
) -> Result<ArrowReaderMetadata, ParquetError> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_virtual_columns(made_up.to_vec())?;
    let options = match typed {
        Some(fields) => options.with_schema(Arc::new(Schema::new(fields.clone()))),
        None => options,
    };
    ArrowReaderMetadata::try_new(metadata, options)
}
