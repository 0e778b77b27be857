//! Converts between Iceberg and Arrow schemas ("Schemas and Data Types"; ids as Parquet's `field_id`).
//!
//! `docs/types.md` has the whole mapping in one table; a test checks this module against it.

mod file_ids;
mod from_arrow;
mod named;
mod to_arrow;

pub use file_ids::{field_id, has_ids, with_ids_only, with_mapped_ids, with_positional_ids};
pub use from_arrow::{FromArrow, Nanoseconds, UnsignedLongs};
pub use named::named;
pub use to_arrow::{StringLayout, ToArrow};

/// Metadata key for the id of an Arrow field, the same that Parquet libraries use.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// Metadata key for the comment of an Arrow field.
pub const DOC_KEY: &str = "doc";

/// Metadata key for the name of an Arrow extension type.
const EXTENSION_NAME_KEY: &str = arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;

/// Metadata key for the parameters of an Arrow extension type.
const EXTENSION_METADATA_KEY: &str = arrow_schema::extension::EXTENSION_TYPE_METADATA_KEY;

/// Name of the extension type of booleans of one byte each; every value but 0 is true.
pub const BOOL8: &str = "arrow.bool8";

/// For extension types whose meaning would be lost if only the storage type were used: what the values mean, and what
/// to convert them to. pandas counts periods from 1970, and an opaque type comes from a system that Arrow does not
/// know.
pub fn meaning_lost(extension: &str) -> Option<&'static str> {
    match extension {
        "pandas.period" => {
            Some("stores ordinals of periods: convert the column with .dt.to_timestamp() or .astype(str)")
        }
        "pandas.interval" => Some("stores intervals: write their .left and .right as two columns, or .astype(str)"),
        "arrow.opaque" => Some("is of another system: cast the column to a type of Arrow there"),
        _ => None,
    }
}

/// Names of the extension types that have a counterpart here.
mod extension {
    pub(super) const UUID: &str = "arrow.uuid";
    pub(super) const VARIANT: &str = "arrow.parquet.variant";
    pub(super) const WKB: &str = "geoarrow.wkb";
}

#[cfg(test)]
mod tests;
