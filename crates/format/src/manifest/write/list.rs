//! Writes manifest lists.

use crate::avro::{Compression, ContainerWriter, Encoder};
use crate::manifest::{FieldSummary, ManifestContent, ManifestFile};
use crate::{Error, Result};

use super::texts;

/// Options for writing a manifest list.
#[derive(Debug, Clone, Copy)]
pub struct ListOptions {
    /// Format version: 1, 2 or 3.
    pub format_version: u8,
    /// Id of the snapshot.
    pub snapshot_id: i64,
    /// Id of its parent.
    pub parent_snapshot_id: Option<i64>,
    /// Its sequence number; unused in v1.
    pub sequence_number: i64,
    /// v3: the table's next row id, which manifests without row ids are assigned from.
    pub first_row_id: Option<i64>,
    /// Compression of the blocks.
    pub compression: Compression,
    /// Sync marker between blocks: any 16 bytes, preferably random.
    pub sync: [u8; 16],
}

/// Writes a manifest list.
#[derive(Debug)]
pub struct ListWriter {
    options: ListOptions,
    file: ContainerWriter,
    next_row_id: Option<i64>,
    manifests: Vec<ManifestFile>,
}

/// A written manifest list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenList {
    /// The bytes of the file.
    pub bytes: Vec<u8>,
    /// The manifests as written, with assigned sequence numbers and row ids.
    pub manifests: Vec<ManifestFile>,
    /// v3: the table's next row id after the snapshot.
    pub next_row_id: Option<i64>,
}

impl ListWriter {
    /// Starts a list without manifests.
    pub fn new(options: ListOptions) -> Result<Self> {
        let version = options.format_version;
        super::check_version(version)?;
        let next_row_id = options.first_row_id.filter(|_| version >= 3);
        if version >= 3 && next_row_id.is_none() {
            return Err(Error::invalid("a manifest list of format version 3 needs the table's next row id"));
        }
        let parent = options.parent_snapshot_id.map_or_else(|| "null".to_owned(), |id| id.to_string());
        let records = texts::of_list(version)?;
        let texts = [
            ("snapshot-id", options.snapshot_id.to_string()),
            ("parent-snapshot-id", parent),
            ("sequence-number", options.sequence_number.to_string()),
            ("first-row-id", next_row_id.unwrap_or_default().to_string()),
            ("format-version", version.to_string()),
            ("iceberg.schema", records.iceberg.clone()),
        ];
        let header: Vec<_> = texts
            .iter()
            .filter(|(key, _)| match *key {
                "sequence-number" => version >= 2,
                "first-row-id" => version >= 3,
                _ => true,
            })
            .map(|(key, text)| (*key, text.as_str()))
            .collect();
        let file = ContainerWriter::new(&records.avro, &header, options.compression, options.sync)?;
        Ok(Self { options, file, next_row_id, manifests: Vec::new() })
    }

    /// Adds a manifest. An unassigned sequence number becomes that of the snapshot; a data manifest without a first row
    /// id is assigned the next one.
    pub fn add(&mut self, manifest: &ManifestFile) -> Result<()> {
        let manifest = self.assigned(manifest)?;
        let version = self.options.format_version;
        self.file.record(|out| write_manifest(out, &manifest, version))?;
        self.manifests.push(manifest);
        Ok(())
    }

    /// Returns the manifest with its sequence numbers and its first row id assigned.
    fn assigned(&mut self, manifest: &ManifestFile) -> Result<ManifestFile> {
        let mut manifest = manifest.clone();
        let options = &self.options;
        if options.format_version == 1 {
            if manifest.content != ManifestContent::Data {
                return Err(Error::invalid("format version 1 has no delete manifests"));
            }
            manifest.sequence_number = 0;
            manifest.min_sequence_number = 0;
            return Ok(manifest);
        }
        for number in [&mut manifest.sequence_number, &mut manifest.min_sequence_number] {
            if *number == ManifestFile::UNASSIGNED {
                if manifest.added_snapshot_id != options.snapshot_id {
                    return Err(Error::invalid(format!(
                        "{} of snapshot {} has no sequence number, and only a manifest of the committed snapshot can be assigned one",
                        manifest.manifest_path, manifest.added_snapshot_id
                    )));
                }
                *number = options.sequence_number;
            }
        }
        if let Some(next) = self.next_row_id {
            if manifest.content == ManifestContent::Deletes {
                manifest.first_row_id = None;
            } else if manifest.first_row_id.is_none() {
                // Count existing rows as well: files of older snapshots may not have row ids yet.
                let rows = count(&manifest, manifest.existing_rows_count)?
                    .checked_add(count(&manifest, manifest.added_rows_count)?);
                if rows.is_some_and(|rows| rows < 0) {
                    return Err(Error::invalid(format!(
                        "{} has files whose record_count is not known (-1), so that their rows get no row ids: rewrite these files \
                         before the table is of version 3",
                        manifest.manifest_path
                    )));
                }
                let after = rows.and_then(|rows| next.checked_add(rows)).filter(|after| *after >= next);
                manifest.first_row_id = Some(next);
                self.next_row_id = Some(after.ok_or_else(|| Error::invalid("all row ids are used up"))?);
            }
        }
        Ok(manifest)
    }

    /// Returns the bytes of the list, and what was assigned.
    pub fn finish(self) -> Result<WrittenList> {
        Ok(WrittenList { bytes: self.file.finish()?, manifests: self.manifests, next_row_id: self.next_row_id })
    }
}

fn count<T>(manifest: &ManifestFile, count: Option<T>) -> Result<T> {
    count.ok_or_else(|| {
        Error::invalid(format!(
            "{} has no counts of files and rows, which manifest lists require from format version 2 on: rewrite it first",
            manifest.manifest_path
        ))
    })
}

fn write_manifest(out: &mut Encoder, manifest: &ManifestFile, version: u8) -> Result<()> {
    out.bytes(manifest.manifest_path.as_bytes());
    out.long(manifest.manifest_length);
    out.int(manifest.partition_spec_id);
    if version >= 2 {
        out.int(manifest.content.id());
        out.long(manifest.sequence_number);
        out.long(manifest.min_sequence_number);
    }
    out.long(manifest.added_snapshot_id);
    let files = [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count];
    let rows = [manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count];
    if version >= 2 {
        for files in files {
            out.int(count(manifest, files)?);
        }
        for rows in rows {
            out.long(count(manifest, rows)?);
        }
        write_summaries(out, manifest.partitions.as_deref());
    } else {
        files.into_iter().for_each(|files| out.optional_long(files.map(i64::from)));
        write_summaries(out, manifest.partitions.as_deref());
        rows.into_iter().for_each(|rows| out.optional_long(rows));
    }
    out.optional_bytes(manifest.key_metadata.as_deref());
    if version >= 3 {
        out.optional_long(manifest.first_row_id);
    }
    Ok(())
}

fn write_summaries(out: &mut Encoder, summaries: Option<&[FieldSummary]>) {
    out.some(summaries.is_some());
    let Some(summaries) = summaries else { return };
    // An Avro array ends with an empty block; an empty array consists of that block only.
    if !summaries.is_empty() {
        out.length(summaries.len());
    }
    for summary in summaries {
        out.boolean(summary.contains_null);
        out.some(summary.contains_nan.is_some());
        summary.contains_nan.into_iter().for_each(|nan| out.boolean(nan));
        out.optional_bytes(summary.lower_bound.as_deref());
        out.optional_bytes(summary.upper_bound.as_deref());
    }
    out.length(0);
}
