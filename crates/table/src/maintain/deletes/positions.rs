//! Rewrites position delete files: fewer and larger ones, without positions of files that are gone; deletion vectors
//! from version 3 on. It is Java's `rewrite_position_delete_files`, with the same files chosen.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use icefield_format::expr::{Expression, project_inclusive};
use icefield_format::manifest::{DataFile, FileContent};
use icefield_format::metadata::properties::DELETE_TARGET_FILE_SIZE_BYTES;
use icefield_format::metadata::{FormatVersion, StringMap, TableMetadata};
use uuid::Uuid;

use super::super::options::Given;
use super::super::sizes::{JobOrder, Sizes};
use super::{DeletesRequest, require_branch};
use crate::commit::{Change, IDEMPOTENCY_KEY, SnapshotOptions, SnapshotProducer, made_by_key};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::operation::matching::{MatchedFile, Matches};
use crate::operation::rewrite_files::RewriteFiles;
use crate::operation::rewrite_groups::discard;
use crate::plan::Plan;
use crate::plan::deletes::{DeleteKind, partition_key};
use crate::plan::tasks::part::FilePart;
use crate::table::Table;
use crate::write::deletes::positions::write_positions;
use crate::write::deletes::vectors::write_vectors;
use crate::write::deletes::{DeleteConfig, DeletedRows, Granularity};

/// A rewrite of position deletes.
#[derive(Debug, Clone)]
pub struct RewritePositions {
    /// What it is about, and how it commits. The filter chooses partitions.
    pub request: DeletesRequest,
    /// Java's options, by name.
    pub options: StringMap,
}

/// The effects of a rewrite, made or planned: Java's counts.
#[derive(Debug, Clone, Default)]
pub struct PositionsRewritten {
    /// The table after it; `None` if nothing was committed.
    pub table: Option<Table>,
    /// The snapshots, oldest first.
    pub snapshot_ids: Vec<i64>,
    /// Whether an earlier run with the same idempotency key made it.
    pub made_before: bool,
    /// Position delete files that were replaced.
    pub rewritten_delete_files: usize,
    /// Delete files, or deletion vectors, that replace them.
    pub added_delete_files: usize,
    /// Bytes of the replaced files.
    pub rewritten_bytes: i64,
    /// Bytes of the new files.
    pub added_bytes: i64,
    /// Why commits failed, which others outlived.
    pub failures: Vec<String>,
}

/// A position delete file.
#[derive(Debug, Clone)]
struct Input {
    file: DataFile,
    sequence_number: i64,
}

/// The settings of a rewrite.
struct Settings {
    sizes: Sizes,
    order: JobOrder,
    /// Maximum number of commits; `None` makes one.
    commits: Option<usize>,
}

impl Settings {
    fn of(options: &StringMap, metadata: &TableMetadata) -> Result<Self> {
        let mut given = Given::new(options);
        let target = DELETE_TARGET_FILE_SIZE_BYTES.read_valid(metadata.properties())?;
        let sizes = Sizes::of(&mut given, target)?;
        let (order, commits) = rest(given)?;
        Ok(Self { sizes, order, commits })
    }
}

/// Rejects options of a rewrite of position deletes that are wrong for every table.
///
/// # Errors
/// Unknown options, and values that are not allowed.
pub fn check_position_rewrite(options: &StringMap) -> Result<()> {
    let mut given = Given::new(options);
    Sizes::check(&mut given)?;
    rest(given).map(drop)
}

/// The options that do not depend on the table.
fn rest(mut given: Given<'_>) -> Result<(JobOrder, Option<usize>)> {
    let order = JobOrder::of(&mut given)?;
    // Groups are small, and are rewritten one after the other.
    given.integer("max-concurrent-file-group-rewrites", 5, 1)?;
    let in_parts = given.flag("partial-progress.enabled", false)?;
    let commits = given.integer("partial-progress.max-commits", 10, 1)?;
    given.end("rewrite of position deletes")?;
    Ok((order, in_parts.then_some(usize::try_from(commits).unwrap_or(usize::MAX))))
}

/// Rewrites position delete files of a branch of the catalog's current table.
///
/// New delete files have the largest data sequence number of those that they replace, so that they apply to the same
/// data files. A deletion vector has all positions of its data file, including those of position delete files that are
/// not rewritten.
///
/// # Errors
/// Options that are not allowed, errors of files, and those of the commits. Files that were written for a commit that
/// certainly failed are deleted.
pub fn rewrite_position_deletes(table: &Table, rewrite: &RewritePositions) -> Result<PositionsRewritten> {
    let RewritePositions { request, options } = rewrite;
    let metadata = table.metadata();
    if let Some(key) = request.snapshot.properties.get(IDEMPOTENCY_KEY)
        && let Some(made) = made_by_key(metadata, &request.snapshot.branch, key)?
    {
        return Ok(PositionsRewritten { made_before: true, snapshot_ids: vec![made], ..PositionsRewritten::default() });
    }
    let settings = Settings::of(options, metadata)?;
    require_branch("rewrite of position deletes", metadata, &request.snapshot.branch)?;
    let scan = Matches::scan(table.storage(), metadata, &request.snapshot.branch, &Expression::True, true)?;
    let start = scan.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id);
    let plan = scan.plan()?;
    let groups = groups(&plan, metadata, request, &settings)?;
    let mut done = PositionsRewritten::default();
    if groups.is_empty() {
        return Ok(done);
    }
    let mut all = Matches::candidates_of(scan, &plan, request.memory)?;
    let chosen: HashSet<&str> = groups.iter().flatten().map(|input| input.file.file_path.as_str()).collect();
    // Others are not needed, and a table may have a hundred times as many.
    all.retain(|file| file.part.deletes.iter().any(|delete| chosen.contains(delete.path.as_str())));
    let all = all.into_matches();
    let mut data_files: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, file) in all.files.iter().enumerate() {
        file.part.deletes.iter().for_each(|delete| data_files.entry(&delete.path).or_default().push(number));
    }
    // A vector has all positions of its data file, so delete files of one data file go together.
    let groups = match metadata.format_version() >= FormatVersion::V3 {
        true => united(groups, &data_files),
        false => groups,
    };
    let writer = Writer {
        table,
        all: &all,
        data_files: &data_files,
        settings: &settings,
        dry_run: request.dry_run,
        operation: Uuid::new_v4(),
    };
    let per_commit = settings.commits.map_or(groups.len(), |commits| groups.len().div_ceil(commits));
    let (mut failed, batches) = (None, groups.len().div_ceil(per_commit));
    let outlives = |error: &Error| settings.commits.is_some() && !matches!(error, Error::Interrupted(_));
    for (number, batch) in groups.chunks(per_commit).enumerate() {
        let mut content = RewriteFiles::new();
        start.into_iter().for_each(|start| content.validate_from_snapshot(start));
        let mut batch_done = PositionsRewritten::default();
        let mut written = Vec::new();
        for (place, group) in batch.iter().enumerate() {
            interrupt::check()?;
            let outcome = writer.write(number * per_commit + place, group, &mut content, &mut written, &mut batch_done);
            match outcome {
                Ok(()) => {}
                Err(error) if outlives(&error) => {
                    done.failures.push(format!("group {}: {error}", number * per_commit + place));
                    failed = failed.or(Some(error));
                }
                Err(error) => {
                    discard(table.storage(), &written);
                    return Err(error);
                }
            }
        }
        if request.dry_run {
            done.add(batch_done);
            continue;
        }
        if batch_done.rewritten_delete_files == 0 {
            continue;
        }
        let mut snapshot = request.snapshot.clone();
        // With the key, a further call would not rewrite what failed.
        if number + 1 < batches || !done.failures.is_empty() {
            snapshot.properties.shift_remove(IDEMPOTENCY_KEY);
        }
        let current = done.table.clone();
        match commit(current.as_ref().unwrap_or(table), content, snapshot) {
            Ok((table, snapshot_id)) => {
                done.add(batch_done);
                done.table = Some(table);
                done.snapshot_ids.extend(snapshot_id);
            }
            Err(error @ (Error::Validation(_) | Error::CommitFailed(_))) if settings.commits.is_some() => {
                done.failures.push(error.to_string());
                failed = failed.or(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
    // Without any commit there is no progress to be kept.
    match failed {
        Some(error) if done.snapshot_ids.is_empty() => Err(error),
        _ => Ok(done),
    }
}

fn commit(table: &Table, content: RewriteFiles, options: SnapshotOptions) -> Result<(Table, Option<i64>)> {
    let mut change =
        SnapshotProducer::new(table.storage().clone(), content, options).on_existing_branch().that_owns_its_files();
    let table = table.make(&mut change)?;
    Ok((table, change.made_snapshot_id()))
}

impl PositionsRewritten {
    fn add(&mut self, other: Self) {
        self.rewritten_delete_files += other.rewritten_delete_files;
        self.added_delete_files += other.added_delete_files;
        self.rewritten_bytes = self.rewritten_bytes.saturating_add(other.rewritten_bytes);
        self.added_bytes = self.added_bytes.saturating_add(other.added_bytes);
    }
}

/// Groups without common data files.
fn united(groups: Vec<Vec<Input>>, data_files: &HashMap<&str, Vec<usize>>) -> Vec<Vec<Input>> {
    // The group of each data file that one was found for, and for each group the one that it belongs to.
    let (mut group_of, mut into): (HashMap<usize, usize>, Vec<usize>) = (HashMap::new(), (0..groups.len()).collect());
    let root = |into: &[usize], mut group: usize| {
        while let Some(next) = into.get(group).filter(|next| **next != group) {
            group = *next;
        }
        group
    };
    for (number, group) in groups.iter().enumerate() {
        for file in group.iter().flat_map(|input| data_files.get(input.file.file_path.as_str()).into_iter().flatten()) {
            let other = root(&into, *group_of.entry(*file).or_insert(number));
            let own = root(&into, number);
            into.get_mut(own.max(other)).into_iter().for_each(|group| *group = own.min(other));
        }
    }
    let mut united: Vec<Vec<Input>> = vec![Vec::new(); groups.len()];
    for (number, group) in groups.into_iter().enumerate() {
        united.get_mut(root(&into, number)).into_iter().for_each(|all| all.extend(group.iter().cloned()));
    }
    united.retain(|group| !group.is_empty());
    united
}

/// The groups of position delete files, by partition. From version 3 on, all position delete files are to become
/// vectors; existing vectors are not rewritten.
fn groups(
    plan: &Plan,
    metadata: &TableMetadata,
    request: &DeletesRequest,
    settings: &Settings,
) -> Result<Vec<Vec<Input>>> {
    let bound = request.filter.bind(metadata.current_schema(), request.case_sensitive)?;
    let sizes = &settings.sizes;
    let (mut of_partition, mut known): (Vec<Vec<Input>>, HashMap<Vec<u8>, usize>) = (Vec::new(), HashMap::new());
    let mut projections = HashMap::new();
    for delete in plan.deletes.iter() {
        let delete = delete?;
        if delete.file.content != FileContent::PositionDeletes || delete.is_vector() {
            continue;
        }
        let spec_id = delete.file.partition_spec_id;
        let projection = match projections.get(&spec_id) {
            Some(known) => known,
            None => {
                let spec = metadata.partition_spec(spec_id);
                let spec = spec.ok_or_else(|| Error::Internal(format!("no partition spec {spec_id}")))?;
                projections.entry(spec_id).or_insert(project_inclusive(&bound, spec))
            }
        };
        let is_of_size = !sizes.rewrite_all && !sizes.is_outside(delete.file.file_size_in_bytes);
        if is_of_size || !projection.matches(&delete.file.partition) {
            continue;
        }
        let next = of_partition.len();
        let group = *known.entry(partition_key(spec_id, &delete.file.partition)).or_insert(next);
        if group == next {
            of_partition.push(Vec::new());
        }
        let input = Input { sequence_number: delete.sequence_number, file: delete.file };
        of_partition.get_mut(group).into_iter().for_each(|files| files.push(input.clone()));
    }
    let bytes = |files: &Vec<Input>| files.iter().map(|file| file.file.file_size_in_bytes).fold(0, i64::saturating_add);
    let packed = of_partition.into_iter().flat_map(|files| sizes.packed(files, |file| file.file.file_size_in_bytes));
    let worthwhile = |files: &Vec<Input>| sizes.rewrite_all || sizes.is_worthwhile(files.len(), bytes(files));
    let mut groups: Vec<Vec<Input>> = packed.filter(worthwhile).collect();
    settings.order.sort(&mut groups, |files| (bytes(files), files.len()));
    Ok(groups)
}

/// Writes the new delete files of groups.
struct Writer<'a> {
    table: &'a Table,
    /// The data files that the rewritten delete files apply to.
    all: &'a Matches,
    /// The numbers of the data files that each delete file applies to.
    data_files: &'a HashMap<&'a str, Vec<usize>>,
    settings: &'a Settings,
    dry_run: bool,
    operation: Uuid,
}

impl Writer<'_> {
    fn write(
        &self,
        number: usize,
        group: &[Input],
        content: &mut RewriteFiles,
        written: &mut Vec<DataFile>,
        done: &mut PositionsRewritten,
    ) -> Result<()> {
        let metadata = self.table.metadata();
        let vectors = metadata.format_version() >= FormatVersion::V3;
        let mut removed: HashMap<&str, &DataFile> =
            group.iter().map(|input| (input.file.file_path.as_str(), &input.file)).collect();
        let own: HashSet<&str> = removed.keys().copied().collect();
        let touched: BTreeSet<usize> =
            own.iter().flat_map(|path| self.data_files.get(path).into_iter().flatten().copied()).collect();
        let touched: Vec<&MatchedFile> = touched.into_iter().filter_map(|number| self.all.files.get(number)).collect();
        let narrowed: Vec<MatchedFile> = match vectors {
            // A vector replaces all position deletes of its data file.
            true => touched.iter().map(|file| (*file).clone()).collect(),
            false => touched.iter().map(|file| with_deletes(file, &own)).collect(),
        };
        let files: Vec<&MatchedFile> = narrowed.iter().collect();
        let mut number_of = group.iter().map(|input| input.sequence_number).max().unwrap_or(0);
        let mut deleted = Vec::new();
        for (file, positions) in files.iter().zip(self.all.deleted_before(&files, false)?) {
            let Some(positions) = positions.filter(|positions| !positions.is_empty()) else { continue };
            if vectors {
                let all = file.part.deletes.iter().filter(|delete| delete.kind != DeleteKind::Equality);
                number_of = all.map(|delete| delete.sequence_number).fold(number_of, i64::max);
                removed.extend(file.own_deletes.iter().map(|delete| (delete.file_path.as_str(), delete)));
            }
            deleted.push(DeletedRows {
                data_file: file.part.path.clone(),
                spec: file.part.partition.spec.spec.clone(),
                partition: file.part.partition.tuple.clone(),
                positions,
            });
        }
        let granularity = Granularity::of(metadata.properties())?;
        let of_files = vectors || granularity == Granularity::File;
        if !vectors && of_files && !self.settings.sizes.rewrite_all && deleted.len() >= removed.len() {
            // They would not become fewer.
            return Ok(());
        }
        let bytes = |files: &mut dyn Iterator<Item = i64>| files.fold(0, i64::saturating_add);
        done.rewritten_delete_files += removed.len();
        done.rewritten_bytes += bytes(&mut removed.values().map(|file| file.file_size_in_bytes));
        if self.dry_run {
            done.added_delete_files += match of_files {
                true => deleted.len(),
                false => usize::from(!deleted.is_empty()),
            };
            return Ok(());
        }
        let mut config = DeleteConfig::of_table(self.table.storage().clone(), metadata, self.operation);
        config.task = u32::try_from(number).unwrap_or(u32::MAX);
        let target = DELETE_TARGET_FILE_SIZE_BYTES.name.to_owned();
        config.properties.insert(target, self.settings.sizes.file_bytes().to_string());
        let added = match vectors {
            true => write_vectors(&config, deleted)?,
            false => write_positions(&config, deleted, granularity)?,
        };
        written.extend(added.iter().cloned());
        done.added_delete_files += added.len();
        done.added_bytes += bytes(&mut added.iter().map(|file| file.file_size_in_bytes));
        // With partial progress, a group that fails here must not have removed what it has not replaced.
        added.into_iter().try_for_each(|file| content.add_delete_file(file, Some(number_of)))?;
        removed.into_values().cloned().try_for_each(|file| content.delete_delete_file(file))
    }
}

/// A data file with only some of its delete files.
fn with_deletes(file: &MatchedFile, wanted: &HashSet<&str>) -> MatchedFile {
    let deletes = file.part.deletes.iter().filter(|delete| wanted.contains(delete.path.as_str()));
    let deletes = deletes.map(Arc::clone).collect();
    MatchedFile { part: FilePart { deletes, ..file.part.clone() }, ..file.clone() }
}
