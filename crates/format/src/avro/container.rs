//! Reads the header and blocks of Avro files (Avro, "Object Container Files").

use std::sync::Arc;

use super::codec::Codec;
use super::cursor::{Cursor, Fault};
use crate::{Error, Limits, Result};

/// First four bytes of a file.
pub const MAGIC: [u8; 4] = *b"Obj\x01";
/// Length of the sync marker after each block.
pub const SYNC_BYTES: usize = 16;
const HEADER: &str = "Avro header";
/// Limit of the keys in a header.
const MOST_PAIRS: u64 = 10_000;

/// An Avro file whose header has been parsed.
#[derive(Debug, Clone)]
pub struct Container<'a> {
    /// Keys and values of the header, in file order.
    pub metadata: Vec<(&'a str, &'a [u8])>,
    /// Compression codec of the blocks.
    pub codec: Codec,
    sync: [u8; SYNC_BYTES],
    body: &'a [u8],
    length: usize,
}

/// A compressed block.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Number of records that it claims to have; do not allocate by this number.
    pub count: u64,
    /// The compressed records.
    pub data: &'a [u8],
    /// Offset of `data` in the file.
    pub offset: u64,
}

impl<'a> Container<'a> {
    /// Parses the header of a file.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        let at = |cursor: &Cursor<'_>| (bytes.len() - cursor.rest().len()) as u64;
        if cursor.array::<4>().map_err(|_| Error::corrupt_at(HEADER, 0, "the file is shorter than Avro's magic"))?
            != MAGIC
        {
            return Err(Error::corrupt_at(HEADER, 0, "not an Avro file: wrong magic"));
        }
        let metadata = metadata(&mut cursor).map_err(|fault| fault.at(HEADER, at(&cursor)))?;
        let sync = cursor.array::<SYNC_BYTES>().map_err(|fault| fault.at(HEADER, at(&cursor)))?;
        let codec = metadata
            .iter()
            .find(|(key, _)| *key == "avro.codec")
            .map_or(Ok(Codec::Null), |(_, name)| Codec::from_header(name))?;
        Ok(Self { metadata, codec, sync, body: cursor.rest(), length: bytes.len() })
    }

    /// Sync marker at the end of the header and of each block.
    pub fn sync(&self) -> [u8; SYNC_BYTES] {
        self.sync
    }

    /// Length of the header, which is the offset of the first block.
    pub fn header_length(&self) -> usize {
        self.length - self.body.len()
    }

    /// Value of a header key.
    pub fn value(&self, key: &str) -> Option<&'a [u8]> {
        self.metadata.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// Value of a header key, if it is text.
    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.value(key).and_then(|value| std::str::from_utf8(value).ok())
    }

    /// Parses the writer's schema.
    pub fn schema(&self, limits: &Limits) -> Result<super::Schema> {
        let json = self.value("avro.schema").ok_or_else(|| Error::corrupt(HEADER, "avro.schema is missing"))?;
        super::Schema::parse(json, limits)
    }

    /// The writer's schema; files on this thread with the same schema share one parsed copy.
    pub fn shared_schema(&self, limits: &Limits) -> Result<Arc<super::Schema>> {
        let json = self.value("avro.schema").ok_or_else(|| Error::corrupt(HEADER, "avro.schema is missing"))?;
        super::parse_shared(json, limits)
    }

    /// Iterates over the blocks, until the first error.
    pub fn blocks(&self) -> Blocks<'a> {
        Blocks { cursor: Cursor::new(self.body), sync: self.sync, length: self.length, ended: false }
    }
}

fn metadata<'a>(cursor: &mut Cursor<'a>) -> Result<Vec<(&'a str, &'a [u8])>, Fault> {
    let mut pairs = Vec::new();
    loop {
        let before = *cursor;
        let (count, _) = cursor.items()?;
        if count == 0 {
            return Ok(pairs);
        }
        // A pair has two bytes or more.
        if count > cursor.rest().len() as u64 / 2 || count > MOST_PAIRS.saturating_sub(pairs.len() as u64) {
            *cursor = before;
            return Err(Fault::TooLong);
        }
        for _ in 0..count {
            let before = *cursor;
            let key = std::str::from_utf8(cursor.bytes()?).map_err(|_| {
                *cursor = before;
                Fault::Text
            })?;
            pairs.push((key, cursor.bytes()?));
        }
    }
}

/// The blocks of a file.
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    cursor: Cursor<'a>,
    sync: [u8; SYNC_BYTES],
    length: usize,
    ended: bool,
}

impl<'a> Blocks<'a> {
    fn offset(&self) -> u64 {
        (self.length - self.cursor.rest().len()) as u64
    }

    fn block(&mut self) -> Result<Block<'a>, Fault> {
        let count = self.cursor.length()?;
        let before = self.cursor;
        let size = self.cursor.length()?;
        let offset = self.offset();
        let data = self.cursor.take(size).inspect_err(|_| self.cursor = before)?;
        Ok(Block { count, data, offset })
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || self.cursor.is_empty() {
            return None;
        }
        let block = self.block().map_err(|fault| fault.at("Avro block", self.offset()));
        let offset = self.offset();
        let outcome = block.and_then(|block| match self.cursor.array::<SYNC_BYTES>() {
            Ok(sync) if sync == self.sync => Ok(block),
            Ok(_) => Err(Error::corrupt_at("Avro block", offset, "the sync marker after the block does not match")),
            Err(fault) => Err(fault.at("Avro block", offset)),
        });
        self.ended = outcome.is_err();
        Some(outcome)
    }
}
