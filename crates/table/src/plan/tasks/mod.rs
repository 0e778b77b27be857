//! Tasks of a plan: files cut into parts, and small parts packed together.

mod cut;
pub mod part;
mod read_task;
pub mod split;

pub use read_task::ReadTask;
