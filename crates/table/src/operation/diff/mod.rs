//! The difference of two sets of rows: added, removed and changed ones, in bounded memory.
//!
//! [`columns`] finds the columns that both sides have. Both sides are [divided](run) by the hash of their keys into parts
//! in a temporary file, and the parts are [compared](compare) one after the other. [`scans`] leaves out the files that two
//! scans of one table have in common.

mod columns;
mod compare;
mod counts;
mod run;
mod scans;

pub use counts::DiffCounts;
pub use run::{Diff, DiffOptions, Side, diff};
pub use scans::without_common_files;
