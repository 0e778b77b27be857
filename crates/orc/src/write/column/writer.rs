//! Common code of the column writers: the plan that creates them, their trait, and access to Arrow arrays.

use std::collections::HashSet;
use std::fmt::Debug;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, RunEndIndexType, Time64MicrosecondType, Time64NanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};

use crate::error::{Error, Result};
use crate::mask::Mask;
use crate::predicate::BloomBuilder;
use crate::proto::{ColumnStatistics, EncodingKind};
use crate::tail::FileVersion;
use crate::write::options::WriterOptions;
use crate::write::stream::Context;
use crate::write::stripe::StripeWriter;
use crate::zone::Zone;

/// The settings that column writers are created from.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    /// The options of the file.
    pub options: &'a WriterOptions,
    /// The time zone of local timestamps.
    pub zone: Zone,
    /// Ids of the columns with Bloom filters.
    pub bloom_columns: HashSet<u32>,
    /// Ids and masks of the encrypted columns, by variant.
    pub encrypted: Vec<(u32, Mask)>,
    /// An empty Bloom filter of a row group.
    pub bloom: BloomBuilder,
}

/// Writes one column and its children.
pub(crate) trait ColumnWriter: Debug + Send {
    /// Writes the values of all slots of an array.
    fn write(&mut self, array: &ArrayRef, context: &mut Context) -> Result<()>;
    /// Begins a row group.
    fn begin_group(&mut self, context: &Context);
    /// Ends a row group.
    fn end_group(&mut self, context: &mut Context) -> Result<()>;
    /// Ends the stripe: gives it all streams, and resets the writer except for the statistics of the file.
    fn finish(&mut self, stripe: &mut StripeWriter<'_>) -> Result<()>;
    /// Appends the statistics of the file for this column and its children.
    fn file_statistics(&self, out: &mut Vec<ColumnStatistics>);
    /// The number of bytes held for the stripe.
    fn memory(&self) -> usize;
}

impl Plan<'_> {
    /// The encoding of columns with integer streams.
    pub(crate) fn direct(&self) -> EncodingKind {
        match self.options.version {
            FileVersion::V0_11 => EncodingKind::Direct,
            FileVersion::V0_12 | FileVersion::V2Draft => EncodingKind::DirectV2,
        }
    }

    /// An empty Bloom filter for a column, if the column has one.
    pub(crate) fn bloom(&self, column: u32) -> Option<BloomBuilder> {
        self.bloom_columns.contains(&column).then(|| self.bloom.clone())
    }
}

/// The error for an array of the wrong type.
pub(super) fn unexpected(column: u32, array: &dyn Array) -> Error {
    Error::invalid(format!("column {column}: unexpected type {}", array.data_type()))
}

/// Decodes dictionary and run-end arrays to one value per row; other arrays are returned unchanged.
pub(super) fn plain(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            Ok(arrow_select::take::take(dictionary.values(), dictionary.keys(), None)?)
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => each_row::<Int16Type>(array),
            DataType::Int32 => each_row::<Int32Type>(array),
            _ => each_row::<Int64Type>(array),
        },
        _ => Ok(array.clone()),
    }
}

fn each_row<R: RunEndIndexType>(array: &ArrayRef) -> Result<ArrayRef> {
    let runs = array
        .as_run_opt::<R>()
        .ok_or_else(|| Error::invalid(format!("unexpected run-length encoding {}", array.data_type())))?;
    let rows: Vec<u64> = (0..runs.len() as u64).collect();
    let places = runs.get_physical_indices(&rows)?;
    let places = UInt64Array::from_iter_values(places.into_iter().map(|place| place as u64));
    // `values` contains the values of all runs, although the array may be a slice of some.
    Ok(arrow_select::take::take(runs.values(), &places, None)?)
}

/// Copies the values that are not null, without gaps, to the scratch buffer.
pub(super) fn gather<T: Copy, U>(
    values: &[T],
    nulls: Option<&NullBuffer>,
    scratch: &mut Vec<U>,
    convert: impl Fn(T) -> U,
) {
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

/// The integers that are not null; in the scratch buffer if they cannot be borrowed from the array.
pub(super) fn integers<'a>(column: u32, array: &'a ArrayRef, scratch: &'a mut Vec<i64>) -> Result<&'a [i64]> {
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
                return Err(Error::value(format!("column {column}: an unsigned integer is out of range for 63 bits")));
            }
        }
        _ => return Err(unexpected(column, array)),
    }
    Ok(scratch)
}
