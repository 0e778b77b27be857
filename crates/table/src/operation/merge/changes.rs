//! Collects the results of a merge: written rows, and positions of removed rows.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field as ArrowField, Schema as ArrowSchema};
use icefield_format::manifest::DataFile;
use icefield_format::puffin::DeletionVector;

use crate::error::{Error, Result};
use crate::write::TableWriter;

/// Positions of removed rows by file path.
type RemovedRows = HashMap<String, Arc<DeletionVector>>;

/// Numbers the data files, so that rows carry a number instead of a path.
#[derive(Debug, Default)]
pub(crate) struct FileNumbers {
    paths: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl FileNumbers {
    /// Replaces the path of a batch's file with its number. The path is the second to last column; all rows must be
    /// from one file.
    pub(crate) fn number(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let place = batch.num_columns().checked_sub(2).ok_or_else(lost)?;
        let paths = batch.columns().get(place).and_then(|column| column.as_string_opt::<i32>()).ok_or_else(lost)?;
        let number = match (batch.num_rows() > 0).then(|| paths.value(0)) {
            None => 0,
            Some(path) => match self.numbers.get(path) {
                Some(number) => *number,
                None => {
                    let number = u32::try_from(self.paths.len()).map_err(|_| lost())?;
                    self.paths.push(path.to_owned());
                    self.numbers.insert(path.to_owned(), number);
                    number
                }
            },
        };
        let mut columns = batch.columns().to_vec();
        let mut fields: Vec<_> = batch.schema_ref().fields().to_vec();
        if let (Some(column), Some(field)) = (columns.get_mut(place), fields.get_mut(place)) {
            *column = Arc::new(UInt32Array::from_value(number, batch.num_rows())) as ArrayRef;
            *field = Arc::new(ArrowField::new(field.name(), DataType::UInt32, false));
        }
        RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns).map_err(internal)
    }
}

/// The results of a merge so far.
#[derive(Debug)]
pub(crate) struct Changes {
    /// `None` after [`Changes::finish`].
    writer: Option<TableWriter>,
    removed: Vec<DeletionVector>,
    /// Number of changed rows of the table.
    pub(crate) updated: i64,
    /// Number of added rows.
    pub(crate) inserted: i64,
    /// Number of deleted rows of the table.
    pub(crate) deleted: i64,
}

impl Changes {
    /// No changes yet.
    pub(crate) fn new(writer: TableWriter) -> Self {
        Self { writer: Some(writer), removed: Vec::new(), updated: 0, inserted: 0, deleted: 0 }
    }

    /// Writes rows.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write(rows))
    }

    /// Records removed rows by their last two columns, the number of the file and the position.
    pub(crate) fn remove(&mut self, rows: &RecordBatch) -> Result<()> {
        let [.., files, positions] = rows.columns() else { return Err(lost()) };
        let files = files.as_primitive_opt::<UInt32Type>().ok_or_else(lost)?;
        let positions = positions.as_primitive_opt::<Int64Type>().ok_or_else(lost)?;
        for (file, position) in files.values().iter().zip(positions.values()) {
            let file = *file as usize;
            if self.removed.len() <= file {
                self.removed.resize_with(file + 1, DeletionVector::new);
            }
            let of_file = self.removed.get_mut(file).ok_or_else(lost)?;
            of_file.insert(u64::try_from(*position).map_err(|_| lost())?)?;
        }
        Ok(())
    }

    /// Closes the writer; returns the new files, and the positions of removed rows by file path.
    pub(crate) fn finish(&mut self, files: &FileNumbers) -> Result<(Vec<DataFile>, RemovedRows)> {
        let written = self.writer.take().map_or(Ok(Vec::new()), TableWriter::finish)?;
        let removed = files.paths.iter().cloned().zip(std::mem::take(&mut self.removed));
        let removed = removed.filter(|(_, rows)| !rows.is_empty()).map(|(path, rows)| (path, Arc::new(rows)));
        Ok((written, removed.collect()))
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.abort();
        }
    }
}

fn lost() -> Error {
    Error::Internal("rows without their places".to_owned())
}

fn internal(error: ArrowError) -> Error {
    Error::Internal(format!("rows of a merge: {error}"))
}
