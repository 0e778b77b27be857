//! ORC data files ("Appendix A: ORC"): stripes of a byte range, columns by the ids in their `iceberg.id` attributes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use bytes::Bytes;
use icefield_format::types::arrow::{FIELD_ID_KEY, field_id};
use icefield_format::types::reserved::POS;
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_orc::{
    ArrowOptions, Batches, Kind, OutOfRange, Predicate, Projection, ReadOptions, Reader, RowFilter, Source, TimeUnit,
    TypeDescription,
};

use super::orc_ahead::ReadAhead;
use super::parquet::RowTest;
use super::stream::TaskBatches;
use crate::error::{Error, Result};
use crate::limits::orc_limits;
use crate::storage::Storage;

/// Files of fewer rows are read by one thread: other files are read beside them.
const FEW_ROWS: u64 = 1 << 16;

/// Attribute of a column's field id.
const ID: &str = "iceberg.id";

/// An ORC file whose tail was read.
pub struct OrcFile {
    reader: Arc<Reader<Stored>>,
    path: Arc<str>,
    arrow: ArrowOptions,
}

/// What is wanted of a file.
pub struct OrcRequest {
    /// Leaves, as [`columns::leaves`](super::columns::leaves) counts them over [`OrcFile::fields`]; that of
    /// [`position_field`], which may stand behind them, gives each row's number in the file as the last column.
    pub leaves: Vec<usize>,
    /// Rows wanted, by number in the file: sorted, without overlaps. All without it.
    pub rows: Option<Vec<Range<u64>>>,
    /// Stripes are read that begin in this range: first byte, and length.
    pub range: (u64, u64),
    /// Rows of a batch, at the most.
    pub batch_rows: usize,
    /// Skips stripes and row groups.
    pub predicate: Option<Predicate>,
    /// Drops rows; it sees its columns before others are decoded.
    pub filter: Option<OrcFilter>,
    /// Stripes, or parts of them, that are read at a time.
    pub threads: usize,
}

/// A test of rows that sees a batch of its own leaves; null counts as no.
pub struct OrcFilter {
    /// Leaves of the batch that `test` gets: top-level columns.
    pub leaves: Vec<usize>,
    /// The test.
    pub test: RowTest,
}

/// The filter as the ORC crate calls it.
struct Late {
    columns: Vec<u32>,
    test: RowTest,
}

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Late").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl RowFilter for Late {
    fn columns(&self) -> Vec<u32> {
        self.columns.clone()
    }

    fn evaluate(&self, batch: &RecordBatch) -> icefield_orc::Result<BooleanArray> {
        (self.test)(batch).map_err(icefield_orc::Error::external)
    }
}

/// A file of the storage as the ORC crate reads files.
struct Stored {
    storage: Storage,
    path: Arc<str>,
    size: u64,
}

impl Source for Stored {
    fn length(&self) -> icefield_orc::Result<u64> {
        Ok(self.size)
    }

    fn read_range(&self, range: Range<u64>) -> icefield_orc::Result<Bytes> {
        self.storage.range(&self.path, range).map_err(icefield_orc::Error::external)
    }
}

impl OrcFile {
    /// Reads the tail.
    pub fn open(storage: &Storage, path: &str, size: u64) -> Result<Self> {
        let path: Arc<str> = path.into();
        let source = Stored { storage: storage.clone(), path: path.clone(), size };
        let reader = Reader::open_with(source, orc_limits()?, None).map_err(|error| Error::of_orc(&path, error))?;
        // A value that the table's type cannot hold is corrupt: it must not read as null.
        let arrow = ArrowOptions { out_of_range: OutOfRange::Error, ..ArrowOptions::default() };
        Ok(Self { reader: Arc::new(reader), path, arrow })
    }

    /// The file's columns; those with a field id carry it as `PARQUET:field_id`.
    pub fn fields(&self) -> Fields {
        let schema = self.reader.metadata().schema.to_arrow(&self.arrow);
        schema.fields().iter().map(with_field_ids).collect()
    }

    /// The schema of the rows.
    pub fn description(&self) -> &TypeDescription {
        &self.reader.metadata().schema
    }

    /// Reads those timestamps in nanoseconds that the table has so; `fields` carry the ids that columns are read by.
    ///
    /// ORC has one type for both units, and an Iceberg file may hold columns of each.
    pub fn take_units(&mut self, fields: &Fields, schema: &Schema) {
        let mut units = BTreeMap::new();
        for (field, node) in fields.iter().zip(&self.reader.metadata().schema.children) {
            nanosecond_columns(field, node, schema, &mut units);
        }
        self.arrow.column_units = units;
    }

    /// The batches wanted.
    pub fn batches(self, request: OrcRequest) -> Result<TaskBatches> {
        let mut columns = Vec::new();
        collect_leaves(&self.reader.metadata().schema, &mut columns);
        let ids = |leaves: &[usize]| leaves.iter().filter_map(|leaf| columns.get(*leaf).copied()).collect::<Vec<_>>();
        let filter = request
            .filter
            .map(|filter| -> Arc<dyn RowFilter> { Arc::new(Late { columns: ids(&filter.leaves), test: filter.test }) });
        let positions = request.leaves.contains(&columns.len());
        let options = ReadOptions {
            projection: Projection::Columns(ids(&request.leaves)),
            rows: request.rows,
            row_numbers: positions.then(|| POS.name.to_owned()),
            batch_size: request.batch_rows,
            predicate: request.predicate,
            filter,
            arrow: self.arrow.clone(),
            ..ReadOptions::default()
        };
        let (start, length) = request.range;
        let starts_inside = |index: usize| {
            let stripe = self.reader.metadata().footer.stripes.get(index);
            let offset = stripe.and_then(|stripe| stripe.offset).unwrap_or(0);
            offset >= start && offset < start.saturating_add(length)
        };
        if request.threads > 1 && self.reader.metadata().rows() >= FEW_ROWS {
            return Ok(Box::new(ReadAhead::new(&self.reader, &self.path, options, starts_inside, request.threads)?));
        }
        let (reader, path) = (Arc::clone(&self.reader), Arc::clone(&self.path));
        let wrong = move |error| Error::of_orc(&path, error);
        let all = reader.stripes(&options).map_err(&wrong)?;
        let stripes: Vec<usize> = all.into_iter().filter(|index| starts_inside(*index)).collect();
        let batches = Batches::new(reader, options, stripes).map_err(&wrong)?;
        Ok(Box::new(batches.map(move |batch| batch.map_err(&wrong))))
    }
}

/// Column ids of the leaves in the order in which `columns::leaves` counts them: a union counts as one.
fn collect_leaves(node: &TypeDescription, out: &mut Vec<u32>) {
    if matches!(node.kind, Kind::Struct | Kind::List | Kind::Map) {
        node.children.iter().for_each(|child| collect_leaves(child, out));
    } else {
        out.push(node.column);
    }
}

/// The column of row positions, as the columns of a file are given: with its field id.
pub fn position_field() -> FieldRef {
    let mut field = Field::new(POS.name, DataType::Int64, false);
    field.metadata_mut().insert(FIELD_ID_KEY, POS.id.to_string());
    Arc::new(field)
}

fn with_field_ids(field: &FieldRef) -> FieldRef {
    let ty = match field.data_type() {
        DataType::Struct(children) => DataType::Struct(children.iter().map(with_field_ids).collect()),
        DataType::List(element) => DataType::List(with_field_ids(element)),
        DataType::Map(entries, sorted) => DataType::Map(with_field_ids(entries), *sorted),
        other => other.clone(),
    };
    let mut named = field.as_ref().clone().with_data_type(ty);
    if let Some(id) = field.metadata().get(ID) {
        named.metadata_mut().insert(FIELD_ID_KEY, id.as_str());
    }
    Arc::new(named)
}

/// Marks the timestamps whose field in the table has nanoseconds.
fn nanosecond_columns(field: &FieldRef, node: &TypeDescription, schema: &Schema, out: &mut BTreeMap<u32, TimeUnit>) {
    match field.data_type() {
        DataType::Timestamp(..) => {
            let ty = field_id(field).and_then(|id| schema.find_type(id)).and_then(Type::as_primitive);
            if matches!(ty, Some(PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs)) {
                out.insert(node.column, TimeUnit::Nanosecond);
            }
        }
        DataType::Struct(children) if node.kind == Kind::Struct => {
            children.iter().zip(&node.children).for_each(|(field, node)| nanosecond_columns(field, node, schema, out));
        }
        DataType::List(element) => {
            node.children.iter().for_each(|node| nanosecond_columns(element, node, schema, out));
        }
        DataType::Map(entries, _) => {
            if let DataType::Struct(pair) = entries.data_type() {
                pair.iter().zip(&node.children).for_each(|(field, node)| nanosecond_columns(field, node, schema, out));
            }
        }
        _ => {}
    }
}
