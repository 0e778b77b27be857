//! Removes files from manifests ("Manifests", status 2).
//!
//! Only manifests that may list one of the removed files are read, several at a time. A manifest that does list one is
//! rewritten with deleted entries for it; the others are kept unchanged.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::Array;
use bytes::Bytes;
use icefield_format::Limits;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{DataFile, Entries, FileFormat, ManifestContent, Metrics, Status};

use super::output::{Encoded, Form, ManifestKey, Output};
use super::selection::{RowMatch, Selection};
use super::specs::{Partitions, Spec, Specs, Tuple};
use super::summary::SummaryBuilder;
use crate::error::{Error, Result};
use crate::plan::pipeline::{Ordered, Work};
use crate::storage::{Place, Places, Storage};

/// Offset and length of a blob: several deletion vectors may share a Puffin file.
pub(in crate::commit) type Section = (Option<i64>, Option<i64>);

/// The files of one content that are removed.
#[derive(Debug, Default)]
pub(in crate::commit) struct Removal {
    /// Removed files by path.
    pub(in crate::commit) files: HashMap<String, Vec<Section>>,
    /// The partitions of `files`.
    pub(in crate::commit) partitions: Partitions,
    /// Paths of removed data files whose partition is unknown.
    pub(in crate::commit) paths: HashSet<String>,
    /// `files` and `paths` by their places in storage, for entries that spell a path differently.
    pub(in crate::commit) spelled: Option<Spelled>,
    /// Partitions from which all files are removed.
    pub(in crate::commit) dropped: Partitions,
    /// Filter of removed rows. A data file in which only some rows match is an error; a delete file that also applies
    /// to other rows is kept.
    pub(in crate::commit) rows: Option<Arc<Selection>>,
    /// Delete files that become obsolete with the change of data files.
    pub(in crate::commit) dangling: Dangling,
    /// Whether removing any file is an error.
    pub(in crate::commit) append_only: bool,
}

/// Selects delete files that no longer apply to any row.
#[derive(Debug, Default, PartialEq)]
pub(in crate::commit) struct Dangling {
    /// Those with a smaller data sequence number, older than every data file. They are removed when data files are, and
    /// otherwise only in manifests that are read for another reason.
    pub(in crate::commit) older_than: i64,
    /// Removed data files: their deletion vectors are removed with them.
    pub(in crate::commit) data_files: HashSet<String>,
    /// Data files that get a new deletion vector: the previous one must be removed.
    pub(in crate::commit) with_new_vector: HashSet<String>,
}

/// A rewritten manifest.
#[derive(Debug, Clone)]
pub(in crate::commit) struct Filtered {
    pub(in crate::commit) manifest: ManifestFile,
    /// Counts of the removed files.
    pub(in crate::commit) summary: SummaryBuilder,
    /// Paths and blob sections of the removed files.
    pub(in crate::commit) removed: Vec<(String, Section)>,
    /// Partitions of the removed files.
    pub(in crate::commit) partitions: Vec<Tuple>,
}

/// Removed files, by their places in storage.
#[derive(Debug)]
pub(in crate::commit) struct Spelled {
    places: Places,
    /// The last components of their paths.
    names: HashSet<String>,
    /// The blob sections to remove; `None` for the whole file.
    sections: HashMap<Place, Vec<Option<Section>>>,
}

impl Spelled {
    fn add(&mut self, path: &str, section: Option<Section>) {
        self.names.insert(Places::name(path).to_owned());
        self.sections.entry(self.places.place(path)).or_default().push(section);
    }

    fn has(&self, path: &str, section: impl FnOnce() -> Section) -> bool {
        if !self.names.contains(Places::name(path)) {
            return false;
        }
        let Some(wanted) = self.sections.get(&self.places.place(path)) else { return false };
        wanted.contains(&None) || wanted.contains(&Some(section()))
    }
}

impl Removal {
    pub(in crate::commit) fn add_file(&mut self, storage: &Storage, file: &DataFile) {
        self.partitions.insert(file.partition_spec_id, &file.partition);
        self.files.entry(file.file_path.clone()).or_default().push(section(file));
        self.spelled(storage).add(&file.file_path, Some(section(file)));
    }

    pub(in crate::commit) fn add_path(&mut self, storage: &Storage, path: &str) {
        self.paths.insert(path.to_owned());
        self.spelled(storage).add(path, None);
    }

    fn spelled(&mut self, storage: &Storage) -> &mut Spelled {
        self.spelled.get_or_insert_with(|| Spelled {
            places: Places::of(storage),
            names: HashSet::new(),
            sections: HashMap::new(),
        })
    }

    /// Whether a file is removed by its path, in any spelling.
    fn names(&self, path: &str, section: impl Fn() -> Section) -> bool {
        self.paths.contains(path)
            || self.files.get(path).is_some_and(|sections| sections.contains(&section()))
            || self.spelled.as_ref().is_some_and(|spelled| spelled.has(path, section))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.paths.is_empty()
            && self.dropped.is_empty()
            && self.rows.is_none()
            && self.dangling.data_files.is_empty()
            && self.dangling.with_new_vector.is_empty()
    }

    /// Whether a manifest may list one of the removed files.
    fn may_be_in(&self, spec: &Spec, manifest: &ManifestFile, vectors_in: &Partitions) -> Result<bool> {
        if !manifest.has_live_files() {
            return Ok(false);
        }
        let dangling = &self.dangling;
        let has_old = !dangling.data_files.is_empty() && manifest.min_sequence_number < dangling.older_than;
        let of_partition = [&self.partitions, &self.dropped, vectors_in];
        if !self.paths.is_empty() || has_old || of_partition.iter().any(|set| set.may_be_in(spec, manifest)) {
            return Ok(true);
        }
        self.rows.as_ref().map_or(Ok(false), |rows| rows.may_be_in(spec, manifest))
    }

    /// For each entry, whether it is live and removed; `None` if none is.
    fn removed(&self, manifest: &ManifestFile, spec: &Spec, entries: &Entries) -> Result<Option<Vec<bool>>> {
        let matching = self.rows.as_ref().map(|rows| rows.matching(spec, entries)).transpose()?;
        let dropped = self.dropped.of_tuples(spec, entries)?;
        let is_data = manifest.content == ManifestContent::Data;
        let mut removed = vec![false; entries.len()];
        let mut any = false;
        for (row, slot) in removed.iter_mut().enumerate() {
            let path = entries.file_path.value(row);
            let marked = self.names(path, || section_of(entries, row))
                || dropped.get(entries.tuple_of.value(row) as usize).is_some_and(|dropped| *dropped)
                || !is_data && self.dangling.has(entries, row);
            let by_rows = matching.as_ref().and_then(|matching| matching.get(row));
            *slot = match by_rows {
                _ if marked => true,
                Some(RowMatch::Some) if is_data => {
                    let filter = self.rows.as_ref().map_or("", |rows| rows.text());
                    return Err(Error::Validation(format!(
                        "{path}: cannot delete the file: some of its rows match {filter}, but not certainly all"
                    )));
                }
                by_rows => by_rows == Some(&RowMatch::All),
            };
            any |= *slot;
            if *slot && self.append_only {
                let partition = spec.path(&entries.partition_of(row)?)?;
                return Err(Error::Validation(format!(
                    "{path}: the partition {partition:?} has files already, and only an append is allowed"
                )));
            }
            if !*slot && !is_data {
                self.dangling.check_second(entries, row)?;
            }
        }
        Ok(any.then_some(removed))
    }
}

impl Dangling {
    fn has(&self, entries: &Entries, row: usize) -> bool {
        let number = if entries.sequence_number.is_valid(row) { entries.sequence_number.value(row) } else { 0 };
        number > 0 && number < self.older_than
            || vector_of(entries, row).is_some_and(|path| self.data_files.contains(path))
    }

    fn check_second(&self, entries: &Entries, row: usize) -> Result<()> {
        match vector_of(entries, row).filter(|path| self.with_new_vector.contains(*path)) {
            None => Ok(()),
            Some(path) => Err(Error::Validation(format!(
                "{path}: the snapshot adds a deletion vector for the file, which has one already, in {}: merge both, and \
                 remove that one",
                entries.file_path.value(row)
            ))),
        }
    }
}

/// The data file of a deletion vector; `None` for any other file.
fn vector_of(entries: &Entries, row: usize) -> Option<&str> {
    let vector = FileFormat::from_name(entries.file_format.value(row)) == Some(FileFormat::Puffin);
    (vector && entries.referenced_data_file.is_valid(row)).then(|| entries.referenced_data_file.value(row))
}

pub(in crate::commit) fn section(file: &DataFile) -> Section {
    (file.content_offset, file.content_size_in_bytes)
}

pub(in crate::commit) fn section_of(entries: &Entries, row: usize) -> Section {
    let value = |array: &arrow_array::Int64Array| array.is_valid(row).then(|| array.value(row));
    (value(&entries.content_offset), value(&entries.content_size_in_bytes))
}

/// How manifests are read and written.
#[derive(Debug, Clone)]
pub(in crate::commit) struct Means {
    pub(in crate::commit) specs: Arc<Specs>,
    pub(in crate::commit) form: Arc<Form>,
    pub(in crate::commit) output: Arc<Output>,
    pub(in crate::commit) limits: Limits,
}

/// Filters manifests of one content, and keeps the results for the next attempt.
#[derive(Debug, Default)]
pub(in crate::commit) struct ManifestFilter {
    known: HashMap<ManifestKey, Option<Arc<Filtered>>>,
}

/// Manifests after filtering.
#[derive(Debug)]
pub(in crate::commit) struct Remaining {
    /// All manifests, in their original order.
    pub(in crate::commit) manifests: Vec<ManifestFile>,
    /// The rewritten ones among them.
    pub(in crate::commit) filtered: Vec<Arc<Filtered>>,
}

impl ManifestFilter {
    /// Forgets earlier results.
    pub(in crate::commit) fn forget(&mut self) {
        self.known.clear();
    }

    /// Filters manifests of one content. `vectors_in` has the partitions in which deletion vectors are looked for.
    pub(in crate::commit) fn filter(
        &mut self,
        older: Vec<ManifestFile>,
        removal: &Arc<Removal>,
        vectors_in: &Partitions,
        means: &Means,
    ) -> Result<Remaining> {
        let Means { specs, output, .. } = means;
        if removal.is_empty() {
            return Ok(Remaining { manifests: older, filtered: Vec::new() });
        }
        let mut asked = Vec::new();
        for manifest in &older {
            let unknown = !self.known.contains_key(&ManifestKey::of(manifest));
            if unknown && removal.may_be_in(specs.of_manifest(manifest)?, manifest, vectors_in)? {
                asked.push(manifest.clone());
            }
        }
        let remote = asked.first().is_some_and(|manifest| output.storage().is_remote(&manifest.manifest_path));
        let keys: Vec<ManifestKey> = asked.iter().map(ManifestKey::of).collect();
        let work = FilterWork { removal: removal.clone(), means: means.clone() };
        for (key, made) in keys.into_iter().zip(Ordered::new(Arc::new(work), asked, remote)) {
            let filtered = match made? {
                None => None,
                Some(Replacement { encoded, summary, removed, partitions }) => {
                    let manifest = output.put_manifest(encoded)?;
                    Some(Arc::new(Filtered { manifest, summary, removed, partitions }))
                }
            };
            self.known.insert(key, filtered);
        }
        let mut filtered = Vec::new();
        let manifests = older.into_iter().map(|manifest| match self.known.get(&ManifestKey::of(&manifest)) {
            Some(Some(made)) => {
                filtered.push(made.clone());
                made.manifest.clone()
            }
            _ => manifest,
        });
        Ok(Remaining { manifests: manifests.collect(), filtered })
    }
}

/// Reads a manifest and encodes its replacement, as work for a pool.
#[derive(Debug)]
struct FilterWork {
    removal: Arc<Removal>,
    means: Means,
}

/// An encoded replacement of a manifest.
#[derive(Debug)]
struct Replacement {
    encoded: Encoded,
    summary: SummaryBuilder,
    removed: Vec<(String, Section)>,
    partitions: Vec<Tuple>,
}

impl Work for FilterWork {
    type Item = ManifestFile;
    type Fetched = Bytes;
    type Done = Option<Replacement>;

    fn bytes(manifest: &ManifestFile) -> i64 {
        manifest.manifest_length
    }

    fn fetch(&self, manifest: &ManifestFile) -> Result<Bytes> {
        self.means.output.storage().read_manifest(manifest)
    }

    fn run(&self, manifest: &ManifestFile, bytes: Bytes) -> Result<Option<Replacement>> {
        let spec = self.means.specs.of_manifest(manifest)?;
        let read = |metrics| {
            let options = ReadOptions {
                metrics,
                partition_type: Some(&spec.partition_type),
                inherit: Some(manifest),
                live_only: true,
                ..ReadOptions::default()
            };
            let entries = entries::read(&bytes, &options, &self.means.limits);
            entries.map_err(|error| Error::from(error.in_file(&manifest.manifest_path)))
        };
        let narrow = self.removal.rows.as_ref().map_or_else(Metrics::none, |rows| rows.metrics());
        let Some(removed) = self.removal.removed(manifest, spec, &read(narrow)?)? else { return Ok(None) };
        self.without(manifest, spec, &read(Metrics::all())?, &removed).map(Some)
    }

    fn memory(made: &Option<Replacement>) -> usize {
        made.as_ref().map_or(0, |made| usize::try_from(made.encoded.manifest.manifest_length).unwrap_or(0))
    }
}

impl FilterWork {
    /// Rewrites a manifest: remaining files become existing entries, removed files deleted entries.
    fn without(&self, manifest: &ManifestFile, spec: &Spec, entries: &Entries, gone: &[bool]) -> Result<Replacement> {
        let mut writer = self.means.output.writer(&self.means.form, spec, manifest.content)?;
        let (mut summary, mut removed, mut seen) = (SummaryBuilder::default(), Vec::new(), HashSet::new());
        for (row, gone) in gone.iter().enumerate() {
            let mut entry = entries.entry(row, manifest.partition_spec_id).map_err(Error::from)?;
            entry.status = if *gone { Status::Deleted } else { Status::Existing };
            if *gone {
                entry.snapshot_id = Some(self.means.output.snapshot_id());
            }
            writer.add(&entry)?;
            if *gone {
                let key = (entry.file.file_path.clone(), section(&entry.file));
                if seen.insert(key.clone()) {
                    summary.removed(&entry.file, spec.path(&entry.file.partition)?);
                    removed.push(key);
                } else {
                    summary.removed_again();
                }
            }
        }
        let gone = gone.iter().enumerate().filter(|(_, gone)| **gone).map(|(row, _)| entries.tuple_of.value(row));
        let places: BTreeSet<u32> = gone.collect();
        let partitions = places.into_iter().map(|place| entries.tuple(place as usize)).collect::<Result<_, _>>()?;
        Ok(Replacement { encoded: self.means.output.encode(&self.means.form, writer)?, summary, removed, partitions })
    }
}
