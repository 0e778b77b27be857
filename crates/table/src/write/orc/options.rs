//! How ORC files are written: the `write.orc.*` properties of a table.

use icefield_format::metadata::properties::{
    ORC_BLOCK_SIZE_BYTES, ORC_BLOOM_FILTER_COLUMNS, ORC_BLOOM_FILTER_FPP, ORC_COMPRESSION, ORC_COMPRESSION_STRATEGY,
    ORC_STRIPE_SIZE_BYTES,
};
use icefield_orc::WriterOptions;
use icefield_orc::proto::{CalendarKind, CompressionKind};

use crate::error::{Error, Result};
use crate::settings::Settings;

const CODEC: &str = ORC_COMPRESSION.name;
const STRATEGY: &str = ORC_COMPRESSION_STRATEGY.name;
const FPP: &str = ORC_BLOOM_FILTER_FPP.name;
pub(super) const BLOOM_COLUMNS: &str = ORC_BLOOM_FILTER_COLUMNS.name;

/// How ORC files are written. (`write.orc.vectorized.batch-size` means nothing here: batches are Arrow's.)
#[derive(Debug, Clone)]
pub struct OrcOptions {
    /// For the encoder.
    pub(super) writer: WriterOptions,
}

impl OrcOptions {
    /// Reads the properties.
    pub fn new(settings: &Settings) -> Result<Self> {
        let compression = codec(settings.word(&ORC_COMPRESSION))?;
        let fpp = settings.number(FPP, ORC_BLOOM_FILTER_FPP.default)?;
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(Error::invalid(format!("table property {FPP}: {fpp} is not between 0 and 1")));
        }
        let columns = settings.word(&ORC_BLOOM_FILTER_COLUMNS).split(',').map(str::trim);
        let writer = WriterOptions {
            compression,
            compression_level: level(compression, settings.word(&ORC_COMPRESSION_STRATEGY))?,
            stripe_size: settings.positive(&ORC_STRIPE_SIZE_BYTES)?,
            block_size: Some(settings.positive(&ORC_BLOCK_SIZE_BYTES)? as u64),
            bloom_filter_columns: columns.filter(|column| !column.is_empty()).map(str::to_owned).collect(),
            bloom_filter_fpp: fpp,
            // Java's reader of tables takes days as they are only where the file says so: see `WriterOptions::calendar`.
            calendar: CalendarKind::JulianGregorian,
            // They are looked at where batches are brought to the table's schema (`write::conform`).
            trusted_texts: true,
            ..WriterOptions::default()
        };
        Ok(Self { writer })
    }
}

fn codec(name: &str) -> Result<CompressionKind> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "zlib" => CompressionKind::Zlib,
        "zstd" => CompressionKind::Zstd,
        "snappy" => CompressionKind::Snappy,
        "lz4" => CompressionKind::Lz4,
        "lzo" => CompressionKind::Lzo,
        "none" | "uncompressed" => CompressionKind::None,
        other => {
            return Err(Error::unsupported(format!(
                "ORC codec {other:?} ({CODEC}: zlib, zstd, snappy, lz4, lzo, none)"
            )));
        }
    })
}

/// The codec's level for a strategy, where the codec has levels.
fn level(codec: CompressionKind, strategy: &str) -> Result<Option<i32>> {
    let fast = match strategy.to_ascii_lowercase().as_str() {
        "speed" => true,
        "compression" => false,
        other => {
            return Err(Error::invalid(format!("table property {STRATEGY}: {other:?} is not speed or compression")));
        }
    };
    Ok(match codec {
        CompressionKind::Zlib => Some(if fast { 4 } else { 7 }),
        CompressionKind::Zstd => Some(if fast { 3 } else { 7 }),
        _ => None,
    })
}
