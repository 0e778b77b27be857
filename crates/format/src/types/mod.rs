//! Types and schemas ("Schemas and Data Types"; JSON forms in Appendix C).

mod index;
mod json;
mod nested;
mod primitive;
mod schema;

pub use nested::{Field, ListType, MapType, StructType, Type};
pub use primitive::{DEFAULT_CRS, EdgeAlgorithm, MAX_DECIMAL_PRECISION, PrimitiveType};
pub use schema::Schema;
