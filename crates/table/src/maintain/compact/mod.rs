//! Compaction: rewrites data files of the wrong size, or with many deletes, to files of the right size, in the order
//! that they had, sorted, or along a curve. It is Java's `rewrite_data_files`, with the same files chosen.

mod groups;
mod outcome;
mod plan;
mod preview;
mod progress;
mod request;
mod run;
mod settings;
mod strategy;
mod task;

pub use outcome::Compacted;
pub use plan::CompactionPlan;
pub use progress::{GroupDone, Progress};
pub use request::Compaction;
pub use run::compact;
pub use settings::check_compaction;
pub use task::GroupTask;
