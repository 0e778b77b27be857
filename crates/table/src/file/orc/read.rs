//! Reads ORC data files ("Appendix A: ORC"): stripes of a byte range, columns by the ids in their `iceberg.id`
//! attributes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{DataType, FieldRef, Fields};
use icefield_format::types::arrow::{FIELD_ID_KEY, field_id, has_ids};
use icefield_format::types::reserved::POS;
use icefield_format::types::{PrimitiveType, Schema, Type};
use icefield_orc::{
    ArrowOptions, Kind, OutOfRange, Predicate, Projection, ReadOptions, Reader, RowFilter, TimeUnit, TypeDescription,
};

use super::batches::FileBatches;
use super::source::OrcSource;
use super::{metrics, predicate};
use crate::error::{Error, Result};
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;
use crate::file::{DataFileReader, Filter, Request, RowTest, position_field};
use crate::limits::orc_limits;
use crate::storage::Storage;
use crate::stream::{Opened, TaskBatches};

/// Files with fewer rows are read by one thread, because other files are read concurrently.
const FEW_ROWS: u64 = 1 << 16;

/// Attribute with a column's field id.
const ID: &str = "iceberg.id";

/// An ORC file with its tail.
pub struct OrcFile {
    reader: Arc<Reader<OrcSource>>,
    path: Arc<str>,
    arrow: ArrowOptions,
    /// The columns with the ids they are read by.
    bound: Fields,
    /// Whether these are the ids stored in the file.
    own_ids: bool,
    /// The types that values must fit.
    schema: Option<Arc<Schema>>,
}

/// Adapts the filter to the ORC crate.
struct LeafTest {
    columns: Vec<u32>,
    test: RowTest,
}

impl std::fmt::Debug for LeafTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeafTest").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl RowFilter for LeafTest {
    fn columns(&self) -> Vec<u32> {
        self.columns.clone()
    }

    fn evaluate(&self, batch: &RecordBatch) -> icefield_orc::Result<BooleanArray> {
        (self.test)(batch).map_err(icefield_orc::Error::external)
    }
}

impl OrcFile {
    /// Reads the tail.
    pub fn open(storage: &Storage, path: &str, size: u64) -> Result<Self> {
        let path: Arc<str> = path.into();
        let source = OrcSource::Stored { storage: storage.clone(), path: path.clone(), length: size };
        let reader = Reader::open_with(source, orc_limits()?, None).map_err(|error| Error::of_orc(&path, error))?;
        // A value outside the table type's range is corrupt; it must not become null.
        let arrow = ArrowOptions { out_of_range: OutOfRange::Error, ..ArrowOptions::default() };
        Ok(Self { reader: Arc::new(reader), path, arrow, bound: Fields::empty(), own_ids: false, schema: None })
    }

    /// The file's columns; columns with a field id carry it as `PARQUET:field_id`.
    pub fn fields(&self) -> Fields {
        let schema = self.reader.metadata().schema.to_arrow(&self.arrow);
        schema.fields().iter().map(with_field_ids).collect()
    }

    /// Reads timestamps as nanoseconds if the table has nanoseconds; `fields` carry the ids that columns are read by.
    ///
    /// ORC has one type for both units, and an Iceberg file may have columns of each.
    fn take_units(&mut self, fields: &Fields, schema: &Schema) {
        let mut units = BTreeMap::new();
        for (field, node) in fields.iter().zip(&self.reader.metadata().schema.children) {
            nanosecond_columns(field, node, schema, &mut units);
        }
        self.arrow.column_units = units;
    }

    /// The predicate of the filter for stripes and row groups.
    fn predicate(&self, request: &Request) -> Option<Predicate> {
        let mut known = predicate::columns(&self.bound, &self.reader.metadata().schema, self.own_ids);
        known.retain(|id, _| !request.constants.contains(id));
        predicate::predicate(&request.prune, &known)
    }

    /// Whether a filter can run before other columns are decoded: it needs whole columns.
    fn is_early(&self, filter: &Filter, leaves: &[u32]) -> bool {
        let tops = &self.reader.metadata().schema.children;
        let is_top = |leaf: &usize| leaves.get(*leaf).is_some_and(|id| tops.iter().any(|top| top.column == *id));
        !filter.leaves.is_empty() && filter.leaves.iter().all(is_top)
    }

    /// The batches of a request whose filter, if any, needs whole columns.
    fn read(self, request: Request, columns: &[u32]) -> Result<TaskBatches> {
        let ids = |leaves: &[usize]| leaves.iter().filter_map(|leaf| columns.get(*leaf).copied()).collect::<Vec<_>>();
        let predicate = self.predicate(&request);
        let filter = request.filter.map(|filter| -> Arc<dyn RowFilter> {
            Arc::new(LeafTest { columns: ids(&filter.leaves), test: filter.test })
        });
        let positions = request.leaves.contains(&columns.len());
        let options = ReadOptions {
            projection: Projection::Columns(ids(&request.leaves)),
            rows: request.rows,
            row_numbers: positions.then(|| POS.name.to_owned()),
            batch_size: request.batch_rows,
            predicate,
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
        let threads = if self.reader.metadata().rows() < FEW_ROWS { 1 } else { request.threads };
        let path = Arc::clone(&self.path);
        let wrong = Arc::new(move |error| Error::of_orc(&path, error));
        Ok(Box::new(FileBatches::new(&self.reader, wrong, options, starts_inside, threads)?))
    }
}

impl DataFileReader for OrcFile {
    fn bind(&mut self, with_ids: &dyn Fn(&Fields) -> Fields, schema: &Arc<Schema>) -> Fields {
        self.take_units(&with_ids(&self.fields()), schema);
        let stored = self.fields();
        (self.bound, self.own_ids) = (with_ids(&stored), has_ids(&stored));
        self.schema = Some(Arc::clone(schema));
        self.bound.iter().cloned().chain([position_field()]).collect()
    }

    fn metrics(&self, modes: &Modes) -> Result<FileMetrics> {
        let Some(schema) = &self.schema else { return Err(Error::Internal("columns without ids".into())) };
        let metrics = metrics::of_foreign(self.reader.metadata(), &self.bound, self.own_ids, schema, modes);
        metrics.map_err(|error| error.in_file(&self.path))
    }

    fn rows(&self) -> Option<u64> {
        Some(self.reader.metadata().rows())
    }

    fn batches(self: Box<Self>, mut request: Request) -> Result<Opened> {
        let mut columns = Vec::new();
        collect_leaves(&self.reader.metadata().schema, &mut columns);
        let late = request.filter.take_if(|filter| !self.is_early(filter, &columns));
        let Some(late) = late else { return self.read(request, &columns).map(Opened::Batches) };
        // Tests on nested fields, on positions, or without columns of the file run on decoded rows.
        let (read, cut) = late.afterwards(&request.leaves);
        request.leaves = read;
        Ok(Opened::Batches(self.read(request, &columns)?).map(cut))
    }
}

/// Column ids of the leaves in the order of `columns::leaves`: a union counts as one, and so does a struct without
/// fields.
fn collect_leaves(node: &TypeDescription, out: &mut Vec<u32>) {
    let is_root = node.column == 0;
    match node.kind {
        Kind::Struct if node.children.is_empty() && !is_root => out.push(node.column),
        Kind::Struct | Kind::List | Kind::Map => node.children.iter().for_each(|child| collect_leaves(child, out)),
        _ => out.push(node.column),
    }
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

/// Marks the timestamps that have nanoseconds in the table.
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
