//! Write options of ORC files: a table's `write.orc.*` properties.

use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::{
    ORC_BLOCK_SIZE_BYTES, ORC_BLOOM_FILTER_COLUMNS, ORC_BLOOM_FILTER_FPP, ORC_COMPRESSION, ORC_COMPRESSION_STRATEGY,
    ORC_STRIPE_SIZE_BYTES,
};
use icefield_orc::WriterOptions;
use icefield_orc::proto::{CalendarKind, CompressionKind};

use crate::error::{Error, Result};

/// Write options of ORC files. (`write.orc.vectorized.batch-size` has no effect: batches are Arrow's.)
#[derive(Debug, Clone)]
pub struct OrcOptions {
    /// For the encoder.
    pub(super) writer: WriterOptions,
}

impl OrcOptions {
    /// Reads the properties.
    pub fn new(properties: &StringMap) -> Result<Self> {
        let compression = codec(properties)?;
        let columns = ORC_BLOOM_FILTER_COLUMNS.read(properties).split(',').map(str::trim);
        let writer = WriterOptions {
            compression,
            compression_level: level(compression, ORC_COMPRESSION_STRATEGY.read_choice(properties)?),
            stripe_size: ORC_STRIPE_SIZE_BYTES.read_size(properties)?,
            block_size: Some(ORC_BLOCK_SIZE_BYTES.read_size(properties)? as u64),
            bloom_filter_columns: columns.filter(|column| !column.is_empty()).map(str::to_owned).collect(),
            bloom_filter_fpp: ORC_BLOOM_FILTER_FPP.read(properties)?,
            // Java's table reader leaves days unchanged only with this value: see `WriterOptions::calendar`.
            calendar: CalendarKind::JulianGregorian,
            // Strings are checked when batches are conformed to the table's schema (`write::conform`).
            trusted_texts: true,
            ..WriterOptions::default()
        };
        Ok(Self { writer })
    }
}

fn codec(properties: &StringMap) -> Result<CompressionKind> {
    let codec = ORC_COMPRESSION.read_choice(properties).map_err(|error| Error::unsupported(error.to_string()))?;
    Ok(match codec {
        "zlib" => CompressionKind::Zlib,
        "zstd" => CompressionKind::Zstd,
        "snappy" => CompressionKind::Snappy,
        "lz4" => CompressionKind::Lz4,
        "lzo" => CompressionKind::Lzo,
        _ => CompressionKind::None,
    })
}

/// The codec's level for a strategy, if the codec has levels.
fn level(codec: CompressionKind, strategy: &str) -> Option<i32> {
    let fast = strategy == ORC_COMPRESSION_STRATEGY.default;
    match codec {
        CompressionKind::Zlib => Some(if fast { 4 } else { 7 }),
        CompressionKind::Zstd => Some(if fast { 3 } else { 7 }),
        _ => None,
    }
}
