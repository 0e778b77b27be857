//! Names of metadata files ("Commit Conflict Resolution and Retry": naming in file-system and metastore tables).

use std::fmt;
use std::str::FromStr;

use crate::metadata::properties::METADATA_COMPRESSION;
use crate::{Error, Result};

/// Compression of a metadata file (`write.metadata.compression-codec`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetadataCodec {
    /// Plain JSON.
    #[default]
    None,
    /// gzip.
    Gzip,
}

impl MetadataCodec {
    /// The part of the file name before `.metadata.json` that names the codec.
    fn extension(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
        }
    }

    /// The codec that a file name implies. Reading ignores it and looks at the bytes
    /// ([`super::compression::decompress`]).
    pub fn from_file_name(location: &str) -> Option<Self> {
        let name = base_name(location);
        if name.ends_with(".gz.metadata.json") || name.ends_with(".metadata.json.gz") {
            return Some(Self::Gzip);
        }
        name.ends_with(".metadata.json").then_some(Self::None)
    }
}

impl FromStr for MetadataCodec {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name.to_ascii_lowercase().as_str() {
            "none" => Ok(Self::None),
            "gzip" => Ok(Self::Gzip),
            _ => Err(METADATA_COMPRESSION.unexpected(name)),
        }
    }
}

impl fmt::Display for MetadataCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Gzip => "gzip",
        })
    }
}

/// Returns the file name for a table in a catalog: `00003-UUID.metadata.json`. Each commit attempt uses a new uuid.
pub fn metadata_file_name(version: u64, uuid: &str, codec: MetadataCodec) -> String {
    format!("{version:05}-{uuid}{}.metadata.json", codec.extension())
}

/// Returns the file name for a table without a catalog, in a Hadoop-style folder: `v3.metadata.json`.
pub fn hadoop_metadata_file_name(version: u64, codec: MetadataCodec) -> String {
    format!("v{version}{}.metadata.json", codec.extension())
}

/// Returns the version in the name of a metadata file, of either form, compressed or not; `None` for any other name.
pub fn metadata_file_version(location: &str) -> Option<u64> {
    let name = base_name(location);
    let stem = name.strip_suffix(".metadata.json").or_else(|| name.strip_suffix(".metadata.json.gz"))?;
    let stem = stem.strip_suffix(".gz").unwrap_or(stem);
    let digits = match stem.strip_prefix('v') {
        Some(version) => version,
        None => stem.split_once('-')?.0,
    };
    // `parse` alone would accept a sign.
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn base_name(location: &str) -> &str {
    location.rsplit(['/', '\\']).next().unwrap_or(location)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_their_version() {
        let uuid = "7f3c0b6e-9d4c-4a4e-8c1e-2f6d0a8b9c10";
        for codec in [MetadataCodec::None, MetadataCodec::Gzip] {
            for version in [0, 7, 99_999, 100_000] {
                for name in [metadata_file_name(version, uuid, codec), hadoop_metadata_file_name(version, codec)] {
                    let location = format!("s3://bucket/table/metadata/{name}");
                    assert_eq!(metadata_file_version(&location), Some(version), "{location}");
                    assert_eq!(MetadataCodec::from_file_name(&location), Some(codec), "{location}");
                }
            }
        }
    }

    #[test]
    fn versions_are_read_from_names_of_others() {
        let cases = [
            ("v3.metadata.json.gz", Some(3)),
            ("00012-a.gz.metadata.json", Some(12)),
            ("metadata/00001-3.metadata.json", Some(1)),
            (r"C:\table\metadata\v12.metadata.json", Some(12)),
            ("v.metadata.json", None),
            ("v+1.metadata.json", None),
            ("12.metadata.json", None),
            ("vx.metadata.json", None),
            ("v1.json", None),
            ("99999999999999999999-a.metadata.json", None),
        ];
        for (name, expected) in cases {
            assert_eq!(metadata_file_version(name), expected, "{name}");
        }
        assert_eq!(MetadataCodec::from_file_name("snap-1.avro"), None);
    }
}
