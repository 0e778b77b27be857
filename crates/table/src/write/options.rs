//! How data files are written: the `write.*` properties of a table.

use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::{DEFAULT_FILE_FORMAT, ENCRYPTION_TABLE_KEY, WRITE_TARGET_FILE_SIZE_BYTES};

use super::orc::OrcOptions;
use super::parquet::ParquetOptions;
use crate::error::{Error, Result};
use crate::settings::Settings;

/// How data files are written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Size on disk at which a file is closed (`write.target-file-size-bytes`).
    pub target_file_bytes: u64,
    /// The format of data files and what is set of it.
    pub format: FormatOptions,
}

/// What is set of the format of data files (`write.format.default`).
#[derive(Debug, Clone)]
pub enum FormatOptions {
    /// `write.parquet.*`
    Parquet(ParquetOptions),
    /// `write.orc.*`
    Orc(OrcOptions),
}

impl WriteOptions {
    /// Reads the properties; those of other formats are passed over.
    pub fn new(settings: &Settings) -> Result<Self> {
        if let Some(key) = settings.text(ENCRYPTION_TABLE_KEY).filter(|key| !key.is_empty()) {
            return Err(encrypted(&format!("{ENCRYPTION_TABLE_KEY}={key}")));
        }
        let format = settings.word(&DEFAULT_FILE_FORMAT);
        let format = match format.to_ascii_lowercase().as_str() {
            "parquet" => FormatOptions::Parquet(ParquetOptions::new(settings)?),
            "orc" => FormatOptions::Orc(OrcOptions::new(settings)?),
            _ => {
                return Err(Error::unsupported(format!(
                    "writing data files in the format {format} (write.format.default)"
                )));
            }
        };
        let target_file_bytes = settings.positive(&WRITE_TARGET_FILE_SIZE_BYTES)? as u64;
        Ok(Self { target_file_bytes, format })
    }
}

/// Refuses to write into a table whose files are to be encrypted: they would lie in the clear.
pub fn check_writable(metadata: &TableMetadata) -> Result<()> {
    let key = metadata.property(ENCRYPTION_TABLE_KEY).filter(|key| !key.is_empty());
    let snapshot = metadata.snapshots().iter().find_map(|snapshot| snapshot.key_id.as_deref());
    let stored = metadata.encryption_keys().first().map(|key| key.key_id.as_str());
    match (key, snapshot, stored) {
        (Some(key), ..) => Err(encrypted(&format!("{ENCRYPTION_TABLE_KEY}={key}"))),
        (_, Some(key), _) => Err(encrypted(&format!("the key {key} of a snapshot"))),
        (_, _, Some(key)) => Err(encrypted(&format!("the encryption key {key} in its metadata"))),
        (None, None, None) => Ok(()),
    }
}

fn encrypted(by: &str) -> Error {
    Error::unsupported(format!(
        "writing to an encrypted table ({by}): icefield cannot encrypt, and what it writes would lie in the clear"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_javas_and_properties_of_other_formats_mean_nothing() {
        let options =
            WriteOptions::new(&Settings::new([("write.strange", "x"), ("write.orc.stripe-size-bytes", "0")])).unwrap();
        assert_eq!(options.target_file_bytes, 512 << 20);
        assert!(matches!(options.format, FormatOptions::Parquet(_)));
        let settings = [("write.format.default", "ORC"), ("write.parquet.row-group-size-bytes", "0")];
        let options = WriteOptions::new(&Settings::new(settings)).unwrap();
        assert!(matches!(options.format, FormatOptions::Orc(_)));
    }

    #[test]
    fn bad_values_name_the_property() {
        for (format, name, value, part) in [
            ("parquet", "write.target-file-size-bytes", "big", "write.target-file-size-bytes"),
            ("parquet", "write.parquet.row-group-size-bytes", "0", "write.parquet.row-group-size-bytes"),
            ("parquet", "write.parquet.compression-codec", "lzo", "lzo"),
            ("parquet", "write.parquet.compression-level", "99", "compression-level"),
            ("parquet", "write.parquet.page-version", "v9", "expected v1 or v2"),
            ("parquet", "encryption.key-id", "k", "in the clear"),
            ("orc", "encryption.key-id", "k", "in the clear"),
            ("avro", "write.strange", "", "write.format.default"),
            ("orc", "write.orc.stripe-size-bytes", "0", "write.orc.stripe-size-bytes"),
            ("orc", "write.orc.block-size-bytes", "x", "write.orc.block-size-bytes"),
            ("orc", "write.orc.compression-codec", "gzip", "gzip"),
            ("orc", "write.orc.compression-strategy", "best", "write.orc.compression-strategy"),
            ("orc", "write.orc.bloom.filter.fpp", "1.0", "write.orc.bloom.filter.fpp"),
        ] {
            let settings = Settings::new([("write.format.default", format), (name, value)]);
            let error = WriteOptions::new(&settings).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
