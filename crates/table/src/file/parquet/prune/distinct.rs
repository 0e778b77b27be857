//! Prunes row groups by dictionaries and Bloom filters, for equality filters whose value lies between the bounds.
//!
//! If all pages of a column chunk use the dictionary, it lists every value. A Bloom filter can give false positives
//! but no false negatives. Reading either costs a request, so it must be small compared with the bytes it may save.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Display;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use icefield_format::expr::{BoundExpr, BoundPredicate, Comparison, Expression, InclusiveMetrics, Test};
use icefield_format::types::PrimitiveType;
use icefield_format::value::Value;
use parquet::basic::{Encoding, EncodingMask, Type as PhysicalType};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{Page, PageReader};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use parquet::file::statistics::Statistics;

use super::row_groups::{Group, Leaf};
use crate::error::{Error, Result};
use crate::file::parquet::guard::guarded;
use crate::storage::Storage;

/// How many times larger the possible saving must be than the dictionary or Bloom filter.
const SAVES: u64 = 4;
/// Maximum bytes of a dictionary or Bloom filter that is read.
const MOST_BYTES: u64 = 8 << 20;
/// Maximum number of dictionary values to test.
const MOST_VALUES: u32 = 1 << 17;

/// What is known about the values in each column chunk of a file.
pub(in crate::file::parquet) struct Distinct<'a> {
    storage: &'a Storage,
    path: &'a str,
    size: u64,
    metadata: &'a ParquetMetaData,
    leaves: &'a [Leaf],
    /// What was read, by row group and leaf; `None` if nothing is usable.
    known: HashMap<(usize, usize), Option<Known>>,
}

/// What is known about the values of a column chunk.
enum Known {
    /// Every value.
    Dictionary(Vec<Statistics>),
    /// A bloom filter.
    Bloom(Sbbf),
}

impl<'a> Distinct<'a> {
    /// For a file of this size, with nothing read yet; `leaves` are the columns that the filter tests.
    pub(in crate::file::parquet) fn new(
        storage: &'a Storage,
        path: &'a str,
        size: u64,
        metadata: &'a ParquetMetaData,
        leaves: &'a [Leaf],
    ) -> Self {
        Self { storage, path, size, metadata, leaves, known: HashMap::new() }
    }

    /// Whether a row of this row group may match a filter without `NOT`; `bytes` is the size of the read that pruning
    /// would save.
    pub(in crate::file::parquet) fn might_match(
        &mut self,
        group: usize,
        filter: &BoundExpr,
        bytes: u64,
    ) -> Result<bool> {
        Ok(match filter {
            Expression::False => false,
            Expression::And(left, right) => {
                self.might_match(group, left, bytes)? && self.might_match(group, right, bytes)?
            }
            Expression::Or(left, right) => {
                self.might_match(group, left, bytes)? || self.might_match(group, right, bytes)?
            }
            Expression::Predicate(predicate) => self.might_hold(group, predicate, bytes)?,
            Expression::True | Expression::Not(_) => true,
        })
    }

    fn might_hold(&mut self, group: usize, predicate: &Arc<BoundPredicate>, bytes: u64) -> Result<bool> {
        let term = &predicate.term;
        let asked = match &predicate.test {
            Test::Compare(Comparison::Eq, value) => std::slice::from_ref(value),
            Test::In(values) => values.values(),
            Test::StartsWith(_) => &[],
            _ => return Ok(true),
        };
        let leaf = self.leaves.iter().find(|leaf| leaf.id == term.reference.id && term.transform.is_none());
        let chunk = leaf.and_then(|leaf| self.metadata.row_groups().get(group)?.columns().get(leaf.place));
        let (Some(leaf), Some(chunk)) = (leaf, chunk) else { return Ok(true) };
        let known = match self.known.entry((group, leaf.place)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let door = Door { storage: self.storage, path: self.path, size: self.size };
                // A Bloom filter answers for whole values only, so a prefix needs the dictionary.
                let read = door.known(chunk, asked.is_empty(), bytes / SAVES);
                entry.insert(read.map_err(|error| placed(error, group, chunk))?)
            }
        };
        Ok(match known {
            None => true,
            Some(Known::Bloom(filter)) => {
                asked.is_empty() || asked.iter().any(|value| might_contain(filter, value, leaf, chunk))
            }
            // Each value is tested as the bounds of a row group of one row.
            Some(Known::Dictionary(values)) => {
                let test = InclusiveMetrics::new(&Expression::Predicate(Arc::clone(predicate)));
                values.iter().any(|value| test.might_match(&Group::of(1, leaf, value)))
            }
        })
    }
}

/// Adds the column chunk to an error about damage.
fn placed(error: Error, group: usize, chunk: &ColumnChunkMetaData) -> Error {
    match error {
        Error::CorruptFile { path, message } => {
            let column = chunk.column_path().string();
            Error::corrupt_file(path, format!("row group {group}, column {column}: {message}"))
        }
        other => other,
    }
}

/// The bytes of a file.
#[derive(Clone, Copy)]
struct Door<'a> {
    storage: &'a Storage,
    path: &'a str,
    size: u64,
}

impl Door<'_> {
    /// Reads what is known about the values of a column chunk, if it has at most `most` bytes.
    fn known(self, chunk: &ColumnChunkMetaData, only_dictionary: bool, most: u64) -> Result<Option<Known>> {
        let most = most.min(MOST_BYTES);
        if let Some(range) = self.dictionary(chunk).filter(|range| range.end - range.start <= most) {
            let bytes = self.storage.range(self.path, range.clone())?;
            let values = guarded(self.path, || dictionary(Slice { start: range.start, bytes }, chunk))?;
            return Ok(values.map(Known::Dictionary));
        }
        let length = chunk.bloom_filter_length().map(|length| u64::try_from(length).unwrap_or(u64::MAX));
        if only_dictionary || chunk.bloom_filter_offset().is_none() || length.is_some_and(|length| length > most) {
            return Ok(None);
        }
        let filter = self.bloom(chunk, length, most)?;
        Ok(filter.map(Known::Bloom))
    }

    /// The byte range of the dictionary, if all pages of the column chunk use it.
    fn dictionary(self, chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
        let only =
            |mask: &EncodingMask| mask.is_only(Encoding::PLAIN_DICTIONARY) || mask.is_only(Encoding::RLE_DICTIONARY);
        if !chunk.page_encoding_stats_mask().is_some_and(only) {
            return None;
        }
        let start = u64::try_from(chunk.dictionary_page_offset()?).ok()?;
        let end = u64::try_from(chunk.data_page_offset()).ok()?;
        (start < end && end <= self.size).then_some(start..end)
    }

    /// Reads the Bloom filter of a column chunk.
    fn bloom(self, chunk: &ColumnChunkMetaData, length: Option<u64>, most: u64) -> Result<Option<Sbbf>> {
        let damaged = |message: &dyn Display| Error::corrupt_file(self.path, format!("its bloom filter: {message}"));
        let start = chunk.bloom_filter_offset().and_then(|offset| u64::try_from(offset).ok());
        let Some(start) = start.filter(|start| *start < self.size) else {
            return Err(damaged(&format_args!("it is not in the file, which has {} bytes", self.size)));
        };
        let filter = match length {
            Some(length) => {
                let Some(end) = start.checked_add(length).filter(|end| *end <= self.size) else {
                    let size = self.size;
                    return Err(damaged(&format_args!(
                        "{length} bytes from byte {start} on are not in the file, which has {size} bytes"
                    )));
                };
                let bytes = self.storage.range(self.path, start..end)?;
                guarded(self.path, || Sbbf::from_bytes(&bytes)).map_err(|error| damaged(&said(error)))?
            }
            // The footer does not give the length; the header at the start does. The rest of the file is the upper
            // limit.
            None => {
                let end = self.size.min(start.saturating_add(most));
                let rest = Slice { start, bytes: self.storage.range(self.path, start..end)? };
                match guarded(self.path, || Sbbf::read_from_column_chunk(chunk, &rest)) {
                    Ok(Some(filter)) => filter,
                    Ok(None) => return Ok(None),
                    // It is larger than the read it could save.
                    Err(_) if end < self.size => return Ok(None),
                    Err(error) => return Err(damaged(&said(error))),
                }
            }
        };
        // Only the parquet crate's sizes are guaranteed to be valid; a filter without blocks would match nothing.
        Ok((filter.num_blocks() > 0).then_some(filter))
    }
}

/// The message of an error without its file.
fn said(error: Error) -> String {
    match error {
        Error::CorruptFile { message, .. } => message,
        other => other.to_string(),
    }
}

/// The bytes of a file from an offset on.
struct Slice {
    start: u64,
    bytes: Bytes,
}

impl Slice {
    fn at(&self, start: u64) -> Result<Bytes, ParquetError> {
        let skipped = start.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        match skipped.filter(|skipped| *skipped <= self.bytes.len()) {
            Some(skipped) => Ok(self.bytes.slice(skipped..)),
            None => Err(ParquetError::EOF(format!("byte {start} is missing"))),
        }
    }
}

impl Length for Slice {
    fn len(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

impl ChunkReader for Slice {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.at(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let mut bytes = self.at(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!("{length} bytes from byte {start} on are missing")));
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// The values of a dictionary page, each as statistics of a one-row chunk; `None` if the page is not a dictionary.
fn dictionary(page: Slice, chunk: &ColumnChunkMetaData) -> Result<Option<Vec<Statistics>>, ParquetError> {
    let mut pages = SerializedPageReader::new(Arc::new(page), chunk, 0, None)?;
    let Some(Page::DictionaryPage { buf, num_values, encoding, .. }) = pages.get_next_page()? else { return Ok(None) };
    if !matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY) || num_values > MOST_VALUES {
        return Ok(None);
    }
    let mut rest = &buf[..];
    let short = || ParquetError::EOF("its dictionary is shorter than it says".to_owned());
    let mut values = Vec::new();
    for _ in 0..num_values {
        let mut four = [0; 4];
        let mut eight = [0; 8];
        let value = match chunk.column_type() {
            PhysicalType::INT32 => {
                rest.read_exact(&mut four).map_err(|_| short())?;
                let value = Some(i32::from_le_bytes(four));
                Statistics::int32(value, value, None, Some(0), false)
            }
            PhysicalType::INT64 => {
                rest.read_exact(&mut eight).map_err(|_| short())?;
                let value = Some(i64::from_le_bytes(eight));
                Statistics::int64(value, value, None, Some(0), false)
            }
            PhysicalType::FLOAT => {
                rest.read_exact(&mut four).map_err(|_| short())?;
                let value = Some(f32::from_le_bytes(four));
                Statistics::float(value, value, None, Some(0), false)
            }
            PhysicalType::DOUBLE => {
                rest.read_exact(&mut eight).map_err(|_| short())?;
                let value = Some(f64::from_le_bytes(eight));
                Statistics::double(value, value, None, Some(0), false)
            }
            PhysicalType::BYTE_ARRAY => {
                rest.read_exact(&mut four).map_err(|_| short())?;
                let length = u32::from_le_bytes(four) as usize;
                let (value, after) = rest.split_at_checked(length).ok_or_else(short)?;
                rest = after;
                let value = Some(ByteArray::from(value.to_vec()));
                Statistics::byte_array(value.clone(), value, None, Some(0), false)
            }
            PhysicalType::FIXED_LEN_BYTE_ARRAY => {
                let length = usize::try_from(chunk.column_descr().type_length()).unwrap_or(0);
                let (value, after) = rest.split_at_checked(length).ok_or_else(short)?;
                rest = after;
                let value = Some(FixedLenByteArray::from(value.to_vec()));
                Statistics::fixed_len_byte_array(value.clone(), value, None, Some(0), false)
            }
            PhysicalType::BOOLEAN | PhysicalType::INT96 => return Ok(None),
        };
        values.push(value);
    }
    Ok(Some(values))
}

/// Whether the Bloom filter may contain a value. The value is hashed in the type that the file stores.
fn might_contain(filter: &Sbbf, value: &Value, leaf: &Leaf, chunk: &ColumnChunkMetaData) -> bool {
    match (chunk.column_type(), value) {
        (PhysicalType::INT32, Value::Int(value)) => filter.check(value),
        // A column that was `int` when the file was written holds no larger numbers.
        (PhysicalType::INT32, Value::Long(value)) => i32::try_from(*value).is_ok_and(|value| filter.check(&value)),
        (PhysicalType::INT32, Value::Decimal(value)) => i32::try_from(*value).is_ok_and(|value| filter.check(&value)),
        (PhysicalType::INT64, Value::Long(value)) => filter.check(value),
        (PhysicalType::INT64, Value::Decimal(value)) => i64::try_from(*value).is_ok_and(|value| filter.check(&value)),
        // Zero and NaN have several bit patterns.
        (PhysicalType::FLOAT, Value::Float(value)) if value.is_normal() => filter.check(value),
        #[expect(clippy::cast_possible_truncation, reason = "compared below")]
        (PhysicalType::FLOAT, Value::Double(value)) if value.is_normal() => {
            let narrow = *value as f32;
            f64::from(narrow).to_bits() == value.to_bits() && filter.check(&narrow)
        }
        (PhysicalType::DOUBLE, Value::Double(value)) if value.is_normal() => filter.check(value),
        (PhysicalType::BYTE_ARRAY, Value::String(value)) => filter.check(value.as_str()),
        (PhysicalType::BYTE_ARRAY | PhysicalType::FIXED_LEN_BYTE_ARRAY, Value::Binary(value)) => {
            filter.check(value.as_slice())
        }
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, Value::Uuid(value)) => filter.check(value.as_slice()),
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, Value::Decimal(value)) => {
            let bytes = value.to_be_bytes();
            let length = usize::try_from(chunk.column_descr().type_length()).unwrap_or(0);
            let fits = matches!(leaf.ty, PrimitiveType::Decimal { .. }) && length <= bytes.len();
            let stored = fits.then(|| bytes.len() - length).and_then(|cut| bytes.get(cut..));
            stored.is_none_or(|stored| filter.check(stored))
        }
        _ => true,
    }
}
