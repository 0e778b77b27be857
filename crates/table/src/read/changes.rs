//! Rows of a changelog: those of the files that were added and removed, and beside them what became of them.
//!
//! The columns that are added ("Reserved Field IDs") are `_change_type` (`INSERT` or `DELETE`), `_change_ordinal` (the
//! place of the snapshot in the changelog, from 0) and `_commit_snapshot_id`.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{self, ReservedField};
use icefield_format::types::{Field, PrimitiveType, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::stream::{BatchStream, OpenTask, TaskBatches};
use super::task::{FilePart, ReadTask, Wanted};
use crate::error::{Error, Result};
use crate::plan::changes::{Change, ChangeType};
use crate::plan::split::{Piece, SplitOptions};
use crate::plan::{Plan, Scan};
use crate::storage::Storage;

/// What the bytes of a task of a changelog begin with.
const CHANGES: &[u8] = b"changes ";

/// A column that tells of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChangeColumn {
    /// `_change_type`
    #[serde(rename = "_change_type")]
    Type,
    /// `_change_ordinal`
    #[serde(rename = "_change_ordinal")]
    Ordinal,
    /// `_commit_snapshot_id`
    #[serde(rename = "_commit_snapshot_id")]
    SnapshotId,
}

impl ChangeColumn {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Type, Self::Ordinal, Self::SnapshotId];

    fn reserved(self) -> ReservedField<PrimitiveType> {
        match self {
            Self::Type => reserved::CHANGE_TYPE,
            Self::Ordinal => reserved::CHANGE_ORDINAL,
            Self::SnapshotId => reserved::COMMIT_SNAPSHOT_ID,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.reserved().name
    }

    /// The column as a field of a schema.
    pub fn field(self) -> Field {
        self.reserved().to_field()
    }

    fn array(self, change: &Change, rows: usize) -> ArrayRef {
        match self {
            Self::Type => {
                let text = change.change_type.as_str();
                let mut values = StringBuilder::with_capacity(rows, rows.saturating_mul(text.len()));
                (0..rows).for_each(|_| values.append_value(text));
                Arc::new(values.finish())
            }
            Self::Ordinal => Arc::new(Int32Array::from_value(change.ordinal, rows)),
            Self::SnapshotId => Arc::new(Int64Array::from_value(change.snapshot_id, rows)),
        }
    }
}

/// What is wanted of every row of a changelog.
#[derive(Debug, Clone)]
pub struct WantedChanges {
    /// The columns of the table.
    pub table: Arc<Wanted>,
    /// The columns that tell of the change.
    pub columns: Vec<ChangeColumn>,
    /// The order of the rows' columns: places among those of the table with those of the change after them.
    pub order: Vec<usize>,
}

/// Parts of files of a changelog that one worker reads.
#[derive(Debug, Clone)]
pub struct ChangeTask {
    /// What is wanted.
    pub wanted: WantedChanges,
    /// The parts, and what became of the rows of each.
    pub parts: Vec<(FilePart, Change)>,
}

/// What a worker reads.
#[derive(Debug, Clone)]
pub enum ScanTask {
    /// Rows.
    Rows(ReadTask),
    /// Rows of a changelog.
    Changes(ChangeTask),
}

#[derive(Serialize, Deserialize)]
struct ChangeTaskForm {
    columns: Vec<ChangeColumn>,
    order: Vec<usize>,
    changes: Vec<(String, i32, i64)>,
    task: Json,
}

impl Scan {
    /// What a changelog wants of every row: the columns of these names, of the table and of the change; all without them.
    pub fn wanted_changes(&self, columns: Option<&[String]>) -> Result<WantedChanges> {
        let taken = |column: &ChangeColumn| Ok::<_, Error>(self.schema.find_by_name(column.name(), true)?.is_some());
        for column in ChangeColumn::ALL {
            if taken(&column)? {
                let name = column.name();
                return Err(Error::invalid(format!("the table has a column {name}: rename it to read a changelog")));
            }
        }
        let named = |name: &String| {
            ChangeColumn::ALL.into_iter().find(|column| match self.case_sensitive {
                true => name == column.name(),
                false => name.eq_ignore_ascii_case(column.name()),
            })
        };
        let Some(names) = columns else {
            let (table, columns) = (self.wanted(None)?, ChangeColumn::ALL.to_vec());
            let order = (0..table.projection.fields().len().saturating_add(columns.len())).collect();
            return Ok(WantedChanges { table, columns, order });
        };
        let of_table: Vec<String> = names.iter().filter(|name| named(name).is_none()).cloned().collect();
        let table = self.wanted(Some(&of_table))?;
        let all = names.iter().any(|name| name == "*");
        let asked = |column: &ChangeColumn| all || names.iter().any(|name| named(name) == Some(*column));
        let columns: Vec<_> = ChangeColumn::ALL.into_iter().filter(asked).collect();
        let order = self.order_of_changes(&table, &columns, names, named)?;
        Ok(WantedChanges { table, columns, order })
    }

    /// The places of the columns of the table, then of the change, in the order in which they are named; `*` is all
    /// that are not named before it.
    fn order_of_changes(
        &self,
        table: &Wanted,
        columns: &[ChangeColumn],
        names: &[String],
        named: impl Fn(&String) -> Option<ChangeColumn>,
    ) -> Result<Vec<usize>> {
        let fields = table.projection.fields();
        let mut order = Vec::new();
        for name in names {
            let found: Vec<usize> = match named(name) {
                _ if name == "*" => (0..fields.len().saturating_add(columns.len())).collect(),
                Some(column) => {
                    let place = columns.iter().position(|one| *one == column);
                    place.map(|place| fields.len().saturating_add(place)).into_iter().collect()
                }
                None => {
                    let id = self.schema.find_by_name(name, self.case_sensitive)?.map(|field| field.id);
                    let column = std::iter::successors(id, |id| self.schema.parent(*id)).last();
                    fields.iter().position(|field| Some(field.id) == column).into_iter().collect()
                }
            };
            found.into_iter().for_each(|place| {
                if !order.contains(&place) {
                    order.push(place);
                }
            });
        }
        Ok(order)
    }

    /// The tasks of a plan of this changelog.
    pub fn change_tasks(&self, plan: &Plan, wanted: &WantedChanges, options: &SplitOptions) -> Result<Vec<ChangeTask>> {
        let task = |pieces: &Vec<Piece>| {
            let parts = pieces.iter().map(|piece| self.changed_part(plan, piece)).collect::<Result<_>>()?;
            Ok(ChangeTask { wanted: wanted.clone(), parts })
        };
        plan.tasks(options)?.iter().map(task).collect()
    }

    /// The rows of a plan of this changelog, file after file.
    pub fn changed_rows(&self, plan: &Plan, wanted: &WantedChanges, limit: Option<usize>) -> Result<BatchStream> {
        let mut parts = Vec::with_capacity(plan.len());
        for (place, manifest) in plan.manifests.iter().enumerate() {
            for (row, length) in manifest.entries.file_size_in_bytes.values().iter().enumerate() {
                parts.push(self.changed_part(plan, &Piece { manifest: place, row, start: 0, length: *length })?);
            }
        }
        ChangeTask { wanted: wanted.clone(), parts }.batches(&self.storage, limit)
    }

    fn changed_part(&self, plan: &Plan, piece: &Piece) -> Result<(FilePart, Change)> {
        let lost = || Error::Internal("a piece of a changelog that the plan lacks".to_owned());
        let manifest = plan.manifests.get(piece.manifest).ok_or_else(lost)?;
        let spec = self.metadata.partition_spec(manifest.spec_id).ok_or_else(lost)?;
        let change = self.changes.as_ref().ok_or_else(lost)?.change(manifest, piece.row)?;
        Ok((FilePart::of_plan(plan, piece, spec)?, change))
    }
}

impl WantedChanges {
    /// The schema of the rows.
    pub fn schema(&self) -> Result<Schema> {
        let fields = self.table.projection.fields().iter().cloned();
        let fields: Vec<_> = fields.chain(self.columns.iter().map(|column| column.field())).collect();
        Ok(Schema::new(0, self.ordered(&fields)?)?)
    }

    /// The Arrow schema of the rows.
    pub fn arrow(&self) -> Result<SchemaRef> {
        let table = self.table.arrow()?;
        let columns = Schema::new(0, self.columns.iter().map(|column| column.field()).collect())?;
        let columns = columns.to_arrow(&ToArrow::default())?;
        let fields: Vec<_> = table.fields().iter().chain(columns.fields()).cloned().collect();
        Ok(Arc::new(ArrowSchema::new_with_metadata(self.ordered(&fields)?, table.metadata().clone())))
    }

    fn ordered<T: Clone>(&self, columns: &[T]) -> Result<Vec<T>> {
        let column = |place: &usize| columns.get(*place).cloned();
        let ordered: Option<_> = self.order.iter().map(column).collect();
        ordered.ok_or_else(|| Error::invalid("not a scan task: the order of its columns names one that it lacks"))
    }
}

impl ChangeTask {
    /// The rows of the task, part after part.
    pub fn batches(self, storage: &Storage, limit: Option<usize>) -> Result<BatchStream> {
        let output = self.wanted.arrow()?;
        let open = |(part, change): (FilePart, Change)| -> OpenTask {
            let (storage, wanted, output) = (storage.clone(), self.wanted.clone(), output.clone());
            Box::new(move || {
                let rows = ReadTask { wanted: wanted.table.clone(), parts: vec![part] }.batches(&storage, None)?;
                let told = move |batch: RecordBatch| {
                    let rows = batch.num_rows();
                    let columns = wanted.columns.iter().map(|column| column.array(&change, rows));
                    let columns: Vec<_> = batch.columns().iter().cloned().chain(columns).collect();
                    let columns = wanted.ordered(&columns)?;
                    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
                    RecordBatch::try_new_with_options(output.clone(), columns, &options)
                        .map_err(|error| Error::Internal(error.to_string()))
                };
                Ok(Box::new(rows.map(move |batch| told(batch?))) as TaskBatches)
            })
        };
        Ok(BatchStream::new(output.clone(), self.parts.into_iter().map(open).collect(), limit))
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        let (parts, changes): (Vec<_>, Vec<_>) = self.parts.iter().cloned().unzip();
        let task = ReadTask { wanted: self.wanted.table.clone(), parts }.to_bytes()?;
        let change = |change: Change| (change.change_type.as_str().to_owned(), change.ordinal, change.snapshot_id);
        let internal = |error: serde_json::Error| Error::Internal(error.to_string());
        let form = ChangeTaskForm {
            columns: self.wanted.columns.clone(),
            order: self.wanted.order.clone(),
            changes: changes.into_iter().map(change).collect(),
            task: serde_json::from_slice(&task).map_err(internal)?,
        };
        let mut bytes = CHANGES.to_vec();
        serde_json::to_writer(&mut bytes, &form).map_err(internal)?;
        Ok(bytes)
    }

    fn from_form(form: ChangeTaskForm) -> Result<Self> {
        let task = serde_json::to_vec(&form.task).map_err(|error| Error::Internal(error.to_string()))?;
        let task = ReadTask::from_bytes(&task)?;
        if task.parts.len() != form.changes.len() {
            return Err(Error::invalid("not a scan task: as many changes as parts are wanted"));
        }
        let change = |(kind, ordinal, snapshot_id): (String, i32, i64)| {
            Ok(Change { change_type: ChangeType::parse(&kind)?, ordinal, snapshot_id })
        };
        let changes = form.changes.into_iter().map(change).collect::<Result<Vec<_>>>()?;
        let wanted = WantedChanges { table: task.wanted, columns: form.columns, order: form.order };
        Ok(Self { wanted, parts: task.parts.into_iter().zip(changes).collect() })
    }
}

impl ScanTask {
    /// The task as bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        match self {
            Self::Rows(task) => task.to_bytes(),
            Self::Changes(task) => task.to_bytes(),
        }
    }

    /// The task that [`ScanTask::to_bytes`] made into bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let Some(form) = bytes.strip_prefix(CHANGES) else { return ReadTask::from_bytes(bytes).map(Self::Rows) };
        let form = serde_json::from_slice(form);
        ChangeTask::from_form(form.map_err(|error| Error::invalid(format!("not a scan task: {error}")))?)
            .map(Self::Changes)
    }

    /// Names of the columns of the rows, in their order.
    pub fn column_names(&self) -> Vec<&str> {
        match self {
            Self::Rows(task) => names(&task.wanted),
            Self::Changes(task) => {
                let columns = task.wanted.columns.iter().map(|column| column.name());
                let columns: Vec<_> = names(&task.wanted.table).into_iter().chain(columns).collect();
                task.wanted.ordered(&columns).unwrap_or_default()
            }
        }
    }

    /// The rows of the task, part after part.
    pub fn batches(self, storage: &Storage, limit: Option<usize>) -> Result<BatchStream> {
        match self {
            Self::Rows(task) => task.batches(storage, limit),
            Self::Changes(task) => task.batches(storage, limit),
        }
    }

    /// How many parts there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Rows(task) => task.parts.len(),
            Self::Changes(task) => task.parts.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn names(wanted: &Wanted) -> Vec<&str> {
    wanted.projection.fields().iter().map(|field| field.name.as_str()).collect()
}
