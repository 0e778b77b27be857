//! A task: parts of data files, and what is wanted of their rows. It reads on any machine: [`ReadTask::to_bytes`].

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use icefield_format::expr::{BoundExpr, Expression};
use icefield_format::manifest::FileFormat;
use icefield_format::types::arrow::{ToArrow, field_id, has_ids, with_mapped_ids, with_positional_ids};
use icefield_format::types::{Field, NameMapping, Schema, Type};
use icefield_format::value::Value;

use super::columns::{Constants, Planned, Rules, leaves};
use super::orc::{OrcFile, OrcFilter, OrcRequest, position_field};
use super::orc_predicate;
use super::parquet::{Filter, ParquetFile, Request, projected};
use super::reshape::Reshape;
use super::row_groups;
use super::stream::{BatchStream, OpenTask, TaskBatches};
use crate::error::{Error, Result};
use crate::runtime;
use crate::storage::Storage;

/// Rows of a batch, at the most.
const BATCH_ROWS: usize = 64 << 10;

/// What is wanted of every file of a scan.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The scan's schema, that filters are bound to.
    pub schema: Arc<Schema>,
    /// The columns that rows have, a part of `schema`.
    pub projection: Arc<Schema>,
    /// Ids for the columns of files that carry none.
    pub name_mapping: Option<Arc<NameMapping>>,
}

/// A part of a data file.
#[derive(Debug, Clone)]
pub struct FilePart {
    /// Location.
    pub path: String,
    /// `parquet`, `orc` or `avro`, in lower case.
    pub format: String,
    /// Bytes of the whole file.
    pub size: u64,
    /// First byte of the part.
    pub start: u64,
    /// Bytes of the part.
    pub length: u64,
    /// Rows of the whole file.
    pub record_count: i64,
    /// Partition values of identity fields, by the id of their source column.
    pub identity: Vec<(i32, Option<Value>)>,
    /// What rows are left to be tested for.
    pub residual: BoundExpr,
    /// How many delete files apply.
    pub deletes: usize,
}

/// Parts of files that one worker reads.
#[derive(Debug, Clone)]
pub struct ReadTask {
    /// What is wanted, the same for all tasks of a scan.
    pub wanted: Arc<Wanted>,
    /// The parts, in order.
    pub parts: Vec<FilePart>,
}

impl Wanted {
    /// The Arrow schema of the rows: types as documented in docs/types.md, field ids as metadata.
    pub fn arrow(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.projection.to_arrow(&ToArrow::default())?))
    }
}

impl FilePart {
    fn open(self, storage: &Storage, wanted: &Wanted, output: &SchemaRef, threads: usize) -> Result<TaskBatches> {
        if self.deletes > 0 {
            return Err(Error::unsupported(format!(
                "{}: {} delete files apply to it; reading files with deletes is not built yet",
                self.path, self.deletes
            )));
        }
        match FileFormat::from_name(&self.format) {
            Some(FileFormat::Parquet) => self.open_parquet(storage, wanted, output),
            Some(FileFormat::Orc) => self.open_orc(storage, wanted, output, threads),
            _ => {
                let (path, format) = (&self.path, &self.format);
                Err(Error::unsupported(format!("{path}: reading {format} data files is not built yet")))
            }
        }
    }

    fn open_parquet(self, storage: &Storage, wanted: &Wanted, output: &SchemaRef) -> Result<TaskBatches> {
        let file = ParquetFile::open(storage, &self.path, Some(self.size))?;
        let fields = wanted.with_ids(file.fields());
        let rules = Rules { path: &self.path, constants: &self };
        let range = (self.start, self.length);
        let groups = row_groups::wanted(file.metadata(), &fields, &wanted.schema, &self.residual, range, self.size);
        let (marks, planned) = plan_columns(&rules, &wanted.projection, output, &fields)?;
        let filter = match &self.residual {
            Expression::True => None,
            residual => Some(filter(&rules, wanted, residual, &fields)?),
        };
        let request = Request { leaves: marks, row_groups: groups, selection: None, filter, batch_rows: BATCH_ROWS };
        let batches = file.batches(request)?;
        let reshape = Reshape::new(&self.path, output.clone(), planned);
        Ok(Box::new(batches.map(move |batch| reshape.apply(&batch?))))
    }
}

impl FilePart {
    /// Reads an ORC part: what the file's statistics and filters rule out is skipped, then rows are tested.
    fn open_orc(self, storage: &Storage, wanted: &Wanted, output: &SchemaRef, threads: usize) -> Result<TaskBatches> {
        let mut file = OrcFile::open(storage, &self.path, self.size)?;
        file.take_units(&wanted.with_ids(&file.fields()), &wanted.schema);
        let stored = file.fields();
        let fields = wanted.with_ids(&stored);
        let mut known = orc_predicate::columns(&fields, file.description(), has_ids(&stored));
        known.retain(|id, _| self.identity(*id).is_none());
        let predicate = orc_predicate::predicate(&self.residual, &known);
        let fields: Fields = fields.iter().cloned().chain([position_field()]).collect();
        let rules = Rules { path: &self.path, constants: &self };
        let mut request = OrcRequest {
            leaves: Vec::new(),
            rows: None,
            range: (self.start, self.length),
            batch_rows: BATCH_ROWS,
            predicate,
            filter: None,
            threads,
        };
        let residual = self.residual.rewrite_not();
        if residual == Expression::True || tests_whole_columns(&residual, &fields) {
            let (marks, planned) = plan_columns(&rules, &wanted.projection, output, &fields)?;
            request.leaves = marks;
            if residual != Expression::True {
                let Filter { leaves, test } = filter(&rules, wanted, &residual, &fields)?;
                request.filter = Some(OrcFilter { leaves, test });
            }
            let batches = file.batches(request)?;
            let reshape = Reshape::new(&self.path, output.clone(), planned);
            return Ok(Box::new(batches.map(move |batch| reshape.apply(&batch?))));
        }
        // Tests inside of structs, and of columns that the file lacks, see whole rows.
        let tested = wanted.with_filtered(&residual)?;
        let arrow = Arc::new(tested.to_arrow(&ToArrow::default())?);
        let (marks, planned) = plan_columns(&rules, &tested, &arrow, &fields)?;
        request.leaves = marks;
        let batches = file.batches(request)?;
        let reshape = Reshape::new(&self.path, arrow.clone(), planned);
        // From the rows that were tested, whole as they are, to the columns that are wanted.
        let rules = Rules { path: &self.path, constants: &() };
        let rest = rules.plan(&pairs(&wanted.projection, output), arrow.fields())?;
        let rest = Reshape::new(&self.path, output.clone(), rest);
        Ok(Box::new(batches.map(move |batch| {
            let batch = reshape.apply(&batch?)?;
            let kept = filter_record_batch(&batch, &residual.evaluate(&batch)?);
            rest.apply(&kept.map_err(|error| Error::Internal(error.to_string()))?)
        })))
    }
}

/// Whether a filter asks for top-level columns of the file only, all of them there and none nested.
fn tests_whole_columns(filter: &BoundExpr, fields: &Fields) -> bool {
    filter.predicates().all(|predicate| {
        let id = predicate.term.reference.id;
        fields.iter().any(|field| field_id(field) == Some(id) && !field.data_type().is_nested())
    })
}

impl Wanted {
    /// The columns of a file with the ids that they are read by: its own, else those of the name mapping, else positions.
    fn with_ids(&self, fields: &Fields) -> Fields {
        match &self.name_mapping {
            _ if has_ids(fields) => fields.clone(),
            Some(mapping) => with_mapped_ids(fields, mapping),
            None => with_positional_ids(fields),
        }
    }

    /// The columns of the projection and those that a filter tests.
    fn with_filtered(&self, filter: &BoundExpr) -> Result<Schema> {
        let mut ids = self.projection.projected_ids();
        let mut whole = HashSet::new();
        for predicate in filter.predicates() {
            let reference = &predicate.term.reference;
            // Lists and maps are asked for by what is inside of them.
            let set = if matches!(reference.ty, Type::List(_) | Type::Map(_)) { &mut whole } else { &mut ids };
            set.insert(reference.id);
        }
        if !whole.is_empty() {
            ids.extend(self.schema.select_ids(&whole)?.projected_ids());
        }
        Ok(self.schema.project(&ids)?)
    }
}

/// No partition.
impl Constants for () {
    fn identity(&self, _: i32) -> Option<Option<Value>> {
        None
    }
}

impl Constants for FilePart {
    fn identity(&self, source_id: i32) -> Option<Option<Value>> {
        self.identity.iter().find(|(id, _)| *id == source_id).map(|(_, value)| value.clone())
    }
}

/// The leaves to read for some columns, and the plan of those columns over batches of these leaves.
fn plan_columns(
    rules: &Rules<'_>,
    columns: &Schema,
    output: &ArrowSchema,
    fields: &Fields,
) -> Result<(Vec<usize>, Vec<Planned>)> {
    let wanted = pairs(columns, output);
    let marks = leaves(&rules.plan(&wanted, fields)?, fields);
    let planned = rules.plan(&wanted, &projected(fields, &marks))?;
    Ok((marks, planned))
}

/// Columns, each with its Arrow field.
fn pairs(columns: &Schema, output: &ArrowSchema) -> Vec<(Field, FieldRef)> {
    columns.fields().iter().cloned().zip(output.fields().iter().cloned()).collect()
}

/// The test of a residual over the columns that it names.
fn filter(rules: &Rules<'_>, wanted: &Wanted, residual: &BoundExpr, fields: &Fields) -> Result<Filter> {
    let ids: HashSet<i32> = residual.predicates().map(|predicate| predicate.term.reference.id).collect();
    let columns = wanted.schema.select_ids(&ids)?;
    let arrow = Arc::new(columns.to_arrow(&ToArrow::default())?);
    let (marks, planned) = plan_columns(rules, &columns, &arrow, fields)?;
    let reshape = Reshape::new(rules.path, arrow, planned);
    let residual = residual.rewrite_not();
    let test = move |batch: &RecordBatch| Ok(residual.evaluate(&reshape.apply(batch)?)?);
    Ok(Filter { leaves: marks, test: Box::new(test) })
}

impl ReadTask {
    /// The rows of the task, part after part.
    pub fn batches(self, storage: &Storage, limit: Option<usize>) -> Result<BatchStream> {
        let output = self.wanted.arrow()?;
        // A limit is mostly small: reading ahead would be wasted.
        let threads = if limit.is_some() { 1 } else { runtime::threads() };
        let open = |part: FilePart| -> OpenTask {
            let (storage, wanted, output) = (storage.clone(), self.wanted.clone(), output.clone());
            Box::new(move || part.open(&storage, &wanted, &output, threads))
        };
        let parts = self.parts.into_iter().map(open).collect();
        Ok(BatchStream::new(output, parts, limit))
    }
}
