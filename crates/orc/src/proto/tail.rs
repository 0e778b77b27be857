//! Postscript, footer and types ("File Tail").

use super::encryption::Encryption;
use super::message::{Blob, Opt, Packed, Rep, Sub, Subs, Text, U32, U64, enumerations, messages};
use super::statistics::ColumnStatistics;

enumerations! {
    /// The generic compression of a file.
    CompressionKind {
        /// No compression, and no chunks.
        0 None "NONE",
        /// Raw deflate.
        1 Zlib "ZLIB",
        /// Snappy blocks.
        2 Snappy "SNAPPY",
        /// LZO1X blocks.
        3 Lzo "LZO",
        /// LZ4 blocks.
        4 Lz4 "LZ4",
        /// Zstandard frames.
        5 Zstd "ZSTD",
        /// Brotli streams (orc-format 1.1; the draft ends at ZSTD).
        6 Brotli "BROTLI",
    }

    /// The kind of a type.
    TypeKind {
        /// `boolean`
        0 Boolean "BOOLEAN",
        /// `tinyint`
        1 Byte "BYTE",
        /// `smallint`
        2 Short "SHORT",
        /// `int`
        3 Int "INT",
        /// `bigint`
        4 Long "LONG",
        /// `float`
        5 Float "FLOAT",
        /// `double`
        6 Double "DOUBLE",
        /// `string`
        7 String "STRING",
        /// `binary`
        8 Binary "BINARY",
        /// `timestamp`
        9 Timestamp "TIMESTAMP",
        /// `array`
        10 List "LIST",
        /// `map`
        11 Map "MAP",
        /// `struct`
        12 Struct "STRUCT",
        /// `uniontype`
        13 Union "UNION",
        /// `decimal`
        14 Decimal "DECIMAL",
        /// `date`
        15 Date "DATE",
        /// `varchar`
        16 Varchar "VARCHAR",
        /// `char`
        17 Char "CHAR",
        /// `timestamp with local time zone`
        18 TimestampInstant "TIMESTAMP_INSTANT",
        /// `geometry`
        19 Geometry "GEOMETRY",
        /// `geography`
        20 Geography "GEOGRAPHY",
    }

    /// How edges of a geography run between points.
    EdgeAlgorithm {
        /// Great circles.
        0 Spherical "SPHERICAL",
        /// Vincenty's formulae.
        1 Vincenty "VINCENTY",
        /// Thomas's formulae.
        2 Thomas "THOMAS",
        /// Andoyer's formulae.
        3 Andoyer "ANDOYER",
        /// Karney's algorithm.
        4 Karney "KARNEY",
    }

    /// The calendar of days before 1582-10-15.
    CalendarKind {
        /// Not specified.
        0 Unknown0 "UNKNOWN_CALENDAR",
        /// Julian before 1582-10-15, Gregorian from then on.
        1 JulianGregorian "JULIAN_GREGORIAN",
        /// Gregorian at all times.
        2 ProlepticGregorian "PROLEPTIC_GREGORIAN",
    }
}

messages! {
    /// The postscript: the last bytes of a file, never compressed.
    PostScript {
        /// Bytes of the compressed footer.
        1 footer_length: Opt<U64>,
        /// The codec of everything but the postscript.
        2 compression: Opt<CompressionKind>,
        /// The largest chunk after decompression.
        3 compression_block_size: Opt<U64>,
        /// The version of the file: `[0, 11]`, `[0, 12]`, `[1, 9999]`.
        4 version: Packed<U32>,
        /// Bytes of the compressed metadata section.
        5 metadata_length: Opt<U64>,
        /// The version of the writer; each implementation has its own numbers.
        6 writer_version: Opt<U32>,
        /// Bytes of the encrypted stripe statistics.
        7 stripe_statistics_length: Opt<U64>,
        /// `ORC`; the last field, so that it is at a known position.
        8000 magic: Opt<Text>,
    }

    /// The position of a stripe.
    StripeInformation {
        /// Its first byte in the file.
        1 offset: Opt<U64>,
        /// Bytes of its indexes.
        2 index_length: Opt<U64>,
        /// Bytes of its data.
        3 data_length: Opt<U64>,
        /// Bytes of its footer.
        4 footer_length: Opt<U64>,
        /// Its number of rows.
        5 number_of_rows: Opt<U64>,
        /// The stripe id in initialization vectors; in a stripe without it, one more than in the stripe before.
        6 encrypt_stripe_id: Opt<U64>,
        /// One wrapped local key per variant; a stripe without them uses those of the stripe before.
        7 encrypted_local_keys: Rep<Blob>,
    }

    /// An attribute of a type.
    StringPair {
        /// Its name.
        1 key: Opt<Text>,
        /// Its value.
        2 value: Opt<Text>,
    }

    /// One node of the type tree, in pre-order.
    Type {
        /// Its kind.
        1 kind: Opt<TypeKind>,
        /// The ids of its children.
        2 subtypes: Packed<U32>,
        /// The names of a struct's fields.
        3 field_names: Rep<Text>,
        /// Characters of a `char` or `varchar`.
        4 maximum_length: Opt<U32>,
        /// Digits of a decimal.
        5 precision: Opt<U32>,
        /// Digits after the point.
        6 scale: Opt<U32>,
        /// Attributes, `iceberg.id` among them.
        7 attributes: Subs<StringPair>,
        /// Coordinate reference system of a geometry or geography.
        8 crs: Opt<Text>,
        /// How the edges of a geography run.
        9 algorithm: Opt<EdgeAlgorithm>,
    }

    /// One pair of the user's metadata.
    UserMetadataItem {
        /// Its name.
        1 name: Opt<Text>,
        /// Its value.
        2 value: Opt<Blob>,
    }

    /// The layout of the file.
    Footer {
        /// Bytes of the header, 3.
        1 header_length: Opt<U64>,
        /// Bytes of the header and the stripes.
        2 content_length: Opt<U64>,
        /// The positions of the stripes.
        3 stripes: Subs<StripeInformation>,
        /// The type tree.
        4 types: Subs<Type>,
        /// The user's metadata.
        5 metadata: Subs<UserMetadataItem>,
        /// Number of rows of the file.
        6 number_of_rows: Opt<U64>,
        /// Statistics of the whole file, by column id.
        7 statistics: Subs<ColumnStatistics>,
        /// Rows per row group; 0 or absent if there is no row index.
        8 row_index_stride: Opt<U32>,
        /// The implementation that wrote the file.
        9 writer: Opt<U32>,
        /// Keys, masks and variants of encrypted columns.
        10 encryption: Sub<Encryption>,
        /// The calendar of days before 1582-10-15.
        11 calendar: Opt<CalendarKind>,
        /// The version of the implementation, as text.
        12 software_version: Opt<Text>,
    }

    /// Statistics of the columns of one stripe.
    StripeStatistics {
        /// By column id.
        1 col_stats: Subs<ColumnStatistics>,
    }

    /// The metadata section: statistics of all stripes.
    Metadata {
        /// By stripe.
        1 stripe_stats: Subs<StripeStatistics>,
    }
}
