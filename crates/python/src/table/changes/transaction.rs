//! Transactions: several changes of one table in one commit.

use std::collections::{BTreeMap, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use icefield_format::manifest::DataFile;
use icefield_format::manifest::list::ManifestList;
use icefield_format::metadata::{MetadataUpdate, TableMetadata, requirements_for_update};
use icefield_format::value::Value;
use icefield_table::commit::{
    Change, Content, SnapshotOptions, SnapshotProducer, Transaction, Updates, keys_of_columns, keys_of_values,
};
use icefield_table::operation::add_files::AddFilesOptions;
use icefield_table::operation::append::{AddedFiles, Append, AppendOptions};
use icefield_table::operation::cherry_pick::CherryPick;
use icefield_table::operation::replace::Replace;
use icefield_table::operation::rewrite_manifests::RewriteManifests;
use pyo3::prelude::*;

use super::file_changes::FileChangesInput;
use crate::arguments::integer::Int;
use crate::arguments::json::JsonInput;
use crate::callback::{ENDED, call_python};
use crate::capsule::{ArrayInput, ArrowTable, StreamInput};
use crate::entry::detached;
use crate::errors::{InvalidArgumentError, Result, from_callback, from_rows};
use crate::format::files::data_file::PyContentFile;
use crate::format::files::manifest_file::PyManifestFile;
use crate::format::metadata::PyTableMetadata;
use crate::format::schemas::schema::IcebergSchemaInput;
use crate::format::values::to_value;
use crate::held::{Held, Hold};
use crate::storage::PyTraffic;
use crate::table::catalog::of_python;
use crate::table::state::{Fields, PyTableState, append_options, definition, updates_of};

/// Adds the names of this module to `icefield._core`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTransaction>()
}

/// Changes of a table, reapplied to its current state at each attempt to commit them.
#[pyclass(frozen, name = "Transaction", module = "icefield._core")]
#[derive(Debug)]
pub struct PyTransaction {
    state: PyTableState,
    changes: Held<Transaction>,
}

impl PyTransaction {
    pub(super) fn changes(&self) -> icefield_table::Result<Hold<'_, Transaction>> {
        self.changes.hold()
    }

    /// Converts files, with partition values in the types that the table has after the changes so far.
    fn files(&self, py: Python<'_>, files: &[Bound<'_, PyContentFile>]) -> Result<Vec<DataFile>> {
        let metadata = detached(py, || self.changes()?.metadata().cloned())??;
        files.iter().map(|file| file.get().of_table(py, &metadata)).collect()
    }

    /// Adds a snapshot. With `make` it is created at once, based on the changes so far; otherwise only in the commit,
    /// based on the table at that time.
    fn produce(&self, py: Python<'_>, content: impl Content + Send + 'static, kind: SnapshotKind) -> Result<()> {
        let storage = self.state.storage.0.clone();
        let (make, options) = (kind.make, kind.options());
        self.put(py, SnapshotProducer::new(storage, content, options), make)
    }

    fn put(&self, py: Python<'_>, change: impl Change + Send + 'static, make: bool) -> Result<()> {
        Ok(detached(py, || {
            let mut changes = self.changes()?;
            changes.check_open()?;
            match make {
                true => changes.stage(change),
                false => {
                    changes.add(change);
                    Ok(())
                }
            }
        })??)
    }
}

/// Numbers and bytes of replaced and of new manifests, the number of those that stay, and that of entries.
type ManifestCounts = (usize, i64, usize, i64, usize, usize);

/// The counts of a row change: rows deleted, rows added, files removed, files rewritten, files with new deletes, bytes
/// of the rewritten files, files added, bytes of the added files.
pub(crate) type Counts = (i64, i64, usize, usize, usize, i64, usize, i64, i64);

fn of_added(added: AddedFiles) -> Counts {
    (0, added.rows, 0, 0, 0, 0, added.files, added.bytes, 0)
}

/// Calls a Python function with rows, which returns a value for each.
fn asked(function: &Py<PyAny>, rows: RecordBatch) -> icefield_table::Result<ArrayRef> {
    let answer = call_python(|py| {
        let ask = || {
            let table = Bound::new(py, ArrowTable::from(rows))?.call_method0("to_pyarrow")?;
            function.bind(py).call1((table,))?.extract::<ArrayInput>()?.checked(py)
        };
        ask().map_err(|error| from_callback(py, error))
    });
    answer.unwrap_or_else(|| Err(icefield_table::Error::Interrupted(ENDED.into())))
}

/// How a snapshot is created: the keywords that all operations have.
#[derive(Debug, FromPyObject)]
pub(crate) struct SnapshotKind {
    #[pyo3(item)]
    branch: String,
    #[pyo3(item)]
    snapshot_properties: BTreeMap<String, String>,
    #[pyo3(item)]
    stage_only: bool,
    #[pyo3(item)]
    merge: bool,
    #[pyo3(item)]
    make: bool,
}

impl SnapshotKind {
    fn options(self) -> SnapshotOptions {
        let properties = self.snapshot_properties.into_iter().collect();
        SnapshotOptions { branch: self.branch, properties, merge: self.merge, stage_only: self.stage_only }
    }
}

#[pymethods]
impl PyTransaction {
    /// A transaction without changes, of the table as it is in this state. With a key, it is done once.
    #[new]
    #[pyo3(signature = (state, idempotency_key=None))]
    fn py_new(state: &Bound<'_, PyTableState>, idempotency_key: Option<String>) -> Self {
        let state = state.get().clone();
        let changes = Transaction::new(state.storage.0.clone(), (*state.committed).clone());
        let changes = Held::new("transaction", changes.with_idempotency_key(idempotency_key));
        Self { state, changes }
    }

    /// The table's metadata with the changes so far.
    #[getter]
    fn metadata(&self, py: Python<'_>) -> Result<PyTableMetadata> {
        Ok(PyTableMetadata(detached(py, || self.changes()?.metadata().cloned())??))
    }

    /// Count what the changes from now on read and write; nothing is counted without.
    #[pyo3(signature = (traffic=None))]
    fn count(&self, py: Python<'_>, traffic: Option<&Bound<'_, PyTraffic>>) -> Result<()> {
        let traffic = traffic.map(|traffic| traffic.get().0.clone());
        Ok(detached(py, || {
            self.changes()?.count(traffic);
            Ok::<_, icefield_table::Error>(())
        })??)
    }

    /// Whether there is nothing to commit.
    #[getter]
    fn is_empty(&self, py: Python<'_>) -> Result<bool> {
        Ok(detached(py, || Ok::<_, icefield_table::Error>(self.changes()?.is_empty()))??)
    }

    /// Add updates (REST protocol) that were made of `metadata`. They are applied at an attempt only if what they build on
    /// is still the same then.
    fn stage(&self, py: Python<'_>, updates: JsonInput) -> Result<()> {
        let updates = updates_of(&updates)?;
        Ok(detached(py, || {
            let mut changes = self.changes()?;
            let requirements = requirements_for_update(changes.metadata()?, &updates);
            changes.stage(Updates::new(requirements, updates)?)
        })??)
    }

    /// Write rows to data files, to be appended with the other changes: what is done, as the changes of rows count it.
    #[pyo3(signature = (
        rows, *, branch="main".to_owned(), snapshot_properties=BTreeMap::new(), allow_missing=true, ignore_extra=false,
        evolve=false, dry_run=false, properties=BTreeMap::new()
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the append")]
    fn append(
        &self,
        py: Python<'_>,
        rows: StreamInput,
        branch: String,
        snapshot_properties: BTreeMap<String, String>,
        allow_missing: bool,
        ignore_extra: bool,
        evolve: bool,
        dry_run: bool,
        properties: BTreeMap<String, String>,
    ) -> Result<Counts> {
        let options = append_options(branch, snapshot_properties, allow_missing, ignore_extra, evolve);
        let options = AppendOptions { dry_run, properties: properties.into_iter().collect(), ..options };
        let schema = rows.0.schema();
        let batches = rows.0.map(|batch| batch.map_err(from_rows));
        Ok(detached(py, || {
            let mut changes = self.changes()?;
            changes.check_open()?;
            let added = changes.append(&schema, batches, options)?;
            changes.metadata()?;
            Ok::<_, icefield_table::Error>(of_added(added))
        })??)
    }

    /// Take files that others have written into the table with the other changes: what is done. ``partitions``: values of
    /// partition fields by name, for each path.
    #[pyo3(signature = (
        paths, *, branch="main".to_owned(), snapshot_properties=BTreeMap::new(), check_duplicates=true,
        partitions=HashMap::new(), read_rows=false, dry_run=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the operation")]
    fn add_files(
        &self,
        py: Python<'_>,
        paths: Vec<String>,
        branch: String,
        snapshot_properties: BTreeMap<String, String>,
        check_duplicates: bool,
        partitions: HashMap<String, BTreeMap<String, Bound<'_, PyAny>>>,
        read_rows: bool,
        dry_run: bool,
    ) -> Result<Counts> {
        let properties = snapshot_properties.into_iter().collect();
        let snapshot = SnapshotOptions { branch, properties, ..SnapshotOptions::default() };
        let metadata = detached(py, || self.changes()?.metadata().cloned())??;
        let partitions = partition_values(&metadata, partitions)?;
        let options = AddFilesOptions { snapshot, allow_duplicates: !check_duplicates, partitions, read_rows, dry_run };
        Ok(detached(py, || {
            let mut changes = self.changes()?;
            changes.check_open()?;
            changes.add_files(&paths, options).map(of_added)
        })??)
    }

    /// Append data files, and those of manifests, that are written already; they stay the caller's if that fails.
    fn append_files(
        &self,
        py: Python<'_>,
        files: Vec<Bound<'_, PyContentFile>>,
        manifests: Vec<Bound<'_, PyManifestFile>>,
        kind: SnapshotKind,
    ) -> Result<()> {
        let mut content = Append::new(self.files(py, &files)?)?;
        manifests.iter().try_for_each(|manifest| content.add_manifest(manifest.get().0.clone()))?;
        self.produce(py, content, kind)
    }

    /// Add and remove files that are described, by the operation of this name.
    fn change_files(
        &self,
        py: Python<'_>,
        operation: &str,
        changes: FileChangesInput<'_>,
        kind: SnapshotKind,
    ) -> Result<()> {
        let files = changes.files(|files| self.files(py, files))?;
        match operation {
            "overwrite" => self.produce(py, changes.overwrite(files)?, kind),
            "delete" => self.produce(py, changes.delete(files)?, kind),
            "row_delta" => self.produce(py, changes.row_delta(files)?, kind),
            "rewrite_files" => self.produce(py, changes.rewrite_files(files)?, kind),
            "replace_partitions" => self.produce(py, changes.replace_partitions(files)?, kind),
            other => Err(InvalidArgumentError::new_err(format!("{other:?} is no change of files")).into()),
        }
    }

    /// Make the changes of a snapshot again at the end of the main branch; with `make` at once, otherwise when it is
    /// committed.
    fn cherry_pick(&self, py: Python<'_>, snapshot_id: Int<i64>, make: bool) -> Result<()> {
        let pick = CherryPick::new(self.state.storage.0.clone(), snapshot_id.0);
        self.put(py, pick, make)
    }

    /// Make a snapshot the current one, whichever is by then.
    fn set_current_snapshot(&self, py: Python<'_>, snapshot_id: Int<i64>, make: bool) -> Result<()> {
        let change = move |base: &TableMetadata| -> icefield_table::Result<Vec<MetadataUpdate>> {
            Ok(vec![base.set_current(snapshot_id.0)?])
        };
        self.put(py, change, make)
    }

    /// Write manifests of data files again, where columns are given: entries with the same values of these columns of their
    /// files stand together, or with the same answer of a function of the entries. `only` says of manifests which ones.
    /// Others are taken out and added as they are. With `with_deletes`, manifests of delete files are grouped too. With `dry_run` nothing is done, and the numbers and bytes of replaced
    /// and of new manifests, the number of those that stay, and that of entries are returned.
    #[pyo3(signature = (columns, function, only, deleted, added, kind, *, with_deletes=false, dry_run=false))]
    #[expect(clippy::too_many_arguments, reason = "each is a part of the operation")]
    fn rewrite_manifests(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        function: Option<Py<PyAny>>,
        only: Option<Py<PyAny>>,
        deleted: Vec<String>,
        added: Vec<Bound<'_, PyManifestFile>>,
        kind: SnapshotKind,
        with_deletes: bool,
        dry_run: bool,
    ) -> Result<Option<ManifestCounts>> {
        let mut content = RewriteManifests::new();
        if with_deletes {
            content.with_delete_manifests();
        }
        deleted.into_iter().for_each(|path| content.delete_manifest(path));
        added.iter().try_for_each(|manifest| content.add_manifest(manifest.get().0.clone()))?;
        if let Some(columns) = columns {
            content.cluster_by(Box::new(move |specs, spec, entries| match &function {
                Some(function) => keys_of_values(&asked(function, entries.to_record_batch()?)?),
                None => keys_of_columns(specs, spec, entries, &columns),
            }));
        }
        if let Some(only) = only {
            content.only(Box::new(move |manifests| {
                let list = ManifestList { manifests: manifests.to_vec(), ..ManifestList::default() };
                let answers = asked(&only, list.to_record_batch()?)?;
                let flags = answers.as_boolean_opt().ok_or_else(|| {
                    icefield_table::Error::invalid(format!("expected booleans, got {}", answers.data_type()))
                })?;
                Ok((0..flags.len()).map(|row| flags.is_valid(row) && flags.value(row)).collect())
            }));
        }
        if dry_run {
            let storage = self.state.storage.0.clone();
            let would = detached(py, || {
                let metadata = self.changes()?.metadata()?.clone();
                content.preview(&storage, &metadata, &kind.branch)
            })??;
            let (replaced, added) = ((would.replaced, would.replaced_bytes), (would.added, would.added_bytes));
            return Ok(Some((replaced.0, replaced.1, added.0, added.1, would.kept, would.entries)));
        }
        self.produce(py, content, kind)?;
        Ok(None)
    }

    /// Replace the table by a definition; its location stays where none is given.
    #[pyo3(signature = (schema, location, partition, sort, properties))]
    fn replace(
        &self,
        py: Python<'_>,
        schema: IcebergSchemaInput,
        location: Option<String>,
        partition: Fields,
        sort: Fields,
        mut properties: BTreeMap<String, String>,
    ) -> Result<()> {
        let base = self.state.committed.metadata.clone();
        // The version determines which types the columns can have.
        let version = base.format_version().number().to_string();
        let asked = properties.contains_key("format-version");
        properties.entry("format-version".to_owned()).or_insert(version);
        let location = location.unwrap_or_else(|| base.location().to_owned());
        let mut definition = definition(schema, location, partition, sort, properties)?;
        if !asked {
            definition.properties.shift_remove("format-version");
        }
        self.put(py, Replace::new(definition)?, true)
    }

    /// Create the table, which is in no catalog yet, with the changes: its state.
    fn create(&self, py: Python<'_>, catalog: Py<PyAny>, identifier: Py<PyAny>) -> Result<PyTableState> {
        let catalog = of_python(&self.state.storage.0, catalog, identifier)?;
        let committed = detached(py, || self.changes()?.create(&*catalog))??;
        Ok(self.state.with(committed))
    }

    /// Commit the changes: the new state.
    fn commit(&self, py: Python<'_>, catalog: Py<PyAny>, identifier: Py<PyAny>) -> Result<PyTableState> {
        let table = self.state.table(catalog, identifier)?;
        let table = detached(py, || table.commit(&mut *self.changes()?))??;
        Ok(self.state.with(table.committed().clone()))
    }

    /// Give the changes up: what was written for them is deleted.
    fn abort(&self, py: Python<'_>) -> Result<()> {
        Ok(detached(py, || {
            self.changes()?.abort();
            Ok::<_, icefield_table::Error>(())
        })??)
    }
}

/// Converts partition values of files to the types of their fields. The operation rejects names that the spec lacks.
fn partition_values(
    metadata: &TableMetadata,
    given: HashMap<String, BTreeMap<String, Bound<'_, PyAny>>>,
) -> Result<HashMap<String, BTreeMap<String, Option<Value>>>> {
    let fields = metadata.default_spec().partition_type(metadata.current_schema()).fields;
    let value = |(name, object): (String, Bound<'_, PyAny>)| {
        let field = fields.iter().find(|field| field.name == name).filter(|_| !object.is_none());
        let value = field.map(|field| to_value(&object, &field.ty)).transpose()?;
        Ok((name, value))
    };
    let of_file = |(path, values): (String, BTreeMap<_, _>)| {
        Ok((path, values.into_iter().map(value).collect::<Result<BTreeMap<_, _>>>()?))
    };
    given.into_iter().map(of_file).collect()
}
