//! What untrusted input may ask for, at the most.

/// Bounds that every decoder of this crate checks before it allocates, recurses or loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one compression chunk after decompression, whatever the postscript says (the format ends at 2^23).
    pub chunk_bytes: usize,
    /// Bytes of one metadata section (footer, stripe statistics, stripe footer, index stream) after decompression.
    pub metadata_bytes: usize,
    /// Depth of nested types.
    pub depth: usize,
    /// Columns of one file, nested ones included.
    pub columns: usize,
    /// Values of one nested column (elements of lists, entries of maps) in one batch.
    pub batch_values: usize,
    /// Entries, and bytes, of one dictionary.
    pub dictionary_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chunk_bytes: 1 << 23,
            metadata_bytes: 1 << 30,
            depth: 200,
            columns: 1 << 20,
            batch_values: 1 << 28,
            dictionary_bytes: 1 << 31,
        }
    }
}
