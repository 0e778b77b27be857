//! Decodes flat numeric columns: fixed-width values, stored contiguously in PLAIN pages and dictionaries.

use std::sync::Arc;

use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, make_array};
use arrow_buffer::{MutableBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::data_type as stored;
use parquet::data_type::DataType as ParquetType;
use parquet::errors::{ParquetError, Result};

use super::column::Values;
use super::hybrid::Hybrid;
use super::nulls;
use super::runs::Runs;
use crate::file::parquet::guard::internal;

/// How numbers are stored and what they decode to.
pub(in crate::file::parquet) trait Number: Send {
    /// The Parquet physical type.
    type Stored: ParquetType;
    /// The Arrow primitive with this representation; the column's own type may be another with the same one.
    type Array: ArrowPrimitiveType;

    /// Appends the little-endian numbers of a page.
    fn append(bytes: &[u8], out: &mut MutableBuffer);
    /// Converts a number that the parquet crate decoded.
    fn of(stored: &<Self::Stored as ParquetType>::T) -> Native<Self>;
}

type Native<N> = <<N as Number>::Array as ArrowPrimitiveType>::Native;

/// Bytes of a number in a page.
const fn width<N: Number>() -> usize {
    size_of::<<N::Stored as ParquetType>::T>()
}

macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident: $stored:ident $native:ident as $array:ident;)*) => {$(
        $(#[$about])*
        pub(in crate::file::parquet) struct $name;

        impl Number for $name {
            type Stored = stored::$stored;
            type Array = $array;

            fn append(bytes: &[u8], out: &mut MutableBuffer) {
                if cfg!(target_endian = "little") && size_of::<$native>() == size_of::<Native<Self>>() {
                    return out.extend_from_slice(bytes);
                }
                let (numbers, _) = bytes.as_chunks();
                out.extend(numbers.iter().map(|number| Native::<Self>::from($native::from_le_bytes(*number))));
            }

            fn of(stored: &$native) -> Native<Self> {
                (*stored).into()
            }
        }
    )*};
}

numbers! {
    /// Integers and days.
    Ints: Int32Type i32 as Int32Type;
    /// Long integers, times and timestamps.
    Longs: Int64Type i64 as Int64Type;
    /// Floats.
    Floats: FloatType f32 as Float32Type;
    /// Doubles.
    Doubles: DoubleType f64 as Float64Type;
    /// Decimals of at most nine digits.
    IntDecimals: Int32Type i32 as Decimal128Type;
    /// Decimals of at most 18 digits.
    LongDecimals: Int64Type i64 as Decimal128Type;
}

/// The decoded numbers of a column.
pub(in crate::file::parquet) struct Numbers<N: Number> {
    ty: DataType,
    made: MutableBuffer,
    dictionary: Option<ScalarBuffer<Native<N>>>,
    keys: Vec<u32>,
}

/// The unread numbers of a page.
pub(in crate::file::parquet) enum Page<N: Number> {
    /// Contiguous values.
    Plain(Bytes),
    /// Dictionary keys.
    Keys(Hybrid),
    /// Values decoded by the parquet crate, and how many were read.
    Decoded(Vec<<N::Stored as ParquetType>::T>, usize),
}

impl<N: Number> Numbers<N> {
    /// No numbers yet; `ty` is a type with the representation of `N`.
    pub(in crate::file::parquet) fn new(ty: DataType) -> Self {
        Self { ty, made: MutableBuffer::default(), dictionary: None, keys: Vec::new() }
    }
}

impl<N: Number> Values for Numbers<N> {
    type Type = N::Stored;
    type Page = Page<N>;

    fn clear_dictionary(&mut self) {
        self.dictionary = None;
    }

    fn set_dictionary(&mut self, bytes: Bytes, count: usize) -> Result<()> {
        let mut dictionary = MutableBuffer::default();
        N::append(taken::<N>(&bytes, count)?, &mut dictionary);
        self.dictionary = Some(dictionary.into());
        Ok(())
    }

    fn open(&self, encoding: Encoding, bytes: Bytes) -> Result<Option<Page<N>>> {
        match encoding {
            Encoding::PLAIN => Ok(Some(Page::Plain(bytes))),
            Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY => {
                // A page that contains only nulls may have no bytes.
                let Some(width) = bytes.first().copied() else { return Ok(Some(Page::Plain(bytes))) };
                Ok(Some(Page::Keys(Hybrid::new(bytes.slice(1..), width)?)))
            }
            _ => Ok(None),
        }
    }

    fn decoded(values: Vec<<N::Stored as ParquetType>::T>) -> Page<N> {
        Page::Decoded(values, 0)
    }

    fn reserve(&mut self, count: usize) {
        self.made.reserve(count * size_of::<Native<N>>());
    }

    fn append(&mut self, page: &mut Page<N>, runs: &Runs<'_>) -> Result<()> {
        let passed = runs.passed();
        match page {
            Page::Plain(bytes) => {
                let numbers = taken::<N>(bytes, passed)?;
                for run in runs.iter() {
                    let run = numbers.get(run.start * width::<N>()..run.end * width::<N>());
                    N::append(run.ok_or_else(lost)?, &mut self.made);
                }
                self.skip(page, passed)
            }
            Page::Keys(_) if passed == 0 => Ok(()),
            Page::Keys(keys) => {
                let missing = || ParquetError::General("a page has keys of a dictionary that is missing".to_owned());
                let dictionary = self.dictionary.as_deref().ok_or_else(missing)?;
                let beyond = || {
                    let message = format!("a page has keys beyond its dictionary of {} values", dictionary.len());
                    ParquetError::General(message)
                };
                keys.parts(runs, &mut self.keys, |keys, runs| {
                    if keys.iter().copied().fold(0, u32::max) as usize >= dictionary.len() {
                        return Err(beyond());
                    }
                    let value = |key: &u32| dictionary.get(*key as usize).copied().unwrap_or_default();
                    for run in runs.iter() {
                        self.made.extend(keys.get(run).ok_or_else(lost)?.iter().map(value));
                    }
                    Ok(())
                })
            }
            Page::Decoded(values, at) => {
                let numbers = values.get(*at..).and_then(|rest| rest.get(..passed)).ok_or_else(ends_early)?;
                for run in runs.iter() {
                    self.made.extend(numbers.get(run).ok_or_else(lost)?.iter().map(N::of));
                }
                self.skip(page, passed)
            }
        }
    }

    fn skip(&self, page: &mut Page<N>, count: usize) -> Result<()> {
        match page {
            Page::Plain(bytes) => {
                let skipped = taken::<N>(bytes, count)?.len();
                *bytes = bytes.slice(skipped..);
            }
            Page::Keys(keys) => keys.skip(count)?,
            Page::Decoded(values, at) => {
                *at = at.checked_add(count).filter(|at| *at <= values.len()).ok_or_else(ends_early)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let made = ScalarBuffer::<Native<N>>::from(std::mem::take(&mut self.made));
        if nulls.as_ref().is_some_and(|nulls| nulls.len() - nulls.null_count() != made.len()) {
            return Err(internal("a different count of numbers than of rows with a value"));
        }
        let made = match &nulls {
            None => made,
            Some(nulls) => nulls::numbers(&made, nulls).into(),
        };
        let array = PrimitiveArray::<N::Array>::try_new(made, nulls)?;
        if Array::data_type(&array) == &self.ty {
            return Ok(Arc::new(array));
        }
        Ok(make_array(array.into_data().into_builder().data_type(self.ty.clone()).build()?))
    }
}

/// The bytes of the first `count` numbers.
fn taken<N: Number>(bytes: &[u8], count: usize) -> Result<&[u8]> {
    let length = count.checked_mul(width::<N>());
    length.and_then(|length| bytes.get(..length)).ok_or_else(ends_early)
}

fn lost() -> ParquetError {
    internal("numbers that are wanted and were not read")
}

fn ends_early() -> ParquetError {
    ParquetError::EOF("a page has fewer numbers than it says".to_owned())
}
