//! Write options of data files: a table's `write.*` properties.

use icefield_format::FormatVersion;
use icefield_format::manifest::FileFormat;
use icefield_format::metadata::properties::{
    DEFAULT_FILE_FORMAT, ENCRYPTION_DEK_LENGTH, ENCRYPTION_TABLE_KEY, PARQUET_SHRED_VARIANTS_COLUMN_PREFIX,
    WRITE_DISTRIBUTION_MODE, WRITE_TARGET_FILE_SIZE_BYTES,
};
use icefield_format::metadata::{StringMap, TableMetadata};
use icefield_format::types::{Schema, Type, parse_shape};

use crate::error::{Error, Result};
use crate::file::FormatOptions;
use crate::file::avro::AvroOptions;
use crate::file::orc::OrcOptions;
use crate::file::parquet::ParquetOptions;
use crate::storage::{Keyring, Storage};

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
    /// Length in bytes of the keys of files; `None` if they are not encrypted.
    pub key_length: Option<usize>,
}

impl WriteOptions {
    /// Reads the properties, ignoring those of other formats.
    pub fn new(properties: &StringMap) -> Result<Self> {
        let key_length = key_length(properties)?;
        let name = DEFAULT_FILE_FORMAT.read(properties);
        let format = match FileFormat::from_name(name) {
            Some(FileFormat::Parquet) => FormatOptions::Parquet(ParquetOptions::new(properties)?),
            // Java's library has no encryption of ORC files either.
            Some(FileFormat::Orc) if key_length.is_some() => {
                return Err(Error::unsupported(format!(
                    "{}=orc: ORC files of encrypted tables cannot be written; choose parquet or avro",
                    DEFAULT_FILE_FORMAT.name
                )));
            }
            Some(FileFormat::Orc) => FormatOptions::Orc(OrcOptions::new(properties)?),
            Some(FileFormat::Avro) => FormatOptions::Avro(AvroOptions::new(properties)?),
            _ => return Err(Error::unsupported(DEFAULT_FILE_FORMAT.unexpected(name).to_string())),
        };
        if key_length.is_some() && matches!(&format, FormatOptions::Parquet(parquet) if parquet.has_blooms()) {
            log::warn!(
                "write.parquet.bloom-filter-enabled.column.*: files of encrypted tables are written without Bloom \
                 filters, which would not be encrypted"
            );
        }
        let target_file_bytes = WRITE_TARGET_FILE_SIZE_BYTES.read_size(properties)? as u64;
        let mode = WRITE_DISTRIBUTION_MODE.read_valid(properties)?;
        let gathers = !mode.is_some_and(|mode| mode.trim().eq_ignore_ascii_case("none"));
        if key_length == Some(24) && matches!(format, FormatOptions::Parquet(_)) {
            return Err(Error::unsupported(format!(
                "{}=24: Parquet files can be encrypted by keys of 16 and 32 bytes",
                ENCRYPTION_DEK_LENGTH.name
            )));
        }
        Ok(Self { target_file_bytes, format, gathers, key_length })
    }
}

/// Checks the shapes that a write gives for columns of variants. A table's own may be of columns that it has no longer.
///
/// # Errors
/// A column that is no variant of the schema, a text that is not a type, or files that are not Parquet.
pub(super) fn check_shapes(given: &StringMap, all: &StringMap, schema: &Schema) -> Result<()> {
    for (column, text) in PARQUET_SHRED_VARIANTS_COLUMN_PREFIX.columns(given).filter(|(_, text)| !text.is_empty()) {
        let wrong = |message: String| Error::invalid(format!("shredding the column {column}: {message}"));
        match schema.fields().iter().find(|field| field.name == column) {
            Some(field) if field.ty == Type::Variant => {}
            Some(field) => return Err(wrong(format!("its type is {}, expected variant", field.ty))),
            None => return Err(wrong("the table has no such column at its top level".to_owned())),
        }
        parse_shape(text).map_err(|error| wrong(error.to_string()))?;
        let format = DEFAULT_FILE_FORMAT.read(all);
        if FileFormat::from_name(format) != Some(FileFormat::Parquet) {
            return Err(wrong(format!(
                "only Parquet files shred variants, and {} is {format}",
                DEFAULT_FILE_FORMAT.name
            )));
        }
    }
    Ok(())
}

/// Length in bytes of the keys of a table's files (`encryption.data-key-length`); `None` if they are not encrypted
/// (`encryption.key-id`).
///
/// # Errors
/// An empty id of the key; another length than 16, 24 or 32.
pub fn key_length(properties: &StringMap) -> Result<Option<usize>> {
    match ENCRYPTION_TABLE_KEY.read(properties) {
        None => return Ok(None),
        // The user asked for an encrypted table.
        Some("") => return Err(Error::invalid(format!("{}: the id of the key is empty", ENCRYPTION_TABLE_KEY.name))),
        Some(_) => {}
    }
    Ok(Some(ENCRYPTION_DEK_LENGTH.read_size(properties)?))
}

fn table_key(properties: &StringMap) -> Option<&str> {
    ENCRYPTION_TABLE_KEY.read(properties).filter(|key| !key.is_empty())
}

/// The id of a table's key and the service that has it; `None` if the table is not encrypted.
///
/// # Errors
/// An encrypted table that cannot be written: its files, or what keeps their keys, would not be encrypted.
pub fn table_keys<'a>(metadata: &'a TableMetadata, storage: &'a Storage) -> Result<Option<(&'a str, &'a Keyring)>> {
    let Some(key) = table_key(metadata.properties()) else { return Ok(None) };
    let name = ENCRYPTION_TABLE_KEY.name;
    if metadata.format_version() < FormatVersion::V3 {
        let version = metadata.format_version().number();
        return Err(Error::invalid(format!(
            "writing to an encrypted table ({name}={key}): version {version} has no place for its keys; upgrade it to \
             version 3 first"
        )));
    }
    match storage.keyring() {
        Some(keyring) => Ok(Some((key, keyring))),
        None => Err(Error::invalid(format!(
            "writing to an encrypted table ({name}={key}): load it by a catalog with the property encryption.kms-type or \
             encryption.kms-impl, which has the key"
        ))),
    }
}

/// Refuses to write to an encrypted table without its keys: the files would not be encrypted.
pub fn check_writable(metadata: &TableMetadata, storage: &Storage) -> Result<()> {
    table_keys(metadata, storage).map(drop)
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
            ("parquet", "write.parquet.shred-variants.column.v", "struct<a>", "shred-variants.column.v"),
            ("orc", "encryption.key-id", "k", "choose parquet or avro"),
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
