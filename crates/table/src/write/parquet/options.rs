//! How Parquet files are written: the `write.parquet.*` properties of a table.

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use icefield_format::metadata::properties::{
    PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX, PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX,
    PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX, PARQUET_BLOOM_FILTER_MAX_BYTES, PARQUET_COLUMN_STATS_ENABLED_PREFIX,
    PARQUET_COMPRESSION, PARQUET_COMPRESSION_LEVEL, PARQUET_COMPRESSION_OF_NEW_TABLES,
    PARQUET_DICT_ENCODING_ENABLED_COLUMN_PREFIX, PARQUET_DICT_SIZE_BYTES, PARQUET_PAGE_ROW_LIMIT,
    PARQUET_PAGE_SIZE_BYTES, PARQUET_PAGE_VERSION, PARQUET_ROW_GROUP_LIMIT, PARQUET_ROW_GROUP_SIZE_BYTES,
};
use icefield_format::types::Schema;

use crate::error::{Error, Result};
use crate::settings::Settings;

/// How Parquet files are written.
#[derive(Debug, Clone)]
pub struct ParquetOptions {
    /// Encoded size at which a row group is closed (`write.parquet.row-group-size-bytes`).
    pub row_group_bytes: usize,
    /// Rows at which a row group is closed, if its size has not closed it before (`write.parquet.row-group-limit`).
    pub row_group_rows: usize,
    compression: Compression,
    page_bytes: usize,
    page_rows: usize,
    dictionary_bytes: usize,
    version: WriterVersion,
    blooms: Vec<Bloom>,
    without_statistics: Vec<String>,
    /// Columns for which it is said whether they may have a dictionary.
    dictionaries: Vec<(String, bool)>,
}

/// A bloom filter of one column.
#[derive(Debug, Clone)]
struct Bloom {
    column: String,
    false_positives: f64,
    distinct: Option<u64>,
}

impl ParquetOptions {
    /// Reads the properties.
    pub fn new(settings: &Settings) -> Result<Self> {
        let version = match settings.word(&PARQUET_PAGE_VERSION).to_ascii_lowercase().as_str() {
            "v1" => WriterVersion::PARQUET_1_0,
            "v2" => WriterVersion::PARQUET_2_0,
            other => {
                let name = PARQUET_PAGE_VERSION.name;
                return Err(Error::invalid(format!("table property {name}: expected v1 or v2, got {other:?}")));
            }
        };
        Ok(Self {
            row_group_bytes: settings.positive(&PARQUET_ROW_GROUP_SIZE_BYTES)?,
            row_group_rows: settings.positive(&PARQUET_ROW_GROUP_LIMIT)?,
            compression: compression(settings)?,
            page_bytes: settings.positive(&PARQUET_PAGE_SIZE_BYTES)?,
            page_rows: settings.positive(&PARQUET_PAGE_ROW_LIMIT)?,
            dictionary_bytes: settings.positive(&PARQUET_DICT_SIZE_BYTES)?,
            version,
            blooms: blooms(settings)?,
            without_statistics: settings
                .below(PARQUET_COLUMN_STATS_ENABLED_PREFIX)
                .filter(|(_, value)| value.eq_ignore_ascii_case("false"))
                .map(|(column, _)| column.to_owned())
                .collect(),
            dictionaries: settings
                .below(PARQUET_DICT_ENCODING_ENABLED_COLUMN_PREFIX)
                .map(|(column, value)| (column.to_owned(), value.eq_ignore_ascii_case("true")))
                .collect(),
        })
    }

    /// The Parquet writer's own properties for files of this schema.
    pub(super) fn parquet(&self, schema: &Schema, file: &SchemaDescriptor) -> WriterProperties {
        let mut builder = WriterProperties::builder()
            .set_created_by(concat!("icefield version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_writer_version(self.version)
            .set_compression(self.compression)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(self.page_rows)
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            // The row group is closed by us, by bytes and rows. Bounds are cut by us too, to what the metrics mode allows.
            .set_max_row_group_row_count(None)
            .set_max_row_group_bytes(None)
            .set_statistics_truncate_length(None);
        for bloom in &self.blooms {
            let Some(path) = column_path(schema, file, &bloom.column) else { continue };
            builder = bloom.apply(builder, path);
        }
        for column in &self.without_statistics {
            let Some(path) = column_path(schema, file, column) else { continue };
            builder = builder.set_column_statistics_enabled(path, parquet::file::properties::EnabledStatistics::None);
        }
        for (column, enabled) in &self.dictionaries {
            let Some(path) = column_path(schema, file, column) else { continue };
            builder = builder.set_column_dictionary_enabled(path, *enabled);
        }
        builder.build()
    }
}

impl Bloom {
    fn apply(&self, builder: WriterPropertiesBuilder, path: ColumnPath) -> WriterPropertiesBuilder {
        let builder = builder
            .set_column_bloom_filter_enabled(path.clone(), true)
            .set_column_bloom_filter_fpp(path.clone(), self.false_positives);
        match self.distinct {
            Some(distinct) => builder.set_column_bloom_filter_max_ndv(path, distinct),
            None => builder,
        }
    }
}

/// Path in the file of a column named as in the table; none where it is not a column of the file.
fn column_path(schema: &Schema, file: &SchemaDescriptor, name: &str) -> Option<ColumnPath> {
    let id = schema.find_by_name(name, true).ok()??.id;
    let columns = file.columns().iter();
    let mut found = columns.filter(|column| {
        let info = column.self_type().get_basic_info();
        info.has_id() && info.id() == id
    });
    found.next().map(|column| column.path().clone())
}

fn compression(settings: &Settings) -> Result<Compression> {
    let codec =
        settings.text(PARQUET_COMPRESSION.name).unwrap_or(PARQUET_COMPRESSION_OF_NEW_TABLES).to_ascii_lowercase();
    let level = match settings.text(PARQUET_COMPRESSION_LEVEL) {
        None | Some("" | "null") => None,
        Some(_) => Some(settings.number::<i32>(PARQUET_COMPRESSION_LEVEL, 0)?),
    };
    let bad = |error: parquet::errors::ParquetError| {
        Error::invalid(format!("table property write.parquet.compression-level: {error}"))
    };
    let unsigned = level.map(|level| u32::try_from(level).unwrap_or(u32::MAX));
    Ok(match codec.as_str() {
        "zstd" => Compression::ZSTD(level.map_or(Ok(ZstdLevel::default()), ZstdLevel::try_new).map_err(bad)?),
        "gzip" => Compression::GZIP(unsigned.map_or(Ok(GzipLevel::default()), GzipLevel::try_new).map_err(bad)?),
        "brotli" => {
            Compression::BROTLI(unsigned.map_or(Ok(BrotliLevel::default()), BrotliLevel::try_new).map_err(bad)?)
        }
        "snappy" => Compression::SNAPPY,
        "lz4" | "lz4_raw" => Compression::LZ4_RAW,
        "uncompressed" | "none" => Compression::UNCOMPRESSED,
        other => {
            return Err(Error::unsupported(format!(
                "Parquet codec {other:?} (write.parquet.compression-codec: zstd, gzip, snappy, lz4, brotli, uncompressed)"
            )));
        }
    })
}

fn blooms(settings: &Settings) -> Result<Vec<Bloom>> {
    let wanted = settings.below(PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX);
    let wanted = wanted.filter(|(_, value)| value.eq_ignore_ascii_case("true"));
    let bloom = |(column, _): (&str, &str)| {
        let fpp: f64 = settings.number(&format!("{PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX}{column}"), 0.01)?;
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(Error::invalid(format!(
                "bloom filter of column {column}: its fpp {fpp} is not between 0 and 1"
            )));
        }
        let name = format!("{PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX}{column}");
        let distinct = settings.text(&name).map(|_| settings.number(&name, 0)).transpose()?;
        // As many values as the largest filter has bits for.
        let bits = settings.positive(&PARQUET_BLOOM_FILTER_MAX_BYTES)? as f64 * 8.0;
        let most = (-bits * (1.0 - fpp.powf(0.125)).ln() / 8.0).max(1.0) as u64;
        let distinct = match distinct {
            Some(distinct) => Some(most.min(distinct)),
            None => settings.text(PARQUET_BLOOM_FILTER_MAX_BYTES.name).map(|_| most),
        };
        Ok(Bloom { column: column.to_owned(), false_positives: fpp, distinct })
    };
    wanted.map(bloom).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_javas() {
        let options = ParquetOptions::new(&Settings::default()).unwrap();
        assert_eq!(options.row_group_bytes, 128 << 20);
        assert!(matches!(options.compression, Compression::ZSTD(_)));
    }
}
