//! Files encrypted as a stream of blocks (the AES GCM stream specification, `AGS1`): a header and blocks of 1 MiB, each
//! encrypted on its own and bound to its place in its file. Any range can be read by decrypting the blocks that it
//! touches.

use std::fmt;
use std::ops::Range;

use super::cipher::{Cipher, OVERHEAD};
use super::key_metadata::KeyMetadata;
use crate::{Error, Result};

/// The first bytes of a file.
pub const MAGIC: [u8; 4] = *b"AGS1";
/// Bytes of the header: the magic bytes, and the length of a block.
pub const HEADER: u64 = 8;
/// Bytes of a block before encryption. Like the Java library, no other length is read: it would have to be known before
/// the header, which holds it, can be checked.
pub const BLOCK: u64 = 1 << 20;

const STORED_BLOCK: u64 = BLOCK + OVERHEAD as u64;
/// The most blocks, as in the Java library: the number of a block is an `int`.
const MOST_BLOCKS: u64 = i32::MAX as u64;

/// The blocks of a file with a known stored length, and its key.
pub struct Blocks {
    cipher: Cipher,
    aad_prefix: Vec<u8>,
    stored: u64,
    count: u64,
}

/// Does not print what the key metadata say.
impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks").field("stored", &self.stored).field("count", &self.count).finish_non_exhaustive()
    }
}

impl Blocks {
    /// The blocks of a file that the key metadata describe.
    ///
    /// # Errors
    /// Metadata without the length of the file, and a length that no stream has.
    pub fn of(metadata: &KeyMetadata) -> Result<Self> {
        let Some(stored) = metadata.file_length else {
            return Err(Error::corrupt("encryption key metadata", "they lack the length of the file"));
        };
        let (whole, rest) = {
            let body = stored.saturating_sub(HEADER);
            (body / STORED_BLOCK, body % STORED_BLOCK)
        };
        // A file without bytes has one empty block.
        let least = OVERHEAD as u64 + u64::from(whole > 0);
        let count = whole + u64::from(rest > 0);
        if stored <= HEADER || (rest > 0 && rest < least) || count > MOST_BLOCKS {
            return Err(Error::corrupt(
                "encryption key metadata",
                format!("no encrypted file has their length of {stored} bytes"),
            ));
        }
        Ok(Self { cipher: Cipher::new(&metadata.key)?, aad_prefix: metadata.aad_prefix.clone(), stored, count })
    }

    /// Bytes of the file as it is stored.
    pub fn stored_length(&self) -> u64 {
        self.stored
    }

    /// Bytes of the file after decryption.
    pub fn plain_length(&self) -> u64 {
        self.stored - HEADER - self.count * OVERHEAD as u64
    }

    /// Number of blocks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The numbers of the blocks with a range of decrypted bytes, which must be within the file.
    pub fn of_range(&self, plain: &Range<u64>) -> Range<u64> {
        match plain.is_empty() {
            true => plain.start / BLOCK..plain.start / BLOCK,
            false => plain.start / BLOCK..plain.end.div_ceil(BLOCK),
        }
    }

    /// The first decrypted byte of a block.
    pub fn plain_start(&self, block: u64) -> u64 {
        block * BLOCK
    }

    /// Where some consecutive blocks are stored.
    pub fn stored_range(&self, blocks: &Range<u64>) -> Range<u64> {
        let at = |block: u64| (HEADER + block * STORED_BLOCK).min(self.stored);
        at(blocks.start)..at(blocks.end)
    }

    /// Decrypts consecutive blocks from their stored bytes, and appends them to `out`.
    ///
    /// # Errors
    /// A block that is not the one written there: its number is the place of the error.
    pub fn decrypt(&self, first: u64, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let size = usize::try_from(STORED_BLOCK).unwrap_or(usize::MAX);
        for (block, bytes) in (first..).zip(stored.chunks(size)) {
            self.cipher.decrypt(bytes, &aad(&self.aad_prefix, block), out).map_err(|_| {
                let message = "it cannot be decrypted: the key is not that of the file, or the block was changed, or is \
                               that of another place or file";
                Error::corrupt(format!("encrypted block {block} of {}", self.count), message)
            })?;
        }
        Ok(())
    }

    /// Decrypts a whole file.
    ///
    /// # Errors
    /// A file of another length, with another header, or with a block that is not the one written there.
    pub fn decrypt_all(&self, stored: &[u8]) -> Result<Vec<u8>> {
        self.check_length(stored.len() as u64)?;
        let (header, rest) = stored.split_at_checked(HEADER as usize).unwrap_or_default();
        check_header(header)?;
        let mut plain = Vec::with_capacity(usize::try_from(self.plain_length()).unwrap_or(0));
        self.decrypt(0, rest, &mut plain)?;
        Ok(plain)
    }

    /// Refuses a file with another length than the key metadata say.
    pub fn check_length(&self, found: u64) -> Result<()> {
        if found == self.stored {
            return Ok(());
        }
        let message = format!(
            "the encrypted file has {found} bytes, and its key metadata say {}: blocks were cut off or added",
            self.stored
        );
        Err(Error::corrupt("", message))
    }
}

/// Refuses bytes that are not the header of a stream.
pub fn check_header(bytes: &[u8]) -> Result<()> {
    let length = bytes.strip_prefix(&MAGIC).and_then(|rest| Some(u32::from_le_bytes(rest.try_into().ok()?)));
    match length {
        Some(length) if u64::from(length) == BLOCK => Ok(()),
        Some(length) => Err(Error::corrupt(
            "",
            format!("it is encrypted in blocks of {length} bytes: only blocks of {BLOCK} bytes can be read"),
        )),
        None => {
            Err(Error::corrupt("", "the file is not encrypted (it does not begin with AGS1), although it has a key"))
        }
    }
}

/// Bytes of a file that stores this many bytes encrypted.
pub fn stored_length(plain: u64) -> u64 {
    HEADER + plain + plain.div_ceil(BLOCK).max(1) * OVERHEAD as u64
}

/// What a block is bound to: the file, and the number of the block.
fn aad(prefix: &[u8], block: u64) -> Vec<u8> {
    let number = u32::try_from(block).unwrap_or(u32::MAX);
    [prefix, &number.to_le_bytes()].concat()
}

/// Encrypts a file, piece by piece.
pub struct StreamEncryptor {
    cipher: Cipher,
    aad_prefix: Vec<u8>,
    /// Bytes of the next block.
    pending: Vec<u8>,
    block: u64,
}

/// Does not print what is not encrypted yet.
impl fmt::Debug for StreamEncryptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamEncryptor").field("block", &self.block).finish_non_exhaustive()
    }
}

impl StreamEncryptor {
    /// Begins a file: appends its header to `out`.
    ///
    /// # Errors
    /// A key that is not one of AES.
    pub fn new(metadata: &KeyMetadata, out: &mut Vec<u8>) -> Result<Self> {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&(BLOCK as u32).to_le_bytes());
        let cipher = Cipher::new(&metadata.key)?;
        Ok(Self { cipher, aad_prefix: metadata.aad_prefix.clone(), pending: Vec::new(), block: 0 })
    }

    /// Encrypts more bytes: appends the blocks that are full to `out`.
    ///
    /// # Errors
    /// More bytes than a stream has, and a system without random bytes.
    pub fn push(&mut self, mut plain: &[u8], out: &mut Vec<u8>) -> Result<()> {
        while !plain.is_empty() {
            if self.pending.is_empty() && plain.len() >= BLOCK as usize {
                let (block, rest) = plain.split_at_checked(BLOCK as usize).unwrap_or_default();
                self.encrypt(block, out)?;
                plain = rest;
                continue;
            }
            let room = (BLOCK as usize).saturating_sub(self.pending.len()).min(plain.len());
            let (more, rest) = plain.split_at_checked(room).unwrap_or_default();
            self.pending.extend_from_slice(more);
            plain = rest;
            if self.pending.len() == BLOCK as usize {
                let block = std::mem::take(&mut self.pending);
                self.encrypt(&block, out)?;
            }
        }
        Ok(())
    }

    /// Ends the file: appends its last block to `out`.
    ///
    /// # Errors
    /// As [`StreamEncryptor::push`].
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<()> {
        if self.block > 0 && self.pending.is_empty() {
            return Ok(());
        }
        let last = std::mem::take(&mut self.pending);
        self.encrypt(&last, out)
    }

    fn encrypt(&mut self, block: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if self.block >= MOST_BLOCKS {
            return Err(Error::invalid(format!("an encrypted file of more than {MOST_BLOCKS} blocks")));
        }
        self.cipher.encrypt(block, &aad(&self.aad_prefix, self.block), out)?;
        self.block += 1;
        Ok(())
    }
}

/// Encrypts a whole file.
///
/// # Errors
/// As [`StreamEncryptor::push`].
pub fn encrypt_all(metadata: &KeyMetadata, plain: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(usize::try_from(stored_length(plain.len() as u64)).unwrap_or(0));
    let mut stream = StreamEncryptor::new(metadata, &mut out)?;
    stream.push(plain, &mut out)?;
    stream.finish(&mut out)?;
    Ok(out)
}

/// Encrypts a whole file by a new key of this length in bytes, and returns it with its key metadata.
///
/// # Errors
/// A length that AES does not have, and a system without random bytes.
pub fn encrypt_new(plain: &[u8], key_length: usize) -> Result<(Vec<u8>, KeyMetadata)> {
    let key = KeyMetadata::random(key_length)?;
    let stored = encrypt_all(&key, plain)?;
    let file_length = Some(stored.len() as u64);
    Ok((stored, KeyMetadata { file_length, ..key }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(length: usize) -> (Vec<u8>, Vec<u8>, KeyMetadata) {
        let plain: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        let key = KeyMetadata::random(16).unwrap();
        let stored = encrypt_all(&key, &plain).unwrap();
        let key = KeyMetadata { file_length: Some(stored.len() as u64), ..key };
        (plain, stored, key)
    }

    #[test]
    fn every_length_comes_back_whole_and_by_ranges() {
        const MIB: usize = BLOCK as usize;
        for length in [0, 1, MIB, MIB + 7] {
            let (plain, stored, key) = made(length);
            assert_eq!(stored.len() as u64, stored_length(length as u64));
            assert_eq!(stored.len(), 8 + length + 28 * length.div_ceil(MIB).max(1));
            let blocks = Blocks::of(&key).unwrap();
            assert_eq!((blocks.plain_length(), blocks.count()), (length as u64, length.div_ceil(MIB).max(1) as u64));
            assert!(blocks.decrypt_all(&stored).unwrap() == plain, "{length}");
            for (start, end) in [(0, length), (length / 2, length), (length.saturating_sub(3), length), (0, length / 3)]
            {
                let range = start as u64..end as u64;
                let numbers = blocks.of_range(&range);
                let place = blocks.stored_range(&numbers);
                let mut out = Vec::new();
                blocks.decrypt(numbers.start, &stored[place.start as usize..place.end as usize], &mut out).unwrap();
                let first = start - blocks.plain_start(numbers.start) as usize;
                assert!(out[first..][..end - start] == plain[start..end], "{length}: {range:?}");
            }
        }
    }

    #[test]
    fn what_is_printed_has_no_key_and_no_row() {
        let key = KeyMetadata { key: vec![211; 16], aad_prefix: vec![212; 16], file_length: Some(99) };
        let mut stream = StreamEncryptor::new(&key, &mut Vec::new()).unwrap();
        stream.push(&[213; 9], &mut Vec::new()).unwrap();
        let key_metadata = Some(key.to_bytes());
        let manifest = crate::manifest::ManifestFile { key_metadata: key_metadata.clone(), ..Default::default() };
        let file = crate::manifest::DataFile { key_metadata, record_count: 214, ..Default::default() };
        let shown = format!("{key:?} {:?} {stream:?} {manifest:?} {file:?}", Blocks::of(&key).unwrap());
        for secret in ["211", "212", "213"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        // All else is shown: the text distinguishes files.
        assert!(shown.contains("record_count: 214") && shown.contains("key_metadata: Some((hidden))"), "{shown}");
    }

    #[test]
    fn pieces_make_the_same_file_as_the_whole() {
        let plain = vec![7; BLOCK as usize + 5];
        let key = KeyMetadata::random(32).unwrap();
        for piece in [700_001, 3 << 20] {
            let mut out = Vec::new();
            let mut stream = StreamEncryptor::new(&key, &mut out).unwrap();
            plain.chunks(piece).for_each(|piece| stream.push(piece, &mut out).unwrap());
            stream.finish(&mut out).unwrap();
            let key = KeyMetadata { file_length: Some(out.len() as u64), ..key.clone() };
            assert!(Blocks::of(&key).unwrap().decrypt_all(&out).unwrap() == plain, "{piece}");
        }
    }

    #[test]
    fn changed_files_are_refused_by_block() {
        let (_, stored, key) = made(2 * BLOCK as usize + 7);
        let (_, other, other_key) = made(2 * BLOCK as usize + 7);
        let block = |number: u64| {
            let place = Blocks::of(&key).unwrap().stored_range(&(number..number + 1));
            place.start as usize..place.end as usize
        };
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut changed = stored.clone();
            change(&mut changed);
            changed
        };
        let same_key = KeyMetadata { aad_prefix: b"another".to_vec(), ..key.clone() };
        for (what, bytes, key, part) in [
            ("one bit", with(&|bytes| bytes[block(1).start + 40] ^= 1), &key, "encrypted block 1 of 3"),
            (
                "swapped",
                with(&|bytes| {
                    let (first, second) = (bytes[block(0)].to_vec(), bytes[block(1)].to_vec());
                    bytes[block(0)].copy_from_slice(&second);
                    bytes[block(1)].copy_from_slice(&first);
                }),
                &key,
                "encrypted block 0 of 3",
            ),
            (
                "of another file",
                with(&|bytes| bytes[block(2)].copy_from_slice(&other[block(2)])),
                &key,
                "encrypted block 2 of 3",
            ),
            ("cut at a block", with(&|bytes| bytes.truncate(block(2).start)), &key, "cut off"),
            ("longer", with(&|bytes| bytes.push(0)), &key, "has 2097252 bytes"),
            ("another file", other.clone(), &key, "encrypted block 0 of 3"),
            ("another key", stored.clone(), &other_key, "encrypted block 0 of 3"),
            ("another prefix", stored.clone(), &same_key, "encrypted block 0 of 3"),
            ("not encrypted", with(&|bytes| bytes[..4].copy_from_slice(b"Obj\x01")), &key, "is not encrypted"),
            ("other blocks", with(&|bytes| bytes[4] = 1), &key, "blocks of 1048577 bytes"),
        ] {
            let error = Blocks::of(key).unwrap().decrypt_all(&bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{what}: {error}");
        }
    }

    #[test]
    fn lengths_that_no_stream_has_are_refused() {
        for length in [0, 8, 35, 8 + STORED_BLOCK + 28, 8 + STORED_BLOCK + 1, u64::MAX] {
            let key = KeyMetadata { file_length: Some(length), ..KeyMetadata::random(16).unwrap() };
            assert!(Blocks::of(&key).is_err(), "{length}");
        }
        let key = KeyMetadata { file_length: None, ..KeyMetadata::random(16).unwrap() };
        assert!(Blocks::of(&key).unwrap_err().to_string().contains("lack the length"));
    }
}
