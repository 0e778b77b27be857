//! Reads a task: opens each part, splits it if it is large, and converts its columns to the selected ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Fields, SchemaRef};
use icefield_format::Limits;
use icefield_format::expr::{BoundExpr, Expression};
use icefield_format::manifest::FileContent;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::{Field, StructType, Type};
use icefield_format::value::Value;

use super::columns::{Constants, Planned, Rules, Source};
use super::deletes::marks::{Marks, test_deleted};
use super::deletes::part::PartDeletes;
use super::deletes::{Chosen, Deletes};
use super::file_columns::{pairs, plan_columns, with_ids};
use super::options::ReadOptions;
use super::reshape::Reshape;
use super::row_ranges::rows_left;
use crate::error::Result;
use crate::file::parquet::variant::value::with_nulls;
use crate::file::ranges::both;
use crate::file::{self, BATCH_ROWS, Filter, Request};
use crate::limits::limits;
use crate::plan::projection::metadata_columns::{decided, is_metadata_column};
use crate::plan::projection::variant_paths::{Tested, VariantPath, VariantPaths};
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::FilePart;
use crate::runtime;
use crate::storage::Storage;
use crate::stream::{BatchChange, BatchStream, OpenParts, Opened};

/// Minimum rows per batch even for a smaller limit, because some rows may be deleted.
const LEAST_ROWS: usize = 1 << 10;

/// Maximum number of files read together, and of their bytes; and groups per thread, so that all threads finish
/// together.
const TOGETHER: usize = 16;
const GROUP_BYTES: u64 = 1 << 20;
const GROUPS: usize = 8;

/// The rows of a task, part after part.
pub fn rows(task: ReadTask, storage: &Storage, limit: Option<usize>) -> Result<BatchStream> {
    rows_within(task, storage, limit, &limits()?)
}

/// As [`rows`], with memory limits for deletes.
pub fn rows_within(task: ReadTask, storage: &Storage, limit: Option<usize>, limits: &Limits) -> Result<BatchStream> {
    rows_with(task, storage, limit, limits, &ReadOptions::default())
}

/// As [`rows_within`], with read options.
pub fn rows_with(
    task: ReadTask,
    storage: &Storage,
    limit: Option<usize>,
    limits: &Limits,
    options: &ReadOptions,
) -> Result<BatchStream> {
    rows_of(task, storage, limit, limits, options, None)
}

/// The rows of a task chosen by position, with all selected columns. Files are read whole, because the positions
/// refer to whole files.
pub fn rows_chosen(task: ReadTask, storage: &Storage, chosen: Chosen, options: &ReadOptions) -> Result<BatchStream> {
    rows_of(task, storage, None, &limits()?, options, Some(chosen))
}

fn rows_of(
    task: ReadTask,
    storage: &Storage,
    limit: Option<usize>,
    limits: &Limits,
    options: &ReadOptions,
    chosen: Option<Chosen>,
) -> Result<BatchStream> {
    options.check()?;
    let deletes = Arc::new(Deletes::new(storage, &task.wanted, &task.parts, limits)?.choosing(chosen));
    rows_without(task, storage, limit, &deletes, options)
}

/// The rows of a task without those that these deletes delete, which other tasks may share.
pub(crate) fn rows_sharing(
    task: ReadTask,
    storage: &Storage,
    deletes: &Arc<Deletes>,
    options: &ReadOptions,
) -> Result<BatchStream> {
    options.check()?;
    rows_without(task, storage, None, deletes, options)
}

fn rows_without(
    task: ReadTask,
    storage: &Storage,
    limit: Option<usize>,
    deletes: &Arc<Deletes>,
    options: &ReadOptions,
) -> Result<BatchStream> {
    let output = task.wanted.arrow()?;
    // Limits are usually small, so reading ahead would be wasted.
    let threads = match limit {
        Some(_) => 1,
        None => options.threads(runtime::threads() * at_once(storage, &task.parts), &task.parts),
    };
    if let Some(progress) = &options.progress {
        progress.expect(task.parts.len());
    }
    let open = |part: FilePart| -> OpenParts {
        let (storage, wanted, output) = (storage.clone(), task.wanted.clone(), output.clone());
        let deletes = deletes.clone();
        let (batch_rows, progress) = (options.batch_rows(&part, threads), options.progress.clone());
        Box::new(move || {
            let deletes = deletes.of(&part)?;
            if let Some(progress) = progress {
                progress.open();
            }
            PartReader { part: &part, wanted: &wanted, output: &output, deletes, threads, batch_rows, limit }
                .open(&storage)
        })
    };
    let together = match limit.is_none() && options.memory.is_none() {
        true => files_together(storage, &task.parts, threads),
        false => 1,
    };
    let parts = match together {
        1 => task.parts.into_iter().map(open).collect(),
        _ => in_groups(task.parts, together, open),
    };
    let mut stream = BatchStream::of_parts(output.clone(), parts, limit).with_width(threads);
    if let Some(memory) = options.memory {
        stream = stream.with_memory(memory / 2);
    }
    options.apply(stream)
}

/// Number of threads: on remote storage several per processor, so that some files are fetched while others are
/// decoded.
fn at_once(storage: &Storage, parts: &[FilePart]) -> usize {
    if parts.iter().any(|part| storage.is_remote(&part.path)) { 2 } else { 1 }
}

/// How many consecutive files a thread may read before it hands over batches: several only for small local files, if
/// there are many for each thread. Handing over takes several context switches, a tenth of the time for a file of
/// 1,000 rows.
fn files_together(storage: &Storage, parts: &[FilePart], threads: usize) -> usize {
    match parts.iter().any(|part| storage.is_remote(&part.path)) {
        true => 1,
        false => (parts.len() / threads.max(1) / GROUPS).clamp(1, TOGETHER),
    }
}

/// Parts as tasks; small ones in groups of at most `most` consecutive parts.
fn in_groups(parts: Vec<FilePart>, most: usize, open: impl Fn(FilePart) -> OpenParts) -> Vec<OpenParts> {
    let mut tasks: Vec<OpenParts> = Vec::new();
    let mut group: Vec<OpenParts> = Vec::new();
    let (mut rows, mut bytes) = (0_u64, 0_u64);
    for part in parts {
        let (more_rows, more_bytes) = (part.record_count.max(0).unsigned_abs(), part.size);
        (rows, bytes) = (rows.saturating_add(more_rows), bytes.saturating_add(more_bytes));
        if group.len() == most || rows > BATCH_ROWS as u64 || bytes > GROUP_BYTES {
            tasks.extend(together(std::mem::take(&mut group)));
            (rows, bytes) = (more_rows, more_bytes);
        }
        group.push(open(part));
    }
    tasks.extend(together(group));
    tasks
}

/// Some parts as one task.
fn together(mut parts: Vec<OpenParts>) -> Option<OpenParts> {
    match parts.len() {
        0 | 1 => parts.pop(),
        _ => Some(Box::new(move || Ok(Opened::Together(parts)))),
    }
}

/// Reads one part.
struct PartReader<'a> {
    part: &'a FilePart,
    wanted: &'a Wanted,
    output: &'a SchemaRef,
    deletes: PartDeletes,
    /// Number of threads that may read the part.
    threads: usize,
    /// Maximum rows per batch.
    batch_rows: usize,
    /// Maximum rows of all parts together.
    limit: Option<usize>,
}

impl PartReader<'_> {
    fn open(&self, storage: &Storage) -> Result<Opened> {
        let part = self.part;
        let residual = part.facts(self.wanted).fold(&part.residual, &self.wanted.partition_fields);
        if residual == Expression::False {
            return Ok(Opened::Parts(Vec::new()));
        }
        let mut file = file::open(storage, &part.file_ref(), &part.format, FileContent::Data)?;
        // Counting, skipping and dropping files rely on the manifest's row count, so a reader must check it.
        let expected_rows = u64::try_from(part.record_count).ok();
        if let (Some(expected), Some(found)) = (expected_rows, file.rows())
            && expected != found
        {
            return Err(file::other_rows(&part.path, found, expected));
        }
        let mut fields = file.bind(&|fields| with_ids(self.wanted, &part.format, fields), &self.wanted.schema);
        let is_inside = |filter: &BoundExpr| filter.predicates().any(|predicate| predicate.term.extract.is_some());
        if !self.wanted.variant_paths.is_empty() || is_inside(&residual) {
            fields = with_nulls(&fields, &file.nulls());
        }
        let constants = OfPart { part, wanted: self.wanted, paths: &self.wanted.variant_paths };
        let rules = Rules { path: &part.path, constants: &constants };
        let marks = match part.facts(self.wanted).has_deleted_rows {
            true => Some(Arc::new(Marks::new(&self.deletes, &rules, &mut fields)?)),
            false => None,
        };
        let residual = settled(&rules, self.wanted, &residual, &fields)?;
        if residual == Expression::False {
            return Ok(Opened::Parts(Vec::new()));
        }
        let tested = tested_ids(&residual);
        let numbered = rows_left(&residual, &fields, part.first_row_id);
        if numbered.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Opened::Parts(Vec::new()));
        }
        let (leaves, planned) = plan_columns(&rules, &self.wanted.projection, self.output, &fields)?;
        let mut filters = match &residual {
            Expression::True => Vec::new(),
            residual => vec![filter(part, self.wanted, residual, &fields)?],
        };
        let reshape = Reshape::new(&part.path, self.output.clone(), planned);
        let batch_rows = match (self.limit, &residual) {
            // Without a residual, decode no more rows than the limit needs.
            (Some(limit), Expression::True) => self.batch_rows.min(limit.max(LEAST_ROWS)),
            _ => self.batch_rows,
        };
        let mut request = Request {
            range: (part.start, part.length),
            constants: tested
                .into_iter()
                .filter(|id| constants.identity(*id).is_some() || is_metadata_column(*id))
                .collect(),
            prune: residual,
            threads: self.threads,
            batch_rows,
            expected_rows,
            ..Request::all(leaves)
        };
        let Some(marks) = marks else {
            if self.deletes.is_nothing_left() {
                return Ok(Opened::Parts(Vec::new()));
            }
            let (early, late) = self.deletes.early_and_late(&rules, &fields, part.record_count)?;
            filters.extend(test_deleted(&self.deletes, &rules, &fields)?);
            filters.extend(early);
            request.filter = Filter::all(filters);
            request.rows = match (self.deletes.rows_left(), numbered) {
                (Some(left), Some(numbered)) => Some(both(&left, &numbered)),
                (left, numbered) => left.or(numbered),
            };
            let reshaped: BatchChange = Arc::new(move |batch| reshape.apply(&batch));
            let Some(late) = late else { return Ok(file.batches(request)?.map(reshaped)) };
            let (read, cut) = late.afterwards(&request.leaves);
            request.leaves = read;
            return Ok(file.batches(request)?.map(cut).map(reshaped));
        };
        request.rows = numbered;
        request.filter = Filter::all(filters.into_iter().map(|filter| marks.filter(filter)).collect());
        let (read, with_marks) = marks.read(&request.leaves);
        request.leaves = read;
        Ok(file.batches(request)?.map(Arc::new(move |batch| reshape.apply(&with_marks(batch)?))))
    }
}

/// No partition.
impl Constants for () {
    fn identity(&self, _: i32) -> Option<Option<Value>> {
        None
    }
}

/// Values that a part of a file gives to its rows.
struct OfPart<'a> {
    part: &'a FilePart,
    wanted: &'a Wanted,
    /// The columns that are values inside variants.
    paths: &'a VariantPaths,
}

impl Constants for OfPart<'_> {
    fn identity(&self, source_id: i32) -> Option<Option<Value>> {
        self.part.partition.identity(source_id).map(|value| value.cloned())
    }

    fn metadata(&self, field: &Field) -> Option<Option<Value>> {
        self.part.facts(self.wanted).constant(field.id, &field.ty, &self.wanted.partition_fields)
    }

    fn whole_struct(&self, id: i32) -> Option<&StructType> {
        self.wanted.schema.find_type(id).and_then(Type::as_struct).map(|ty| &**ty)
    }

    fn variant_path(&self, id: i32) -> Option<&VariantPath> {
        self.paths.get(&id)
    }

    fn first_row_id(&self) -> Option<i64> {
        self.part.first_row_id
    }

    fn sequence_number(&self) -> Option<i64> {
        self.part.sequence_number
    }
}

fn tested_ids(filter: &BoundExpr) -> HashSet<i32> {
    filter.predicates().map(|predicate| predicate.term.reference.id).collect()
}

/// The residual without tests of columns that have one value in all rows: partition values, defaults, and null for
/// columns that the file lacks.
fn settled(rules: &Rules<'_>, wanted: &Wanted, residual: &BoundExpr, fields: &Fields) -> Result<BoundExpr> {
    if *residual == Expression::True {
        return Ok(Expression::True);
    }
    let columns = wanted.schema.select_ids(&tested_ids(residual))?;
    let output = columns.to_arrow(&ToArrow::default())?;
    let planned = rules.plan(&pairs(&columns, &output), fields)?;
    let of_column = |(field, planned): (&Field, Planned)| match planned.source {
        Source::Constant(value) => Some((field.id, value)),
        _ => None,
    };
    let constants: HashMap<i32, Option<Value>> = columns.fields().iter().zip(planned).filter_map(of_column).collect();
    Ok(decided(residual, |predicate| match predicate.term.reference.path.as_deref()? {
        [column] => constants.get(&column.id).map(|value| predicate.matches_value(value.as_ref())),
        // Everything inside a null is null.
        [column, ..] => {
            constants.get(&column.id).filter(|value| value.is_none()).map(|_| predicate.matches_value(None))
        }
        [] => None,
    }))
}

/// A filter for the residual over the columns it names; from variants, only the tested values are read.
fn filter(part: &FilePart, wanted: &Wanted, residual: &BoundExpr, fields: &Fields) -> Result<Filter> {
    let Tested { filter, columns, paths } = Tested::new(residual, &wanted.schema)?;
    let rules = Rules { path: &part.path, constants: &OfPart { part, wanted, paths: &paths } };
    let arrow = Arc::new(columns.to_arrow(&ToArrow::default())?);
    let (marks, planned) = plan_columns(&rules, &columns, &arrow, fields)?;
    let reshape = Reshape::new(&part.path, arrow, planned);
    let test = move |batch: &RecordBatch| Ok(filter.evaluate(&reshape.apply(batch)?)?);
    Ok(Filter { leaves: marks, test: Arc::new(test) })
}
