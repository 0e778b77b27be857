//! Partition transforms ("Partition Transforms"; hashes in Appendix B).

use std::sync::Arc;

/// A transform of a partition or sort field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Transform {
    /// The value itself.
    Identity,
    /// murmur3 hash, sign bit cleared, modulo the number of buckets.
    Bucket(u32),
    /// Value cut to a width.
    Truncate(u32),
    /// Years from 1970.
    Year,
    /// Months from 1970-01.
    Month,
    /// Days from 1970-01-01.
    Day,
    /// Hours from 1970-01-01T00.
    Hour,
    /// Always null.
    Void,
    /// A transform of a later specification: kept as written; filters never use it, and writing through it is refused.
    Unknown(Arc<str>),
}
