//! Makes the snapshots of all operations ("Snapshots", "Manifest Lists"; "Row Lineage" for the row ids of v3).
//!
//! A [`Content`] is what an operation does to the manifests of its branch. The code here does the rest: the parent, the
//! totals of the summary, the manifest list, first row ids, the reference of the branch, and cleaning up after failed
//! attempts.

use icefield_format::encryption::stream::encrypt_new;
use icefield_format::manifest::DataFile;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::{ListOptions, ListWriter};
use icefield_format::metadata::properties::{
    ENCRYPTION_TABLE_KEY, WRITE_AUDIT_PUBLISH_ENABLED, WRITE_PARTITION_SUMMARY_LIMIT,
};
use icefield_format::metadata::{
    EncryptedKey, FormatVersion, MAIN_BRANCH, MetadataUpdate, Operation, RefKind, Snapshot, SnapshotManifests,
    SnapshotRef, StringMap, TableMetadata,
};
use uuid::Uuid;

use super::Change;
use super::changes::FileChanges;
use super::idempotency::{IDEMPOTENCY_KEY, made_anywhere, made_by_key};
use super::manifests::merging::{Arranged, Manifests};
use super::manifests::output::{compression, refuse_key};
use super::manifests::summary::SummaryBuilder;
use super::rule::{self, Rule};
use crate::clock::now_ms;
use crate::error::{Error, Result};
use crate::limits::limits;
use crate::snapshot::manifests::of_snapshot;
use crate::storage::Storage;
use crate::write::{check_writable, key_length, table_keys};

/// Summary entry of a snapshot that is staged for an audit.
pub(crate) const WAP_ID: &str = "wap.id";

/// What an operation does to the manifests of a branch.
pub trait Content {
    /// The operation, as the summary names it.
    fn operation(&self) -> Operation;

    /// The snapshot that the operation was planned on; commits after it are checked for conflicts. `None` if it does
    /// not matter.
    fn start(&self) -> Option<i64> {
        None
    }

    /// Checks that the operation may be applied on top of `parent`, which may include other commits since it was
    /// planned.
    ///
    /// # Errors
    /// [`Error::Validation`], which ends the commit: a retry would not help.
    fn validate(&self, _storage: &Storage, _base: &TableMetadata, _parent: Option<&Snapshot>) -> Result<()> {
        Ok(())
    }

    /// The files that the operation adds and removes.
    fn changes(&self) -> &FileChanges;

    /// The same, for making the snapshot.
    fn changes_mut(&mut self) -> &mut FileChanges;

    /// Returns the manifests of the new snapshot, computed from those of its parent. New ones are written with
    /// `manifests`.
    ///
    /// Called for each attempt, which may reuse results of an earlier one.
    fn manifests(
        &mut self,
        base: &TableMetadata,
        older: Vec<ManifestFile>,
        manifests: &mut Manifests,
        merge: bool,
    ) -> Result<Arranged> {
        self.changes_mut().manifests(base, older, manifests, merge)
    }

    /// Counts what the operation adds and removes.
    fn summary(&self, _base: &TableMetadata) -> Result<SummaryBuilder> {
        Ok(self.changes().summary())
    }
}

/// Options for making a snapshot.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// The branch to commit to. If it does not exist, it begins at the current snapshot, as in Java.
    pub branch: String,
    /// Summary entries of the user and the engine.
    pub properties: StringMap,
    /// Whether small manifests are merged (`commit.manifest.*`); a fast append does not merge.
    pub merge: bool,
    /// Only adds the snapshot to the table, without moving the branch.
    pub stage_only: bool,
}

impl Default for SnapshotOptions {
    fn default() -> Self {
        Self { branch: MAIN_BRANCH.to_owned(), properties: StringMap::new(), merge: true, stage_only: false }
    }
}

/// Makes a snapshot for each attempt to commit it.
#[derive(Debug)]
pub struct SnapshotProducer<C> {
    storage: Storage,
    content: C,
    options: SnapshotOptions,
    manifests: Manifests,
    attempts: u32,
    /// Whether a snapshot with the id has been made, so that the id is fixed.
    has_id: bool,
    /// The files that the last attempt's snapshot uses.
    used: Vec<String>,
    /// The snapshot that an earlier run of the change made.
    before: Option<i64>,
    /// The manifests of the snapshot that the content was planned on, as of the first attempt.
    start: Option<SnapshotManifests>,
    /// Whether the branch must exist.
    needs_branch: bool,
}

impl<C: Content> SnapshotProducer<C> {
    /// A producer of a snapshot with this content.
    pub fn new(storage: Storage, content: C, options: SnapshotOptions) -> Self {
        let manifests = Manifests::new(storage.clone(), new_snapshot_id());
        Self {
            storage,
            content,
            options,
            manifests,
            attempts: 0,
            has_id: false,
            used: Vec::new(),
            before: None,
            start: None,
            needs_branch: false,
        }
    }

    /// Refuses a branch that does not exist, such as one that another commit has removed: maintenance is of what a branch
    /// has. By default the first commit to a branch creates it, as in Java.
    #[must_use]
    pub fn on_existing_branch(mut self) -> Self {
        self.needs_branch = true;
        self
    }

    /// Lets the producer own the files that its content adds: it deletes them if the commit certainly fails. By default
    /// the caller keeps them.
    #[must_use]
    pub fn that_owns_its_files(mut self) -> Self {
        self.content.changes_mut().own_files(self.storage.clone());
        self
    }

    /// Rejects a start that is an earlier snapshot of the same transaction and was made again after a lost race. The
    /// rows found in it may have changed, and the checks only look at later snapshots.
    fn check_start(&mut self, base: &TableMetadata) -> Result<()> {
        let Some(found) = self.content.start().and_then(|id| base.snapshot(id)) else { return Ok(()) };
        let known = self.start.get_or_insert_with(|| found.manifests.clone());
        if *known == found.manifests || !rule::holds(Rule::StartMadeAnew) {
            return Ok(());
        }
        Err(Error::Validation(format!(
            "another commit came before this transaction, whose snapshot {} the changed rows were found in: run the \
             transaction again",
            found.snapshot_id
        )))
    }

    /// The snapshot that an earlier run of the change made ([`IDEMPOTENCY_KEY`]).
    fn made_before(&self, base: &TableMetadata, staged: bool) -> Result<Option<i64>> {
        let Some(key) = self.options.properties.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        if staged { made_anywhere(base, key) } else { made_by_key(base, &self.options.branch, key) }
    }

    /// The updates if an earlier run has made the change: only creates the branch if it does not exist.
    fn updates_of_repeated(&self, base: &TableMetadata, staged: bool) -> Vec<MetadataUpdate> {
        match base.current_snapshot_id().filter(|_| !staged && base.reference(&self.options.branch).is_none()) {
            Some(head) => vec![set_branch(base, &self.options.branch, head)],
            None => Vec::new(),
        }
    }

    /// Writes the manifests and the manifest list of this attempt, and returns its snapshot, and the keys that it needs
    /// in the metadata if the table is encrypted.
    fn snapshot(&mut self, base: &TableMetadata) -> Result<(Snapshot, Vec<EncryptedKey>)> {
        self.check_start(base)?;
        let parent = self.parent(base)?;
        self.content.validate(&self.storage, base, parent)?;
        let older = match parent {
            Some(parent) => of_snapshot(&self.storage, base, parent, &limits()?)?,
            None => Vec::new(),
        };
        let arranged = self.content.manifests(base, older, &mut self.manifests, self.options.merge)?;
        let Arranged { manifests, replaced } = arranged;
        let snapshot_id = self.manifests.snapshot_id();
        let created = manifests.iter().filter(|manifest| manifest.added_snapshot_id == snapshot_id).count();
        let mut properties = self.options.properties.clone();
        for (name, count) in [("created", created), ("kept", manifests.len() - created), ("replaced", replaced)] {
            properties.insert(format!("manifests-{name}"), count.to_string());
        }
        let limit = usize::try_from(WRITE_PARTITION_SUMMARY_LIMIT.read(base.properties())?).unwrap_or(0);
        let empty = StringMap::new();
        let previous = parent.map(|parent| parent.summary.as_ref().map_or(&empty, |summary| &summary.properties));
        let summary = self.content.summary(base)?.build(self.content.operation(), &properties, previous, limit)?;
        let parent_snapshot_id = parent.map(|parent| parent.snapshot_id);
        let (list, first_row_id, added_rows) = self.write_list(base, parent_snapshot_id, &manifests)?;
        let (list, keys) = self.put_list(base, list)?;
        self.used = manifests.into_iter().map(|manifest| manifest.manifest_path).chain([list.clone()]).collect();
        let snapshot = Snapshot {
            snapshot_id,
            parent_snapshot_id,
            sequence_number: base.next_sequence_number(),
            // A clock that is behind must not make a snapshot older than its parent.
            timestamp_ms: now_ms().max(base.last_updated_ms()),
            summary: Some(summary),
            manifests: SnapshotManifests::List(list),
            schema_id: Some(base.current_schema_id()),
            first_row_id,
            added_rows,
            key_id: keys.last().map(|key| key.key_id.clone()),
            unknown: serde_json::Map::new(),
        };
        Ok((snapshot, keys))
    }

    /// Whether the snapshot is staged for an audit (write-audit-publish): its summary has an audit id, `wap.id`.
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
            return Err(Error::invalid("the name of the branch is empty"));
        }
        let Some(reference) = base.reference(branch) else {
            if self.needs_branch && branch != MAIN_BRANCH && base.current_snapshot().is_some() {
                return Err(Error::Validation(format!("branch {branch}: another commit has removed it")));
            }
            return Ok(base.current_snapshot().map(|current| &**current));
        };
        if !reference.is_branch() {
            return Err(Error::invalid(format!("{branch} is a tag: only a branch can be written to")));
        }
        let found = base.snapshot(reference.snapshot_id);
        found.map(|snapshot| Some(&**snapshot)).ok_or_else(|| {
            Error::Validation(format!("branch {branch}: its snapshot {} is not in the table", reference.snapshot_id))
        })
    }

    /// Encodes the manifest list; in v3 also determines the first row id of the snapshot and how many ids it takes.
    fn write_list(
        &mut self,
        base: &TableMetadata,
        parent_snapshot_id: Option<i64>,
        manifests: &[ManifestFile],
    ) -> Result<(Vec<u8>, Option<i64>, Option<i64>)> {
        let first_row_id = (base.format_version() >= FormatVersion::V3).then(|| base.next_row_id());
        let mut writer = ListWriter::new(ListOptions {
            format_version: base.format_version().number(),
            snapshot_id: self.manifests.snapshot_id(),
            parent_snapshot_id,
            sequence_number: base.next_sequence_number(),
            first_row_id,
            compression: compression(base)?,
            sync: *Uuid::new_v4().as_bytes(),
        })?;
        let is_plain = key_length(base.properties())?.is_none();
        for manifest in manifests {
            if is_plain {
                refuse_key(&manifest.manifest_path, manifest.key_metadata.as_deref())?;
            }
            writer.add(manifest)?;
        }
        let written = writer.finish()?;
        let added_rows = first_row_id.zip(written.next_row_id).map(|(first, next)| next.saturating_sub(first));
        Ok((written.bytes, first_row_id, added_rows))
    }

    /// Writes the manifest list under a new name; in an encrypted table under a new key as well, which it returns,
    /// encrypted, as the last of the keys that the metadata need.
    fn put_list(&mut self, base: &TableMetadata, mut bytes: Vec<u8>) -> Result<(String, Vec<EncryptedKey>)> {
        let mut keys = Vec::new();
        if let Some((table_key, keyring)) = table_keys(base, &self.storage)? {
            let key;
            let length = key_length(base.properties())?.unwrap_or_default();
            (bytes, key) = encrypt_new(&bytes, length)?;
            keys = keyring.seal(&key, base.encryption_keys(), table_key, now_ms())?;
        }
        self.attempts += 1;
        let uuid = self.manifests.output().uuid();
        let name = format!("snap-{}-{}-{uuid}.avro", self.manifests.snapshot_id(), self.attempts);
        Ok((self.manifests.put(base, &name, bytes)?, keys))
    }
}

impl<C: Content> Change for SnapshotProducer<C> {
    fn updates(&mut self, base: &TableMetadata) -> Result<Vec<MetadataUpdate>> {
        check_writable(base, &self.storage)?;
        check_encrypted(base, self.content.changes())?;
        let staged = self.options.stage_only || self.is_staged_for_audit(base)?;
        self.before = self.made_before(base, staged)?;
        if self.before.is_some() {
            return Ok(self.updates_of_repeated(base, staged));
        }
        // The random id is in use, so take another one.
        while !self.has_id && base.snapshot(self.manifests.snapshot_id()).is_some() {
            self.manifests = Manifests::new(self.storage.clone(), new_snapshot_id());
        }
        self.has_id = true;
        let (snapshot, keys) = self.snapshot(base)?;
        let mut updates = Vec::new();
        if base.table_uuid().is_none() {
            updates.push(MetadataUpdate::AssignUuid { uuid: Uuid::new_v4().to_string() });
        }
        let snapshot_id = snapshot.snapshot_id;
        // Nothing else tells a service that the parent, whose files the snapshot has, must not have expired.
        if let Some(parent) = snapshot.parent_snapshot_id.filter(|_| staged) {
            updates.extend(if_there(base, "staged", parent));
        }
        updates.extend(keys.into_iter().map(|encryption_key| MetadataUpdate::AddEncryptionKey { encryption_key }));
        updates.push(MetadataUpdate::AddSnapshot { snapshot: snapshot.into() });
        if !staged {
            updates.push(set_branch(base, &self.options.branch, snapshot_id));
        }
        Ok(updates)
    }

    fn snapshot_id(&self) -> Option<i64> {
        self.before.is_none().then(|| self.manifests.snapshot_id())
    }

    fn made_snapshot_id(&self) -> Option<i64> {
        self.before.or_else(|| self.snapshot_id())
    }

    fn files(&self) -> Vec<String> {
        let mut files = self.manifests.output().written();
        files.extend(self.content.changes().owned());
        files
    }

    fn landed(&mut self, last_attempt: bool) {
        match self.before {
            None => {}
            // An earlier attempt of the same run landed.
            Some(before) if before == self.manifests.snapshot_id() => return,
            Some(_) => return self.failed(),
        }
        // The used files are known only for the last attempt.
        if last_attempt {
            self.manifests.output().landed(&self.used);
        }
    }

    fn failed(&mut self) {
        self.manifests.output().clean(&[]);
        self.content.changes_mut().failed();
    }
}

/// Refuses to add a file that is not encrypted to an encrypted table. Files that were there before stay as they are,
/// until they are rewritten.
fn check_encrypted(base: &TableMetadata, changes: &FileChanges) -> Result<()> {
    if key_length(base.properties())?.is_none() {
        return Ok(());
    }
    let plain = |file: &&DataFile| file.key_metadata.is_none();
    match changes.added().iter().chain(changes.added_deletes()).find(plain) {
        Some(file) => Err(Error::Validation(format!(
            "{}: is not encrypted, but the table is ({} is set): write its rows to the table instead of adding the file",
            file.file_path, ENCRYPTION_TABLE_KEY.name
        ))),
        None => Ok(()),
    }
}

/// The update that moves a branch or creates it.
fn set_branch(base: &TableMetadata, branch: &str, snapshot_id: i64) -> MetadataUpdate {
    let fresh =
        SnapshotRef { snapshot_id, kind: RefKind::BRANCH, max_ref_age_ms: None, unknown: serde_json::Map::new() };
    let reference = SnapshotRef { snapshot_id, ..base.reference(branch).cloned().unwrap_or(fresh) };
    MetadataUpdate::SetSnapshotRef { ref_name: branch.to_owned(), reference }
}

/// Updates that change nothing and fail if the snapshot has expired: a tag that is created and removed. A service has no
/// requirement for this, and would add a snapshot whose files the expiry has deleted. `change` begins the name of the tag.
pub(crate) fn if_there(base: &TableMetadata, change: &str, snapshot_id: i64) -> [MetadataUpdate; 2] {
    let mut ref_name = format!("{change}-{snapshot_id}");
    while base.reference(&ref_name).is_some() {
        ref_name.push('_');
    }
    let reference = SnapshotRef::tag(snapshot_id);
    [
        MetadataUpdate::SetSnapshotRef { ref_name: ref_name.clone(), reference },
        MetadataUpdate::RemoveSnapshotRef { ref_name },
    ]
}

/// A random snapshot id, which must be positive.
fn new_snapshot_id() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    ((high ^ low).cast_signed() & i64::MAX).max(1)
}
