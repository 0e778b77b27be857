//! A few data files with random rows, and delete files of all kinds that apply to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::DataType;
use icefield_format::expr::Expression;
use icefield_format::puffin::DeletionVector;
use icefield_format::spec::PartitionSpec;
use icefield_format::types::arrow::ToArrow;
use icefield_format::types::reserved::{DELETE_FILE_PATH, DELETE_FILE_POS, DELETE_FILE_ROW};
use icefield_format::types::{Field, PrimitiveType, Schema, StructType};
use icefield_format::value::Value;
use icefield_table::plan::deletes::DeleteKind;
use icefield_table::plan::tasks::part::{DeletePart, FilePart, FilePartition, PlannedSpec};
use icefield_table::storage::{Existing, Storage};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::deletes::rows::{KEYS, Row, batch, current, key_fields, row, stored};
use crate::files::{FORMATS, write_file};

/// A data file before it is written.
#[derive(Debug, Clone)]
pub struct Data {
    pub rows: Vec<Row>,
    pub format: usize,
    pub is_old: bool,
    /// Rows per row group, stripe or block.
    pub group: usize,
    /// The value of `d` of its partition; the file then lacks the column.
    pub d: Option<Option<i32>>,
}

/// A delete file before it is written.
#[derive(Debug, Clone)]
pub enum Delete {
    /// Pairs of a data file and a position; numbers beyond the existing files stand for other files.
    Positions {
        format: usize,
        entries: Vec<(usize, i64)>,
        with_row: bool,
        sorted: bool,
    },
    Vector {
        file: Index,
        positions: Vec<u64>,
    },
    Equality {
        format: usize,
        is_old: bool,
        ids: Vec<i32>,
        rows: Vec<Row>,
        copied: Vec<(Index, Index)>,
    },
}

#[derive(Debug, Clone)]
pub struct World {
    pub data: Vec<Data>,
    pub deletes: Vec<Delete>,
    /// For each delete file and data file, whether the delete file applies.
    pub applies: Vec<Vec<bool>>,
}

const ROWS: usize = 120;

fn data() -> impl Strategy<Value = Data> {
    let d = prop::option::weighted(0.3, prop::sample::select(vec![None, Some(0), Some(18_000)]));
    (prop::collection::vec(row(0..60), 0..ROWS), 0..3usize, any::<bool>(), 1..50usize, d)
        .prop_map(|(rows, format, is_old, group, d)| Data { rows, format, is_old, group, d })
}

fn delete() -> impl Strategy<Value = Delete> {
    let entry = (0..5usize, prop_oneof![6 => 0..ROWS as i64, 1 => 200..1_000_000i64, 1 => Just(i64::MAX / 4)]);
    let run = (0..5usize, 0..ROWS as i64, 0..30i64);
    let entries =
        (prop::collection::vec(entry, 0..40), prop::collection::vec(run, 0..3)).prop_map(|(mut some, runs)| {
            some.extend(
                runs.into_iter().flat_map(|(file, first, count)| (first..first + count).map(move |at| (file, at))),
            );
            some
        });
    let positions = (0..3usize, entries, any::<bool>(), any::<bool>())
        .prop_map(|(format, entries, with_row, sorted)| Delete::Positions { format, entries, with_row, sorted });
    let vector = (any::<Index>(), prop::collection::vec(0..ROWS as u64, 0..60))
        .prop_map(|(file, positions)| Delete::Vector { file, positions });
    // Delete files with the same columns become one set of keys.
    let same = prop::sample::select(vec![vec![1], vec![2], vec![3], vec![2, 7]]);
    let ids = prop_oneof![3 => same, 2 => prop::sample::subsequence(KEYS.to_vec(), 1..4)];
    let copied = prop::collection::vec((any::<Index>(), any::<Index>()), 0..6);
    let equality = (0..3usize, any::<bool>(), ids, prop::collection::vec(row(0..60), 0..3), copied).prop_map(
        |(format, is_old, ids, rows, copied)| {
            // A delete file must have the columns that it deletes by: older ones lack `added`, newer ones `gone`.
            let ids: Vec<i32> = ids.into_iter().filter(|id| *id != if is_old { 9 } else { 8 }).collect();
            Delete::Equality { format, is_old, ids: if ids.is_empty() { vec![1] } else { ids }, rows, copied }
        },
    );
    prop_oneof![2 => positions, 1 => vector, 3 => equality]
}

pub fn world() -> impl Strategy<Value = World> {
    let deletes = prop::collection::vec(delete(), 0..8);
    let applies = prop::collection::vec(prop::collection::vec(prop::bool::weighted(0.6), 4), 8);
    (prop::collection::vec(data(), 1..4), deletes, applies).prop_map(|(data, deletes, applies)| World {
        data,
        deletes,
        applies,
    })
}

/// The written files, and the expected rows.
pub struct Written {
    pub storage: Storage,
    pub parts: Vec<FilePart>,
    /// The rows of each file as they are read, each with whether it is deleted.
    pub rows: Vec<Vec<(Row, bool)>>,
}

impl World {
    pub fn write(&self) -> Written {
        static WORLDS: AtomicU64 = AtomicU64::new(0);
        let location = format!("memory://deletes/{}", WORLDS.fetch_add(1, Ordering::Relaxed));
        let storage = Storage::default();
        let mut parts: Vec<FilePart> = Vec::new();
        for (number, data) in self.data.iter().enumerate() {
            let path = format!("{location}/data-{number}.{}", FORMATS[data.format]);
            parts.push(data.write(&storage, path));
        }
        let mut has_vector = vec![false; parts.len()];
        for (number, delete) in self.deletes.iter().enumerate() {
            let path = format!("{location}/delete-{number}");
            let part = Arc::new(delete.write(&storage, path, &parts, &self.data));
            for (place, file) in parts.iter_mut().enumerate() {
                let applies = match delete {
                    Delete::Vector { file, .. } => {
                        let own = file.index(self.data.len()) == place && !has_vector[place];
                        has_vector[place] |= own;
                        own
                    }
                    _ => self.applies[number][place],
                };
                if applies {
                    file.deletes = file.deletes.iter().chain([&part]).cloned().collect();
                }
            }
        }
        let rows = (0..parts.len()).map(|place| self.rows(place, &parts)).collect();
        Written { storage, parts, rows }
    }

    /// The rows of a file, by checking every delete for every row.
    fn rows(&self, place: usize, parts: &[FilePart]) -> Vec<(Row, bool)> {
        let number = |part: &DeletePart| part.path.rsplit_once("delete-").unwrap().1.split('.').next().unwrap().parse();
        let applied: Vec<&Delete> =
            parts[place].deletes.iter().map(|part| &self.deletes[number(part).unwrap_or(usize::MAX)]).collect();
        let has_vector = applied.iter().any(|delete| matches!(delete, Delete::Vector { .. }));
        let data = &self.data[place];
        let seen = data.rows.iter().map(|row| row.seen(data.is_old, data.d)).enumerate();
        seen.map(|(at, row)| {
            let deletes = |delete: &&&Delete| match delete {
                Delete::Vector { positions, .. } => positions.contains(&(at as u64)),
                Delete::Positions { entries, .. } => !has_vector && entries.contains(&(place, at as i64)),
                Delete::Equality { ids, .. } => {
                    delete.key_rows(&self.data).iter().any(|other| other.key(ids) == row.key(ids))
                }
            };
            let is_deleted = applied.iter().any(|delete| deletes(&delete));
            (row, is_deleted)
        })
        .collect()
    }
}

impl Data {
    fn write(&self, storage: &Storage, path: String) -> FilePart {
        let ids: Vec<i32> = [1, 2, 3, 4, 5]
            .into_iter()
            .chain(self.d.is_none().then_some(7))
            .chain([if self.is_old { 8 } else { 9 }])
            .collect();
        let schema = stored(self.is_old, &ids);
        let groups: Vec<RecordBatch> = self.rows.chunks(self.group).map(|rows| batch(&schema, rows)).collect();
        let size = write_file(storage, &path, &schema, &groups, self.format);
        FilePart {
            path,
            format: FORMATS[self.format].to_owned(),
            size,
            key_metadata: None,
            start: 0,
            length: size,
            record_count: self.rows.len() as i64,
            partition: self.d.map_or_else(FilePartition::unpartitioned, partition),
            sequence_number: Some(1),
            first_row_id: None,
            deletes: Default::default(),
            residual: Expression::True,
            change: None,
            deleted_by: Default::default(),
        }
    }
}

fn partition(d: Option<i32>) -> FilePartition {
    let schema = current();
    let spec = Arc::new(PartitionSpec::from_text(1, &["d"], &schema).unwrap());
    let field = Field::optional(spec.fields[0].field_id, "d", PrimitiveType::Date);
    let spec = PlannedSpec { spec, partition_type: StructType::new(vec![field]) };
    FilePartition { spec: Arc::new(spec), tuple: vec![d.map(Value::Int)] }
}

impl Delete {
    /// The rows of an equality delete file: its own, and copies of existing rows.
    pub fn key_rows(&self, data: &[Data]) -> Vec<Row> {
        let Self::Equality { rows, copied, .. } = self else { return Vec::new() };
        let copies = copied.iter().filter_map(|(file, row)| {
            let file = &data[file.index(data.len())];
            let row = (!file.rows.is_empty()).then(|| &file.rows[row.index(file.rows.len())])?;
            Some(row.seen(file.is_old, file.d))
        });
        rows.iter().cloned().chain(copies).collect()
    }

    fn write(&self, storage: &Storage, path: String, parts: &[FilePart], data: &[Data]) -> DeletePart {
        let mut part = DeletePart {
            kind: DeleteKind::Positions,
            path,
            format: String::new(),
            size: 0,
            record_count: 0,
            sequence_number: 2,
            equality_ids: Vec::new(),
            key: Arc::default(),
            referenced_data_file: None,
            blob: None,
            key_metadata: None,
        };
        match self {
            Self::Vector { file, positions } => {
                let data = &parts[file.index(parts.len())];
                let there = positions.iter().copied().filter(|at| *at < data.record_count as u64);
                let vector = DeletionVector::from_positions(there).unwrap();
                let blob = vector.to_bytes().unwrap();
                part.path.push_str(".puffin");
                (part.kind, part.format) = (DeleteKind::Vector, "puffin".to_owned());
                part.referenced_data_file = Some(data.path.clone());
                part.blob = Some((9, blob.len() as i64));
                part.record_count = vector.cardinality() as i64;
                let bytes = [b"PFA1other".as_slice(), &blob, b"footer"].concat();
                part.size = bytes.len() as u64;
                storage.put(&part.path, bytes, Existing::Replace).unwrap();
            }
            Self::Positions { format, entries, with_row, sorted } => {
                let mut entries = entries.clone();
                if *sorted {
                    entries.sort_unstable();
                }
                let (schema, rows) = positions(&entries, parts, *with_row);
                part.path = format!("{}.{}", part.path, FORMATS[*format]);
                FORMATS[*format].clone_into(&mut part.format);
                part.record_count = entries.len() as i64;
                part.size = write_file(storage, &part.path, &schema, &[rows], *format);
            }
            Self::Equality { format, is_old, ids, .. } => {
                let rows = self.key_rows(data);
                // The file may have other columns as well.
                let tops: Vec<i32> = ids.iter().map(|id| if *id == 6 { 5 } else { *id }).chain([3]).collect();
                let schema = stored(*is_old, &tops);
                part.path = format!("{}.{}", part.path, FORMATS[*format]);
                part.kind = DeleteKind::Equality;
                FORMATS[*format].clone_into(&mut part.format);
                (part.equality_ids, part.key) = (ids.clone(), key_fields(ids).into());
                part.record_count = rows.len() as i64;
                part.size = write_file(storage, &part.path, &schema, &[batch(&schema, &rows)], *format);
            }
        }
        part
    }
}

fn positions(entries: &[(usize, i64)], parts: &[FilePart], with_row: bool) -> (Arc<Schema>, RecordBatch) {
    let path = |file: usize| parts.get(file).map_or("memory://deletes/other", |part| &*part.path).to_owned();
    let entries: Vec<_> = entries.iter().map(|(file, position)| (path(*file), *position)).collect();
    let schema = positions_schema(with_row);
    let batch = positions_batch(&schema, &entries);
    (schema, batch)
}

fn positions_schema(with_row: bool) -> Arc<Schema> {
    let mut fields = vec![DELETE_FILE_PATH.to_field(), DELETE_FILE_POS.to_field()];
    if with_row {
        let row = StructType::new(vec![Field::required(1, "id", PrimitiveType::Long)]);
        fields.push(Field { required: true, ..DELETE_FILE_ROW.to_field(row) });
    }
    Arc::new(Schema::new(0, fields).unwrap())
}

fn positions_batch(schema: &Schema, entries: &[(String, i64)]) -> RecordBatch {
    let arrow = Arc::new(schema.to_arrow(&ToArrow::default()).unwrap());
    let paths = StringArray::from_iter_values(entries.iter().map(|(path, _)| path));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(entries.iter().map(|(_, position)| *position)));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(paths), numbers.clone()];
    if let Some(DataType::Struct(fields)) = arrow.fields().get(2).map(|field| field.data_type()) {
        columns.push(Arc::new(StructArray::new(fields.clone(), vec![numbers], None)));
    }
    RecordBatch::try_new(arrow, columns).unwrap()
}

/// Writes a position delete file, group by group.
pub fn write_positions(storage: &Storage, path: &str, groups: &[Vec<(String, i64)>], format: usize) -> u64 {
    let schema = positions_schema(false);
    let groups: Vec<_> = groups.iter().map(|entries| positions_batch(&schema, entries)).collect();
    write_file(storage, path, &schema, &groups, format)
}
