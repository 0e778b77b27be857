//! The Avro container as manifests and manifest lists use it ("Appendix A: Avro"; Avro 1.12, "Object Container Files").
//!
//! Header, blocks, codecs and the writer's schema are general. There is no value tree: a reader of records compiles the
//! writer's schema once into steps, and walks each decompressed block with a [`Cursor`] straight into columns
//! (`manifest::entries`), passing over unwanted values with [`Skip`].

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
