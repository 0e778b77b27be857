//! The schema of a file that is not part of a table.

use std::sync::Arc;

use arrow_schema::{Fields, Schema as ArrowSchema};
use icefield_format::manifest::{FileContent, FileFormat};
use icefield_format::types::Schema;
use icefield_format::types::arrow::FromArrow;

use super::open;
use crate::error::{Error, Result};
use crate::storage::{FileRef, Storage};

/// The most bytes of a schema as text or JSON.
const LONGEST_TEXT: usize = 16 << 20;

/// First bytes of each file format.
const MAGIC: [(&[u8], FileFormat); 3] =
    [(b"PAR1", FileFormat::Parquet), (b"ORC", FileFormat::Orc), (b"Obj\x01", FileFormat::Avro)];

/// The format of a file with these first bytes.
pub(crate) fn format_in(head: &[u8]) -> Option<FileFormat> {
    MAGIC.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, format)| *format)
}

/// Returns the columns of a Parquet, ORC or Avro file, or the schema that a file holds in its JSON form or as a list of
/// columns ([`Schema::from_text`]). Ids are new ones, unless JSON has them.
///
/// # Errors
/// [`Error::Invalid`]: another kind of file, or a column without an Iceberg type.
pub fn schema_of_file(storage: &Storage, path: &str) -> Result<Schema> {
    let size = storage.size(path)?;
    if let Some(format) = format_in(&storage.range(path, 0..4.min(size))?) {
        let stored = stored_columns(storage, path, format.name(), size)?;
        let schema = Schema::from_arrow(&stored, &FromArrow::for_version(3));
        let schema = schema.map_err(|error| Error::invalid(format!("{path}: {error}")))?;
        return Ok(schema.with_fresh_ids(0, &mut 0)?);
    }
    let bytes = storage.read_at_most(path, LONGEST_TEXT)?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Error::invalid(format!("{path} is not a Parquet, ORC or Avro file, and not a schema as text")))?;
    let schema = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(text)
            .map_err(|error| Error::corrupt_file(path, error.to_string()))
            .and_then(|json| Schema::from_json(&json).map_err(|error| Error::from(error.in_file(path))))?,
        false => Schema::from_text(text).map_err(|error| Error::invalid(format!("{path}: {error}")))?,
    };
    Ok(schema)
}

/// The columns that a data file stores.
pub(crate) fn stored_columns(storage: &Storage, path: &str, format: &str, size: u64) -> Result<ArrowSchema> {
    let mut reader = open(storage, &FileRef::plain(path, size), format, FileContent::Data)?;
    let fields = reader.bind(&Fields::clone, &Arc::new(Schema::new(0, Vec::new())?));
    // The last column is synthetic: the positions of rows.
    let stored: Fields = fields.iter().take(fields.len().saturating_sub(1)).cloned().collect();
    Ok(ArrowSchema::new(stored))
}
