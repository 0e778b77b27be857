//! Reads manifest lists: the manifests of a snapshot ("Snapshots / Manifest Lists").

use std::fmt;

use crate::avro::{Container, Cursor, Decompressor, Fault, RecordSchema, Schema, Skip};
use crate::encryption::HiddenBytes;
use crate::{Error, Limits, Result};

use super::ManifestContent;
use super::fields::{Known, list as fields};
use super::presence::{PLACE, Presence, reduce, unexpected};

/// A manifest as described by a manifest list.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ManifestFile {
    /// Location.
    pub manifest_path: String,
    /// Length of the manifest in bytes.
    pub manifest_length: i64,
    /// The partition spec that it was written with.
    pub partition_spec_id: i32,
    /// Data or deletes; data in v1.
    pub content: ManifestContent,
    /// Sequence number of the snapshot that added it; 0 in v1.
    /// [`UNASSIGNED`](ManifestFile::UNASSIGNED) before it is committed.
    pub sequence_number: i64,
    /// Smallest data sequence number of its live files; 0 in v1. [`UNASSIGNED`](ManifestFile::UNASSIGNED) before it is
    /// committed, unless some file has a number of its own.
    pub min_sequence_number: i64,
    /// The snapshot that added it.
    pub added_snapshot_id: i64,
    /// Number of entries with status added. Some v1 lists lack this and the other counts.
    pub added_files_count: Option<i32>,
    /// Number of entries with status existing.
    pub existing_files_count: Option<i32>,
    /// Number of entries with status deleted.
    pub deleted_files_count: Option<i32>,
    /// Number of rows in added files.
    pub added_rows_count: Option<i64>,
    /// Number of rows in existing files.
    pub existing_rows_count: Option<i64>,
    /// Number of rows in deleted files.
    pub deleted_rows_count: Option<i64>,
    /// A summary for each partition field, in the order of the spec; `None` if they were not written.
    pub partitions: Option<Vec<FieldSummary>>,
    /// Encryption key metadata of the manifest.
    pub key_metadata: Option<Vec<u8>>,
    /// v3: first row id for rows without one.
    pub first_row_id: Option<i64>,
}

/// Does not print the key.
impl fmt::Debug for ManifestFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManifestFile")
            .field("manifest_path", &self.manifest_path)
            .field("manifest_length", &self.manifest_length)
            .field("partition_spec_id", &self.partition_spec_id)
            .field("content", &self.content)
            .field("sequence_number", &self.sequence_number)
            .field("min_sequence_number", &self.min_sequence_number)
            .field("added_snapshot_id", &self.added_snapshot_id)
            .field("added_files_count", &self.added_files_count)
            .field("existing_files_count", &self.existing_files_count)
            .field("deleted_files_count", &self.deleted_files_count)
            .field("added_rows_count", &self.added_rows_count)
            .field("existing_rows_count", &self.existing_rows_count)
            .field("deleted_rows_count", &self.deleted_rows_count)
            .field("partitions", &self.partitions)
            .field("key_metadata", &self.key_metadata.as_ref().map(|_| HiddenBytes(Vec::new())))
            .field("first_row_id", &self.first_row_id)
            .finish()
    }
}

/// Summary of the values of one partition field in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSummary {
    /// Whether any value is null.
    pub contains_null: bool,
    /// Whether any value is NaN; `None` if unknown.
    pub contains_nan: Option<bool>,
    /// Smallest value, in single-value form; `None` if all are null or NaN.
    pub lower_bound: Option<Vec<u8>>,
    /// Largest value, in single-value form.
    pub upper_bound: Option<Vec<u8>>,
}

/// A manifest list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ManifestList {
    /// The header of the file.
    pub header: ListHeader,
    /// The manifests, in file order.
    pub manifests: Vec<ManifestFile>,
}

/// Header of a manifest list. Every key is optional: readers know the snapshot from the table's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListHeader {
    /// `format-version`; 1 if missing.
    pub format_version: u8,
    /// `snapshot-id`
    pub snapshot_id: Option<i64>,
    /// `parent-snapshot-id`; absent if it is `null`.
    pub parent_snapshot_id: Option<i64>,
    /// `sequence-number`
    pub sequence_number: Option<i64>,
    /// `first-row-id`
    pub first_row_id: Option<i64>,
}

impl ManifestFile {
    /// Placeholder until the commit assigns the sequence number.
    pub const UNASSIGNED: i64 = -1;

    /// Whether it may have added entries; true if unknown, or if its counts contradict each other.
    pub fn has_added_files(&self) -> bool {
        self.may_have(self.added_files_count, self.added_rows_count)
    }

    /// Whether it may have existing entries; true if unknown, or if its counts contradict each other.
    pub fn has_existing_files(&self) -> bool {
        self.may_have(self.existing_files_count, self.existing_rows_count)
    }

    /// Returns false only for a credible count of 0. No writer keeps a manifest without entries, so if all counts are 0
    /// they were not filled in.
    fn may_have(&self, files: Option<i32>, rows: Option<i64>) -> bool {
        let counts = [self.added_files_count, self.existing_files_count, self.deleted_files_count];
        files != Some(0) || rows.is_some_and(|rows| rows != 0) || counts == [Some(0); 3]
    }

    /// Whether it may have deleted entries; true if unknown.
    pub fn has_deleted_files(&self) -> bool {
        self.deleted_files_count.is_none_or(|count| count > 0)
    }

    /// Whether it may list files that are in the snapshot.
    pub fn has_live_files(&self) -> bool {
        self.has_added_files() || self.has_existing_files()
    }

    /// Returns a negative number that a committed manifest must not have, with its name.
    fn negative(&self) -> Option<(&'static str, i64)> {
        let numbers = [("sequence_number", Some(self.sequence_number)), ("first_row_id", self.first_row_id)];
        numbers
            .into_iter()
            .find_map(|(field, number)| number.filter(|number| *number < 0).map(|number| (field, number)))
    }

    /// Memory of the manifest in bytes, with its strings and bounds, in a vector that grows by doubling.
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

/// Reads a manifest list of any version, within the memory that `limits` allows.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<ManifestList> {
    let mut budget = limits.budget(bytes.len()).at_most(limits.decoded_bytes);
    let limits = &budget.of_avro(limits);
    let container = Container::open(bytes)?;
    let schema = container.shared_schema(limits)?;
    let steps = ListSteps::compile(&schema, limits)?;
    let mut decompressor = Decompressor::new(container.codec, limits);
    let mut manifests = Vec::new();
    for (number, block) in container.blocks().enumerate() {
        let block = block?;
        let place = |entry: u64, field: &str| format!("manifest list block {number}, manifest {entry}, {field}");
        let data = decompressor.run(block.data, block.offset)?;
        if block.count > data.len() as u64 / steps.min_bytes {
            let message = format!("claims {} manifests in {} bytes", block.count, data.len());
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
            if let Some((field, number)) = manifest.negative() {
                let message = format!("{number} is below 0: {}", manifest.manifest_path);
                return Err(Error::corrupt_at(place(entry, field), offset, message));
            }
            manifests.push(manifest);
        }
        // The next block reuses this memory.
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

/// Declaration of a field of a manifest list: whether writers must have it, and how its value is stored.
struct ListField<T> {
    field: Known,
    required: bool,
    set: SetValue<T>,
}

/// How to read a field, and the function that stores its value; a null is not stored.
enum SetValue<T> {
    Number(fn(&mut T, i64) -> Result<(), Fault>),
    Bytes(fn(&mut T, &[u8]) -> Result<(), Fault>),
    Boolean(fn(&mut T, bool)),
    Summaries(fn(&mut T, Vec<FieldSummary>)),
}

const fn required<T>(field: Known, set: SetValue<T>) -> ListField<T> {
    ListField { field, required: true, set }
}

const fn optional<T>(field: Known, set: SetValue<T>) -> ListField<T> {
    ListField { field, required: false, set }
}

fn int(number: i64) -> Result<i32, Fault> {
    i32::try_from(number).map_err(|_| Fault::Range)
}

/// Creates a function that stores a number in a field, converted to its type.
macro_rules! number {
    ($field:ident) => {
        SetValue::Number(|file, number| {
            file.$field = number.into();
            Ok(())
        })
    };
    ($field:ident: int) => {
        SetValue::Number(|file, number| {
            file.$field = int(number)?.into();
            Ok(())
        })
    };
}

const MANIFEST: [ListField<ManifestFile>; 16] = [
    required(
        fields::PATH,
        SetValue::Bytes(|file, path| {
            file.manifest_path = std::str::from_utf8(path).map_err(|_| Fault::Text)?.to_owned();
            Ok(())
        }),
    ),
    required(fields::LENGTH, number!(manifest_length)),
    required(fields::SPEC_ID, number!(partition_spec_id: int)),
    optional(
        fields::CONTENT,
        SetValue::Number(|file, content| {
            file.content = ManifestContent::from_id(int(content)?).map_err(|_| Fault::Range)?;
            Ok(())
        }),
    ),
    optional(fields::SEQUENCE_NUMBER, number!(sequence_number)),
    optional(fields::MIN_SEQUENCE_NUMBER, number!(min_sequence_number)),
    required(fields::SNAPSHOT_ID, number!(added_snapshot_id)),
    optional(fields::ADDED_FILES, number!(added_files_count: int)),
    optional(fields::EXISTING_FILES, number!(existing_files_count: int)),
    optional(fields::DELETED_FILES, number!(deleted_files_count: int)),
    optional(fields::ADDED_ROWS, number!(added_rows_count)),
    optional(fields::EXISTING_ROWS, number!(existing_rows_count)),
    optional(fields::DELETED_ROWS, number!(deleted_rows_count)),
    optional(fields::PARTITIONS, SetValue::Summaries(|file, summaries| file.partitions = Some(summaries))),
    optional(
        fields::KEY_METADATA,
        SetValue::Bytes(|file, key| {
            file.key_metadata = Some(key.to_vec());
            Ok(())
        }),
    ),
    optional(fields::FIRST_ROW_ID, number!(first_row_id)),
];

const SUMMARY: [ListField<FieldSummary>; 4] = [
    required(fields::CONTAINS_NULL, SetValue::Boolean(|summary, is_so| summary.contains_null = is_so)),
    optional(fields::CONTAINS_NAN, SetValue::Boolean(|summary, is_so| summary.contains_nan = Some(is_so))),
    optional(
        fields::LOWER_BOUND,
        SetValue::Bytes(|summary, bound| {
            summary.lower_bound = Some(bound.to_vec());
            Ok(())
        }),
    ),
    optional(
        fields::UPPER_BOUND,
        SetValue::Bytes(|summary, bound| {
            summary.upper_bound = Some(bound.to_vec());
            Ok(())
        }),
    ),
];

/// The compiled steps that read one manifest of a list.
struct ListSteps {
    steps: Vec<ListStep<ManifestFile>>,
    min_bytes: u64,
    /// Limit of summaries per manifest: a spec has at most as many fields as a schema may have.
    most_summaries: usize,
}

/// A step that reads or skips one field of the writer's record.
enum ListStep<T> {
    ReadValue { name: &'static str, presence: Presence, required: bool, read: ReadValue<T> },
    Skip(Skip),
}

/// How to read the value of a field, and the function that stores it.
enum ReadValue<T> {
    Number(fn(&mut T, i64) -> Result<(), Fault>),
    Bytes(fn(&mut T, &[u8]) -> Result<(), Fault>),
    Boolean(fn(&mut T, bool)),
    Summaries(fn(&mut T, Vec<FieldSummary>), Vec<ListStep<FieldSummary>>),
}

impl ListSteps {
    fn compile(schema: &Schema, limits: &Limits) -> Result<Self> {
        let Schema::Record(record) = schema else { return Err(unexpected("manifest_file", schema, "a record")) };
        Ok(Self {
            steps: compile(record, &MANIFEST)?,
            min_bytes: Skip::of(schema).min_bytes().max(1),
            most_summaries: limits.fields,
        })
    }

    fn manifest(&self, cursor: &mut Cursor<'_>, at: &mut &'static str) -> Result<ManifestFile, Fault> {
        let mut file = ManifestFile::default();
        for step in &self.steps {
            *at = step.name();
            step.run(cursor, &mut file, self.most_summaries)?;
        }
        *at = "end";
        Ok(file)
    }
}

/// Compiles the steps for a record, in its field order; undeclared fields are skipped.
fn compile<T>(record: &RecordSchema, declared: &[ListField<T>]) -> Result<Vec<ListStep<T>>> {
    let mut found = Vec::with_capacity(declared.len());
    for declared in declared {
        let Known { id, names } = declared.field;
        match record.field(id, names) {
            Some((index, _)) => found.push((index, declared)),
            None if declared.required => {
                let name = declared.field.name();
                return Err(Error::corrupt(PLACE, format!("required field {name} (id {id}) is missing")));
            }
            None => {}
        }
    }
    let step = |(index, field): (usize, &crate::avro::RecordField)| match found.iter().find(|(at, _)| *at == index) {
        Some((_, declared)) => declared.step(&field.schema),
        None => Ok(ListStep::Skip(Skip::of(&field.schema))),
    };
    record.fields.iter().enumerate().map(step).collect()
}

impl<T> ListField<T> {
    fn step(&self, schema: &Schema) -> Result<ListStep<T>> {
        let name = self.field.name();
        let wrong = || unexpected(name, schema, "a value of another type");
        let (presence, inner) = reduce(schema).ok_or_else(wrong)?;
        let read = match (&self.set, inner) {
            // An optional field that is always null in this file.
            (_, Schema::Null) => return Ok(ListStep::Skip(Skip::of(schema))),
            (SetValue::Number(set), Schema::Int(_) | Schema::Long(_)) => ReadValue::Number(*set),
            (SetValue::Bytes(set), Schema::String(_) | Schema::Bytes(_)) => ReadValue::Bytes(*set),
            (SetValue::Boolean(set), Schema::Boolean) => ReadValue::Boolean(*set),
            (SetValue::Summaries(set), Schema::Array(array)) => match &array.items {
                Schema::Record(summary) => ReadValue::Summaries(*set, compile(summary, &SUMMARY)?),
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        Ok(ListStep::ReadValue { name, presence, required: self.required, read })
    }
}

impl<T> ListStep<T> {
    /// Name of the field, for errors.
    fn name(&self) -> &'static str {
        match self {
            Self::ReadValue { name, .. } => name,
            Self::Skip(_) => "?",
        }
    }

    fn run(&self, cursor: &mut Cursor<'_>, to: &mut T, most_summaries: usize) -> Result<(), Fault> {
        let (presence, required, read) = match self {
            Self::ReadValue { presence, required, read, .. } => (presence, *required, read),
            Self::Skip(skip) => return skip.run(cursor),
        };
        match read {
            _ if !presence.is_some(cursor)? => return if required { Err(Fault::Branch) } else { Ok(()) },
            ReadValue::Number(set) => set(to, cursor.long()?)?,
            ReadValue::Bytes(set) => set(to, cursor.bytes()?)?,
            ReadValue::Boolean(set) => set(to, cursor.boolean()?),
            ReadValue::Summaries(set, steps) => set(to, summaries(cursor, steps, most_summaries)?),
        }
        Ok(())
    }
}

fn summaries(
    cursor: &mut Cursor<'_>,
    steps: &[ListStep<FieldSummary>],
    most: usize,
) -> Result<Vec<FieldSummary>, Fault> {
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
            steps.iter().try_for_each(|step| step.run(cursor, &mut summary, 0))?;
            summaries.push(summary);
        }
    }
}
