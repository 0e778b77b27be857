//! Finds files in a table's folder that nothing in the table references, and deletes them.
//!
//! Such files remain after writers that were killed and after deletions that failed. A file that a writer has not
//! committed yet looks the same, so only old files count, and the table is read again before anything is deleted.

mod known;
mod prefix;

use std::collections::BTreeSet;

use icefield_format::limits::Held;
use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::GC_ENABLED;

use crate::error::{Error, Result};
use crate::interrupt;
use crate::limits::limits;
use crate::storage::{Entry, Folders, Leftover, Storage};
use crate::table::Table;
use known::{Answer, Known};
use prefix::Prefixes;

/// Number of files that are deleted together.
const DELETED_TOGETHER: usize = 10_000;

/// What to do with a file whose path is that of a referenced file except for the scheme or the authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PrefixMismatch {
    /// Fail, and name the schemes and authorities.
    #[default]
    Error,
    /// Keep it.
    Ignore,
    /// Treat it as another file, that is, delete it.
    Delete,
}

/// Which files to look for.
#[derive(Debug, Clone, Default)]
pub struct OrphanSearch {
    /// The folder to list; by default the table's location.
    pub location: Option<String>,
    /// Only files modified before this time, in milliseconds from the epoch.
    pub older_than_ms: i64,
    /// Schemes, several separated by commas, and the one that they are equal to; in addition to the ones that are
    /// always equal (`s3`, `s3a`, `s3n`; `gs`, `gcs`; those of Azure).
    pub equal_schemes: Vec<(String, String)>,
    /// The same for authorities: hosts, buckets and containers.
    pub equal_authorities: Vec<(String, String)>,
    /// What to do with files that differ from a referenced one in scheme or authority only.
    pub prefix_mismatch: PrefixMismatch,
    /// Names of the other tables of the catalog, each with one of its folders.
    pub others: Vec<(String, String)>,
    /// The catalog's warehouse, which does not belong to any table.
    pub warehouse: Option<String>,
}

/// A file that nothing references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Its location.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

/// The result of a search or a removal.
#[derive(Debug, Default, Clone)]
pub struct Orphans {
    /// The files, sorted by location.
    pub files: Vec<Orphan>,
    /// Number of files in the folder, hidden ones included.
    pub listed: u64,
    /// Files that were not deleted: links, and those that the store did not delete.
    pub leftover: Leftover,
}

/// Finds the files that [`remove_orphans`] would delete.
///
/// Everything that any snapshot references is kept, also files that a remaining snapshot has removed, because its
/// changes can still be read; statistics files; and the metadata files of the table's log and of the logs in these.
/// Files and folders whose names begin with `_` or `.` are not considered, except folders of partition fields with such
/// names. Memory grows with the number of referenced files by a few bytes each, and with the orphans.
///
/// # Errors
/// A folder that another table uses, or that is not exclusive to the table; `gc.enabled=false`; metadata that cannot be
/// read, since any file may then be referenced; [`Error::Validation`] for [`PrefixMismatch::Error`].
pub fn find_orphans(table: &Table, search: &OrphanSearch) -> Result<Orphans> {
    Ok(found(table, search)?.1)
}

/// Deletes the files in the table's folder that nothing references.
///
/// # Errors
/// As [`find_orphans`]; nothing is then deleted.
pub fn remove_orphans(table: &Table, search: &OrphanSearch) -> Result<Orphans> {
    let (mut known, mut orphans) = found(table, search)?;
    if orphans.files.is_empty() {
        return Ok(orphans);
    }
    // A commit during the listing may have added files that waited for it longer than `older_than_ms` allows.
    known.add(table.refresh()?.committed())?;
    orphans.files.retain(|orphan| !matches!(known.answer(&orphan.path), Answer::Known));
    let storage = table.storage();
    for some in orphans.files.chunks(DELETED_TOGETHER) {
        interrupt::check()?;
        let paths: Vec<&str> = some.iter().map(|orphan| orphan.path.as_str()).collect();
        storage.delete_all(&paths).iter().for_each(|error| orphans.leftover.add(error));
    }
    log::info!("{}: deleted {} orphan files", table.metadata().location(), orphans.files.len());
    Ok(orphans)
}

fn found<'a>(table: &'a Table, search: &OrphanSearch) -> Result<(Known<'a>, Orphans)> {
    let current = table.refresh()?;
    let metadata = current.metadata();
    if !GC_ENABLED.read(metadata.properties()) {
        return Err(Error::invalid(
            "the table has gc.enabled=false: its files may be those of other tables too, so no orphans are removed",
        ));
    }
    let storage = table.storage();
    let location = search.location.as_deref().unwrap_or_else(|| metadata.location()).trim_end_matches('/');
    check_folder(storage, metadata, location, search)?;
    let limits = limits()?;
    let prefixes = Prefixes::new(storage, &search.equal_schemes, &search.equal_authorities);
    let mut known = Known::new(storage, prefixes, limits);
    known.add(current.committed())?;
    let mut listing = Listing {
        storage,
        search,
        visible: Visible::of(metadata),
        location,
        held: limits.held(),
        conflicts: BTreeSet::new(),
        orphans: Orphans::default(),
    };
    for page in storage.pages(location)? {
        interrupt::check()?;
        page?.into_iter().try_for_each(|entry| listing.look_at(&known, entry))?;
    }
    Ok((known, listing.finish()?))
}

/// Rejects a folder that has files of others.
fn check_folder(storage: &Storage, metadata: &TableMetadata, location: &str, search: &OrphanSearch) -> Result<()> {
    if location.is_empty() {
        return Err(Error::invalid("the location to search for orphans is empty"));
    }
    if let Some(why) = Folders::refusal(storage, metadata, location, search.warehouse.as_deref())? {
        return Err(Error::invalid(format!("no orphans are removed from {location}: this folder {why}")));
    }
    match search.others.iter().find(|(_, folder)| Folders::overlap(storage, location, folder)) {
        None => Ok(()),
        Some((name, folder)) => Err(Error::invalid(format!(
            "no orphans are removed from {location}: the {name} has files in {folder}, which would look like \
             orphans; pass the location of a folder that only this table uses"
        ))),
    }
}

/// Looks at listed files, and keeps those that are orphans.
struct Listing<'a> {
    storage: &'a Storage,
    search: &'a OrphanSearch,
    visible: Visible,
    location: &'a str,
    held: Held,
    /// Pairs of schemes or authorities that differ, the referenced one first.
    conflicts: BTreeSet<(String, String)>,
    orphans: Orphans,
}

impl Listing<'_> {
    fn look_at(&mut self, known: &Known<'_>, entry: Entry) -> Result<()> {
        self.orphans.listed += 1;
        let is_old = entry.modified_ms.is_some_and(|time| time < self.search.older_than_ms);
        let below = entry.path.strip_prefix(self.location).unwrap_or(&entry.path);
        if !is_old || !self.visible.shows(below) {
            return Ok(());
        }
        match (known.answer(&entry.path), self.search.prefix_mismatch) {
            (Answer::Known, _) | (Answer::Elsewhere(_), PrefixMismatch::Ignore) => return Ok(()),
            (Answer::Elsewhere(conflicts), PrefixMismatch::Error) => {
                self.conflicts.extend(conflicts);
                return Ok(());
            }
            (Answer::Unknown, _) | (Answer::Elsewhere(_), PrefixMismatch::Delete) => {}
        }
        if self.storage.is_link(&entry.path) {
            let message = format!("{}: this is a link: it stays, and so does what it leads to", entry.path);
            self.orphans.leftover.add(&Error::invalid(message));
            return Ok(());
        }
        self.held.keep(entry.path.len() + size_of::<Orphan>())?;
        self.orphans.files.push(Orphan { path: entry.path, size: entry.size });
        Ok(())
    }

    fn finish(mut self) -> Result<Orphans> {
        if self.conflicts.is_empty() {
            self.orphans.files.sort_by(|one, other| one.path.cmp(&other.path));
            return Ok(self.orphans);
        }
        let shown: Vec<String> = self.conflicts.iter().map(|(known, listed)| format!("{known} and {listed}")).collect();
        Err(Error::Validation(format!(
            "cannot decide whether some files in {} are orphans: the table references their paths with another scheme \
             or authority ({}); pass those that are equal as equal_schemes or equal_authorities, or as \
             prefix_mismatch_mode 'ignore' to keep these files, or 'delete' if you are certain that they are other \
             files; nothing was deleted",
            self.location,
            shown.join(", ")
        )))
    }
}

/// Decides which files are visible: not those whose names, or whose folders' names, begin with `_` or `.`.
struct Visible {
    /// Beginnings of the names of partition folders that would be hidden.
    partitions: Vec<String>,
}

impl Visible {
    fn of(metadata: &TableMetadata) -> Self {
        let fields = metadata.partition_specs().iter().flat_map(|spec| &spec.fields);
        let hidden = fields.filter(|field| field.name.starts_with(['_', '.']));
        Self { partitions: hidden.map(|field| format!("{}=", field.name)).collect() }
    }

    fn shows(&self, below: &str) -> bool {
        let is_hidden = |name: &str| {
            name.starts_with(['_', '.']) && !self.partitions.iter().any(|partition| name.starts_with(partition))
        };
        !below.split(['/', '\\']).any(is_hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_are_not_considered() {
        let visible = Visible { partitions: vec!["_day=".to_owned()] };
        for (path, shown) in [
            ("/data/a.parquet", true),
            ("/data/.a.parquet.tmp", false),
            ("/_temporary/0/a.parquet", false),
            ("/data/_day=1/a.parquet", true),
            ("/data/_day=1/_SUCCESS", false),
            ("/data/_daytime=1/a.parquet", false),
            ("/data/x_day=1/a.b", true),
        ] {
            assert_eq!(visible.shows(path), shown, "{path}");
        }
    }
}
