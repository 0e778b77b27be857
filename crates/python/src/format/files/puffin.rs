//! Puffin files and deletion vectors (Puffin spec; "Deletion Vectors").

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::UInt64Array;
use icefield_format::limits::MEMORY_VARIABLE;
use icefield_format::puffin::{BlobMetadata, DeletionVector, Footer, read_blob};
use icefield_table::limits;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::arguments::integer::Int;
use crate::capsule::ArrowArray;
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDeletionVector>()?;
    module.add_function(wrap_pyfunction!(read_puffin, module)?)
}

/// Properties and blobs of a Puffin file, the blobs with their decompressed bytes.
#[pyfunction]
#[pyo3(signature = (data, /))]
fn read_puffin<'py>(py: Python<'py>, data: &[u8]) -> Result<(Bound<'py, PyDict>, Bound<'py, PyList>)> {
    let limits = limits()?;
    let footer = detached(py, || Footer::read(data, &limits))??;
    let blobs = PyList::empty(py);
    let mut budget = limits.budget(data.len());
    for blob in &footer.blobs {
        let bytes = detached(py, || {
            let bytes = read_blob(data, blob, &limits, &mut budget)?;
            // Charge the copy for Python too.
            budget.charge(bytes.len()).map_err(|error| error.within("Puffin blobs"))?;
            Ok::<_, icefield_format::Error>(bytes)
        })??;
        budget.release(if matches!(bytes, Cow::Owned(_)) { bytes.len() } else { 0 });
        let described = describe(py, blob)?;
        described.set_item("data", PyBytes::new(py, &bytes))?;
        blobs.append(described)?;
    }
    Ok((texts(py, &footer.properties)?, blobs))
}

fn describe<'py>(py: Python<'py>, blob: &BlobMetadata) -> PyResult<Bound<'py, PyDict>> {
    let described = PyDict::new(py);
    described.set_item("type", &blob.ty)?;
    described.set_item("fields", &blob.fields)?;
    described.set_item("snapshot_id", blob.snapshot_id)?;
    described.set_item("sequence_number", blob.sequence_number)?;
    described.set_item("offset", blob.offset)?;
    described.set_item("length", blob.length)?;
    described.set_item("compression_codec", blob.compression_codec.as_deref())?;
    described.set_item("properties", texts(py, &blob.properties)?)?;
    Ok(described)
}

fn texts<'py>(py: Python<'py>, pairs: &[(String, String)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    pairs.iter().try_for_each(|(key, value)| dict.set_item(key, value))?;
    Ok(dict)
}

/// The deleted rows of a data file.
#[pyclass(frozen, eq, name = "DeletionVector", module = "icefield.puffin")]
#[derive(Debug, PartialEq)]
pub struct PyDeletionVector(DeletionVector);

#[pymethods]
impl PyDeletionVector {
    #[new]
    #[pyo3(signature = (positions=Vec::new(), /))]
    fn py_new(positions: Vec<Int<u64>>) -> Result<Self> {
        Ok(Self(DeletionVector::from_positions(positions.into_iter().map(|Int(position)| position))?))
    }

    /// Reads a blob of type ``deletion-vector-v1``.
    #[staticmethod]
    #[pyo3(signature = (blob, /, *, record_count=None))]
    fn from_bytes(py: Python<'_>, blob: &[u8], record_count: Option<Int<i64>>) -> Result<Self> {
        let limits = limits()?;
        let vector = detached(py, || DeletionVector::from_bytes(blob, &limits))??;
        record_count.map_or(Ok(()), |Int(count)| vector.check_cardinality(count))?;
        Ok(Self(vector))
    }

    /// The blob.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &detached(py, || self.0.to_bytes())??))
    }

    /// How many rows are deleted.
    #[getter]
    fn cardinality(&self) -> u64 {
        self.0.cardinality()
    }

    /// The deleted positions, ascending, as ``uint64``.
    fn positions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let limits = limits()?;
        let needed = self.0.cardinality().saturating_mul(size_of::<u64>() as u64);
        if needed > limits.most_memory as u64 {
            let (rows, most) = (self.0.cardinality(), limits.most_memory);
            return Err(InvalidArgumentError::new_err(format!(
                "the positions of {rows} rows need {needed} bytes, more than the limit of {most}; raise it with \
                 {MEMORY_VARIABLE}=BYTES, or use live_mask() for a window of rows"
            ))
            .into());
        }
        let positions = detached(py, || self.0.positions().collect::<Vec<_>>())?;
        to_pyarrow(py, ArrowArray::new(Arc::new(UInt64Array::from(positions))))
    }

    /// Which rows of a window of the data file are live.
    #[pyo3(signature = (*, first_row, row_count))]
    fn live_mask<'py>(&self, py: Python<'py>, first_row: Int<u64>, row_count: Int<u64>) -> Result<Bound<'py, PyAny>> {
        // This is far more than the rows of a batch, and limits the memory of the mask.
        let rows = i32::try_from(row_count.0).ok().and_then(|rows| usize::try_from(rows).ok());
        let rows = rows.ok_or_else(|| InvalidArgumentError::new_err("a mask has at most 2147483647 rows"))?;
        let mask = detached(py, || self.0.live_mask(first_row.0, rows))?;
        to_pyarrow(py, ArrowArray::new(Arc::new(mask)))
    }

    /// The rows of both.
    fn union(&self, other: &Self) -> Self {
        let mut rows = self.0.clone();
        rows.union_with(&other.0);
        Self(rows)
    }

    fn __contains__(&self, position: &Bound<'_, PyAny>) -> PyResult<bool> {
        match position.extract() {
            Ok(position) => Ok(self.0.contains(position)),
            // No row has a position that does not fit 64 bits.
            Err(error) if error.is_instance_of::<PyOverflowError>(position.py()) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.0.cardinality()).unwrap_or(usize::MAX)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> Result<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(slf.py())?,)))
    }

    fn __repr__(&self) -> String {
        format!("DeletionVector(cardinality={})", self.0.cardinality())
    }
}

fn to_pyarrow<'py>(py: Python<'py>, array: ArrowArray) -> Result<Bound<'py, PyAny>> {
    Ok(Bound::new(py, array)?.call_method0("to_pyarrow")?)
}
