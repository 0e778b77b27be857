//! How Parquet files are written: the `write.parquet.*` properties of a table.

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use icefield_format::types::Schema;

use crate::error::{Error, Result};
use crate::settings::Settings;

/// Rows of a row group at the most, unless `write.parquet.row-group-limit` says otherwise.
const ROW_GROUP_ROWS: usize = 1 << 20;

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
        let version = match settings.text("write.parquet.page-version").unwrap_or("v1") {
            "v2" => WriterVersion::PARQUET_2_0,
            _ => WriterVersion::PARQUET_1_0,
        };
        Ok(Self {
            row_group_bytes: settings.positive("write.parquet.row-group-size-bytes", 128 << 20)?,
            row_group_rows: settings.positive("write.parquet.row-group-limit", ROW_GROUP_ROWS)?,
            compression: compression(settings)?,
            page_bytes: settings.positive("write.parquet.page-size-bytes", 1 << 20)?,
            page_rows: settings.positive("write.parquet.page-row-limit", 20_000)?,
            dictionary_bytes: settings.positive("write.parquet.dict-size-bytes", 2 << 20)?,
            version,
            blooms: blooms(settings)?,
            without_statistics: settings
                .below("write.parquet.stats-enabled.column.")
                .filter(|(_, value)| value.eq_ignore_ascii_case("false"))
                .map(|(column, _)| column.to_owned())
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
    let codec = settings.text("write.parquet.compression-codec").unwrap_or("zstd").to_ascii_lowercase();
    let level = match settings.text("write.parquet.compression-level") {
        None | Some("" | "null") => None,
        Some(_) => Some(settings.number::<i32>("write.parquet.compression-level", 0)?),
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
    let wanted = settings.below("write.parquet.bloom-filter-enabled.column.");
    let wanted = wanted.filter(|(_, value)| value.eq_ignore_ascii_case("true"));
    let bloom = |(column, _): (&str, &str)| {
        let fpp = settings.number(&format!("write.parquet.bloom-filter-fpp.column.{column}"), 0.01)?;
        if !(fpp > 0.0 && fpp < 1.0) {
            return Err(Error::invalid(format!(
                "bloom filter of column {column}: its fpp {fpp} is not between 0 and 1"
            )));
        }
        let name = format!("write.parquet.bloom-filter-ndv.column.{column}");
        let distinct = settings.text(&name).map(|_| settings.number(&name, 0)).transpose()?;
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
