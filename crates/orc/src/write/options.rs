//! The options of a writer.

use std::sync::Arc;

use crate::encrypt::KeyMaker;
use crate::error::{Error, Result};
use crate::mask::Mask;
use crate::proto::{CalendarKind, CompressionKind};
use crate::rle::Packing;
use crate::tail::FileVersion;

/// Minimum of the default block size in bytes, for files with many columns.
const MIN_WIDE_BLOCK: usize = 4 << 10;

/// What to do with timestamps in the last second before 1970 (in the writer's zone) that have at least a millisecond:
/// `1969-12-31 23:59:59.001` to `23:59:59.999999999`.
///
/// ORC cannot store them: seconds are truncated toward zero, so half a second before 1970 and half a second after it
/// have the same bytes. orc-core and the C++ library silently write the wrong second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastSecond {
    /// Return [`Error::Value`], which names the column.
    #[default]
    Refuse,
    /// Round to 23:59:59 or 00:00:00, whichever is nearer.
    Round,
}

/// The streams that Bloom filters are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BloomVersion {
    /// `BLOOM_FILTER_UTF8` only.
    #[default]
    Utf8,
    /// `BLOOM_FILTER` as well, for readers older than ORC 1.4.
    Original,
}

/// Which columns are encrypted, and what readers without their key see ("Column Encryption").
#[derive(Debug, Clone)]
pub struct EncryptionOptions {
    /// Creates the local keys.
    pub keys: Arc<dyn KeyMaker>,
    /// Names of master keys, and the columns under each by dotted path; a nested column includes everything below it.
    pub columns: Vec<(String, Vec<String>)>,
    /// Masks, and the encrypted columns that each applies to. Other encrypted columns are null without their key.
    pub masks: Vec<(Mask, Vec<String>)>,
}

/// How a file is written: its format version, encodings, indexes and encryption.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The version of the format. All readers know [`FileVersion::V0_12`], the default.
    pub version: FileVersion,
    /// The codec of all streams and of the tail; ZSTD by default.
    pub compression: CompressionKind,
    /// The level of the codec: ZLIB 0 to 12 (default 6), ZSTD -7 to 22 (3), BROTLI 0 to 11 (5). The other codecs have
    /// no levels and accept only `None`.
    pub compression_level: Option<i32>,
    /// Bytes of a chunk before compression, less than 2^23. `None` means 256 KiB, or less for tables with many columns,
    /// so that their open chunks fit into the stripe.
    pub compression_block_size: Option<usize>,
    /// A stripe is written when it holds this many bytes: those of its streams, compressed or still uncompressed, and
    /// of its dictionaries. 64 MiB by default.
    pub stripe_size: usize,
    /// The maximum number of rows in a stripe; unlimited by default.
    pub stripe_rows: Option<u64>,
    /// Rows of a row group, 10,000 by default; 0 means no row index.
    pub row_index_stride: u32,
    /// Text is dictionary-encoded if at most this share of the values in a stripe are distinct: 0 means never, 1
    /// always; 0.8 by default.
    pub dictionary_key_size_threshold: f64,
    /// Whether dictionaries are sorted, which old readers may expect, or kept in the order of first use.
    pub sorted_dictionaries: bool,
    /// Whether integers are packed as tightly as possible, or aligned to widths that are faster to read.
    pub packing: Packing,
    /// Columns with Bloom filters, by dotted path; a nested column includes everything below it.
    pub bloom_filter_columns: Vec<String>,
    /// The probability that a filter reports a value that is absent, between 0 and 1; 0.01 by default.
    pub bloom_filter_fpp: f64,
    /// The streams of the filters.
    pub bloom_filter_version: BloomVersion,
    /// Pads stripes so that they do not cross multiples of this many bytes, such as HDFS blocks; `None` means no
    /// padding.
    pub block_size: Option<u64>,
    /// The maximum share of a stripe that is padding, between 0 and 1.
    pub block_padding_tolerance: f64,
    /// The time zone in which local timestamps are stored, for example `Europe/Berlin`; `UTC` by default. Readers get
    /// the same local times back.
    pub timezone: String,
    /// The calendar that the footer declares for days before 1582-10-15. Values are stored unchanged. The files of
    /// Iceberg contain proleptic Gregorian days but declare Julian ones, and its readers expect exactly this.
    pub calendar: CalendarKind,
    /// What to do with timestamps in the last second before 1970.
    pub last_second: LastSecond,
    /// Whether text is written without a check that it is UTF-8, because the caller has checked it. Otherwise invalid
    /// text is an error with its column and row. Either way the file is safe to read: readers check for themselves.
    pub trusted_texts: bool,
    /// Whether the root of the file is the only field of the schema instead of a struct with that field.
    pub bare_root: bool,
    /// User metadata: keys and values, which are any bytes.
    pub user_metadata: Vec<(String, Vec<u8>)>,
    /// Encrypted columns and their keys.
    pub encryption: Option<EncryptionOptions>,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            version: FileVersion::V0_12,
            compression: CompressionKind::Zstd,
            compression_level: None,
            compression_block_size: None,
            stripe_size: 64 << 20,
            stripe_rows: None,
            row_index_stride: 10_000,
            dictionary_key_size_threshold: 0.8,
            sorted_dictionaries: true,
            packing: Packing::default(),
            bloom_filter_columns: Vec::new(),
            bloom_filter_fpp: 0.01,
            bloom_filter_version: BloomVersion::default(),
            block_size: None,
            block_padding_tolerance: 0.05,
            timezone: "UTC".to_owned(),
            calendar: CalendarKind::ProlepticGregorian,
            last_second: LastSecond::default(),
            trusted_texts: false,
            bare_root: false,
            user_metadata: Vec::new(),
            encryption: None,
        }
    }
}

impl WriterOptions {
    /// Checks the options.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid(what));
        if self.stripe_size == 0 || self.stripe_rows == Some(0) {
            return refuse("the stripe size and the rows of a stripe must be positive");
        }
        if !(0.0..=1.0).contains(&self.dictionary_key_size_threshold) {
            return refuse("the dictionary threshold must be between 0 and 1");
        }
        if !(0.0..=1.0).contains(&self.block_padding_tolerance) || self.block_size == Some(0) {
            return refuse("the padding tolerance must be between 0 and 1, and the block size positive");
        }
        if self.row_index_stride == 0 && !self.bloom_filter_columns.is_empty() {
            return refuse("bloom filters need row groups: the row index stride must be positive");
        }
        Ok(())
    }

    /// The block size in bytes for this many columns; 0 without compression.
    pub(super) fn block(&self, columns: usize) -> usize {
        if self.compression == CompressionKind::None {
            return 0;
        }
        self.compression_block_size.unwrap_or_else(|| {
            // About five streams per column, each with an open chunk, in a quarter of the stripe.
            let share = self.stripe_size / columns.saturating_mul(20).max(1);
            let power = share.checked_ilog2().map_or(0, |log| 1usize << log);
            power.clamp(MIN_WIDE_BLOCK, crate::compress::DEFAULT_BLOCK)
        })
    }
}
