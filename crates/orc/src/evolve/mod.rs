//! Reads a file with another schema, with the rules of orc-core's `SchemaEvolution`.
//!
//! Fields are matched by name, or those of the root by position. A column of another type is converted
//! (`convert.rs`); one that the file lacks is null.

mod apply;
mod convert;
mod evolution;
mod number;
mod pairs;
mod text;
mod time;
mod value;

pub use evolution::{Evolution, EvolutionOptions, EvolvedColumns};
pub use value::Overflow;
