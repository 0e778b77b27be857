//! Conversions of arguments that several modules need: integers, JSON, types.

pub(crate) mod integer;
pub(crate) mod json;
pub(crate) mod python_class;
pub(crate) mod type_input;
