//! Avro files as manifests and manifest lists use them ("Appendix A: Avro"; Avro 1.12, "Object Container Files").
//!
//! Header, blocks, codecs and the writer's schema are general. There is no tree of values: a reader compiles the
//! writer's schema to steps once, and then decodes each block with a [`Cursor`] directly to columns
//! (`manifest::entries`), skipping other values with [`Skip`].

pub mod codec;
pub mod container;
pub mod cursor;
pub mod decimal;
pub mod encode;
pub mod from_type;
pub mod name;
pub mod schema;
pub mod shared;
pub mod skip;

pub use codec::{Codec, Compression, Decompressor};
pub use container::{Block, Container};
pub use cursor::{Cursor, Fault};
pub use encode::{ContainerWriter, Encoder};
pub use schema::{ArraySchema, Logical, MapSchema, RecordField, RecordSchema, Schema};
pub use shared::parse_shared;
pub use skip::Skip;
