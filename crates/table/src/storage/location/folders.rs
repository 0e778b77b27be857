//! The folders whose files belong to a table. Every deletion of files referenced by metadata is limited to them.
//!
//! Metadata may come from untrusted writers and reference any file that the credentials can access. Purge, expiry and
//! the deletion of old metadata files after a commit are therefore limited to these folders.

use std::path::{Path, PathBuf};

use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::{WRITE_DATA_LOCATION, WRITE_METADATA_LOCATION};

use crate::error::{Error, Result};
use crate::storage::{Location, Scheme, Storage};

/// How a file relates to the folders of a table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It is outside all of them.
    Elsewhere,
    /// It is in one of them.
    Within,
    /// It is in one of them only through this link.
    ByLink(PathBuf),
}

/// The folders that the metadata assigns to the table: its location, `write.data.path`, `write.metadata.path`.
#[derive(Debug)]
pub(crate) struct Folders {
    /// The table's location; it may contain the other folders.
    location: Option<Location>,
    /// The folders whose files belong to the table.
    own: Vec<Location>,
    /// Why the other folders do not.
    refused: Vec<Error>,
}

impl Folders {
    /// The folders of a table. The `warehouse` of its catalog and its parents do not belong to any table.
    pub(crate) fn of(storage: &Storage, metadata: &TableMetadata, warehouse: Option<&str>) -> Self {
        let location = storage.locate(metadata.location()).ok();
        let warehouse = warehouse.and_then(|folder| storage.locate(folder).ok());
        let mut folders = Self { location, own: Vec::new(), refused: Vec::new() };
        let given = [WRITE_DATA_LOCATION, WRITE_METADATA_LOCATION].map(|property| property.read(metadata.properties()));
        for folder in given.into_iter().flatten().chain([metadata.location()]).filter(|folder| !folder.is_empty()) {
            let Ok(at) = storage.locate(folder) else { continue };
            match folders.shared(&at, warehouse.as_ref()) {
                None => folders.own.push(at),
                Some(why) => {
                    let message = format!("the folder {folder} of the table {why}: nothing in it was deleted");
                    folders.refused.push(Error::invalid(message));
                }
            }
        }
        folders
    }

    /// Why some folders do not belong to the table.
    pub(crate) fn refused(&self) -> &[Error] {
        &self.refused
    }

    /// Whether a file is in one of the folders, and not through a link.
    pub(crate) fn have(&self, storage: &Storage, path: &str) -> bool {
        self.way_to(storage, path) == Way::Within
    }

    /// How a file relates to the folders. Looks for the first link on the path to it from the table's location, or from
    /// another of its folders.
    pub(crate) fn way_to(&self, storage: &Storage, path: &str) -> Way {
        let Ok(file) = storage.locate(path) else { return Way::Elsewhere };
        if !self.own.iter().any(|folder| is_beneath(folder, &file)) {
            return Way::Elsewhere;
        }
        let mut folders = self.location.iter().chain(&self.own).filter(|_| file.scheme == Scheme::File);
        let Some(base) = folders.find(|folder| is_beneath(folder, &file)) else { return Way::Within };
        let mut way: Vec<&Path> = Path::new(&file.key).ancestors().skip(1).collect();
        way.truncate(way.len().saturating_sub(Path::new(&base.key).ancestors().skip(1).count()));
        let link = way.into_iter().rev().find(|folder| is_link(base, folder));
        link.map_or(Way::Within, |link| Way::ByLink(link.to_owned()))
    }

    /// Why a folder is not one whose files may all belong to the table, if so.
    pub(crate) fn refusal(
        storage: &Storage,
        metadata: &TableMetadata,
        folder: &str,
        warehouse: Option<&str>,
    ) -> Result<Option<&'static str>> {
        let warehouse = warehouse.and_then(|folder| storage.locate(folder).ok());
        let own = Self { location: storage.locate(metadata.location()).ok(), own: Vec::new(), refused: Vec::new() };
        Ok(own.shared(&storage.locate(folder)?, warehouse.as_ref()))
    }

    /// Whether one of two folders is the other or is in it. Unknown places do not overlap with any.
    pub(crate) fn overlap(storage: &Storage, one: &str, other: &str) -> bool {
        let (Ok(one), Ok(other)) = (storage.locate(one), storage.locate(other)) else { return false };
        is_same(&one, &other) || is_above(&one, &other) || is_above(&other, &one)
    }

    /// Why a folder is not exclusive to the table, if so.
    fn shared(&self, folder: &Location, warehouse: Option<&Location>) -> Option<&'static str> {
        let named = names(folder);
        let unc = folder.key.starts_with("//") || folder.key.starts_with(r"\\");
        let drive = named.first().is_some_and(|name| folder.scheme == Scheme::File && name.ends_with(':'));
        let root = if unc { 2 } else { usize::from(drive) };
        if named.contains(&"..") {
            Some("has '..' in it")
        } else if named.len() <= root {
            Some("is the root of a store or drive")
        } else if is_link(folder, Path::new(&folder.key)) {
            Some("is a link")
        } else if warehouse.is_some_and(|warehouse| is_above(folder, warehouse) || is_same(folder, warehouse)) {
            Some("is the warehouse or above it")
        } else if self.location.as_ref().is_some_and(|own| is_above(folder, own)) {
            Some("is above the table's location")
        } else {
            None
        }
    }
}

/// Whether two paths are the same folder, by name or through links.
pub(super) fn is_same(folder: &Location, other: &Location) -> bool {
    let by_name =
        (folder.scheme, &folder.authority) == (other.scheme, &other.authority) && names(folder) == names(other);
    by_name || real(folder).is_some_and(|folder| real(other) == Some(folder))
}

/// Whether `folder` is a parent of `other`, by name or through links.
fn is_above(folder: &Location, other: &Location) -> bool {
    let real = || {
        let (folder, other) = (real(folder)?, real(other)?);
        Some(folder != other && other.starts_with(folder))
    };
    leads_to(folder, other) || real().unwrap_or(false)
}

/// An existing local folder with links resolved.
fn real(folder: &Location) -> Option<PathBuf> {
    (folder.scheme == Scheme::File).then(|| std::fs::canonicalize(&folder.key).ok()).flatten()
}

/// The components of a location's path.
fn names(at: &Location) -> Vec<&str> {
    let windows = at.scheme == Scheme::File && cfg!(windows);
    let names = at.key.split(|letter| letter == '/' || (windows && letter == '\\'));
    names.filter(|name| !matches!(*name, "" | ".")).collect()
}

fn is_link(of: &Location, folder: &Path) -> bool {
    of.scheme == Scheme::File && folder.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

/// Whether a file is in a folder or its subfolders; never through `..`. The path of a folder ends with a slash.
fn is_beneath(folder: &Location, file: &Location) -> bool {
    !file.key.ends_with('/') && leads_to(folder, file)
}

pub(super) fn leads_to(folder: &Location, other: &Location) -> bool {
    let (within, rest) = (names(folder), names(other));
    (folder.scheme, &folder.authority) == (other.scheme, &other.authority)
        && rest.len() > within.len()
        && rest.starts_with(&within)
        && !rest.contains(&"..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beneath() {
        let table = [
            ("/w/t", "/w/t/data/a", true),
            ("/w/t/", "file:///w/t/data/a", true),
            ("/w/t", "/w/t", false),
            ("/w/t", "/w/t/", false),
            ("/w/t", "/w/tt/a", false),
            ("/w/t", "/w/t/../u/a", false),
            ("/w/t", "/w/t/data/../../u/a", false),
            ("/w/t", "/w/t/..a/b", true),
            ("/w/t", "memory:///w/t/a", false),
            ("/", "/a", true),
            ("/w/t", "/w//t/./data/a", true),
            ("s3://b/t", "s3a://b/t/a", true),
            ("s3://b/t", "s3a://B//t/a", true),
            ("s3://b/t", "s3://b/t/../u/a", false),
            ("abfss://c@acc.dfs.core.windows.net/t", "wasbs://c@acc.blob.core.windows.net/t/a", true),
            ("abfss://c@acc.dfs.core.windows.net/t", "wasbs://c@other.blob.core.windows.net/t/a", false),
            ("s3://b/t", "s3://c/t/a", false),
            ("s3://b/t", "gs://b/t/a", false),
            ("s3://b", "s3://b/a", true),
            ("s3://b/", "s3://b/a", true),
        ];
        for (folder, file, expected) in table {
            let at = |text| Storage::default().locate(text).unwrap();
            assert_eq!(is_beneath(&at(folder), &at(file)), expected, "{file} in {folder}");
        }
    }
}
