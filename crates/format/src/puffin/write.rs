//! Writes Puffin files (Puffin spec, "File structure").

use std::io::Write;

use super::{BlobCodec, BlobMetadata, Footer, MAGIC};
use crate::types::reserved;
use crate::{Error, Result};

/// A blob to write.
#[derive(Debug, Clone, Default)]
pub struct Blob<'a> {
    /// Type of the blob.
    pub ty: &'a str,
    /// Field ids of the columns that it describes.
    pub fields: &'a [i32],
    /// The snapshot that it was computed from; -1 if inherited.
    pub snapshot_id: i64,
    /// Sequence number of that snapshot; -1 if inherited.
    pub sequence_number: i64,
    /// Uncompressed bytes.
    pub data: &'a [u8],
    /// Compression. Deletion vectors must be uncompressed.
    pub codec: BlobCodec,
    /// Properties of the blob.
    pub properties: Vec<(String, String)>,
}

/// Writes a Puffin file.
#[derive(Debug)]
pub struct PuffinWriter {
    file: Vec<u8>,
    footer: Footer,
    footer_codec: BlobCodec,
}

impl PuffinWriter {
    /// Starts a file without blobs; `properties` are those of the file, such as `created-by`.
    pub fn new(properties: Vec<(String, String)>) -> Self {
        Self { file: MAGIC.to_vec(), footer: Footer { blobs: Vec::new(), properties }, footer_codec: BlobCodec::None }
    }

    /// Compresses the footer with LZ4, which the Java library cannot read.
    #[must_use]
    pub fn with_compressed_footer(mut self) -> Self {
        self.footer_codec = BlobCodec::Lz4;
        self
    }

    /// Adds a blob; returns its description.
    pub fn add(&mut self, blob: &Blob<'_>) -> Result<&BlobMetadata> {
        let offset = self.file.len();
        compress(blob.codec, blob.data, &mut self.file)?;
        self.footer.blobs.push(BlobMetadata {
            ty: blob.ty.to_owned(),
            fields: blob.fields.to_vec(),
            snapshot_id: blob.snapshot_id,
            sequence_number: blob.sequence_number,
            offset: offset as u64,
            length: (self.file.len() - offset) as u64,
            compression_codec: blob.codec.name().map(str::to_owned),
            properties: blob.properties.clone(),
        });
        self.footer.blobs.last().ok_or_else(|| Error::invalid("no blob was added"))
    }

    /// Adds a deletion vector for a data file, as the table specification requires.
    pub fn add_deletion_vector(&mut self, data_file: &str, vector: &super::DeletionVector) -> Result<&BlobMetadata> {
        self.add(&Blob {
            ty: super::DELETION_VECTOR,
            fields: &[reserved::POS.id],
            snapshot_id: -1,
            sequence_number: -1,
            data: &vector.to_bytes()?,
            codec: BlobCodec::None,
            properties: vec![
                ("referenced-data-file".to_owned(), data_file.to_owned()),
                ("cardinality".to_owned(), vector.cardinality().to_string()),
            ],
        })
    }

    /// The blobs written so far.
    pub fn blobs(&self) -> &[BlobMetadata] {
        &self.footer.blobs
    }

    /// Returns the bytes of the file, and its footer.
    pub fn finish(mut self) -> Result<(Vec<u8>, Footer)> {
        add_footer(&mut self.file, &self.footer, self.footer_codec)?;
        Ok((self.file, self.footer))
    }
}

/// Returns a complete file with another footer; its blobs stay where they are.
pub fn with_footer(file: &[u8], footer: &Footer) -> Result<Vec<u8>> {
    let length = usize::try_from(Footer::length(file, file.len() as u64)?).unwrap_or(usize::MAX);
    let blobs = file.len().checked_sub(length).and_then(|end| file.get(..end));
    let mut changed = blobs.ok_or_else(|| Error::corrupt("Puffin footer", "it is longer than the file"))?.to_vec();
    add_footer(&mut changed, footer, BlobCodec::None)?;
    Ok(changed)
}

fn add_footer(file: &mut Vec<u8>, footer: &Footer, codec: BlobCodec) -> Result<()> {
    file.extend(MAGIC);
    let start = file.len();
    compress(codec, footer.to_json().to_string().as_bytes(), file)?;
    let length = u32::try_from(file.len() - start).map_err(|_| Error::invalid("a Puffin footer exceeds 4 GiB"))?;
    file.extend(length.to_le_bytes());
    file.extend([u8::from(codec != BlobCodec::None), 0, 0, 0]);
    file.extend(MAGIC);
    Ok(())
}

fn compress(codec: BlobCodec, data: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed = |error: String| Error::invalid(format!("cannot compress a Puffin blob: {error}"));
    match codec {
        BlobCodec::None => out.extend_from_slice(data),
        BlobCodec::Lz4 => {
            let info = lz4_flex::frame::FrameInfo::new().content_size(Some(data.len() as u64));
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, out);
            encoder.write_all(data).map_err(|error| failed(error.to_string()))?;
            encoder.finish().map_err(|error| failed(error.to_string()))?;
        }
        BlobCodec::Zstd => out.extend(zstd::bulk::compress(data, 3).map_err(|error| failed(error.to_string()))?),
    }
    Ok(())
}
