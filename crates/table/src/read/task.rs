//! A task to rows: each part is opened, cut where it is large, and its columns brought to what is wanted.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Fields, Schema as ArrowSchema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use icefield_format::expr::{BoundExpr, Expression};
use icefield_format::manifest::FileFormat;
use icefield_format::types::arrow::{ToArrow, field_id, has_ids, with_mapped_ids, with_positional_ids};
use icefield_format::types::{Field, Schema, Type};
use icefield_format::value::Value;

use super::columns::{Constants, Planned, Rules, leaves};
use super::metadata_columns;
use super::orc::{OrcFile, OrcFilter, OrcRequest, position_field};
use super::orc_predicate;
use super::parquet::{Filter, ParquetFile, Request, projected};
use super::reshape::Reshape;
use super::row_groups;
use super::stream::{BatchStream, OpenParts, Opened, TaskBatches};
use crate::error::{Error, Result};
use crate::plan::part::FilePart;
use crate::plan::tasks::ReadTask;
use crate::plan::wanted::Wanted;
use crate::runtime;
use crate::storage::Storage;

/// Bytes of a piece of a file, at the least, where several threads read it.
const PIECE_BYTES: u64 = 8 << 20;

/// Rows of a batch, at the most.
const BATCH_ROWS: usize = 64 << 10;

/// The rows of a task, part after part.
pub fn rows(task: ReadTask, storage: &Storage, limit: Option<usize>) -> Result<BatchStream> {
    let output = task.wanted.arrow()?;
    // A limit is mostly small: reading ahead would be wasted.
    let threads = if limit.is_some() { 1 } else { runtime::threads() };
    let open = |part: FilePart| -> OpenParts {
        let (storage, wanted, output) = (storage.clone(), task.wanted.clone(), output.clone());
        Box::new(move || PartReader { part: &part, wanted: &wanted, output: &output, threads }.open(&storage))
    };
    let parts = task.parts.into_iter().map(open).collect();
    Ok(BatchStream::of_parts(output.clone(), parts, limit))
}

/// A part that is opened.
struct PartReader<'a> {
    part: &'a FilePart,
    wanted: &'a Wanted,
    output: &'a SchemaRef,
    /// Threads that may read the part.
    threads: usize,
}

impl PartReader<'_> {
    fn open(&self, storage: &Storage) -> Result<Opened> {
        let part = self.part;
        if !part.deletes.is_empty() {
            return Err(Error::unsupported(format!(
                "{}: {} delete files apply to it; reading files with deletes is not built yet",
                part.path,
                part.deletes.len()
            )));
        }
        match FileFormat::from_name(&part.format) {
            Some(FileFormat::Parquet) => self.parquet(storage),
            Some(FileFormat::Orc) => self.orc(storage).map(Opened::Batches),
            _ => {
                let (path, format) = (&part.path, &part.format);
                Err(Error::unsupported(format!("{path}: reading {format} data files is not built yet")))
            }
        }
    }

    fn rules(&self) -> Rules<'_> {
        Rules { path: &self.part.path, constants: self.part }
    }

    /// Reads a Parquet part: row groups that its statistics rule out are skipped. What is large is cut into several pieces.
    fn parquet(&self, storage: &Storage) -> Result<Opened> {
        let (part, wanted) = (self.part, self.wanted);
        let file = ParquetFile::open(storage, &part.path, Some(part.size))?;
        let fields = with_ids(wanted, file.fields());
        let rules = self.rules();
        let range = (part.start, part.length);
        let row_groups = row_groups::wanted(file.metadata(), &fields, &wanted.schema, &part.residual, range, part.size);
        let (leaves, planned) = plan_columns(&rules, &wanted.projection, self.output, &fields)?;
        let filter = match &part.residual {
            Expression::True => None,
            residual => Some(filter(&rules, wanted, residual, &fields)?),
        };
        let request = Request { leaves, row_groups, selection: None, filter, batch_rows: BATCH_ROWS };
        let reshape = Reshape::new(&part.path, self.output.clone(), planned);
        let batches = move |file: &ParquetFile, request: Request| -> Result<TaskBatches> {
            let (batches, reshape) = (file.batches(request)?, reshape.clone());
            Ok(Box::new(batches.map(move |batch| reshape.apply(&batch?))))
        };
        let least = if self.threads > 1 { PIECE_BYTES } else { u64::MAX };
        let mut pieces = file.pieces(request, least);
        if pieces.len() < 2 {
            return Ok(Opened::Batches(match pieces.pop() {
                Some(piece) => batches(&file, piece)?,
                None => Box::new(std::iter::empty()),
            }));
        }
        let open = |piece: Request| -> OpenParts {
            let (file, batches) = (file.clone(), batches.clone());
            Box::new(move || batches(&file, piece).map(Opened::Batches))
        };
        Ok(Opened::Parts(pieces.into_iter().map(open).collect()))
    }

    /// Reads an ORC part: what the file's statistics and filters rule out is skipped, then rows are tested.
    fn orc(&self, storage: &Storage) -> Result<TaskBatches> {
        let (part, wanted) = (self.part, self.wanted);
        let mut file = OrcFile::open(storage, &part.path, part.size)?;
        file.take_units(&with_ids(wanted, &file.fields()), &wanted.schema);
        let stored = file.fields();
        let fields = with_ids(wanted, &stored);
        let mut known = orc_predicate::columns(&fields, file.description(), has_ids(&stored));
        known.retain(|id, _| part.identity(*id).is_none());
        let predicate = orc_predicate::predicate(&part.residual, &known);
        let fields: Fields = fields.iter().cloned().chain([position_field()]).collect();
        let rules = self.rules();
        let mut request = OrcRequest {
            leaves: Vec::new(),
            rows: None,
            range: (part.start, part.length),
            batch_rows: BATCH_ROWS,
            predicate,
            filter: None,
            threads: self.threads,
        };
        let residual = part.residual.rewrite_not();
        if residual == Expression::True || tests_whole_columns(&residual, &fields) {
            let (marks, planned) = plan_columns(&rules, &wanted.projection, self.output, &fields)?;
            request.leaves = marks;
            if residual != Expression::True {
                let Filter { leaves, test } = filter(&rules, wanted, &residual, &fields)?;
                request.filter = Some(OrcFilter { leaves, test });
            }
            let batches = file.batches(request)?;
            let reshape = Reshape::new(&part.path, self.output.clone(), planned);
            return Ok(Box::new(batches.map(move |batch| reshape.apply(&batch?))));
        }
        // Tests inside of structs, and of columns that the file lacks, see whole rows.
        let tested = with_filtered(wanted, &residual)?;
        let arrow = Arc::new(tested.to_arrow(&ToArrow::default())?);
        let (marks, planned) = plan_columns(&rules, &tested, &arrow, &fields)?;
        request.leaves = marks;
        let batches = file.batches(request)?;
        let reshape = Reshape::new(&part.path, arrow.clone(), planned);
        // From the rows that were tested, whole as they are, to the columns that are wanted.
        let rules = Rules { path: &part.path, constants: &() };
        let rest = rules.plan(&pairs(&wanted.projection, self.output), arrow.fields())?;
        let rest = Reshape::new(&part.path, self.output.clone(), rest);
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

/// The columns of a file with the ids that they are read by: its own, else those of the name mapping, else positions.
fn with_ids(wanted: &Wanted, fields: &Fields) -> Fields {
    match &wanted.name_mapping {
        _ if has_ids(fields) => fields.clone(),
        Some(mapping) => with_mapped_ids(fields, mapping),
        None => with_positional_ids(fields),
    }
}

/// The columns of the projection and those that a filter tests.
fn with_filtered(wanted: &Wanted, filter: &BoundExpr) -> Result<Schema> {
    let mut ids = wanted.projection.projected_ids();
    let mut whole = HashSet::new();
    for predicate in filter.predicates() {
        let reference = &predicate.term.reference;
        // Lists and maps are asked for by what is inside of them.
        let set = if matches!(reference.ty, Type::List(_) | Type::Map(_)) { &mut whole } else { &mut ids };
        set.insert(reference.id);
    }
    if !whole.is_empty() {
        ids.extend(wanted.schema.select_ids(&whole)?.projected_ids());
    }
    let mut fields = wanted.schema.project(&ids)?.fields().to_vec();
    let metadata = wanted.projection.fields().iter().filter(|field| wanted.schema.find_field(field.id).is_none());
    fields.extend(metadata.cloned());
    Ok(Schema::new(0, fields)?)
}

/// No partition.
impl Constants for () {
    fn identity(&self, _: i32) -> Option<Option<Value>> {
        None
    }
}

impl Constants for FilePart {
    fn identity(&self, source_id: i32) -> Option<Option<Value>> {
        self.partition.identity(source_id).map(|value| value.cloned())
    }

    fn metadata(&self, id: i32) -> Option<Option<Value>> {
        metadata_columns::constant(self, id)
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
    Ok(Filter { leaves: marks, test: Arc::new(test) })
}
