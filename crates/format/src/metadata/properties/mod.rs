//! Table properties ("Table Metadata", `properties`): names, types, defaults, and how values are parsed.
//!
//! All properties are declared here, with the names and defaults of the Java library. Unknown properties are never an
//! error. A known property with an unreadable value is an error when it is used, always of the form "table property
//! 'x': expected …, got 'y'".

mod check;
mod list;
mod metrics_mode;
mod property;

pub use check::{Flaw, check_set, flaw, nearest};
pub use list::*;
pub use metrics_mode::MetricsMode;
pub use property::{AllowedValues, ColumnProperty, Effect, KnownProperty, Property};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Result;
    use crate::metadata::StringMap;

    fn map<const N: usize>(properties: [(&str, &str); N]) -> StringMap {
        properties.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn values_are_read_by_kind() {
        let none = StringMap::new();
        let some = map([
            (COMMIT_NUM_RETRIES.name, " 7 "),
            (GC_ENABLED.name, "FALSE"),
            (ORC_BLOOM_FILTER_FPP.name, "0.5"),
            (METADATA_COMPRESSION.name, "GZIP"),
            (PARQUET_COMPRESSION_LEVEL.name, "-3"),
            (WRITE_DATA_LOCATION.name, "/d"),
            (DEFAULT_WRITE_METRICS_MODE.name, "Counts"),
        ]);
        assert_eq!([&none, &some].map(|map| COMMIT_NUM_RETRIES.read(map)), [Ok(4), Ok(7)]);
        assert_eq!([&none, &some].map(|map| GC_ENABLED.read(map)), [true, false]);
        assert_eq!([&none, &some].map(|map| ORC_BLOOM_FILTER_FPP.read(map)), [Ok(0.05), Ok(0.5)]);
        assert_eq!([&none, &some].map(|map| METADATA_COMPRESSION.read(map)), ["none", "GZIP"]);
        assert_eq!([&none, &some].map(|map| METADATA_COMPRESSION.read_choice(map)), [Ok("none"), Ok("gzip")]);
        assert_eq!([&none, &some].map(|map| PARQUET_COMPRESSION_LEVEL.read(map)), [Ok(None), Ok(Some(-3))]);
        assert_eq!([&none, &some].map(|map| WRITE_DATA_LOCATION.read_valid(map)), [Ok(None), Ok(Some("/d"))]);
        let modes = [&none, &some].map(|map| DEFAULT_WRITE_METRICS_MODE.read(map));
        assert_eq!(modes, [None, Some(MetricsMode::Counts)]);
        assert_eq!(PARQUET_COMPRESSION_LEVEL.read(&map([(PARQUET_COMPRESSION_LEVEL.name, "null")])), Ok(None));
    }

    #[test]
    fn errors_have_one_form() {
        let wrong = map([
            (SPLIT_SIZE.name, "many"),
            (ORC_STRIPE_SIZE_BYTES.name, "0"),
            (ORC_BLOOM_FILTER_FPP.name, "1"),
            (PARQUET_PAGE_VERSION.name, "v3"),
            (PARQUET_COMPRESSION_LEVEL.name, "x"),
            (WRITE_DATA_LOCATION.name, ""),
            ("write.parquet.bloom-filter-fpp.column.a", "2"),
            ("write.parquet.bloom-filter-ndv.column.a", "0"),
        ]);
        for (error, name, expected, got) in [
            (error(SPLIT_SIZE.read(&wrong)), SPLIT_SIZE.name, "an integer of at least 1", "many"),
            (error(SPLIT_SIZE.read_size(&wrong)), SPLIT_SIZE.name, "an integer of at least 1", "many"),
            (
                error(ORC_STRIPE_SIZE_BYTES.read_size(&wrong)),
                ORC_STRIPE_SIZE_BYTES.name,
                "an integer of at least 1",
                "0",
            ),
            (error(ORC_BLOOM_FILTER_FPP.read(&wrong)), ORC_BLOOM_FILTER_FPP.name, "a number between 0 and 1", "1"),
            (error(PARQUET_PAGE_VERSION.read_choice(&wrong)), PARQUET_PAGE_VERSION.name, "v1 or v2", "v3"),
            (
                error(PARQUET_COMPRESSION_LEVEL.read(&wrong)),
                PARQUET_COMPRESSION_LEVEL.name,
                "an integer, or empty for the codec's default",
                "x",
            ),
            (error(WRITE_DATA_LOCATION.read_valid(&wrong)), WRITE_DATA_LOCATION.name, "a non-empty string", ""),
            (
                error(PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX.of("a", &wrong)),
                "write.parquet.bloom-filter-fpp.column.a",
                "a number between 0 and 1",
                "2",
            ),
            (
                error(PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX.of("a", &wrong)),
                "write.parquet.bloom-filter-ndv.column.a",
                "an integer of at least 1",
                "0",
            ),
        ] {
            assert_eq!(error, format!("table property '{name}': expected {expected}, got '{got}'"));
        }
        // Java accepts any integer; the code that uses the value checks it.
        assert_eq!(ORC_STRIPE_SIZE_BYTES.read(&wrong), Ok(0));
    }

    #[test]
    fn properties_of_columns_are_found_by_prefix() {
        let properties = map([
            ("write.parquet.bloom-filter-enabled.column.a", "True"),
            ("write.parquet.bloom-filter-enabled.column.b.c", "no"),
            ("write.parquet.bloom-filter-fpp.column.a", "0.2"),
            ("write.parquet.bloom-filter-ndv.column.a", "9"),
        ]);
        let enabled: Vec<_> = PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX.flags(&properties).collect();
        assert_eq!(enabled, [("a", true), ("b.c", false)]);
        assert_eq!(
            ["a", "z"].map(|column| PARQUET_BLOOM_FILTER_COLUMN_FPP_PREFIX.of(column, &properties)),
            [Ok(0.2), Ok(0.01)]
        );
        assert_eq!(
            ["a", "z"].map(|column| PARQUET_BLOOM_FILTER_COLUMN_NDV_PREFIX.of(column, &properties)),
            [Ok(Some(9)), Ok(None)]
        );
    }
}
