//! Writes Avro values, blocks and files (Avro, "Binary Encoding", "Object Container Files").

use super::codec::{Compression, Compressor};
use super::container::{MAGIC, SYNC_BYTES};
use crate::Result;

/// Uncompressed size at which a block ends, as in Java's writer.
const BLOCK_BYTES: usize = 64_000;

/// Encodes values one after the other.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// Writes a zigzag varint: Avro's `int` and `long`.
    pub fn long(&mut self, value: i64) {
        let mut bits = ((value << 1) ^ (value >> 63)).cast_unsigned();
        while bits >= 0x80 {
            self.bytes.push((bits & 0x7f) as u8 | 0x80);
            bits >>= 7;
        }
        self.bytes.push(bits as u8);
    }

    /// Writes Avro's `int`.
    pub fn int(&mut self, value: i32) {
        self.long(i64::from(value));
    }

    /// Writes a length or count.
    pub fn length(&mut self, length: usize) {
        // Slices are never longer than `isize::MAX`.
        self.long(i64::try_from(length).unwrap_or(i64::MAX));
    }

    /// Writes Avro's `bytes`, or a `string` as UTF-8.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.length(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes Avro's `boolean`.
    pub fn boolean(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// Writes bytes without a length: Avro's `fixed`, `float` and `double`.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes the branch of a union of null and another type; null is branch 0.
    pub fn some(&mut self, is_some: bool) {
        self.bytes.push(if is_some { 2 } else { 0 });
    }

    /// Writes an optional `int` or `long`.
    pub fn optional_long(&mut self, value: Option<i64>) {
        self.some(value.is_some());
        value.into_iter().for_each(|value| self.long(value));
    }

    /// Writes optional `bytes` or an optional `string`.
    pub fn optional_bytes(&mut self, value: Option<&[u8]>) {
        self.some(value.is_some());
        value.into_iter().for_each(|value| self.bytes(value));
    }

    /// Number of bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes yet.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Writes an Avro file.
#[derive(Debug)]
pub struct ContainerWriter {
    file: Vec<u8>,
    /// Number of bytes that were already taken from the file.
    taken: usize,
    sync: [u8; SYNC_BYTES],
    compressor: Compressor,
    block: Encoder,
    records: usize,
}

impl ContainerWriter {
    /// Starts a file with this header. `sync` is the marker between blocks: any 16 bytes, preferably random.
    pub fn new(
        schema: &str,
        metadata: &[(&str, &str)],
        compression: Compression,
        sync: [u8; SYNC_BYTES],
    ) -> Result<Self> {
        let mut header = Encoder::default();
        header.raw(&MAGIC);
        header.length(metadata.len() + 2);
        for (key, value) in [("avro.schema", schema), ("avro.codec", compression.codec.header())].iter().chain(metadata)
        {
            header.bytes(key.as_bytes());
            header.bytes(value.as_bytes());
        }
        header.length(0);
        header.raw(&sync);
        let compressor = Compressor::new(compression)?;
        Ok(Self { file: header.into_bytes(), taken: 0, sync, compressor, block: Encoder::default(), records: 0 })
    }

    /// Adds a record that `write` encodes.
    pub fn record(&mut self, write: impl FnOnce(&mut Encoder) -> Result<()>) -> Result<()> {
        let before = self.block.bytes.len();
        if let Err(error) = write(&mut self.block) {
            self.block.bytes.truncate(before);
            return Err(error);
        }
        self.records += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.end_block()?;
        }
        Ok(())
    }

    /// Approximate length of the file so far: the written blocks, and the open block uncompressed.
    pub fn length(&self) -> usize {
        self.taken + self.file.len() + self.block.len()
    }

    /// Number of bytes in memory, compressed or not.
    pub fn waiting(&self) -> usize {
        self.file.len() + self.block.len()
    }

    /// Takes the bytes of the file since the last call, without the open block.
    pub fn take(&mut self) -> Vec<u8> {
        self.taken += self.file.len();
        std::mem::take(&mut self.file)
    }

    /// Returns the remaining bytes of the file.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.end_block()?;
        Ok(self.file)
    }

    /// Ends the open block if it has records.
    pub fn end_block(&mut self) -> Result<()> {
        if self.records == 0 {
            return Ok(());
        }
        let data = self.compressor.run(&self.block.bytes)?;
        let mut head = Encoder::default();
        head.length(self.records);
        head.bytes(&data);
        head.raw(&self.sync);
        self.file.append(&mut head.bytes);
        self.block.bytes.clear();
        self.records = 0;
        Ok(())
    }
}
