//! Decodes flat boolean columns. PLAIN pages store booleans as Arrow does, one bit each; RLE pages
//! in runs, as levels are stored.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::data_type::BoolType;
use parquet::errors::{ParquetError, Result};

use super::bits::{self, Packed};
use super::column::{Bits, Levels, Values};
use super::hybrid::Hybrid;
use super::nulls;
use super::runs::Runs;
use crate::file::parquet::guard::internal;

/// The decoded values of a column, without nulls.
#[derive(Default)]
pub(in crate::file::parquet) struct Booleans(Packed);

impl Values for Booleans {
    type Type = BoolType;
    type Page = Levels;

    fn clear_dictionary(&mut self) {}

    fn set_dictionary(&mut self, _: Bytes, _: usize) -> Result<()> {
        Err(ParquetError::General("booleans have no dictionary".to_owned()))
    }

    fn open(&self, encoding: Encoding, bytes: Bytes) -> Result<Option<Levels>> {
        match encoding {
            Encoding::PLAIN => {
                let rows = bytes.len().saturating_mul(8);
                Ok(Some(Levels::Bits(Bits { bits: BooleanBuffer::new(Buffer::from(bytes), 0, rows), at: 0 })))
            }
            // A page that contains only nulls may have no bytes. Others are levels of one bit after their length.
            Encoding::RLE if bytes.len() > 4 => Ok(Some(Levels::Runs(Hybrid::new(bytes.slice(4..), 1)?))),
            _ => Ok(None),
        }
    }

    fn decoded(values: Vec<bool>) -> Levels {
        Levels::Bits(Bits { bits: BooleanBuffer::from(values), at: 0 })
    }

    fn reserve(&mut self, count: usize) {
        self.0.reserve(count);
    }

    fn append(&mut self, page: &mut Levels, runs: &Runs<'_>) -> Result<()> {
        let taken = page.next(runs.passed())?;
        let (bytes, first) = (taken.values(), taken.offset());
        runs.iter().try_for_each(|run| self.0.append(bytes, first + run.start..first + run.end).map(drop))
    }

    fn skip(&self, page: &mut Levels, count: usize) -> Result<()> {
        page.next(count).map(drop)
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let values = std::mem::take(&mut self.0);
        let count = values.len();
        if nulls.as_ref().is_some_and(|nulls| nulls.len() - nulls.null_count() != count) {
            return Err(internal("a different count of booleans than of rows with a value"));
        }
        let bits = match &nulls {
            None => bits::buffer(values.into_words(), count),
            Some(nulls) => bits::buffer(nulls::bits(&values.into_words(), nulls), nulls.len()),
        };
        Ok(Arc::new(BooleanArray::new(bits, nulls)))
    }
}
