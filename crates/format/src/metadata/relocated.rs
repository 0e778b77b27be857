//! Metadata of a table whose files are copied to another place: the same, with other paths.

use std::sync::Arc;

use super::properties::{
    OBJECT_STORE_PATH, WRITE_DATA_LOCATION, WRITE_FOLDER_STORAGE_LOCATION, WRITE_METADATA_LOCATION,
};
use super::{Snapshot, SnapshotManifests, TableMetadata};
use crate::Error;

impl TableMetadata {
    /// Returns the metadata with other paths: the location, manifest lists, statistics files, the metadata log, and
    /// the properties that are folders. `moved` is called with what a path is of, for errors, and with the path.
    ///
    /// # Errors
    /// Those of `moved`.
    pub fn relocated<E: From<Error>>(&self, moved: impl Fn(&str, &str) -> Result<String, E>) -> Result<Self, E> {
        let mut document = self.document.clone();
        let change = |what: &str, path: &mut String| -> Result<(), E> {
            *path = moved(what, path)?;
            Ok(())
        };
        change("the location of the table", &mut document.location)?;
        for snapshot in &mut document.snapshots {
            let mut changed = Snapshot::clone(snapshot);
            match &mut changed.manifests {
                SnapshotManifests::List(path) => change("a manifest list", path)?,
                SnapshotManifests::Inline(paths) => {
                    paths.iter_mut().try_for_each(|path| change("a manifest", path))?;
                }
            }
            *snapshot = Arc::new(changed);
        }
        for entry in &mut document.metadata_log {
            change("an earlier metadata file", &mut entry.metadata_file)?;
        }
        for file in &mut document.statistics {
            change("a statistics file", &mut file.statistics_path)?;
        }
        for file in &mut document.partition_statistics {
            change("a partition statistics file", &mut file.statistics_path)?;
        }
        let folders = [
            OBJECT_STORE_PATH.name,
            WRITE_FOLDER_STORAGE_LOCATION.name,
            WRITE_DATA_LOCATION.name,
            WRITE_METADATA_LOCATION.name,
        ];
        for name in folders {
            if let Some(path) = document.properties.get_mut(name) {
                change(&format!("the property {name}"), path)?;
            }
        }
        Ok(document.check()?)
    }
}
