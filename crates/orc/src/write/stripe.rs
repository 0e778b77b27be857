//! A stripe put together: what each column gives, and the order in which it stands in the file.

use crate::error::Result;
use crate::proto::{ColumnEncoding, ColumnStatistics, Stream, StreamKind};

use super::stream::{Context, compress_all};

/// A stream as it will stand in the file.
#[derive(Debug)]
pub struct StreamBytes {
    /// Whose it is.
    pub column: u32,
    /// What it holds.
    pub kind: StreamKind,
    /// Its bytes, compressed.
    pub bytes: Vec<u8>,
}

impl StreamBytes {
    /// As a stripe's footer has it.
    pub fn message(&self) -> Stream {
        Stream { kind: Some(self.kind), column: Some(self.column), length: Some(self.bytes.len() as u64) }
    }
}

/// Collects the streams of a stripe. Every byte of a stripe but its footer passes through here.
#[derive(Debug)]
pub struct StripeWriter<'a> {
    /// The codec, and what else the columns share.
    pub context: &'a mut Context,
    /// Row indexes and bloom filters, by column.
    pub index: Vec<StreamBytes>,
    /// The others, by column.
    pub data: Vec<StreamBytes>,
    /// How each column is encoded, in the order of their ids.
    pub encodings: Vec<ColumnEncoding>,
    /// What is known of each column, in the order of their ids.
    pub statistics: Vec<ColumnStatistics>,
    /// The first column.
    pub first: u32,
    /// Encrypted columns as they are; all above is masked.
    pub variants: Vec<VariantStripe>,
}

/// What a stripe holds of an encrypted column and all below it, not yet encrypted.
#[derive(Debug)]
pub struct VariantStripe {
    /// The number of the variant.
    pub variant: usize,
    pub index: Vec<StreamBytes>,
    pub data: Vec<StreamBytes>,
    pub encodings: Vec<ColumnEncoding>,
    pub statistics: Vec<ColumnStatistics>,
    /// Of all stripes so far.
    pub file_statistics: Vec<ColumnStatistics>,
}

impl<'a> StripeWriter<'a> {
    /// An empty stripe.
    pub fn new(context: &'a mut Context) -> Self {
        let (index, data) = (Vec::new(), Vec::new());
        Self { context, index, data, encodings: Vec::new(), statistics: Vec::new(), first: 0, variants: Vec::new() }
    }

    /// Adds a plain index stream.
    pub fn add_index(&mut self, column: u32, kind: StreamKind, plain: Vec<u8>) -> Result<()> {
        let bytes = compress_all(plain, &mut self.context.compressor)?;
        self.index.push(StreamBytes { column, kind, bytes });
        Ok(())
    }

    /// Adds a data stream.
    pub fn add_data(&mut self, column: u32, kind: StreamKind, bytes: Vec<u8>) {
        self.data.push(StreamBytes { column, kind, bytes });
    }

    /// Adds what the stripe's footer and the metadata section say of a column; columns come in the order of their ids.
    pub fn add_column(&mut self, column: u32, encoding: ColumnEncoding, statistics: ColumnStatistics) {
        debug_assert_eq!(column as usize, self.first as usize + self.encodings.len());
        self.encodings.push(encoding);
        self.statistics.push(statistics);
    }
}
