//! Avro data files ("Appendix A: Avro").
//!
//! The container, the writer's schema and the codecs are those of manifests (`icefield_format::avro`). Here a decoder is compiled from
//! the writer's schema and the wanted leaves ([`decode`]); it fills the columns of a batch row by row, without an object a row.

mod batches;
mod blocks;
mod column;
mod decode;
pub mod read;
mod schema;
