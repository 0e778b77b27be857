//! Writes position delete files and deletion vectors again, with other paths of data files.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::Fields;
use icefield_format::Limits;
use icefield_format::manifest::{DataFile, FileContent, FileFormat};
use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::DEFAULT_FILE_FORMAT;
use icefield_format::puffin::{Footer, with_footer};
use icefield_format::types::arrow::{ToArrow, has_ids, with_mapped_ids};
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS};
use icefield_format::types::{NameMapping, Schema};

use super::prefix::Prefix;
use crate::error::{Error, Result};
use crate::file::modes::Modes;
use crate::file::{self, FileLayout, FileWriter, Request};
use crate::interrupt;
use crate::read::columns::Rules;
use crate::read::file_columns::plan_columns;
use crate::read::reshape::Reshape;
use crate::storage::{Existing, FileRef, Storage};
use crate::write::options::WriteOptions;

/// The property of a deletion vector that has its data file.
const REFERENCED: &str = "referenced-data-file";

/// Writes a position delete file, or a file of deletion vectors, to `target`; returns its size.
///
/// The options are the defaults, whatever the table's properties say: a file that was copied before must have the same
/// size if it is written again. The optional column with the deleted rows is not kept.
pub(super) fn rewrite_deletes(
    storage: &Storage,
    written: &Storage,
    delete: &DataFile,
    target: &str,
    prefix: &Prefix,
    limits: &Limits,
) -> Result<u64> {
    match delete.format() {
        Some(FileFormat::Puffin) => rewrite_vectors(storage, written, delete, target, prefix, limits),
        _ => rewrite_positions(storage, written, delete, target, prefix),
    }
}

fn rewrite_vectors(
    storage: &Storage,
    written: &Storage,
    delete: &DataFile,
    target: &str,
    prefix: &Prefix,
    limits: &Limits,
) -> Result<u64> {
    let path = &delete.file_path;
    let bytes = storage.read_at_most(path, limits.blob_bytes)?;
    let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
    let mut footer = Footer::read(&bytes, limits).map_err(in_file)?;
    for blob in &mut footer.blobs {
        for (_, value) in blob.properties.iter_mut().filter(|(name, _)| name == REFERENCED) {
            *value = prefix.replaced("the data file of a deletion vector", value)?;
        }
    }
    // The offsets of vectors are in manifests too, so the vectors stay where they are.
    let changed = with_footer(&bytes, &footer).map_err(in_file)?;
    let size = changed.len() as u64;
    written.put(target, changed, Existing::Replace)?;
    Ok(size)
}

fn rewrite_positions(
    storage: &Storage,
    written: &Storage,
    delete: &DataFile,
    target: &str,
    prefix: &Prefix,
) -> Result<u64> {
    let path = &delete.file_path;
    let schema = Arc::new(Schema::new(0, vec![DELETE_FILE_PATH.to_field(), DELETE_FILE_POS.to_field()])?);
    let names = NameMapping::of_schema(&schema)?;
    let with_ids = |fields: &Fields| match has_ids(fields) {
        true => fields.clone(),
        false => with_mapped_ids(fields, &names),
    };
    let content = FileContent::PositionDeletes;
    let mut reader = file::open(storage, &FileRef::of_file(delete), &delete.file_format, content)?;
    let stored = reader.bind(&with_ids, &schema);
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default())?);
    let (leaves, planned) = plan_columns(&Rules { path, constants: &() }, &schema, &arrow, &stored)?;
    let reshape = Reshape::new(path, arrow.clone(), planned);
    // A file of any other format could not be opened.
    let format = delete.format().unwrap_or(FileFormat::Parquet).name();
    let options: StringMap = [(DEFAULT_FILE_FORMAT.name.to_owned(), format.to_owned())].into_iter().collect();
    let layout = FileLayout::new(&schema, arrow, &WriteOptions::new(&options)?.format, Modes::full())?;
    let mut file = layout.create(written, target.to_owned(), &[])?;
    let fill = |file: &mut dyn FileWriter| {
        let mut rows = 0i64;
        for batch in reader.batches(Request::all(leaves))?.into_batches() {
            interrupt::check()?;
            let batch = reshape.apply(&batch?)?;
            rows = rows.saturating_add(i64::try_from(batch.num_rows()).unwrap_or(i64::MAX));
            file.write(&[with_other_paths(&batch, path, prefix)?], false)?;
        }
        match rows == delete.record_count {
            true => Ok(()),
            false => Err(Error::corrupt_file(
                path,
                format!("it has {rows} rows, but its manifest says {}", delete.record_count),
            )),
        }
    };
    if let Err(error) = fill(file.as_mut()) {
        file.abort();
        return Err(error);
    }
    Ok(file.finish()?.bytes)
}

/// A batch of a position delete file with other paths; equal paths follow each other.
fn with_other_paths(batch: &RecordBatch, file: &str, prefix: &Prefix) -> Result<RecordBatch> {
    let internal = || Error::Internal("a batch of positions without its columns".to_owned());
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    let paths = columns.first_mut().ok_or_else(internal)?;
    let old = paths.as_string_opt::<i32>().ok_or_else(internal)?;
    if old.null_count() > 0 {
        return Err(Error::corrupt_file(file, "it has a position without the path of a data file"));
    }
    let (mut last, mut new) = (None, String::new());
    let mut changed = Vec::with_capacity(old.len());
    for path in old.iter().flatten() {
        if last != Some(path) {
            new = prefix.replaced(&format!("a data file in {file}"), path)?;
            last = Some(path);
        }
        changed.push(new.clone());
    }
    *paths = Arc::new(StringArray::from(changed));
    RecordBatch::try_new(batch.schema(), columns).map_err(|error| Error::Internal(error.to_string()))
}
