//! ORC files ("Appendix A: ORC").

pub mod ahead;
mod floats;
mod metrics;
mod options;
pub mod predicate;
pub mod read;
mod schema;
mod write;

pub use options::OrcOptions;
pub use write::{OrcLayout, OrcWriter};
