//! What a writer is asked for.

use std::sync::Arc;

use crate::encrypt::KeyMaker;
use crate::error::{Error, Result};
use crate::mask::Mask;
use crate::proto::{CalendarKind, CompressionKind};
use crate::rle::Packing;
use crate::tail::FileVersion;

/// The least block that a table of many columns is given.
const MIN_WIDE_BLOCK: usize = 4 << 10;

/// What becomes of timestamps in the last second before 1970 (in the writer's zone) that have a millisecond or more:
/// `1969-12-31 23:59:59.001` to `23:59:59.999999999`.
///
/// ORC cannot hold them: seconds are cut toward zero, so that half a second before 1970 and half a second after it are
/// the same bytes. orc-core and the C++ library write the wrong second without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastSecond {
    /// Such a value is refused with an error that names the column.
    #[default]
    Refuse,
    /// It becomes the nearer one of 23:59:59 and 00:00:00.
    Round,
}

/// The streams that bloom filters are written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BloomVersion {
    /// `BLOOM_FILTER_UTF8` alone.
    #[default]
    Utf8,
    /// `BLOOM_FILTER` as well, for readers older than ORC 1.4.
    Original,
}

/// Which columns are encrypted, and how they look without their key.
#[derive(Debug, Clone)]
pub struct EncryptionOptions {
    /// Makes local keys.
    pub keys: Arc<dyn KeyMaker>,
    /// Names of master keys, and the columns under each by dotted path; a nested column stands for all below it.
    pub columns: Vec<(String, Vec<String>)>,
    /// Masks, and the encrypted columns that each is for; other columns are null without their key.
    pub masks: Vec<(Mask, Vec<String>)>,
}

/// Everything that can be asked of a writer.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The version of the format. [`FileVersion::V0_12`] is what all readers know.
    pub version: FileVersion,
    /// The codec of all streams and of the tail.
    pub compression: CompressionKind,
    /// The codec's level: ZLIB 0 to 12 (6), ZSTD -7 to 22 (3), BROTLI 0 to 11 (5); in brackets what `None` means. The
    /// other codecs have none and refuse one.
    pub compression_level: Option<i32>,
    /// Bytes of a compression chunk before it is compressed, below 2^23. `None` means 256 KiB, and less for tables of
    /// many columns, so that their open chunks stay within the stripe.
    pub compression_block_size: Option<usize>,
    /// A stripe is written when so many bytes are held: those of its streams, as far as they are compressed, and those
    /// of its dictionaries.
    pub stripe_size: usize,
    /// A stripe is written after so many rows, at the latest.
    pub stripe_rows: Option<u64>,
    /// Rows of a row group; 0 means no row index.
    pub row_index_stride: u32,
    /// Text is written through a dictionary where distinct values are at most this share of all values of a stripe: 0
    /// never, 1 always.
    pub dictionary_key_size_threshold: f64,
    /// Dictionaries are sorted, as readers of old may expect; else they stand in the order of first use.
    pub sorted_dictionaries: bool,
    /// Integers packed by bits save space; aligned to widths that are read faster.
    pub packing: Packing,
    /// Columns with bloom filters, by dotted path; one that is nested stands for all below it.
    pub bloom_filter_columns: Vec<String>,
    /// The share of values that a filter wrongly says are there.
    pub bloom_filter_fpp: f64,
    /// The streams of the filters.
    pub bloom_filter_version: BloomVersion,
    /// Stripes do not cross multiples of this many bytes where padding can prevent it; `None` means no padding.
    pub block_size: Option<u64>,
    /// At most this share of a stripe is padding.
    pub block_padding_tolerance: f64,
    /// The zone of timestamps without one: their wall clocks are stored as its instants.
    pub timezone: String,
    /// What the footer says of days before 1582-10-15. It says it and no more: values are stored as they are given.
    /// Iceberg's files hold proleptic days and say Julian; its readers count on both.
    pub calendar: CalendarKind,
    /// Timestamps in the last second before 1970.
    pub last_second: LastSecond,
    /// Texts are taken for UTF-8 unseen, as somebody has looked already. Else what is none is refused, with its column and
    /// row. What is written is never unsafe to read: readers look themselves.
    pub trusted_texts: bool,
    /// The file's root is the schema's only field, not a struct of it.
    pub bare_root: bool,
    /// The user's metadata.
    pub user_metadata: Vec<(String, Vec<u8>)>,
    /// Columns under keys.
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
    /// Refuses what makes no file.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |what: &str| Err(Error::invalid(what));
        if self.stripe_size == 0 || self.stripe_rows == Some(0) {
            return refuse("stripes of nothing");
        }
        if !(0.0..=1.0).contains(&self.dictionary_key_size_threshold) {
            return refuse("a dictionary threshold outside 0 to 1");
        }
        if !(0.0..=1.0).contains(&self.block_padding_tolerance) || self.block_size == Some(0) {
            return refuse("a padding tolerance outside 0 to 1, or blocks of no bytes");
        }
        if self.row_index_stride == 0 && !self.bloom_filter_columns.is_empty() {
            return refuse("bloom filters without row groups");
        }
        Ok(())
    }

    /// The chunk size for so many columns; 0 without compression.
    pub(super) fn block(&self, columns: usize) -> usize {
        if self.compression == CompressionKind::None {
            return 0;
        }
        self.compression_block_size.unwrap_or_else(|| {
            // Some five streams a column, each with an open chunk, in a quarter of the stripe.
            let share = self.stripe_size / columns.saturating_mul(20).max(1);
            let power = share.checked_ilog2().map_or(0, |log| 1usize << log);
            power.clamp(MIN_WIDE_BLOCK, crate::compress::DEFAULT_BLOCK)
        })
    }
}
