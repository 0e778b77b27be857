//! Encodes the tail of a new file ("File Tail"): metadata, footer, postscript.

use super::options::WriterOptions;
use super::stream::compress_all;
use crate::compress::Compressor;
use crate::error::{Error, Result};
use crate::origin::Origin;
use crate::proto::{
    ColumnStatistics, CompressionKind, Encryption, Footer, Message, Metadata, PostScript, StripeInformation,
    StripeStatistics, UserMetadataItem,
};
use crate::tail::FileVersion;
use crate::types::TypeDescription;

/// The first bytes of every file.
pub(super) const MAGIC: &[u8] = b"ORC";

/// The contents of the tail.
#[derive(Debug)]
pub(super) struct Tail<'a> {
    pub schema: &'a TypeDescription,
    pub options: &'a WriterOptions,
    pub origin: Origin,
    /// Bytes of the header and the stripes.
    pub content_length: u64,
    pub stripes: Vec<StripeInformation>,
    pub stripe_statistics: Vec<StripeStatistics>,
    pub statistics: Vec<ColumnStatistics>,
    pub user_metadata: &'a [(String, Vec<u8>)],
    /// The encryption message for the footer, and the encrypted statistics of the stripes.
    pub encryption: Option<(Encryption, Vec<u8>)>,
}

impl Tail<'_> {
    /// Encodes the tail.
    pub(super) fn encode(self, compressor: &mut Compressor) -> Result<Vec<u8>> {
        let options = self.options;
        let rows = self.stripes.iter().map(|stripe| stripe.number_of_rows.unwrap_or(0)).sum();
        let metadata = compress_all(Metadata { stripe_stats: self.stripe_statistics }.encode(), compressor)?;
        let item = |(name, value): &(String, Vec<u8>)| UserMetadataItem {
            name: Some(name.clone()),
            value: Some(value.clone()),
        };
        let (encryption, encrypted_statistics) = self.encryption.unzip();
        let footer = Footer {
            header_length: Some(MAGIC.len() as u64),
            content_length: Some(self.content_length),
            stripes: self.stripes,
            types: self.schema.to_proto(),
            metadata: self.user_metadata.iter().map(item).collect(),
            number_of_rows: Some(rows),
            statistics: self.statistics,
            row_index_stride: Some(options.row_index_stride),
            writer: self.origin.writer,
            encryption: encryption.map(Box::new),
            calendar: self.origin.calendar,
            software_version: self.origin.software_version,
        };
        let footer = compress_all(footer.encode(), compressor)?;
        let compressed = options.compression != CompressionKind::None;
        let postscript = PostScript {
            footer_length: Some(footer.len() as u64),
            compression: Some(options.compression),
            compression_block_size: compressed.then(|| compressor.block() as u64),
            version: version(options.version),
            metadata_length: Some(metadata.len() as u64),
            writer_version: self.origin.writer_version,
            stripe_statistics_length: encrypted_statistics.as_ref().map(|bytes| bytes.len() as u64),
            magic: Some("ORC".to_owned()),
        };
        let postscript = postscript.encode();
        let length = u8::try_from(postscript.len()).map_err(|_| Error::limit("the postscript exceeds 255 bytes"))?;
        let mut tail = encrypted_statistics.unwrap_or_default();
        tail.extend_from_slice(&metadata);
        tail.extend_from_slice(&footer);
        tail.extend_from_slice(&postscript);
        tail.push(length);
        Ok(tail)
    }
}

fn version(version: FileVersion) -> Vec<u32> {
    match version {
        FileVersion::V0_11 => vec![0, 11],
        FileVersion::V0_12 => vec![0, 12],
        FileVersion::V2Draft => vec![1, 9999],
    }
}
