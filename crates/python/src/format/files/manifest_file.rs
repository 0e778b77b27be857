//! Manifests with the fields that a manifest list has for them ("Manifest Lists"), as arguments of operations on
//! manifests.

use icefield_format::manifest::{FieldSummary, ManifestContent, ManifestFile};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::arguments::integer::{Int, Named};
use crate::errors::{ArgumentTypeError, InvalidArgumentError, Result};
use crate::format::files::data_file::keyword;
use crate::format::values::{bytes, shown};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyManifestFile>()
}

/// A manifest, as a manifest list describes it.
#[pyclass(frozen, name = "ManifestFile", module = "icefield.manifests")]
#[derive(Debug)]
pub struct PyManifestFile(pub(crate) ManifestFile);

/// The content of a manifest: its name, or its number in manifest lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content(pub(crate) ManifestContent);

impl Content {
    fn name(content: ManifestContent) -> &'static str {
        match content {
            ManifestContent::Data => "data",
            ManifestContent::Deletes => "deletes",
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Content {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let unknown = || {
            let message = format!("content: expected 'data' or 'deletes', got {}", shown(&object));
            InvalidArgumentError::new_err(message)
        };
        if let Ok(text) = object.cast::<PyString>() {
            return match text.to_str()?.to_ascii_lowercase().as_str() {
                "data" => Ok(Self(ManifestContent::Data)),
                "deletes" => Ok(Self(ManifestContent::Deletes)),
                _ => Err(unknown()),
            };
        }
        let number: i32 = object.extract().map_err(|_| unknown())?;
        ManifestContent::from_id(number).map(Self).map_err(|_| unknown())
    }
}

/// Bytes of a bound or a key.
#[derive(Debug)]
struct BytesInput(Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for BytesInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        bytes(&object)
            .map(Self)
            .ok_or_else(|| ArgumentTypeError::new_err(format!("expected bytes, not {}", shown(&object))))
    }
}

/// The summary of one partition field.
#[derive(Debug, FromPyObject)]
struct SummaryInput {
    #[pyo3(item)]
    contains_null: bool,
    #[pyo3(item, default)]
    contains_nan: Option<bool>,
    #[pyo3(item, default)]
    lower_bound: Option<BytesInput>,
    #[pyo3(item, default)]
    upper_bound: Option<BytesInput>,
}

/// The keywords of the class: the fields of an entry of a manifest list.
#[derive(Debug, FromPyObject)]
struct Arguments {
    #[pyo3(item)]
    manifest_path: String,
    #[pyo3(item)]
    manifest_length: Int<i64>,
    #[pyo3(item)]
    partition_spec_id: Int<i32>,
    #[pyo3(item, default)]
    content: Option<Content>,
    #[pyo3(item, default)]
    sequence_number: Option<Int<i64>>,
    #[pyo3(item, default)]
    min_sequence_number: Option<Int<i64>>,
    #[pyo3(item, default)]
    added_snapshot_id: Option<Int<i64>>,
    #[pyo3(item, default)]
    added_files_count: Option<Int<i32>>,
    #[pyo3(item, default)]
    existing_files_count: Option<Int<i32>>,
    #[pyo3(item, default)]
    deleted_files_count: Option<Int<i32>>,
    #[pyo3(item, default)]
    added_rows_count: Option<Int<i64>>,
    #[pyo3(item, default)]
    existing_rows_count: Option<Int<i64>>,
    #[pyo3(item, default)]
    deleted_rows_count: Option<Int<i64>>,
    #[pyo3(item, default)]
    partitions: Option<Vec<SummaryInput>>,
    #[pyo3(item, default)]
    key_metadata: Option<BytesInput>,
    #[pyo3(item, default)]
    first_row_id: Option<Int<i64>>,
}

/// All keywords, in the order of the specification.
const KEYWORDS: [&str; 16] = [
    "manifest_path",
    "manifest_length",
    "partition_spec_id",
    "content",
    "sequence_number",
    "min_sequence_number",
    "added_snapshot_id",
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
    "partitions",
    "key_metadata",
    "first_row_id",
];

impl PyManifestFile {
    /// # Errors
    /// A keyword that is missing, unknown, or of another type.
    fn made(given: &Bound<'_, PyDict>) -> Result<Self> {
        let set = PyDict::new(given.py());
        for (name, value) in given.iter() {
            let known: String = name.extract()?;
            if !KEYWORDS.contains(&known.as_str()) {
                return Err(ArgumentTypeError::new_err(format!("unexpected keyword argument {known:?}")).into());
            }
            if !value.is_none() {
                set.set_item(name, value)?;
            }
        }
        for name in ["manifest_path", "manifest_length", "partition_spec_id"] {
            if !set.contains(name)? {
                return Err(ArgumentTypeError::new_err(format!("missing keyword argument {name:?}")).into());
            }
        }
        let Named(given) = set.extract::<Named<Arguments>>()?;
        let number = |number: Option<Int<i64>>| number.map_or(ManifestFile::UNASSIGNED, |Int(number)| number);
        let partitions = given.partitions.map(|summaries| {
            let summary = |given: SummaryInput| FieldSummary {
                contains_null: given.contains_null,
                contains_nan: given.contains_nan,
                lower_bound: given.lower_bound.map(|BytesInput(bytes)| bytes),
                upper_bound: given.upper_bound.map(|BytesInput(bytes)| bytes),
            };
            summaries.into_iter().map(summary).collect()
        });
        Ok(Self(ManifestFile {
            manifest_path: given.manifest_path,
            manifest_length: given.manifest_length.0,
            partition_spec_id: given.partition_spec_id.0,
            content: given.content.map_or(ManifestContent::Data, |Content(content)| content),
            sequence_number: number(given.sequence_number),
            min_sequence_number: number(given.min_sequence_number),
            added_snapshot_id: number(given.added_snapshot_id),
            added_files_count: given.added_files_count.map(|Int(count)| count),
            existing_files_count: given.existing_files_count.map(|Int(count)| count),
            deleted_files_count: given.deleted_files_count.map(|Int(count)| count),
            added_rows_count: given.added_rows_count.map(|Int(count)| count),
            existing_rows_count: given.existing_rows_count.map(|Int(count)| count),
            deleted_rows_count: given.deleted_rows_count.map(|Int(count)| count),
            partitions,
            key_metadata: given.key_metadata.map(|BytesInput(bytes)| bytes),
            first_row_id: given.first_row_id.map(|Int(id)| id),
        }))
    }

    /// The keywords that create an equal manifest; those without a value are left out.
    fn keywords<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(slf.py());
        for name in KEYWORDS {
            let value = slf.getattr(name)?;
            if !value.is_none() {
                all.set_item(name, value)?;
            }
        }
        Ok(all)
    }
}

#[pymethods]
impl PyManifestFile {
    #[new]
    #[pyo3(signature = (**keywords))]
    fn py_new(py: Python<'_>, keywords: Option<&Bound<'_, PyDict>>) -> Result<Self> {
        Self::made(keywords.unwrap_or(&PyDict::new(py)))
    }

    /// Location.
    #[getter]
    fn manifest_path(&self) -> &str {
        &self.0.manifest_path
    }

    /// Length in bytes.
    #[getter]
    fn manifest_length(&self) -> i64 {
        self.0.manifest_length
    }

    /// The partition spec of its files.
    #[getter]
    fn partition_spec_id(&self) -> i32 {
        self.0.partition_spec_id
    }

    /// What it lists: ``data`` or ``deletes``.
    #[getter]
    fn content(&self) -> &'static str {
        Content::name(self.0.content)
    }

    /// Sequence number of the snapshot that added it; -1 before that, 0 in version 1.
    #[getter]
    fn sequence_number(&self) -> i64 {
        self.0.sequence_number
    }

    /// The smallest data sequence number of its live files; -1 where they inherit that of the snapshot.
    #[getter]
    fn min_sequence_number(&self) -> i64 {
        self.0.min_sequence_number
    }

    /// The snapshot that added it; ``None`` before that.
    #[getter]
    fn added_snapshot_id(&self) -> Option<i64> {
        Some(self.0.added_snapshot_id).filter(|id| *id != ManifestFile::UNASSIGNED)
    }

    /// Number of added files.
    #[getter]
    fn added_files_count(&self) -> Option<i32> {
        self.0.added_files_count
    }

    /// Number of existing files.
    #[getter]
    fn existing_files_count(&self) -> Option<i32> {
        self.0.existing_files_count
    }

    /// Number of deleted files.
    #[getter]
    fn deleted_files_count(&self) -> Option<i32> {
        self.0.deleted_files_count
    }

    /// Number of rows of added files.
    #[getter]
    fn added_rows_count(&self) -> Option<i64> {
        self.0.added_rows_count
    }

    /// Number of rows of existing files.
    #[getter]
    fn existing_rows_count(&self) -> Option<i64> {
        self.0.existing_rows_count
    }

    /// Number of rows of deleted files.
    #[getter]
    fn deleted_rows_count(&self) -> Option<i64> {
        self.0.deleted_rows_count
    }

    /// The values of each partition field: whether one is null or NaN, and bounds as the bytes of single values.
    #[getter]
    fn partitions<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let Some(summaries) = &self.0.partitions else { return Ok(None) };
        let bytes = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| PyBytes::new(py, bytes));
        let list = PyList::empty(py);
        for summary in summaries {
            let row = PyDict::new(py);
            row.set_item("contains_null", summary.contains_null)?;
            row.set_item("contains_nan", summary.contains_nan)?;
            row.set_item("lower_bound", bytes(&summary.lower_bound))?;
            row.set_item("upper_bound", bytes(&summary.upper_bound))?;
            list.append(row)?;
        }
        Ok(Some(list))
    }

    /// How it is encrypted.
    #[getter]
    fn key_metadata<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.key_metadata.as_ref().map(|bytes| PyBytes::new(py, bytes))
    }

    /// First row id of its rows without one (version 3).
    #[getter]
    fn first_row_id(&self) -> Option<i64> {
        self.0.first_row_id
    }

    fn __getnewargs_ex__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(slf.py()), Self::keywords(slf)?))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.0.manifest_path).hash()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let shown = Self::keywords(slf)?.iter().map(|(name, value)| keyword(&name.to_string(), &value));
        Ok(format!("ManifestFile({})", shown.collect::<PyResult<Vec<_>>>()?.join(", ")))
    }
}
