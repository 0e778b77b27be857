//! The envelope of bytes sent between machines: a header and sections, checked on arrival.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::read::wire::{pack, unpack};

/// Size of a length or checksum in bytes.
const WORD: usize = 4;

/// A kind of message: its first eight bytes, ending with the version, and its name in errors.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) magic: [u8; 8],
    pub(crate) name: &'static str,
}

impl Kind {
    fn wrong(&self, what: &str) -> Error {
        Error::invalid(format!("not {}: {what}", self.name))
    }

    /// Whether bytes begin like this kind, in any version.
    pub(crate) fn claimed(&self, bytes: &[u8]) -> bool {
        bytes.get(..7).is_some_and(|start| self.magic.starts_with(start))
    }

    /// Packs a header and sections. The header is compressed; the sections are not.
    pub(crate) fn seal(&self, header: &impl Serialize, sections: &[Bytes]) -> Result<Vec<u8>> {
        let header = serde_json::to_vec(header).map_err(|error| Error::Internal(error.to_string()))?;
        let header = pack(&header)?;
        let parts: Vec<&[u8]> = [header.as_slice()].into_iter().chain(sections.iter().map(AsRef::as_ref)).collect();
        let word = |number: usize| {
            let number = u32::try_from(number);
            number.map(u32::to_le_bytes).map_err(|_| Error::unsupported(format!("{} of more than 4 GiB", self.name)))
        };
        let length = parts.iter().map(|part| part.len() + WORD).sum::<usize>() + self.magic.len() + 2 * WORD;
        let mut sealed = Vec::with_capacity(length);
        sealed.extend(self.magic);
        sealed.extend([0; WORD]);
        sealed.extend(word(parts.len())?);
        for part in &parts {
            sealed.extend(word(part.len())?);
        }
        parts.iter().for_each(|part| sealed.extend_from_slice(part));
        let start = self.magic.len() + WORD;
        let checksum = crc32fast::hash(sealed.get(start..).unwrap_or_default());
        sealed.splice(self.magic.len()..start, checksum.to_le_bytes());
        Ok(sealed)
    }

    /// Unpacks the header and the sections of [`Kind::seal`].
    ///
    /// # Errors
    /// Bytes of another kind or version, or bytes that are damaged or truncated.
    pub(crate) fn open<H: DeserializeOwned>(&self, bytes: &Bytes) -> Result<(H, Vec<Bytes>)> {
        if !self.claimed(bytes) {
            return Err(self.wrong("it begins with other bytes"));
        }
        if !bytes.starts_with(&self.magic) {
            return Err(self.wrong("it is of another version of this library: use the same version everywhere"));
        }
        let damaged = || self.wrong("it was cut or damaged on the way");
        let word = |at: usize| -> Result<u32> {
            let word = at.checked_add(WORD).and_then(|end| bytes.get(at..end)).ok_or_else(damaged)?;
            Ok(u32::from_le_bytes(word.try_into().map_err(|_| damaged())?))
        };
        let start = self.magic.len() + WORD;
        if word(self.magic.len())? != crc32fast::hash(bytes.get(start..).unwrap_or_default()) {
            return Err(damaged());
        }
        let count = word(start)? as usize;
        let mut end =
            count.checked_mul(WORD).and_then(|lengths| lengths.checked_add(start + WORD)).ok_or_else(damaged)?;
        let mut parts = Vec::with_capacity(count.min(bytes.len() / WORD));
        for number in 0..count {
            let length = word(start + WORD + number * WORD)? as usize;
            let from = end;
            end = from.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(damaged)?;
            parts.push(bytes.slice(from..end));
        }
        if end != bytes.len() || parts.is_empty() {
            return Err(damaged());
        }
        let sections = parts.split_off(1);
        let header = unpack(parts.first().map(AsRef::as_ref).unwrap_or_default())?;
        let header = serde_json::from_slice(&header).map_err(|error| self.wrong(&error.to_string()))?;
        Ok((header, sections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind { magic: *b"ICETEST\x01", name: "a test" };

    #[test]
    fn bytes_that_are_not_those_that_were_sealed_are_refused() {
        let sections = [Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b"three")];
        let sealed = KIND.seal(&vec![1, 2], &sections).unwrap();
        let open = |bytes: Vec<u8>| KIND.open::<Vec<i32>>(&Bytes::from(bytes)).map_err(|error| error.to_string());
        assert_eq!(open(sealed.clone()).unwrap(), (vec![1, 2], sections.to_vec()));
        for length in 0..sealed.len() {
            assert!(open(sealed[..length].to_vec()).is_err(), "{length}");
        }
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            let error = open(changed).unwrap_err();
            assert!(error.starts_with("not a test: "), "{place}: {error}");
        }
        let mut other = sealed;
        other[7] = 2;
        assert!(open(other).unwrap_err().contains("another version"));
    }
}
