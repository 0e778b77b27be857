//! Removes rows from data files, by rewriting the files or by adding delete files ("Row-level Deletes").
//!
//! Rewritten files are read with all of their deletes applied. They keep their partition, partition spec and, from
//! version 3 on, the lineage of their rows. A file without remaining rows is removed; no empty file is written.

use std::sync::Arc;

use icefield_format::manifest::DataFile;
use icefield_format::metadata::properties::{
    DELETE_ISOLATION_LEVEL, DELETE_MODE, MERGE_ISOLATION_LEVEL, MERGE_MODE, UPDATE_ISOLATION_LEVEL, UPDATE_MODE,
};
use icefield_format::metadata::{FormatVersion, StringMap, TableMetadata};
use icefield_format::puffin::DeletionVector;

use super::matching::{MatchedFile, MatchedRows, Matches};
pub use super::rewrite_groups::Names;
use super::rewrite_groups::{Layout, Rewrite, RowOrder, discard};
use crate::error::{Error, Result};
use crate::storage::Storage;
use crate::write::deletes::positions::write_positions;
use crate::write::deletes::vectors::write_vectors;
use crate::write::deletes::{DeleteConfig, DeletedRows, Granularity};

/// If the table does not configure a mode, a file is rewritten when it loses at least one in this many rows. Applying
/// its deletes in every later scan would cost more than the rewrite.
const REWRITTEN_SHARE: u64 = 5;

/// How rows are removed from files (`write.delete.mode`, `write.update.mode`, `write.merge.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Files are rewritten without these rows.
    CopyOnWrite,
    /// Delete files or deletion vectors mark the rows as deleted; not in version 1.
    MergeOnRead,
    /// Chosen for each file by the share of rows it loses; version 1 always rewrites.
    Auto,
}

/// Which concurrent commits a row change tolerates (`write.delete.isolation-level`, …).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Not those that add rows which the change would have affected.
    Serializable,
    /// Those that add rows, too.
    Snapshot,
}

/// The kind of a change, which selects the table properties that apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Rows are deleted.
    Delete,
    /// Rows get new values.
    Update,
    /// Rows change according to those of a source.
    Merge,
}

impl Mode {
    /// The requested mode; if `None`, that of the table's properties; if these have none, [`Mode::Auto`].
    ///
    /// # Errors
    /// A property with an unknown value, or [`Mode::MergeOnRead`] in a table of version 1.
    pub fn of(asked: Option<Self>, command: Command, metadata: &TableMetadata) -> Result<Self> {
        let property = match command {
            Command::Delete => DELETE_MODE,
            Command::Update => UPDATE_MODE,
            Command::Merge => MERGE_MODE,
        };
        let properties = metadata.properties();
        let mode = match asked {
            Some(mode) => mode,
            None if !properties.contains_key(property.name) => Self::Auto,
            None => match property.read_choice(properties)? {
                "merge-on-read" => Self::MergeOnRead,
                _ => Self::CopyOnWrite,
            },
        };
        if mode == Self::MergeOnRead && metadata.format_version() < FormatVersion::V2 {
            return Err(Error::unsupported(
                "merge-on-read: tables of format version 1 have no delete files; upgrade the table, or use copy-on-write",
            ));
        }
        Ok(mode)
    }

    /// Parses the name of a mode.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "copy-on-write" => Ok(Self::CopyOnWrite),
            "merge-on-read" => Ok(Self::MergeOnRead),
            "auto" => Ok(Self::Auto),
            _ => Err(Error::invalid(format!("mode: expected copy-on-write, merge-on-read or auto, got '{text}'"))),
        }
    }

    /// The name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::CopyOnWrite => "copy-on-write",
            Self::MergeOnRead => "merge-on-read",
            Self::Auto => "auto",
        }
    }

    /// Whether to rewrite a file that loses `lost` of its rows.
    fn rewrites(self, lost: u64, rows: u64, version: FormatVersion) -> bool {
        match self {
            Self::CopyOnWrite => true,
            Self::MergeOnRead => false,
            Self::Auto => version < FormatVersion::V2 || lost.saturating_mul(REWRITTEN_SHARE) >= rows,
        }
    }
}

impl Isolation {
    /// The requested level; if `None`, that of the table's properties, by default [`Isolation::Serializable`].
    ///
    /// # Errors
    /// A property with an unknown value.
    pub fn of(asked: Option<Self>, command: Command, properties: &StringMap) -> Result<Self> {
        let property = match command {
            Command::Delete => DELETE_ISOLATION_LEVEL,
            Command::Update => UPDATE_ISOLATION_LEVEL,
            Command::Merge => MERGE_ISOLATION_LEVEL,
        };
        match asked {
            Some(level) => Ok(level),
            None => Self::parse(property.read_choice(properties)?),
        }
    }

    /// The name of the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serializable => "serializable",
            Self::Snapshot => "snapshot",
        }
    }

    /// Parses the name of a level.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "serializable" => Ok(Self::Serializable),
            "snapshot" => Ok(Self::Snapshot),
            _ => Err(Error::invalid(format!("isolation: expected serializable or snapshot, got '{text}'"))),
        }
    }
}

/// What happens to a file that loses rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It loses all of its rows and is removed.
    Dropped,
    /// It is rewritten.
    Rewritten,
    /// It is kept, with more deletes.
    Marked,
}

/// Decides what happens to each file that loses rows.
#[derive(Debug)]
pub struct Removals<'a> {
    matches: &'a Matches,
    /// Files that lose all of their rows.
    dropped: Vec<&'a MatchedFile>,
    /// Files to rewrite.
    rewritten: Vec<&'a MatchedFile>,
    /// Files to keep, with more deletes.
    marked: Vec<&'a MatchedFile>,
    rows: i64,
}

/// The files of a row change, written but not committed.
#[derive(Debug, Default)]
pub struct ChangedFiles {
    /// Removed data files.
    pub removed: Vec<DataFile>,
    /// Removed delete files: those of removed data files, and those that new ones replace.
    pub removed_deletes: Vec<DataFile>,
    /// New data files.
    pub added: Vec<DataFile>,
    /// New delete files.
    pub added_deletes: Vec<DataFile>,
    /// Data files that new delete files apply to.
    pub referenced: Vec<String>,
}

/// Counts of the files that a row change affects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Data files that are removed because they lose all rows.
    pub dropped: usize,
    /// Total size of these files, in bytes.
    pub dropped_bytes: i64,
    /// Data files that are rewritten without some rows.
    pub rewritten: usize,
    /// Data files that get a delete file or a deletion vector.
    pub marked: usize,
    /// Total size of the files that are rewritten, in bytes.
    pub rewritten_bytes: i64,
    /// Data files with new rows.
    pub added: usize,
    /// Total size of the files with new rows, in bytes.
    pub added_bytes: i64,
}

impl FileCounts {
    /// Counts of files that are removed unread.
    pub(crate) fn of_dropped<'a>(files: impl Iterator<Item = &'a DataFile>) -> Self {
        files.fold(Self::default(), |sum, file| Self {
            dropped: sum.dropped + 1,
            dropped_bytes: sum.dropped_bytes.saturating_add(file.file_size_in_bytes),
            ..sum
        })
    }

    /// The same counts, with these files of new rows.
    #[must_use]
    pub fn with_added(self, files: &[DataFile]) -> Self {
        let added_bytes = files.iter().map(|file| file.file_size_in_bytes).sum();
        Self { added: files.len(), added_bytes, ..self }
    }
}

impl<'a> Removals<'a> {
    /// Decides what happens to each file.
    ///
    /// # Errors
    /// Existing deletes that cannot be read; a file without a row count that cannot be read; or a position without a
    /// live row, as far as existing position deletes show.
    pub fn plan(matches: &'a Matches, mode: Mode, version: FormatVersion) -> Result<Self> {
        let mut own = Self { matches, dropped: Vec::new(), rewritten: Vec::new(), marked: Vec::new(), rows: 0 };
        let is_known = |file: &&MatchedFile| !file.part.deletes.is_empty() && !file.has_equality_deletes();
        let with_deletes: Vec<&MatchedFile> = matches.files.iter().filter(is_known).collect();
        let mut before = matches.deleted_before(&with_deletes, false)?.into_iter();
        for file in &matches.files {
            let before = if is_known(&file) { before.next().flatten() } else { None };
            let rows = matches.record_count(file)?;
            check_live(file, before.as_deref(), rows)?;
            let before = before.map_or(0, |positions| positions.cardinality());
            let live = rows.saturating_sub(before);
            let (lost, of_file) = match &file.rows {
                MatchedRows::All => (live, &mut own.dropped),
                MatchedRows::Some(positions) => match positions.cardinality() {
                    // With equality deletes the number of live rows is unknown.
                    all if all >= live && !file.has_equality_deletes() => (all, &mut own.dropped),
                    some if mode.rewrites(some, rows, version) => (some, &mut own.rewritten),
                    some => (some, &mut own.marked),
                },
            };
            own.rows = own.rows.saturating_add(i64::try_from(lost).unwrap_or(i64::MAX));
            of_file.push(file);
        }
        Ok(own)
    }

    /// Number of rows that are removed.
    pub fn rows(&self) -> i64 {
        self.rows
    }

    /// What happens to each file.
    pub fn fates(&self) -> impl Iterator<Item = (&'a MatchedFile, Fate)> {
        let of = |files: &[&'a MatchedFile], fate| -> Vec<_> { files.iter().map(|file| (*file, fate)).collect() };
        let all =
            [of(&self.dropped, Fate::Dropped), of(&self.rewritten, Fate::Rewritten), of(&self.marked, Fate::Marked)];
        all.into_iter().flatten()
    }

    /// Counts of the files that are affected.
    pub fn counts(&self) -> FileCounts {
        let bytes = |files: &[&MatchedFile]| files.iter().map(|file| file.file.file_size_in_bytes).sum();
        FileCounts {
            dropped: self.dropped.len(),
            dropped_bytes: bytes(&self.dropped),
            rewritten: self.rewritten.len(),
            marked: self.marked.len(),
            rewritten_bytes: bytes(&self.rewritten),
            ..FileCounts::default()
        }
    }

    /// Writes the new files.
    ///
    /// # Errors
    /// An error of the files or the storage; written files are deleted.
    pub fn write(&self, storage: &Storage, metadata: &TableMetadata, names: Names) -> Result<ChangedFiles> {
        let mut changed = ChangedFiles::default();
        for file in self.dropped.iter().chain(&self.rewritten) {
            changed.removed.push(file.file.clone());
            changed.removed_deletes.extend(file.own_deletes.iter().cloned());
        }
        changed.added = self.rewrite(storage, metadata, names)?;
        match self.mark(storage, metadata, names, &mut changed) {
            Ok(()) => Ok(changed),
            Err(error) => {
                changed.discard(storage);
                Err(error)
            }
        }
    }

    /// Writes delete files or deletion vectors.
    fn mark(
        &self,
        storage: &Storage,
        metadata: &TableMetadata,
        names: Names,
        changed: &mut ChangedFiles,
    ) -> Result<()> {
        if self.marked.is_empty() {
            return Ok(());
        }
        let (operation, task, attempt) = match names {
            Names::Alone(operation) => (operation, 0, 0),
            Names::Task { operation, task, attempt } => (operation, task, attempt),
        };
        let of_table = DeleteConfig::of_table(storage.clone(), metadata, operation);
        let config = DeleteConfig { task, attempt, ..of_table };
        let vectors = metadata.format_version() >= FormatVersion::V3;
        let granularity = Granularity::of(metadata.properties())?;
        // A deletion vector must hold all deleted positions of its file, so it replaces earlier ones. Position deletes
        // for a single file are replaced as well, as in the Java library.
        let replaced = vectors || granularity == Granularity::File;
        let before = match replaced {
            true => self.matches.deleted_before(&self.marked, !vectors)?,
            false => vec![None; self.marked.len()],
        };
        let mut deleted = Vec::with_capacity(self.marked.len());
        for (file, before) in self.marked.iter().zip(before) {
            let MatchedRows::Some(rows) = &file.rows else { continue };
            let mut positions = rows.clone();
            if let Some(before) = before {
                Arc::<DeletionVector>::make_mut(&mut positions).union_with(&before);
            }
            if replaced {
                changed.removed_deletes.extend(file.own_deletes.iter().cloned());
            }
            changed.referenced.push(file.part.path.clone());
            deleted.push(DeletedRows {
                data_file: file.part.path.clone(),
                spec: file.part.partition.spec.spec.clone(),
                partition: file.part.partition.tuple.clone(),
                positions,
            });
        }
        changed.added_deletes = match vectors {
            true => write_vectors(&config, deleted)?,
            false => write_positions(&config, deleted, granularity)?,
        };
        Ok(())
    }

    /// Rewrites files without the removed rows, several at a time.
    fn rewrite(&self, storage: &Storage, metadata: &TableMetadata, names: Names) -> Result<Vec<DataFile>> {
        let files = self.rewritten.as_slice();
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let columns = &self.matches.columns(metadata.format_version() >= FormatVersion::V3)?;
        let layout = |file: &&MatchedFile| Layout {
            spec: file.part.partition.spec.spec.clone(),
            partition: Some(file.part.partition.tuple.clone()),
            // Rows keep their order, so their files keep the id of the sort order.
            order: RowOrder::Kept(file.file.sort_order_id),
            files: None,
        };
        let rows = |file: &&MatchedFile, workers| self.matches.rows_left(file, columns.clone(), workers);
        let count = Arc::default();
        Rewrite { storage, metadata, columns, names, count, file_bytes: None, memory: None }.run(files, layout, rows)
    }
}

/// Rejects positions without a live row.
fn check_live(file: &MatchedFile, before: Option<&DeletionVector>, rows: u64) -> Result<()> {
    let MatchedRows::Some(positions) = &file.rows else { return Ok(()) };
    let path = &file.part.path;
    if let Some(last) = positions.max().filter(|last| *last >= rows) {
        return Err(Error::invalid(format!("{path}: there is no row {last} to take out: the file has {rows} rows")));
    }
    let deleted = before.and_then(|before| (before.as_bitmap() & positions.as_bitmap()).min());
    match deleted {
        Some(row) => Err(Error::invalid(format!(
            "{path}: row {row} cannot be taken out: it is deleted already; take the rows from tasks of the same plan"
        ))),
        None => Ok(()),
    }
}

impl ChangedFiles {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && self.added_deletes.is_empty()
    }

    /// Deletes the written files.
    pub fn discard(&self, storage: &Storage) {
        discard(storage, &self.added);
        discard(storage, &self.added_deletes);
    }
}
