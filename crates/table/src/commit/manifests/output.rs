//! The files that one commit writes to the metadata folder: under unique names, and deleted if unused.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use icefield_format::avro::{Codec, Compression};
use icefield_format::encryption::KeyMetadata;
use icefield_format::encryption::stream::encrypt_new;
use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::{ManifestOptions, ManifestWriter};
use icefield_format::manifest::{DataFile, ManifestContent};
use icefield_format::metadata::properties::{
    ENCRYPTION_TABLE_KEY, MANIFEST_COMPRESSION, MANIFEST_COMPRESSION_LEVEL, MANIFEST_TARGET_SIZE_BYTES,
};
use icefield_format::metadata::{FormatVersion, TableMetadata};
use uuid::Uuid;

use super::specs::Spec;
use crate::commit::metadata_file::metadata_folder;
use crate::error::{Error, Result};
use crate::storage::{Existing, Storage};
use crate::write::key_length;

/// What the manifests that an attempt writes depend on: the format version, the schema id, and the length of keys if
/// they are encrypted. A later attempt does not reuse those of another basis.
pub(crate) type Basis = (FormatVersion, i32, Option<usize>);

/// What new manifests of the table depend on.
pub(crate) fn basis(base: &TableMetadata) -> Result<Basis> {
    Ok((base.format_version(), base.current_schema_id(), key_length(base.properties())?))
}

/// Refuses a key that would be readable in a plain manifest or manifest list. The keys of other systems, which are
/// themselves encrypted, pass.
pub(in crate::commit) fn refuse_key(path: &str, key: Option<&[u8]>) -> Result<()> {
    match key.map(KeyMetadata::from_bytes) {
        Some(Ok(_)) => Err(Error::Validation(format!(
            "{path}: is encrypted, and without {0} its key would be stored unencrypted: set {0} again, or replace all \
             files of the table in one commit (an overwrite, or a compaction with rewrite-all)",
            ENCRYPTION_TABLE_KEY.name
        ))),
        _ => Ok(()),
    }
}

/// How manifests of a table are written.
#[derive(Debug)]
pub(in crate::commit) struct Form {
    version: u8,
    folder: String,
    compression: Compression,
    /// Length in bytes above which a manifest gets no more files.
    pub(super) target: usize,
    /// Length in bytes of the keys of manifests; `None` if they are not encrypted.
    key_length: Option<usize>,
}

impl Form {
    pub(in crate::commit) fn of(base: &TableMetadata) -> Result<Self> {
        let target = MANIFEST_TARGET_SIZE_BYTES.read(base.properties())?;
        Ok(Self {
            version: base.format_version().number(),
            folder: metadata_folder(base)?,
            compression: compression(base)?,
            target: usize::try_from(target).unwrap_or(usize::MAX).max(1),
            key_length: key_length(base.properties())?,
        })
    }

    /// Ends a manifest: its bytes as they are stored, and its entry for a manifest list.
    pub(super) fn finish(&self, writer: ManifestWriter, location: &str) -> Result<(Vec<u8>, ManifestFile)> {
        let (bytes, manifest) = writer.finish(location)?;
        let Some(key_length) = self.key_length else { return Ok((bytes, manifest)) };
        let (stored, key) = encrypt_new(&bytes, key_length)?;
        let manifest_length = i64::try_from(stored.len()).unwrap_or(i64::MAX);
        Ok((stored, ManifestFile { manifest_length, key_metadata: Some(key.to_bytes()), ..manifest }))
    }

    /// Refuses a plain file in an encrypted table.
    pub(super) fn check_file(&self, file: &DataFile) -> Result<()> {
        if self.key_length.is_none() || file.key_metadata.is_some() {
            return Ok(());
        }
        Err(Error::Validation(format!(
            "{}: is not encrypted, but the table is ({} is set): write its rows to the table instead of adding the file",
            file.file_path, ENCRYPTION_TABLE_KEY.name
        )))
    }

    /// Refuses a plain manifest, which has bounds, in an encrypted table.
    pub(in crate::commit) fn check_manifest(&self, manifest: &ManifestFile) -> Result<()> {
        if self.key_length.is_none() || manifest.key_metadata.is_some() {
            return Ok(());
        }
        Err(Error::Validation(format!(
            "{}: this manifest is not encrypted, but the table is ({} is set): write it with the table's \
             new_manifest_writer",
            manifest.manifest_path, ENCRYPTION_TABLE_KEY.name
        )))
    }

    /// The location of a file with this name.
    pub(super) fn location(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}

/// A writer for a manifest of a snapshot, or of none yet ([`ManifestFile::UNASSIGNED`]).
pub(super) fn new_writer(
    form: &Form,
    spec: &Spec,
    content: ManifestContent,
    snapshot_id: i64,
) -> Result<ManifestWriter> {
    let writer = ManifestWriter::new(ManifestOptions {
        format_version: form.version,
        content,
        schema: &spec.schema,
        spec: &spec.spec,
        snapshot_id,
        first_row_id: None,
        compression: form.compression,
        sync: *Uuid::new_v4().as_bytes(),
    })?;
    Ok(if form.key_length.is_none() {
        writer.that_is_plain(|key| KeyMetadata::from_bytes(key).is_ok())
    } else {
        writer
    })
}

/// The compression of manifests and manifest lists.
pub(in crate::commit) fn compression(base: &TableMetadata) -> Result<Compression> {
    let codec = Codec::from_property(MANIFEST_COMPRESSION.read(base.properties()))?;
    let level = MANIFEST_COMPRESSION_LEVEL.read(base.properties())?;
    Ok(Compression { codec, level: level.and_then(|level| i32::try_from(level).ok()) })
}

/// A manifest that is encoded but not yet written.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) manifest: ManifestFile,
    bytes: Vec<u8>,
}

/// Identifies a manifest together with the values that its entries inherit. Manifests that a transaction wrote earlier
/// keep their paths in the next attempt, but get new sequence numbers and row ids.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ManifestKey {
    path: String,
    sequence_number: i64,
    first_row_id: Option<i64>,
}

impl ManifestKey {
    pub(crate) fn of(manifest: &ManifestFile) -> Self {
        Self {
            path: manifest.manifest_path.clone(),
            sequence_number: manifest.sequence_number,
            first_row_id: manifest.first_row_id,
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// Writes the files of one snapshot.
#[derive(Debug)]
pub(in crate::commit) struct Output {
    storage: Storage,
    snapshot_id: i64,
    /// Shared by the names of all files of the commit, so that they are found together.
    uuid: Uuid,
    count: AtomicU32,
    /// All files written, used or not.
    written: Mutex<Vec<String>>,
    /// The caller's files that the table owns once the commit lands.
    adopted: Mutex<Vec<String>>,
}

impl Output {
    pub(super) fn new(storage: Storage, snapshot_id: i64) -> Arc<Self> {
        Arc::new(Self {
            storage,
            snapshot_id,
            uuid: Uuid::new_v4(),
            count: AtomicU32::new(0),
            written: Mutex::default(),
            adopted: Mutex::default(),
        })
    }

    pub(in crate::commit) fn storage(&self) -> &Storage {
        &self.storage
    }

    pub(super) fn snapshot_id(&self) -> i64 {
        self.snapshot_id
    }

    pub(in crate::commit) fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Writes a file of the commit and returns its location.
    pub(super) fn put(&self, location: String, bytes: Vec<u8>) -> Result<String> {
        // Remembered first: a write that reports an error may still have created the file.
        locked(&self.written).push(location.clone());
        self.storage.put(&location, bytes, Existing::Refuse)?;
        Ok(location)
    }

    /// A writer for a manifest of this snapshot.
    pub(super) fn writer(&self, form: &Form, spec: &Spec, content: ManifestContent) -> Result<ManifestWriter> {
        new_writer(form, spec, content, self.snapshot_id)
    }

    /// Encodes a manifest under the next free name.
    pub(super) fn encode(&self, form: &Form, writer: ManifestWriter) -> Result<Encoded> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (bytes, manifest) = form.finish(writer, &form.location(&format!("{}-m{number}.avro", self.uuid)))?;
        Ok(Encoded { manifest, bytes })
    }

    /// Writes an encoded manifest.
    pub(super) fn put_manifest(&self, encoded: Encoded) -> Result<ManifestFile> {
        self.put(encoded.manifest.manifest_path.clone(), encoded.bytes)?;
        Ok(encoded.manifest)
    }

    /// Encodes a manifest and writes it.
    pub(super) fn finish(&self, form: &Form, writer: ManifestWriter) -> Result<ManifestFile> {
        self.put_manifest(self.encode(form, writer)?)
    }

    /// All files written and not deleted since.
    pub(in crate::commit) fn written(&self) -> Vec<String> {
        locked(&self.written).clone()
    }

    /// Lets the table own this file of the caller once the commit lands; the caller keeps it if the commit fails.
    pub(in crate::commit) fn adopt(&self, location: &str) {
        let mut adopted = locked(&self.adopted);
        if !adopted.iter().any(|known| known == location) {
            adopted.push(location.to_owned());
        }
    }

    /// Handles a commit that has landed: deletes files that its snapshot does not use.
    pub(in crate::commit) fn landed(&self, used: &[String]) {
        let adopted = std::mem::take(&mut *locked(&self.adopted));
        locked(&self.written).extend(adopted);
        self.clean(used);
    }

    /// Deletes all written files except the used ones.
    pub(in crate::commit) fn clean(&self, used: &[String]) {
        let mut written = locked(&self.written);
        let (kept, wasted) = std::mem::take(&mut *written).into_iter().partition(|path| used.contains(path));
        *written = kept;
        let wasted: Vec<String> = wasted;
        self.storage.discard(&wasted, "manifests and manifest lists that the commit does not use");
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
