//! A store that decrypts the one file that it is used for, and encrypts what is written to it (the AES GCM stream
//! specification). Offsets and lengths are those of the decrypted file.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use icefield_format::encryption::stream::{self, Blocks, StreamEncryptor};

use super::{Existing, Output, Pages, Store, too_long};
use crate::error::{Error, Result};
use crate::storage::encryption::Recent;
use crate::storage::{FileKey, Location};

/// A file with the encryption of its format stays as it is, except that it is never read by pages.
pub(in crate::storage) fn wrap(store: Arc<dyn Store>, key: Arc<FileKey>) -> Arc<dyn Store> {
    Arc::new(Encrypted { store, key })
}

#[derive(Debug)]
struct Encrypted {
    store: Arc<dyn Store>,
    key: Arc<FileKey>,
}

impl Store for Encrypted {
    fn read(&self, at: &Location, most: u64) -> Result<Bytes> {
        let Some((blocks, _)) = self.blocks()? else { return self.store.read(at, most) };
        if blocks.plain_length() > most {
            return Err(too_long(&at.to_string(), blocks.plain_length(), most));
        }
        let stored = match self.store.read(at, blocks.stored_length()) {
            Err(Error::TooLong { length, .. }) => {
                return Err(blocks.check_length(length).map_or_else(Error::from, |()| wrong_use()));
            }
            read => read?,
        };
        Ok(blocks.decrypt_all(&stored)?.into())
    }

    fn size(&self, at: &Location) -> Result<u64> {
        let stored = self.store.size(at)?;
        let Some((blocks, _)) = self.blocks()? else { return Ok(stored) };
        blocks.check_length(stored)?;
        Ok(blocks.plain_length())
    }

    fn ranges(&self, at: &Location, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some((blocks, recent)) = self.blocks()? else { return self.store.ranges(at, ranges) };
        let length = blocks.plain_length();
        if let Some(range) = ranges.iter().find(|range| range.start > range.end || range.end > length) {
            let message = format!("bytes {} to {} are not in it: it has {length}", range.start, range.end);
            return Err(icefield_format::Error::corrupt("", message).into());
        }
        let kept = recent.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let missing = |range: &Range<u64>| {
            let mut numbers = blocks.of_range(range);
            if kept.as_ref().is_some_and(|(kept, _)| *kept == numbers.start) && !numbers.is_empty() {
                numbers.start += 1;
            }
            numbers
        };
        let missing: Vec<Range<u64>> = ranges.iter().map(missing).collect();
        let places: Vec<Range<u64>> = missing.iter().map(|numbers| place(blocks, numbers)).collect();
        let wanted: Vec<Range<u64>> = places.iter().filter(|place| !place.is_empty()).cloned().collect();
        let mut stored = match wanted.is_empty() {
            true => Vec::new(),
            false => self.store.ranges(at, &wanted)?,
        }
        .into_iter();
        let mut found = Vec::with_capacity(ranges.len());
        for ((range, numbers), place) in ranges.iter().zip(missing).zip(places) {
            let all = blocks.of_range(range);
            let mut plain = Vec::new();
            if numbers.start > all.start
                && let Some((_, block)) = &kept
            {
                plain.extend_from_slice(block);
            }
            if !place.is_empty() {
                let bytes = stored.next().ok_or_else(wrong_use)?;
                let bytes = match numbers.start {
                    0 => {
                        let (header, rest) = bytes.split_at_checked(stream::HEADER as usize).unwrap_or_default();
                        stream::check_header(header)?;
                        bytes.slice_ref(rest)
                    }
                    _ => bytes,
                };
                if place.end - place.start.max(stream::HEADER) != bytes.len() as u64 {
                    return Err(icefield_format::Error::corrupt(
                        "",
                        "the encrypted file is shorter than its key metadata say",
                    )
                    .into());
                }
                blocks.decrypt(numbers.start, &bytes, &mut plain)?;
            }
            let plain = Bytes::from(plain);
            let first = blocks.plain_start(all.start);
            let slice = |range: Range<u64>| {
                let at =
                    |place: u64| usize::try_from(place.saturating_sub(first)).unwrap_or(usize::MAX).min(plain.len());
                plain.slice(at(range.start)..at(range.end))
            };
            if let Some(last) = numbers.end.checked_sub(1).filter(|_| !numbers.is_empty()) {
                let start = blocks.plain_start(last);
                let block = slice(start..start.saturating_add(stream::BLOCK));
                *recent.lock().unwrap_or_else(PoisonError::into_inner) = Some((last, block));
            }
            found.push(slice(range.clone()));
        }
        Ok(found)
    }

    fn put(&self, at: &Location, bytes: Bytes, existing: Existing) -> Result<()> {
        let bytes = match &*self.key {
            FileKey::OfFormat(_) => bytes,
            FileKey::NewStream(key) => stream::encrypt_all(key, &bytes)?.into(),
            FileKey::Stream(..) => return Err(wrong_use()),
        };
        self.store.put(at, bytes, existing)
    }

    fn output(&self, at: &Location) -> Result<Box<dyn Output>> {
        match &*self.key {
            FileKey::OfFormat(_) => self.store.output(at),
            FileKey::NewStream(key) => {
                let mut ready = Vec::new();
                let encryptor = StreamEncryptor::new(key, &mut ready)?;
                Ok(Box::new(EncryptedOutput { output: self.store.output(at)?, encryptor, ready }))
            }
            FileKey::Stream(..) => Err(wrong_use()),
        }
    }

    fn delete(&self, at: &Location) -> Result<()> {
        self.store.delete(at)
    }

    fn pages(&self, prefix: &Location) -> Result<Pages> {
        self.store.pages(prefix)
    }
}

impl Encrypted {
    /// The blocks of a stream; `None` for a file whose stored bytes are read.
    fn blocks(&self) -> Result<Option<(&Blocks, &Recent)>> {
        match &*self.key {
            FileKey::Stream(blocks, recent) => Ok(Some((blocks, recent))),
            FileKey::OfFormat(_) => Ok(None),
            FileKey::NewStream(_) => Err(wrong_use()),
        }
    }
}

/// Where blocks are stored; the first one with the header, so that it is checked.
fn place(blocks: &Blocks, numbers: &Range<u64>) -> Range<u64> {
    match blocks.stored_range(numbers) {
        place if numbers.is_empty() => place.start..place.start,
        place if numbers.start == 0 => 0..place.end,
        place => place,
    }
}

fn wrong_use() -> Error {
    Error::Internal("an encrypted file that is read while it is written".to_owned())
}

/// Encrypts what is written, block by block.
struct EncryptedOutput {
    output: Box<dyn Output>,
    encryptor: StreamEncryptor,
    /// Encrypted bytes that are not written yet.
    ready: Vec<u8>,
}

impl Output for EncryptedOutput {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.encryptor.push(&bytes, &mut self.ready)?;
        match self.ready.is_empty() {
            true => Ok(()),
            false => self.output.write(std::mem::take(&mut self.ready).into()),
        }
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let Self { mut output, encryptor, mut ready } = *self;
        if let Err(error) = encryptor.finish(&mut ready) {
            output.abort();
            return Err(error.into());
        }
        if let Err(error) = output.write(ready.into()) {
            // Otherwise the parts of an upload would stay in the store.
            output.abort();
            return Err(error);
        }
        output.finish()
    }

    fn abort(self: Box<Self>) {
        self.output.abort();
    }
}
