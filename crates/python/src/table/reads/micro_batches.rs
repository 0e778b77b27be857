//! Reads a table as a stream of micro-batches.

use std::sync::Arc;

use icefield_format::metadata::TableMetadata;
use icefield_table::plan::Scan;
use icefield_table::plan::incremental::micro_batch::{Offset, ReadLimit, Stream};
use icefield_table::read::row_scan::RowScan;
use icefield_table::storage::Storage;
use pyo3::prelude::*;

use super::scan::PyScan;
use crate::arguments::integer::Int;
use crate::entry::detached;
use crate::errors::Result;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMicroBatches>()
}

/// A table as a stream of micro-batches.
///
/// An offset is a pair: the id of a snapshot, and the number of the files it added that were read.
#[pyclass(frozen, name = "MicroBatches", module = "icefield._core")]
#[derive(Debug)]
pub struct PyMicroBatches {
    stream: Stream,
    storage: Storage,
    metadata: Arc<TableMetadata>,
}

type Pair = (Int<i64>, Int<i64>);

fn stored((Int(snapshot_id), Int(position)): Pair) -> Result<Offset> {
    Ok(Offset::stored(snapshot_id, position)?)
}

fn pair(offset: Offset) -> (i64, i64) {
    (offset.snapshot_id, offset.position)
}

#[pymethods]
impl PyMicroBatches {
    #[new]
    #[pyo3(signature = (table, *, from_timestamp=None, skip_deletes=false, skip_overwrites=false, branch=None))]
    fn py_new(
        table: &Bound<'_, PyTableState>,
        from_timestamp: Option<Int<i64>>,
        skip_deletes: bool,
        skip_overwrites: bool,
        branch: Option<String>,
    ) -> Self {
        let state = table.get();
        Self {
            stream: Stream {
                from_timestamp: from_timestamp.map(|Int(time)| time),
                skip_deletes,
                skip_overwrites,
                branch,
            },
            storage: state.storage.0.clone(),
            metadata: state.committed.metadata.clone(),
        }
    }

    /// Return the offset of a stream that has read nothing.
    fn initial(&self) -> Result<(i64, i64)> {
        Ok(pair(self.stream.initial(&self.metadata)?))
    }

    /// Return the end of the batch that begins at an offset: ``start`` if there is nothing new.
    #[pyo3(signature = (start, *, max_files=None, max_rows=None, last_snapshot_id=None))]
    fn latest(
        &self,
        py: Python<'_>,
        start: Pair,
        max_files: Option<Int<u64>>,
        max_rows: Option<Int<u64>>,
        last_snapshot_id: Option<Int<i64>>,
    ) -> Result<(i64, i64)> {
        let (start, last) = (stored(start)?, last_snapshot_id.map(|Int(id)| id));
        let most = |limit: Option<Int<u64>>| limit.map_or(u64::MAX, |Int(limit)| limit);
        let limit = ReadLimit { files: most(max_files), rows: most(max_rows) };
        let latest = || self.stream.latest(&self.storage, &self.metadata, start, limit, last);
        Ok(pair(detached(py, latest)??))
    }

    /// Return a scan of the files between two offsets.
    #[pyo3(signature = (start, end, *, selected_fields=None, case_sensitive=true))]
    fn scan(
        &self,
        start: Pair,
        end: Pair,
        selected_fields: Option<Vec<String>>,
        case_sensitive: bool,
    ) -> Result<PyScan> {
        let (start, end) = (stored(start)?, stored(end)?);
        let mut scan = Scan::micro_batch(&self.storage, &self.metadata, &self.stream, start, end)?;
        scan.case_sensitive = case_sensitive;
        Ok(PyScan(RowScan::new(scan, selected_fields.as_deref(), None)?))
    }
}
