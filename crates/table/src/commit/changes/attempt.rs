//! Applies file changes to the manifests of a parent snapshot, in one attempt of a commit. What does not depend on the
//! parent is kept for the next attempt ("Manifests", "Manifest Lists", "Sequence Number Inheritance").

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use icefield_format::expr::Expression;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{DataFile, ManifestContent, Status};
use icefield_format::metadata::{FormatVersion, TableMetadata};

use super::state::{Own, State};
use super::{FileChanges, check_version, vector_of};
use crate::commit::manifests::filter::{Dangling, Filtered, Means, Removal, Section, section};
use crate::commit::manifests::merging::{Arranged, Manifests};
use crate::commit::manifests::output::{Form, basis};
use crate::commit::manifests::selection::Selection;
use crate::commit::manifests::specs::{Partitions, Specs};
use crate::commit::manifests::summary::SummaryBuilder;
use crate::commit::rule::{self, Rule};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::storage::{Places, Storage};

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

        // Which delete files no longer apply depends on the data files that are left, so data manifests come first.
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
        // Resolving a path may ask the file system, so only paths with the same file name are resolved.
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

    /// The delete files that apply to no data file of the new snapshot.
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
