//! Applies the file changes of any operation to the manifests of the parent snapshot: which files are added and
//! removed, and which manifests the new snapshot has ("Manifests", "Manifest Lists", "Sequence Number Inheritance").

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use icefield_format::expr::{Expr, Expression};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{DataFile, FileContent, FileFormat, ManifestContent, Status};
use icefield_format::metadata::{FormatVersion, TableMetadata};

use super::manifests::filter::{Dangling, Filtered, ManifestFilter, Means, Removal, Section, section};
use super::manifests::merging::{Arranged, Manifests};
use super::manifests::output::{Basis, Form, basis};
use super::manifests::selection::Selection;
use super::manifests::specs::{Partitions, Specs, Tuple};
use super::manifests::summary::SummaryBuilder;
use super::rule::{self, Rule};
use super::validate::Fate;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::storage::{Places, Storage};

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

/// Results of earlier attempts, for reuse.
#[derive(Debug, Default)]
struct State {
    /// What the results depend on.
    basis: Option<Basis>,
    own: Option<Own>,
    data_removal: Option<Arc<Removal>>,
    data: ManifestFilter,
    delete_removal: Option<Arc<Removal>>,
    deletes: ManifestFilter,
    summary: SummaryBuilder,
}

/// Manifests of the files that the snapshot adds.
#[derive(Debug, Clone)]
struct Own {
    data: Vec<ManifestFile>,
    deletes: Vec<ManifestFile>,
    summary: SummaryBuilder,
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

impl FileChanges {
    /// Returns the manifests of the new snapshot, computed from those of its parent: newest first, data manifests
    /// before delete manifests.
    ///
    /// # Errors
    /// [`Error::Validation`] if a file cannot be removed as requested; the commit is not retried.
    pub fn manifests(
        &mut self,
        base: &TableMetadata,
        older: Vec<ManifestFile>,
        manifests: &mut Manifests,
        merge: bool,
    ) -> Result<Arranged> {
        let means = Means {
            specs: Arc::new(Specs::of(base)),
            form: Arc::new(Form::of(base)?),
            output: manifests.output().clone(),
            limits: limits()?,
        };
        let Means { specs, form, .. } = &means;
        self.begin(base, manifests)?;
        self.added_deletes().try_for_each(|file| check_version(file, base.format_version()))?;
        self.refuse_second_names(manifests.output().storage())?;
        let own = self.own(base, form, specs, manifests)?;
        // A fast append: no manifest of the parent changes.
        if !merge && !self.removes_data() && !self.removes_deletes() && self.deletes.is_empty() {
            self.state.summary = own.summary;
            return Ok(Arranged { manifests: own.data.into_iter().chain(older).collect(), replaced: 0 });
        }
        let (data, deletes): (Vec<_>, Vec<_>) =
            older.into_iter().partition(|manifest| manifest.content == ManifestContent::Data);

        let storage = manifests.output().storage().clone();
        let removal = self.data_removal(base, specs, &storage)?;
        let none = Partitions::default();
        let data = self.state.data.filter(data, &removal, &none, &means)?;
        self.check_removed(&data.filtered, ManifestContent::Data, &storage)?;

        let dangling = self.dangling(base, &data.manifests, &data.filtered);
        let vectors_in = self.partitions_of_vectors(base, &data.filtered);
        let removal = self.delete_removal(base, specs, dangling, &storage)?;
        let deletes = self.state.deletes.filter(deletes, &removal, &vectors_in, &means)?;
        self.check_removed(&deletes.filtered, ManifestContent::Deletes, &storage)?;

        let mut summary = own.summary;
        data.filtered.iter().chain(&deletes.filtered).for_each(|filtered| summary.merge(&filtered.summary));
        self.state.summary = summary;
        let mut arranged = Arranged { manifests: Vec::new(), replaced: data.filtered.len() + deletes.filtered.len() };
        for (own, older) in [(own.data, data.manifests), (own.deletes, deletes.manifests)] {
            // A manifest without live files is dropped, unless it has entries that this snapshot deleted.
            let kept = |manifest: &ManifestFile| {
                manifest.has_live_files() || manifest.added_snapshot_id == manifests.snapshot_id()
            };
            let all = own.into_iter().chain(older).filter(kept).collect();
            let (merged, replaced) = if merge { manifests.merge(base, all)? } else { (all, 0) };
            arranged.manifests.extend(merged);
            arranged.replaced += replaced;
        }
        Ok(arranged)
    }

    /// Counts of what the last attempt added and removed.
    pub fn summary(&self) -> SummaryBuilder {
        self.state.summary.clone()
    }

    /// The added files, if the change owns them ([`FileChanges::own_files`]).
    pub fn owned(&self) -> Vec<String> {
        let files = self.added.iter().chain(self.added_deletes()).filter(|_| self.owned_in.is_some());
        let paths: BTreeSet<String> = files.map(|file| file.file_path.clone()).collect();
        paths.into_iter().collect()
    }

    /// Handles a commit that has certainly failed: deletes the added files if the change owns them.
    pub fn failed(&mut self) {
        let Some(storage) = &self.owned_in else { return };
        let paths = self.owned();
        storage.discard(&paths, "files of a change that was not committed");
    }

    /// Rejects a data file that is added under two spellings of its path: its rows would be read twice.
    fn refuse_second_names(&self, storage: &Storage) -> Result<()> {
        let mut alike: HashMap<&str, Vec<&str>> = HashMap::with_capacity(self.added.len());
        for file in &self.added {
            alike.entry(Places::name(&file.file_path)).or_default().push(&file.file_path);
        }
        let places = Places::of(storage);
        for paths in alike.into_values().filter(|paths| paths.len() > 1) {
            let mut known = HashMap::with_capacity(paths.len());
            for path in paths {
                if let Some(other) = known.insert(places.place(path), path) {
                    return Err(Error::invalid(format!("{path}: this file is added twice, the other time as {other}")));
                }
            }
        }
        Ok(())
    }

    /// Discards results that were made for another format version, schema or encryption.
    fn begin(&mut self, base: &TableMetadata, manifests: &mut Manifests) -> Result<()> {
        let basis = basis(base)?;
        if self.state.basis != Some(basis) {
            manifests.forget();
            self.state = State { basis: Some(basis), ..State::default() };
        }
        Ok(())
    }

    /// Returns the manifests of the added files, written once.
    fn own(&mut self, base: &TableMetadata, form: &Form, specs: &Specs, manifests: &Manifests) -> Result<Own> {
        if let Some(own) = &self.state.own {
            return Ok(own.clone());
        }
        let mut summary = SummaryBuilder::default();
        let mut count = |file: &DataFile| {
            summary.added(file, specs.of_file(file)?.path(&file.partition)?);
            Ok(())
        };
        self.added.iter().chain(self.deletes.iter().map(|(file, _)| file)).try_for_each(&mut count)?;
        let files = self.added.iter().map(|file| (file, self.sequence_number));
        let mut data = manifests.of_added(form, specs, ManifestContent::Data, files)?;
        // Version 1 requires snapshot ids in entries, so a manifest without them has to be written again.
        let inherits = base.format_version() > FormatVersion::V1;
        let mut taken = Vec::new();
        for manifest in &self.appended {
            form.check_manifest(manifest)?;
            if inherits {
                specs.of_manifest(manifest)?;
                manifests.output().adopt(&manifest.manifest_path);
                data.push(ManifestFile { added_snapshot_id: manifests.snapshot_id(), ..manifest.clone() });
                taken.push(manifest);
            } else {
                data.push(manifests.copy_given(form, specs, manifest, Status::Added, &mut count)?);
            }
        }
        taken.into_iter().for_each(|manifest| summary.appended(manifest));
        // Deletion vectors come first, as in Java.
        let (vectors, others): (Vec<_>, Vec<_>) =
            self.deletes.iter().map(|(file, number)| (file, *number)).partition(|(file, _)| vector_of(file).is_some());
        let files = vectors.into_iter().chain(others);
        let deletes = manifests.of_added(form, specs, ManifestContent::Deletes, files)?;
        let own = Own { data, deletes, summary };
        self.state.own = Some(own.clone());
        Ok(own)
    }

    fn selection(&self, base: &TableMetadata, specs: &Specs) -> Result<Option<Arc<Selection>>> {
        if self.rows == Expression::False {
            return Ok(None);
        }
        Ok(Some(Arc::new(Selection::new(&self.rows, base, specs, self.case_sensitive)?)))
    }

    fn dropped_partitions(&self) -> Partitions {
        let mut dropped = Partitions::default();
        self.dropped.iter().for_each(|(spec_id, partition)| dropped.insert(*spec_id, partition));
        dropped
    }

    /// The data files to remove: the same at each attempt.
    fn data_removal(&mut self, base: &TableMetadata, specs: &Specs, storage: &Storage) -> Result<Arc<Removal>> {
        if let Some(known) = &self.state.data_removal {
            return Ok(known.clone());
        }
        let mut removal = Removal {
            dropped: self.dropped_partitions(),
            rows: self.selection(base, specs)?,
            append_only: self.append_only,
            ..Removal::default()
        };
        self.removed.iter().for_each(|file| removal.add_file(storage, file));
        self.removed_paths.iter().for_each(|path| removal.add_path(storage, path));
        let removal = Arc::new(removal);
        self.state.data_removal = Some(removal.clone());
        Ok(removal)
    }

    /// The delete files to remove. Some go with data files, and these may be different ones at the next attempt.
    fn delete_removal(
        &mut self,
        base: &TableMetadata,
        specs: &Specs,
        dangling: Dangling,
        storage: &Storage,
    ) -> Result<Arc<Removal>> {
        if let Some(known) = self.state.delete_removal.as_ref().filter(|known| known.dangling == dangling) {
            return Ok(known.clone());
        }
        self.state.deletes.forget();
        let mut removal = Removal {
            dropped: self.dropped_partitions(),
            rows: self.selection(base, specs)?,
            append_only: self.append_only,
            dangling,
            ..Removal::default()
        };
        self.removed_deletes.iter().for_each(|file| removal.add_file(storage, file));
        let removal = Arc::new(removal);
        self.state.delete_removal = Some(removal.clone());
        Ok(removal)
    }

    fn dangling(&self, base: &TableMetadata, data: &[ManifestFile], filtered: &[Arc<Filtered>]) -> Dangling {
        // Added files may keep the sequence number of the files they replace, so delete files of that age still apply
        // to them.
        let added = self.sequence_number.filter(|_| !self.added.is_empty());
        let numbers = data.iter().map(|manifest| manifest.min_sequence_number).chain(added);
        let known = numbers.filter(|number| *number != ManifestFile::UNASSIGNED);
        let named = self.removed.iter().map(|file| &file.file_path);
        let found = filtered.iter().flat_map(|filtered| &filtered.removed).map(|(path, _)| path);
        Dangling {
            older_than: known.fold(base.last_sequence_number(), i64::min),
            data_files: named.chain(found).cloned().collect(),
            with_new_vector: match rule::holds(Rule::SecondVector) {
                true => self.with_vector.clone(),
                false => HashSet::new(),
            },
        }
    }

    /// The partitions in which deletion vectors are looked for: those of data files that are removed or get a new
    /// vector.
    fn partitions_of_vectors(&self, base: &TableMetadata, filtered: &[Arc<Filtered>]) -> Partitions {
        let mut partitions = Partitions::default();
        if base.format_version() >= FormatVersion::V3 {
            self.vectors().chain(&self.removed).for_each(|file| {
                partitions.insert(file.partition_spec_id, &file.partition);
            });
            for filtered in filtered {
                filtered
                    .partitions
                    .iter()
                    .for_each(|tuple| partitions.insert(filtered.manifest.partition_spec_id, tuple));
            }
        }
        partitions
    }

    /// Checks that every file to be removed by name was found.
    fn check_removed(&self, filtered: &[Arc<Filtered>], content: ManifestContent, storage: &Storage) -> Result<()> {
        if !self.must_exist {
            return Ok(());
        }
        let found = filtered.iter().flat_map(|filtered| &filtered.removed);
        let (mut files, mut paths) = (HashSet::new(), HashSet::new());
        for (path, section) in found {
            paths.insert(path.as_str());
            files.insert((path.as_str(), *section));
        }
        let (wanted, wanted_paths) = match content {
            ManifestContent::Data => (&self.removed, Some(&self.removed_paths)),
            ManifestContent::Deletes => (&self.removed_deletes, None),
        };
        let missing = wanted.iter().filter(|file| !files.contains(&(file.file_path.as_str(), section(file))));
        let missing = missing.map(|file| (file.file_path.as_str(), Some(section(file))));
        let by_path = wanted_paths.into_iter().flatten().map(String::as_str).filter(|path| !paths.contains(path));
        let mut missing: Vec<(&str, Option<Section>)> = missing.chain(by_path.map(|path| (path, None))).collect();
        if !missing.is_empty() {
            // The table may spell these paths differently.
            let places = Places::of(storage);
            let placed: HashSet<_> = files.iter().map(|(path, section)| (places.place(path), Some(*section))).collect();
            let anywhere: HashSet<_> = placed.iter().map(|(place, _)| place.clone()).collect();
            missing.retain(|(path, section)| match (places.place(path), *section) {
                (place, None) => !anywhere.contains(&place),
                placed_section => !placed.contains(&placed_section),
            });
        }
        let missing: Vec<&str> = missing.into_iter().map(|(path, _)| path).collect();
        if missing.is_empty() || !rule::holds(Rule::RemovedIsThere) {
            return Ok(());
        }
        let shown = icefield_format::nearest::listed(missing.iter().copied());
        Err(Error::Validation(format!("files to remove that are not in the table: {shown}")))
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
