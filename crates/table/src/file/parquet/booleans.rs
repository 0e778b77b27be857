//! Booleans of flat columns: plain pages have them as Arrow has, a bit each.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, Buffer, NullBuffer};
use bytes::Bytes;
use parquet::basic::Encoding;
use parquet::data_type::BoolType;
use parquet::errors::{ParquetError, Result};

use super::flat::{Bits, Runs, Values};

/// The values of a column that were read.
#[derive(Default)]
pub(super) struct Booleans {
    /// Those that were appended, without nulls.
    bits: Option<BooleanBufferBuilder>,
}

impl Values for Booleans {
    type Type = BoolType;
    type Page = Bits;

    fn set_dictionary(&mut self, _: Bytes, _: usize, _: Encoding) -> Result<()> {
        Err(ParquetError::General("booleans have no dictionary".to_owned()))
    }

    fn open(&self, encoding: Encoding, bytes: Bytes) -> Result<Option<Bits>> {
        let rows = bytes.len().saturating_mul(8);
        let bits = || Bits { bits: BooleanBuffer::new(Buffer::from(bytes), 0, rows), at: 0 };
        Ok((encoding == Encoding::PLAIN).then(bits))
    }

    fn decoded(values: Vec<bool>) -> Bits {
        Bits { bits: BooleanBuffer::from(values), at: 0 }
    }

    fn reserve(&mut self, count: usize) {
        self.bits.get_or_insert_with(|| BooleanBufferBuilder::new(count));
    }

    fn append(&mut self, page: &mut Bits, runs: &Runs<'_>) -> Result<()> {
        let taken = page.take(runs.passed())?;
        let bits = self.bits.get_or_insert_with(|| BooleanBufferBuilder::new(0));
        for run in runs.iter() {
            bits.append_packed_range(taken.offset() + run.start..taken.offset() + run.end, taken.values());
        }
        Ok(())
    }

    fn skip(&self, page: &mut Bits, count: usize) -> Result<()> {
        page.take(count).map(drop)
    }

    fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef> {
        let bits = self.bits.take().unwrap_or_else(|| BooleanBufferBuilder::new(0)).build();
        let bits = match &nulls {
            None => bits,
            Some(nulls) => {
                let mut next = bits.iter();
                nulls.iter().map(|is_present| is_present && next.next().unwrap_or_default()).collect()
            }
        };
        Ok(Arc::new(BooleanArray::new(bits, nulls)))
    }
}
