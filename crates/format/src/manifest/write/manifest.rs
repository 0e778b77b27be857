//! Writes manifests.

use crate::avro::{Compression, ContainerWriter, Encoder, from_type};
use crate::manifest::fields::EntryField;
use crate::manifest::{DataFile, FileContent, ManifestContent, ManifestEntry, ManifestFile, Status};
use crate::spec::{PartitionField, PartitionSpec, untyped};
use crate::types::{Field, PrimitiveType, Schema, StructType};
use crate::value::Value;
use crate::{Error, Result};

use super::field::WriteField;
use super::summary::PartitionSummaries;
use super::texts;

/// v1 requires the block size of each file, which no reader uses; this is the Java library's value.
const BLOCK_SIZE_IN_BYTES: i64 = 64 << 20;

/// Estimated bytes of an entry without its path and bounds.
const WAITING_BYTES: usize = 128;

/// Options for writing a manifest.
#[derive(Debug, Clone, Copy)]
pub struct ManifestOptions<'a> {
    /// Format version: 1, 2 or 3.
    pub format_version: u8,
    /// Data files or delete files.
    pub content: ManifestContent,
    /// The table's schema.
    pub schema: &'a Schema,
    /// The partition spec of all files.
    pub spec: &'a PartitionSpec,
    /// The snapshot that adds the manifest; [`ManifestFile::UNASSIGNED`] if it is not known yet, so that entries
    /// inherit it.
    pub snapshot_id: i64,
    /// v3: first row id, if the manifest replaces one that already had it.
    pub first_row_id: Option<i64>,
    /// Compression of the blocks.
    pub compression: Compression,
    /// Sync marker between blocks: any 16 bytes, preferably random.
    pub sync: [u8; 16],
}

/// Writes a manifest.
#[derive(Debug)]
pub struct ManifestWriter {
    version: u8,
    content: ManifestContent,
    spec_id: i32,
    snapshot_id: i64,
    first_row_id: Option<i64>,
    partition: Vec<PrimitiveType>,
    file: ContainerWriter,
    summaries: PartitionSummaries,
    /// Number of files and rows by status.
    counts: [(i32, i64); 3],
    min_sequence_number: Option<i64>,
    /// Finds key metadata that is itself not encrypted, if the manifest is not encrypted.
    is_open_key: Option<fn(&[u8]) -> bool>,
    /// Entries that wait for the types of their partition values.
    waiting: Option<Box<Waiting>>,
    /// Whether added files keep the row ids that they have.
    keeps_row_ids: bool,
}

/// Entries of a spec with fields whose type only the values tell ([`untyped`]): all of them, because the header of a
/// manifest has the types.
#[derive(Debug)]
struct Waiting {
    schema: Schema,
    spec: PartitionSpec,
    compression: Compression,
    sync: [u8; 16],
    entries: Vec<ManifestEntry>,
    length: usize,
}

impl ManifestWriter {
    /// Starts a manifest without entries.
    pub fn new(options: ManifestOptions<'_>) -> Result<Self> {
        let ManifestOptions { format_version: version, content, schema, spec, compression, sync, .. } = options;
        super::check_version(version)?;
        if version == 1 && content == ManifestContent::Deletes {
            return Err(Error::invalid("format version 1 has no delete files"));
        }
        let mut writer = Self::open(options, &spec.partition_type(schema))?;
        if spec.fields.iter().any(PartitionField::has_unknown_values) {
            let (schema, spec) = (schema.clone(), spec.clone());
            let waiting = Waiting { schema, spec, compression, sync, entries: Vec::new(), length: 0 };
            writer.waiting = Some(Box::new(waiting));
        }
        Ok(writer)
    }

    fn open(options: ManifestOptions<'_>, partition_type: &StructType) -> Result<Self> {
        let ManifestOptions { format_version: version, content, schema, spec, snapshot_id, .. } = options;
        let records = texts::of_manifest(version, partition_type)?;
        let texts = [
            schema.to_json().to_string(),
            schema.schema_id().to_string(),
            spec.to_json_fields().to_string(),
            spec.spec_id.to_string(),
            version.to_string(),
            content.to_string(),
            records.iceberg.clone(),
        ];
        let keys = [
            "schema",
            "schema-id",
            "partition-spec",
            "partition-spec-id",
            "format-version",
            "content",
            "iceberg.schema",
        ];
        let header: Vec<_> = keys
            .into_iter()
            .zip(texts.iter().map(String::as_str))
            // v1 has no content field.
            .filter(|(key, _)| version > 1 || *key != "content")
            .collect();
        let types = partition_type.fields.iter().map(|field| primitive(field).cloned()).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            version,
            content,
            spec_id: spec.spec_id,
            snapshot_id,
            first_row_id: options.first_row_id.filter(|_| version >= 3 && content == ManifestContent::Data),
            file: ContainerWriter::new(&records.avro, &header, options.compression, options.sync)?,
            summaries: PartitionSummaries::new(types.clone()),
            partition: types,
            counts: [(0, 0); 3],
            min_sequence_number: None,
            is_open_key: None,
            waiting: None,
            keeps_row_ids: false,
        })
    }

    /// Lets added files keep the row ids that they have: the manifest is a copy of one whose commit assigned them.
    #[must_use]
    pub fn that_keeps_row_ids(self) -> Self {
        Self { keeps_row_ids: true, ..self }
    }

    /// Lets the writer refuse keys of live files, and leave out those of deleted ones: the manifest is not encrypted.
    /// `is_open_key` finds them by their key metadata; those of other systems, which are themselves encrypted, are written.
    #[must_use]
    pub fn that_is_plain(self, is_open_key: fn(&[u8]) -> bool) -> Self {
        Self { is_open_key: Some(is_open_key), ..self }
    }

    /// Adds a file that the snapshot adds; it inherits its sequence numbers.
    pub fn add_file(&mut self, file: DataFile) -> Result<()> {
        self.add(&ManifestEntry {
            status: Status::Added,
            snapshot_id: Some(self.snapshot_id),
            sequence_number: None,
            file_sequence_number: None,
            file,
        })
    }

    /// Adds an entry. If it is added or deleted and has no snapshot id, it is assigned this manifest's snapshot.
    pub fn add(&mut self, entry: &ManifestEntry) -> Result<()> {
        self.check(entry)?;
        let without_key;
        let mut entry = entry;
        if let (Some(is_open), Some(key)) = (self.is_open_key, &entry.file.key_metadata)
            && is_open(key)
        {
            if entry.status.is_live() {
                return Err(Error::invalid(format!(
                    "{}: is encrypted, and the table is not: its key would be stored unencrypted; set encryption.key-id \
                     again, or replace all files of the table in one commit (an overwrite, or a compaction with rewrite-all)",
                    entry.file.file_path
                )));
            }
            without_key =
                ManifestEntry { file: DataFile { key_metadata: None, ..entry.file.clone() }, ..entry.clone() };
            entry = &without_key;
        }
        if let Some(waiting) = &mut self.waiting {
            let file = &entry.file;
            let bounds = file.lower_bounds.iter().chain(&file.upper_bounds).flatten().map(|(_, bound)| bound.len() + 8);
            waiting.length += WAITING_BYTES + file.file_path.len() + bounds.sum::<usize>();
            waiting.entries.push(entry.clone());
            return Ok(());
        }
        let (version, types, snapshot_id) = (self.version, &self.partition, self.snapshot_id);
        let keeps_row_ids = self.keeps_row_ids;
        self.file.record(|out| write_entry(out, entry, version, types, snapshot_id, keeps_row_ids))?;
        self.summaries.add(&entry.file.partition);
        if let Some((files, rows)) = self.counts.get_mut(entry.status as usize) {
            *files = files.checked_add(1).ok_or_else(|| Error::invalid("a manifest has more than 2^31 entries"))?;
            *rows = rows
                .checked_add(entry.file.record_count)
                .ok_or_else(|| Error::invalid("a manifest has more than 2^63 rows"))?;
        }
        if let Some(number) = entry.sequence_number.filter(|_| entry.status.is_live()) {
            self.min_sequence_number = Some(self.min_sequence_number.map_or(number, |least| least.min(number)));
        }
        Ok(())
    }

    fn check(&self, entry: &ManifestEntry) -> Result<()> {
        let file = &entry.file;
        let fits = (file.content == FileContent::Data) == (self.content == ManifestContent::Data);
        if !fits {
            return Err(Error::invalid(format!(
                "{} does not belong in a manifest of {}",
                file.file_path, self.content
            )));
        }
        if file.partition.len() != self.partition.len() {
            let (has, wants) = (file.partition.len(), self.partition.len());
            return Err(Error::invalid(format!(
                "{} has {has} partition values: the spec has {wants} fields",
                file.file_path
            )));
        }
        let of_this_snapshot = entry.snapshot_id.is_none_or(|id| id == self.snapshot_id);
        if self.version >= 2 && entry.sequence_number.is_none() && !(entry.status == Status::Added && of_this_snapshot)
        {
            return Err(Error::invalid(format!(
                "{} has no sequence number, and only a file that the snapshot adds can inherit one",
                file.file_path
            )));
        }
        Ok(())
    }

    /// The partition spec of all files.
    pub fn spec_id(&self) -> i32 {
        self.spec_id
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.entries.len());
        waiting + self.counts.iter().map(|(files, _)| usize::try_from(*files).unwrap_or(0)).sum::<usize>()
    }

    /// Whether there are no entries yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Approximate length of the file so far, to start a new one at `commit.manifest.target-size-bytes`.
    pub fn length(&self) -> usize {
        self.waiting.as_ref().map_or_else(|| self.file.length(), |waiting| waiting.length)
    }

    /// Returns the bytes of the manifest, and its description for a manifest list; `location` is where it will be
    /// stored.
    ///
    /// # Errors
    /// Partition values whose transform is not known, and that are not those of another manifest, or of another type.
    pub fn finish(mut self, location: &str) -> Result<(Vec<u8>, ManifestFile)> {
        if let Some(waiting) = self.waiting.take() {
            return self.typed(*waiting)?.finish(location);
        }
        let bytes = self.file.finish()?;
        let [existing, added, deleted] = self.counts;
        let described = ManifestFile {
            manifest_path: location.to_owned(),
            manifest_length: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            partition_spec_id: self.spec_id,
            content: self.content,
            sequence_number: ManifestFile::UNASSIGNED,
            min_sequence_number: self.min_sequence_number.unwrap_or(ManifestFile::UNASSIGNED),
            added_snapshot_id: self.snapshot_id,
            added_files_count: Some(added.0),
            existing_files_count: Some(existing.0),
            deleted_files_count: Some(deleted.0),
            added_rows_count: Some(added.1),
            existing_rows_count: Some(existing.1),
            deleted_rows_count: Some(deleted.1),
            partitions: self.summaries.for_list()?,
            key_metadata: None,
            first_row_id: self.first_row_id,
        };
        Ok((bytes, described))
    }
}

impl ManifestWriter {
    /// The writer of the entries that have waited, with the types that their values have.
    fn typed(&self, mut waiting: Waiting) -> Result<Self> {
        let mut partition_type = waiting.spec.partition_type(&waiting.schema);
        for (place, field) in waiting.spec.fields.iter().enumerate().filter(|(_, field)| field.has_unknown_values()) {
            let mut found: Option<PrimitiveType> = None;
            for entry in &mut waiting.entries {
                let Some(Some(value)) = entry.file.partition.get_mut(place) else { continue };
                let path = &entry.file.file_path;
                let read = match &*value {
                    Value::String(text) => untyped::from_text(text).ok(),
                    _ => None,
                };
                let (ty, typed) = read.ok_or_else(|| Error::unsupported(format!(
                    "{path}: partition field {} has the transform {}, whose values are not known here: only files that \
                     have their value from a manifest are written", field.name, described(field)
                )))?;
                match &found {
                    Some(known) if *known != ty => {
                        return Err(Error::unsupported(format!(
                            "{path}: partition field {} has a value of type {ty} here and of type {known} in another \
                             file: they cannot be in one manifest",
                            field.name
                        )));
                    }
                    _ => found = Some(ty),
                }
                *value = typed;
            }
            if let (Some(column), Some(ty)) = (partition_type.fields.get_mut(place), found) {
                column.ty = ty.into();
            }
        }
        let mut writer = Self::open(
            ManifestOptions {
                format_version: self.version,
                content: self.content,
                schema: &waiting.schema,
                spec: &waiting.spec,
                snapshot_id: self.snapshot_id,
                first_row_id: self.first_row_id,
                compression: waiting.compression,
                sync: waiting.sync,
            },
            &partition_type,
        )?;
        writer.keeps_row_ids = self.keeps_row_ids;
        waiting.entries.iter().try_for_each(|entry| writer.add(entry))?;
        Ok(writer)
    }
}

/// The transform of a field without a known type.
fn described(field: &PartitionField) -> String {
    let of = if field.source_ids.len() > 1 { " of several columns" } else { "" };
    format!("{}{of}", field.transform)
}

fn primitive(field: &Field) -> Result<&PrimitiveType> {
    field
        .ty
        .as_primitive()
        .ok_or_else(|| Error::invalid(format!("the partition field {} is not of a primitive type", field.name)))
}

/// Writes an entry. A missing snapshot id stays null if the entry is existing, or if the manifest has no snapshot yet.
fn write_entry(
    out: &mut Encoder,
    entry: &ManifestEntry,
    version: u8,
    types: &[PrimitiveType],
    snapshot_id: i64,
    keeps_row_ids: bool,
) -> Result<()> {
    let inherits = entry.status == Status::Existing || snapshot_id == ManifestFile::UNASSIGNED;
    let snapshot_id = entry.snapshot_id.or((!inherits).then_some(snapshot_id));
    macro_rules! write_fields {
        ($($group:ident { $(#[$doc:meta])* $name:ident: $($declared:tt)* })*) => {$(
            if version >= EntryField::$name.since() {
                match EntryField::$name {
                    EntryField::snapshot_id => snapshot_id.write(out),
                    _ => entry.$name.write(out),
                }
            }
        )*};
    }
    entry_fields!(entry, write_fields);
    write_file(out, entry, version, types, keeps_row_ids)
}

fn write_file(
    out: &mut Encoder,
    entry: &ManifestEntry,
    version: u8,
    types: &[PrimitiveType],
    keeps_row_ids: bool,
) -> Result<()> {
    let file = &entry.file;
    macro_rules! write_fields {
        ($($group:ident { $(#[$doc:meta])* $name:ident: $($declared:tt)* })*) => {$(
            match EntryField::$name {
                EntryField::record_count => write_tuple(out, file, types)?,
                EntryField::column_sizes if version == 1 => out.long(BLOCK_SIZE_IN_BYTES),
                _ => {}
            }
            if version >= EntryField::$name.since() {
                if is_meaningless(EntryField::$name, entry, keeps_row_ids) {
                    out.some(false);
                } else {
                    file.$name.write(out);
                }
            }
        )*};
    }
    entry_fields!(file, write_fields);
    Ok(())
}

/// Whether an optional field has no meaning for this entry; then null is written, whatever value the file has.
fn is_meaningless(field: EntryField, entry: &ManifestEntry, keeps_row_ids: bool) -> bool {
    match field {
        // The commit assigns new row ids to added files.
        EntryField::first_row_id => {
            entry.file.content != FileContent::Data || (entry.status == Status::Added && !keeps_row_ids)
        }
        EntryField::referenced_data_file | EntryField::content_offset | EntryField::content_size_in_bytes => {
            entry.file.content != FileContent::PositionDeletes
        }
        _ => false,
    }
}

fn write_tuple(out: &mut Encoder, file: &DataFile, types: &[PrimitiveType]) -> Result<()> {
    for (value, ty) in file.partition.iter().zip(types) {
        write_partition(out, value.as_ref(), ty).map_err(|error| error.in_file(&file.file_path))?;
    }
    Ok(())
}

fn write_partition(out: &mut Encoder, value: Option<&Value>, ty: &PrimitiveType) -> Result<()> {
    use PrimitiveType as P;
    if *ty == P::Unknown {
        // Always null, which takes no bytes.
        return if value.is_none() { Ok(()) } else { Err(Error::invalid("a partition value of unknown type")) };
    }
    out.some(value.is_some());
    match (ty, value) {
        (_, None) => {}
        (P::Boolean, Some(Value::Boolean(value))) => out.boolean(*value),
        (P::Int | P::Date, Some(Value::Int(value))) => out.int(*value),
        (
            P::Long | P::Time | P::Timestamp | P::Timestamptz | P::TimestampNs | P::TimestamptzNs,
            Some(Value::Long(value)),
        ) => out.long(*value),
        (P::Float, Some(Value::Float(value))) => out.raw(&value.to_le_bytes()),
        (P::Double, Some(Value::Double(value))) => out.raw(&value.to_le_bytes()),
        (P::Decimal { precision, .. }, Some(Value::Decimal(value))) => {
            let whole = value.to_be_bytes();
            let (sign, bytes) = whole.split_at(whole.len().saturating_sub(from_type::decimal_bytes(*precision)));
            let fill = if *value < 0 { 0xff } else { 0 };
            let fits = bytes.first().is_some_and(|first| (*first >= 0x80) == (*value < 0));
            if !fits || sign.iter().any(|byte| *byte != fill) {
                return Err(Error::invalid(format!("the decimal {value} has more than {precision} digits")));
            }
            out.raw(bytes);
        }
        (P::String, Some(Value::String(value))) => out.bytes(value.as_bytes()),
        (P::Uuid, Some(Value::Uuid(value))) => out.raw(value),
        (P::Fixed(size), Some(Value::Binary(value))) if value.len() == *size as usize => out.bytes(value),
        (P::Binary | P::Geometry { .. } | P::Geography { .. }, Some(Value::Binary(value))) => out.bytes(value),
        (ty, Some(value)) => return Err(Error::invalid(format!("{value:?} is not a partition value of type {ty}"))),
    }
    Ok(())
}
