//! A worker that removes rows from data files by position.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::DataType;
use icefield_format::puffin::DeletionVector;
use icefield_format::types::reserved::{FILE, POS};

use super::plan::RowChangePlan;
use super::removed::RemovedRows;
use crate::commit::Specs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::operation::matching::{MatchedFile, MatchedRows, Matches};
use crate::operation::row_change::{Names, Removals};
use crate::plan::{At, Scan};
use crate::storage::Storage;
use crate::write::check_text;

/// Removes rows from files. All rows of a file must be sent to the same remover, in any order.
#[derive(Debug)]
pub struct RowRemover {
    plan: Arc<RowChangePlan>,
    storage: Storage,
    worker: (u32, u64),
    memory: Option<usize>,
    unique: bool,
    /// Positions to remove, by the number of the file in the plan.
    found: BTreeMap<usize, DeletionVector>,
}

impl RowRemover {
    /// A worker for an attempt at a task. Reading rows that are rewritten takes about `memory` bytes. With `unique`, a
    /// row that arrives twice is an error: several source rows of a merge change it.
    pub fn new(
        plan: Arc<RowChangePlan>,
        storage: Storage,
        (task, attempt): (u32, u64),
        memory: Option<usize>,
        unique: bool,
    ) -> Self {
        Self { plan, storage, worker: (task, attempt), memory, unique, found: BTreeMap::new() }
    }

    /// Adds rows to remove; only the columns with file path and position are used.
    ///
    /// # Errors
    /// Missing columns, wrong types, nulls, files that the plan does not have, and with `unique` repeated rows.
    pub fn remove(&mut self, rows: &RecordBatch) -> Result<()> {
        let paths = column(rows, FILE.name, &DataType::Utf8)?;
        let positions = column(rows, POS.name, &DataType::Int64)?;
        let other = || Error::Internal("a column of another type than it was cast to".to_owned());
        let paths = paths.as_string_opt::<i32>().ok_or_else(other)?;
        let positions = positions.as_primitive_opt::<Int64Type>().ok_or_else(other)?.values();
        let mut start = 0;
        while start < paths.len() {
            interrupt::check()?;
            let path = paths.value(start);
            let end = (start..paths.len()).find(|row| paths.value(*row) != path).unwrap_or(paths.len());
            let number = self.plan.candidates().find(path)?;
            if self.plan.candidates().get(number)?.whole {
                return Err(Error::invalid(format!(
                    "{path}: all of its rows match the filter, and the commit drops it: no task of the plan has rows of it"
                )));
            }
            let of_file = positions.get(start..end).unwrap_or_default();
            add(self.found.entry(number).or_default(), path, of_file, self.unique)?;
            start = end;
        }
        Ok(())
    }

    /// Writes the new files of the change; returns the result and its serialized form.
    ///
    /// # Errors
    /// Positions without a live row, or an error of the files or the storage; written files are deleted.
    pub fn finish(self) -> Result<(RemovedRows, Vec<u8>)> {
        let Self { plan, storage, worker, memory, found, .. } = self;
        let table = plan.table();
        let scan = Scan::new(storage.clone(), table.clone(), &At::default())?;
        let mut files = Vec::with_capacity(found.len());
        for (number, positions) in found {
            let file = plan.candidates().get(number)?.file.clone();
            files.push(MatchedFile { rows: MatchedRows::Some(Arc::new(positions)), ..file });
        }
        let matches = Matches::of_files(scan, files, memory)?;
        let removals = Removals::plan(&matches, plan.mode(), table.format_version())?;
        let operation = plan.write().operation;
        let names = Names::Task { operation, task: worker.0, attempt: worker.1 };
        let changed = removals.write(&storage, table, names)?;
        let written: Vec<String> =
            changed.added.iter().chain(&changed.added_deletes).map(|file| file.file_path.clone()).collect();
        let removed = RemovedRows::new(operation, worker, &removals, changed, |path| plan.candidates().find(path));
        let described = removed.and_then(|removed| {
            let bytes = removed.to_bytes(&Specs::of(table))?;
            Ok((removed, bytes))
        });
        if described.is_err() {
            storage.discard(&written, "files of a change of rows that failed");
        }
        described
    }
}

/// Returns a column without nulls, cast to a type.
fn column(rows: &RecordBatch, name: &str, ty: &DataType) -> Result<ArrayRef> {
    let wrong = |what: String| Error::Column { column: name.to_owned(), message: what };
    let column = rows.column_by_name(name).ok_or_else(|| {
        wrong(
            "missing: rows to take out have the columns _file and _pos, as the tasks of the plan have them".to_owned(),
        )
    })?;
    if column.logical_null_count() > 0 {
        return Err(wrong("null: rows to take out have a file and a position; leave new rows out".to_owned()));
    }
    let inner = match column.data_type() {
        DataType::Dictionary(_, values) => values.as_ref(),
        other => other,
    };
    let fits = match ty {
        DataType::Int64 => inner.is_integer(),
        _ => matches!(inner, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
    };
    if !fits {
        let (expected, found) = (if *ty == DataType::Int64 { "long" } else { "string" }, column.data_type());
        return Err(wrong(format!("expected the type {expected}, got {found}")));
    }
    if *ty == DataType::Utf8 {
        check_text(column).map_err(wrong)?;
    }
    cast(column, ty).map_err(|error| wrong(error.to_string()))
}

/// Adds positions of a file to the known ones.
fn add(known: &mut DeletionVector, path: &str, positions: &[i64], unique: bool) -> Result<()> {
    let position = |position: &i64| {
        u64::try_from(*position).map_err(|_| Error::invalid(format!("{path}: there is no row {position} to take out")))
    };
    if !unique {
        let positions = positions.iter().map(position).collect::<Result<Vec<u64>>>()?;
        return Ok(known.insert_all(&positions)?);
    }
    for number in positions {
        if !known.insert(position(number)?)? {
            return Err(Error::invalid(format!(
                "row {number} of {path} is matched by more than one row of the source: it would be changed twice"
            )));
        }
    }
    Ok(())
}
