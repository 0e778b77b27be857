//! The difference of two sets of rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use icefield_table::operation::diff::{DiffCounts, DiffOptions, Side, diff, without_common_files};
use icefield_table::operation::matching::MEMORY_LIMIT;
use icefield_table::stream::{BatchStream, TaskBatches};
use pyo3::prelude::*;

use crate::arguments::integer::Int;
use crate::capsule::{ArrowStream, StreamInput};
use crate::entry::detached;
use crate::errors::{Result, from_rows};
use crate::table::reads::scan::{PyScan, Reader};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyRowDiff>()?;
    module.add_function(wrap_pyfunction!(diff_rows, module)?)?;
    module.add_function(wrap_pyfunction!(diff_scans, module)?)
}

/// What was compared, and how many rows differ; complete when all differences were read.
#[pyclass(frozen, name = "RowDiff", module = "icefield._core")]
#[derive(Debug)]
pub(crate) struct PyRowDiff {
    counts: Arc<DiffCounts>,
    compared: Vec<String>,
    only: [Vec<String>; 2],
    common_files: usize,
}

#[pymethods]
impl PyRowDiff {
    /// Numbers of added, removed and changed rows, and of rows that were read of either side.
    #[getter]
    fn rows(&self) -> (u64, u64, u64, u64, u64) {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let DiffCounts { added, removed, changed, left_rows, right_rows, .. } = &*self.counts;
        (of(added), of(removed), of(changed), of(left_rows), of(right_rows))
    }

    /// Names of columns with changed values, and their numbers.
    #[getter]
    fn cells(&self) -> Vec<(&str, u64)> {
        let names = self.compared.iter().map(String::as_str);
        names.zip(self.counts.changed_cells()).filter(|(_, count)| *count > 0).collect()
    }

    /// Names of the columns that only one side has.
    #[getter]
    fn only(&self) -> (Vec<String>, Vec<String>) {
        let [left, right] = &self.only;
        (left.clone(), right.clone())
    }

    /// Number of files that both sides have and that were not read.
    #[getter]
    fn common_files(&self) -> usize {
        self.common_files
    }
}

/// Compare rows with rows.
#[pyfunction]
#[pyo3(signature = (left, right, *, keys=None, memory_limit=None))]
fn diff_rows(
    left: StreamInput,
    right: StreamInput,
    keys: Option<Vec<String>>,
    memory_limit: Option<Int<usize>>,
) -> Result<(PyRowDiff, ArrowStream)> {
    let side = |rows: StreamInput| Side {
        schema: rows.0.schema(),
        batches: Box::new(rows.0.map(|batch| batch.map_err(from_rows))),
    };
    compared([side(left), side(right)], 0, keys, memory_limit)
}

/// Compare two scans of one table, without the files that both have.
#[pyfunction]
#[pyo3(signature = (left, right, *, keys=None, memory_limit=None))]
fn diff_scans(
    py: Python<'_>,
    left: &Bound<'_, PyScan>,
    right: &Bound<'_, PyScan>,
    keys: Option<Vec<String>>,
    memory_limit: Option<Int<usize>>,
) -> Result<(PyRowDiff, ArrowStream)> {
    let (left, right) = (&left.get().0, &right.get().0);
    let (sides, common) = detached(py, || without_common_files(left, right))??;
    compared(sides, common, keys, memory_limit)
}

fn compared(
    [left, right]: [Side; 2],
    common_files: usize,
    keys: Option<Vec<String>>,
    memory_limit: Option<Int<usize>>,
) -> Result<(PyRowDiff, ArrowStream)> {
    let memory_limit = memory_limit.map_or(MEMORY_LIMIT, |Int(bytes)| bytes);
    let made = diff(left, right, &DiffOptions { keys, memory_limit })?;
    let names = made.compared().fields().iter().map(|field| field.name().clone()).collect();
    let about = PyRowDiff { counts: made.counts().clone(), compared: names, only: made.only().clone(), common_files };
    let schema = made.schema().clone();
    let stream = BatchStream::new(schema, vec![Box::new(move || Ok(Box::new(made) as TaskBatches))], None);
    Ok((about, ArrowStream::new(Box::new(Reader(stream)))))
}
