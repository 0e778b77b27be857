//! The plan of a row change, made before any worker starts: the candidate files and the settings.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::Schema as ArrowSchema;
use bytes::Bytes;
use icefield_format::expr::{Condition, Expr};
use icefield_format::metadata::TableMetadata;
use icefield_format::types::Schema;
use icefield_format::types::reserved::{FILE, POS, ROW_ID};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::envelope::Kind;
use super::files::{BlockForm, Candidate, Candidates, damaged};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::operation::matching::Matches;
use crate::operation::replace_rows::{Checks, has_lineage};
use crate::operation::row_change::{Command, Isolation, Mode};
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::split::SplitOverrides;
use crate::plan::{Plan, Scan};
use crate::storage::Storage;
use crate::write::WritePlan;

const KIND: Kind = Kind { magic: *b"ICEROWS\x01", name: "a plan of a change of rows" };

/// Parameters of a row change.
#[derive(Debug, Clone)]
pub struct Request {
    /// `delete`, `update`, `merge` or `overwrite`: selects the table properties that apply.
    pub command: String,
    /// A condition that every removed row meets.
    pub condition: Condition,
    /// Whether every row that meets the condition is removed.
    pub exact: bool,
    /// How rows are removed from files; by default from the table's properties.
    pub mode: Option<Mode>,
    /// Which concurrent commits are tolerated; by default from the table's properties.
    pub isolation: Option<Isolation>,
    /// The branch to change.
    pub branch: String,
    /// Whether the condition matches column names case-sensitively.
    pub case_sensitive: bool,
    /// Table properties for this change only.
    pub properties: Vec<(String, String)>,
}

/// The plan of a row change, shared by all of its workers.
#[derive(Debug)]
pub struct RowChangePlan {
    write: WritePlan,
    settings: Settings,
    checks: Checks,
    /// The table without its history, with the properties and the columns of the change: all that workers need.
    table: Arc<TableMetadata>,
    candidates: Candidates,
    /// The scan that tasks are made from; `None` in a deserialized plan.
    scanned: Option<(Scan, Plan)>,
}

/// The settings of a row change.
#[derive(Debug, Clone)]
struct Settings {
    command: String,
    mode: Mode,
    branch: String,
    exact: bool,
}

/// The header of a serialized plan.
#[derive(Serialize, Deserialize)]
struct PlanForm {
    write: Json,
    table: Json,
    command: String,
    mode: String,
    isolation: String,
    branch: String,
    exact: bool,
    snapshot_id: Option<i64>,
    conflicts: Json,
    case_sensitive: bool,
    blocks: Vec<BlockForm>,
}

/// Parses the kind of a change; overwrites use the properties of deletes.
fn command(name: &str) -> Result<Command> {
    match name {
        "delete" | "overwrite" => Ok(Command::Delete),
        "update" => Ok(Command::Update),
        "merge" => Ok(Command::Merge),
        other => Err(Error::invalid(format!("command: expected delete, update, merge or overwrite, got '{other}'"))),
    }
}

impl RowChangePlan {
    /// Plans a change of the current table. With `widened_by`, the columns of new rows, the commit adds those that the
    /// table lacks.
    ///
    /// # Errors
    /// A condition that does not fit the schema; one that compares columns, if [`Request::exact`] is set; a tag instead
    /// of a branch; a mode that the table does not support; or invalid manifests.
    pub fn new(
        storage: &Storage,
        metadata: &Arc<TableMetadata>,
        request: Request,
        widened_by: Option<&ArrowSchema>,
    ) -> Result<Self> {
        let Request { command: name, condition, exact, mode, isolation, branch, case_sensitive, properties } = request;
        let command = command(&name)?;
        let filter = match condition.as_filter() {
            Some(filter) => filter,
            None if exact => {
                return Err(Error::invalid(format!(
                    "the filter {condition} compares columns, which tasks do not test: plan without exact=True, and test the rows \
                     of the tasks"
                )));
            }
            None => condition.weakened(),
        };
        let write = match widened_by {
            Some(rows) => WritePlan::widened(metadata, rows)?,
            None => WritePlan::new(metadata),
        };
        let write = write.with_properties(properties).of_rows(has_lineage(metadata));
        let table = Arc::new(write.table(metadata)?);
        let mode = Mode::of(mode, command, &table)?;
        let isolation = Isolation::of(isolation, command, table.properties())?;
        let scan = Matches::scan(storage, metadata, &branch, &filter, case_sensitive)?;
        let plan = scan.plan()?;
        let found = Matches::candidates_of(scan.clone(), &plan, None)?;
        let checks = Checks {
            from: scan.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id),
            conflicts: found.conflicts(),
            case_sensitive,
            command,
            isolation,
        };
        let (files, certain) = found.into_files();
        let files = files.into_iter().zip(certain);
        let files = files.map(|(file, certain)| Candidate { file, whole: exact && certain }).collect();
        let candidates = Candidates::new(files, &table);
        let settings = Settings { command: name, mode, branch, exact };
        Ok(Self { write, settings, checks, table, candidates, scanned: Some((scan, plan)) })
    }

    /// The plan for writing new rows.
    pub fn write(&self) -> &WritePlan {
        &self.write
    }

    /// The name of the kind of change.
    pub fn command(&self) -> &str {
        &self.settings.command
    }

    /// The branch to change.
    pub fn branch(&self) -> &str {
        &self.settings.branch
    }

    /// Whether every row that the filter matches is removed.
    pub fn is_exact(&self) -> bool {
        self.settings.exact
    }

    /// The snapshot whose rows are changed; `None` for an empty table.
    pub fn snapshot_id(&self) -> Option<i64> {
        self.checks.from
    }

    /// Number of files that may have rows to remove.
    pub fn file_count(&self) -> usize {
        self.candidates.len()
    }

    /// How rows are removed from files.
    pub fn mode(&self) -> Mode {
        self.settings.mode
    }

    /// The table without its history, as workers need it.
    pub(super) fn table(&self) -> &Arc<TableMetadata> {
        &self.table
    }

    pub(super) fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    pub(super) fn checks(&self) -> &Checks {
        &self.checks
    }

    /// The tasks that read the live rows matching the filter; files that are removed whole have none. The columns are
    /// the selected ones, by default all, followed by the file path, the position and the id of each row.
    ///
    /// # Errors
    /// A deserialized plan, unknown columns, a table with columns named like metadata columns, or invalid split sizes.
    pub fn tasks(
        &self,
        selected: Option<&[String]>,
        whole_files: bool,
        options: &SplitOverrides,
    ) -> Result<Vec<ReadTask>> {
        let Some((scan, plan)) = &self.scanned else {
            return Err(Error::invalid(
                "this plan was read from bytes and has no tasks: make them where it was planned, and send them",
            ));
        };
        let wanted = self.wanted(scan, selected)?;
        let options = options.for_table(&scan.metadata)?;
        let places = match self.settings.exact && self.candidates.has_whole() {
            true => Some(uncertain(plan)?),
            false => None,
        };
        let tasks = scan.tasks_of(plan, &wanted, &options, places.as_ref())?;
        Ok(if whole_files { with_whole_files(tasks) } else { tasks })
    }

    /// The columns that tasks read.
    fn wanted(&self, scan: &Scan, selected: Option<&[String]>) -> Result<Arc<Wanted>> {
        let lineage = has_lineage(&self.table).then_some(ROW_ID);
        let mut places: Vec<String> = Vec::new();
        for column in [FILE, POS].into_iter().chain(lineage) {
            if scan.schema.find_by_name(column.name, true)?.is_some() {
                let name = column.name;
                return Err(Error::unsupported(format!(
                    "the table has a column {name}, as the metadata column of the rows to change is called: rename it"
                )));
            }
            if selected.is_none_or(|names| names.iter().all(|name| name != column.name)) {
                places.push(column.name.to_owned());
            }
        }
        if let Some(names) = selected {
            return scan.wanted(Some(&[names, &places].concat()));
        }
        let wanted = scan.wanted(Some(&places))?;
        let fields = scan.schema.fields().iter().chain(wanted.projection.fields()).cloned().collect();
        let projection = Arc::new(Schema::new(scan.schema.schema_id(), fields)?);
        Ok(Arc::new(Wanted { projection, ..(*wanted).clone() }))
    }

    /// Serializes the plan, for workers.
    ///
    /// # Errors
    /// A filter that does not fit the schema of the new rows, or has no JSON form.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let (blocks, sections) = self.candidates.to_sections()?;
        let Settings { command, mode, branch, exact } = self.settings.clone();
        // Bound: the literals of text are converted to the types of their columns by binding alone, and the form of an
        // unbound filter does not say which types its literals have.
        let conflicts = self.checks.conflicts.bind(self.table.current_schema(), self.checks.case_sensitive)?;
        let form = PlanForm {
            write: self.write.to_json()?,
            table: self.table.to_json_value(),
            command,
            mode: mode.name().to_owned(),
            isolation: self.checks.isolation.name().to_owned(),
            branch,
            exact,
            snapshot_id: self.checks.from,
            conflicts: conflicts.to_json()?,
            case_sensitive: self.checks.case_sensitive,
            blocks,
        };
        KIND.seal(&form, &sections)
    }

    /// Deserializes a plan from [`RowChangePlan::to_bytes`]. It cannot make tasks and has no schema changes.
    ///
    /// # Errors
    /// Bytes that are not a plan.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let (form, sections): (PlanForm, _) = KIND.open(&Bytes::from(bytes))?;
        let table = Arc::new(TableMetadata::from_json(form.table.to_string().as_bytes(), &limits()?)?);
        let checks = Checks {
            from: form.snapshot_id,
            conflicts: Expr::from_json_typed(&form.conflicts, table.current_schema())?,
            case_sensitive: form.case_sensitive,
            command: command(&form.command)?,
            isolation: Isolation::parse(&form.isolation)?,
        };
        let write = WritePlan::from_json(form.write)?;
        if write.table_uuid.as_deref() != table.table_uuid() {
            return Err(damaged());
        }
        let (mode, branch, exact) = (Mode::parse(&form.mode)?, form.branch, form.exact);
        let candidates = Candidates::from_sections(form.blocks, sections, &table)?;
        let settings = Settings { command: form.command, mode, branch, exact };
        Ok(Self { write, settings, checks, table, candidates, scanned: None })
    }
}

/// The indexes, within a scan plan, of files that are not removed whole.
fn uncertain(plan: &Plan) -> Result<HashSet<usize>> {
    let mut places = HashSet::new();
    for (manifest, first) in plan.manifests.iter().zip(plan.first_places()) {
        let certain = manifest.certain()?;
        places.extend(
            (0..manifest.entries.len()).filter(|row| !certain.value(*row)).map(|row| first.saturating_add(row)),
        );
    }
    Ok(places)
}

/// Moves all parts of a file to the task with its first part.
fn with_whole_files(mut tasks: Vec<ReadTask>) -> Vec<ReadTask> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut moved = Vec::new();
    for (number, task) in tasks.iter_mut().enumerate() {
        let parts = std::mem::take(&mut task.parts);
        for part in parts {
            match *first.entry(part.path.clone()).or_insert(number) {
                own if own == number => task.parts.push(part),
                other => moved.push((other, part)),
            }
        }
    }
    for (number, part) in moved {
        if let Some(task) = tasks.get_mut(number) {
            task.parts.push(part);
        }
    }
    tasks.retain(|task| !task.parts.is_empty());
    tasks
}
