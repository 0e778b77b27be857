//! Which delete files apply to which data files ("Scan Planning", the rules of delete files).
//!
//! | delete | applies to a data file with | and |
//! | --- | --- | --- |
//! | deletion vector | the referenced path | sequence number of the data file at most its own; position deletes then do not apply |
//! | position deletes of one file | that path | likewise |
//! | position deletes | the same spec and partition | likewise |
//! | equality deletes | the same spec and partition, or any if its spec is unpartitioned | a smaller sequence number, and overlapping bounds |
//!
//! Delete files stay in the columns they were decoded to, and an index numbers them. Lookups by partition happen
//! once for each distinct partition of a manifest.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::sync::Arc;

use arrow_array::Array;
use hashbrown::{DefaultHashBuilder, HashTable};
use icefield_format::Limits;
use icefield_format::expr::Datum;
use icefield_format::manifest::{DataFile, Entries, FileContent, FileFormat};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::reserved::DELETE_FILE_PATH;
use icefield_format::types::{PrimitiveType, Schema};
use icefield_format::value::Value;
use serde::{Deserialize, Serialize};

use super::links::{DeleteLinks, Run};
use super::overlap::{Bound, Of, column_may_meet};
use crate::error::{Error, Result};
use crate::plan::field_metrics::{FieldBounds, FieldMetrics};

/// A delete file and the sequence number that limits what it applies to.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteFile {
    /// Data sequence number.
    pub sequence_number: i64,
    /// The file.
    pub file: DataFile,
}

impl DeleteFile {
    /// Whether it is a deletion vector.
    pub fn is_vector(&self) -> bool {
        self.file.format() == Some(FileFormat::Puffin)
    }
}

/// The kind of a delete file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeleteKind {
    /// Positions in one or more data files.
    Positions,
    /// Positions in one data file, in a Puffin file.
    Vector,
    /// Values of deleted rows.
    Equality,
}

impl DeleteKind {
    /// The kind of a delete file's entry in a manifest.
    pub fn of_entry(entries: &Entries, row: usize) -> Result<Self> {
        match entries.content_of(row)? {
            FileContent::EqualityDeletes => Ok(Self::Equality),
            FileContent::PositionDeletes => match FileFormat::from_name(entries.file_format.value(row)) {
                Some(FileFormat::Puffin) => Ok(Self::Vector),
                _ => Ok(Self::Positions),
            },
            FileContent::Data => {
                Err(Error::corrupt_file(entries.file_path.value(row), "a data file in a manifest of deletes"))
            }
        }
    }
}

/// The delete files of a plan, in columns; data files refer to them by index.
#[derive(Debug, Clone, Default)]
pub struct Deletes {
    sources: Vec<Source>,
    /// The first index of each source.
    starts: Vec<usize>,
    len: usize,
}

/// The delete files of one manifest.
#[derive(Debug, Clone)]
pub struct Source {
    /// The manifest's partition spec.
    pub spec_id: i32,
    /// The files.
    pub entries: Arc<Entries>,
}

impl Deletes {
    /// Number of files.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The manifests of delete files.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    pub(in crate::plan) fn find(&self, place: u32) -> Result<(&Source, usize)> {
        let place = place as usize;
        let at = self.starts.partition_point(|start| *start <= place).wrapping_sub(1);
        let row = self.starts.get(at).map(|start| place - start);
        let found = self.sources.get(at).zip(row).filter(|(source, row)| *row < source.entries.len());
        found.ok_or_else(|| Error::Internal("a delete file without a place".to_owned()))
    }

    /// A delete file as a value.
    pub fn get(&self, place: u32) -> Result<DeleteFile> {
        let (source, row) = self.find(place)?;
        Ok(DeleteFile {
            sequence_number: sequence_number(&source.entries, row),
            file: source.entries.file(row, source.spec_id)?,
        })
    }

    /// All delete files as values, by index.
    pub fn iter(&self) -> impl Iterator<Item = Result<DeleteFile>> {
        (0..u32::try_from(self.len).unwrap_or(u32::MAX)).map(|place| self.get(place))
    }

    /// The kind of a delete file.
    pub fn kind(&self, place: u32) -> Result<DeleteKind> {
        let (source, row) = self.find(place)?;
        DeleteKind::of_entry(&source.entries, row)
    }

    /// Rows of a delete file; for a vector, the number of deleted rows.
    pub fn record_count(&self, place: u32) -> Result<i64> {
        let (source, row) = self.find(place)?;
        Ok(source.entries.record_count.value(row))
    }

    /// Bytes to read of a delete file.
    pub fn content_size(&self, place: u32) -> Result<i64> {
        let (source, row) = self.find(place)?;
        let entries = &source.entries;
        let of_content = &entries.content_size_in_bytes;
        Ok(if of_content.is_valid(row) { of_content.value(row) } else { entries.file_size_in_bytes.value(row) })
    }

    pub(in crate::plan) fn push(&mut self, source: Source) -> Result<u32> {
        let start = u32::try_from(self.len).ok();
        self.starts.push(self.len);
        self.len += source.entries.len();
        self.sources.push(source);
        start
            .filter(|_| u32::try_from(self.len).is_ok())
            .ok_or_else(|| Error::unsupported("more than 2^32 delete files"))
    }
}

fn sequence_number(entries: &Entries, row: usize) -> i64 {
    if entries.sequence_number.is_valid(row) { entries.sequence_number.value(row) } else { 0 }
}

/// Delete files by lookup key: a partition, a path, or all partitions. After [`finish`](Self::finish) each group is a
/// run of one list, ordered by sequence number.
#[derive(Debug)]
pub struct DeleteIndex {
    schema: Arc<Schema>,
    files: Deletes,
    sequence_numbers: Vec<i64>,
    vectors: ByPath,
    positions_of_path: ByPath,
    positions_of_partition: HashMap<Vec<u8>, u32>,
    equality_of_partition: HashMap<Vec<u8>, u32>,
    equality_everywhere: Option<u32>,
    /// The group of each file.
    group_of: Vec<u32>,
    /// Number of files in each group.
    counts: Vec<u32>,
    /// The run of each group in the list.
    runs: Vec<Run>,
    /// File indices, group after group.
    list: Arc<[u32]>,
    /// Bytes to read of the first files of the list, by their number.
    sizes: Vec<i64>,
    /// For each file, the bounds of its equality columns whose types have an order.
    equality: Vec<Vec<(usize, Of<Bound>)>>,
    /// Whether any bounds could exclude a data file.
    has_bounds: bool,
    /// Columns of equality deletes, with their types if known and primitive, and their indices by id.
    tested: Vec<(i32, Option<PrimitiveType>)>,
    tested_places: HashMap<i32, usize>,
    limits: Limits,
}

/// Groups by the path of the data file they apply to.
#[derive(Debug, Default)]
struct ByPath {
    hasher: DefaultHashBuilder,
    table: HashTable<(Box<str>, u32)>,
}

impl ByPath {
    fn get(&self, path: &str) -> Option<u32> {
        if self.table.is_empty() {
            return None;
        }
        let found = self.table.find(self.hasher.hash_one(path), |(known, _)| **known == *path);
        found.map(|(_, group)| *group)
    }

    /// The group of a path; a new one gets the number `next`.
    fn group(&mut self, path: &str, next: u32) -> u32 {
        let hash = self.hasher.hash_one(path);
        let hasher = &self.hasher;
        let slot = self.table.entry(hash, |(known, _)| **known == *path, |(known, _)| hasher.hash_one(&**known));
        slot.or_insert_with(|| (path.into(), next)).get().1
    }
}

impl DeleteIndex {
    /// An empty index; `schema` gives the types of equality columns.
    pub fn new(schema: Arc<Schema>, limits: &Limits) -> Self {
        Self {
            schema,
            limits: *limits,
            files: Deletes::default(),
            sequence_numbers: Vec::new(),
            vectors: ByPath::default(),
            positions_of_path: ByPath::default(),
            positions_of_partition: HashMap::new(),
            equality_of_partition: HashMap::new(),
            equality_everywhere: None,
            group_of: Vec::new(),
            counts: Vec::new(),
            runs: Vec::new(),
            list: Arc::default(),
            sizes: Vec::new(),
            equality: Vec::new(),
            has_bounds: false,
            tested: Vec::new(),
            tested_places: HashMap::new(),
        }
    }

    /// Adds the delete files of a manifest.
    pub fn add(&mut self, spec: &PartitionSpec, entries: Arc<Entries>) -> Result<()> {
        let start = self.files.push(Source { spec_id: spec.spec_id, entries: entries.clone() })?;
        let mut keys = PartitionKeys::new(spec, &entries);
        let bounds = FieldBounds::new(&entries, DELETE_FILE_PATH.id);
        let mut columns: HashMap<i32, FieldMetrics> = HashMap::new();
        for (row, place) in (0..entries.len()).zip(start..) {
            self.sequence_numbers.push(sequence_number(&entries, row));
            let next = u32::try_from(self.counts.len()).unwrap_or(u32::MAX);
            let group = match DeleteKind::of_entry(&entries, row)? {
                DeleteKind::Equality => {
                    // Missing columns are reported when the deletes are applied; here they only give no bounds.
                    let ids: BTreeSet<i32> = equality_ids(&entries, row).into_iter().collect();
                    let known = ids.into_iter().filter(|id| self.schema.find_field(*id).is_some());
                    let of_file = known.collect::<Vec<_>>().into_iter().map(|id| {
                        let columns = columns.entry(id).or_insert_with(|| FieldMetrics::new(&entries, id));
                        let at = self.tested(id);
                        let ty = self.tested.get(at).and_then(|(_, ty)| ty.as_ref())?;
                        Some((at, Of::file(columns, row, ty).map(Bound::of)))
                    });
                    let of_file: Vec<_> = of_file.flatten().collect();
                    self.has_bounds |= of_file.iter().any(|(_, of)| of.tells());
                    self.equality.resize_with(place as usize + 1, Vec::new);
                    if let Some(slot) = self.equality.last_mut() {
                        *slot = of_file;
                    }
                    match spec.is_unpartitioned() {
                        true => *self.equality_everywhere.get_or_insert(next),
                        false => group(&mut self.equality_of_partition, keys.of(row)?, next),
                    }
                }
                DeleteKind::Vector => {
                    let named = &entries.referenced_data_file;
                    if !named.is_valid(row) {
                        let message = "a deletion vector that references no data file";
                        return Err(Error::corrupt_file(entries.file_path.value(row), message));
                    }
                    let path = named.value(row);
                    let group = self.vectors.group(path, next);
                    if group != next {
                        let message = "the snapshot has two deletion vectors for this data file";
                        return Err(Error::corrupt_file(path, message));
                    }
                    group
                }
                DeleteKind::Positions => match referenced(&entries, row, &bounds) {
                    Some(path) => self.positions_of_path.group(path, next),
                    None => group(&mut self.positions_of_partition, keys.of(row)?, next),
                },
            };
            self.group_of.push(group);
            match self.counts.get_mut(group as usize) {
                Some(count) => *count += 1,
                None => self.counts.push(1),
            }
        }
        Ok(())
    }

    /// Sorts the added files.
    pub fn finish(&mut self) -> Result<()> {
        let mut end = 0u32;
        self.runs = (self.counts.iter())
            .map(|count| {
                let start = end;
                end += count;
                Run { start, end: start }
            })
            .collect();
        let mut list = vec![0u32; self.group_of.len()];
        for (place, group) in (0u32..).zip(&self.group_of) {
            let Some(run) = self.runs.get_mut(*group as usize) else { continue };
            if let Some(slot) = list.get_mut(run.end as usize) {
                *slot = place;
            }
            run.end += 1;
        }
        let numbers = &self.sequence_numbers;
        for run in self.runs.iter().filter(|run| run.len() > 1) {
            if let Some(places) = list.get_mut(run.start as usize..run.end as usize) {
                places.sort_by_key(|place| numbers.get(*place as usize).copied().unwrap_or(0));
            }
        }
        self.sizes = vec![0];
        let mut size: i64 = 0;
        for place in &list {
            size = size.saturating_add(self.files.content_size(*place)?);
            self.sizes.push(size);
        }
        self.list = list.into();
        Ok(())
    }

    /// Bytes to read of the deletes of a manifest's files.
    pub fn size(&self, links: &DeleteLinks) -> i64 {
        links.sum(&self.sizes)
    }

    /// The number of files that may apply to more than one data file.
    pub(in crate::plan) fn shared_len(&self) -> usize {
        let partitions = self.positions_of_partition.values().chain(self.equality_of_partition.values());
        let groups = partitions.chain(&self.equality_everywhere);
        groups.filter_map(|group| self.counts.get(*group as usize)).map(|count| *count as usize).sum()
    }

    /// The index of a column among those that equality deletes test.
    fn tested(&mut self, id: i32) -> usize {
        if let Some(known) = self.tested_places.get(&id) {
            return *known;
        }
        let ty = self.schema.find_field(id).and_then(|field| field.ty.as_primitive()).cloned();
        self.tested_places.insert(id, self.tested.len());
        self.tested.push((id, ty));
        self.tested.len() - 1
    }

    /// Columns of the equality deletes; their metrics in data files decide which deletes can match.
    pub fn equality_ids(&self) -> impl Iterator<Item = i32> {
        self.tested.iter().map(|(id, _)| *id)
    }

    /// The files.
    pub fn files(&self) -> &Deletes {
        &self.files
    }

    /// The files alone.
    pub fn into_files(self) -> Deletes {
        self.files
    }

    /// The deletes of each data file of a manifest; `None` if there are no deletes at all.
    pub fn links(&self, spec: &PartitionSpec, entries: &Entries) -> Result<Option<DeleteLinks>> {
        if self.files.is_empty() || entries.is_empty() {
            return Ok(None);
        }
        let by_partition = !self.positions_of_partition.is_empty() || !self.equality_of_partition.is_empty();
        let mut keys = PartitionKeys::new(spec, entries);
        // Look up each distinct partition once.
        let mut found: Vec<Option<OfPartition>> = vec![None; entries.tuples.len()];
        let columns: Vec<FieldMetrics> = self.tested.iter().map(|(id, _)| FieldMetrics::new(entries, *id)).collect();
        let mut links = DeleteLinks::new(self.list.clone(), entries.len());
        let (mut data, mut runs) = (Vec::with_capacity(columns.len()), Vec::new());
        for row in 0..entries.len() {
            let tuple = entries.tuple_of.value(row) as usize;
            let of_partition = match found.get_mut(tuple) {
                Some(slot) if by_partition => match slot {
                    Some(known) => *known,
                    None => *slot.insert(self.of_partition(keys.of(row)?)),
                },
                _ => OfPartition::default(),
            };
            data.clear();
            runs.clear();
            self.link(entries, row, of_partition, &columns, &mut data, &mut runs)?;
            links.next_file(&runs);
            // Bounds can exclude any of many deletes for each of many files, which gives many short runs.
            self.limits.held().keep(links.memory())?;
        }
        Ok(links.some())
    }

    fn of_partition(&self, key: &[u8]) -> OfPartition {
        let of = |known: &HashMap<Vec<u8>, u32>| self.run(known.get(key).copied());
        OfPartition { positions: of(&self.positions_of_partition), equality: of(&self.equality_of_partition) }
    }

    /// The files of a group.
    fn run(&self, group: Option<u32>) -> Run {
        group.and_then(|group| self.runs.get(group as usize)).copied().unwrap_or_default()
    }

    /// The files of a group that are not older than a data file, by sequence number.
    fn newer(&self, run: Run, is_older: impl Fn(i64) -> bool) -> Run {
        let older = run.of(&self.list).partition_point(|place| is_older(self.sequence_number(*place)));
        Run { start: run.start.saturating_add(u32::try_from(older).unwrap_or(u32::MAX)), ..run }
    }

    /// `data` holds the file's metrics of the tested columns and is filled on first use.
    fn link<'c>(
        &self,
        entries: &Entries,
        row: usize,
        of_partition: OfPartition,
        columns: &'c [FieldMetrics],
        data: &mut Vec<Option<Of<Datum<'c>>>>,
        out: &mut Vec<Run>,
    ) -> Result<()> {
        let sequence = sequence_number(entries, row);
        let path = entries.file_path.value(row);
        for group in [self.run(self.equality_everywhere), of_partition.equality] {
            let newer = self.newer(group, |number| number <= sequence);
            if !newer.is_empty() && self.has_bounds && data.is_empty() {
                let of = |((_, ty), column): (&(i32, Option<PrimitiveType>), &'c FieldMetrics)| {
                    ty.as_ref().map(|ty| Of::file(column, row, ty))
                };
                data.extend(self.tested.iter().zip(columns).map(of));
            }
            if !data.iter().flatten().any(Of::tells) {
                newer.add_to(out);
                continue;
            }
            for (rank, place) in (newer.start..).zip(newer.of(&self.list)) {
                if self.may_meet(data, *place) {
                    Run { start: rank, end: rank + 1 }.add_to(out);
                }
            }
        }
        if let Some(vector) = self.vectors.get(path) {
            let run = self.run(Some(vector));
            let number = run.of(&self.list).first().map_or(0, |place| self.sequence_number(*place));
            if number < sequence {
                let message =
                    format!("its deletion vector has sequence number {number}, below the data file's {sequence}");
                return Err(Error::corrupt_file(path, message));
            }
            run.add_to(out);
            return Ok(());
        }
        for group in [of_partition.positions, self.run(self.positions_of_path.get(path))] {
            self.newer(group, |number| number < sequence).add_to(out);
        }
        Ok(())
    }

    fn sequence_number(&self, place: u32) -> i64 {
        self.sequence_numbers.get(place as usize).copied().unwrap_or(0)
    }

    /// Whether rows of an equality delete file may equal rows of a data file, by the metrics of both.
    fn may_meet(&self, data: &[Option<Of<Datum<'_>>>], place: u32) -> bool {
        let deletes = self.equality.get(place as usize).into_iter().flatten();
        let mut both = deletes.filter_map(|(at, delete)| Some((data.get(*at)?.as_ref()?, delete)));
        both.all(|(data, delete)| column_may_meet(data, delete))
    }
}

/// The groups that may apply to all data files of a partition, before sequence numbers and metrics are compared.
#[derive(Debug, Clone, Copy, Default)]
struct OfPartition {
    positions: Run,
    equality: Run,
}

/// The group of a partition; a new one gets the number `next`.
fn group(groups: &mut HashMap<Vec<u8>, u32>, key: &[u8], next: u32) -> u32 {
    match groups.get(key) {
        Some(known) => *known,
        None => *groups.entry(key.to_vec()).or_insert(next),
    }
}

/// The partitions of a manifest as bytes, each computed once.
struct PartitionKeys<'a> {
    spec_id: i32,
    entries: &'a Entries,
    made: Vec<Option<Vec<u8>>>,
}

impl<'a> PartitionKeys<'a> {
    fn new(spec: &PartitionSpec, entries: &'a Entries) -> Self {
        Self { spec_id: spec.spec_id, entries, made: vec![None; entries.tuples.len()] }
    }

    fn of(&mut self, row: usize) -> Result<&[u8]> {
        let tuple = self.entries.tuple_of.value(row) as usize;
        let (spec_id, entries) = (self.spec_id, self.entries);
        let lost = || Error::Internal("an entry without a partition tuple".to_owned());
        let slot = self.made.get_mut(tuple).ok_or_else(lost)?;
        Ok(match slot {
            Some(key) => key,
            None => slot.insert(partition_key(spec_id, &entries.tuple(tuple)?)),
        })
    }
}

pub(super) fn equality_ids(entries: &Entries, row: usize) -> Vec<i32> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    if !entries.equality_ids.is_valid(row) {
        return Vec::new();
    }
    let list = entries.equality_ids.value(row);
    list.as_primitive_opt::<Int32Type>().map_or_else(Vec::new, |ids| ids.values().to_vec())
}

/// The one data file of a position delete file: named, or the only path within its bounds.
fn referenced<'a>(entries: &'a Entries, row: usize, bounds: &'a FieldBounds) -> Option<&'a str> {
    let named = &entries.referenced_data_file;
    if named.is_valid(row) {
        return Some(named.value(row));
    }
    let lower = bounds.lower(row).filter(|lower| bounds.upper(row) == Some(*lower))?;
    std::str::from_utf8(lower).ok()
}

/// A partition as bytes, equal if and only if spec and tuple are.
pub(crate) fn partition_key(spec_id: i32, partition: &[Option<Value>]) -> Vec<u8> {
    let mut key = spec_id.to_le_bytes().to_vec();
    for value in partition {
        let Some(value) = value else {
            key.push(0);
            continue;
        };
        key.push(1);
        let before = key.len();
        match value {
            Value::Boolean(value) => key.push(u8::from(*value)),
            Value::Int(value) => key.extend(value.to_le_bytes()),
            Value::Long(value) => key.extend(value.to_le_bytes()),
            Value::Float(value) => key.extend(value.to_bits().to_le_bytes()),
            Value::Double(value) => key.extend(value.to_bits().to_le_bytes()),
            Value::Decimal(value) => key.extend(value.to_le_bytes()),
            Value::String(value) => key.extend(value.as_bytes()),
            Value::Uuid(value) => key.extend(value),
            Value::Binary(value) => key.extend(value),
            // Partition values are primitive.
            Value::Variant { .. } | Value::Struct(_) | Value::List(_) | Value::Map(_) => {}
        }
        // Add the length, so that values without one cannot run into each other.
        let length = key.len() - before;
        key.extend((length as u64).to_le_bytes());
    }
    key
}
