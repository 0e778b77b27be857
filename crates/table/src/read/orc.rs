//! ORC data files ("Appendix A: ORC"): stripes of a byte range, columns by the ids in their `iceberg.id` attributes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, Fields};
use bytes::Bytes;
use icefield_orc::read::StripeReader;
use icefield_orc::{OutOfRange, Projection, ReadOptions, Reader, Source, TimeUnit, TypeDescription};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::columns::{Planned, Shape, Source as From};
use crate::error::{Error, Result};
use crate::storage::Storage;

/// Attribute of a column's field id.
const ID: &str = "iceberg.id";

/// An ORC file whose tail was read.
pub struct OrcFile {
    reader: Reader<Stored>,
    path: Arc<str>,
    fields: Fields,
    unit: TimeUnit,
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
        self.storage.range(&self.path, range).map_err(|error| icefield_orc::Error::Io(error.to_string()))
    }
}

impl OrcFile {
    /// Reads the tail; `nanoseconds` says that timestamps are wanted in nanoseconds.
    pub fn open(storage: &Storage, path: &str, size: u64, nanoseconds: bool) -> Result<Self> {
        let path: Arc<str> = path.into();
        let source = Stored { storage: storage.clone(), path: path.clone(), size };
        let reader = Reader::open(source).map_err(|error| convert(&path, error))?;
        let unit = if nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        let schema = reader.schema(&options(unit)).map_err(|error| convert(&path, error))?;
        let fields = schema.fields().iter().map(with_field_ids).collect();
        Ok(Self { reader, path, fields, unit })
    }

    /// The file's columns; those with a field id carry it as `PARQUET:field_id`.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The batches of some leaves, from the stripes that begin in a range of bytes.
    pub fn batches(self, leaves: &[usize], range: (u64, u64), batch_rows: usize) -> Result<OrcBatches> {
        let mut columns = Vec::new();
        collect_leaves(&self.reader.metadata().schema, &mut columns);
        let wanted = leaves.iter().filter_map(|leaf| columns.get(*leaf).copied()).collect();
        let options =
            ReadOptions { projection: Projection::Columns(wanted), batch_size: batch_rows, ..options(self.unit) };
        let all = self.reader.stripes(&options).map_err(|error| convert(&self.path, error))?;
        let starts_inside = |index: &usize| {
            let stripe = self.reader.metadata().footer.stripes.get(*index);
            let offset = stripe.and_then(|stripe| stripe.offset).unwrap_or(0);
            offset >= range.0 && offset < range.0.saturating_add(range.1)
        };
        let stripes: Vec<usize> = all.into_iter().filter(starts_inside).collect();
        Ok(OrcBatches { file: self, options: Arc::new(options), stripes: stripes.into_iter(), current: None })
    }
}

/// The batches of a file.
pub struct OrcBatches {
    file: OrcFile,
    options: Arc<ReadOptions>,
    stripes: std::vec::IntoIter<usize>,
    current: Option<StripeReader>,
}

impl OrcBatches {
    fn step(&mut self) -> icefield_orc::Result<Option<RecordBatch>> {
        loop {
            if let Some(stripe) = &mut self.current
                && let Some(batch) = stripe.next_batch()?
            {
                return Ok(Some(batch));
            }
            let Some(next) = self.stripes.next() else { return Ok(None) };
            self.current = Some(self.file.reader.stripe(next, &self.options)?);
        }
    }
}

impl Iterator for OrcBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step().transpose()?;
        if next.is_err() {
            (self.stripes, self.current) = (Vec::new().into_iter(), None);
        }
        Some(next.map_err(|error| convert(&self.file.path, error)))
    }
}

fn options(unit: TimeUnit) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.arrow.timestamp_unit = unit;
    // A value that the table's type cannot hold is corrupt: it must not read as null.
    options.arrow.out_of_range = OutOfRange::Error;
    options
}

/// Column ids of the leaves in the order in which `columns::leaves` counts them: a union counts as one.
fn collect_leaves(node: &TypeDescription, out: &mut Vec<u32>) {
    use icefield_orc::Kind;
    if matches!(node.kind, Kind::Struct | Kind::List | Kind::Map) {
        node.children.iter().for_each(|child| collect_leaves(child, out));
    } else {
        out.push(node.column);
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
        named.metadata_mut().insert(PARQUET_FIELD_ID_META_KEY, id.as_str());
    }
    Arc::new(named)
}

/// Whether a plan reads timestamps that ORC must give in the other unit: the unit is one for all columns of a reader.
pub fn mixes_units(planned: &[Planned]) -> bool {
    fn units(planned: &Planned, out: &mut [bool; 2]) {
        let From::File { shape, .. } = &planned.source else { return };
        match shape {
            Shape::Struct(children) => children.iter().for_each(|child| units(child, out)),
            Shape::List(element) => units(element, out),
            Shape::Map(key, value) => {
                units(key, out);
                units(value, out);
            }
            Shape::Keep | Shape::Promote(_) => match planned.target.data_type() {
                DataType::Timestamp(arrow_schema::TimeUnit::Nanosecond, _) => out[1] = true,
                DataType::Timestamp(..) => out[0] = true,
                _ => {}
            },
        }
    }
    let mut found = [false; 2];
    planned.iter().for_each(|one| units(one, &mut found));
    found == [true; 2]
}

fn convert(path: &str, error: icefield_orc::Error) -> Error {
    use icefield_orc::Error as Orc;
    match error {
        Orc::Unsupported(message) => Error::unsupported(format!("{path}: {message}")),
        Orc::Io(message) => Error::Storage { path: path.to_owned(), operation: "read", message },
        other => Error::corrupt_file(path, other),
    }
}
