//! Manifests that a caller writes before a commit ("Manifests"), to append their files or to replace other manifests.

use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::write::ManifestWriter;
use icefield_format::manifest::{DataFile, ManifestContent, ManifestEntry, Status};
use icefield_format::metadata::TableMetadata;
use uuid::Uuid;

use super::output::{Form, new_writer};
use super::specs::Specs;
use crate::error::{Error, Result};
use crate::storage::{Existing, Storage};

/// Writes a manifest without a snapshot id: the commit that uses it assigns that, sequence numbers and row ids.
///
/// The caller owns the file until the commit lands, the table afterwards.
#[derive(Debug)]
pub struct NewManifest {
    storage: Storage,
    location: String,
    form: Form,
    specs: Specs,
    writer: ManifestWriter,
}

impl NewManifest {
    /// A manifest for files of one partition spec, by default under a unique name in the metadata folder.
    ///
    /// # Errors
    /// A spec that the table does not have; a manifest of delete files in a table of version 1.
    pub fn new(
        storage: Storage,
        base: &TableMetadata,
        spec_id: i32,
        content: ManifestContent,
        location: Option<String>,
    ) -> Result<Self> {
        let (form, specs) = (Form::of(base)?, Specs::of(base));
        let spec = specs.with_id(spec_id);
        let spec = spec.ok_or_else(|| Error::invalid(format!("the table has no partition spec {spec_id}")))?;
        let writer = new_writer(&form, spec, content, ManifestFile::UNASSIGNED)?;
        let location = location.unwrap_or_else(|| form.location(&format!("{}-m0.avro", Uuid::new_v4())));
        Ok(Self { storage, location, form, specs, writer })
    }

    /// Adds an entry with status added, by default with the data sequence number of the commit's snapshot.
    ///
    /// # Errors
    /// A file of another spec or content.
    pub fn add(&mut self, file: DataFile, sequence_number: Option<i64>) -> Result<()> {
        self.put(ManifestEntry {
            status: Status::Added,
            snapshot_id: None,
            sequence_number,
            file_sequence_number: None,
            file,
        })
    }

    /// Adds an entry with status existing: a file of the table, with the snapshot that added it and its sequence
    /// numbers (0 in version 1).
    ///
    /// # Errors
    /// A file of another spec or content.
    pub fn existing(
        &mut self,
        file: DataFile,
        snapshot_id: i64,
        sequence_number: i64,
        file_sequence_number: Option<i64>,
    ) -> Result<()> {
        self.put(ManifestEntry {
            status: Status::Existing,
            snapshot_id: Some(snapshot_id),
            sequence_number: Some(sequence_number),
            file_sequence_number,
            file,
        })
    }

    fn put(&mut self, entry: ManifestEntry) -> Result<()> {
        let (path, id) = (&entry.file.file_path, entry.file.partition_spec_id);
        self.specs.of_file(&entry.file)?;
        if entry.status == Status::Added {
            self.form.check_file(&entry.file)?;
        }
        if id != self.writer.spec_id() {
            let own = self.writer.spec_id();
            return Err(Error::invalid(format!("{path}: has partition spec {id}, and the manifest has {own}")));
        }
        Ok(self.writer.add(&entry)?)
    }

    /// Writes the file and returns its entry for a manifest list.
    ///
    /// # Errors
    /// A file that already exists, and errors of writing it.
    pub fn finish(self) -> Result<ManifestFile> {
        let (bytes, manifest) = self.form.finish(self.writer, &self.location)?;
        self.storage.put(&self.location, bytes, Existing::Refuse)?;
        Ok(manifest)
    }
}
