//! The rows that a filter matches, by their positions in data files: what changes of rows are made of.
//!
//! A row matches where a scan with the filter has it, so what is left are the rows that such a scan does not have.
//! Files all of whose rows match by partition or metrics are not opened; of the others nothing is read but the columns of the
//! filter.

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

/// Bytes that a change of rows may take where nobody says.
pub const MEMORY_LIMIT: usize = 512 << 20;

/// Data files that have rows of a filter, of a branch as it is.
#[derive(Debug)]
pub struct Matches {
    /// The files. Files that the filter might match, and does not, are not among them.
    pub files: Vec<MatchedFile>,
    scan: Scan,
    wanted: Arc<Wanted>,
    /// Bytes that reading their rows may take, about, where somebody says.
    memory: Option<usize>,
}

/// Data files that may have rows of a filter.
#[derive(Debug)]
pub struct Candidates {
    matches: Matches,
    /// The files, with what is left to test of their rows.
    parts: Vec<FilePart>,
    /// Those all of whose rows match.
    certain: Vec<bool>,
}

/// A data file with rows that match.
#[derive(Debug, Clone)]
pub struct MatchedFile {
    /// All that a reader must know of it. There is nothing left to test: `rows` tells.
    pub part: FilePart,
    /// As its manifest has it, without metrics.
    pub file: DataFile,
    /// Which rows.
    pub rows: MatchedRows,
    /// Delete files that are about this data file and no other.
    pub own_deletes: Vec<DataFile>,
}

/// Which rows of a data file match.
#[derive(Debug, Clone, PartialEq)]
pub enum MatchedRows {
    /// All of them.
    All,
    /// Those at these positions, which are not deleted yet.
    Some(Arc<DeletionVector>),
}

impl MatchedFile {
    /// Whether rows of it are deleted by values: how many it has left is not known then.
    pub fn has_equality_deletes(&self) -> bool {
        self.part.deletes.iter().any(|delete| delete.kind == DeleteKind::Equality)
    }
}

impl Matches {
    /// Finds the rows of a branch that a condition holds for; of a branch that does not exist, those of the current snapshot,
    /// which it will begin at. Reading takes `memory` bytes, about; without that number, what is best for the processors.
    ///
    /// # Errors
    /// A condition that does not fit the schema, a tag, and what is wrong with the files.
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
        let Candidates { mut matches, parts, certain } =
            Self::candidates(storage, metadata, branch, filter, case_sensitive, memory)?;
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

    /// The data files of a branch that may have rows of a filter, of which none are chosen yet.
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

    /// The data files of a plan of a [scan](Matches::scan), of which no rows are chosen yet.
    pub(super) fn candidates_of(scan: Scan, plan: &Plan, memory: Option<usize>) -> Result<Candidates> {
        let wanted = scan.wanted(Some(&[]))?;
        let parts = scan.parts(plan, &plan.whole_files())?;
        let (mut files, mut all_certain) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        let mut next = parts.iter();
        // Deletes of many files may apply to each of them, and are looked at once.
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

    /// Chooses rows of the files by position, by the paths of the files; files without any are left out.
    fn choose(&mut self, mut rows: HashMap<String, Arc<DeletionVector>>) {
        for file in &mut self.files {
            if let MatchedRows::Some(of_file) = &mut file.rows {
                *of_file = rows.remove(&file.part.path).unwrap_or_default();
            }
        }
        self.files.retain(|file| !matches!(&file.rows, MatchedRows::Some(rows) if rows.is_empty()));
    }

    /// A scan of the rows of a branch that may match.
    pub(super) fn scan(
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
        // Of a file that is written again all rows count, and all that was deleted of it.
        let scan = Scan::new(storage.clone(), metadata.clone(), &at)?;
        let scan = Scan { filter: filter.clone(), case_sensitive, all_deletes: true, ..scan };
        let (bound, _) = scan.bound_filter()?;
        let ids: Vec<i32> = bound.predicates().map(|predicate| predicate.term.reference.id).collect();
        Ok(Scan { metrics: Metrics::for_filter(ids), ..scan })
    }

    /// Files whose rows are chosen already, of a scan.
    pub(super) fn of_files(scan: Scan, files: Vec<MatchedFile>, memory: Option<usize>) -> Result<Self> {
        let wanted = scan.wanted(Some(&[]))?;
        Ok(Self { files, scan, wanted, memory })
    }

    /// The snapshot whose rows these are.
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.scan.snapshot.as_ref()
    }

    /// A filter that matches all of these rows, and no other where no columns were compared.
    pub fn filter(&self) -> &Expr {
        &self.scan.filter
    }

    /// A filter of the table's columns that matches all of these rows: what others may not have added meanwhile.
    pub fn conflicts(&self) -> Expr {
        let mut leaf = |predicate: &Predicate| {
            let known = self.scan.schema.find_by_name(&predicate.term.name, self.scan.case_sensitive)?.is_some();
            // Metadata columns tell nothing of rows that are new.
            Ok(if known { Expression::Predicate(predicate.clone()) } else { Expression::True })
        };
        let filter: Result<Expr> = self.filter().rewrite_not().try_map(&mut leaf);
        filter.unwrap_or(Expression::True)
    }

    /// Whether the case of the names in the filter matters.
    pub fn is_case_sensitive(&self) -> bool {
        self.scan.case_sensitive
    }

    /// The table as it was.
    pub fn metadata(&self) -> &Arc<TableMetadata> {
        &self.scan.metadata
    }

    /// The table's columns, with what rewritten rows keep of their lineage from version 3 on.
    pub fn columns(&self, lineage: bool) -> Result<Arc<Schema>> {
        let schema = &self.scan.schema;
        match lineage {
            true => with_lineage(schema),
            false => Ok(schema.clone()),
        }
    }

    /// The rows that match, file after file.
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

    /// How rows are read that are looked for.
    fn options(&self) -> ReadOptions {
        ReadOptions { memory: self.memory.map(|memory| memory.max(1)), ..ReadOptions::default() }
    }

    /// The rows of a file that are left: live, and not matching. The memory and the threads are shared by so many streams.
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

    /// The rows of a file, deleted ones included: what its manifest says, or the file, where that does not know.
    pub fn record_count(&self, file: &MatchedFile) -> Result<u64> {
        match u64::try_from(file.part.record_count) {
            Ok(known) => Ok(known),
            Err(_) => {
                let FilePart { path, format, size, .. } = &file.part;
                file::open(&self.scan.storage, path, format, FileContent::Data, *size)?.count_rows()
            }
        }
    }

    /// What older delete files delete of each file by position: by all of them, or by those that are about one file only. Positions
    /// beyond the end of a file, of which rows were looked for, are not among them.
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
    /// The rows that the filter matches, file after file.
    pub fn rows(&self, columns: Arc<Schema>) -> Result<BatchStream> {
        self.rows_with(Arc::new(Wanted { projection: columns, ..(*self.matches.wanted).clone() }))
    }

    /// What is wanted of the rows that the filter matches, file after file.
    fn rows_with(&self, wanted: Arc<Wanted>) -> Result<BatchStream> {
        let task = ReadTask { wanted, parts: self.parts.clone() };
        rows_with(task, &self.matches.scan.storage, None, &self.matches.scan.limits, &self.matches.options())
    }

    /// The rows of all files, deleted ones included.
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

    /// The filter of what others may not have added meanwhile.
    pub(super) fn conflicts(&self) -> Expr {
        self.matches.conflicts()
    }

    /// The snapshot that they are of.
    pub fn snapshot(&self) -> Option<&Arc<Snapshot>> {
        self.matches.snapshot()
    }

    /// The files, none of whose rows are chosen, and which of them match whole.
    pub(super) fn into_files(self) -> (Vec<MatchedFile>, Vec<bool>) {
        (self.matches.files, self.certain)
    }

    /// The files with the rows that were chosen of them, by path and position.
    pub fn choose(mut self, rows: HashMap<String, Arc<DeletionVector>>) -> Matches {
        self.matches.choose(rows);
        self.matches
    }
}

/// The positions of the rows of some parts that pass what is left to test, by path.
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

/// Whether position deletes are about one data file: it is named, or is the only path between their bounds.
fn is_about_one_file(delete: &DeleteFile) -> bool {
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
