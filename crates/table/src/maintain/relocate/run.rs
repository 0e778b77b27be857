//! Rewrites the paths of a table, and copies it.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use icefield_format::metadata::{MetadataCodec, TableMetadata, compress};
use uuid::Uuid;

use super::content::{Content, Places};
use super::plan::{Copier, FileList, Named, Plan};
use super::prefix::{Prefix, with_slash};
use super::versions::Versions;
use crate::commit::{Committed, read_metadata, require_same_table};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::storage::Storage;

/// The name of the list of files below the staging location.
const FILE_LIST: &str = "file-list";

/// A rewrite of paths, as in Java's `rewrite_table_path`.
#[derive(Debug, Clone, Default)]
pub struct PathRewrite {
    /// The prefix of all paths of the table.
    pub source_prefix: String,
    /// The one that replaces it.
    pub target_prefix: String,
    /// Name or path of the last metadata file that was copied before; `None` copies all.
    pub start_version: Option<String>,
    /// Name or path of the last metadata file to copy; by default the current one.
    pub end_version: Option<String>,
    /// The folder of rewritten files; by default a new one next to the current metadata file.
    pub staging_location: Option<String>,
    /// Whether to write the list of files.
    pub create_file_list: bool,
}

/// The result of a rewrite.
#[derive(Debug, Clone, Default)]
pub struct PathsRewritten {
    /// The name of the last metadata file.
    pub latest_version: String,
    /// The folder of rewritten files.
    pub staging_location: String,
    /// The list of all files of the copy: source and target.
    pub file_list: Option<String>,
    /// Number of rewritten manifests.
    pub manifests: usize,
    /// Number of rewritten position delete files and deletion vectors.
    pub delete_files: usize,
    /// Number of all files of the copy.
    pub files: u64,
}

/// Writes the metadata files, manifest lists, manifests and position deletes of a table to a staging location, with
/// another prefix of all paths, and a list of the files to copy. No file of the table changes.
///
/// # Errors
/// Files outside of the prefix, encrypted tables, unknown versions; nothing is written then. Files that were written
/// before another error are deleted.
pub fn rewrite_table_path(storage: &Storage, table: &Committed, request: &PathRewrite) -> Result<PathsRewritten> {
    let staging = match &request.staging_location {
        Some(staging) if staging.trim().is_empty() => return Err(Error::invalid("staging_location is empty")),
        Some(staging) => with_slash(staging),
        None => {
            let folder = table.location.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/copy-table-staging-{}/", Uuid::new_v4())
        }
    };
    let places = Places {
        storage,
        written: storage.clone(),
        prefix: Prefix::new(&request.source_prefix, &request.target_prefix)?,
        staging: Some(staging.clone()),
        limits: limits()?,
        staged: Mutex::default(),
    };
    let (start, end) = (request.start_version.as_deref(), request.end_version.as_deref());
    let versions = Versions::of(storage, table, start, end)?;
    let mut all = versions.between.clone();
    all.push(versions.end.location.clone());
    for location in &all {
        read_version(storage, &versions, location)?.relocated(|what, path| places.prefix.replaced(what, path))?;
        places.prefix.replaced("a metadata file", location)?;
    }
    let mut content = Content::of(&places, &versions)?;
    let list = request.create_file_list.then(|| format!("{staging}{FILE_LIST}"));
    let mut plan = FileList::new(storage, list.as_deref())?;
    let mut done = || {
        let rewritten = content.write(&mut plan)?;
        plan.add(statistics(&places, &versions)?)?;
        write_versions(&places, &versions, &all, &mut plan)?;
        Ok(rewritten)
    };
    let rewritten = match done() {
        Ok(rewritten) => rewritten,
        Err(error) => {
            drop(plan);
            places.discard();
            return Err(error);
        }
    };
    let (file_list, files) = plan.finish()?;
    Ok(PathsRewritten {
        latest_version: name_of(&versions.end.location).to_owned(),
        staging_location: staging,
        file_list,
        manifests: rewritten.manifests,
        delete_files: rewritten.delete_files,
        files,
    })
}

/// A copy of a table.
#[derive(Debug, Clone, Default)]
pub struct TableCopy {
    /// The location of the copy.
    pub location: String,
    /// The prefix of all paths of the table; by default its location.
    pub source_prefix: Option<String>,
    /// Write nothing.
    pub dry_run: bool,
}

/// The result of a copy.
#[derive(Debug, Clone, Default)]
pub struct TableCopied {
    /// The metadata file of the copy.
    pub metadata_location: String,
    /// The version that an earlier copy has, whose files were not copied again.
    pub start_version: Option<String>,
    /// Number of copied files, without rewritten ones.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Number of files that were there already.
    pub present: u64,
    /// Number of rewritten manifests.
    pub manifests: usize,
    /// Number of rewritten position delete files and deletion vectors.
    pub delete_files: usize,
}

/// Copies a table with its history to another location. If the location has an earlier copy, only what is new is
/// copied. A failed copy can be run again: files that are there with the right size are skipped, and metadata files
/// come last.
///
/// # Errors
/// As [`rewrite_table_path`]; a location that overlaps with the table's, or that has the metadata of another table; a
/// file that has another size than the metadata says.
pub fn copy_table(storage: &Storage, table: &Committed, request: &TableCopy) -> Result<TableCopied> {
    let source = request.source_prefix.as_deref().unwrap_or_else(|| table.metadata.location());
    let prefix = Prefix::new(source, &request.location)?;
    if prefix.overlap() {
        return Err(Error::invalid(format!(
            "{source} cannot be copied to {}: one location would contain the other",
            request.location
        )));
    }
    let written = if request.dry_run { storage.unwritten() } else { storage.clone() };
    let places = Places { storage, written, prefix, staging: None, limits: limits()?, staged: Mutex::default() };
    let mut known = Vec::new();
    for entry in table.metadata.metadata_log() {
        // Earlier versions may be gone; the copy does without them.
        if storage.exists(&entry.metadata_file)? {
            known.push(entry.metadata_file.clone());
        }
    }
    let metadata_location = places.prefix.replaced("a metadata file", &table.location)?;
    let start = copied_before(&places, table, &known, &metadata_location)?;
    if start.as_deref() == Some(&*table.location) {
        let start_version = Some(name_of(&table.location).to_owned());
        return Ok(TableCopied { metadata_location, start_version, ..TableCopied::default() });
    }
    let versions = Versions::of(storage, table, start.as_deref(), None)?;
    let mut all: Vec<String> = versions.between.iter().filter(|file| known.contains(file)).cloned().collect();
    all.push(table.location.clone());
    for location in &all {
        read_version(storage, &versions, location)?.relocated(|what, path| places.prefix.replaced(what, path))?;
    }
    let mut content = Content::of(&places, &versions)?;
    let mut plan = Copier::new(storage, &places.written, request.dry_run);
    let rewritten = content.write(&mut plan)?;
    plan.add(statistics(&places, &versions)?)?;
    write_versions(&places, &versions, &all, &mut plan)?;
    Ok(TableCopied {
        metadata_location,
        start_version: start.map(|start| name_of(&start).to_owned()),
        files: plan.copied.load(Ordering::Relaxed),
        bytes: plan.bytes.load(Ordering::Relaxed),
        present: plan.present.load(Ordering::Relaxed),
        manifests: rewritten.manifests,
        delete_files: rewritten.delete_files,
    })
}

/// The newest version at the target, if any. It is complete, because metadata files are written last.
///
/// # Errors
/// Metadata of another table.
fn copied_before(places: &Places<'_>, table: &Committed, known: &[String], newest: &str) -> Result<Option<String>> {
    let storage = places.storage;
    let mut found = None;
    for version in known.iter().chain([&table.location]).rev() {
        if storage.exists(&places.prefix.replaced("a metadata file", version)?)? {
            found = Some(version.clone());
            break;
        }
    }
    let Some(version) = found else {
        // The folder of the newest version in the copy.
        let folder = newest.rsplit_once('/').map_or(newest, |(folder, _)| folder);
        let is_metadata = |path: &str| MetadataCodec::from_file_name(path).is_some();
        for page in storage.pages(folder)? {
            if let Some(other) = page?.iter().find(|entry| is_metadata(&entry.path)) {
                return Err(Error::invalid(format!(
                    "{folder} has the metadata of another table, or of a newer copy: {}; choose another location",
                    other.path
                )));
            }
        }
        return Ok(None);
    };
    let location = places.prefix.replaced("a metadata file", &version)?;
    require_same_table(table.metadata.table_uuid(), &read_metadata(storage, &location)?, &location)?;
    Ok(Some(version))
}

fn read_version(storage: &Storage, versions: &Versions, location: &str) -> Result<TableMetadata> {
    if location == versions.end.location {
        return Ok(TableMetadata::clone(&versions.end.metadata));
    }
    read_metadata(storage, location).map_err(|error| match error {
        Error::NotFound { path } => Error::invalid(format!(
            "{path} is in the metadata log but does not exist: pass a start_version that comes after it, or copy_to a \
             location, which does without it"
        )),
        other => other,
    })
}

/// The statistics files of the last version that the start does not have.
fn statistics(places: &Places<'_>, versions: &Versions) -> Result<Vec<Named>> {
    let metadata = &versions.end.metadata;
    let of_columns = metadata.statistics().iter().map(|file| (&file.statistics_path, file.file_size_in_bytes));
    let of_partitions =
        metadata.partition_statistics().iter().map(|file| (&file.statistics_path, file.file_size_in_bytes));
    let is_new = |path: &str| versions.start.as_ref().is_none_or(|start| !start.statistics.contains(path));
    let all = of_columns.chain(of_partitions).filter(|(path, _)| is_new(path));
    all.map(|(path, size)| places.copied("a statistics file", path, Some(size))).collect()
}

/// Writes metadata files, oldest first: the last one is there only if everything else is.
fn write_versions(places: &Places<'_>, versions: &Versions, all: &[String], plan: &mut dyn Plan) -> Result<()> {
    for location in all {
        let metadata = read_version(places.storage, versions, location)?;
        let changed = metadata.relocated(|what, path| places.prefix.replaced(what, path))?;
        let codec = MetadataCodec::from_file_name(location).unwrap_or(MetadataCodec::None);
        let named = places.rewritten("a metadata file", location)?;
        places.put(&named.source, compress(&changed.to_json(), codec)?)?;
        plan.add(vec![named])?;
    }
    Ok(())
}

fn name_of(location: &str) -> &str {
    location.rsplit('/').next().unwrap_or(location)
}
