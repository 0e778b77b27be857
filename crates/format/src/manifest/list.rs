//! Manifest lists: the manifests of a snapshot ("Snapshots / Manifest Lists").

use crate::avro::{Container, Cursor, Decompressor, Fault, RecordSchema, Schema, Skip};
use crate::{Error, Limits, Result};

use super::ManifestContent;
use super::fields::{Known, list as fields};
use super::presence::{PLACE, Presence, reduce, unexpected};

/// A manifest, as a manifest list describes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestFile {
    /// Location.
    pub manifest_path: String,
    /// Length in bytes.
    pub manifest_length: i64,
    /// The partition spec it was written with.
    pub partition_spec_id: i32,
    /// Data or deletes; data in v1.
    pub content: ManifestContent,
    /// Sequence number of the snapshot that added it; 0 in v1.
    /// [`UNASSIGNED`](ManifestFile::UNASSIGNED) before it is committed.
    pub sequence_number: i64,
    /// Smallest data sequence number of its live files; 0 in v1.
    /// [`UNASSIGNED`](ManifestFile::UNASSIGNED) before it is committed, where no file has one of its own.
    pub min_sequence_number: i64,
    /// The snapshot that added it.
    pub added_snapshot_id: i64,
    /// Entries with status added. Like the other counts not known in some v1 lists.
    pub added_files_count: Option<i32>,
    /// Entries with status existing.
    pub existing_files_count: Option<i32>,
    /// Entries with status deleted.
    pub deleted_files_count: Option<i32>,
    /// Rows of added files.
    pub added_rows_count: Option<i64>,
    /// Rows of existing files.
    pub existing_rows_count: Option<i64>,
    /// Rows of deleted files.
    pub deleted_rows_count: Option<i64>,
    /// A summary a partition field, in the order of the spec; `None` where they were not written.
    pub partitions: Option<Vec<FieldSummary>>,
    /// How the manifest is encrypted.
    pub key_metadata: Option<Vec<u8>>,
    /// v3: first row id for its new rows.
    pub first_row_id: Option<i64>,
}

/// The values of one partition field in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSummary {
    /// Whether one is null.
    pub contains_null: bool,
    /// Whether one is NaN; `None` where that is not known.
    pub contains_nan: Option<bool>,
    /// The smallest, in single-value form; `None` where all are null or NaN.
    pub lower_bound: Option<Vec<u8>>,
    /// The largest, in single-value form.
    pub upper_bound: Option<Vec<u8>>,
}

/// A manifest list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestList {
    /// What the header says.
    pub header: ListHeader,
    /// The manifests, in their order.
    pub manifests: Vec<ManifestFile>,
}

/// The header of a manifest list. Each key may be missing: readers know the snapshot from the table's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListHeader {
    /// `format-version`; 1 where it is missing.
    pub format_version: u8,
    /// `snapshot-id`
    pub snapshot_id: Option<i64>,
    /// `parent-snapshot-id`; absent where it is `null`.
    pub parent_snapshot_id: Option<i64>,
    /// `sequence-number`
    pub sequence_number: Option<i64>,
    /// `first-row-id`
    pub first_row_id: Option<i64>,
}

impl ManifestFile {
    /// Stands for the sequence number that the commit will give.
    pub const UNASSIGNED: i64 = -1;

    /// Whether it may have added entries; true where that is not known.
    pub fn has_added_files(&self) -> bool {
        self.added_files_count.is_none_or(|count| count > 0)
    }

    /// Whether it may have existing entries; true where that is not known.
    pub fn has_existing_files(&self) -> bool {
        self.existing_files_count.is_none_or(|count| count > 0)
    }

    /// Whether it may have deleted entries; true where that is not known.
    pub fn has_deleted_files(&self) -> bool {
        self.deleted_files_count.is_none_or(|count| count > 0)
    }

    /// Whether it may have files of the snapshot.
    pub fn has_live_files(&self) -> bool {
        self.has_added_files() || self.has_existing_files()
    }

    /// What it takes in a list that grows by doubling, with its texts and bounds.
    pub fn memory(&self) -> usize {
        const ALLOCATION: usize = 16;
        let bound = |bound: &Option<Vec<u8>>| bound.as_ref().map_or(0, |bytes| bytes.len() + ALLOCATION);
        let summary = |summary: &FieldSummary| {
            2 * size_of::<FieldSummary>() + bound(&summary.lower_bound) + bound(&summary.upper_bound)
        };
        let summaries = self.partitions.iter().flatten().map(summary).sum::<usize>();
        2 * size_of::<Self>() + self.manifest_path.len() + 2 * ALLOCATION + bound(&self.key_metadata) + summaries
    }
}

/// Reads a manifest list of any version. Its memory is bounded by `limits`.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<ManifestList> {
    let mut budget = limits.budget(bytes.len()).at_most(limits.decoded_bytes);
    let limits = &budget.of_avro(limits);
    let container = Container::open(bytes)?;
    let schema = container.schema(limits)?;
    let steps = Steps::compile(&schema, limits)?;
    let mut decompressor = Decompressor::new(container.codec, limits);
    let mut manifests = Vec::new();
    for (number, block) in container.blocks().enumerate() {
        let block = block?;
        let place = |entry: u64, field: &str| format!("manifest list block {number}, manifest {entry}, {field}");
        let data = decompressor.run(block.data, block.offset)?;
        if block.count > data.len() as u64 / steps.min_bytes {
            let message = format!("says it has {} manifests in {} bytes", block.count, data.len());
            return Err(Error::corrupt_at(format!("manifest list block {number}"), block.offset, message));
        }
        budget.charge(data.len()).map_err(|error| error.within(&format!("manifest list block {number}")))?;
        let mut cursor = Cursor::new(data);
        for entry in 0..block.count {
            let mut at = "end";
            let manifest = steps.manifest(&mut cursor, &mut at);
            let offset = (data.len() - cursor.rest().len()) as u64;
            let manifest = manifest.map_err(|fault| fault.at(place(entry, at), offset))?;
            budget.charge(manifest.memory()).map_err(|error| error.within(&place(entry, at)))?;
            manifests.push(manifest);
        }
        // The next block takes the place of this one.
        budget.release(data.len());
        if !cursor.is_empty() {
            let message = format!("{} bytes are left after its last manifest", cursor.rest().len());
            return Err(Error::corrupt_at(format!("manifest list block {number}"), block.offset, message));
        }
    }
    Ok(ManifestList { header: ListHeader::of(&container), manifests })
}

impl ListHeader {
    fn of(container: &Container<'_>) -> Self {
        let number = |key| container.text(key).and_then(|text| text.trim().parse().ok());
        Self {
            format_version: container.text("format-version").and_then(|text| text.trim().parse().ok()).unwrap_or(1),
            snapshot_id: number("snapshot-id"),
            parent_snapshot_id: number("parent-snapshot-id"),
            sequence_number: number("sequence-number"),
            first_row_id: number("first-row-id"),
        }
    }
}

/// What a field of a manifest list is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Boolean,
    Summaries,
}

/// Fields, what they are read as, and whether they must be there.
const MANIFEST: [(Known, Kind, bool); 16] = [
    (fields::PATH, Kind::Text, true),
    (fields::LENGTH, Kind::Number, true),
    (fields::SPEC_ID, Kind::Number, true),
    (fields::CONTENT, Kind::Number, false),
    (fields::SEQUENCE_NUMBER, Kind::Number, false),
    (fields::MIN_SEQUENCE_NUMBER, Kind::Number, false),
    (fields::SNAPSHOT_ID, Kind::Number, true),
    (fields::ADDED_FILES, Kind::Number, false),
    (fields::EXISTING_FILES, Kind::Number, false),
    (fields::DELETED_FILES, Kind::Number, false),
    (fields::ADDED_ROWS, Kind::Number, false),
    (fields::EXISTING_ROWS, Kind::Number, false),
    (fields::DELETED_ROWS, Kind::Number, false),
    (fields::PARTITIONS, Kind::Summaries, false),
    (fields::KEY_METADATA, Kind::Text, false),
    (fields::FIRST_ROW_ID, Kind::Number, false),
];

const SUMMARY: [(Known, Kind, bool); 4] = [
    (fields::CONTAINS_NULL, Kind::Boolean, true),
    (fields::CONTAINS_NAN, Kind::Boolean, false),
    (fields::LOWER_BOUND, Kind::Text, false),
    (fields::UPPER_BOUND, Kind::Text, false),
];

/// A step over one field; `id` is -1 where it is passed over.
#[derive(Debug)]
struct Step {
    id: i32,
    name: &'static str,
    presence: Presence,
    /// How to pass over the value, or over a value of an array.
    skip: Skip,
    summary: Vec<Step>,
}

/// A field's value.
enum Value<'b> {
    None,
    Number(i64),
    Bytes(&'b [u8]),
    Boolean(bool),
    Summaries(Vec<FieldSummary>),
}

impl<'b> Value<'b> {
    fn number(self) -> Result<Option<i64>, Fault> {
        match self {
            Self::Number(number) => Ok(Some(number)),
            _ => Ok(None),
        }
    }

    fn int(self) -> Result<Option<i32>, Fault> {
        self.number()?.map(i32::try_from).transpose().map_err(|_| Fault::Range)
    }

    fn required<T>(value: Option<T>) -> Result<T, Fault> {
        value.ok_or(Fault::Branch)
    }

    fn bytes(self) -> Option<&'b [u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// The walk over one manifest of a list.
struct Steps {
    steps: Vec<Step>,
    min_bytes: u64,
    /// Summaries of one manifest, at the most: a spec has no more fields than a schema may have.
    most_summaries: usize,
}

impl Steps {
    fn compile(schema: &Schema, limits: &Limits) -> Result<Self> {
        let Schema::Record(record) = schema else { return Err(unexpected("manifest_file", schema, "a record")) };
        Ok(Self {
            steps: steps(record, &MANIFEST)?,
            min_bytes: Skip::of(schema).min_bytes().max(1),
            most_summaries: limits.fields,
        })
    }

    fn manifest(&self, cursor: &mut Cursor<'_>, at: &mut &'static str) -> Result<ManifestFile, Fault> {
        let mut file = ManifestFile::default();
        for step in &self.steps {
            *at = step.name;
            let value = step.read(cursor, self.most_summaries)?;
            match step.id {
                id if id == fields::PATH.id => {
                    let path = Value::required(value.bytes())?;
                    file.manifest_path = std::str::from_utf8(path).map_err(|_| Fault::Text)?.to_owned();
                }
                id if id == fields::LENGTH.id => file.manifest_length = Value::required(value.number()?)?,
                id if id == fields::SPEC_ID.id => file.partition_spec_id = Value::required(value.int()?)?,
                id if id == fields::CONTENT.id => {
                    file.content = ManifestContent::from_id(value.int()?.unwrap_or(0)).map_err(|_| Fault::Range)?;
                }
                id if id == fields::SEQUENCE_NUMBER.id => file.sequence_number = value.number()?.unwrap_or(0),
                id if id == fields::MIN_SEQUENCE_NUMBER.id => file.min_sequence_number = value.number()?.unwrap_or(0),
                id if id == fields::SNAPSHOT_ID.id => file.added_snapshot_id = Value::required(value.number()?)?,
                id if id == fields::ADDED_FILES.id => file.added_files_count = value.int()?,
                id if id == fields::EXISTING_FILES.id => file.existing_files_count = value.int()?,
                id if id == fields::DELETED_FILES.id => file.deleted_files_count = value.int()?,
                id if id == fields::ADDED_ROWS.id => file.added_rows_count = value.number()?,
                id if id == fields::EXISTING_ROWS.id => file.existing_rows_count = value.number()?,
                id if id == fields::DELETED_ROWS.id => file.deleted_rows_count = value.number()?,
                id if id == fields::KEY_METADATA.id => file.key_metadata = value.bytes().map(<[u8]>::to_vec),
                id if id == fields::FIRST_ROW_ID.id => file.first_row_id = value.number()?,
                _ => {
                    if let Value::Summaries(summaries) = value {
                        file.partitions = Some(summaries);
                    }
                }
            }
        }
        *at = "end";
        Ok(file)
    }
}

fn steps(record: &RecordSchema, known: &[(Known, Kind, bool)]) -> Result<Vec<Step>> {
    let mut found = Vec::with_capacity(known.len());
    for (field, kind, required) in known {
        let name = field.names.first().copied().unwrap_or("?");
        match record.field(field.id, field.names) {
            Some((index, _)) => found.push((index, field.id, name, *kind)),
            None if *required => {
                return Err(Error::corrupt(PLACE, format!("required field {name} (id {}) is missing", field.id)));
            }
            None => {}
        }
    }
    let step = |(index, field): (usize, &crate::avro::RecordField)| {
        let skipped = Step {
            id: -1,
            name: "?",
            presence: Presence::Required,
            skip: Skip::of(&field.schema),
            summary: Vec::new(),
        };
        let Some(&(_, id, name, kind)) = found.iter().find(|(at, ..)| *at == index) else { return Ok(skipped) };
        let wrong = || unexpected(name, &field.schema, "a value of another type");
        let (presence, schema) = reduce(&field.schema).ok_or_else(wrong)?;
        let made = Step { id, name, presence, skip: Skip::of(schema), summary: Vec::new() };
        match (kind, schema) {
            // An optional field that the writer never has.
            (_, Schema::Null) => Ok(skipped),
            (Kind::Number, Schema::Int(_) | Schema::Long(_))
            | (Kind::Text, Schema::String(_) | Schema::Bytes(_))
            | (Kind::Boolean, Schema::Boolean) => Ok(made),
            (Kind::Summaries, Schema::Array(item)) => match &**item {
                Schema::Record(summary) => {
                    Ok(Step { skip: Skip::of(item), summary: steps(summary, &SUMMARY)?, ..made })
                }
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    };
    record.fields.iter().enumerate().map(step).collect()
}

impl Step {
    fn read<'b>(&self, cursor: &mut Cursor<'b>, most_summaries: usize) -> Result<Value<'b>, Fault> {
        if self.id < 0 {
            return self.skip.run(cursor).map(|()| Value::None);
        }
        if !self.presence.is_some(cursor)? {
            return Ok(Value::None);
        }
        match &self.skip {
            _ if !self.summary.is_empty() => self.summaries(cursor, most_summaries).map(Value::Summaries),
            Skip::Varints(_) => cursor.long().map(Value::Number),
            Skip::Prefixed => cursor.bytes().map(Value::Bytes),
            _ => cursor.boolean().map(Value::Boolean),
        }
    }

    fn summaries(&self, cursor: &mut Cursor<'_>, most: usize) -> Result<Vec<FieldSummary>, Fault> {
        let mut summaries = Vec::new();
        loop {
            let (count, _) = cursor.items()?;
            if count == 0 {
                return Ok(summaries);
            }
            if count > (most - summaries.len()) as u64 {
                return Err(Fault::TooLong);
            }
            for _ in 0..count {
                let mut summary = FieldSummary::default();
                for step in &self.summary {
                    let value = step.read(cursor, 0)?;
                    match (step.id, value) {
                        (id, Value::Boolean(value)) if id == fields::CONTAINS_NULL.id => summary.contains_null = value,
                        (id, Value::Boolean(value)) if id == fields::CONTAINS_NAN.id => {
                            summary.contains_nan = Some(value)
                        }
                        (id, Value::Bytes(value)) if id == fields::LOWER_BOUND.id => {
                            summary.lower_bound = Some(value.to_vec())
                        }
                        (id, Value::Bytes(value)) if id == fields::UPPER_BOUND.id => {
                            summary.upper_bound = Some(value.to_vec())
                        }
                        _ => {}
                    }
                }
                summaries.push(summary);
            }
        }
    }
}
