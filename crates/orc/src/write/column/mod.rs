//! Columns of a stripe, encoded from Arrow arrays ("Column Encodings").
//!
//! A writer is given arrays of exactly the slots that exist for its parent: a null struct has no place in its
//! children's streams. Values go into the streams dense, without the slots of nulls.

mod decimal;
mod dictionary;
mod encrypted;
mod head;
mod nested;
mod number;
mod spans;
mod text;
mod timestamp;
mod union;

use std::collections::HashSet;
use std::fmt::Debug;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, Time64MicrosecondType, Time64NanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

pub use head::Head;

use super::options::WriterOptions;
use super::stripe::StripeWriter;
use crate::compress::Compressor;
use crate::error::{Error, Result};
use crate::mask::Mask;
use crate::predicate::BloomBuilder;
use crate::proto::{ColumnStatistics, EncodingKind};
use crate::tail::FileVersion;
use crate::types::{Kind, MAX_SHORT_PRECISION, TypeDescription};
use crate::zone::Zone;

/// What the columns of a file share while they are written.
#[derive(Debug)]
pub struct Context {
    /// The codec's context.
    pub compressor: Compressor,
}

/// What a column's writer is made from.
#[derive(Debug)]
pub struct Plan<'a> {
    /// What was asked for.
    pub options: &'a WriterOptions,
    /// The zone of timestamps without one.
    pub zone: Zone,
    /// Columns with bloom filters.
    pub bloom_columns: HashSet<u32>,
    /// Encrypted columns, by variant, with their masks.
    pub encrypted: Vec<(u32, Mask)>,
    /// An empty filter of a row group.
    pub bloom: BloomBuilder,
}

/// Writes one column, and what is below it.
pub trait ColumnWriter: Debug + Send {
    /// Takes the values of all slots of an array.
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()>;
    /// Begins a row group.
    fn begin_group(&mut self, context: &Context);
    /// Ends a row group.
    fn end_group(&mut self, context: &mut Context) -> Result<()>;
    /// Ends the stripe: gives all streams to it; the writer is then as at the beginning, but for the file's statistics.
    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()>;
    /// Appends the file's statistics of this column and those below it.
    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>);
    /// Bytes that are held for the stripe.
    fn memory(&self) -> usize;
}

impl Plan<'_> {
    /// The writer of a type and everything below it.
    pub fn writer(&self, node: &TypeDescription) -> Result<Box<dyn ColumnWriter>> {
        let encrypted = self.encrypted.iter().enumerate().find(|(_, (root, _))| *root == node.column);
        let Some((variant, (_, mask))) = encrypted else { return self.plain_writer(node) };
        let (masked, own) = (self.plain_writer(node)?, self.plain_writer(node)?);
        Ok(Box::new(encrypted::EncryptedColumn::new(node, variant, mask, masked, own)))
    }

    /// The same, without encryption of the type itself.
    pub fn plain_writer(&self, node: &TypeDescription) -> Result<Box<dyn ColumnWriter>> {
        Ok(match &node.kind {
            Kind::Boolean => Box::new(number::BooleanColumn::new(node.column, self)),
            Kind::Byte => Box::new(number::ByteColumn::new(node.column, self)),
            Kind::Short | Kind::Int | Kind::Long => Box::new(number::IntColumn::new(node.column, self)),
            Kind::Date => Box::new(number::DateColumn::new(node.column, self)),
            Kind::Float => Box::new(number::FloatColumn::new(node.column, true, self)),
            Kind::Double => Box::new(number::FloatColumn::new(node.column, false, self)),
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => Box::new(text::TextColumn::new(node, self)),
            Kind::Binary => Box::new(text::BinaryColumn::new(node.column, text::OfBytes, self)),
            Kind::Geometry { .. } => Box::new(text::BinaryColumn::new(node.column, text::OfShapes(true), self)),
            Kind::Geography { .. } => Box::new(text::BinaryColumn::new(node.column, text::OfShapes(false), self)),
            Kind::Timestamp | Kind::TimestampInstant => Box::new(timestamp::TimestampColumn::new(node, self)),
            Kind::Decimal { precision, scale }
                if self.options.version == FileVersion::V2Draft && *precision <= MAX_SHORT_PRECISION =>
            {
                Box::new(decimal::ShortDecimalColumn::new(node.column, *precision, *scale, self))
            }
            Kind::Decimal { precision, scale } => {
                Box::new(decimal::DecimalColumn::new(node.column, *precision, *scale, self))
            }
            Kind::List => Box::new(nested::ListColumn::new(node, self)?),
            Kind::Map => Box::new(nested::MapColumn::new(node, self)?),
            Kind::Struct => Box::new(nested::StructColumn::new(node, self)?),
            Kind::Union => Box::new(union::UnionColumn::new(node, self)?),
        })
    }

    /// The encoding of columns with integer streams.
    pub fn direct(&self) -> EncodingKind {
        match self.options.version {
            FileVersion::V0_11 => EncodingKind::Direct,
            FileVersion::V0_12 | FileVersion::V2Draft => EncodingKind::DirectV2,
        }
    }

    /// The filter of a column, where one is wanted.
    pub fn bloom(&self, column: u32) -> Option<BloomBuilder> {
        self.bloom_columns.contains(&column).then(|| self.bloom.clone())
    }
}

/// Whether values of this kind can be in a bloom filter.
pub fn can_bloom(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::Boolean
            | Kind::List
            | Kind::Map
            | Kind::Struct
            | Kind::Union
            | Kind::Geometry { .. }
            | Kind::Geography { .. }
    )
}

/// An array of another type than the column was made for.
fn unexpected(column: u32, array: &dyn Array) -> Error {
    Error::invalid(format!("column {column} is given {}", array.data_type()))
}

/// A dictionary's values in the place of its keys; other arrays as they are.
fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => Ok(arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?),
        None => Ok(array.clone()),
    }
}

/// The values that are there, one after the other, in the scratch.
fn gather<T: Copy, U>(values: &[T], nulls: Option<&NullBuffer>, scratch: &mut Vec<U>, convert: impl Fn(T) -> U) {
    scratch.clear();
    match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => scratch.extend(values.iter().map(|value| convert(*value))),
        Some(nulls) => {
            scratch.reserve(values.len() - nulls.null_count());
            for (start, end) in nulls.valid_slices() {
                let run = values.get(start..end).unwrap_or_default();
                scratch.extend(run.iter().map(|value| convert(*value)));
            }
        }
    }
}

/// The integers that are there; the scratch is used where they cannot be given as they stand.
fn integers<'a>(column: u32, array: &'a ArrayRef, scratch: &'a mut Vec<i64>) -> Result<&'a [i64]> {
    fn widen<T: ArrowPrimitiveType>(array: &ArrayRef, scratch: &mut Vec<i64>)
    where
        T::Native: Into<i64>,
    {
        let array: &PrimitiveArray<T> = array.as_primitive();
        gather(array.values(), array.nulls(), scratch, Into::into);
    }
    match array.data_type() {
        DataType::Int64 if array.null_count() == 0 => return Ok(array.as_primitive::<Int64Type>().values()),
        DataType::Int64 => widen::<Int64Type>(array, scratch),
        DataType::Time64(TimeUnit::Microsecond) => widen::<Time64MicrosecondType>(array, scratch),
        DataType::Time64(_) => widen::<Time64NanosecondType>(array, scratch),
        DataType::Int32 => widen::<Int32Type>(array, scratch),
        DataType::Int16 => widen::<Int16Type>(array, scratch),
        DataType::Int8 => widen::<Int8Type>(array, scratch),
        DataType::UInt32 => widen::<UInt32Type>(array, scratch),
        DataType::UInt16 => widen::<UInt16Type>(array, scratch),
        DataType::UInt8 => widen::<UInt8Type>(array, scratch),
        DataType::UInt64 => {
            let array = array.as_primitive::<UInt64Type>();
            gather(array.values(), array.nulls(), scratch, |value| value as i64);
            if scratch.iter().any(|value| *value < 0) {
                return Err(Error::value(format!("column {column}: an unsigned integer beyond 63 bits")));
            }
        }
        _ => return Err(unexpected(column, array)),
    }
    Ok(scratch)
}
