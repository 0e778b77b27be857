//! Finds the rows that a filter matches, as positions in data files: the basis of all row changes.
//!
//! A row matches if a scan with the filter returns it, so exactly the rows that such a scan would omit are kept. Files
//! in which all rows match by partition or metrics are not opened; from the others only the columns of the filter are
//! read.

use std::collections::HashMap;
use std::sync::Arc;

use icefield_format::expr::{Condition, Expr, Expression, Predicate};
use icefield_format::manifest::{DataFile, FileContent, Metrics};
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::puffin::DeletionVector;
use icefield_format::types::Schema;
use icefield_format::types::reserved::{DELETE_FILE_PATH, FILE, POS};

use crate::error::{Error, Result};
use crate::file;
use crate::interrupt;
use crate::limits::limits;
use crate::operation::condition::places;
use crate::operation::condition::row_condition::RowCondition;
use crate::plan::deletes::{DeleteFile, DeleteKind};
use crate::plan::projection::wanted::Wanted;
use crate::plan::tasks::ReadTask;
use crate::plan::tasks::part::FilePart;
use crate::plan::{At, Plan, Scan};
use crate::read::deletes::{Chosen, Deletes};
use crate::read::options::ReadOptions;
use crate::read::task::{rows_chosen, rows_with};
use crate::runtime;
use crate::storage::Storage;
use crate::stream::BatchStream;
use crate::write::with_lineage;

/// Default memory limit of a row change, in bytes.
pub const MEMORY_LIMIT: usize = 512 << 20;

/// The rows of a branch that match a filter, by data file.
#[derive(Debug)]
pub struct Matches {
    /// The files with matching rows.
    pub files: Vec<MatchedFile>,
    scan: Scan,
    wanted: Arc<Wanted>,
    /// Approximate memory limit for reading the rows, in bytes; `None` for the default.
    memory: Option<usize>,
}

/// Data files that may have matching rows.
#[derive(Debug)]
pub struct Candidates {
    matches: Matches,
    /// The files as parts of a read task, with their residuals.
    parts: Vec<FilePart>,
    /// For each file, whether all rows match.
    certain: Vec<bool>,
}

/// A data file with matching rows.
#[derive(Debug, Clone)]
pub struct MatchedFile {
    /// The file as part of a read task. Its residual is `True`, because `rows` already has the matching rows.
    pub part: FilePart,
    /// The file as in its manifest, without metrics.
    pub file: DataFile,
    /// The matching rows.
    pub rows: MatchedRows,
    /// Delete files that apply to this data file alone.
    pub own_deletes: Vec<DataFile>,
}

/// The matching rows of a data file.
#[derive(Debug, Clone, PartialEq)]
pub enum MatchedRows {
    /// All rows.
    All,
    /// The rows at these positions, which are not deleted yet.
    Some(Arc<DeletionVector>),
}

impl MatchedFile {
    /// Whether equality deletes apply to the file; the number of its live rows is then unknown.
    pub fn has_equality_deletes(&self) -> bool {
        self.part.deletes.iter().any(|delete| delete.kind == DeleteKind::Equality)
    }
}

impl Matches {
    /// Finds the rows of a branch that a condition matches. If the branch does not exist, the rows of the current
    /// snapshot are searched, since the branch would begin there. Reading takes about `memory` bytes; `None` leaves the
    /// limit to the reader, which then uses all processors.
    ///
    /// # Errors
    /// A condition that does not fit the schema, a tag instead of a branch, or an error of the files.
    pub fn find(
        storage: &Storage,
        metadata: &Arc<TableMetadata>,
        branch: &str,
        condition: &Condition,
        case_sensitive: bool,
        memory: Option<usize>,
    ) -> Result<Self> {
        if let Some(filter) = condition.as_filter() {
            return Self::find_by_filter(storage, metadata, branch, &filter, case_sensitive, memory);
        }
        let filter = condition.weakened();
        let condition = RowCondition::new(condition, &Self::scan(storage, metadata, branch, &filter, case_sensitive)?)?;
        let candidates = Self::candidates(storage, metadata, branch, &filter, case_sensitive, memory)?;
        let rows = candidates.rows_with(condition.wanted.clone())?;
        Ok(candidates.choose(condition.positions(rows)?))
    }

    fn find_by_filter(
        storage: &Storage,
        metadata: &Arc<TableMetadata>,
        branch: &str,
        filter: &Expr,
        case_sensitive: bool,
        memory: Option<usize>,
    ) -> Result<Self> {
        Self::candidates(storage, metadata, branch, filter, case_sensitive, memory)?.find()
    }

    /// Finds the data files of a branch that may match a filter, without choosing rows.
    ///
    /// # Errors
    /// As [`Matches::find`].
    pub fn candidates(
        storage: &Storage,
        metadata: &Arc<TableMetadata>,
        branch: &str,
        filter: &Expr,
        case_sensitive: bool,
        memory: Option<usize>,
    ) -> Result<Candidates> {
        let scan = Self::scan(storage, metadata, branch, filter, case_sensitive)?;
        let plan = scan.plan()?;
        Self::candidates_of(scan, &plan, memory)
    }

    /// The data files of a plan of a [scan](Matches::scan), without any rows chosen.
    pub(crate) fn candidates_of(scan: Scan, plan: &Plan, memory: Option<usize>) -> Result<Candidates> {
        let wanted = scan.wanted(Some(&[]))?;
        let parts = scan.parts(plan, &plan.whole_files())?;
        let (mut files, mut all_certain) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        let mut next = parts.iter();
        // Delete files that apply to several data files occur with each of them, but are decoded only once.
        let mut of_many = vec![false; plan.deletes.len()];
        for manifest in &plan.manifests {
            let certain = manifest.certain()?;
            for row in 0..manifest.entries.len() {
                let part = next.next().ok_or_else(|| Error::Internal("a planned file without its part".to_owned()))?;
                let mut own = Vec::new();
                for place in manifest.deletes(row).iter() {
                    let of_many = of_many.get_mut(*place as usize).filter(|of_many| !**of_many);
                    let Some(of_many) = of_many else { continue };
                    let delete = plan.deletes.get(*place)?;
                    match is_about_one_file(&delete) {
                        true => own.push(delete.file),
                        false => *of_many = true,
                    }
                }
                files.push(MatchedFile {
                    part: FilePart { residual: Expression::True, ..part.clone() },
                    file: manifest.entries.file(row, manifest.spec_id())?,
                    rows: MatchedRows::Some(Arc::default()),
                    own_deletes: own,
                });
                all_certain.push(certain.value(row));
            }
        }
        Ok(Candidates { matches: Self { files, scan, wanted, memory }, parts, certain: all_certain })
    }

    /// Chooses the rows at these positions, by file path; files without any are removed.
    fn choose(&mut self, mut rows: HashMap<String, Arc<DeletionVector>>) {
        for file in &mut self.files {
            if let MatchedRows::Some(of_file) = &mut file.rows {
                *of_file = rows.remove(&file.part.path).unwrap_or_default();
            }
        }
        self.files.retain(|file| !matches!(&file.rows, MatchedRows::Some(rows) if rows.is_empty()));
    }

    /// A scan of the rows of a branch that may match.
    pub(crate) fn scan(
        storage: &Storage,
        metadata: &Arc<TableMetadata>,
        branch: &str,
        filter: &Expr,
        case_sensitive: bool,
    ) -> Result<Scan> {
        let reference = match metadata.reference(branch) {
            Some(found) if !found.is_branch() => {
                return Err(Error::invalid(format!("{branch} is a tag: only a branch can be written to")));
            }
            found => found.map(|_| branch.to_owned()),
        };
        let at = At { reference, ..At::default() };
        // Rewriting a file needs all of its live rows and all of its deletes, whatever the filter. Rows that are deleted must
        // not come back.
        let scan = Scan::new(storage.clone(), metadata.clone(), &at)?;
        let scan = Scan { filter: filter.clone(), case_sensitive, all_deletes: true, only_live_rows: true, ..scan };
        let (bound, _) = scan.bound_filter()?;
        let ids: Vec<i32> = bound.predicates().map(|predicate| predicate.term.reference.id).collect();
        Ok(Scan { metrics: Metrics::for_filter(ids), ..scan })
    }

    /// Matches of a scan with rows already chosen.
    pub(crate) fn of_files(scan: Scan, files: Vec<MatchedFile>, memory: Option<usize>) -> Result<Self> {
        let wanted = scan.wanted(Some(&[]))?;
        Ok(Self { files, scan, wanted, memory })
    }

    /// The snapshot that the rows were found in.
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.scan.snapshot.as_ref()
    }

    /// A filter that matches all of these rows; it matches other rows only if the condition compares columns.
    pub fn filter(&self) -> &Expr {
        &self.scan.filter
    }

    /// The filter of conflicting rows: other commits must not have added rows that it matches. It uses only columns of
    /// the table, and matches all of these rows.
    pub fn conflicts(&self) -> Expr {
        let mut leaf = |predicate: &Predicate| {
            let known = self.scan.schema.find_by_name(&predicate.term.name, self.scan.case_sensitive)?.is_some();
            // Conditions on metadata columns say nothing about new rows, so they are dropped.
            Ok(if known { Expression::Predicate(predicate.clone()) } else { Expression::True })
        };
        let filter: Result<Expr> = self.filter().rewrite_not().try_map(&mut leaf);
        filter.unwrap_or(Expression::True)
    }

    /// Whether the filter matches column names case-sensitively.
    pub fn is_case_sensitive(&self) -> bool {
        self.scan.case_sensitive
    }

    /// The table's metadata when the rows were found.
    pub fn metadata(&self) -> &Arc<TableMetadata> {
        &self.scan.metadata
    }

    /// The table's columns; with `lineage`, also those of row lineage (version 3), which rewritten rows keep.
    pub fn columns(&self, lineage: bool) -> Result<Arc<Schema>> {
        let schema = &self.scan.schema;
        match lineage {
            true => with_lineage(schema),
            false => Ok(schema.clone()),
        }
    }

    /// Reads the matching rows, file by file.
    pub fn matching_rows(&self, columns: Arc<Schema>) -> Result<BatchStream> {
        let mut only = HashMap::new();
        for file in &self.files {
            let rows = match &file.rows {
                MatchedRows::Some(rows) => rows.clone(),
                MatchedRows::All => {
                    let mut all = DeletionVector::new();
                    all.insert_range(0..self.record_count(file)?)?;
                    Arc::new(all)
                }
            };
            only.insert(file.part.path.clone(), rows);
        }
        let parts = self.files.iter().map(|file| file.part.clone()).collect();
        rows_chosen(self.task(parts, columns), &self.scan.storage, Chosen::Only(only), &self.options())
    }

    /// The options for reading matching rows.
    fn options(&self) -> ReadOptions {
        ReadOptions { memory: self.memory.map(|memory| memory.max(1)), ..ReadOptions::default() }
    }

    /// Reads the remaining rows of a file: live and not matching. `streams` such streams share the memory and the
    /// threads.
    pub fn rows_left(&self, file: &MatchedFile, columns: Arc<Schema>, streams: usize) -> Result<BatchStream> {
        let gone = match &file.rows {
            MatchedRows::All => return Err(Error::Internal("nothing is left of a file that matches".to_owned())),
            MatchedRows::Some(rows) => HashMap::from([(file.part.path.clone(), rows.clone())]),
        };
        let task = self.task(vec![file.part.clone()], columns);
        let memory = self.memory.unwrap_or(MEMORY_LIMIT) / streams.max(1);
        let options = ReadOptions { memory: Some(memory.max(1)), ..ReadOptions::default() };
        let threads = options.threads((runtime::threads() / streams.max(1)).max(1), &task.parts);
        Ok(rows_chosen(task, &self.scan.storage, Chosen::Without(gone), &options)?.with_width(threads))
    }

    /// Number of rows in a file, including deleted ones: from its manifest entry, or from the file itself if that lacks
    /// it.
    pub fn record_count(&self, file: &MatchedFile) -> Result<u64> {
        match u64::try_from(file.part.record_count) {
            Ok(known) => Ok(known),
            Err(_) => {
                let part = &file.part;
                file::open(&self.scan.storage, &part.file_ref(), &part.format, FileContent::Data)?.count_rows()
            }
        }
    }

    /// The positions in each file that existing position deletes and deletion vectors delete; with `only_own`, only
    /// those of delete files that apply to one data file. Positions beyond the end of a file are left out.
    pub fn deleted_before(&self, files: &[&MatchedFile], only_own: bool) -> Result<Vec<Option<Arc<DeletionVector>>>> {
        let parts: Vec<FilePart> = files
            .iter()
            .map(|file| {
                let own = |path: &str| file.own_deletes.iter().any(|delete| delete.file_path == path);
                let deletes = file.part.deletes.iter();
                let deletes =
                    deletes.filter(|delete| delete.kind != DeleteKind::Equality && (!only_own || own(&delete.path)));
                FilePart { deletes: deletes.cloned().collect(), ..file.part.clone() }
            })
            .collect();
        let deletes = Deletes::new(&self.scan.storage, &self.wanted, &parts, &self.scan.limits)?;
        let within = |(part, file): (&FilePart, &&MatchedFile)| -> Result<Option<Arc<DeletionVector>>> {
            let Some(positions) = deletes.positions_of(part)? else { return Ok(None) };
            let rows = self.record_count(file)?;
            Ok(Some(match positions.max() {
                Some(last) if last >= rows => {
                    Arc::new(DeletionVector::from_positions(positions.positions_in(0..rows))?)
                }
                _ => positions,
            }))
        };
        parts.iter().zip(files).map(within).collect()
    }

    fn task(&self, parts: Vec<FilePart>, columns: Arc<Schema>) -> ReadTask {
        ReadTask { wanted: Arc::new(Wanted { projection: columns, ..(*self.wanted).clone() }), parts }
    }
}

impl Candidates {
    /// Reads the matching rows, file by file.
    pub fn rows(&self, columns: Arc<Schema>) -> Result<BatchStream> {
        self.rows_with(Arc::new(Wanted { projection: columns, ..(*self.matches.wanted).clone() }))
    }

    /// Reads the matching rows with these columns, file by file.
    fn rows_with(&self, wanted: Arc<Wanted>) -> Result<BatchStream> {
        let task = ReadTask { wanted, parts: self.parts.clone() };
        rows_with(task, &self.matches.scan.storage, None, &self.matches.scan.limits, &self.matches.options())
    }

    /// Number of rows in all files, including deleted ones.
    pub fn row_count(&self) -> Result<i64> {
        self.matches.files.iter().try_fold(0_i64, |sum, file| {
            let rows = i64::try_from(self.matches.record_count(file)?).unwrap_or(i64::MAX);
            Ok(sum.saturating_add(rows))
        })
    }

    /// The files.
    pub fn files(&self) -> impl Iterator<Item = &DataFile> {
        self.matches.files.iter().map(|file| &file.file)
    }

    /// The filter.
    pub fn filter(&self) -> &Expr {
        self.matches.filter()
    }

    /// The filter of conflicting rows; see [`Matches::conflicts`].
    pub(super) fn conflicts(&self) -> Expr {
        self.matches.conflicts()
    }

    /// The snapshot that the files belong to.
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.matches.snapshot()
    }

    /// The files without any rows chosen, and for each whether all of its rows match.
    pub(super) fn into_files(self) -> (Vec<MatchedFile>, Vec<bool>) {
        (self.matches.files, self.certain)
    }

    /// Finds the rows that match the filter.
    ///
    /// # Errors
    /// An error of the files.
    pub fn find(self) -> Result<Matches> {
        let Self { mut matches, parts, certain } = self;
        let mut uncertain = Vec::new();
        for ((part, certain), file) in parts.into_iter().zip(certain).zip(&mut matches.files) {
            match certain {
                true => file.rows = MatchedRows::All,
                false => uncertain.push(part),
            }
        }
        let found = positions(uncertain, &matches)?;
        matches.choose(found);
        Ok(matches)
    }

    /// Keeps only some of the files.
    pub(crate) fn retain(&mut self, keep: impl Fn(&MatchedFile) -> bool) {
        let kept: Vec<bool> = self.matches.files.iter().map(keep).collect();
        let (mut files, mut parts, mut certain) = (kept.iter(), kept.iter(), kept.iter());
        self.matches.files.retain(|_| files.next().is_some_and(|keep| *keep));
        self.parts.retain(|_| parts.next().is_some_and(|keep| *keep));
        self.certain.retain(|_| certain.next().is_some_and(|keep| *keep));
    }

    /// All files, without any rows chosen.
    pub(crate) fn into_matches(self) -> Matches {
        self.matches
    }

    /// The files with these rows chosen, by path and position.
    pub fn choose(mut self, rows: HashMap<String, Arc<DeletionVector>>) -> Matches {
        self.matches.choose(rows);
        self.matches
    }
}

/// The positions of rows that pass the residual of their part, by path.
fn positions(parts: Vec<FilePart>, matches: &Matches) -> Result<HashMap<String, Arc<DeletionVector>>> {
    let mut found: HashMap<String, DeletionVector> = HashMap::new();
    if parts.is_empty() {
        return Ok(HashMap::new());
    }
    let projection = Arc::new(Schema::new(0, vec![FILE.to_field(), POS.to_field()])?);
    let task = ReadTask { wanted: Arc::new(Wanted { projection, ..(*matches.wanted).clone() }), parts };
    for batch in rows_with(task, &matches.scan.storage, None, &limits()?, &matches.options())? {
        interrupt::check()?;
        let batch = batch?;
        let [paths, numbers] = batch.columns() else {
            return Err(Error::Internal("rows without their places".to_owned()));
        };
        places::add(&mut found, paths, numbers, None)?;
    }
    Ok(found.into_iter().map(|(path, rows)| (path, Arc::new(rows))).collect())
}

/// Whether position deletes apply to one data file only: they name it, or their path bounds are equal.
pub(crate) fn is_about_one_file(delete: &DeleteFile) -> bool {
    let file = &delete.file;
    if file.content != FileContent::PositionDeletes {
        return false;
    }
    let bound = |bounds: &Option<Vec<(i32, Vec<u8>)>>| {
        let of_path = bounds.iter().flatten().find(|(id, _)| *id == DELETE_FILE_PATH.id);
        of_path.map(|(_, bound)| bound.clone())
    };
    let lower = bound(&file.lower_bounds);
    file.referenced_data_file.is_some() || (lower.is_some() && lower == bound(&file.upper_bounds))
}
