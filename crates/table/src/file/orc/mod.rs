//! ORC files ("Appendix A: ORC").

pub mod batches;
mod floats;
mod metrics;
mod options;
pub mod predicate;
pub mod read;
mod schema;
pub mod source;
mod write;

pub use options::OrcOptions;
pub use write::{OrcLayout, OrcWriter};
