//! A stripe assembled: the streams of its columns, in their order in the file.

use crate::error::Result;
use crate::proto::{ColumnEncoding, ColumnStatistics, Stream, StreamKind};

use super::stream::{Context, compress_all};

/// A stream as it will stand in the file.
#[derive(Debug)]
pub(super) struct StreamBytes {
    /// Whose it is.
    pub column: u32,
    /// What it holds.
    pub kind: StreamKind,
    /// Its bytes, compressed.
    pub bytes: Vec<u8>,
}

impl StreamBytes {
    /// As a stripe's footer has it.
    pub(super) fn message(&self) -> Stream {
        Stream { kind: Some(self.kind), column: Some(self.column), length: Some(self.bytes.len() as u64) }
    }
}

/// Collects the streams of a stripe. Every byte of a stripe but its footer passes through here.
#[derive(Debug)]
pub(super) struct StripeWriter<'a> {
    /// The codec, and what else the columns share.
    pub context: &'a mut Context,
    /// What was collected.
    pub content: StripeContent,
}

/// What some columns that follow each other give to a stripe.
#[derive(Debug, Default)]
pub(super) struct StripeContent {
    /// Row indexes and bloom filters, by column.
    pub index: Vec<StreamBytes>,
    /// The others, by column.
    pub data: Vec<StreamBytes>,
    /// How each column is encoded, in the order of their ids.
    pub encodings: Vec<ColumnEncoding>,
    /// What is known of each column, in the order of their ids.
    pub statistics: Vec<ColumnStatistics>,
    /// Encrypted columns as they are; all above is masked.
    pub variants: Vec<VariantStripe>,
}

impl StripeContent {
    /// Appends that of the columns that follow.
    pub(super) fn append(&mut self, next: Self) {
        self.index.extend(next.index);
        self.data.extend(next.data);
        self.encodings.extend(next.encodings);
        self.statistics.extend(next.statistics);
        self.variants.extend(next.variants);
    }
}

/// What a stripe holds of an encrypted column and all below it, not yet encrypted.
#[derive(Debug)]
pub(super) struct VariantStripe {
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
    pub(super) fn new(context: &'a mut Context) -> Self {
        Self { context, content: StripeContent::default() }
    }

    /// Adds a plain index stream.
    pub(super) fn add_index(&mut self, column: u32, kind: StreamKind, plain: Vec<u8>) -> Result<()> {
        let bytes = compress_all(plain, &mut self.context.compressor)?;
        self.content.index.push(StreamBytes { column, kind, bytes });
        Ok(())
    }

    /// Adds a data stream.
    pub(super) fn add_data(&mut self, column: u32, kind: StreamKind, bytes: Vec<u8>) {
        self.content.data.push(StreamBytes { column, kind, bytes });
    }

    /// Adds what the stripe's footer and the metadata section say of a column; columns come in the order of their ids.
    pub(super) fn add_column(&mut self, encoding: ColumnEncoding, statistics: ColumnStatistics) {
        self.content.encodings.push(encoding);
        self.content.statistics.push(statistics);
    }
}
