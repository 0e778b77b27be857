//! Column statistics, row indexes and bloom filters ("Column Statistics", "Indexes").

use super::message::{Blob, F64, Flag, I32, Opt, Packed, RawText, Rep, S32, S64, Sub, Subs, U32, U64, Word, messages};

messages! {
    /// Statistics of `tinyint` to `bigint`.
    IntegerStatistics {
        /// The least value.
        1 minimum: Opt<S64>,
        /// The greatest value.
        2 maximum: Opt<S64>,
        /// Absent after overflow.
        3 sum: Opt<S64>,
    }

    /// Statistics of `float` and `double`.
    DoubleStatistics {
        /// The least value.
        1 minimum: Opt<F64>,
        /// The greatest value.
        2 maximum: Opt<F64>,
        /// NaN or infinite if one of the values is.
        3 sum: Opt<F64>,
    }

    /// Statistics of `string`, `char` and `varchar`.
    StringStatistics {
        /// The least value, if it is short enough.
        1 minimum: Opt<RawText>,
        /// The greatest value, if it is short enough.
        2 maximum: Opt<RawText>,
        /// Bytes of all values.
        3 sum: Opt<S64>,
        /// A truncated lower bound that replaces a long minimum.
        4 lower_bound: Opt<RawText>,
        /// A truncated and incremented upper bound that replaces a long maximum.
        5 upper_bound: Opt<RawText>,
    }

    /// Statistics of `boolean`: one count.
    BucketStatistics {
        /// Number of true values.
        1 count: Packed<U64>,
    }

    /// Statistics of `decimal`, as text.
    DecimalStatistics {
        /// The least value.
        1 minimum: Opt<RawText>,
        /// The greatest value.
        2 maximum: Opt<RawText>,
        /// Unreliable: Java's sum overflows.
        3 sum: Opt<RawText>,
    }

    /// Statistics of `date`, in days.
    DateStatistics {
        /// The first day.
        1 minimum: Opt<S32>,
        /// The last day.
        2 maximum: Opt<S32>,
    }

    /// Statistics of both kinds of timestamps, in milliseconds.
    TimestampStatistics {
        /// In the writer's zone; not to be used.
        1 minimum: Opt<S64>,
        /// In the writer's zone; not to be used.
        2 maximum: Opt<S64>,
        /// The wall clock, or the instant, as if it were UTC.
        3 minimum_utc: Opt<S64>,
        /// The wall clock, or the instant, as if it were UTC.
        4 maximum_utc: Opt<S64>,
        /// The last six digits of the minimum, plus one.
        5 minimum_nanos: Opt<I32>,
        /// The last six digits of the maximum, plus one.
        6 maximum_nanos: Opt<I32>,
    }

    /// Statistics of `binary`.
    BinaryStatistics {
        /// Bytes of all values.
        1 sum: Opt<S64>,
    }

    /// Statistics of lists and maps; Java's are wrong.
    CollectionStatistics {
        /// Elements of the shortest.
        1 min_children: Opt<U64>,
        /// Elements of the longest.
        2 max_children: Opt<U64>,
        /// Elements of all.
        3 total_children: Opt<U64>,
    }

    /// The bounding box of all geometries.
    BoundingBox {
        /// Least x.
        1 xmin: Opt<F64>,
        /// Greatest x.
        2 xmax: Opt<F64>,
        /// Least y.
        3 ymin: Opt<F64>,
        /// Greatest y.
        4 ymax: Opt<F64>,
        /// Least z.
        5 zmin: Opt<F64>,
        /// Greatest z.
        6 zmax: Opt<F64>,
        /// Least m.
        7 mmin: Opt<F64>,
        /// Greatest m.
        8 mmax: Opt<F64>,
    }

    /// Statistics of geometries.
    GeospatialStatistics {
        /// Their bounding box.
        1 bbox: Sub<BoundingBox>,
        /// The WKB codes of their types, sorted.
        2 geospatial_types: Rep<I32>,
    }

    /// Statistics of one column over some rows.
    ColumnStatistics {
        /// Number of values that are not null.
        1 number_of_values: Opt<U64>,
        /// Of integers.
        2 int_statistics: Sub<IntegerStatistics>,
        /// Of floats.
        3 double_statistics: Sub<DoubleStatistics>,
        /// Of text.
        4 string_statistics: Sub<StringStatistics>,
        /// Of booleans.
        5 bucket_statistics: Sub<BucketStatistics>,
        /// Of decimals.
        6 decimal_statistics: Sub<DecimalStatistics>,
        /// Of dates.
        7 date_statistics: Sub<DateStatistics>,
        /// Of bytes.
        8 binary_statistics: Sub<BinaryStatistics>,
        /// Of timestamps.
        9 timestamp_statistics: Sub<TimestampStatistics>,
        /// Whether there are nulls; unknown if absent.
        10 has_null: Opt<Flag>,
        /// Bytes of the column's data streams (stripe and file level).
        11 bytes_on_disk: Opt<U64>,
        /// Of lists and maps.
        12 collection_statistics: Sub<CollectionStatistics>,
        /// Of geometries.
        13 geospatial_statistics: Sub<GeospatialStatistics>,
    }

    /// One row group of one column.
    RowIndexEntry {
        /// The positions of all its streams, concatenated.
        1 positions: Packed<U64>,
        /// Statistics of its values.
        2 statistics: Sub<ColumnStatistics>,
    }

    /// The index of one column in one stripe.
    RowIndex {
        /// One per row group.
        1 entry: Subs<RowIndexEntry>,
    }

    /// The filter of one row group.
    BloomFilter {
        /// Number of probes per value.
        1 num_hash_functions: Opt<U32>,
        /// The bits in the older form.
        2 bitset: Rep<Word>,
        /// The bits in the newer form: the same words, little endian.
        3 utf8bitset: Opt<Blob>,
    }

    /// The filters of one column in one stripe.
    BloomFilterIndex {
        /// One per row group.
        1 bloom_filter: Subs<BloomFilter>,
    }
}
