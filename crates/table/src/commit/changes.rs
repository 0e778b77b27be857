//! The file changes of any operation: which files a snapshot adds and removes. An attempt of the commit applies them to
//! the manifests of the parent snapshot ("Manifests", "Manifest Lists", "Sequence Number Inheritance").

mod attempt;
mod state;

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use icefield_format::expr::{Expr, Expression};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{DataFile, FileContent, FileFormat, ManifestContent};
use icefield_format::metadata::FormatVersion;

use self::state::State;
use super::manifests::filter::{Section, section};
use super::manifests::specs::Tuple;
use super::validate::Fate;
use crate::error::{Error, Result};
use crate::storage::Storage;

/// The files that a snapshot adds and removes.
#[derive(Debug)]
pub struct FileChanges {
    added: Vec<DataFile>,
    added_paths: HashMap<String, usize>,
    sequence_number: Option<i64>,
    deletes: Vec<(DataFile, Option<i64>)>,
    delete_keys: HashMap<(String, Section), usize>,
    /// Data files that get a deletion vector.
    with_vector: HashSet<String>,
    appended: Vec<ManifestFile>,
    removed: Vec<DataFile>,
    removed_paths: BTreeSet<String>,
    removed_deletes: Vec<DataFile>,
    rows: Expr,
    case_sensitive: bool,
    dropped: Vec<(i32, Tuple)>,
    must_exist: bool,
    append_only: bool,
    owned_in: Option<Storage>,
    state: State,
}

impl Default for FileChanges {
    fn default() -> Self {
        Self {
            added: Vec::new(),
            added_paths: HashMap::new(),
            sequence_number: None,
            deletes: Vec::new(),
            delete_keys: HashMap::new(),
            with_vector: HashSet::new(),
            appended: Vec::new(),
            removed: Vec::new(),
            removed_paths: BTreeSet::new(),
            removed_deletes: Vec::new(),
            rows: Expression::False,
            case_sensitive: true,
            dropped: Vec::new(),
            must_exist: false,
            append_only: false,
            owned_in: None,
            state: State::default(),
        }
    }
}

impl FileChanges {
    /// No changes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a data file. Adding the same file again has no effect.
    ///
    /// # Errors
    /// A file that is not a data file, or one that was already added with a different description.
    pub fn add(&mut self, file: DataFile) -> Result<()> {
        check_data(&file)?;
        match self.added_paths.entry(file.file_path.clone()) {
            Entry::Occupied(known) => check_same(self.added.get(*known.get()), &file),
            Entry::Vacant(new) => {
                new.insert(self.added.len());
                self.added.push(file);
                Ok(())
            }
        }
    }

    /// Adds a delete file, by default with the sequence number of the snapshot. Adding the same file again has no
    /// effect.
    ///
    /// # Errors
    /// A data file, a second deletion vector for a data file, or a file that was already added with a different
    /// description.
    pub fn add_deletes(&mut self, file: DataFile, sequence_number: Option<i64>) -> Result<()> {
        check_deletes(&file)?;
        let vector = vector_of(&file).transpose()?;
        let key = (file.file_path.clone(), section(&file));
        if let Some(known) = self.delete_keys.get(&key) {
            return match self.deletes.get(*known) {
                Some((_, known)) if *known != sequence_number => Err(described_twice(&file)),
                known => check_same(known.map(|(known, _)| known), &file),
            };
        }
        if let Some(path) = vector
            && !self.with_vector.insert(path.to_owned())
        {
            let vector = &file.file_path;
            return Err(Error::invalid(format!("{path}: {vector} is a second deletion vector for it: merge both")));
        }
        self.delete_keys.insert(key, self.deletes.len());
        self.deletes.push((file, sequence_number));
        Ok(())
    }

    /// Adds all files of a manifest. It must list only added data files and have no snapshot id, sequence numbers or
    /// row ids. The table owns the manifest once the commit lands. Adding the same manifest again has no effect.
    ///
    /// # Errors
    /// A manifest that does not meet these conditions.
    pub fn add_manifest(&mut self, manifest: ManifestFile) -> Result<()> {
        let refused = match () {
            () if manifest.content != ManifestContent::Data => Some("it lists delete files"),
            () if manifest.has_existing_files() => Some("it has existing files"),
            () if manifest.has_deleted_files() => Some("it has deleted files"),
            () => assigned(&manifest),
        };
        if let Some(why) = refused {
            return Err(Error::invalid(format!("{}: cannot append the manifest: {why}", manifest.manifest_path)));
        }
        if self.appended.iter().all(|known| known.manifest_path != manifest.manifest_path) {
            self.appended.push(manifest);
        }
        Ok(())
    }

    /// Removes a data file.
    ///
    /// # Errors
    /// A file that is not a data file.
    pub fn remove(&mut self, file: DataFile) -> Result<()> {
        check_data(&file)?;
        self.removed.push(file);
        Ok(())
    }

    /// Removes the data file with a path. This reads all manifests, whereas [`FileChanges::remove`] knows the
    /// partition.
    pub fn remove_path(&mut self, path: impl Into<String>) {
        self.removed_paths.insert(path.into());
    }

    /// Removes a delete file.
    ///
    /// # Errors
    /// A data file.
    pub fn remove_deletes(&mut self, file: DataFile) -> Result<()> {
        check_deletes(&file)?;
        self.removed_deletes.push(file);
        Ok(())
    }

    /// Removes all files whose rows all match. A data file in which only some rows match ends the commit.
    pub fn remove_rows(&mut self, filter: Expr) {
        let before = std::mem::replace(&mut self.rows, Expression::False);
        self.rows = if before == Expression::False { filter } else { Expr::or(before, filter) };
    }

    /// Removes all files of a partition.
    pub fn drop_partition(&mut self, spec_id: i32, partition: Tuple) {
        self.dropped.push((spec_id, partition));
    }

    /// Sets whether filters match column names case-sensitively.
    pub fn set_case_sensitive(&mut self, case_sensitive: bool) {
        self.case_sensitive = case_sensitive;
    }

    /// Sets the data sequence number of the added data files; by default it is that of the snapshot.
    pub fn set_sequence_number(&mut self, number: i64) {
        self.sequence_number = Some(number);
    }

    /// Requires that the table has each file that is removed by name.
    pub fn require_removed_to_exist(&mut self) {
        self.must_exist = true;
    }

    /// Fails the commit if it would remove any file of the table.
    pub fn require_append_only(&mut self) {
        self.append_only = true;
    }

    /// Deletes the added files from `storage` if the commit certainly fails. By default the caller keeps them.
    pub fn own_files(&mut self, storage: Storage) {
        self.owned_in = Some(storage);
    }

    /// The data files that are added.
    pub fn added(&self) -> &[DataFile] {
        &self.added
    }

    /// The delete files that are added.
    pub fn added_deletes(&self) -> impl Iterator<Item = &DataFile> {
        self.deletes.iter().map(|(file, _)| file)
    }

    /// The deletion vectors that are added.
    pub fn vectors(&self) -> impl Iterator<Item = &DataFile> {
        self.added_deletes().filter(|file| matches!(vector_of(file), Some(Ok(_))))
    }

    /// The data files that get a deletion vector.
    pub fn with_vector(&self) -> &HashSet<String> {
        &self.with_vector
    }

    /// The data files that are removed by their description ([`FileChanges::remove`]).
    pub fn removed(&self) -> &[DataFile] {
        &self.removed
    }

    /// What happens to the rows of the removed data files. If data files are added, they hold the rows that the change
    /// leaves alone.
    pub fn fate(&self) -> Fate<'_> {
        if self.adds_data() { Fate::WrittenAgain(&self.removed_deletes) } else { Fate::Changed }
    }

    /// The filter of removed rows; `False` without one.
    pub fn rows(&self) -> &Expr {
        &self.rows
    }

    /// Whether filters match column names case-sensitively.
    pub fn is_case_sensitive(&self) -> bool {
        self.case_sensitive
    }

    /// The data sequence number of the added data files, if it differs from that of the snapshot.
    pub fn sequence_number(&self) -> Option<i64> {
        self.sequence_number
    }

    /// The partitions that are removed.
    pub fn dropped(&self) -> &[(i32, Tuple)] {
        &self.dropped
    }

    /// Whether data files are added.
    pub fn adds_data(&self) -> bool {
        !self.added.is_empty()
    }

    /// Whether delete files are added.
    pub fn adds_deletes(&self) -> bool {
        !self.deletes.is_empty()
    }

    /// Whether data files may be removed.
    pub fn removes_data(&self) -> bool {
        !self.removed.is_empty() || !self.removed_paths.is_empty() || self.removes_any()
    }

    /// Whether delete files may be removed, other than together with their data files.
    pub fn removes_deletes(&self) -> bool {
        !self.removed_deletes.is_empty() || self.removes_any()
    }

    fn removes_any(&self) -> bool {
        self.rows != Expression::False || !self.dropped.is_empty()
    }
}

/// Returns which field of a caller's manifest only the commit may assign; `None` if no such field is set.
pub(crate) fn assigned(manifest: &ManifestFile) -> Option<&'static str> {
    match () {
        () if manifest.added_snapshot_id > 0 => Some("it has a snapshot id, which the commit assigns"),
        () if manifest.sequence_number != ManifestFile::UNASSIGNED => {
            Some("it has a sequence number, which the commit assigns")
        }
        () if manifest.first_row_id.is_some() => Some("it has a first row id, which the commit assigns"),
        () => None,
    }
}

/// Rejects a second description of a file that contradicts the first.
fn check_same(known: Option<&DataFile>, file: &DataFile) -> Result<()> {
    // A NaN does not equal itself, so the printed values are compared as well; keys are not printed.
    let same = known.is_some_and(|known| {
        known == file || (known.key_metadata == file.key_metadata && format!("{known:?}") == format!("{file:?}"))
    });
    if same { Ok(()) } else { Err(described_twice(file)) }
}

fn described_twice(file: &DataFile) -> Error {
    Error::invalid(format!("{}: this file is added twice, and described differently", file.file_path))
}

fn check_data(file: &DataFile) -> Result<()> {
    match file.content {
        FileContent::Data => Ok(()),
        _ => Err(Error::invalid(format!("{}: expected a data file, got a delete file", file.file_path))),
    }
}

fn check_deletes(file: &DataFile) -> Result<()> {
    match file.content {
        FileContent::Data => {
            Err(Error::invalid(format!("{}: expected a delete file, got a data file", file.file_path)))
        }
        _ => Ok(()),
    }
}

/// The data file of a deletion vector; `None` for any other file.
fn vector_of(file: &DataFile) -> Option<Result<&str>> {
    let vector = file.content == FileContent::PositionDeletes && file.format() == Some(FileFormat::Puffin);
    let named = file.referenced_data_file.as_deref();
    vector.then(|| {
        named.ok_or_else(|| Error::invalid(format!("{}: a deletion vector without data file", file.file_path)))
    })
}

/// Rejects a delete file of a kind that the format version does not have.
fn check_version(file: &DataFile, version: FormatVersion) -> Result<()> {
    let path = &file.file_path;
    let vector = file.format() == Some(FileFormat::Puffin);
    match (version, file.content) {
        (_, FileContent::Data) => Ok(()),
        (FormatVersion::V1, _) => Err(Error::invalid(format!(
            "{path}: a table of format version 1 has no delete files: upgrade it to version 2 or 3"
        ))),
        (_, FileContent::EqualityDeletes) => Ok(()),
        (FormatVersion::V2, FileContent::PositionDeletes) if vector => Err(Error::invalid(format!(
            "{path}: a table of format version 2 has no deletion vectors, and this is one for {}: add a file of positions",
            file.referenced_data_file.as_deref().unwrap_or("no data file")
        ))),
        (FormatVersion::V3, FileContent::PositionDeletes) if !vector => Err(Error::invalid(format!(
            "{path}: positions are added to a table of format version 3 as deletion vectors only"
        ))),
        _ => Ok(()),
    }
}
