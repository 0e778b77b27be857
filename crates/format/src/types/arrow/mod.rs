//! Iceberg schemas and Arrow schemas ("Schemas and Data Types"; ids as Parquet's `field_id`).
//!
//! The whole mapping stands in one table in `docs/types.md`; a test holds this module to it.

mod file_ids;
mod from_arrow;
mod named;
mod to_arrow;

pub use file_ids::{field_id, has_ids, with_ids_only, with_mapped_ids, with_positional_ids};
pub use from_arrow::{FromArrow, Nanoseconds, UnsignedLongs};
pub use named::named;
pub use to_arrow::{StringLayout, ToArrow};

/// Key of a field id in the metadata of an Arrow field: the one under which Parquet libraries keep theirs.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// Key of a comment in the metadata of an Arrow field.
pub const DOC_KEY: &str = "doc";

/// Key of the name of an extension type in the metadata of an Arrow field.
const EXTENSION_NAME_KEY: &str = arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;

/// Key of the parameters of an extension type in the metadata of an Arrow field.
const EXTENSION_METADATA_KEY: &str = arrow_schema::extension::EXTENSION_TYPE_METADATA_KEY;

/// Name of the extension type of booleans that take a byte each; all but 0 is true.
pub const BOOL8: &str = "arrow.bool8";

/// What the values of an extension type mean, and what to make of them, where its storage alone would mean something else: pandas
/// counts periods from 1970, and an opaque type is of a system that Arrow knows nothing of.
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

/// Extension types by which an Arrow type means more than its bytes.
mod extension {
    pub(super) const UUID: &str = "arrow.uuid";
    pub(super) const VARIANT: &str = "arrow.parquet.variant";
    pub(super) const WKB: &str = "geoarrow.wkb";
}

#[cfg(test)]
mod tests;
