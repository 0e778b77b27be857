//! Table properties ("Table Metadata", `properties`): the names that mean something here, and what holds without them.
//!
//! Names and defaults are those of the Java library. Unknown properties are never an error; a known one whose value
//! cannot be read is, where it is used.

use std::fmt::Display;

use super::StringMap;
use crate::{Error, Result};

/// A property and its default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Property<T> {
    /// Its name.
    pub name: &'static str,
    /// What holds without it.
    pub default: T,
}

impl Property<i64> {
    /// The number.
    pub fn read(&self, properties: &StringMap) -> Result<i64> {
        match properties.get(self.name) {
            None => Ok(self.default),
            Some(text) => text.trim().parse().map_err(|error| self.unreadable(text, error)),
        }
    }
}

impl Property<f64> {
    /// The number.
    pub fn read(&self, properties: &StringMap) -> Result<f64> {
        match properties.get(self.name) {
            None => Ok(self.default),
            Some(text) => text.trim().parse().map_err(|error| self.unreadable(text, error)),
        }
    }
}

impl Property<bool> {
    /// Whether it is `true`, in any case; all else is false.
    pub fn read(&self, properties: &StringMap) -> bool {
        properties.get(self.name).map_or(self.default, |text| text.trim().eq_ignore_ascii_case("true"))
    }
}

impl Property<&'static str> {
    /// The text.
    pub fn read<'a>(&self, properties: &'a StringMap) -> &'a str {
        properties.get(self.name).map_or(self.default, String::as_str)
    }
}

impl<T> Property<T> {
    fn unreadable(&self, text: &str, error: impl Display) -> Error {
        Error::invalid(format!("property {}: {text:?}: {error}", self.name))
    }
}

/// Names whose values the metadata itself holds: they are never stored as properties.
pub const RESERVED: &[&str] = &[
    "current-schema",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "default-partition-spec",
    "default-sort-order",
    FORMAT_VERSION,
    "snapshot-count",
    "uuid",
];

/// Given when a table is created or replaced: its format version.
pub const FORMAT_VERSION: &str = "format-version";
/// The name mapping of files without field ids, as JSON.
pub const DEFAULT_NAME_MAPPING: &str = "schema.name-mapping.default";
/// Followed by a column's name: how much of its metrics is kept.
pub const METRICS_MODE_COLUMN_CONF_PREFIX: &str = "write.metadata.metrics.column.";
/// Followed by a column's name: whether it gets a bloom filter.
pub const PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX: &str = "write.parquet.bloom-filter-enabled.column.";
/// Followed by a column's name: false positives of its bloom filter.
pub const PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX: &str = "write.parquet.bloom-filter-fpp.column.";
/// Followed by a column's name: distinct values that its bloom filter is made for.
pub const PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX: &str = "write.parquet.bloom-filter-ndv.column.";
/// Followed by a column's name: whether Parquet writes statistics of it.
pub const PARQUET_COLUMN_STATS_ENABLED_PREFIX: &str = "write.parquet.stats-enabled.column.";
/// Followed by a column's name: whether Parquet may encode it with a dictionary.
pub const PARQUET_DICT_ENCODING_ENABLED_COLUMN_PREFIX: &str = "write.parquet.dict-encoding-enabled.column.";
/// Compression level of Parquet files; none: the codec's own.
pub const PARQUET_COMPRESSION_LEVEL: &str = "write.parquet.compression-level";
/// Compression level of Avro data files; none: the codec's own.
pub const AVRO_COMPRESSION_LEVEL: &str = "write.avro.compression-level";
/// Compression level of manifests; none: the codec's own.
pub const MANIFEST_COMPRESSION_LEVEL: &str = "write.manifest.compression-level";
/// Format of delete files; none: that of data files.
pub const DELETE_DEFAULT_FILE_FORMAT: &str = "write.delete.format.default";
/// Where data files are written; none: `data` below the table's location.
pub const WRITE_DATA_LOCATION: &str = "write.data.path";
/// Older name of [`WRITE_DATA_LOCATION`].
pub const WRITE_FOLDER_STORAGE_LOCATION: &str = "write.folder-storage.path";
/// Older name of [`WRITE_DATA_LOCATION`] with object-store paths.
pub const OBJECT_STORE_PATH: &str = "write.object-storage.path";
/// Where metadata files are written; none: `metadata` below the table's location.
pub const WRITE_METADATA_LOCATION: &str = "write.metadata.path";
/// How rows are distributed before they are written: none, hash, range.
pub const WRITE_DISTRIBUTION_MODE: &str = "write.distribution-mode";
/// Id of the table's encryption key.
pub const ENCRYPTION_TABLE_KEY: &str = "encryption.key-id";

/// Declares properties with defaults, and the list of them that the tests hold against the golden data.
macro_rules! properties {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty = $property:literal, $default:expr;)+) => {
        $($(#[doc = $doc])+ pub const $name: Property<$type> = Property { name: $property, default: $default };)+

        /// Every property with a default: its name, and the default as text.
        pub fn defaults() -> Vec<(&'static str, String)> {
            vec![$(($name.name, $name.default.to_string())),+]
        }
    };
}

properties! {
    /// Tries of a commit after the first.
    COMMIT_NUM_RETRIES: i64 = "commit.retry.num-retries", 4;
    /// Shortest wait before a retry.
    COMMIT_MIN_RETRY_WAIT_MS: i64 = "commit.retry.min-wait-ms", 100;
    /// Longest wait before a retry.
    COMMIT_MAX_RETRY_WAIT_MS: i64 = "commit.retry.max-wait-ms", 60_000;
    /// Time for all tries.
    COMMIT_TOTAL_RETRY_TIME_MS: i64 = "commit.retry.total-timeout-ms", 1_800_000;
    /// Looks at the state of a commit whose outcome is unknown.
    COMMIT_NUM_STATUS_CHECKS: i64 = "commit.status-check.num-retries", 3;
    /// Shortest wait between them.
    COMMIT_STATUS_CHECKS_MIN_WAIT_MS: i64 = "commit.status-check.min-wait-ms", 1_000;
    /// Longest wait between them.
    COMMIT_STATUS_CHECKS_MAX_WAIT_MS: i64 = "commit.status-check.max-wait-ms", 60_000;
    /// Time for all of them.
    COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS: i64 = "commit.status-check.total-timeout-ms", 1_800_000;
    /// Size that merged manifests aim at.
    MANIFEST_TARGET_SIZE_BYTES: i64 = "commit.manifest.target-size-bytes", 8_388_608;
    /// Manifests from which on an append merges them.
    MANIFEST_MIN_MERGE_COUNT: i64 = "commit.manifest.min-count-to-merge", 100;
    /// Whether appends merge manifests.
    MANIFEST_MERGE_ENABLED: bool = "commit.manifest-merge.enabled", true;
    /// Format of data files.
    DEFAULT_FILE_FORMAT: &'static str = "write.format.default", "parquet";
    /// Size at which a writer starts the next data file.
    WRITE_TARGET_FILE_SIZE_BYTES: i64 = "write.target-file-size-bytes", 536_870_912;
    /// Size at which a writer starts the next delete file.
    DELETE_TARGET_FILE_SIZE_BYTES: i64 = "write.delete.target-file-size-bytes", 67_108_864;
    /// Whether position deletes are written a file or a partition.
    DELETE_GRANULARITY: &'static str = "write.delete.granularity", "partition";
    /// How DELETE works in engines.
    DELETE_MODE: &'static str = "write.delete.mode", "copy-on-write";
    /// How UPDATE works in engines.
    UPDATE_MODE: &'static str = "write.update.mode", "copy-on-write";
    /// How MERGE works in engines.
    MERGE_MODE: &'static str = "write.merge.mode", "copy-on-write";
    /// What concurrent commits a DELETE tolerates.
    DELETE_ISOLATION_LEVEL: &'static str = "write.delete.isolation-level", "serializable";
    /// What concurrent commits an UPDATE tolerates.
    UPDATE_ISOLATION_LEVEL: &'static str = "write.update.isolation-level", "serializable";
    /// What concurrent commits a MERGE tolerates.
    MERGE_ISOLATION_LEVEL: &'static str = "write.merge.isolation-level", "serializable";
    /// Size of Parquet row groups.
    PARQUET_ROW_GROUP_SIZE_BYTES: i64 = "write.parquet.row-group-size-bytes", 134_217_728;
    /// Size of Parquet pages.
    PARQUET_PAGE_SIZE_BYTES: i64 = "write.parquet.page-size-bytes", 1_048_576;
    /// Rows of a Parquet page.
    PARQUET_PAGE_ROW_LIMIT: i64 = "write.parquet.page-row-limit", 20_000;
    /// Version of Parquet pages.
    PARQUET_PAGE_VERSION: &'static str = "write.parquet.page-version", "v1";
    /// Size of Parquet dictionaries.
    PARQUET_DICT_SIZE_BYTES: i64 = "write.parquet.dict-size-bytes", 2_097_152;
    /// Largest size of a Parquet bloom filter.
    PARQUET_BLOOM_FILTER_MAX_BYTES: i64 = "write.parquet.bloom-filter-max-bytes", 1_048_576;
    /// Codec of Parquet files. A table that is created now says `zstd` ([`PARQUET_COMPRESSION_OF_NEW_TABLES`]).
    PARQUET_COMPRESSION: &'static str = "write.parquet.compression-codec", "gzip";
    /// Whether variants are shredded.
    PARQUET_SHRED_VARIANTS: bool = "write.parquet.shred-variants", false;
    /// Codec of Avro data files.
    AVRO_COMPRESSION: &'static str = "write.avro.compression-codec", "gzip";
    /// Size of ORC stripes.
    ORC_STRIPE_SIZE_BYTES: i64 = "write.orc.stripe-size-bytes", 67_108_864;
    /// Size of file-system blocks that ORC stripes are aligned to.
    ORC_BLOCK_SIZE_BYTES: i64 = "write.orc.block-size-bytes", 268_435_456;
    /// Rows of an ORC batch.
    ORC_WRITE_BATCH_SIZE: i64 = "write.orc.vectorized.batch-size", 1_024;
    /// Codec of ORC files.
    ORC_COMPRESSION: &'static str = "write.orc.compression-codec", "zlib";
    /// Whether ORC compresses for speed or size.
    ORC_COMPRESSION_STRATEGY: &'static str = "write.orc.compression-strategy", "speed";
    /// Columns with ORC bloom filters, by commas.
    ORC_BLOOM_FILTER_COLUMNS: &'static str = "write.orc.bloom.filter.columns", "";
    /// False positives of ORC bloom filters.
    ORC_BLOOM_FILTER_FPP: f64 = "write.orc.bloom.filter.fpp", 0.05;
    /// Codec of manifests and manifest lists.
    MANIFEST_COMPRESSION: &'static str = "write.manifest.compression-codec", "gzip";
    /// Codec of metadata files.
    METADATA_COMPRESSION: &'static str = "write.metadata.compression-codec", "none";
    /// Entries of the metadata log that are kept.
    METADATA_PREVIOUS_VERSIONS_MAX: i64 = "write.metadata.previous-versions-max", 100;
    /// Whether a commit deletes the metadata files that leave the log.
    METADATA_DELETE_AFTER_COMMIT_ENABLED: bool = "write.metadata.delete-after-commit.enabled", false;
    /// How much of the columns' metrics is kept.
    DEFAULT_WRITE_METRICS_MODE: &'static str = "write.metadata.metrics.default", "truncate(16)";
    /// Partitions up to which a snapshot's summary names each.
    WRITE_PARTITION_SUMMARY_LIMIT: i64 = "write.summary.partition-limit", 0;
    /// Whether file paths begin with a hash.
    OBJECT_STORE_ENABLED: bool = "write.object-storage.enabled", false;
    /// Whether such paths name the partition.
    WRITE_OBJECT_STORE_PARTITIONED_PATHS: bool = "write.object-storage.partitioned-paths", true;
    /// Whether snapshots are staged for audits.
    WRITE_AUDIT_PUBLISH_ENABLED: bool = "write.wap.enabled", false;
    /// Whether streams upsert.
    UPSERT_ENABLED: bool = "write.upsert.enabled", false;
    /// Whether Spark writers keep a file open for each partition.
    SPARK_WRITE_PARTITIONED_FANOUT_ENABLED: bool = "write.spark.fanout.enabled", false;
    /// Whether writes may bring columns that the table lacks.
    SPARK_WRITE_ACCEPT_ANY_SCHEMA: bool = "write.spark.accept-any-schema", false;
    /// Size of the tasks of a scan.
    SPLIT_SIZE: i64 = "read.split.target-size", 134_217_728;
    /// The same for scans of metadata tables.
    METADATA_SPLIT_SIZE: i64 = "read.split.metadata-target-size", 33_554_432;
    /// Tasks that are filled at the same time.
    SPLIT_LOOKBACK: i64 = "read.split.planning-lookback", 10;
    /// What opening a file costs, in bytes read.
    SPLIT_OPEN_FILE_COST: i64 = "read.split.open-file-cost", 4_194_304;
    /// Rows of a batch read from Parquet.
    PARQUET_BATCH_SIZE: i64 = "read.parquet.vectorization.batch-size", 5_000;
    /// Rows of a batch read from ORC.
    ORC_BATCH_SIZE: i64 = "read.orc.vectorization.batch-size", 5_000;
    /// Age up to which expiry leaves snapshots.
    MAX_SNAPSHOT_AGE_MS: i64 = "history.expire.max-snapshot-age-ms", 432_000_000;
    /// Snapshots that expiry leaves in each branch.
    MIN_SNAPSHOTS_TO_KEEP: i64 = "history.expire.min-snapshots-to-keep", 1;
    /// Age up to which expiry leaves branches and tags.
    MAX_REF_AGE_MS: i64 = "history.expire.max-ref-age-ms", i64::MAX;
    /// Whether files of the table may be deleted at all.
    GC_ENABLED: bool = "gc.enabled", true;
    /// Bytes of a data key.
    ENCRYPTION_DEK_LENGTH: i64 = "encryption.data-key-length", 16;
}

/// What a table that is created now gets as [`PARQUET_COMPRESSION`] unless told otherwise.
pub const PARQUET_COMPRESSION_OF_NEW_TABLES: &str = "zstd";
/// Columns up to which metrics are kept without being asked for.
pub const METRICS_MAX_INFERRED_COLUMN_DEFAULTS: Property<i64> =
    Property { name: "write.metadata.metrics.max-inferred-column-defaults", default: 100 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_by_kind() {
        let properties: StringMap = [
            (COMMIT_NUM_RETRIES.name, "7"),
            (SPLIT_SIZE.name, "many"),
            (GC_ENABLED.name, "FALSE"),
            (ORC_BLOOM_FILTER_FPP.name, "0.5"),
            (METADATA_COMPRESSION.name, "gzip"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        assert_eq!(COMMIT_NUM_RETRIES.read(&properties), Ok(7));
        assert_eq!(COMMIT_MIN_RETRY_WAIT_MS.read(&properties), Ok(100));
        let error = SPLIT_SIZE.read(&properties).unwrap_err().to_string();
        assert_eq!(error, "property read.split.target-size: \"many\": invalid digit found in string");
        assert!(!GC_ENABLED.read(&properties));
        assert!(MANIFEST_MERGE_ENABLED.read(&properties));
        assert_eq!(ORC_BLOOM_FILTER_FPP.read(&properties), Ok(0.5));
        assert_eq!(METADATA_COMPRESSION.read(&properties), "gzip");
        assert_eq!(DEFAULT_FILE_FORMAT.read(&properties), "parquet");
    }
}
