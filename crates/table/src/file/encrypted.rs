//! Writes encrypted files: Avro as a stream of encrypted blocks, Parquet with its own encryption.

use arrow_array::RecordBatch;
use icefield_format::encryption::{HiddenBytes, KeyMetadata, stream};

use super::{FileWriter, WrittenFile};
use crate::error::Result;

/// A file being written into a storage that encrypts it; adds what readers need for decrypting it.
#[derive(Debug)]
pub(super) struct EncryptedFile {
    pub(super) file: Box<dyn FileWriter>,
    pub(super) key: KeyMetadata,
    /// Whether the whole file is encrypted as a stream: it is then longer than its writer knows.
    pub(super) is_stream: bool,
}

impl EncryptedFile {
    fn stored(&self, bytes: u64) -> u64 {
        if self.is_stream { stream::stored_length(bytes) } else { bytes }
    }
}

impl FileWriter for EncryptedFile {
    fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        self.file.write(batches, side_by_side)
    }

    fn close_group(&mut self) -> Result<()> {
        self.file.close_group()
    }

    fn memory(&self) -> usize {
        self.file.memory()
    }

    fn size(&self) -> u64 {
        self.stored(self.file.size())
    }

    fn finish(self: Box<Self>) -> Result<WrittenFile> {
        let Self { file, mut key, is_stream } = *self;
        let written = file.finish()?;
        let bytes = if is_stream { stream::stored_length(written.bytes) } else { written.bytes };
        key.file_length = Some(bytes);
        Ok(WrittenFile { bytes, key_metadata: Some(HiddenBytes(key.to_bytes())), ..written })
    }

    fn abort(self: Box<Self>) {
        self.file.abort();
    }
}
