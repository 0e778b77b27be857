//! Avro data files ("Appendix A: Avro").
//!
//! The container, schemas and codecs are shared with manifests (`icefield_format::avro`). A decoder is compiled from
//! the writer's schema and the selected leaves (`decode`); it fills the columns of a batch row by row, without an
//! object per row.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod batches;
mod blocks;
mod column;
mod compile;
mod decode;
mod options;
mod pieces;
pub mod read;
#[allow(clippy::indexing_slicing, reason = "it writes: rows are those of the batch at hand")]
mod rows;
mod schema;
mod write;

pub use options::AvroOptions;
pub use write::{AvroLayout, AvroWriter};
