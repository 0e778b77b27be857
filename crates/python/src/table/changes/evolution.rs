//! Changes of a table's schema, partition spec, sort order and references ("Schema Evolution", "Partition Evolution",
//! "Sort Orders", "Snapshot References"), as updates of the REST protocol in JSON.

use std::sync::{Arc, Mutex, PoisonError};

use icefield_format::evolution::{NewColumn, UpdateSchema};
use icefield_format::metadata::{MetadataUpdate, RefKind, SnapshotRef, TableMetadata};
use icefield_format::spec::{PartitionTerm, SortField, SortOrder, UpdatePartitionSpec};
use icefield_table::operation::cherry_pick::CherryPick;
use pyo3::prelude::*;

use crate::arguments::integer::Int;
use crate::arguments::type_input::TypeInput;
use crate::errors::Result;
use crate::format::metadata::PyTableMetadata;
use crate::format::partitioning::PyPartitionSpec;
use crate::format::schemas::schema::{IcebergSchemaInput, PySchema};
use crate::format::transforms::TransformInput;
use crate::format::values::{primitive, to_value};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PySchemaChange>()?;
    module.add_class::<PySpecChange>()?;
    module.add_function(wrap_pyfunction!(sort_order_updates, module)?)?;
    module.add_function(wrap_pyfunction!(create_ref, module)?)?;
    module.add_function(wrap_pyfunction!(remove_ref, module)?)?;
    module.add_function(wrap_pyfunction!(check_cherry_pick, module)?)?;
    module.add_function(wrap_pyfunction!(replace_ref, module)?)?;
    module.add_function(wrap_pyfunction!(replace_branch, module)?)?;
    module.add_function(wrap_pyfunction!(rename_branch, module)?)?;
    module.add_function(wrap_pyfunction!(set_retention, module)?)?;
    module.add_function(wrap_pyfunction!(set_current_snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(rollback_to_snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(rollback_to_timestamp, module)?)
}

/// Changes of the current schema ("Schema Evolution").
///
/// Each is checked when it is made, and one that fails leaves the others as they are.
#[pyclass(frozen, name = "SchemaChange", module = "icefield._core")]
#[derive(Debug)]
pub struct PySchemaChange {
    metadata: Arc<TableMetadata>,
    change: Mutex<UpdateSchema>,
}

/// Changes of the default partition spec ("Partition Evolution").
///
/// Each is checked when it is made, and one that fails leaves the others as they are.
#[pyclass(frozen, name = "SpecChange", module = "icefield._core")]
#[derive(Debug)]
pub struct PySpecChange {
    metadata: Arc<TableMetadata>,
    change: Mutex<UpdatePartitionSpec>,
}

/// Applies one step to a change; on an error the change stays as it was.
fn step<T: Clone, R>(
    change: &Mutex<T>,
    operation: impl FnOnce(&mut T) -> icefield_format::Result<R>,
) -> icefield_format::Result<()> {
    // The change is replaced as a whole, so that it stays valid even after a panic.
    let mut change = change.lock().unwrap_or_else(PoisonError::into_inner);
    let mut changed = change.clone();
    operation(&mut changed)?;
    *change = changed;
    Ok(())
}

fn current<T: Clone>(change: &Mutex<T>) -> T {
    change.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn texts(updates: &[MetadataUpdate]) -> Vec<String> {
    updates.iter().map(|update| update.to_json().to_string()).collect()
}

#[pymethods]
impl PySchemaChange {
    #[new]
    #[pyo3(signature = (metadata, *, case_sensitive=true, allow_incompatible=false))]
    fn py_new(metadata: &Bound<'_, PyTableMetadata>, case_sensitive: bool, allow_incompatible: bool) -> Self {
        let metadata = Arc::clone(&metadata.get().0);
        let mut change = metadata.update_schema();
        change.case_sensitive(case_sensitive);
        if allow_incompatible {
            change.allow_incompatible();
        }
        Self { metadata, change: Mutex::new(change) }
    }

    /// Add a column at the end of a struct, or of the schema without a ``parent``.
    ///
    /// Field ids in its type are replaced by new ones.
    #[pyo3(signature = (parent, name, field_type, *, doc=None, required=false, default_value=None))]
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn add_column(
        &self,
        parent: Option<String>,
        name: &str,
        field_type: TypeInput,
        doc: Option<String>,
        required: bool,
        default_value: Option<&Bound<'_, PyAny>>,
    ) -> Result<()> {
        let default = default_value.map(|value| to_value(value, &field_type.0)).transpose()?;
        let column = NewColumn::inside(parent.as_deref(), name, field_type.0).with_doc(doc).with_default(default);
        let column = if required { column.required() } else { column };
        Ok(step(&self.change, |change| change.add(column).map(drop))?)
    }

    /// Delete a column.
    fn delete_column(&self, path: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.delete(path).map(drop))?)
    }

    /// Rename a column.
    fn rename_column(&self, path: &str, new_name: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.rename(path, new_name).map(drop))?)
    }

    /// Make a column required, which is an incompatible change.
    fn require_column(&self, path: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.require(path).map(drop))?)
    }

    /// Make a column optional.
    fn make_column_optional(&self, path: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.make_optional(path).map(drop))?)
    }

    /// Promote the type of a column; other changes of a type raise ``InvalidArgumentError``.
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn update_type(&self, path: &str, field_type: TypeInput) -> Result<()> {
        let ty = primitive(&field_type.0)?;
        Ok(step(&self.change, |change| change.update_type(path, &ty).map(drop))?)
    }

    /// Set or remove the comment of a column.
    #[pyo3(signature = (path, doc))]
    fn update_doc(&self, path: &str, doc: Option<&str>) -> Result<()> {
        Ok(step(&self.change, |change| change.update_doc(path, doc).map(drop))?)
    }

    /// Set or remove the default value of a column in rows written without one.
    #[pyo3(signature = (path, value))]
    fn update_default(&self, path: &str, value: Option<&Bound<'_, PyAny>>) -> Result<()> {
        let value = match value {
            Some(value) => Some(to_value(value, &current(&self.change).type_of(path)?)?),
            None => None,
        };
        Ok(step(&self.change, |change| change.update_default(path, value).map(drop))?)
    }

    /// Move a column to the front of its struct.
    fn move_first(&self, path: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.move_first(path).map(drop))?)
    }

    /// Move a column before another one of its struct.
    fn move_before(&self, path: &str, before: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.move_before(path, before).map(drop))?)
    }

    /// Move a column after another one of its struct.
    fn move_after(&self, path: &str, after: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.move_after(path, after).map(drop))?)
    }

    /// Add the columns of a schema that are missing, by name, and promote types as needed.
    fn union_by_name(&self, schema: IcebergSchemaInput) -> Result<()> {
        let other = schema.for_version(self.metadata.format_version().number())?;
        Ok(step(&self.change, |change| change.union_by_name(&other).map(drop))?)
    }

    /// Set the columns that identify a row.
    #[expect(clippy::needless_pass_by_value, reason = "extracted by PyO3")]
    fn set_identifier_fields(&self, names: Vec<String>) -> Result<()> {
        Ok(step(&self.change, |change| {
            change.set_identifier_fields(&names);
            Ok(())
        })?)
    }

    /// Return the changed schema.
    fn apply(&self) -> Result<PySchema> {
        Ok(PySchema(current(&self.change).apply()?))
    }

    /// Return the updates of the REST protocol that make the changes, as JSON texts.
    fn updates(&self) -> Result<Vec<String>> {
        Ok(texts(&self.metadata.schema_updates(&current(&self.change))?))
    }
}

#[pymethods]
impl PySpecChange {
    #[new]
    #[pyo3(signature = (metadata, *, case_sensitive=true))]
    fn py_new(metadata: &Bound<'_, PyTableMetadata>, case_sensitive: bool) -> Self {
        let metadata = Arc::clone(&metadata.get().0);
        let mut change = metadata.update_partition_spec();
        change.case_sensitive(case_sensitive);
        Self { metadata, change: Mutex::new(change) }
    }

    /// Add a transform of a column; without a ``name``, it is named after both.
    #[pyo3(signature = (column, transform, name=None))]
    fn add_field(&self, column: &str, transform: TransformInput, name: Option<&str>) -> Result<()> {
        Ok(step(&self.change, |change| change.add_field(transform.0, column, name).map(drop))?)
    }

    /// Add a field by its text, such as ``bucket(16, id) as shard``.
    #[pyo3(signature = (text, name=None))]
    fn add_text(&self, text: &str, name: Option<&str>) -> Result<()> {
        let term = PartitionTerm::parse(text)?;
        let name = name.or(term.name.as_deref());
        Ok(step(&self.change, |change| change.add_field(term.transform, &term.column, name).map(drop))?)
    }

    /// Remove a field by its name.
    fn remove_field(&self, name: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.remove_field(name).map(drop))?)
    }

    /// Remove a field by its text, such as ``bucket(16, id)``.
    fn remove_text(&self, text: &str) -> Result<()> {
        let term = PartitionTerm::parse(text)?;
        Ok(step(&self.change, |change| change.remove_transform(&term.transform, &term.column).map(drop))?)
    }

    /// Rename a field.
    fn rename_field(&self, name: &str, new_name: &str) -> Result<()> {
        Ok(step(&self.change, |change| change.rename_field(name, new_name).map(drop))?)
    }

    /// Return the changed spec.
    fn apply(&self) -> Result<PyPartitionSpec> {
        Ok(PyPartitionSpec(Arc::new(current(&self.change).apply()?)))
    }

    /// Return the updates of the REST protocol that make the changes, as JSON texts.
    fn updates(&self) -> Result<Vec<String>> {
        Ok(texts(&self.metadata.default_spec_updates(&current(&self.change).apply()?)))
    }
}

/// A sort field: its text, or column, transform, direction and null order.
#[derive(FromPyObject)]
enum SortInput {
    Text(String),
    Column(String, String, String),
}

/// Return the updates of the REST protocol that set the sort order, as JSON texts.
#[pyfunction]
fn sort_order_updates(metadata: &Bound<'_, PyTableMetadata>, fields: Vec<SortInput>) -> Result<Vec<String>> {
    let metadata = &metadata.get().0;
    let schema = metadata.current_schema();
    let fields = fields.into_iter().map(|field| match field {
        SortInput::Text(text) => SortField::from_text(&text, schema),
        SortInput::Column(column, transform, order) => SortField::of_column(&column, &transform, &order, schema),
    });
    let fields = fields.collect::<icefield_format::Result<Vec<_>>>()?;
    let order = match fields.as_slice() {
        [] => SortOrder::unsorted(),
        _ => SortOrder { order_id: 1, fields },
    };
    Ok(texts(&metadata.default_sort_order_updates(&order)))
}

/// Return the update that creates a branch or tag, as JSON text; ages are in milliseconds.
#[pyfunction]
#[pyo3(signature = (
    metadata, name, snapshot_id, *, is_branch, max_ref_age_ms=None, max_snapshot_age_ms=None, min_snapshots_to_keep=None
))]
fn create_ref(
    metadata: &Bound<'_, PyTableMetadata>,
    name: &str,
    snapshot_id: Int<i64>,
    is_branch: bool,
    max_ref_age_ms: Option<Int<i64>>,
    max_snapshot_age_ms: Option<Int<i64>>,
    min_snapshots_to_keep: Option<Int<i32>>,
) -> Result<String> {
    let [max_ref_age_ms, max_snapshot_age_ms] = [max_ref_age_ms, max_snapshot_age_ms].map(|age| age.map(|Int(ms)| ms));
    let min_snapshots_to_keep = min_snapshots_to_keep.map(|Int(count)| count);
    let kind = match is_branch {
        true => RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms },
        false => RefKind::Tag,
    };
    let reference = SnapshotRef { kind, max_ref_age_ms, ..SnapshotRef::tag(snapshot_id.0) };
    Ok(metadata.get().0.create_ref(name, reference)?.to_json().to_string())
}

/// Return the update that removes a branch or tag, as JSON text.
#[pyfunction]
#[pyo3(signature = (metadata, name, *, is_branch))]
fn remove_ref(metadata: &Bound<'_, PyTableMetadata>, name: &str, is_branch: bool) -> Result<String> {
    Ok(metadata.get().0.remove_ref(name, is_branch)?.to_json().to_string())
}

/// Refuse a snapshot that cannot be picked into the main branch.
#[pyfunction]
fn check_cherry_pick(metadata: &Bound<'_, PyTableMetadata>, snapshot_id: Int<i64>) -> Result<()> {
    CherryPick::check(&metadata.get().0, snapshot_id.0)?;
    Ok(())
}

/// The update that moves a branch, or a tag, to a snapshot.
#[pyfunction]
#[pyo3(signature = (metadata, name, snapshot_id, *, is_branch))]
fn replace_ref(
    metadata: &Bound<'_, PyTableMetadata>,
    name: &str,
    snapshot_id: Int<i64>,
    is_branch: bool,
) -> Result<String> {
    Ok(metadata.get().0.replace_ref(name, snapshot_id.0, is_branch)?.to_json().to_string())
}

/// The update that moves a branch to another branch or tag.
#[pyfunction]
#[pyo3(signature = (metadata, name, by, *, fast_forward))]
fn replace_branch(metadata: &Bound<'_, PyTableMetadata>, name: &str, by: &str, fast_forward: bool) -> Result<String> {
    Ok(metadata.get().0.replace_branch(name, by, fast_forward)?.to_json().to_string())
}

/// The updates that rename a branch.
#[pyfunction]
fn rename_branch(metadata: &Bound<'_, PyTableMetadata>, name: &str, new_name: &str) -> Result<Vec<String>> {
    Ok(texts(&metadata.get().0.rename_branch(name, new_name)?))
}

/// The update that sets how long a branch or tag is kept, and what of a branch.
#[pyfunction]
#[pyo3(signature = (metadata, name, *, max_ref_age_ms=None, max_snapshot_age_ms=None, min_snapshots_to_keep=None))]
fn set_retention(
    metadata: &Bound<'_, PyTableMetadata>,
    name: &str,
    max_ref_age_ms: Option<Int<i64>>,
    max_snapshot_age_ms: Option<Int<i64>>,
    min_snapshots_to_keep: Option<Int<i32>>,
) -> Result<String> {
    let [max_ref_age_ms, max_snapshot_age_ms] = [max_ref_age_ms, max_snapshot_age_ms].map(|age| age.map(|Int(ms)| ms));
    let min_snapshots_to_keep = min_snapshots_to_keep.map(|Int(count)| count);
    let metadata = &metadata.get().0;
    Ok(metadata.set_retention(name, max_ref_age_ms, max_snapshot_age_ms, min_snapshots_to_keep)?.to_json().to_string())
}

/// Return the update that makes a snapshot the current one, as JSON text.
#[pyfunction]
fn set_current_snapshot(metadata: &Bound<'_, PyTableMetadata>, snapshot_id: Int<i64>) -> Result<String> {
    Ok(metadata.get().0.set_current(snapshot_id.0)?.to_json().to_string())
}

/// Return the update that makes an ancestor of the current snapshot the current one, as JSON text.
#[pyfunction]
fn rollback_to_snapshot(metadata: &Bound<'_, PyTableMetadata>, snapshot_id: Int<i64>) -> Result<String> {
    Ok(metadata.get().0.rollback_to(snapshot_id.0)?.to_json().to_string())
}

/// Return the update that makes the last ancestor before a time, in milliseconds, the current one, as JSON text.
#[pyfunction]
fn rollback_to_timestamp(metadata: &Bound<'_, PyTableMetadata>, timestamp_ms: Int<i64>) -> Result<String> {
    Ok(metadata.get().0.rollback_to_before(timestamp_ms.0)?.to_json().to_string())
}
