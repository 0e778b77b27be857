//! Types and schemas ("Schemas and Data Types"; JSON forms in Appendix C).

pub mod arrow;
mod compatibility;
pub(crate) mod ids;
mod index;
mod json;
mod name_mapping;
pub(crate) mod nested;
pub(crate) mod promotion;
pub mod reserved;
mod schema;
mod select;
mod text;
pub mod value_json;

pub use crate::primitive::{DEFAULT_CRS, EdgeAlgorithm, MAX_DECIMAL_PRECISION, PrimitiveType};
pub use compatibility::Checks;
pub use name_mapping::{MappedField, NAME_MAPPING_PROPERTY, NameMapping};
pub use nested::{Field, ListType, MapType, StructType, Type};
pub use promotion::{is_promotion_allowed, promote};
pub use schema::Schema;
pub use text::parse_shape;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
