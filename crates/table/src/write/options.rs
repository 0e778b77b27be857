//! Write options of data files: a table's `write.*` properties.

use icefield_format::manifest::FileFormat;
use icefield_format::metadata::properties::{
    DEFAULT_FILE_FORMAT, ENCRYPTION_TABLE_KEY, WRITE_DISTRIBUTION_MODE, WRITE_TARGET_FILE_SIZE_BYTES,
};
use icefield_format::metadata::{StringMap, TableMetadata};

use crate::error::{Error, Result};
use crate::file::FormatOptions;
use crate::file::avro::AvroOptions;
use crate::file::orc::OrcOptions;
use crate::file::parquet::ParquetOptions;

/// Write options of data files.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Size on disk at which a file is closed (`write.target-file-size-bytes`).
    pub target_file_bytes: u64,
    /// The format of data files and its options.
    pub format: FormatOptions,
    /// Whether to collect the rows of each partition before writing, however many partitions there are (any
    /// `write.distribution-mode` except `none`).
    pub gathers: bool,
}

impl WriteOptions {
    /// Reads the properties, ignoring those of other formats.
    pub fn new(properties: &StringMap) -> Result<Self> {
        if let Some(key) = ENCRYPTION_TABLE_KEY.read(properties).filter(|key| !key.is_empty()) {
            return Err(encrypted(&format!("{}={key}", ENCRYPTION_TABLE_KEY.name)));
        }
        let name = DEFAULT_FILE_FORMAT.read(properties);
        let format = match FileFormat::from_name(name) {
            Some(FileFormat::Parquet) => FormatOptions::Parquet(ParquetOptions::new(properties)?),
            Some(FileFormat::Orc) => FormatOptions::Orc(OrcOptions::new(properties)?),
            Some(FileFormat::Avro) => FormatOptions::Avro(AvroOptions::new(properties)?),
            _ => return Err(Error::unsupported(DEFAULT_FILE_FORMAT.unexpected(name).to_string())),
        };
        let target_file_bytes = WRITE_TARGET_FILE_SIZE_BYTES.read_size(properties)? as u64;
        let mode = WRITE_DISTRIBUTION_MODE.read_valid(properties)?;
        let gathers = !mode.is_some_and(|mode| mode.trim().eq_ignore_ascii_case("none"));
        Ok(Self { target_file_bytes, format, gathers })
    }
}

/// Refuses to write to an encrypted table: the files would be unencrypted.
pub fn check_writable(metadata: &TableMetadata) -> Result<()> {
    let key = ENCRYPTION_TABLE_KEY.read(metadata.properties()).filter(|key| !key.is_empty());
    let snapshot = metadata.snapshots().iter().find_map(|snapshot| snapshot.key_id.as_deref());
    let stored = metadata.encryption_keys().first().map(|key| key.key_id.as_str());
    match (key, snapshot, stored) {
        (Some(key), ..) => Err(encrypted(&format!("{}={key}", ENCRYPTION_TABLE_KEY.name))),
        (_, Some(key), _) => Err(encrypted(&format!("the key {key} of a snapshot"))),
        (_, _, Some(key)) => Err(encrypted(&format!("the encryption key {key} in its metadata"))),
        (None, None, None) => Ok(()),
    }
}

fn encrypted(by: &str) -> Error {
    Error::unsupported(format!(
        "writing to an encrypted table ({by}): icefield cannot encrypt, so the files would be unencrypted"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings<const N: usize>(properties: [(&str, &str); N]) -> StringMap {
        properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn defaults_are_javas_and_properties_of_other_formats_mean_nothing() {
        let options =
            WriteOptions::new(&strings([("write.strange", "x"), ("write.orc.stripe-size-bytes", "0")])).unwrap();
        assert_eq!(options.target_file_bytes, 512 << 20);
        assert!(matches!(options.format, FormatOptions::Parquet(_)));
        let settings = [("write.format.default", "ORC"), ("write.parquet.row-group-size-bytes", "0")];
        let options = WriteOptions::new(&strings(settings)).unwrap();
        assert!(matches!(options.format, FormatOptions::Orc(_)));
        let options = WriteOptions::new(&strings([("write.format.default", "avro")])).unwrap();
        assert!(matches!(options.format, FormatOptions::Avro(_)));
    }

    #[test]
    fn bad_values_name_the_property() {
        for (format, name, value, part) in [
            ("parquet", "write.target-file-size-bytes", "big", "write.target-file-size-bytes"),
            ("parquet", "write.parquet.row-group-size-bytes", "0", "write.parquet.row-group-size-bytes"),
            ("parquet", "write.parquet.compression-codec", "lzo", "lzo"),
            ("parquet", "write.parquet.compression-level", "99", "compression-level"),
            ("parquet", "write.parquet.page-version", "v9", "expected v1 or v2"),
            ("parquet", "encryption.key-id", "k", "would be unencrypted"),
            ("orc", "encryption.key-id", "k", "would be unencrypted"),
            ("puffin", "write.strange", "", "write.format.default"),
            ("avro", "write.avro.compression-codec", "lz4", "write.avro.compression-codec"),
            ("avro", "write.avro.compression-level", "99", "write.avro.compression-level"),
            ("orc", "write.orc.stripe-size-bytes", "0", "write.orc.stripe-size-bytes"),
            ("orc", "write.orc.block-size-bytes", "x", "write.orc.block-size-bytes"),
            ("orc", "write.orc.compression-codec", "gzip", "gzip"),
            ("orc", "write.orc.compression-strategy", "best", "write.orc.compression-strategy"),
            ("orc", "write.orc.bloom.filter.fpp", "1.0", "write.orc.bloom.filter.fpp"),
        ] {
            let settings = strings([("write.format.default", format), (name, value)]);
            let error = WriteOptions::new(&settings).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
