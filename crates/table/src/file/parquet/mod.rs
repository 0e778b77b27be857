//! Parquet files ("Appendix A: Parquet").

mod dictionary;
mod metrics;
mod options;
pub mod read;
mod row_groups;
mod schema;
mod selection;
mod shredded;
mod uuids;
pub mod variant;
mod write;

pub use options::ParquetOptions;
pub use write::{ParquetLayout, ParquetWriter};
