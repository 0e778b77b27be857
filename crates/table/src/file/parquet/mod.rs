//! Parquet files ("Appendix A: Parquet").

mod batches;
mod booleans;
mod bounds;
mod byte_arrays;
mod columns;
pub mod decimals;
mod dictionary;
mod distinct;
mod flat;
mod footers;
mod guard;
mod hybrid;
mod indexed;
mod int96;
mod loaded;
mod metrics;
mod numbers;
mod options;
mod page_index;
mod paged;
mod pages;
pub mod read;
mod row_groups;
mod runs;
mod schema;
mod selection;
mod shredded;
mod slices;
mod tail;
mod uuids;
pub mod variant;
pub mod variant_value;
mod whole_chunk;
mod write;

pub use options::ParquetOptions;
pub use write::{ParquetLayout, ParquetWriter};
