//! Reads position delete files ("Position Delete Files"): deleted rows by path and position.
//!
//! The specification requires sorted rows; this code does not rely on it. Paths are compared as written. Only
//! positions of the requested data files are kept. The optional column `row` with the deleted rows is not read.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::Fields;
use icefield_format::Limits;
use icefield_format::expr::{BoundExpr, Expression, Literal, Predicate, Term, Test};
use icefield_format::manifest::FileContent;
use icefield_format::puffin::DeletionVector;
use icefield_format::types::arrow::{ToArrow, has_ids, with_mapped_ids};
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS};
use icefield_format::types::{NameMapping, PrimitiveType, Schema};
use icefield_format::value::Value;

use crate::error::{Error, Result};
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;
use crate::file::{self, Request};
use crate::interrupt;
use crate::plan::tasks::part::DeletePart;
use crate::read::columns::Rules;
use crate::read::file_columns::plan_columns;
use crate::read::reshape::Reshape;
use crate::storage::Storage;

/// With more data files than this, the statistics of a delete file are not searched for them.
pub(super) const MOST_PRUNED: usize = 200;

/// Data files by path, with their row counts if known.
pub type WantedData = HashMap<String, Option<u64>>;

/// Rows per batch: paths are long, and are compared run by run.
const BATCH_ROWS: usize = 16 << 10;

/// Files with fewer rows are read with all columns.
const LEAST_ROWS: i64 = 1000;

/// Smaller files are read whole, so that missing rows are detected.
const LEAST_PRUNED: u64 = 1 << 20;

/// The deleted positions of some data files.
#[derive(Debug, Default)]
pub struct Positions {
    by_path: HashMap<String, Arc<DeletionVector>>,
}

impl Positions {
    /// Reads the positions of the requested data files. Positions past the end of a data file are kept and delete
    /// nothing, as in the Java library: a manifest's row count may be wrong, and a dropped position would bring a row
    /// back.
    pub fn load(storage: &Storage, delete: &DeletePart, wanted: &WantedData, limits: &Limits) -> Result<Self> {
        let fields = vec![DELETE_FILE_PATH.to_field(), DELETE_FILE_POS.to_field()];
        let schema = Arc::new(Schema::new(0, fields.clone())?);
        let names = NameMapping::of_schema(&schema)?;
        let with_ids = |fields: &Fields| match has_ids(fields) {
            true => fields.clone(),
            false => with_mapped_ids(fields, &names),
        };
        let mut file = file::open(storage, &delete.file_ref(), &delete.format, FileContent::PositionDeletes)?;
        let stored = file.bind(&with_ids, &schema);
        let rules = Rules { path: &delete.path, constants: &() };
        let only = file.metrics(&Modes::full()).ok().and_then(|metrics| only_path(&metrics));
        if only.as_ref().is_some_and(|path| !wanted.contains_key(path)) {
            return Ok(Self::default());
        }
        // If all rows have the same path, it is not read again for each of them.
        let read = Schema::new(0, if only.is_some() { vec![DELETE_FILE_POS.to_field()] } else { fields })?;
        let output = Arc::new(read.to_arrow(&ToArrow::default())?);
        let (leaves, planned) = plan_columns(&rules, &read, &output, &stored)?;
        let reshape = Reshape::new(&delete.path, output, planned);
        let is_pruned = delete.size >= LEAST_PRUNED;
        let prune = if is_pruned && only.is_none() { of_paths(wanted, &schema)? } else { Expression::True };
        let request = Request { prune, batch_rows: BATCH_ROWS, ..Request::all(leaves) };
        let mut rows = 0usize;
        let mut found = Collector { delete, wanted, of: HashMap::new() };
        for batch in file.batches(request)?.into_batches() {
            interrupt::check()?;
            let batch = reshape.apply(&batch?)?;
            rows = rows.saturating_add(batch.num_rows());
            match &only {
                Some(path) => found.add_positions(path, positions_of(&batch)?)?,
                None => found.add(&batch)?,
            }
            let mut held = limits.held();
            held.read(usize::try_from(delete.size).unwrap_or(usize::MAX));
            held.keep(found.memory()).map_err(|error| error.in_file(&delete.path))?;
        }
        if !is_pruned {
            delete.check_rows(rows)?;
        }
        Ok(found.finish())
    }

    /// The deleted positions of a data file.
    pub fn of(&self, path: &str) -> Option<Arc<DeletionVector>> {
        self.by_path.get(path).cloned()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        self.by_path.iter().map(|(path, vector)| path.len() + bytes(vector)).sum()
    }
}

/// A filter on the path that prunes row groups of a delete file.
fn of_paths(wanted: &WantedData, schema: &Schema) -> Result<BoundExpr> {
    if wanted.len() > MOST_PRUNED {
        return Ok(Expression::True);
    }
    let literal = |path: &String| Literal::new(PrimitiveType::String, Value::String(path.as_str().into()));
    let paths = wanted.keys().map(literal).collect::<Result<Vec<_>, _>>()?;
    let term = Term::column(DELETE_FILE_PATH.name);
    Ok(Expression::Predicate(Predicate { term, test: Test::In(paths) }).bind(schema, true)?)
}

/// The single path of a delete file, if its statistics show it: equal bounds allow no other value.
fn only_path(metrics: &FileMetrics) -> Option<String> {
    let id = DELETE_FILE_PATH.id;
    let (lower, upper) = (metrics.lower_bounds.get(&id)?, metrics.upper_bounds.get(&id)?);
    let is_of_all = metrics.record_count >= LEAST_ROWS
        && metrics.value_counts.get(&id) == Some(&metrics.record_count)
        && metrics.null_value_counts.get(&id) == Some(&0);
    (is_of_all && lower == upper).then(|| String::from_utf8(lower.clone()).ok())?
}

/// The positions of a batch, its last column.
fn positions_of(batch: &RecordBatch) -> Result<&[i64]> {
    let column = batch.columns().last().and_then(|column| column.as_primitive_opt::<Int64Type>());
    Ok(column.ok_or_else(lost)?.values())
}

fn lost() -> Error {
    Error::Internal("a batch of positions without its columns".to_owned())
}

struct Collector<'a> {
    delete: &'a DeletePart,
    wanted: &'a WantedData,
    of: HashMap<&'a str, DeletionVector>,
}

impl<'a> Collector<'a> {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let paths = batch.columns().first().and_then(|column| column.as_string_opt::<i32>()).ok_or_else(lost)?;
        let positions = positions_of(batch)?;
        let mut start = 0;
        while let Some(path) = (start < paths.len()).then(|| paths.value(start)) {
            let mut end = start + 1;
            while end < paths.len() && paths.value(end) == path {
                end += 1;
            }
            self.add_positions(path, positions.get(start..end).unwrap_or_default())?;
            start = end;
        }
        Ok(())
    }

    /// Adds positions of one data file.
    fn add_positions(&mut self, path: &str, positions: &[i64]) -> Result<()> {
        let Some((data, _)) = self.wanted.get_key_value(path) else { return Ok(()) };
        // As unsigned numbers, negative positions are the largest.
        let most = positions.iter().fold(0, |most, position| position.cast_unsigned().max(most));
        if most > DeletionVector::MAX_POSITION {
            let is_beyond = |position: &&i64| position.cast_unsigned() > DeletionVector::MAX_POSITION;
            let position = positions.iter().find(is_beyond).copied().unwrap_or_default();
            let message = format!("it deletes position {position} of {data}, which no file can have");
            return Err(Error::corrupt_file(&*self.delete.path, message));
        }
        let known: Vec<u64> = positions.iter().map(|position| position.cast_unsigned()).collect();
        Ok(self.of.entry(data).or_default().insert_all(&known)?)
    }

    fn memory(&self) -> usize {
        self.of.values().map(bytes).sum()
    }

    fn finish(self) -> Positions {
        let owned = |(path, vector): (&str, DeletionVector)| (path.to_owned(), Arc::new(vector));
        Positions { by_path: self.of.into_iter().map(owned).collect() }
    }
}

fn bytes(vector: &DeletionVector) -> usize {
    vector.as_bitmap().serialized_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statistics of a file: number of rows, paths and null paths, and path bounds.
    fn metrics(rows: i64, paths: i64, nulls: i64, lower: &[u8], upper: &[u8]) -> FileMetrics {
        let id = DELETE_FILE_PATH.id;
        FileMetrics {
            record_count: rows,
            value_counts: [(id, paths)].into(),
            null_value_counts: [(id, nulls)].into(),
            lower_bounds: [(id, lower.to_vec())].into(),
            upper_bounds: [(id, upper.to_vec())].into(),
            ..FileMetrics::default()
        }
    }

    #[test]
    fn bounds_that_are_the_same_are_the_only_path() {
        let path = b"s3://b/data/1.parquet";
        assert_eq!(only_path(&metrics(1000, 1000, 0, path, path)).as_deref(), Some("s3://b/data/1.parquet"));
        for (why, statistics) in [
            ("two paths", metrics(1000, 1000, 0, path, b"s3://b/data/2.parquet")),
            ("nulls", metrics(1000, 1000, 1, path, path)),
            ("fewer values than rows", metrics(1000, 999, 0, path, path)),
            ("few rows", metrics(999, 999, 0, path, path)),
            ("no text", metrics(1000, 1000, 0, b"\xff", b"\xff")),
            ("no bounds", FileMetrics { lower_bounds: Default::default(), ..metrics(1000, 1000, 0, path, path) }),
            ("no counts", FileMetrics { null_value_counts: Default::default(), ..metrics(1000, 1000, 0, path, path) }),
        ] {
            assert_eq!(only_path(&statistics), None, "{why}");
        }
    }
}
