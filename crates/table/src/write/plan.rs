//! What every task of a distributed write needs to know about the table, as bytes: created once by the driver, sent
//! to all executors.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use arrow_schema::Schema as ArrowSchema;
use icefield_format::manifest::DataFile;
use icefield_format::metadata::{
    MAIN_BRANCH, MetadataBuilder, MetadataUpdate, StringMap, TableMetadata, UpdateRequirement, requirements_for_update,
};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::Schema;
use icefield_format::types::reserved::ROW_ID;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use uuid::Uuid;

use super::conform::Matching;
use super::lineage::with_lineage_columns;
use super::location::DataLocations;
use super::widening::asked_by;
use super::wire;
use super::writer::WriterConfig;
use crate::error::{Error, Result};
use crate::storage::{Leftover, Storage};

/// Version of the format; a reader refuses other versions.
const FORM: u32 = 3;

/// One write, shared by all its tasks.
#[derive(Debug, Clone)]
pub struct WritePlan {
    /// The opened table: the files are committed to no other.
    pub table_uuid: Option<String>,
    location: String,
    properties: StringMap,
    schema: Arc<Schema>,
    spec: Arc<PartitionSpec>,
    order: Arc<SortOrder>,
    /// The id of the write, part of its file names.
    pub operation: Uuid,
    /// The snapshots of branches when the write was planned.
    heads: BTreeMap<String, i64>,
    /// Whether the rows replace others, which the same commit removes.
    of_rows: bool,
    /// Whether some of the rows are rewritten ones, which keep their row ids.
    row_ids: bool,
    /// Schema changes for the rows, and their requirements; not in the serialized plan.
    widening: (Vec<UpdateRequirement>, Vec<MetadataUpdate>),
}

#[derive(Serialize, Deserialize)]
struct PlanForm {
    form: u32,
    table_uuid: Option<String>,
    location: String,
    properties: BTreeMap<String, String>,
    schema: Json,
    spec: Json,
    order: Json,
    operation: Uuid,
    heads: BTreeMap<String, i64>,
    of_rows: bool,
    row_ids: bool,
}

impl WritePlan {
    /// A new write to a table in its current state.
    pub fn new(metadata: &TableMetadata) -> Self {
        Self {
            table_uuid: metadata.table_uuid().map(str::to_owned),
            location: metadata.location().to_owned(),
            properties: metadata.properties().clone(),
            schema: metadata.current_schema().clone(),
            spec: metadata.default_spec().clone(),
            order: metadata.default_sort_order().clone(),
            operation: Uuid::new_v4(),
            heads: heads(metadata),
            of_rows: false,
            row_ids: false,
            widening: (Vec::new(), Vec::new()),
        }
    }

    /// A new write of rows with these columns to a table that gets the missing columns, and wider types if rows need
    /// them. [`Table::append_written`](crate::Table::append_written) makes these changes in the commit; it needs this plan
    /// itself, not one from its bytes.
    ///
    /// # Errors
    ///
    /// Columns that no schema change can accommodate.
    pub fn widened(metadata: &TableMetadata, rows: &ArrowSchema) -> Result<Self> {
        let asked = asked_by(rows, metadata.current_schema(), metadata.format_version().number())?;
        let updates = metadata.widened_by(&asked)?;
        let builder = MetadataBuilder::from_base(metadata, metadata.last_updated_ms());
        let widened = builder.apply_all(updates.iter().cloned())?.build()?;
        let requirements = if updates.is_empty() { Vec::new() } else { requirements_for_update(metadata, &updates) };
        Ok(Self { widening: (requirements, updates), ..Self::new(&widened) })
    }

    /// The schema changes that the commit of this write makes, and their requirements.
    pub fn widening(&self) -> &(Vec<UpdateRequirement>, Vec<MetadataUpdate>) {
        &self.widening
    }

    /// The partition spec of its files.
    pub(crate) fn spec(&self) -> &Arc<PartitionSpec> {
        &self.spec
    }

    /// The columns of its files, with those that the commit adds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The plan with other values of some table properties, for this write only.
    #[must_use]
    pub fn with_properties(mut self, properties: impl IntoIterator<Item = (String, String)>) -> Self {
        self.properties.extend(properties);
        self
    }

    /// The plan of rows that replace others. In tables with row ids, rewritten rows bring their own.
    #[must_use]
    pub(crate) fn of_rows(self, row_ids: bool) -> Self {
        Self { of_rows: true, row_ids, ..self }
    }

    /// Whether the rows replace others, so that they must not be committed alone.
    pub fn is_of_rows(&self) -> bool {
        self.of_rows
    }

    /// The table as this write leaves it, without its history.
    pub(crate) fn table(&self, metadata: &TableMetadata) -> Result<TableMetadata> {
        let (_, updates) = &self.widening;
        if updates.is_empty() {
            return Ok(metadata.without_history(self.properties.clone()));
        }
        let builder = MetadataBuilder::from_base(metadata, metadata.last_updated_ms());
        let widened = builder.apply_all(updates.iter().cloned())?.build()?;
        Ok(widened.without_history(self.properties.clone()))
    }

    /// The snapshot that a branch had when the write was planned; of one that did not exist, that of the main branch.
    pub fn head(&self, branch: &str) -> Option<i64> {
        self.heads.get(branch).or_else(|| self.heads.get(MAIN_BRANCH)).copied()
    }

    /// The writer configuration of a task whose rows have these columns.
    ///
    /// # Errors
    /// A schema to which the columns of row lineage cannot be added.
    pub fn config_for(
        &self,
        rows: &ArrowSchema,
        storage: Storage,
        task: u32,
        attempt: u64,
        matching: Matching,
    ) -> Result<WriterConfig> {
        let mut config = self.config(storage, task, attempt);
        config.matching = matching;
        let has = |name: &str| rows.fields().iter().any(|field| field.name() == name);
        if self.row_ids && has(ROW_ID.name) {
            config.schema = with_lineage_columns(&self.schema, |name| matching.allow_missing || has(name))?;
        }
        Ok(config)
    }

    /// The writer configuration of a task.
    pub fn config(&self, storage: Storage, task: u32, attempt: u64) -> WriterConfig {
        let mut config = WriterConfig::new(storage, self.location.as_str(), self.schema.clone(), self.spec.clone());
        config.properties = self.properties.clone();
        config.order = Some(self.order.clone());
        config.operation = self.operation;
        (config.task, config.attempt, config.distributed) = (task, attempt, true);
        config
    }

    /// Serializes the files of a task for the driver.
    pub fn files_to_bytes(&self, files: &[DataFile]) -> Result<Vec<u8>> {
        wire::to_bytes(files, &self.schema, &self.spec)
    }

    /// Deserializes the files of a task from an executor.
    pub fn files_from_bytes(&self, bytes: &[u8]) -> Result<Vec<DataFile>> {
        wire::from_bytes(bytes, &self.schema, &self.spec)
    }

    /// Deletes files of this write, which was certainly not committed, and returns what could not be deleted.
    ///
    /// With `search`, also files that no task has reported, such as those of killed tasks. All file names of the
    /// write contain its id; files with other names stay.
    pub fn discard(&self, storage: &Storage, reported: &[DataFile], search: bool) -> Result<Leftover> {
        let id = self.operation.to_string();
        let own = reported.iter().map(|file| &file.file_path).filter(|path| name_of(path).contains(&id));
        let mut paths: BTreeSet<String> = own.cloned().collect();
        if search {
            paths.extend(self.found(storage)?);
        }
        Ok(delete(storage, paths))
    }

    /// Deletes the files of lost attempts: files of this committed write that no committed task has reported. Returns
    /// what could not be deleted.
    ///
    /// No task of the write may still be running.
    pub fn discard_lost(&self, storage: &Storage, committed: &[DataFile]) -> Result<Leftover> {
        let kept: HashSet<&str> = committed.iter().map(|file| name_of(&file.file_path)).collect();
        let found = self.found(storage)?.into_iter().filter(|path| !kept.contains(name_of(path)));
        Ok(delete(storage, found.collect()))
    }

    /// The files in the table's data folder whose names contain the id of this write.
    fn found(&self, storage: &Storage) -> Result<Vec<String>> {
        let id = self.operation.to_string();
        let locations = DataLocations::new(&self.location, &self.properties)?;
        let mut found = Vec::new();
        for page in storage.pages(locations.root())? {
            let paths = page?.into_iter().map(|entry| entry.path);
            found.extend(paths.filter(|path| name_of(path).contains(&id)));
        }
        Ok(found)
    }

    /// Serializes the plan.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(&self.form()).map_err(|error| Error::Internal(error.to_string()))
    }

    /// The plan as JSON, a part of others.
    pub(crate) fn to_json(&self) -> Result<Json> {
        serde_json::to_value(self.form()).map_err(|error| Error::Internal(error.to_string()))
    }

    fn form(&self) -> PlanForm {
        PlanForm {
            form: FORM,
            table_uuid: self.table_uuid.clone(),
            location: self.location.clone(),
            properties: self.properties.clone().into_iter().collect(),
            schema: self.schema.to_json(),
            spec: self.spec.to_json(),
            order: self.order.to_json(),
            operation: self.operation,
            heads: self.heads.clone(),
            of_rows: self.of_rows,
            row_ids: self.row_ids,
        }
    }

    /// Deserializes a plan from [`WritePlan::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let form = serde_json::from_slice(bytes);
        Self::of(form.map_err(|error| Error::invalid(format!("not a write plan: {error}")))?)
    }

    /// Reads a plan from [`WritePlan::to_json`].
    pub(crate) fn from_json(json: Json) -> Result<Self> {
        let form = serde_json::from_value(json);
        Self::of(form.map_err(|error| Error::invalid(format!("not a write plan: {error}")))?)
    }

    fn of(form: PlanForm) -> Result<Self> {
        if form.form != FORM {
            return Err(Error::invalid(format!(
                "not a write plan that can be read here: expected version {FORM}, got {}",
                form.form
            )));
        }
        Ok(Self {
            table_uuid: form.table_uuid,
            location: form.location,
            properties: form.properties.into_iter().collect(),
            schema: Arc::new(Schema::from_json(&form.schema)?),
            spec: Arc::new(PartitionSpec::from_json(&form.spec)?),
            order: Arc::new(SortOrder::from_json(&form.order)?),
            operation: form.operation,
            heads: form.heads,
            of_rows: form.of_rows,
            row_ids: form.row_ids,
            widening: (Vec::new(), Vec::new()),
        })
    }
}

/// The snapshots of all branches.
fn heads(metadata: &TableMetadata) -> BTreeMap<String, i64> {
    let branches = metadata.refs().iter().filter(|(_, reference)| reference.is_branch());
    let mut heads: BTreeMap<String, i64> = branches.map(|(name, branch)| (name.clone(), branch.snapshot_id)).collect();
    // Some writers set the current snapshot without its branch.
    if let Some(current) = metadata.current_snapshot_id() {
        heads.entry(MAIN_BRANCH.to_owned()).or_insert(current);
    }
    heads
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn delete(storage: &Storage, paths: BTreeSet<String>) -> Leftover {
    let paths: Vec<String> = paths.into_iter().collect();
    let mut leftover = Leftover::default();
    storage.delete_all(&paths).iter().for_each(|error| leftover.add(error));
    leftover
}
