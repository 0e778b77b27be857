//! Which delete files apply to which data files ("Scan Planning", the rules of delete files).
//!
//! | delete | applies to a data file with | and |
//! | --- | --- | --- |
//! | deletion vector | the referenced path | sequence number of the data file at most its own; no other position deletes then |
//! | position deletes of one file | that path | likewise |
//! | position deletes | the same spec and partition | likewise |
//! | equality deletes | the same spec and partition, or any if its spec is unpartitioned | a smaller sequence number, and bounds that meet |

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow_array::Array;
use icefield_format::expr::Datum;
use icefield_format::manifest::{DataFile, Entries, FileContent};
use icefield_format::spec::PartitionSpec;
use icefield_format::types::{PrimitiveType, Schema};
use icefield_format::value::Value;

use crate::error::{Error, Result};

/// Id of the column `file_path` of position delete files ("Reserved Field IDs").
const PATH_ID: i32 = 2_147_483_546;

/// A delete file and the sequence number that decides what it reaches.
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
        self.file.file_format.eq_ignore_ascii_case("puffin")
    }

    /// The one data file that it is about: named, or the only path between its bounds.
    fn referenced(&self) -> Option<&str> {
        if let Some(path) = &self.file.referenced_data_file {
            return Some(path);
        }
        let find = |bounds: &'_ Option<Vec<(i32, Vec<u8>)>>| {
            let found = bounds.as_ref()?.iter().find(|(id, _)| *id == PATH_ID)?;
            Some(found.1.clone())
        };
        let (lower, upper) = (find(&self.file.lower_bounds)?, find(&self.file.upper_bounds)?);
        if lower != upper {
            return None;
        }
        let bounds = self.file.lower_bounds.as_ref()?;
        let (_, bytes) = bounds.iter().find(|(id, _)| *id == PATH_ID)?;
        std::str::from_utf8(bytes).ok()
    }
}

/// The deletes of each file of a manifest: those of file `i` are `places[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteLinks {
    offsets: Vec<u32>,
    places: Vec<u32>,
}

impl DeleteLinks {
    /// Places, in the plan's list of deletes, of those that apply to a file.
    pub fn of(&self, row: usize) -> &[u32] {
        let bound = |at: usize| self.offsets.get(at).map_or(0, |offset| *offset as usize);
        self.places.get(bound(row)..bound(row + 1)).unwrap_or_default()
    }

    /// All links, file after file.
    pub fn places(&self) -> &[u32] {
        &self.places
    }
}

/// Delete files by what they are looked up with. Lists are sorted by sequence number.
#[derive(Debug)]
pub struct DeleteIndex {
    schema: Arc<Schema>,
    files: Vec<DeleteFile>,
    vectors: HashMap<String, u32>,
    positions_of_path: HashMap<String, Vec<u32>>,
    positions_of_partition: HashMap<Vec<u8>, Vec<u32>>,
    equality_of_partition: HashMap<Vec<u8>, Vec<u32>>,
    equality_everywhere: Vec<u32>,
    equality_ids: BTreeSet<i32>,
}

impl DeleteIndex {
    /// An index without files; `schema` tells the types of the columns of equality deletes.
    pub fn new(schema: Arc<Schema>) -> Self {
        Self {
            schema,
            files: Vec::new(),
            vectors: HashMap::new(),
            positions_of_path: HashMap::new(),
            positions_of_partition: HashMap::new(),
            equality_of_partition: HashMap::new(),
            equality_everywhere: Vec::new(),
            equality_ids: BTreeSet::new(),
        }
    }

    /// Adds a delete file.
    pub fn add(&mut self, spec: &PartitionSpec, file: DeleteFile) -> Result<()> {
        let place = u32::try_from(self.files.len()).map_err(|_| Error::unsupported("more than 2^32 delete files"))?;
        match file.file.content {
            FileContent::Data => {
                return Err(Error::corrupt_file(&file.file.file_path, "a data file in a manifest of deletes"));
            }
            FileContent::EqualityDeletes => {
                self.equality_ids.extend(file.file.equality_ids.iter().flatten());
                if spec.is_unpartitioned() {
                    self.equality_everywhere.push(place);
                } else {
                    let key = partition_key(spec.spec_id, &file.file.partition);
                    self.equality_of_partition.entry(key).or_default().push(place);
                }
            }
            FileContent::PositionDeletes if file.is_vector() => {
                let path = file.file.referenced_data_file.clone().ok_or_else(|| {
                    Error::corrupt_file(&file.file.file_path, "a deletion vector that references no data file")
                })?;
                if self.vectors.insert(path.clone(), place).is_some() {
                    return Err(Error::corrupt_file(path, "the snapshot has two deletion vectors for this data file"));
                }
            }
            FileContent::PositionDeletes => match file.referenced() {
                Some(path) => self.positions_of_path.entry(path.to_owned()).or_default().push(place),
                None => {
                    let key = partition_key(spec.spec_id, &file.file.partition);
                    self.positions_of_partition.entry(key).or_default().push(place);
                }
            },
        }
        self.files.push(file);
        Ok(())
    }

    /// Columns of the equality deletes: their metrics in data files tell which of them can meet.
    pub fn equality_ids(&self) -> &BTreeSet<i32> {
        &self.equality_ids
    }

    /// The files, in the order of their places.
    pub fn into_files(self) -> Arc<Vec<DeleteFile>> {
        Arc::new(self.files)
    }

    /// The deletes of each data file of a manifest; none where there are none at all.
    pub fn links(&self, spec: &PartitionSpec, entries: &Entries) -> Result<Option<DeleteLinks>> {
        if self.files.is_empty() || entries.is_empty() {
            return Ok(None);
        }
        let by_partition = !self.positions_of_partition.is_empty() || !self.equality_of_partition.is_empty();
        let mut links = DeleteLinks { offsets: vec![0], places: Vec::new() };
        for row in 0..entries.len() {
            let key = if by_partition { partition_key(spec.spec_id, &entries.partition_of(row)?) } else { Vec::new() };
            self.link(entries, row, &key, &mut links.places)?;
            let end = u32::try_from(links.places.len()).map_err(|_| Error::unsupported("more than 2^32 links"))?;
            links.offsets.push(end);
        }
        Ok(if links.places.is_empty() { None } else { Some(links) })
    }

    fn link(&self, entries: &Entries, row: usize, key: &[u8], out: &mut Vec<u32>) -> Result<()> {
        let sequence = if entries.sequence_number.is_valid(row) { entries.sequence_number.value(row) } else { 0 };
        let path = entries.file_path.value(row);
        for &place in self.equality_everywhere.iter().chain(self.equality_of_partition.get(key).into_iter().flatten()) {
            let delete = self.file(place)?;
            if sequence < delete.sequence_number && self.may_meet(entries, row, &delete.file) {
                out.push(place);
            }
        }
        if let Some(&place) = self.vectors.get(path) {
            let vector = self.file(place)?;
            if vector.sequence_number < sequence {
                return Err(Error::corrupt_file(
                    path,
                    format!(
                        "its deletion vector has sequence number {}, below the data file's {sequence}",
                        vector.sequence_number
                    ),
                ));
            }
            out.push(place);
            return Ok(());
        }
        let of_path = self.positions_of_path.get(path).into_iter().flatten();
        for &place in self.positions_of_partition.get(key).into_iter().flatten().chain(of_path) {
            if sequence <= self.file(place)?.sequence_number {
                out.push(place);
            }
        }
        Ok(())
    }

    fn file(&self, place: u32) -> Result<&DeleteFile> {
        self.files.get(place as usize).ok_or_else(|| Error::Internal("a delete file without a place".to_owned()))
    }

    /// Whether rows of an equality delete file may equal rows of a data file, as far as the metrics of both tell.
    fn may_meet(&self, entries: &Entries, row: usize, delete: &DataFile) -> bool {
        let ids = delete.equality_ids.iter().flatten();
        ids.copied().all(|id| {
            let Some(ty) = self.schema.find_field(id).and_then(|field| field.ty.as_primitive()) else { return true };
            column_may_meet(ty, &Column::of_entry(entries, row, id), &Column::of_file(delete, id))
        })
    }
}

/// What the metrics of a file say about one of its columns.
struct Column {
    values: Option<i64>,
    nulls: Option<i64>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl Column {
    fn of_entry(entries: &Entries, row: usize, id: i32) -> Self {
        let count = |map: &Option<icefield_format::manifest::MetricMap>| {
            map.as_ref().and_then(|map| map.counts_of(row)).and_then(|all| get(&all, id).copied())
        };
        let bound = |map: &Option<icefield_format::manifest::MetricMap>| {
            map.as_ref().and_then(|map| map.bounds_of(row)).and_then(|all| get(&all, id).cloned())
        };
        Self {
            values: count(&entries.value_counts),
            nulls: count(&entries.null_value_counts),
            lower: bound(&entries.lower_bounds),
            upper: bound(&entries.upper_bounds),
        }
    }

    fn of_file(file: &DataFile, id: i32) -> Self {
        Self {
            values: file.value_counts.as_ref().and_then(|all| get(all, id).copied()),
            nulls: file.null_value_counts.as_ref().and_then(|all| get(all, id).copied()),
            lower: file.lower_bounds.as_ref().and_then(|all| get(all, id).cloned()),
            upper: file.upper_bounds.as_ref().and_then(|all| get(all, id).cloned()),
        }
    }

    fn all_null(&self) -> bool {
        self.values.is_some() && self.values == self.nulls
    }

    fn no_null(&self) -> bool {
        self.nulls == Some(0)
    }
}

fn get<T>(all: &[(i32, T)], id: i32) -> Option<&T> {
    all.iter().find(|(found, _)| *found == id).map(|(_, value)| value)
}

fn column_may_meet(ty: &PrimitiveType, data: &Column, delete: &Column) -> bool {
    let some_null = |column: &Column| column.nulls.is_none_or(|nulls| nulls > 0);
    if some_null(data) && some_null(delete) {
        return true;
    }
    if data.all_null() && delete.no_null() || delete.all_null() && data.no_null() {
        return false;
    }
    let bounds = (&data.lower, &data.upper, &delete.lower, &delete.upper);
    let (Some(data_lower), Some(data_upper), Some(lower), Some(upper)) = bounds else { return true };
    let order = |left: &[u8], right: &[u8]| match (Datum::of_bound(ty, left), Datum::of_bound(ty, right)) {
        (Some(left), Some(right)) if !left.is_nan() && !right.is_nan() => Some(left.order(right)),
        _ => None,
    };
    order(data_lower, upper) != Some(Ordering::Greater) && order(lower, data_upper) != Some(Ordering::Greater)
}

/// A partition of a spec as bytes: equal exactly where the tuples are.
fn partition_key(spec_id: i32, partition: &[Option<Value>]) -> Vec<u8> {
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
        // What has no length of its own could run into its neighbour.
        let length = key.len() - before;
        key.extend((length as u64).to_le_bytes());
    }
    key
}
