//! Data and delete files with the fields that a manifest has for them ("Data File Fields"), as arguments of operations
//! on files.

use std::collections::BTreeMap;

use icefield_format::manifest::{DataFile, FileContent, FileFormat};
use icefield_format::metadata::TableMetadata;
use icefield_format::value::Value;
use icefield_table::storage::HIDDEN;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMapping, PyString, PyTuple};

use crate::arguments::integer::{Int, Named};
use crate::errors::{ArgumentTypeError, InvalidArgumentError, Result};
use crate::format::values::{bytes, shown, to_value};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyContentFile>()?;
    module.add_class::<PyDataFile>()?;
    module.add_class::<PyDeleteFile>()
}

/// A file of a table, as a manifest describes it. Made as one of its subclasses.
#[pyclass(frozen, subclass, name = "ContentFile", module = "icefield.manifests")]
#[derive(Debug)]
pub struct PyContentFile {
    /// The file without its partition tuple, whose types depend on the table.
    file: DataFile,
    partition: Partition,
}

/// A data file.
#[pyclass(frozen, extends = PyContentFile, name = "DataFile", module = "icefield.manifests")]
#[derive(Debug)]
pub struct PyDataFile;

/// A file of deletes, or a deletion vector in one.
#[pyclass(frozen, extends = PyContentFile, name = "DeleteFile", module = "icefield.manifests")]
#[derive(Debug)]
pub struct PyDeleteFile;

/// Partition values as given by the caller.
#[derive(Debug)]
enum Partition {
    /// By the names of the fields of the spec.
    Named(Vec<(String, Py<PyAny>)>),
    /// In the order of the spec.
    InOrder(Vec<Py<PyAny>>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Partition {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(named) = object.cast::<PyMapping>() {
            let items = named.items()?;
            return Ok(Self::Named(items.iter().map(|item| item.extract()).collect::<PyResult<_>>()?));
        }
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            let message = format!("partition: expected a dict or a sequence of values, not {}", shown(&object));
            return Err(ArgumentTypeError::new_err(message));
        }
        Ok(Self::InOrder(object.try_iter()?.map(|value| value.map(Bound::unbind)).collect::<PyResult<_>>()?))
    }
}

/// The bytes of a bound.
#[derive(Debug)]
struct BoundInput(Vec<u8>);

impl<'a, 'py> FromPyObject<'a, 'py> for BoundInput {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let found = if object.is_instance_of::<PyString>() { None } else { bytes(&object) };
        found.map(Self).ok_or_else(|| {
            let message = format!("a bound is the bytes of a value (icefield.values.to_bytes), not {}", shown(&object));
            ArgumentTypeError::new_err(message)
        })
    }
}

/// The keywords of both classes.
#[derive(Debug, FromPyObject)]
struct Arguments {
    #[pyo3(item, default)]
    content: Option<Content>,
    #[pyo3(item)]
    file_path: String,
    #[pyo3(item)]
    file_format: String,
    #[pyo3(item, default)]
    spec_id: Option<Int<i32>>,
    #[pyo3(item, default)]
    partition: Option<Partition>,
    #[pyo3(item)]
    record_count: Int<i64>,
    #[pyo3(item)]
    file_size_in_bytes: Int<i64>,
    #[pyo3(item, default)]
    column_sizes: Option<BTreeMap<Int<i32>, Int<i64>>>,
    #[pyo3(item, default)]
    value_counts: Option<BTreeMap<Int<i32>, Int<i64>>>,
    #[pyo3(item, default)]
    null_value_counts: Option<BTreeMap<Int<i32>, Int<i64>>>,
    #[pyo3(item, default)]
    nan_value_counts: Option<BTreeMap<Int<i32>, Int<i64>>>,
    #[pyo3(item, default)]
    lower_bounds: Option<BTreeMap<Int<i32>, BoundInput>>,
    #[pyo3(item, default)]
    upper_bounds: Option<BTreeMap<Int<i32>, BoundInput>>,
    #[pyo3(item, default)]
    key_metadata: Option<BoundInput>,
    #[pyo3(item, default)]
    split_offsets: Option<Vec<Int<i64>>>,
    #[pyo3(item, default)]
    equality_ids: Option<Vec<Int<i32>>>,
    #[pyo3(item, default)]
    sort_order_id: Option<Int<i32>>,
    #[pyo3(item, default)]
    first_row_id: Option<Int<i64>>,
    #[pyo3(item, default)]
    referenced_data_file: Option<String>,
    #[pyo3(item, default)]
    content_offset: Option<Int<i64>>,
    #[pyo3(item, default)]
    content_size_in_bytes: Option<Int<i64>>,
}

/// All keywords, in the order in which files are shown.
const KEYWORDS: [&str; 21] = [
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "key_metadata",
    "split_offsets",
    "equality_ids",
    "sort_order_id",
    "first_row_id",
    "referenced_data_file",
    "content_offset",
    "content_size_in_bytes",
];

/// The content of a file: its name, or its number in manifests.
#[derive(Debug, Clone, Copy)]
struct Content(FileContent);

impl Content {
    const NAMES: [(&str, FileContent); 3] = [
        ("data", FileContent::Data),
        ("position_deletes", FileContent::PositionDeletes),
        ("equality_deletes", FileContent::EqualityDeletes),
    ];

    fn name(content: FileContent) -> &'static str {
        Self::NAMES.iter().find(|(_, known)| *known == content).map_or("data", |(name, _)| name)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Content {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let unknown = || {
            let message =
                format!("content: expected 'data', 'position_deletes' or 'equality_deletes', got {}", shown(&object));
            InvalidArgumentError::new_err(message)
        };
        if let Ok(text) = object.cast::<PyString>() {
            let name = text.to_str()?.to_ascii_lowercase();
            let known = Self::NAMES.iter().find(|(known, _)| *known == name);
            return known.map(|(_, content)| Self(*content)).ok_or_else(unknown);
        }
        let number: i32 = object.extract().map_err(|_| unknown())?;
        FileContent::from_id(number).map(Self).map_err(|_| unknown())
    }
}

impl PyContentFile {
    /// # Errors
    /// A keyword that is missing, unknown, or has a value that no file has.
    fn made(given: Option<&Bound<'_, PyDict>>, of: FileContent) -> Result<Self> {
        let Some(given) = given else { return Err(missing("file_path")) };
        for name in given.keys() {
            let name: String = name.extract()?;
            if !KEYWORDS.contains(&name.as_str()) {
                return Err(ArgumentTypeError::new_err(format!("unexpected keyword argument {name:?}")).into());
            }
        }
        let set = PyDict::new(given.py());
        for (name, value) in given.iter().filter(|(_, value)| !value.is_none()) {
            set.set_item(name, value)?;
        }
        for name in ["file_path", "file_format", "record_count", "file_size_in_bytes"] {
            if !set.contains(name)? {
                return Err(missing(name));
            }
        }
        let Named(arguments) = set.extract::<Named<Arguments>>()?;
        let content = arguments.content.map_or(of, |Content(content)| content);
        let format = FileFormat::from_name(&arguments.file_format).ok_or_else(|| {
            let message =
                format!("file_format: expected parquet, orc, avro or puffin, got {:?}", arguments.file_format);
            InvalidArgumentError::new_err(message)
        })?;
        let counts = |counts: Option<BTreeMap<Int<i32>, Int<i64>>>| {
            counts.map(|counts| counts.into_iter().map(|(Int(id), Int(count))| (id, count)).collect())
        };
        let bounds = |bounds: Option<BTreeMap<Int<i32>, BoundInput>>| {
            bounds.map(|bounds| bounds.into_iter().map(|(Int(id), BoundInput(bytes))| (id, bytes)).collect())
        };
        let file = DataFile {
            partition_spec_id: arguments.spec_id.map_or(0, |Int(id)| id),
            partition: Vec::new(),
            content,
            file_path: arguments.file_path,
            file_format: format.name().to_owned(),
            record_count: arguments.record_count.0,
            file_size_in_bytes: arguments.file_size_in_bytes.0,
            column_sizes: counts(arguments.column_sizes),
            value_counts: counts(arguments.value_counts),
            null_value_counts: counts(arguments.null_value_counts),
            nan_value_counts: counts(arguments.nan_value_counts),
            lower_bounds: bounds(arguments.lower_bounds),
            upper_bounds: bounds(arguments.upper_bounds),
            key_metadata: arguments.key_metadata.map(|BoundInput(bytes)| bytes),
            split_offsets: arguments.split_offsets.map(Int::all),
            equality_ids: arguments.equality_ids.map(Int::all),
            sort_order_id: arguments.sort_order_id.map(|Int(id)| id),
            first_row_id: arguments.first_row_id.map(|Int(id)| id),
            referenced_data_file: arguments.referenced_data_file,
            content_offset: arguments.content_offset.map(|Int(offset)| offset),
            content_size_in_bytes: arguments.content_size_in_bytes.map(|Int(size)| size),
        };
        check(&file, of)?;
        Ok(Self { file, partition: arguments.partition.unwrap_or(Partition::InOrder(Vec::new())) })
    }

    /// The file, with its partition tuple converted to the types of a table.
    ///
    /// # Errors
    /// A spec that the table does not have, a partition field that the spec does not have, and values of other types.
    pub(crate) fn of_table(&self, py: Python<'_>, metadata: &TableMetadata) -> Result<DataFile> {
        let path = &self.file.file_path;
        let refused = |what: String| InvalidArgumentError::new_err(format!("{path}: {what}"));
        let spec_id = self.file.partition_spec_id;
        let spec = metadata.partition_spec(spec_id);
        let spec = spec.ok_or_else(|| refused(format!("the table has no partition spec {spec_id}")))?;
        let types = spec.partition_type(metadata.current_schema());
        let values: Vec<&Py<PyAny>> = match &self.partition {
            Partition::InOrder(values) => values.iter().collect(),
            Partition::Named(named) => {
                if let Some((odd, _)) = named.iter().find(|(name, _)| types.fields.iter().all(|f| f.name != *name)) {
                    let message = format!("the partition spec {spec_id} has no field {odd:?}");
                    return Err(refused(message).into());
                }
                let value = |name: &str| {
                    let found = named.iter().find(|(known, _)| known == name).map(|(_, value)| value);
                    found.ok_or_else(|| refused(format!("no value of the partition field {name:?}")))
                };
                types.fields.iter().map(|field| value(&field.name)).collect::<PyResult<_>>()?
            }
        };
        if values.len() != types.fields.len() {
            let (has, wants) = (values.len(), types.fields.len());
            let message = format!("it has {has} partition values, but the partition spec {spec_id} has {wants} fields");
            return Err(refused(message).into());
        }
        let typed = |value: &Py<PyAny>, field: &icefield_format::types::Field| -> Result<Option<Value>> {
            let value = value.bind(py);
            if value.is_none() {
                return Ok(None);
            }
            let wrong = |error: PyErr| refused(format!("partition field {:?}: {}", field.name, error.value(py)));
            Ok(Some(to_value(value, &field.ty).map_err(|error| wrong(error.into()))?))
        };
        let partition = values.into_iter().zip(&types.fields).map(|(value, field)| typed(value, field));
        Ok(DataFile { partition: partition.collect::<Result<_>>()?, ..self.file.clone() })
    }

    /// The keywords that create an equal file; those without a value are left out.
    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (file, all) = (&self.file, PyDict::new(py));
        all.set_item("content", Content::name(file.content))?;
        all.set_item("file_path", &file.file_path)?;
        all.set_item("file_format", self.file_format())?;
        all.set_item("spec_id", file.partition_spec_id)?;
        all.set_item("partition", self.partition(py)?)?;
        all.set_item("record_count", file.record_count)?;
        all.set_item("file_size_in_bytes", file.file_size_in_bytes)?;
        for (name, counts) in [
            ("column_sizes", &file.column_sizes),
            ("value_counts", &file.value_counts),
            ("null_value_counts", &file.null_value_counts),
            ("nan_value_counts", &file.nan_value_counts),
        ] {
            set(&all, name, count_map(counts))?;
        }
        set(&all, "lower_bounds", bound_map(py, &file.lower_bounds))?;
        set(&all, "upper_bounds", bound_map(py, &file.upper_bounds))?;
        set(&all, "key_metadata", file.key_metadata.as_ref().map(|bytes| PyBytes::new(py, bytes)))?;
        set(&all, "split_offsets", file.split_offsets.clone())?;
        set(&all, "equality_ids", file.equality_ids.clone())?;
        set(&all, "sort_order_id", file.sort_order_id)?;
        set(&all, "first_row_id", file.first_row_id)?;
        set(&all, "referenced_data_file", file.referenced_data_file.as_deref())?;
        set(&all, "content_offset", file.content_offset)?;
        set(&all, "content_size_in_bytes", file.content_size_in_bytes)?;
        Ok(all)
    }
}

fn missing(name: &str) -> crate::errors::BorderError {
    ArgumentTypeError::new_err(format!("missing keyword argument {name:?}")).into()
}

fn set<'py>(all: &Bound<'py, PyDict>, name: &str, value: Option<impl IntoPyObject<'py>>) -> PyResult<()> {
    value.map_or(Ok(()), |value| all.set_item(name, value))
}

fn count_map(counts: &Option<Vec<(i32, i64)>>) -> Option<BTreeMap<i32, i64>> {
    counts.as_ref().map(|counts| counts.iter().copied().collect())
}

fn bound_map<'py>(py: Python<'py>, bounds: &Option<Vec<(i32, Vec<u8>)>>) -> Option<BTreeMap<i32, Bound<'py, PyBytes>>> {
    let bounds = bounds.as_ref()?;
    Some(bounds.iter().map(|(id, bytes)| (*id, PyBytes::new(py, bytes))).collect())
}

/// Checks what is required of every file of its kind.
fn check(file: &DataFile, of: FileContent) -> Result<()> {
    let refused = |what: String| Err(InvalidArgumentError::new_err(format!("{}: {what}", file.file_path)).into());
    if file.file_path.is_empty() {
        return Err(InvalidArgumentError::new_err("file_path is empty").into());
    }
    if (file.content == FileContent::Data) != (of == FileContent::Data) {
        let class = if of == FileContent::Data { "DeleteFile" } else { "DataFile" };
        return refused(format!("a file with the content {:?} is a {class}", Content::name(file.content)));
    }
    for (name, number) in [("record_count", file.record_count), ("file_size_in_bytes", file.file_size_in_bytes)] {
        if number < 0 {
            return refused(format!("{name} is negative: {number}"));
        }
    }
    if file.content == FileContent::EqualityDeletes && file.equality_ids.as_ref().is_none_or(Vec::is_empty) {
        return refused("equality deletes need equality_ids, the field ids that are compared".to_owned());
    }
    if file.format() == Some(FileFormat::Puffin) {
        if file.content != FileContent::PositionDeletes {
            return refused("only deletion vectors are in Puffin files".to_owned());
        }
        let place = file.content_offset.is_some() && file.content_size_in_bytes.is_some();
        if !place || file.referenced_data_file.is_none() {
            return refused(
                "a deletion vector needs referenced_data_file, content_offset and content_size_in_bytes".to_owned(),
            );
        }
    }
    Ok(())
}

#[pymethods]
impl PyContentFile {
    /// What the file holds: ``data``, ``position_deletes`` or ``equality_deletes``.
    #[getter]
    fn content(&self) -> &'static str {
        Content::name(self.file.content)
    }

    /// Its location.
    #[getter]
    fn file_path(&self) -> &str {
        &self.file.file_path
    }

    /// Its format: ``parquet``, ``orc``, ``avro`` or ``puffin``.
    #[getter]
    fn file_format(&self) -> Option<&'static str> {
        self.file.format().map(FileFormat::extension)
    }

    /// The partition spec that it was written with.
    #[getter]
    fn spec_id(&self) -> i32 {
        self.file.partition_spec_id
    }

    /// Partition values as they were given: by the names of the fields, or in their order.
    #[getter]
    fn partition<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match &self.partition {
            Partition::InOrder(values) => PyTuple::new(py, values)?.into_any(),
            Partition::Named(named) => {
                let dict = PyDict::new(py);
                named.iter().try_for_each(|(name, value)| dict.set_item(name, value))?;
                dict.into_any()
            }
        })
    }

    /// Number of rows.
    #[getter]
    fn record_count(&self) -> i64 {
        self.file.record_count
    }

    /// Length in bytes.
    #[getter]
    fn file_size_in_bytes(&self) -> i64 {
        self.file.file_size_in_bytes
    }

    /// Bytes of each column, by field id.
    #[getter]
    fn column_sizes(&self) -> Option<BTreeMap<i32, i64>> {
        count_map(&self.file.column_sizes)
    }

    /// Number of values of each column, including nulls and NaNs.
    #[getter]
    fn value_counts(&self) -> Option<BTreeMap<i32, i64>> {
        count_map(&self.file.value_counts)
    }

    /// Number of nulls of each column.
    #[getter]
    fn null_value_counts(&self) -> Option<BTreeMap<i32, i64>> {
        count_map(&self.file.null_value_counts)
    }

    /// Number of NaNs of each column.
    #[getter]
    fn nan_value_counts(&self) -> Option<BTreeMap<i32, i64>> {
        count_map(&self.file.nan_value_counts)
    }

    /// Lower bound of each column, as the bytes of a single value.
    #[getter]
    fn lower_bounds<'py>(&self, py: Python<'py>) -> Option<BTreeMap<i32, Bound<'py, PyBytes>>> {
        bound_map(py, &self.file.lower_bounds)
    }

    /// Upper bound of each column, as the bytes of a single value.
    #[getter]
    fn upper_bounds<'py>(&self, py: Python<'py>) -> Option<BTreeMap<i32, Bound<'py, PyBytes>>> {
        bound_map(py, &self.file.upper_bounds)
    }

    /// How the file is encrypted.
    #[getter]
    fn key_metadata<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.file.key_metadata.as_ref().map(|bytes| PyBytes::new(py, bytes))
    }

    /// Offsets at which the file may be split, ascending.
    #[getter]
    fn split_offsets(&self) -> Option<Vec<i64>> {
        self.file.split_offsets.clone()
    }

    /// Field ids that an equality delete file compares.
    #[getter]
    fn equality_ids(&self) -> Option<Vec<i32>> {
        self.file.equality_ids.clone()
    }

    /// The order that its rows are sorted in.
    #[getter]
    fn sort_order_id(&self) -> Option<i32> {
        self.file.sort_order_id
    }

    /// Row id of its first row (version 3).
    #[getter]
    fn first_row_id(&self) -> Option<i64> {
        self.file.first_row_id
    }

    /// The only data file that its deletes apply to.
    #[getter]
    fn referenced_data_file(&self) -> Option<&str> {
        self.file.referenced_data_file.as_deref()
    }

    /// Where in its file a deletion vector begins.
    #[getter]
    fn content_offset(&self) -> Option<i64> {
        self.file.content_offset
    }

    /// Length of a deletion vector.
    #[getter]
    fn content_size_in_bytes(&self) -> Option<i64> {
        self.file.content_size_in_bytes
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), self.keywords(py)?))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Self>() {
            Ok(other) => self.keywords(py)?.eq(other.get().keywords(py)?),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.file.file_path).hash()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (class, all) = (slf.get_type().name()?, slf.get().keywords(slf.py())?);
        let shown = all.iter().map(|(name, value)| keyword(&name.to_string(), &value));
        Ok(format!("{class}({})", shown.collect::<PyResult<Vec<_>>>()?.join(", ")))
    }
}

/// An argument as `repr` shows it: without the key of the file.
pub(super) fn keyword(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    match name {
        "key_metadata" if !value.is_none() => Ok(format!("{name}={HIDDEN}")),
        _ => Ok(format!("{name}={}", value.repr()?)),
    }
}

#[pymethods]
impl PyDataFile {
    #[new]
    #[pyo3(signature = (**keywords))]
    fn py_new(keywords: Option<&Bound<'_, PyDict>>) -> Result<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(PyContentFile::made(keywords, FileContent::Data)?).add_subclass(Self))
    }
}

#[pymethods]
impl PyDeleteFile {
    #[new]
    #[pyo3(signature = (**keywords))]
    fn py_new(keywords: Option<&Bound<'_, PyDict>>) -> Result<PyClassInitializer<Self>> {
        Ok(PyClassInitializer::from(PyContentFile::made(keywords, FileContent::PositionDeletes)?).add_subclass(Self))
    }
}
