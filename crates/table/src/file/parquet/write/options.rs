//! Write options of Parquet files: a table's `write.parquet.*` properties.

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor};

use icefield_format::metadata::StringMap;
use icefield_format::metadata::properties::{
    PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX, PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX,
    PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX, PARQUET_BLOOM_FILTER_MAX_BYTES, PARQUET_COLUMN_STATS_ENABLED_PREFIX,
    PARQUET_COMPRESSION, PARQUET_COMPRESSION_LEVEL, PARQUET_COMPRESSION_OF_NEW_TABLES,
    PARQUET_DICT_ENCODING_ENABLED_COLUMN_PREFIX, PARQUET_DICT_SIZE_BYTES, PARQUET_PAGE_ROW_LIMIT,
    PARQUET_PAGE_SIZE_BYTES, PARQUET_PAGE_VERSION, PARQUET_ROW_GROUP_LIMIT, PARQUET_ROW_GROUP_SIZE_BYTES,
    PARQUET_SHRED_VARIANTS, PARQUET_SHRED_VARIANTS_COLUMN_PREFIX, PARQUET_VARIANT_BUFFER_SIZE,
};
use icefield_format::types::{Schema, parse_shape};
use icefield_format::value::variant::Shape;

use crate::error::{Error, Result};

/// Write options of Parquet files.
#[derive(Debug, Clone)]
pub struct ParquetOptions {
    /// Encoded size at which a row group is closed (`write.parquet.row-group-size-bytes`).
    pub row_group_bytes: usize,
    /// Rows at which a row group is closed, unless its size has closed it earlier (`write.parquet.row-group-limit`).
    pub row_group_rows: usize,
    compression: Compression,
    page_bytes: usize,
    page_rows: usize,
    dictionary_bytes: usize,
    version: WriterVersion,
    blooms: Vec<Bloom>,
    without_statistics: Vec<String>,
    /// Columns for which a property turns the dictionary on or off.
    dictionaries: Vec<(String, bool)>,
    /// Rows of a file from which shapes of variants are inferred; `None` leaves variants without a given shape whole.
    pub(super) inferring_rows: Option<usize>,
    /// Columns of variants and the shapes given for them.
    pub(super) shapes: Vec<(String, Shape)>,
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
    pub fn new(properties: &StringMap) -> Result<Self> {
        let version = match PARQUET_PAGE_VERSION.read_choice(properties)? {
            "v2" => WriterVersion::PARQUET_2_0,
            _ => WriterVersion::PARQUET_1_0,
        };
        let without_statistics = PARQUET_COLUMN_STATS_ENABLED_PREFIX.flags(properties).filter(|(_, enabled)| !enabled);
        let dictionaries = PARQUET_DICT_ENCODING_ENABLED_COLUMN_PREFIX.flags(properties);
        Ok(Self {
            row_group_bytes: PARQUET_ROW_GROUP_SIZE_BYTES.read_size(properties)?,
            row_group_rows: PARQUET_ROW_GROUP_LIMIT.read_size(properties)?,
            compression: compression(properties)?,
            page_bytes: PARQUET_PAGE_SIZE_BYTES.read_size(properties)?,
            page_rows: PARQUET_PAGE_ROW_LIMIT.read_size(properties)?,
            dictionary_bytes: PARQUET_DICT_SIZE_BYTES.read_size(properties)?,
            version,
            blooms: blooms(properties)?,
            without_statistics: without_statistics.map(|(column, _)| column.to_owned()).collect(),
            dictionaries: dictionaries.map(|(column, enabled)| (column.to_owned(), enabled)).collect(),
            inferring_rows: match PARQUET_SHRED_VARIANTS.read(properties) {
                true => Some(PARQUET_VARIANT_BUFFER_SIZE.read_size(properties)?),
                false => None,
            },
            shapes: shapes(properties)?,
        })
    }

    /// Whether any column is to have a Bloom filter.
    pub(crate) fn has_blooms(&self) -> bool {
        !self.blooms.is_empty()
    }

    /// The parquet crate's writer properties for files of this schema.
    pub(super) fn parquet(&self, schema: &Schema, file: &SchemaDescriptor) -> WriterProperties {
        let mut builder = WriterProperties::builder()
            .set_created_by(concat!("icefield version ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_writer_version(self.version)
            .set_compression(self.compression)
            .set_data_page_size_limit(self.page_bytes)
            .set_data_page_row_count_limit(self.page_rows)
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            // We close row groups, by bytes and rows, and truncate bounds to the metrics mode.
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

/// The path in the file of a column named as in the table; `None` if the file has no such column.
fn column_path(schema: &Schema, file: &SchemaDescriptor, name: &str) -> Option<ColumnPath> {
    // By id, because paths in a file have levels that the table's names lack, such as `list`.
    let id = schema.find_by_name(name, true).ok()??.id;
    let columns = file.columns().iter();
    let mut found = columns.filter(|column| {
        let info = column.self_type().get_basic_info();
        info.has_id() && info.id() == id
    });
    found.next().map(|column| column.path().clone())
}

fn compression(properties: &StringMap) -> Result<Compression> {
    let codec = properties.get(PARQUET_COMPRESSION.name).map_or(PARQUET_COMPRESSION_OF_NEW_TABLES, String::as_str);
    let codec = PARQUET_COMPRESSION.choose(codec).map_err(|error| Error::unsupported(error.to_string()))?;
    let level = PARQUET_COMPRESSION_LEVEL.read(properties)?;
    let bad = |_| PARQUET_COMPRESSION_LEVEL.unexpected(&level.unwrap_or_default().to_string());
    let signed = level.map(|level| i32::try_from(level).unwrap_or(i32::MAX));
    let unsigned = level.map(|level| u32::try_from(level).unwrap_or(u32::MAX));
    Ok(match codec {
        "zstd" => Compression::ZSTD(signed.map_or(Ok(ZstdLevel::default()), ZstdLevel::try_new).map_err(bad)?),
        "gzip" => Compression::GZIP(unsigned.map_or(Ok(GzipLevel::default()), GzipLevel::try_new).map_err(bad)?),
        "brotli" => {
            Compression::BROTLI(unsigned.map_or(Ok(BrotliLevel::default()), BrotliLevel::try_new).map_err(bad)?)
        }
        "snappy" => Compression::SNAPPY,
        // Parquet deprecates its first LZ4, because writers frame it in different ways.
        "lz4" | "lz4_raw" => Compression::LZ4_RAW,
        _ => Compression::UNCOMPRESSED,
    })
}

fn shapes(properties: &StringMap) -> Result<Vec<(String, Shape)>> {
    let given = PARQUET_SHRED_VARIANTS_COLUMN_PREFIX.columns(properties);
    // An empty text takes the property back for one write.
    given
        .filter(|(_, text)| !text.is_empty())
        .map(|(column, text)| match parse_shape(text) {
            Ok(shape) => Ok((column.to_owned(), shape)),
            Err(error) => {
                let prefix = PARQUET_SHRED_VARIANTS_COLUMN_PREFIX.prefix;
                Err(Error::invalid(format!("table property '{prefix}{column}': {error}")))
            }
        })
        .collect()
}

fn blooms(properties: &StringMap) -> Result<Vec<Bloom>> {
    let wanted = PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX.flags(properties).filter(|(_, enabled)| *enabled);
    let bloom = |(column, _): (&str, bool)| {
        let fpp = PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX.of(column, properties)?;
        let distinct = PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX.of(column, properties)?;
        // The number of values for which the largest filter has enough bits. Each value sets eight of them in a
        // split-block filter.
        let bits = PARQUET_BLOOM_FILTER_MAX_BYTES.read_size(properties)? as f64 * 8.0;
        let most = (-bits * (1.0 - fpp.powf(0.125)).ln() / 8.0).max(1.0) as u64;
        let distinct = match distinct {
            Some(distinct) => Some(most.min(distinct.cast_unsigned())),
            None => properties.get(PARQUET_BLOOM_FILTER_MAX_BYTES.name).map(|_| most),
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
        let options = ParquetOptions::new(&StringMap::new()).unwrap();
        assert_eq!(options.row_group_bytes, 128 << 20);
        assert!(matches!(options.compression, Compression::ZSTD(_)));
    }
}
