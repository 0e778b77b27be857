//! What untrusted input may ask for, at the most.

/// Bounds that every decoder of this crate checks before it allocates, recurses or loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one metadata JSON document after decompression.
    pub metadata_json_bytes: usize,
    /// Bytes of one Avro block after decompression.
    pub block_bytes: usize,
    /// Decompressed bytes of one block for each compressed byte.
    pub block_ratio: usize,
    /// Bytes of all blocks of one Avro file after decompression. Below 2^31, so that 32-bit Arrow offsets reach.
    pub avro_bytes: usize,
    /// Bytes of the values that one Avro file becomes, roughly: small records of few bytes become many columns. What is
    /// read last may go beyond it by eight times [`Limits::block_bytes`].
    pub decoded_bytes: usize,
    /// Depth of JSON values, Avro schemas and expressions.
    pub depth: usize,
    /// Depth of nested types. Each struct takes three levels of JSON, so that this is what a JSON parser's 128 leave room
    /// for: a table is not created that could not be loaded again.
    pub type_depth: usize,
    /// Fields of one schema, nested ones included.
    pub fields: usize,
    /// Bytes of one Puffin blob after decompression.
    pub blob_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            metadata_json_bytes: 1 << 28,
            block_bytes: 1 << 28,
            block_ratio: 1 << 12,
            avro_bytes: 1 << 30,
            decoded_bytes: 1 << 31,
            depth: 128,
            type_depth: 40,
            fields: 100_000,
            blob_bytes: 1 << 31,
        }
    }
}
