//! Writes manifest lists, manifests and position deletes again, with other paths.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use icefield_format::Limits;
use icefield_format::avro::{Codec, Compression};
use icefield_format::manifest::entries::{self, ManifestHeader, ReadOptions};
use icefield_format::manifest::write::{ListOptions, ListWriter, ManifestOptions, ManifestWriter};
use icefield_format::manifest::{
    DataFile, FileContent, FileFormat, ManifestContent, ManifestEntry, ManifestFile, Metrics, Status, list,
};
use icefield_format::metadata::{Snapshot, TableMetadata};
use icefield_format::types::Schema;
use icefield_format::types::reserved::DELETE_FILE_PATH;

use super::deletes::rewrite_deletes;
use super::plan::{Named, Plan};
use super::prefix::Prefix;
use super::versions::{Start, Versions};
use crate::commit::Specs;
use crate::error::{Error, Result};
use crate::interrupt;
use crate::snapshot::manifests::{of_snapshot, with_own_lists};
use crate::snapshot::parallel::{locked, try_side_by_side};
use crate::snapshot::reachable::Reachable;
use crate::storage::{Existing, Storage};

/// Manifests that are in memory at the same time, and their bytes.
const MANIFESTS: usize = 256;
const MANIFEST_BYTES: i64 = 64 << 20;

/// Where files are read and written.
pub(super) struct Places<'a> {
    pub(super) storage: &'a Storage,
    /// Where files are written: nowhere in a dry run.
    pub(super) written: Storage,
    pub(super) prefix: Prefix,
    /// The folder of rewritten files; `None` writes them to their place in the copy, which has those of the start.
    pub(super) staging: Option<String>,
    pub(super) limits: Limits,
    /// The files written to the staging location.
    pub(super) staged: Mutex<Vec<String>>,
}

impl Places<'_> {
    /// Writes a file.
    pub(super) fn put(&self, path: &str, bytes: Vec<u8>) -> Result<()> {
        self.stage(path);
        self.written.put(path, bytes, Existing::Replace)
    }

    /// Remembers a file that is about to be written.
    fn stage(&self, path: &str) {
        if self.staging.is_some() {
            locked(&self.staged).push(path.to_owned());
        }
    }

    /// Deletes what was written to the staging location.
    pub(super) fn discard(&self) {
        self.storage.discard(&locked(&self.staged), "files of a rewrite of paths that failed");
    }

    /// Where a rewritten file is written.
    pub(super) fn written_to(&self, what: &str, path: &str) -> Result<String> {
        match &self.staging {
            Some(staging) => self.prefix.below(staging, what, path),
            None => self.prefix.replaced(what, path),
        }
    }

    /// A rewritten file as a part of the copy.
    pub(super) fn rewritten(&self, what: &str, path: &str) -> Result<Named> {
        Ok(Named {
            source: self.written_to(what, path)?,
            target: self.prefix.replaced(what, path)?,
            size: None,
            is_rewritten: true,
        })
    }

    /// A file that is copied as it is.
    pub(super) fn copied(&self, what: &str, path: &str, size: Option<i64>) -> Result<Named> {
        Ok(Named {
            source: path.to_owned(),
            target: self.prefix.replaced(what, path)?,
            size: size.and_then(|size| u64::try_from(size).ok()),
            is_rewritten: false,
        })
    }
}

/// What was written again.
#[derive(Debug, Default)]
pub(super) struct Rewritten {
    pub(super) manifests: usize,
    /// Position delete files, and deletion vectors one by one.
    pub(super) delete_files: usize,
}

/// The manifests of a table that a copy needs.
pub(super) struct Content<'a> {
    places: &'a Places<'a>,
    metadata: &'a TableMetadata,
    reachable: Reachable<'a>,
    specs: Specs,
    start: Option<&'a Start>,
    /// Manifests to be written again.
    new: Vec<ManifestFile>,
    /// Manifests of new lists that the earlier copy has.
    old: Vec<ManifestFile>,
    /// Position delete files by path, and whether the earlier copy has them.
    deletes: HashMap<String, (DataFile, bool)>,
    delete_files: usize,
    /// The sizes of rewritten position delete files.
    delete_sizes: HashMap<String, i64>,
    /// The lengths of rewritten manifests.
    lengths: HashMap<String, i64>,
}

impl<'a> Content<'a> {
    /// Reads what has to be written again. Nothing is written, so that a table that cannot be copied leaves nothing.
    ///
    /// # Errors
    /// Files outside of the prefix, encrypted files, and those of reading.
    pub(super) fn of(places: &'a Places<'a>, versions: &'a Versions) -> Result<Self> {
        let (metadata, start) = (&*versions.end.metadata, versions.start.as_ref());
        let mut content = Self {
            places,
            metadata,
            reachable: Reachable::of(places.storage, metadata, &places.limits),
            specs: Specs::of(metadata),
            start,
            new: Vec::new(),
            old: Vec::new(),
            deletes: HashMap::new(),
            delete_files: 0,
            delete_sizes: HashMap::new(),
            lengths: HashMap::new(),
        };
        content.collect_manifests()?;
        content.look_at_entries()?;
        Ok(content)
    }

    /// The snapshots whose manifest lists the copy needs.
    fn snapshots(&self) -> Vec<&'a Snapshot> {
        let all = with_own_lists(self.metadata).into_iter().map(|snapshot| &**snapshot);
        all.filter(|snapshot| self.start.is_none_or(|start| !start.has_snapshot(snapshot.snapshot_id))).collect()
    }

    fn each<T: Sync>(&self, all: &[T], work: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
        interrupt::check()?;
        try_side_by_side(self.places.storage, self.metadata.location(), all, work)
    }

    fn collect_manifests(&mut self) -> Result<()> {
        let found = Mutex::new((HashSet::new(), Vec::new(), self.places.limits.held()));
        self.each(&self.snapshots(), |snapshot| {
            let listed = of_snapshot(self.places.storage, self.metadata, snapshot, &self.places.limits)?;
            let (known, all, held) = &mut *locked(&found);
            for manifest in listed {
                self.places.prefix.replaced("a manifest", &manifest.manifest_path)?;
                refuse_key(&manifest.manifest_path, manifest.key_metadata.as_deref())?;
                if known.insert(manifest.manifest_path.clone()) {
                    held.keep(2 * manifest.manifest_path.len() + manifest.memory())?;
                    all.push(manifest);
                }
            }
            Ok(())
        })?;
        let (_, all, _) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        for manifest in all {
            let is_old =
                self.start.is_some_and(|start| start.has(manifest.added_snapshot_id, manifest.sequence_number));
            let is_there = || match &self.places.staging {
                Some(_) => Ok(true),
                None => self.length_in_copy(&manifest).map(|length| length.is_some()),
            };
            if is_old && is_there()? { self.old.push(manifest) } else { self.new.push(manifest) }
        }
        Ok(())
    }

    /// The length of a manifest in the copy; `None` if it is not there.
    fn length_in_copy(&self, manifest: &ManifestFile) -> Result<Option<i64>> {
        self.size_in_copy("a manifest", &manifest.manifest_path)
    }

    fn size_in_copy(&self, what: &str, path: &str) -> Result<Option<i64>> {
        match self.places.storage.size(&self.places.prefix.replaced(what, path)?) {
            Ok(size) => Ok(Some(i64::try_from(size).unwrap_or(i64::MAX))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks the paths in manifests, and finds the position delete files.
    fn look_at_entries(&mut self) -> Result<()> {
        let found = Mutex::new((HashMap::new(), HashSet::new(), self.places.limits.held()));
        let needed: Vec<(&ManifestFile, bool)> = self
            .new
            .iter()
            .map(|manifest| (manifest, true))
            // Only their lengths are needed, which depend on the sizes of delete files.
            .chain(self.old.iter().filter(|_| self.places.staging.is_some()).map(|manifest| (manifest, false)))
            .collect();
        self.each(&needed, |(manifest, is_new)| {
            for (entry, is_old) in self.listed(manifest, &self.read(manifest, Metrics::none())?.0)? {
                let file = entry.file;
                self.places.prefix.replaced(what(file.content), &file.file_path)?;
                refuse_key(&file.file_path, file.key_metadata.as_deref())?;
                if file.content != FileContent::PositionDeletes || !entry.status.is_live() {
                    continue;
                }
                let (files, counted, held) = &mut *locked(&found);
                if *is_new {
                    counted.insert((file.file_path.clone(), file.content_offset));
                }
                if let Some((_, was_old)) = files.get_mut(&file.file_path) {
                    *was_old = *was_old && is_old;
                    continue;
                }
                held.keep(2 * file.file_path.len() + size_of::<DataFile>())?;
                files.insert(file.file_path.clone(), (file, is_old));
            }
            Ok(())
        })?;
        let (files, counted, _) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        (self.deletes, self.delete_files) = (files, counted.len());
        Ok(())
    }

    /// The entries of a manifest as they are stored, and whether the start has the file of each.
    fn listed(&self, manifest: &ManifestFile, read: &entries::Entries) -> Result<Vec<(ManifestEntry, bool)>> {
        let is_old = |entry: &ManifestEntry| {
            let inherited = (entry.status == Status::Added).then_some(manifest.sequence_number);
            // The data sequence number of a compacted file is an older one.
            let number = entry.file_sequence_number.or(inherited).or(entry.sequence_number).unwrap_or(0);
            let snapshot_id = entry.snapshot_id.unwrap_or(manifest.added_snapshot_id);
            self.start.is_some_and(|start| start.has(snapshot_id, number))
        };
        let all = (0..read.len()).map(|row| {
            let entry = read.entry(row, manifest.partition_spec_id)?;
            let is_old = is_old(&entry);
            Ok((entry, is_old))
        });
        all.collect::<Result<Vec<_>>>().map_err(|error| error.in_file(&manifest.manifest_path))
    }

    /// Reads a manifest, and the schema that it was written with: the same manifest has the same bytes whenever it is
    /// written again, whatever happens to the table.
    fn read(&self, manifest: &ManifestFile, metrics: Metrics) -> Result<(entries::Entries, Arc<Schema>)> {
        let path = &manifest.manifest_path;
        let in_file = |error: icefield_format::Error| Error::from(error.in_file(path));
        let spec = self.specs.of_manifest(manifest)?;
        let bytes = self.reachable.bytes(path, Some(manifest))?;
        let header = ManifestHeader::read(&bytes).map_err(in_file)?;
        let own = header.schema.and_then(|text| serde_json::from_str(&text).ok());
        let own = own.and_then(|json| Schema::from_json(&json).ok());
        let has_all = |schema: &Schema| {
            spec.spec.fields.iter().flat_map(|field| &field.source_ids).all(|id| schema.find_field(*id).is_some())
        };
        let schema = own.filter(has_all).map_or_else(|| spec.schema.clone(), Arc::new);
        let partition_type = spec.spec.tuple_type(&schema);
        let options = ReadOptions { metrics, partition_type: Some(&partition_type), ..ReadOptions::default() };
        let read = entries::read(&bytes, &options, &self.places.limits).map_err(in_file)?;
        read.tally.check(manifest).map_err(in_file)?;
        Ok((read, schema))
    }

    /// Writes everything again, each file after those that it names, and adds all files of the copy to a plan.
    pub(super) fn write(&mut self, plan: &mut dyn Plan) -> Result<Rewritten> {
        self.write_deletes(plan)?;
        self.write_manifests(plan)?;
        self.write_lists(plan)?;
        Ok(Rewritten { manifests: self.new.len(), delete_files: self.delete_files })
    }

    fn write_deletes(&mut self, plan: &mut dyn Plan) -> Result<()> {
        let nowhere = self.places.written.unwritten();
        let sizes = Mutex::new((HashMap::new(), Vec::new()));
        let all: Vec<(&String, &(DataFile, bool))> = self.deletes.iter().collect();
        self.each(&all, |(path, (file, is_old))| {
            let what = what(FileContent::PositionDeletes);
            let named = self.places.rewritten(what, path)?;
            let known = match *is_old && self.places.staging.is_none() {
                true => self.size_in_copy(what, path)?,
                false => None,
            };
            // What the copy has is written again only to know its size.
            let is_known = *is_old && (known.is_some() || self.places.staging.is_some());
            let size = match known {
                Some(size) => size,
                None => {
                    let written = if is_known { &nowhere } else { &self.places.written };
                    if !is_known {
                        self.places.stage(&named.source);
                    }
                    let Places { storage, prefix, limits, .. } = self.places;
                    let size = rewrite_deletes(storage, written, file, &named.source, prefix, limits)?;
                    i64::try_from(size).unwrap_or(i64::MAX)
                }
            };
            let (sizes, new) = &mut *locked(&sizes);
            sizes.insert((*path).clone(), size);
            if !is_known {
                new.push(Named { size: u64::try_from(size).ok(), ..named });
            }
            Ok(())
        })?;
        let (sizes, new) = sizes.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.delete_sizes = sizes;
        plan.add(new)
    }

    fn write_manifests(&mut self, plan: &mut dyn Plan) -> Result<()> {
        let mut lengths = HashMap::new();
        for chunk in chunks(&self.old) {
            let found = Mutex::new(Vec::new());
            self.each(chunk, |manifest| {
                let length = match &self.places.staging {
                    None => self.length_in_copy(manifest)?.unwrap_or(manifest.manifest_length),
                    Some(_) => i64::try_from(self.encoded(manifest)?.0.len()).unwrap_or(i64::MAX),
                };
                locked(&found).push((manifest.manifest_path.clone(), length));
                Ok(())
            })?;
            lengths.extend(found.into_inner().unwrap_or_else(PoisonError::into_inner));
        }
        for chunk in chunks(&self.new) {
            let found = Mutex::new((Vec::new(), Vec::new()));
            self.each(chunk, |manifest| {
                let (bytes, files) = self.encoded(manifest)?;
                let (encoded, all) = &mut *locked(&found);
                encoded.push((manifest.manifest_path.clone(), bytes));
                all.extend(files);
                Ok(())
            })?;
            let (encoded, files) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
            // A copy has files before the manifests that name them.
            plan.add(files)?;
            self.each(&encoded, |(path, bytes)| {
                self.places.put(&self.places.written_to("a manifest", path)?, bytes.clone())
            })?;
            let mut named = Vec::new();
            for (path, bytes) in encoded {
                named.push(self.places.rewritten("a manifest", &path)?);
                lengths.insert(path, i64::try_from(bytes.len()).unwrap_or(i64::MAX));
            }
            plan.add(named)?;
        }
        self.lengths = lengths;
        Ok(())
    }

    /// A manifest with other paths, and the files in it that the copy needs.
    fn encoded(&self, manifest: &ManifestFile) -> Result<(Vec<u8>, Vec<Named>)> {
        let path = &manifest.manifest_path;
        let spec = self.specs.of_manifest(manifest)?;
        let (read, schema) = self.read(manifest, Metrics::all())?;
        let version = read.header.format_version;
        let entries = self.listed(manifest, &read)?;
        drop(read);
        let has_numbers = entries.iter().any(|(entry, _)| entry.sequence_number.is_some());
        let least = if manifest.content == ManifestContent::Deletes || has_numbers { 2 } else { 1 };
        let mut writer = ManifestWriter::new(ManifestOptions {
            format_version: version.clamp(least, 3),
            content: manifest.content,
            schema: &schema,
            spec: &spec.spec,
            snapshot_id: manifest.added_snapshot_id,
            first_row_id: None,
            compression: COMPRESSION,
            sync: marker(path),
        })
        .map_err(|error| Error::from(error).in_file(path))?
        .that_keeps_row_ids();
        let mut named = Vec::new();
        for (entry, is_old) in entries {
            let changed = self.changed(&entry.file, entry.status)?;
            let is_new = entry.status.is_live() && !is_old;
            if is_new && entry.file.content != FileContent::PositionDeletes {
                let file = &entry.file;
                named.push(self.places.copied(what(file.content), &file.file_path, Some(file.file_size_in_bytes))?);
            }
            writer.add(&ManifestEntry { file: changed, ..entry }).map_err(|error| Error::from(error).in_file(path))?;
        }
        Ok((writer.finish(path)?.0, named))
    }

    /// A file with other paths. Removed files keep their sizes: they are not in the copy, and whether other manifests
    /// have them depends on the start.
    fn changed(&self, file: &DataFile, status: Status) -> Result<DataFile> {
        let prefix = &self.places.prefix;
        let mut changed = file.clone();
        changed.file_path = prefix.replaced(what(file.content), &file.file_path)?;
        if let Some(referenced) = &mut changed.referenced_data_file {
            *referenced = prefix.replaced("a data file with deletes", referenced)?;
        }
        if file.content != FileContent::PositionDeletes {
            return Ok(changed);
        }
        if let Some(size) = self.delete_sizes.get(&file.file_path).filter(|_| status.is_live()) {
            changed.file_size_in_bytes = *size;
        }
        if file.format() != Some(FileFormat::Puffin) {
            changed.split_offsets = None;
        }
        self.change_bounds(&mut changed)?;
        Ok(changed)
    }

    /// Changes the bounds of paths if they are those of one data file. Readers use no others, so they are left out.
    fn change_bounds(&self, file: &mut DataFile) -> Result<()> {
        let id = DELETE_FILE_PATH.id;
        let of = |bounds: &Option<Vec<(i32, Vec<u8>)>>| {
            bounds.as_ref().and_then(|all| all.iter().find(|(field, _)| *field == id)).map(|(_, bound)| bound.clone())
        };
        let lower = of(&file.lower_bounds);
        let only = lower.filter(|lower| of(&file.upper_bounds).as_ref() == Some(lower));
        let only = only.and_then(|path| String::from_utf8(path).ok());
        let new = only.map(|path| self.places.prefix.replaced("a data file with deletes", &path)).transpose()?;
        for bounds in [&mut file.lower_bounds, &mut file.upper_bounds].into_iter().flatten() {
            match &new {
                None => bounds.retain(|(field, _)| *field != id),
                Some(path) => bounds
                    .iter_mut()
                    .filter(|(field, _)| *field == id)
                    .for_each(|(_, bound)| *bound = path.clone().into_bytes()),
            }
        }
        Ok(())
    }

    fn write_lists(&self, plan: &mut dyn Plan) -> Result<()> {
        let found = Mutex::new(Vec::new());
        self.each(&self.snapshots(), |snapshot| {
            let Some(path) = snapshot.manifest_list() else { return Ok(()) };
            let named = self.places.rewritten("a manifest list", path)?;
            let bytes = self.list(snapshot, path)?;
            self.places.put(&named.source, bytes)?;
            locked(&found).push(named);
            Ok(())
        })?;
        plan.add(found.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn list(&self, snapshot: &Snapshot, path: &str) -> Result<Vec<u8>> {
        let limits = &self.places.limits;
        let in_file = |error: icefield_format::Error| Error::from(error).in_file(path);
        let bytes = self.places.storage.read_at_most(path, limits.avro_bytes)?;
        let read = list::read(&bytes, limits).map_err(in_file)?;
        let is_new = |one: &ManifestFile| one.content == ManifestContent::Deletes || one.sequence_number > 0;
        let least = if read.manifests.iter().any(is_new) { 2 } else { 1 };
        let mut writer = ListWriter::new(ListOptions {
            format_version: read.header.format_version.clamp(least, 3),
            snapshot_id: snapshot.snapshot_id,
            parent_snapshot_id: snapshot.parent_snapshot_id,
            sequence_number: snapshot.sequence_number,
            first_row_id: read.header.first_row_id.or(snapshot.first_row_id).or(Some(0)),
            compression: COMPRESSION,
            sync: marker(path),
        })
        .map_err(in_file)?;
        for manifest in read.manifests {
            let old = &manifest.manifest_path;
            let length = self.lengths.get(old).copied();
            let length = length.ok_or_else(|| Error::Internal(format!("{old}: no length of the new manifest")))?;
            let manifest_path = self.places.prefix.replaced("a manifest", old)?;
            let changed = ManifestFile { manifest_path, manifest_length: length, ..manifest };
            writer.add(&changed).map_err(in_file)?;
        }
        Ok(writer.finish().map_err(in_file)?.bytes)
    }
}

/// The compression of rewritten files; it does not follow the table's properties, so that a file that was copied before
/// has the same length if it is written again.
const COMPRESSION: Compression = Compression { codec: Codec::Deflate, level: None };

/// The sync marker of a rewritten file, which is the same in each run.
fn marker(path: &str) -> [u8; 16] {
    let half = |seed: u8| {
        let mut hasher = DefaultHasher::new();
        (seed, path).hash(&mut hasher);
        hasher.finish()
    };
    (u128::from(half(0)) << 64 | u128::from(half(1))).to_be_bytes()
}

fn what(content: FileContent) -> &'static str {
    match content {
        FileContent::Data => "a data file",
        FileContent::PositionDeletes => "a position delete file",
        FileContent::EqualityDeletes => "an equality delete file",
    }
}

fn refuse_key(path: &str, key: Option<&[u8]>) -> Result<()> {
    match key {
        None => Ok(()),
        Some(_) => {
            Err(Error::unsupported(format!("{path}: is encrypted; copies of encrypted files are not supported")))
        }
    }
}

/// Manifests in pieces that fit into memory.
fn chunks(mut rest: &[ManifestFile]) -> impl Iterator<Item = &[ManifestFile]> {
    std::iter::from_fn(move || {
        let mut bytes = 0i64;
        let fits = |manifest: &&ManifestFile| {
            bytes = bytes.saturating_add(manifest.manifest_length);
            bytes <= MANIFEST_BYTES
        };
        let count = rest.iter().take(MANIFESTS).take_while(fits).count().max(1).min(rest.len());
        let (chunk, after) = rest.split_at_checked(count)?;
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}
