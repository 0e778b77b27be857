//! Types, fields and schemas.

pub(crate) mod schema;
pub(crate) mod type_classes;
pub(crate) mod types;
