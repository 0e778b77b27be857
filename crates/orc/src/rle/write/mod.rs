//! Run-length encoders, the counterparts of the readers in the parent module.
//!
//! An encoder takes slices and appends whole runs to a buffer. It keeps values that do not form a complete run yet.
//! Their number is part of a row-index position: a reader seeks to the end that the buffer had at that moment, and
//! skips this many values. The choice of runs is exactly that of orc-core, so the same values give the same bytes.

mod boolean;
mod byte;
mod int1;
mod int2;
mod pack;
mod plan;

pub use boolean::BooleanWriter;
pub use byte::ByteWriter;
pub(crate) use int1::IntWriter1;
pub(crate) use int2::IntWriter2;
pub use plan::Packing;

/// A writer of integers in either version.
#[derive(Debug)]
pub enum IntWriter {
    /// Version 1 (encodings DIRECT and DICTIONARY).
    V1(IntWriter1),
    /// Version 2 (encodings DIRECT_V2 and DICTIONARY_V2).
    V2(Box<IntWriter2>),
}

impl IntWriter {
    /// A writer of version 1.
    pub fn v1(signed: bool) -> Self {
        Self::V1(IntWriter1::new(signed))
    }

    /// A writer of version 2.
    pub fn v2(signed: bool, packing: Packing) -> Self {
        Self::V2(Box::new(IntWriter2::new(signed, packing)))
    }

    /// Adds values, and appends the complete runs to `out`.
    pub fn write(&mut self, values: &[i64], out: &mut Vec<u8>) {
        match self {
            Self::V1(writer) => writer.write(values, out),
            Self::V2(writer) => writer.write(values, out),
        }
    }

    /// The number of values added but not yet appended.
    pub fn pending(&self) -> usize {
        match self {
            Self::V1(writer) => writer.pending(),
            Self::V2(writer) => writer.pending(),
        }
    }

    /// Appends the pending values, and resets the writer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::V1(writer) => writer.finish(out),
            Self::V2(writer) => writer.finish(out),
        }
    }
}
