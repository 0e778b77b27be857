//! Parquet files ("Appendix A: Parquet").

pub mod decimals;
mod flat;
mod guard;
mod metrics;
mod pages;
mod prune;
pub mod read;
pub mod variant;
mod write;

pub(in crate::file) use write::late::create;
pub use write::options::ParquetOptions;
pub use write::writer::{ParquetLayout, ParquetWriter};
