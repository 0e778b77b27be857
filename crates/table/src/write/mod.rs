//! Writes Arrow batches to data files with metrics ("Data Files", "Appendix A", "Sorting").
//!
//! [`TableWriter`] is the entry point, [`BackgroundWriter`] the same on its own thread. [`intake`] prepares rows
//! while earlier ones are encoded: [`conform`] converts them to the table's schema, [`route`](input::route) finds the partition of
//! each row, [`sort`] sorts, with temporary files if the rows of a partition exceed the memory limit, and the rows go
//! to [files](crate::file) of the table's format. [`deletes`] writes delete files.

mod background;
pub mod curve;
pub mod deletes;
mod describe;
mod input;
mod lineage;
pub mod location;
pub mod options;
pub mod plan;
pub mod provider;
mod roll;
mod runs;
pub mod sort;
pub mod wire;
mod writer;

pub use background::BackgroundWriter;
pub use conform::Matching;
pub(crate) use input::partitions;
pub use input::text::check_text;
pub use input::{conform, intake, widening};
pub use lineage::with_lineage;
pub use options::{WriteOptions, check_writable, key_length, table_keys};
pub use plan::WritePlan;
pub use writer::{Distribution, TableWriter, WriterConfig};
