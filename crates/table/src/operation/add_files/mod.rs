//! Adds existing files to a table without rewriting them (PyIceberg's `add_files`; Java's `SparkTableUtil`).
//!
//! Each file is described by its footer. Columns are found by the field ids in the file, otherwise by name; in that
//! case the table gets a name mapping if it has none. Deleting the table's data deletes these files too.

mod describe;
mod options;
mod partition;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use icefield_format::manifest::ManifestContent;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::metadata::{MetadataUpdate, StringMap, TableMetadata, requirements_for_update};
use icefield_format::types::{NAME_MAPPING_PROPERTY, NameMapping};
use rayon::prelude::*;

use crate::commit::{SnapshotProducer, Transaction, Updates};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::limits::limits;
use crate::operation::append::{AddedFiles, Append};
use crate::runtime;
use crate::snapshot::manifests::of_snapshot;
use crate::storage::{Location, Places, Scheme, Storage};
use crate::write::check_writable;
use describe::Importer;
pub(crate) use describe::format_of;
pub use options::AddFilesOptions;

/// Maximum number of paths in an error.
const NAMED: usize = 5;

impl Transaction {
    /// Describes files by their footers and stages an append; returns counts of what is added.
    ///
    /// A partition value comes from the caller, otherwise from the path (`name=value`, with the name of the partition
    /// field), otherwise from the footer's bounds, otherwise from the rows.
    ///
    /// # Errors
    /// A file that is given twice or that the table already has; an unknown file format; columns that do not fit the
    /// table's; rows in several partitions, or in another one than given. The transaction is then unchanged, and the
    /// files are never deleted.
    pub fn add_files(&mut self, paths: &[String], mut options: AddFilesOptions) -> Result<AddedFiles> {
        let before = self.metadata()?.clone();
        let storage = &self.storage().clone();
        check_writable(&before, storage)?;
        let paths = &paths.iter().map(|path| whole(path)).collect::<Result<Vec<_>>>()?[..];
        let partitions = std::mem::take(&mut options.partitions).into_iter();
        options.partitions = partitions.map(|(path, values)| Ok((whole(&path)?, values))).collect::<Result<_>>()?;
        refuse_twice(storage, paths, &options)?;
        if paths.is_empty() {
            return Ok(AddedFiles::default());
        }
        if !options.allow_duplicates {
            refuse_known(storage, &before, &options.snapshot.branch, paths)?;
        }
        let property = before.property(NAME_MAPPING_PROPERTY);
        let mapping = match property {
            Some(text) => NameMapping::parse(text)?,
            None => NameMapping::of_schema(before.current_schema())?,
        };
        let importer = Importer::new(storage, &before, &mapping, &options)?;
        let describe = |path: &String| {
            interrupt::check()?;
            importer.describe(path)
        };
        let described = runtime::pool()?.install(|| paths.par_iter().map(describe).collect::<Result<Vec<_>>>())?;

        let is_mapped = described.iter().any(|file| file.is_mapped);
        let files: Vec<_> = described.into_iter().map(|described| described.file).collect();
        let added = AddedFiles::of(&files);
        if options.dry_run {
            return Ok(added);
        }
        if is_mapped && property.is_none() {
            let updates = vec![MetadataUpdate::SetProperties {
                updates: StringMap::from([(NAME_MAPPING_PROPERTY.to_owned(), mapping.to_json().to_string())]),
            }];
            self.stage(Updates::new(requirements_for_update(&before, &updates), updates)?)?;
        }
        self.stage(SnapshotProducer::new(storage.clone(), Append::new(files)?, options.snapshot))?;
        Ok(added)
    }
}

/// Makes a path absolute: readers of the metadata have another working directory.
fn whole(path: &str) -> Result<String> {
    let place = Location::parse(path)?;
    match place.scheme {
        Scheme::File if Path::new(&place.key).is_relative() => Ok(place.normalized().key),
        _ => Ok(path.to_owned()),
    }
}

/// Rejects paths that are given more than once, and partition values for files that are not added.
fn refuse_twice(storage: &Storage, paths: &[String], options: &AddFilesOptions) -> Result<()> {
    let places = Places::of(storage);
    let (mut seen, mut met, mut twice) = (HashSet::new(), HashSet::new(), Vec::new());
    for path in paths {
        seen.insert(path.as_str());
        if !met.insert(places.place(path)) {
            twice.push(path.as_str());
        }
    }
    if !twice.is_empty() {
        return Err(Error::invalid(format!("files are named more than once: {}", some(&twice))));
    }
    match options.partitions.keys().find(|path| !seen.contains(path.as_str())) {
        Some(path) => Err(Error::invalid(format!("partition values are given for {path}, which is not added"))),
        None => Ok(()),
    }
}

/// Rejects files that the branch already has.
fn refuse_known(storage: &Storage, metadata: &Arc<TableMetadata>, branch: &str, paths: &[String]) -> Result<()> {
    let head = match metadata.reference(branch) {
        Some(reference) => metadata.snapshot(reference.snapshot_id),
        None => metadata.current_snapshot(),
    };
    let Some(head) = head else { return Ok(()) };
    let limits = limits()?;
    let places = Places::of(storage);
    let wanted: HashSet<_> = paths.iter().map(|path| places.place(path)).collect();
    let is_wanted = |path: &&str| wanted.contains(&places.place(path));
    let mut manifests = of_snapshot(storage, metadata, head, &limits)?;
    manifests.retain(|manifest| manifest.content == ManifestContent::Data && manifest.has_live_files());
    let known = manifests.par_iter().map(|manifest| {
        interrupt::check()?;
        let path = &manifest.manifest_path;
        let bytes = storage.read_manifest(manifest)?;
        let options = ReadOptions { inherit: Some(manifest), live_only: true, ..ReadOptions::default() };
        let entries = entries::read(&bytes, &options, &limits).map_err(|error| Error::from(error.in_file(path)))?;
        Ok(entries.file_path.iter().flatten().filter(is_wanted).map(str::to_owned).collect::<Vec<_>>())
    });
    let known = runtime::pool()?.install(|| known.collect::<Result<Vec<_>>>())?;
    let known: Vec<String> = known.into_iter().flatten().collect();
    if known.is_empty() {
        return Ok(());
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(Error::invalid(format!("files are in the table already: {}", some(&known))))
}

/// The first of these paths, and the number of others.
fn some(paths: &[&str]) -> String {
    let (named, others) = paths.split_at(NAMED.min(paths.len()));
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    format!("{}{more}", named.join(", "))
}
