//! Metadata tables: the snapshots, files and other parts of a table, as Arrow.

use std::collections::BTreeMap;

use arrow_array::RecordBatchIterator;
use icefield_table::inspect::{Inspect, MetadataTable, Part, Selection};
use icefield_table::limits;
use icefield_table::maintain::partition_statistics::read_partition_stats;
use icefield_table::plan::At;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::scan::Reader;
use crate::arguments::integer::Int;
use crate::capsule::{ArrowStream, SchemaInput};
use crate::entry::detached;
use crate::errors::Result;
use crate::format::expr::expressions::FilterInput;
use crate::format::schemas::schema::PySchema;
use crate::table::state::PyTableState;

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyInspect>()
}

/// The metadata tables of a table in one state.
#[pyclass(frozen, name = "Inspect", module = "icefield._core")]
#[derive(Debug)]
pub struct PyInspect(Inspect);

#[pymethods]
impl PyInspect {
    #[new]
    #[pyo3(signature = (table, /))]
    fn py_new(table: &Bound<'_, PyTableState>) -> Result<Self> {
        let state = table.get();
        Ok(Self(Inspect {
            storage: state.storage.0.clone(),
            metadata: state.committed.metadata.clone(),
            metadata_location: state.committed.location.clone(),
            limits: limits()?,
        }))
    }

    /// Return the names of all metadata tables.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        MetadataTable::ALL.iter().map(|table| table.name()).collect()
    }

    /// Return whether a metadata table is read as of a snapshot.
    #[staticmethod]
    #[pyo3(signature = (name, /))]
    fn has_snapshots(name: &str) -> Result<bool> {
        Ok(MetadataTable::parse(name)?.has_snapshots())
    }

    /// Return the schema of a metadata table.
    #[pyo3(signature = (name, /, *, selected_fields=None, case_sensitive=true))]
    fn schema(&self, name: &str, selected_fields: Option<Vec<String>>, case_sensitive: bool) -> Result<PySchema> {
        let schema = self.0.schema(MetadataTable::parse(name)?)?;
        Ok(PySchema(match selected_fields {
            Some(names) => schema.select_in_order(&names, case_sensitive)?,
            None => schema,
        }))
    }

    /// Return the maximum number of parts that a metadata table can be read in.
    #[pyo3(signature = (name, /, *, snapshot_id=None, as_of_ms=None, reference=None))]
    fn most_parts(
        &self,
        py: Python<'_>,
        name: &str,
        snapshot_id: Option<Int<i64>>,
        as_of_ms: Option<Int<i64>>,
        reference: Option<String>,
    ) -> Result<usize> {
        let selection = Selection { at: at(snapshot_id, as_of_ms, reference), ..Selection::default() };
        let table = MetadataTable::parse(name)?;
        Ok(detached(py, || self.0.most_parts(table, &selection))??)
    }

    /// Return the keys of the encrypted manifest lists that a metadata table is read from, by their ids.
    #[pyo3(signature = (name, /, *, snapshot_id=None, as_of_ms=None, reference=None))]
    fn list_keys<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        snapshot_id: Option<Int<i64>>,
        as_of_ms: Option<Int<i64>>,
        reference: Option<String>,
    ) -> Result<BTreeMap<String, Bound<'py, PyBytes>>> {
        let (table, at) = (MetadataTable::parse(name)?, at(snapshot_id, as_of_ms, reference));
        let keys = detached(py, || self.0.list_keys(table, &at))??;
        Ok(keys.into_iter().map(|(key_id, key)| (key_id, PyBytes::new(py, &key))).collect())
    }

    /// Return the rows of a metadata table as they are read, in the types of ``schema`` if it is given.
    ///
    /// With ``part``, one part of some: ``(0, 4)`` is the first of four.
    #[pyo3(signature = (
        name, /, *, row_filter=None, selected_fields=None, case_sensitive=true, snapshot_id=None, as_of_ms=None,
        reference=None, part=None, schema=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the scan")]
    fn stream(
        &self,
        py: Python<'_>,
        name: &str,
        row_filter: Option<FilterInput>,
        selected_fields: Option<Vec<String>>,
        case_sensitive: bool,
        snapshot_id: Option<Int<i64>>,
        as_of_ms: Option<Int<i64>>,
        reference: Option<String>,
        part: Option<(Int<usize>, Int<usize>)>,
        schema: Option<SchemaInput>,
    ) -> Result<ArrowStream> {
        let selection = Selection {
            at: at(snapshot_id, as_of_ms, reference),
            columns: selected_fields,
            filter: row_filter.map(|filter| filter.0),
            case_sensitive,
            part: part.map(|(number, of)| Part::new(number.0, of.0)).transpose()?,
        };
        let table = MetadataTable::parse(name)?;
        let stream = detached(py, || self.0.scan(table, &selection))??;
        let stream = match schema {
            Some(target) => stream.as_schema(target.0)?,
            None => stream,
        };
        Ok(ArrowStream::new(Box::new(Reader(stream))))
    }

    /// Return the rows of the partition statistics file of a snapshot; None if it has none.
    #[pyo3(signature = (*, snapshot_id=None, as_of_ms=None, reference=None))]
    fn partition_statistics(
        &self,
        py: Python<'_>,
        snapshot_id: Option<Int<i64>>,
        as_of_ms: Option<Int<i64>>,
        reference: Option<String>,
    ) -> Result<Option<ArrowStream>> {
        let at = at(snapshot_id, as_of_ms, reference);
        let read = detached(py, || read_partition_stats(&self.0.storage, &self.0.metadata, &at))??;
        Ok(read.map(|rows| {
            let schema = rows.schema();
            ArrowStream::new(Box::new(RecordBatchIterator::new([Ok(rows)], schema)))
        }))
    }
}

fn at(snapshot_id: Option<Int<i64>>, as_of_ms: Option<Int<i64>>, reference: Option<String>) -> At {
    At { snapshot_id: snapshot_id.map(|Int(id)| id), as_of_ms: as_of_ms.map(|Int(time)| time), reference }
}
