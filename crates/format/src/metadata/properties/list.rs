//! Every table property of the Java library, PyIceberg and Spark's connector, and how icefield treats it.
//!
//! Names and defaults are those of the Java library. `docs/properties.md` is made from this list.

use super::{AllowedValues, ColumnProperty, Effect, KnownProperty, MetricsMode, Property};
use crate::evolution::{BLOOM_FILTER_PREFIX, METRICS_MODE_PREFIX, SHREDDING_PREFIX, STATISTICS_PREFIX};
use crate::types::NAME_MAPPING_PROPERTY;

/// Declares properties: constants for the code that reads them, and the list of all. Properties of columns come first,
/// then properties without a default, then the others.
macro_rules! properties {
    (
        $($(#[doc = $of_column:literal])+ $column:ident: $kind:ty = $prefix:expr, $without:expr, $may_be:expr, $does:expr;)+
        ---
        $($(#[doc = $own:literal])+ $plain:ident: $plain_type:ty = $label:expr, $allowed:expr, $done:expr;)+
        ---
        $($(#[doc = $doc:literal])+ $name:ident: $type:ty = $property:literal, $default:expr, $values:expr, $effect:expr;)+
    ) => {
        $(
            $(#[doc = $of_column])+
            pub const $column: ColumnProperty<$kind> =
                ColumnProperty { prefix: $prefix, default: $without, values: $may_be };
        )+
        $(
            $(#[doc = $own])+
            pub const $plain: Property<Option<$plain_type>> =
                Property { name: $label, default: None, values: $allowed };
        )+
        $(
            $(#[doc = $doc])+
            pub const $name: Property<$type> = Property { name: $property, default: $default, values: $values };
        )+

        /// All known properties. If a name ends with a dot, a column name follows.
        pub const KNOWN: &[KnownProperty] = &[
            $(KnownProperty { name: $prefix, default: None, values: $may_be, effect: $does, about: concat!($($of_column),+) },)+
            $(KnownProperty { name: $label, default: None, values: $allowed, effect: $done, about: concat!($($own),+) },)+
            $(KnownProperty {
                name: $property,
                default: Some(|| $name.default.to_string()),
                values: $values,
                effect: $effect,
                about: concat!($($doc),+),
            },)+
        ];
    };
}

properties! {
    /// Followed by a column's name: how much of its metrics is kept.
    METRICS_MODE_COLUMN_CONF_PREFIX: () = METRICS_MODE_PREFIX, (), AllowedValues::MetricsMode, Effect::Honoured;
    /// Followed by a column's name: whether it gets a bloom filter.
    PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX: bool = BLOOM_FILTER_PREFIX, false,
        AllowedValues::Flag, Effect::Honoured;
    /// Followed by a column's name: false positives of its bloom filter.
    PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX: f64 = "write.parquet.bloom-filter-fpp.column.", 0.01,
        AllowedValues::Fraction, Effect::Honoured;
    /// Followed by a column's name: distinct values that its bloom filter is made for.
    PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX: Option<i64> = "write.parquet.bloom-filter-ndv.column.", None,
        AllowedValues::AtLeast(1), Effect::Honoured;
    /// Followed by a column's name: whether Parquet writes statistics of it.
    PARQUET_COLUMN_STATS_ENABLED_PREFIX: bool = STATISTICS_PREFIX, true, AllowedValues::Flag, Effect::Honoured;
    /// Followed by a column's name: whether Parquet may encode it with a dictionary.
    PARQUET_DICT_ENCODING_ENABLED_COLUMN_PREFIX: bool = "write.parquet.dict-encoding-enabled.column.", true,
        AllowedValues::Flag, Effect::Honoured;
    /// Followed by the name of a variant column: the type that it is shredded as (icefield's own).
    PARQUET_SHRED_VARIANTS_COLUMN_PREFIX: () = SHREDDING_PREFIX, (), AllowedValues::Shape, Effect::Honoured;
    ---
    /// Given when a table is created or replaced: its format version.
    FORMAT_VERSION: i64 = "format-version", AllowedValues::AtLeast(1), Effect::Honoured;
    /// The name mapping of files without field ids, as JSON.
    DEFAULT_NAME_MAPPING: &'static str = NAME_MAPPING_PROPERTY, AllowedValues::NameMapping, Effect::Honoured;
    /// Compression level of Parquet files; without it the codec's default.
    PARQUET_COMPRESSION_LEVEL: i64 = "write.parquet.compression-level", AllowedValues::Level, Effect::Honoured;
    /// Compression level of Avro data files; without it the codec's default.
    AVRO_COMPRESSION_LEVEL: i64 = "write.avro.compression-level",
        AllowedValues::Level, Effect::Honoured;
    /// Compression level of manifests; without it the codec's default.
    MANIFEST_COMPRESSION_LEVEL: i64 = "write.manifest.compression-level", AllowedValues::Level, Effect::Honoured;
    /// Format of delete files; without it that of data files.
    DELETE_DEFAULT_FILE_FORMAT: &'static str = "write.delete.format.default",
        AllowedValues::OneOf(&["parquet", "orc", "avro", "puffin"]), Effect::Honoured;
    /// Where data files are written; without it `data` below the table's location.
    WRITE_DATA_LOCATION: &'static str = "write.data.path", AllowedValues::Filled, Effect::Honoured;
    /// Older name of `write.data.path`.
    WRITE_FOLDER_STORAGE_LOCATION: &'static str = "write.folder-storage.path",
        AllowedValues::Text, Effect::Refused("it is no longer used: set write.data.path");
    /// Older name of `write.data.path` with object-store paths.
    OBJECT_STORE_PATH: &'static str = "write.object-storage.path",
        AllowedValues::Text, Effect::Refused("it is no longer used: set write.data.path");
    /// Where metadata files are written; without it `metadata` below the table's location.
    WRITE_METADATA_LOCATION: &'static str = "write.metadata.path", AllowedValues::Filled, Effect::Honoured;
    /// How rows are distributed before they are written. One writer, as in a Python process, brings the rows of each partition together with
    /// hash and range, the default: a partition gets one file, up to the target size, however many partitions there are. With none, files
    /// are closed and others begun where more than 512 partitions are open. Rows are sorted by the table's sort order in every mode.
    WRITE_DISTRIBUTION_MODE: &'static str = "write.distribution-mode", AllowedValues::OneOf(&["none", "hash", "range"]), Effect::Honoured;
    /// Id of the key in a key management service that encrypts the table.
    ENCRYPTION_TABLE_KEY: &'static str = "encryption.key-id",
        AllowedValues::Filled, Effect::Honoured;
    /// How rows of DELETE are distributed before they are written.
    DELETE_DISTRIBUTION_MODE: &'static str = "write.delete.distribution-mode",
        AllowedValues::OneOf(&["none", "hash", "range"]),
        Effect::Harmless("Files are written again one by one, as they are; other engines read it.");
    /// How rows of UPDATE are distributed before they are written.
    UPDATE_DISTRIBUTION_MODE: &'static str = "write.update.distribution-mode",
        AllowedValues::OneOf(&["none", "hash", "range"]),
        Effect::Harmless("Files are written again one by one, as they are; other engines read it.");
    /// How rows of MERGE are distributed before they are written.
    MERGE_DISTRIBUTION_MODE: &'static str = "write.merge.distribution-mode",
        AllowedValues::OneOf(&["none", "hash", "range"]),
        Effect::Harmless("Files are written again one by one, as they are; other engines read it.");
    /// A comment on the table.
    COMMENT: &'static str = "comment", AllowedValues::Text, Effect::Harmless("Kept for people and other engines.");
    /// A class that says where data files lie: an entry point of `icefield.location_providers` with this name.
    LOCATION_PROVIDER_IMPL: &'static str = "write.location-provider.impl",
        AllowedValues::Filled, Effect::Honoured;
    /// The same under PyIceberg's name; it wins over `write.location-provider.impl`.
    PY_LOCATION_PROVIDER_IMPL: &'static str = "write.py-location-provider.impl",
        AllowedValues::Filled, Effect::Honoured;
    /// Size of the partitions that Spark shuffles rows into.
    SPARK_ADVISORY_PARTITION_SIZE: i64 = "write.spark.advisory-partition-size-bytes",
        AllowedValues::AtLeast(1), Effect::Harmless("Read by the Java connector of Spark only.");
    /// As write.parquet.row-group-size-bytes, for delete files.
    DELETE_PARQUET_ROW_GROUP_SIZE_BYTES: &'static str = "write.delete.parquet.row-group-size-bytes",
        AllowedValues::Text, Effect::Honoured;
    /// As write.parquet.page-size-bytes, for delete files.
    DELETE_PARQUET_PAGE_SIZE_BYTES: &'static str = "write.delete.parquet.page-size-bytes",
        AllowedValues::Text, Effect::Honoured;
    /// As write.parquet.page-version, for delete files.
    DELETE_PARQUET_PAGE_VERSION: &'static str = "write.delete.parquet.page-version",
        AllowedValues::Text, Effect::Honoured;
    /// As write.parquet.page-row-limit, for delete files.
    DELETE_PARQUET_PAGE_ROW_LIMIT: &'static str = "write.delete.parquet.page-row-limit",
        AllowedValues::Text, Effect::Honoured;
    /// As write.parquet.dict-size-bytes, for delete files.
    DELETE_PARQUET_DICT_SIZE_BYTES: &'static str = "write.delete.parquet.dict-size-bytes",
        AllowedValues::Text, Effect::Honoured;
    /// As write.parquet.compression-codec, for delete files.
    DELETE_PARQUET_COMPRESSION_CODEC: &'static str = "write.delete.parquet.compression-codec",
        AllowedValues::Text, Effect::Honoured;
    /// As write.parquet.compression-level, for delete files.
    DELETE_PARQUET_COMPRESSION_LEVEL: &'static str = "write.delete.parquet.compression-level",
        AllowedValues::Text, Effect::Honoured;
    /// As write.parquet.row-group-check-min-record-count, for delete files.
    DELETE_PARQUET_ROW_GROUP_CHECK_MIN_RECORD_COUNT: &'static str = "write.delete.parquet.row-group-check-min-record-count",
        AllowedValues::Text, Effect::Harmless("The size is looked at after every batch.");
    /// As write.parquet.row-group-check-max-record-count, for delete files.
    DELETE_PARQUET_ROW_GROUP_CHECK_MAX_RECORD_COUNT: &'static str = "write.delete.parquet.row-group-check-max-record-count",
        AllowedValues::Text, Effect::Harmless("The size is looked at after every batch.");
    /// As write.avro.compression-codec, for delete files.
    DELETE_AVRO_COMPRESSION_CODEC: &'static str = "write.delete.avro.compression-codec",
        AllowedValues::Text, Effect::Honoured;
    /// As write.avro.compression-level, for delete files.
    DELETE_AVRO_COMPRESSION_LEVEL: &'static str = "write.delete.avro.compression-level",
        AllowedValues::Text, Effect::Honoured;
    /// As write.orc.stripe-size-bytes, for delete files.
    DELETE_ORC_STRIPE_SIZE_BYTES: &'static str = "write.delete.orc.stripe-size-bytes",
        AllowedValues::Text, Effect::Honoured;
    /// As write.orc.block-size-bytes, for delete files.
    DELETE_ORC_BLOCK_SIZE_BYTES: &'static str = "write.delete.orc.block-size-bytes",
        AllowedValues::Text, Effect::Honoured;
    /// As write.orc.vectorized.batch-size, for delete files.
    DELETE_ORC_VECTORIZED_BATCH_SIZE: &'static str = "write.delete.orc.vectorized.batch-size",
        AllowedValues::Text, Effect::Harmless("Batches are those of the rows given.");
    /// As write.orc.compression-codec, for delete files.
    DELETE_ORC_COMPRESSION_CODEC: &'static str = "write.delete.orc.compression-codec",
        AllowedValues::Text, Effect::Honoured;
    /// As write.orc.compression-strategy, for delete files.
    DELETE_ORC_COMPRESSION_STRATEGY: &'static str = "write.delete.orc.compression-strategy",
        AllowedValues::Text, Effect::Honoured;
    /// Whether data files are planned locally or by Spark's executors.
    DATA_PLANNING_MODE: &'static str = "read.data-planning-mode",
        AllowedValues::OneOf(&["auto", "local", "distributed"]), Effect::Harmless("Plans are made where the scan is.");
    /// Whether delete files are planned locally or by Spark's executors.
    DELETE_PLANNING_MODE: &'static str = "read.delete-planning-mode",
        AllowedValues::OneOf(&["auto", "local", "distributed"]), Effect::Harmless("Plans are made where the scan is.");
    ---
    /// Tries of a commit after the first.
    COMMIT_NUM_RETRIES: i64 = "commit.retry.num-retries", 4, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Shortest wait before a retry.
    COMMIT_MIN_RETRY_WAIT_MS: i64 = "commit.retry.min-wait-ms", 100, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Longest wait before a retry.
    COMMIT_MAX_RETRY_WAIT_MS: i64 = "commit.retry.max-wait-ms", 60_000, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Time for all tries.
    COMMIT_TOTAL_RETRY_TIME_MS: i64 = "commit.retry.total-timeout-ms", 1_800_000, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Looks at the state of a commit whose outcome is unknown.
    COMMIT_NUM_STATUS_CHECKS: i64 = "commit.status-check.num-retries", 3, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Shortest wait between them.
    COMMIT_STATUS_CHECKS_MIN_WAIT_MS: i64 = "commit.status-check.min-wait-ms", 1_000,
        AllowedValues::AtLeast(0), Effect::Honoured;
    /// Longest wait between them.
    COMMIT_STATUS_CHECKS_MAX_WAIT_MS: i64 = "commit.status-check.max-wait-ms", 60_000,
        AllowedValues::AtLeast(0), Effect::Honoured;
    /// Time for all of them.
    COMMIT_STATUS_CHECKS_TOTAL_WAIT_MS: i64 = "commit.status-check.total-timeout-ms", 1_800_000,
        AllowedValues::AtLeast(0), Effect::Harmless("commit.status-check.num-retries bounds the checks.");
    /// Size that merged manifests aim at.
    MANIFEST_TARGET_SIZE_BYTES: i64 = "commit.manifest.target-size-bytes", 8_388_608,
        AllowedValues::AtLeast(0), Effect::Honoured;
    /// Manifests from which on an append merges them.
    MANIFEST_MIN_MERGE_COUNT: i64 = "commit.manifest.min-count-to-merge", 100, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Whether appends merge manifests.
    MANIFEST_MERGE_ENABLED: bool = "commit.manifest-merge.enabled", true, AllowedValues::Flag, Effect::Honoured;
    /// Format of data files.
    DEFAULT_FILE_FORMAT: &'static str = "write.format.default", "parquet",
        AllowedValues::OneOf(&["parquet", "orc", "avro"]), Effect::Honoured;
    /// Size at which a writer starts the next data file.
    WRITE_TARGET_FILE_SIZE_BYTES: i64 = "write.target-file-size-bytes", 536_870_912,
        AllowedValues::AtLeast(1), Effect::Honoured;
    /// Size at which a writer starts the next delete file.
    DELETE_TARGET_FILE_SIZE_BYTES: i64 = "write.delete.target-file-size-bytes", 67_108_864,
        AllowedValues::AtLeast(1), Effect::Honoured;
    /// Whether position deletes are written for a data file or for a partition; icefield takes `file` where it is not set.
    DELETE_GRANULARITY: &'static str = "write.delete.granularity", "partition",
        AllowedValues::OneOf(&["file", "partition"]), Effect::Honoured;
    /// How rows are deleted; icefield decides file by file where it is not set.
    DELETE_MODE: &'static str = "write.delete.mode", "copy-on-write",
        AllowedValues::OneOf(&["copy-on-write", "merge-on-read"]),
        Effect::Honoured;
    /// How rows are updated; icefield decides file by file where it is not set.
    UPDATE_MODE: &'static str = "write.update.mode", "copy-on-write",
        AllowedValues::OneOf(&["copy-on-write", "merge-on-read"]),
        Effect::Honoured;
    /// How rows are merged or upserted; icefield decides file by file where it is not set.
    MERGE_MODE: &'static str = "write.merge.mode", "copy-on-write",
        AllowedValues::OneOf(&["copy-on-write", "merge-on-read"]),
        Effect::Honoured;
    /// What concurrent commits a DELETE tolerates.
    DELETE_ISOLATION_LEVEL: &'static str = "write.delete.isolation-level", "serializable",
        AllowedValues::OneOf(&["serializable", "snapshot"]),
        Effect::Honoured;
    /// What concurrent commits an UPDATE tolerates.
    UPDATE_ISOLATION_LEVEL: &'static str = "write.update.isolation-level", "serializable",
        AllowedValues::OneOf(&["serializable", "snapshot"]),
        Effect::Honoured;
    /// What concurrent commits a MERGE tolerates.
    MERGE_ISOLATION_LEVEL: &'static str = "write.merge.isolation-level", "serializable",
        AllowedValues::OneOf(&["serializable", "snapshot"]),
        Effect::Honoured;
    /// Size of Parquet row groups.
    PARQUET_ROW_GROUP_SIZE_BYTES: i64 = "write.parquet.row-group-size-bytes", 134_217_728,
        AllowedValues::AtLeast(1), Effect::Honoured;
    /// Size of Parquet pages.
    PARQUET_PAGE_SIZE_BYTES: i64 = "write.parquet.page-size-bytes", 1_048_576, AllowedValues::AtLeast(1), Effect::Honoured;
    /// Rows of a Parquet page.
    PARQUET_PAGE_ROW_LIMIT: i64 = "write.parquet.page-row-limit", 20_000, AllowedValues::AtLeast(1), Effect::Honoured;
    /// Version of Parquet pages.
    PARQUET_PAGE_VERSION: &'static str = "write.parquet.page-version", "v1",
        AllowedValues::OneOf(&["v1", "v2"]), Effect::Honoured;
    /// Size of Parquet dictionaries.
    PARQUET_DICT_SIZE_BYTES: i64 = "write.parquet.dict-size-bytes", 2_097_152, AllowedValues::AtLeast(1), Effect::Honoured;
    /// Largest size of a Parquet bloom filter.
    PARQUET_BLOOM_FILTER_MAX_BYTES: i64 = "write.parquet.bloom-filter-max-bytes", 1_048_576,
        AllowedValues::AtLeast(1), Effect::Honoured;
    /// Codec of Parquet files. Java's default is for tables before 1.4: new ones say `zstd`, which is written without it too.
    PARQUET_COMPRESSION: &'static str = "write.parquet.compression-codec", "gzip",
        AllowedValues::OneOf(&["zstd", "gzip", "snappy", "lz4", "lz4_raw", "brotli", "uncompressed", "none"]),
        Effect::Honoured;
    /// Whether variants are shredded, by types inferred from the first rows of each file.
    PARQUET_SHRED_VARIANTS: bool = "write.parquet.shred-variants", false, AllowedValues::Flag, Effect::Honoured;
    /// Codec of Avro data files.
    AVRO_COMPRESSION: &'static str = "write.avro.compression-codec", "gzip",
        AllowedValues::OneOf(&["gzip", "zstd", "snappy", "uncompressed"]), Effect::Honoured;
    /// Size of ORC stripes.
    ORC_STRIPE_SIZE_BYTES: i64 = "write.orc.stripe-size-bytes", 67_108_864, AllowedValues::AtLeast(1), Effect::Honoured;
    /// Size of file-system blocks that ORC stripes are aligned to.
    ORC_BLOCK_SIZE_BYTES: i64 = "write.orc.block-size-bytes", 268_435_456, AllowedValues::AtLeast(1), Effect::Honoured;
    /// Rows of an ORC batch.
    ORC_WRITE_BATCH_SIZE: i64 = "write.orc.vectorized.batch-size", 1_024,
        AllowedValues::AtLeast(1), Effect::Harmless("Batches are those of the rows given.");
    /// Codec of ORC files.
    ORC_COMPRESSION: &'static str = "write.orc.compression-codec", "zlib",
        AllowedValues::OneOf(&["zlib", "zstd", "snappy", "lz4", "lzo", "none", "uncompressed"]), Effect::Honoured;
    /// Whether ORC compresses for speed or size.
    ORC_COMPRESSION_STRATEGY: &'static str = "write.orc.compression-strategy", "speed",
        AllowedValues::OneOf(&["speed", "compression"]), Effect::Honoured;
    /// Columns with ORC bloom filters, by commas.
    ORC_BLOOM_FILTER_COLUMNS: &'static str = "write.orc.bloom.filter.columns", "", AllowedValues::Text, Effect::Honoured;
    /// False positives of ORC bloom filters.
    ORC_BLOOM_FILTER_FPP: f64 = "write.orc.bloom.filter.fpp", 0.05, AllowedValues::Fraction, Effect::Honoured;
    /// Codec of manifests and manifest lists.
    MANIFEST_COMPRESSION: &'static str = "write.manifest.compression-codec", "gzip",
        AllowedValues::OneOf(&["gzip", "zstd", "snappy", "uncompressed"]), Effect::Honoured;
    /// Codec of metadata files.
    METADATA_COMPRESSION: &'static str = "write.metadata.compression-codec", "none",
        AllowedValues::OneOf(&["none", "gzip"]), Effect::Honoured;
    /// Entries of the metadata log that are kept.
    METADATA_PREVIOUS_VERSIONS_MAX: i64 = "write.metadata.previous-versions-max", 100,
        AllowedValues::AtLeast(0), Effect::Honoured;
    /// Whether a commit deletes the metadata files that leave the log.
    METADATA_DELETE_AFTER_COMMIT_ENABLED: bool = "write.metadata.delete-after-commit.enabled", false,
        AllowedValues::Flag, Effect::Honoured;
    /// How much of the columns' metrics is kept.
    DEFAULT_WRITE_METRICS_MODE: MetricsMode = "write.metadata.metrics.default", MetricsMode::Truncate(16),
        AllowedValues::MetricsMode, Effect::Honoured;
    /// Partitions up to which a snapshot's summary names each.
    WRITE_PARTITION_SUMMARY_LIMIT: i64 = "write.summary.partition-limit", 0, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Whether file paths begin with a hash.
    OBJECT_STORE_ENABLED: bool = "write.object-storage.enabled", false, AllowedValues::Flag, Effect::Honoured;
    /// Whether such paths name the partition.
    WRITE_OBJECT_STORE_PARTITIONED_PATHS: bool = "write.object-storage.partitioned-paths", true,
        AllowedValues::Flag, Effect::Honoured;
    /// Whether snapshots are staged for audits.
    WRITE_AUDIT_PUBLISH_ENABLED: bool = "write.wap.enabled", false, AllowedValues::Flag, Effect::Honoured;
    /// Whether streams upsert.
    UPSERT_ENABLED: bool = "write.upsert.enabled", false, AllowedValues::Flag, Effect::Harmless("Read by Flink only.");
    /// Whether Spark writers keep a file open for each partition.
    SPARK_WRITE_PARTITIONED_FANOUT_ENABLED: bool = "write.spark.fanout.enabled", false,
        AllowedValues::Flag,
        Effect::Harmless("A task keeps files of many partitions open, in bounded memory, unless its rows come sorted by partition.");
    /// Whether writes may bring columns that the table lacks.
    SPARK_WRITE_ACCEPT_ANY_SCHEMA: bool = "write.spark.accept-any-schema", false,
        AllowedValues::Flag,
        Effect::Harmless("Columns are checked against the table; append(schema_mode=) says how they may differ.");
    /// Size of the tasks of a scan.
    SPLIT_SIZE: i64 = "read.split.target-size", 134_217_728, AllowedValues::AtLeast(1), Effect::Honoured;
    /// The same for scans of metadata tables.
    METADATA_SPLIT_SIZE: i64 = "read.split.metadata-target-size", 33_554_432,
        AllowedValues::AtLeast(1), Effect::Harmless("Metadata tables are split by manifest.");
    /// Tasks that are filled at the same time.
    SPLIT_LOOKBACK: i64 = "read.split.planning-lookback", 10, AllowedValues::AtLeast(1), Effect::Honoured;
    /// What opening a file costs, in bytes read.
    SPLIT_OPEN_FILE_COST: i64 = "read.split.open-file-cost", 4_194_304, AllowedValues::AtLeast(0), Effect::Honoured;
    /// Whether tasks become smaller where there would be fewer of them than an engine runs at a time.
    ADAPTIVE_SPLIT_SIZE: bool = "read.split.adaptive-size.enabled", true, AllowedValues::Flag, Effect::Honoured;
    /// Rows of a batch read from Parquet.
    PARQUET_BATCH_SIZE: i64 = "read.parquet.vectorization.batch-size", 5_000,
        AllowedValues::AtLeast(1), Effect::Harmless("Reading chooses the rows of a batch by their size.");
    /// Rows of a batch read from ORC.
    ORC_BATCH_SIZE: i64 = "read.orc.vectorization.batch-size", 5_000,
        AllowedValues::AtLeast(1), Effect::Harmless("Reading chooses the rows of a batch by their size.");
    /// Age up to which expiry leaves snapshots.
    MAX_SNAPSHOT_AGE_MS: i64 = "history.expire.max-snapshot-age-ms", 432_000_000,
        AllowedValues::AtLeast(0), Effect::Honoured;
    /// Snapshots that expiry leaves in each branch.
    MIN_SNAPSHOTS_TO_KEEP: i64 = "history.expire.min-snapshots-to-keep", 1,
        AllowedValues::AtLeast(1), Effect::Honoured;
    /// Age up to which expiry leaves branches and tags.
    MAX_REF_AGE_MS: i64 = "history.expire.max-ref-age-ms", i64::MAX,
        AllowedValues::AtLeast(0), Effect::Honoured;
    /// Whether files of the table may be deleted at all.
    GC_ENABLED: bool = "gc.enabled", true, AllowedValues::Flag, Effect::Honoured;
    /// Bytes of the keys of encrypted files.
    ENCRYPTION_DEK_LENGTH: i64 = "encryption.data-key-length", 16,
        AllowedValues::OneOf(&["16", "24", "32"]), Effect::Honoured;
    /// Columns up to which metrics are kept without being asked for.
    METRICS_MAX_INFERRED_COLUMN_DEFAULTS: i64 = "write.metadata.metrics.max-inferred-column-defaults", 100,
        AllowedValues::AtLeast(0), Effect::Honoured;
    /// Maximum number of rows in a Parquet row group (PyIceberg's name).
    PARQUET_ROW_GROUP_LIMIT: i64 = "write.parquet.row-group-limit", 1_048_576, AllowedValues::AtLeast(1), Effect::Honoured;
    /// Rows after which the size of a row group is looked at.
    PARQUET_ROW_GROUP_CHECK_MIN: i64 = "write.parquet.row-group-check-min-record-count", 100,
        AllowedValues::AtLeast(1), Effect::Harmless("The size is looked at after every batch.");
    /// Rows after which the size is looked at again at the latest.
    PARQUET_ROW_GROUP_CHECK_MAX: i64 = "write.parquet.row-group-check-max-record-count", 10_000,
        AllowedValues::AtLeast(1), Effect::Harmless("The size is looked at after every batch.");
    /// Whether the size of row groups is that before compression.
    PARQUET_ROW_GROUP_UNCOMPRESSED: bool = "write.parquet.row-group-size-track-uncompressed", false,
        AllowedValues::Flag, Effect::Harmless("The size of a row group is that of its encoded pages.");
    /// Rows of a file from which the types of its shredded variants are inferred.
    PARQUET_VARIANT_BUFFER_SIZE: i64 = "write.parquet.variant-inference-buffer-size", 100,
        AllowedValues::AtLeast(1), Effect::Honoured;
    /// Whether the size of bloom filters follows the values.
    PARQUET_BLOOM_FILTER_ADAPTIVE: bool = "write.parquet.bloom-filter-adaptive-enabled", false,
        AllowedValues::Flag, Effect::Harmless("Bloom filters are folded to what their values need.");
    /// Whether writes of Spark add columns.
    SPARK_AUTO_SCHEMA_EVOLUTION: bool = "write.spark.auto-schema-evolution.enabled", true,
        AllowedValues::Flag, Effect::Harmless("Read by the Java connector of Spark only.");
    /// Whether Parquet is read in batches.
    PARQUET_VECTORIZATION: bool = "read.parquet.vectorization.enabled", true,
        AllowedValues::Flag, Effect::Harmless("Reading is always in batches.");
    /// Whether ORC is read in batches.
    ORC_VECTORIZATION: bool = "read.orc.vectorization.enabled", false,
        AllowedValues::Flag, Effect::Harmless("Reading is always in batches.");
    /// Whether optimizers may take identifier fields for unique.
    IDENTIFIER_FIELDS_RELY: bool = "identifier-fields.rely", false,
        AllowedValues::Flag, Effect::Harmless("Read by the Java connector of Spark only.");
    /// Whether manifests of v1 leave out snapshot ids.
    SNAPSHOT_ID_INHERITANCE: bool = "compatibility.snapshot-id-inheritance.enabled", false,
        AllowedValues::Flag, Effect::Harmless("Manifests always name their snapshot.");
    /// Whether Hive sees the table.
    ENGINE_HIVE_ENABLED: bool = "engine.hive.enabled", false,
        AllowedValues::Flag, Effect::Harmless("Read by Java's Hive catalog only.");
    /// Whether commits take Hive's lock.
    HIVE_LOCK_ENABLED: bool = "engine.hive.lock-enabled", true,
        AllowedValues::Flag, Effect::Harmless("Read by Java's Hive catalog only.");
}

/// Value of [`PARQUET_COMPRESSION`] in new tables, unless the user sets another.
pub const PARQUET_COMPRESSION_OF_NEW_TABLES: &str = "zstd";

/// Returns the name of every property with a default, and the default as text.
pub fn defaults() -> Vec<(&'static str, String)> {
    KNOWN.iter().filter_map(|known| Some((known.name, known.default?()))).collect()
}

/// Names of values that table metadata has fields for: they are never stored as properties.
pub const RESERVED: &[&str] = &[
    "current-schema",
    "current-snapshot-id",
    "current-snapshot-summary",
    "current-snapshot-timestamp-ms",
    "default-partition-spec",
    "default-sort-order",
    FORMAT_VERSION.name,
    "snapshot-count",
    "uuid",
];
