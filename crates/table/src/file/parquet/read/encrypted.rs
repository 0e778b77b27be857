//! Column chunks of encrypted files ("Parquet Modular Encryption"), decrypted before they are decoded.
//!
//! The library decrypts footers. It cannot read the pages of the Java library: that writes checksums of the encrypted
//! pages, and the library compares them with the decrypted ones. So a chunk is decrypted here, page by page, and becomes
//! a chunk of a plain file with the same number of bytes: offsets in the footer stay right. Checksums are dropped, since
//! each page has the tag of its encryption. What the tags and lengths took becomes one page header without a page at the
//! end of the chunk.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use icefield_format::encryption::{Cipher, KeyMetadata};
use parquet::file::metadata::ParquetMetaData;

use super::tail::Tail;
use crate::error::{Error, Result};
use crate::storage::{FileKey, Storage};

/// Module types of the specification: data pages, dictionary pages, and the headers of both.
const DATA: (u8, u8) = (2, 4);
const DICTIONARY: (u8, u8) = (3, 5);
/// Bytes of the length before a module.
const LENGTH: usize = 4;
/// Thrift's compact protocol: types of fields.
const BINARY: u8 = 8;
const STRUCT: u8 = 12;
/// Header of a field of type `i32`, whose id follows that of the field before.
const NEXT_I32: u8 = 0x15;
/// Bytes of the header that takes the place of tags and lengths, without its padding.
const FILLER: usize = 13;
/// Maximum nesting of a page header.
const MOST_DEPTH: usize = 8;
/// Maximum length of the `FileCryptoMetaData` before an encrypted footer.
const MOST_CRYPTO: u64 = 1 << 10;

/// The encrypted column chunks of some row groups.
pub(super) struct Chunks {
    cipher: Cipher,
    /// What every module is bound to: the AAD prefix, and the file's own identifier.
    file: Vec<u8>,
    /// Column chunks by their first byte.
    places: HashMap<u64, Chunk>,
}

#[derive(Clone, Copy)]
struct Chunk {
    row_group: i16,
    column: i16,
    has_dictionary: bool,
}

impl Chunks {
    /// The encrypted chunks of some row groups; `unique` is the identifier of the file.
    ///
    /// # Errors
    /// Row groups or columns whose numbers exceed the two bytes that bind a module to them.
    pub(super) fn of(
        path: &str,
        key: &KeyMetadata,
        unique: &[u8],
        metadata: &ParquetMetaData,
        groups: &[usize],
    ) -> Result<Self> {
        let mut places = HashMap::new();
        for number in groups {
            let Some(group) = metadata.row_groups().get(*number) else { continue };
            for (column, chunk) in group.columns().iter().enumerate() {
                let (Ok(row_group), Ok(column)) = (i16::try_from(*number), i16::try_from(column)) else {
                    let message = format!(
                        "row group {number}, column {column}: an encrypted file has at most 32767 row groups and columns"
                    );
                    return Err(Error::corrupt_file(path, message));
                };
                let has_dictionary = chunk.dictionary_page_offset().is_some();
                let start = chunk.dictionary_page_offset().unwrap_or_else(|| chunk.data_page_offset());
                if let Ok(start) = u64::try_from(start) {
                    places.insert(start, Chunk { row_group, column, has_dictionary });
                }
            }
        }
        let file = [&*key.aad_prefix, unique].concat();
        Ok(Self { cipher: Cipher::new(&key.key)?, file, places })
    }

    /// Decrypts chunks, which begin at the starts of these ranges.
    pub(super) fn decrypt(&self, path: &str, ranges: &[Range<u64>], stored: Vec<Bytes>) -> Result<Vec<Bytes>> {
        let decrypt = |(range, stored): (&Range<u64>, Bytes)| {
            let chunk = self.places.get(&range.start).ok_or_else(|| {
                Error::Internal(format!("{path}: bytes from {} on are not a column chunk", range.start))
            })?;
            let plain = self.plain(*chunk, &stored);
            plain.map(Bytes::from).map_err(|what| {
                let Chunk { row_group, column, .. } = chunk;
                Error::corrupt_file(path, format!("row group {row_group}, column {column}: {what}"))
            })
        };
        ranges.iter().zip(stored).map(decrypt).collect()
    }

    /// A chunk as it would be in a plain file, filled up to its stored length.
    fn plain(&self, chunk: Chunk, stored: &[u8]) -> Result<Vec<u8>, String> {
        let mut out = Vec::with_capacity(stored.len());
        let (mut rest, mut header, mut page) = (stored, Vec::new(), 0_i16);
        let mut is_dictionary = chunk.has_dictionary;
        while !rest.is_empty() {
            let (of_page, of_header) = if is_dictionary { DICTIONARY } else { DATA };
            let mut open = |kind: u8, what: &str, out: &mut Vec<u8>| {
                let (module, after) = module(rest).ok_or_else(|| format!("{what} of page {page} is cut off"))?;
                rest = after;
                let aad = self.aad(chunk, kind, (!is_dictionary).then_some(page));
                self.cipher.decrypt(module, &aad, out).map_err(|_| {
                    format!(
                        "{what} of page {page} cannot be decrypted: the key is not that of the file, or the page was \
                         changed, or is that of another place or file"
                    )
                })
            };
            header.clear();
            open(of_header, "the header", &mut header)?;
            let start = out.len();
            let mut body = Vec::new();
            open(of_page, "the data", &mut body)?;
            plain_header(&header, body.len(), &mut out)
                .ok_or_else(|| format!("the header of page {page} is invalid"))?;
            out.extend_from_slice(&body);
            if out.len() - start > stored.len() {
                return Err("its pages are longer than the column".to_owned());
            }
            match is_dictionary {
                true => is_dictionary = false,
                false => page = page.checked_add(1).ok_or("it has more than 32767 pages")?,
            }
        }
        fill(&mut out, stored.len())?;
        Ok(out)
    }

    /// What a module is bound to.
    fn aad(&self, chunk: Chunk, kind: u8, page: Option<i16>) -> Vec<u8> {
        let mut aad = Vec::with_capacity(self.file.len() + 7);
        aad.extend_from_slice(&self.file);
        aad.push(kind);
        aad.extend_from_slice(&chunk.row_group.to_le_bytes());
        aad.extend_from_slice(&chunk.column.to_le_bytes());
        if let Some(page) = page {
            aad.extend_from_slice(&page.to_le_bytes());
        }
        aad
    }
}

/// The first module of some bytes, and those after it.
fn module(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

/// Appends a page header with another length of the page and without a checksum. The Java library encrypts headers with
/// zeros after them. They are dropped, because in a plain file the page begins right after its header.
fn plain_header(header: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    let length = u64::try_from(i32::try_from(length).ok()?).ok()? << 1;
    let mut rest = header;
    // The type of the page and its uncompressed size stay.
    for _ in 0..2 {
        take(&mut rest, NEXT_I32)?;
        varint(&mut rest)?;
    }
    out.extend_from_slice(header.get(..header.len() - rest.len())?);
    take(&mut rest, NEXT_I32)?;
    varint(&mut rest)?;
    out.push(NEXT_I32);
    put_varint(out, length);
    if rest.first() == Some(&NEXT_I32) {
        take(&mut rest, NEXT_I32)?;
        varint(&mut rest)?;
        // The id of the next field is relative to the one before.
        let (next, after) = rest.split_first()?;
        out.push(if next >> 4 == 0 { *next } else { next.checked_add(0x10)? });
        let mut end = after;
        match next & 0x0f {
            0 => return Some(()),
            ty if next >> 4 == 0 => {
                varint(&mut end)?;
                skip(&mut end, ty, MOST_DEPTH)?;
            }
            ty => skip(&mut end, ty, MOST_DEPTH)?,
        }
        skip(&mut end, STRUCT, MOST_DEPTH)?;
        out.extend_from_slice(after.get(..after.len() - end.len())?);
        return Some(());
    }
    let mut end = rest;
    skip(&mut end, STRUCT, MOST_DEPTH)?;
    out.extend_from_slice(rest.get(..rest.len() - end.len())?);
    Some(())
}

/// Skips a value; of a struct, also the rest of one.
fn skip(rest: &mut &[u8], ty: u8, depth: usize) -> Option<()> {
    let bytes = |rest: &mut &[u8], count: u64| {
        let (_, after) = rest.split_at_checked(usize::try_from(count).ok()?)?;
        *rest = after;
        Some(())
    };
    match ty {
        1 | 2 => Some(()),
        3 => bytes(rest, 1),
        4..=6 => varint(rest).map(drop),
        7 => bytes(rest, 8),
        BINARY => {
            let count = varint(rest)?;
            bytes(rest, count)
        }
        STRUCT => loop {
            let (head, after) = rest.split_first()?;
            *rest = after;
            match head & 0x0f {
                0 => return Some(()),
                ty => {
                    if head >> 4 == 0 {
                        varint(rest)?;
                    }
                    skip(rest, ty, depth.checked_sub(1)?)?;
                }
            }
        },
        // Page headers have no lists and no maps.
        _ => None,
    }
}

/// Appends the header of an index page without bytes, which readers skip; a field that no reader knows pads it.
fn fill(out: &mut Vec<u8>, length: usize) -> Result<(), String> {
    let room = length.checked_sub(out.len()).ok_or("its pages are longer than the column")?;
    if room == 0 {
        return Ok(());
    }
    let filler = room.checked_sub(FILLER).and_then(|filler| u32::try_from(filler).ok());
    let mut filler = filler.ok_or("its pages are too long")?;
    out.extend_from_slice(&[NEXT_I32, 2, NEXT_I32, 0, NEXT_I32, 0, 0xf0 | BINARY]);
    // In five bytes, however short.
    for last in [false, false, false, false, true] {
        out.push((filler & 0x7f) as u8 | if last { 0 } else { 0x80 });
        filler >>= 7;
    }
    out.resize(length, 0);
    Ok(())
}

/// The key of an encrypted file.
pub(super) fn key_of(storage: &Storage) -> Option<&KeyMetadata> {
    match storage.file_key() {
        Some(FileKey::OfFormat(key)) => Some(key),
        _ => None,
    }
}

/// The identifier of an encrypted file, which is before its footer. The library would also accept an
/// unencrypted file that somebody has put in its place.
pub(super) fn unique(storage: &Storage, path: &str, size: u64, tail: &Tail) -> Result<Arc<[u8]>> {
    let Some((rest, b"PARE")) = tail.bytes.split_last_chunk::<4>() else {
        let message = "its footer is not encrypted, although it has a key: it was replaced";
        return Err(Error::corrupt_file(path, message));
    };
    let length = rest.last_chunk::<4>().map_or(0, |length| u64::from(u32::from_le_bytes(*length)));
    let end = size.saturating_sub(8);
    let start = end.saturating_sub(length);
    let crypto = start..end.min(start.saturating_add(MOST_CRYPTO));
    let bytes = match tail.range(&crypto) {
        Some(bytes) => bytes,
        None => storage.range(path, crypto)?,
    };
    unique_of(path, &bytes)
}

/// The file's own identifier, from the bytes before an encrypted footer (`FileCryptoMetaData`).
///
/// # Errors
/// Bytes of another structure, or an algorithm other than AES GCM.
fn unique_of(path: &str, crypto: &[u8]) -> Result<Arc<[u8]>> {
    let invalid = || Error::corrupt_file(path, "its encryption algorithm cannot be read");
    let mut rest = crypto;
    let (first, algorithm) = (field(&mut rest, 0), field(&mut rest, 0));
    match (first, algorithm) {
        (Some((1, STRUCT)), Some((1, STRUCT))) => {}
        (Some((1, STRUCT)), Some((2, STRUCT))) => {
            return Err(Error::unsupported(format!("{path}: encryption by AES_GCM_CTR_V1 is not supported")));
        }
        _ => return Err(invalid()),
    }
    let mut id = 0;
    while let Some((found, BINARY)) = field(&mut rest, id) {
        let length = varint(&mut rest).and_then(|length| usize::try_from(length).ok()).ok_or_else(invalid)?;
        let (bytes, after) = rest.split_at_checked(length).ok_or_else(invalid)?;
        if found == 2 {
            return Ok(bytes.into());
        }
        (rest, id) = (after, found);
    }
    Err(invalid())
}

/// The id and type of the next field; `None` after the last one.
fn field(rest: &mut &[u8], before: i64) -> Option<(i64, u8)> {
    let (head, after) = rest.split_first()?;
    *rest = after;
    match (head >> 4, head & 0x0f) {
        (_, 0) => None,
        (0, ty) => {
            let id = varint(rest)?;
            Some((i64::try_from(id >> 1).ok()?, ty))
        }
        (delta, ty) => Some((before.checked_add(i64::from(delta))?, ty)),
    }
}

fn take(rest: &mut &[u8], expected: u8) -> Option<()> {
    let (head, after) = rest.split_first()?;
    *rest = after;
    (*head == expected).then_some(())
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_lose_their_checksum_and_get_another_length() {
        // A data page: type 0, sizes 300 and 400, and a struct of the header as field 5.
        let (start, header) = ([0x15, 0, 0x15, 0xd8, 4], [0x1c, 0x15, 2, 0, 0]);
        let plain = |middle: &[u8]| {
            let mut out = Vec::new();
            plain_header(&[&start, middle, &header[..]].concat(), 5, &mut out).map(|()| out)
        };
        let expected = [&start[..], &[0x15, 10, 0x2c], &header[1..]].concat();
        assert_eq!(plain(&[0x15, 0xa0, 6, 0x15, 0xff, 0xff, 0xff, 0xff, 0x0f]), Some(expected.clone()));
        // Without a checksum the struct is two fields after the length.
        let mut out = Vec::new();
        let whole = [&start[..], &[0x15, 0xa0, 6, 0x2c], &header[1..]].concat();
        assert_eq!(plain_header(&whole, 5, &mut out), Some(()));
        assert_eq!(out, expected);
        // Bytes after a header are not part of it.
        let mut out = Vec::new();
        assert_eq!(plain_header(&[&whole[..], &[0; 70]].concat(), 5, &mut out), Some(()));
        assert_eq!(out, expected);
        for cut in 0..9 {
            assert_eq!(plain_header(&whole[..cut.min(7)], 5, &mut Vec::new()), None);
        }
    }

    #[test]
    fn what_is_left_of_a_chunk_is_a_header_of_no_page() {
        for room in [0, FILLER, 60, 100_000] {
            let mut out = vec![9; 5];
            fill(&mut out, 5 + room).unwrap();
            assert_eq!(out.len(), 5 + room);
            if room > 0 {
                let mut rest = &out[12..];
                assert_eq!(varint(&mut rest), Some((room - FILLER) as u64));
                assert_eq!(rest.len(), room - FILLER + 1);
            }
        }
        assert!(fill(&mut vec![0; 5], 5 + FILLER - 1).is_err());
        assert!(fill(&mut vec![0; 5], 4).is_err());
    }

    #[test]
    fn the_identifier_of_a_file_is_found() {
        let found = |bytes: &[u8]| unique_of("f", bytes).map_err(|error| error.to_string());
        assert_eq!(found(&[0x1c, 0x1c, 0x28, 3, 1, 2, 3, 0x11, 0, 0, 0]), Ok([1, 2, 3].into()));
        assert_eq!(found(&[0x1c, 0x1c, 0x18, 1, 7, 0x18, 2, 8, 9, 0, 0, 0]), Ok([8, 9].into()));
        assert!(found(&[0x1c, 0x2c, 0x28, 1, 1, 0, 0, 0]).unwrap_err().contains("AES_GCM_CTR_V1"));
        for bad in [&[][..], &[0x1c, 0x1c, 0x28, 9, 1], &[0x1c, 0x1c, 0], &[0x18, 1, 1]] {
            assert!(found(bad).unwrap_err().contains("cannot be read"));
        }
    }
}
