//! Parquet files ("Appendix A: Parquet").

mod bounds;
mod dictionary;
mod distinct;
mod footers;
mod guard;
mod indexed;
mod loaded;
mod metrics;
mod options;
mod page_index;
mod paged;
mod pages;
pub mod read;
mod row_groups;
mod schema;
mod selection;
mod shredded;
mod slices;
mod uuids;
pub mod variant;
pub mod variant_value;
mod write;

pub use options::ParquetOptions;
pub use write::{ParquetLayout, ParquetWriter};
