//! Parquet data files: bytes from storage, batches of chosen columns and row groups ("Appendix A: Parquet").
//!
//! The decoder does no I/O: it says which ranges it needs and storage brings them, so local files and object stores run the
//! same code. The Arrow schema embedded by writers is ignored: types come from Parquet alone, as other readers see them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, TimeUnit};
use parquet::DecodeResult;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderMetadata, ArrowReaderOptions, RowFilter, RowSelection,
};
use parquet::arrow::push_decoder::{ParquetPushDecoder, ParquetPushDecoderBuilder};
use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataPushDecoder};

use crate::error::{Error, Result};
use crate::storage::Storage;

/// Bytes fetched from the end of a file in the hope that they hold its footer.
const TAIL: u64 = 64 << 10;

/// A Parquet file whose footer was read.
#[derive(Clone)]
pub struct ParquetFile {
    storage: Storage,
    path: Arc<str>,
    /// Bytes of the file.
    size: u64,
    metadata: ArrowReaderMetadata,
}

/// What to read of a file.
#[derive(Default, Clone)]
pub struct Request {
    /// Leaves to read, in order of the file's leaves.
    pub leaves: Vec<usize>,
    /// Row groups to read, ascending.
    pub row_groups: Vec<usize>,
    /// Rows of these row groups to read; all without it.
    pub selection: Option<RowSelection>,
    /// Rows to keep, decided on some leaves before the others are decoded.
    pub filter: Option<Filter>,
    /// Rows of a batch, at the most.
    pub batch_rows: usize,
}

/// Says for every row of a batch whether it stays.
pub type RowTest = Arc<dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync>;

/// A test of rows that sees a batch of the leaves it asks for; null counts as no.
#[derive(Clone)]
pub struct Filter {
    /// Leaves of the batch that `test` gets.
    pub leaves: Vec<usize>,
    /// The test.
    pub test: RowTest,
}

impl ParquetFile {
    /// Reads the footer; `size` is the size that the manifest gives, where there is one.
    pub fn open(storage: &Storage, path: &str, size: Option<u64>) -> Result<Self> {
        let size = match size {
            Some(size) => size,
            None => storage.size(path)?,
        };
        let metadata = Arc::new(footer(storage, path, size)?);
        let metadata = guarded(path, || arrow_metadata(metadata))?;
        Ok(Self { storage: storage.clone(), path: path.into(), size, metadata })
    }

    /// The file's columns; those with a field id carry it as `PARQUET:field_id`.
    pub fn fields(&self) -> &Fields {
        self.metadata.schema().fields()
    }

    /// Row groups, statistics, columns as Parquet has them.
    pub fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    /// A request as several of so many bytes at the least, for threads that each read some of its row groups; in order.
    pub fn pieces(&self, request: Request, least: u64) -> Vec<Request> {
        let bytes = |place: &usize| self.bytes(*place, &request);
        let all = request.row_groups.iter().fold(0, |sum: u64, place| sum.saturating_add(bytes(place)));
        if request.selection.is_some() || all / 2 < least {
            return vec![request];
        }
        let mut pieces: Vec<Request> = Vec::new();
        let mut room = 0;
        for place in &request.row_groups {
            match pieces.last_mut() {
                Some(last) if room > 0 => last.row_groups.push(*place),
                _ => {
                    room = least;
                    pieces.push(Request { row_groups: vec![*place], ..request.clone() });
                }
            }
            room = room.saturating_sub(bytes(place));
        }
        pieces
    }

    /// Bytes of a row group that a request reads.
    fn bytes(&self, row_group: usize, request: &Request) -> u64 {
        let columns = self.metadata().row_groups().get(row_group).map(|group| group.columns()).unwrap_or_default();
        let filtered = request.filter.iter().flat_map(|filter| &filter.leaves);
        let leaves: BTreeSet<_> = request.leaves.iter().chain(filtered).collect();
        let sizes = leaves.into_iter().filter_map(|leaf| columns.get(*leaf));
        sizes.fold(0, |sum, column| sum.saturating_add(column.compressed_size().max(0).unsigned_abs()))
    }

    /// The batches of a request, in order.
    pub fn batches(&self, request: Request) -> Result<Batches> {
        self.check_places(&request)?;
        let schema = self.metadata.parquet_schema();
        let mask = ProjectionMask::leaves(schema, request.leaves);
        let mut builder = ParquetPushDecoderBuilder::new_with_metadata(self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(request.row_groups)
            .with_batch_size(request.batch_rows);
        if let Some(selection) = request.selection {
            builder = builder.with_row_selection(selection);
        }
        if let Some(filter) = request.filter {
            let leaves = ProjectionMask::leaves(schema, filter.leaves);
            let test = move |batch: RecordBatch| {
                (filter.test)(&batch).map_err(|error| ArrowError::ExternalError(Box::new(error)))
            };
            builder = builder.with_row_filter(RowFilter::new(vec![Box::new(ArrowPredicateFn::new(leaves, test))]));
        }
        let decoder = guarded(&self.path, || builder.build())?;
        Ok(Batches { storage: self.storage.clone(), path: self.path.clone(), decoder: Some(decoder) })
    }

    /// Whether the column chunks that are read lie in the file.
    fn check_places(&self, request: &Request) -> Result<()> {
        let filtered = request.filter.iter().flat_map(|filter| &filter.leaves);
        let leaves: BTreeSet<usize> = request.leaves.iter().chain(filtered).copied().collect();
        for number in &request.row_groups {
            let Some(group) = self.metadata().row_groups().get(*number) else { continue };
            for chunk in leaves.iter().filter_map(|leaf| group.columns().get(*leaf)) {
                let (start, length) = (chunk.dictionary_page_offset(), chunk.compressed_size());
                let start = start.unwrap_or(i64::MAX).min(chunk.data_page_offset());
                let end = start.checked_add(length).and_then(|end| u64::try_from(end).ok());
                if start < 0 || length < 0 || end.is_none_or(|end| end > self.size) {
                    let column = chunk.column_path().string();
                    let message = format!(
                        "row group {number}, column {column}: its {length} bytes from byte {start} on are not in the \
                         file, which has {} bytes",
                        self.size
                    );
                    return Err(Error::corrupt_file(&*self.path, message));
                }
            }
        }
        Ok(())
    }
}

/// Batches of a file.
pub struct Batches {
    storage: Storage,
    path: Arc<str>,
    /// Gone after the end or an error.
    decoder: Option<ParquetPushDecoder>,
}

impl Batches {
    fn step(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(decoder) = &mut self.decoder {
            match guarded(&self.path, || decoder.try_decode())? {
                DecodeResult::Data(batch) => return Ok(Some(batch)),
                DecodeResult::Finished => self.decoder = None,
                DecodeResult::NeedsData(ranges) => {
                    let bytes = self.storage.ranges(&self.path, &ranges)?;
                    guarded(&self.path, || decoder.push_ranges(ranges, bytes))?;
                }
            }
        }
        Ok(None)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step().transpose();
        if matches!(next, Some(Err(_))) {
            self.decoder = None;
        }
        next
    }
}

fn footer(storage: &Storage, path: &str, size: u64) -> Result<ParquetMetaData> {
    let mut decoder = guarded(path, || ParquetMetaDataPushDecoder::try_new(size))?;
    let tail = Range { start: size.saturating_sub(TAIL), end: size };
    let mut wanted = vec![tail];
    loop {
        let bytes = storage.ranges(path, &wanted)?;
        guarded(path, || decoder.push_ranges(std::mem::take(&mut wanted), bytes))?;
        match guarded(path, || decoder.try_decode())? {
            DecodeResult::Data(metadata) => return Ok(metadata),
            DecodeResult::NeedsData(ranges) => {
                if let Some(Range { start, end }) = ranges.iter().find(|one| one.end > size || one.start > one.end) {
                    let message =
                        format!("its footer names bytes {start} to {end} of the file, which has {size} bytes");
                    return Err(Error::corrupt_file(path, message));
                }
                wanted = ranges;
            }
            DecodeResult::Finished => return Err(Error::corrupt_file(path, "it has no footer")),
        }
    }
}

fn arrow_metadata(metadata: Arc<ParquetMetaData>) -> Result<ArrowReaderMetadata, ParquetError> {
    let options = || ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let plain = ArrowReaderMetadata::try_new(metadata.clone(), options())?;
    let descriptor = metadata.file_metadata().schema_descr();
    if descriptor.columns().iter().all(|column| column.physical_type() != PhysicalType::INT96) {
        return Ok(plain);
    }
    // INT96 counts nanoseconds, but as 64 bits those end in 2262: read microseconds, which is what tables have.
    let fields = plain.schema().fields().iter().map(|field| Arc::new(int96_as_micros(field)));
    let schema = Arc::new(Schema::new(fields.collect::<Fields>()));
    ArrowReaderMetadata::try_new(metadata, options().with_schema(schema))
}

/// The field with nanosecond timestamps without a zone, which only INT96 gives here next to no annotation, in microseconds.
fn int96_as_micros(field: &Field) -> Field {
    let child = |child: &Arc<Field>| Arc::new(int96_as_micros(child));
    let ty = match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        DataType::Struct(children) => DataType::Struct(children.iter().map(child).collect()),
        DataType::List(element) => DataType::List(child(element)),
        DataType::Map(entries, sorted) => DataType::Map(child(entries), *sorted),
        other => other.clone(),
    };
    field.clone().with_data_type(ty)
}

/// The columns that a batch of some leaves has: those of the file, without what is not read.
pub fn projected(fields: &Fields, leaves: &[usize]) -> Fields {
    keep_leaves(fields, leaves, &mut 0)
}

fn keep_leaves(fields: &Fields, leaves: &[usize], next: &mut usize) -> Fields {
    fields.iter().filter_map(|field| keep(field, leaves, next)).collect()
}

fn keep(field: &Arc<Field>, leaves: &[usize], next: &mut usize) -> Option<Arc<Field>> {
    let ty = match field.data_type() {
        DataType::Struct(children) => {
            let kept = keep_leaves(children, leaves, next);
            if kept.is_empty() {
                return None;
            }
            DataType::Struct(kept)
        }
        DataType::List(element) => DataType::List(keep(element, leaves, next)?),
        DataType::Map(entries, sorted) => DataType::Map(keep(entries, leaves, next)?, *sorted),
        other => {
            let wanted = leaves.contains(next);
            *next += 1;
            if !wanted {
                return None;
            }
            other.clone()
        }
    };
    Some(Arc::new(field.as_ref().clone().with_data_type(ty)))
}

/// Runs the Parquet library on bytes of a file: its errors name the file, and a panic of it is an error too, since it
/// may meet any bytes.
fn guarded<T>(path: &str, run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ParquetError::External(source))) => match source.downcast::<ArrowError>() {
            Ok(error) => Err(from_arrow(path, *error)),
            Err(other) => Err(Error::corrupt_file(path, other)),
        },
        Ok(Err(ParquetError::ArrowError(message))) => Err(Error::corrupt_file(path, message)),
        Ok(Err(error)) => Err(Error::corrupt_file(path, error)),
        Err(_) => Err(Error::corrupt_file(path, "its bytes are not Parquet as the decoder knows it")),
    }
}

/// An error of a filter comes back as it was; others name the file.
fn from_arrow(path: &str, error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(source) => match source.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::corrupt_file(path, other),
        },
        other => Error::corrupt_file(path, other),
    }
}
