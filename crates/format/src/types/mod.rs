//! Types and schemas ("Schemas and Data Types"; JSON forms in Appendix C).

pub mod arrow;
mod compatibility;
mod ids;
mod index;
mod json;
mod nested;
mod primitive;
mod promotion;
mod schema;
mod select;

pub use compatibility::Checks;
pub use nested::{Field, ListType, MapType, StructType, Type};
pub use primitive::{DEFAULT_CRS, EdgeAlgorithm, MAX_DECIMAL_PRECISION, PrimitiveType};
pub use promotion::is_promotion_allowed;
pub use schema::Schema;
