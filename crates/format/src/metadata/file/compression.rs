//! Compresses and decompresses metadata files ("Table Metadata and Snapshots", naming of metadata files).
//!
//! The first bytes say whether a file is gzip, not its name: both `v1.gz.metadata.json` and the older
//! `v1.metadata.json.gz` are in use, and some stores decompress files while they serve them.

use std::borrow::Cow;
use std::io::{Read as _, Write as _};

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::limits::{Budget, MEMORY_VARIABLE};
use crate::metadata::MetadataCodec;
use crate::{Error, Limits, Result};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Returns the JSON text of a metadata file, and decompresses it if it is gzip. The decompressed size is charged to the
/// budget, which also limits it.
pub fn decompress<'a>(file: &'a [u8], limits: &Limits, budget: &mut Budget) -> Result<Cow<'a, [u8]>> {
    let limit = limits.metadata_json_bytes;
    if !file.starts_with(GZIP_MAGIC) {
        return if file.len() > limit { Err(too_long(limit)) } else { Ok(Cow::Borrowed(file)) };
    }
    let mut text = Vec::new();
    // One byte over the limit distinguishes "too long" from "exactly as long"; the vector grows only as bytes are
    // decoded.
    let most = limit.min(budget.growing());
    let bounded = u64::try_from(most).map_or(u64::MAX, |most| most.saturating_add(1));
    let read = MultiGzDecoder::new(file).take(bounded).read_to_end(&mut text);
    read.map_err(|error| Error::corrupt_at("gzip", text.len() as u64, format!("cannot be decompressed: {error}")))?;
    if text.len() > limit {
        return Err(too_long(limit));
    }
    budget.charge_grown(text.len())?;
    Ok(Cow::Owned(text))
}

/// Returns the bytes of a metadata file with this text.
pub fn compress(text: &str, codec: MetadataCodec) -> Result<Vec<u8>> {
    match codec {
        MetadataCodec::None => Ok(text.as_bytes().to_vec()),
        MetadataCodec::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
            written.map_err(|error| Error::invalid(format!("cannot compress table metadata: {error}")))
        }
    }
}

fn too_long(limit: usize) -> Error {
    let message = format!(
        "table metadata is longer than {limit} bytes; if you trust the file, raise this limit with {MEMORY_VARIABLE}=BYTES"
    );
    Error::corrupt("", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(metadata_json_bytes: usize) -> Limits {
        Limits { metadata_json_bytes, ..Limits::default() }
    }

    fn decompress<'a>(file: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>> {
        super::decompress(file, limits, &mut limits.budget(file.len()))
    }

    #[test]
    fn what_is_decompressed_ends_with_the_budget() {
        let file = compress(&" ".repeat(1 << 20), MetadataCodec::Gzip).unwrap();
        let limits = Limits { least_memory: 1 << 20, memory_ratio: 0, ..Limits::default() };
        let error = decompress(&file, &limits).unwrap_err().to_string();
        assert!(error.contains("1048576 bytes of memory"), "{error}");
        assert!(decompress(&file, &Limits { least_memory: 3 << 20, ..limits }).is_ok());
    }

    #[test]
    fn gzip_is_told_by_its_bytes() {
        let text = "{\"format-version\": 2}".repeat(50);
        for codec in [MetadataCodec::None, MetadataCodec::Gzip] {
            let file = compress(&text, codec).unwrap();
            assert_eq!(decompress(&file, &limits(text.len())).unwrap(), text.as_bytes());
            assert!(decompress(&file, &limits(text.len() - 1)).is_err(), "{codec:?} beyond the limit");
        }
    }

    #[test]
    fn members_follow_each_other() {
        let file = [compress("{\"a\":", MetadataCodec::Gzip).unwrap(), compress("1}", MetadataCodec::Gzip).unwrap()];
        assert_eq!(decompress(&file.concat(), &limits(100)).unwrap(), b"{\"a\":1}".as_slice());
    }

    #[test]
    fn every_cut_of_a_gzip_file_is_refused() {
        let file = compress("{\"format-version\": 2, \"location\": \"s3://b/t\"}", MetadataCodec::Gzip).unwrap();
        for cut in GZIP_MAGIC.len()..file.len() {
            assert!(decompress(&file[..cut], &limits(1000)).is_err(), "cut at {cut}");
        }
    }
}
