//! Appends: snapshots that add data files ("Snapshots", operation `append`; "Row Lineage" for the row ids of v3).

use std::collections::HashSet;

use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::{ListOptions, ListWriter};
use icefield_format::manifest::{DataFile, FileContent, ManifestContent};
use icefield_format::metadata::properties::{WRITE_AUDIT_PUBLISH_ENABLED, WRITE_PARTITION_SUMMARY_LIMIT};
use icefield_format::metadata::{
    FormatVersion, MAIN_BRANCH, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests, SnapshotRef,
    StringMap, TableMetadata,
};
use icefield_format::transform::path::partition_path;
use icefield_format::types::{PrimitiveType, Type};
use uuid::Uuid;

use super::manifests::{Manifests, compression};
use super::summary::SummaryBuilder;
use super::{Change, Committed, Pointer, commit_change, now_ms};
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::plan::manifests::of_snapshot;
use crate::storage::Storage;
use crate::write::check_writable;

/// Entry of the summary of a snapshot that is staged for an audit.
const WAP_ID: &str = "wap.id";

/// How a snapshot is made.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// The branch that it is the next snapshot of; one that does not exist begins at the current snapshot, as in Java.
    pub branch: String,
    /// Entries of the summary, of the user and the engine.
    pub properties: StringMap,
    /// Whether small manifests are merged (`commit.manifest.*`); a fast append leaves them.
    pub merge: bool,
    /// Only adds the snapshot to the table, without moving the branch.
    pub stage_only: bool,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { branch: MAIN_BRANCH.to_owned(), properties: StringMap::new(), merge: true, stage_only: false }
    }
}

/// Appends data files to a table, in a snapshot of its own, and says which.
///
/// # Errors
/// [`Error::CommitFailed`] and every other error but the next: the files are not in the table, and what the commit itself
/// wrote is deleted; the data files stay, they are the caller's. [`Error::CommitStateUnknown`]: they may be in the
/// table; nothing is deleted, and nothing of it may be.
pub fn append(
    storage: &Storage,
    pointer: &dyn Pointer,
    files: Vec<DataFile>,
    options: SnapshotOptions,
) -> Result<(Committed, i64)> {
    let mut append = Append::new(storage.clone(), files, options)?;
    let committed = commit_change(storage, pointer, &mut append)?;
    Ok((committed, append.manifests.snapshot_id))
}

/// An append, made anew for each attempt; its own manifests are written once.
#[derive(Debug)]
pub struct Append {
    storage: Storage,
    files: Vec<DataFile>,
    options: SnapshotOptions,
    manifests: Manifests,
    /// Manifests of the files, and the format version they were written in.
    own: Option<(FormatVersion, Vec<ManifestFile>)>,
    attempts: u32,
    /// Files that the last attempt's snapshot uses.
    used: Vec<String>,
}

impl Append {
    /// An append of these files. A file that is named twice is taken once.
    pub fn new(storage: Storage, mut files: Vec<DataFile>, options: SnapshotOptions) -> Result<Self> {
        if let Some(file) = files.iter().find(|file| file.content != FileContent::Data) {
            return Err(Error::invalid(format!("{}: an append takes data files only", file.file_path)));
        }
        let mut seen = HashSet::new();
        files.retain(|file| seen.insert(file.file_path.clone()));
        let manifests = Manifests::new(storage.clone(), new_snapshot_id());
        Ok(Self { storage, files, options, manifests, own: None, attempts: 0, used: Vec::new() })
    }

    /// The snapshot that the attempt makes, and the summary's counts of manifests.
    fn snapshot(&mut self, base: &TableMetadata) -> Result<Snapshot> {
        let parent = self.parent(base)?;
        let own = self.own_manifests(base)?;
        let older = match parent {
            Some(parent) => of_snapshot(&self.storage, base, parent, &limits()?)?,
            None => Vec::new(),
        };
        let (manifests, replaced) = self.arranged(base, own, older)?;
        let created =
            manifests.iter().filter(|manifest| manifest.added_snapshot_id == self.manifests.snapshot_id).count();
        let mut properties = self.options.properties.clone();
        for (name, count) in [("created", created), ("kept", manifests.len() - created), ("replaced", replaced)] {
            properties.insert(format!("manifests-{name}"), count.to_string());
        }
        let limit = usize::try_from(WRITE_PARTITION_SUMMARY_LIMIT.read(base.properties())?).unwrap_or(0);
        let empty = StringMap::new();
        let previous = parent.map(|parent| parent.summary.as_ref().map_or(&empty, |summary| &summary.properties));
        let summary = self.summary(base)?.build(Operation::Append, &properties, previous, limit);
        let parent_snapshot_id = parent.map(|parent| parent.snapshot_id);
        let (list, first_row_id, added_rows) = self.write_list(base, parent_snapshot_id, &manifests)?;
        self.used = manifests.into_iter().map(|manifest| manifest.manifest_path).chain([list.clone()]).collect();
        Ok(Snapshot {
            snapshot_id: self.manifests.snapshot_id,
            parent_snapshot_id,
            sequence_number: base.next_sequence_number(),
            // A clock that is behind must not make a snapshot that is older than what it follows.
            timestamp_ms: now_ms().max(base.last_updated_ms()),
            summary: Some(summary),
            manifests: SnapshotManifests::List(list),
            schema_id: Some(base.current_schema_id()),
            first_row_id,
            added_rows,
            key_id: None,
            unknown: serde_json::Map::new(),
        })
    }

    /// Whether the snapshot waits for an audit (write-audit-publish): it has an id for that, `wap.id` in its summary.
    fn is_staged_for_audit(&self, base: &TableMetadata) -> Result<bool> {
        let Some(id) = self.options.properties.get(WAP_ID) else { return Ok(false) };
        if id.is_empty() {
            return Err(Error::invalid(format!("the snapshot property {WAP_ID} is empty: give the id of the audit")));
        }
        if !WRITE_AUDIT_PUBLISH_ENABLED.read(base.properties()) {
            return Err(Error::invalid(format!(
                "the snapshot property {WAP_ID}={id} asks for a staged snapshot: set the table property {}=true first",
                WRITE_AUDIT_PUBLISH_ENABLED.name
            )));
        }
        Ok(true)
    }

    fn parent<'a>(&self, base: &'a TableMetadata) -> Result<Option<&'a Snapshot>> {
        let branch = &self.options.branch;
        if branch.is_empty() {
            return Err(Error::invalid("a branch has a name: this one is empty"));
        }
        let Some(reference) = base.reference(branch) else {
            return Ok(base.current_snapshot().map(|current| &**current));
        };
        if !reference.is_branch() {
            return Err(Error::invalid(format!("{branch} is a tag: only a branch can be appended to")));
        }
        let found = base.snapshot(reference.snapshot_id);
        found.map(|snapshot| Some(&**snapshot)).ok_or_else(|| {
            Error::Validation(format!("branch {branch}: its snapshot {} is not in the table", reference.snapshot_id))
        })
    }

    fn own_manifests(&mut self, base: &TableMetadata) -> Result<Vec<ManifestFile>> {
        if let Some((version, own)) = &self.own
            && *version == base.format_version()
        {
            return Ok(own.clone());
        }
        self.manifests.forget();
        let own = self.manifests.of_added(base, &self.files)?;
        self.own = Some((base.format_version(), own.clone()));
        Ok(own)
    }

    /// The manifests of the snapshot, the newest first, and how many older ones are replaced.
    fn arranged(
        &mut self,
        base: &TableMetadata,
        own: Vec<ManifestFile>,
        older: Vec<ManifestFile>,
    ) -> Result<(Vec<ManifestFile>, usize)> {
        if !self.options.merge {
            return Ok((own.into_iter().chain(older).collect(), 0));
        }
        let live = older.into_iter().filter(ManifestFile::has_live_files);
        let (data, deletes): (Vec<_>, Vec<_>) = live.partition(|manifest| manifest.content == ManifestContent::Data);
        let (mut arranged, replaced_data) = self.manifests.merge(base, own.into_iter().chain(data).collect())?;
        let (deletes, replaced_deletes) = self.manifests.merge(base, deletes)?;
        arranged.extend(deletes);
        Ok((arranged, replaced_data + replaced_deletes))
    }

    fn summary(&self, base: &TableMetadata) -> Result<SummaryBuilder> {
        let mut builder = SummaryBuilder::default();
        for file in &self.files {
            let spec = base.partition_spec(file.partition_spec_id);
            let spec = spec.ok_or_else(|| Error::invalid(format!("no partition spec {}", file.partition_spec_id)))?;
            let source = |id: Option<i32>| {
                let found = id.and_then(|id| base.current_schema().find_type(id)).and_then(Type::as_primitive);
                found.cloned().unwrap_or(PrimitiveType::Unknown)
            };
            let sources: Vec<PrimitiveType> = spec.fields.iter().map(|field| source(field.source_id())).collect();
            builder.added(file, partition_path(spec, &sources, &file.partition)?);
        }
        Ok(builder)
    }

    /// Writes the manifest list; in v3 also the first row id of the snapshot and the number of ids it takes.
    fn write_list(
        &mut self,
        base: &TableMetadata,
        parent_snapshot_id: Option<i64>,
        manifests: &[ManifestFile],
    ) -> Result<(String, Option<i64>, Option<i64>)> {
        let first_row_id = (base.format_version() >= FormatVersion::V3).then(|| base.next_row_id());
        let mut writer = ListWriter::new(ListOptions {
            format_version: base.format_version().number(),
            snapshot_id: self.manifests.snapshot_id,
            parent_snapshot_id,
            sequence_number: base.next_sequence_number(),
            first_row_id,
            compression: compression(base)?,
            sync: *Uuid::new_v4().as_bytes(),
        })?;
        manifests.iter().try_for_each(|manifest| writer.add(manifest))?;
        let written = writer.finish()?;
        self.attempts += 1;
        let name = format!("snap-{}-{}-{}.avro", self.manifests.snapshot_id, self.attempts, self.manifests.uuid);
        let added_rows = first_row_id.zip(written.next_row_id).map(|(first, next)| next.saturating_sub(first));
        Ok((self.manifests.put(base, &name, written.bytes)?, first_row_id, added_rows))
    }
}

impl Change for Append {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        check_writable(base)?;
        let staged = self.options.stage_only || self.is_staged_for_audit(base)?;
        while base.snapshot(self.manifests.snapshot_id).is_some() && self.own.is_none() {
            self.manifests.snapshot_id = new_snapshot_id();
        }
        let snapshot = self.snapshot(base)?;
        let mut updates = Vec::new();
        if base.table_uuid().is_none() {
            updates.push(MetadataUpdate::AssignUuid { uuid: Uuid::new_v4().to_string() });
        }
        let snapshot_id = snapshot.snapshot_id;
        updates.push(MetadataUpdate::AddSnapshot { snapshot: snapshot.into() });
        if !staged {
            let known = base.reference(&self.options.branch).cloned();
            let fresh = SnapshotRef {
                snapshot_id,
                kind: RefKind::BRANCH,
                max_ref_age_ms: None,
                unknown: serde_json::Map::new(),
            };
            let reference = SnapshotRef { snapshot_id, ..known.unwrap_or(fresh) };
            updates.push(MetadataUpdate::SetSnapshotRef { ref_name: self.options.branch.clone(), reference });
        }
        Ok(updates)
    }

    fn snapshot_id(&self) -> Option<i64> {
        Some(self.manifests.snapshot_id)
    }

    fn landed(&mut self, own_attempt_was_last: bool) {
        // Which attempt landed is known only where it was the last one.
        if own_attempt_was_last {
            self.manifests.clean(&self.used);
        }
    }

    fn failed(&mut self) {
        self.manifests.clean(&[]);
    }
}

/// A random id that is positive, as ids of snapshots are.
fn new_snapshot_id() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    ((high ^ low).cast_signed() & i64::MAX).max(1)
}
