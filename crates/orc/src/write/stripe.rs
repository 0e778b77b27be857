//! Assembles a stripe from the streams of its columns, in the order of the file.

use crate::error::Result;
use crate::proto::{ColumnEncoding, ColumnStatistics, Stream, StreamKind};

use super::stream::{Context, compress_all};

/// A stream with its final bytes.
#[derive(Debug)]
pub(super) struct StreamBytes {
    /// The id of its column.
    pub column: u32,
    /// The kind of its contents.
    pub kind: StreamKind,
    /// Its bytes, compressed.
    pub bytes: Vec<u8>,
}

impl StreamBytes {
    /// The entry of the stream in the stripe footer.
    pub(super) fn message(&self) -> Stream {
        Stream { kind: Some(self.kind), column: Some(self.column), length: Some(self.bytes.len() as u64) }
    }
}

/// Collects the streams of a stripe: all of its bytes except the footer.
#[derive(Debug)]
pub(super) struct StripeWriter<'a> {
    /// The codec and the other state that the columns share.
    pub context: &'a mut Context,
    /// The streams, encodings and statistics collected so far.
    pub content: StripeContent,
}

/// The contribution of consecutive columns to a stripe.
#[derive(Debug, Default)]
pub(super) struct StripeContent {
    /// Row indexes and Bloom filters, by column.
    pub index: Vec<StreamBytes>,
    /// The data streams, by column.
    pub data: Vec<StreamBytes>,
    /// The encoding of each column, by column id.
    pub encodings: Vec<ColumnEncoding>,
    /// The statistics of each column, by column id.
    pub statistics: Vec<ColumnStatistics>,
    /// The true values of encrypted columns; all other fields contain the masked ones.
    pub variants: Vec<VariantStripe>,
}

impl StripeContent {
    /// Appends the content of the next columns.
    pub(super) fn append(&mut self, next: Self) {
        self.index.extend(next.index);
        self.data.extend(next.data);
        self.encodings.extend(next.encodings);
        self.statistics.extend(next.statistics);
        self.variants.extend(next.variants);
    }
}

/// The content of a stripe for an encrypted column and its children, not yet encrypted.
#[derive(Debug)]
pub(super) struct VariantStripe {
    /// The index of the variant.
    pub variant: usize,
    pub index: Vec<StreamBytes>,
    pub data: Vec<StreamBytes>,
    pub encodings: Vec<ColumnEncoding>,
    pub statistics: Vec<ColumnStatistics>,
    /// The statistics of all stripes so far.
    pub file_statistics: Vec<ColumnStatistics>,
}

impl<'a> StripeWriter<'a> {
    /// An empty stripe.
    pub(super) fn new(context: &'a mut Context) -> Self {
        Self { context, content: StripeContent::default() }
    }

    /// Compresses an index stream and adds it.
    pub(super) fn add_index(&mut self, column: u32, kind: StreamKind, plain: Vec<u8>) -> Result<()> {
        let bytes = compress_all(plain, &mut self.context.compressor)?;
        self.content.index.push(StreamBytes { column, kind, bytes });
        Ok(())
    }

    /// Adds a data stream.
    pub(super) fn add_data(&mut self, column: u32, kind: StreamKind, bytes: Vec<u8>) {
        self.content.data.push(StreamBytes { column, kind, bytes });
    }

    /// Adds the encoding of a column (for the stripe footer) and its statistics (for the metadata section). Columns
    /// must be added in the order of their ids.
    pub(super) fn add_column(&mut self, encoding: ColumnEncoding, statistics: ColumnStatistics) {
        self.content.encodings.push(encoding);
        self.content.statistics.push(statistics);
    }
}
