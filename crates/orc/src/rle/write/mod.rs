//! Run-length encoders, the counterparts of the readers beside them.
//!
//! An encoder takes slices and appends whole runs to a plain buffer; what is not yet a run it keeps. How many values
//! that are is part of a row-index position: a reader goes to the buffer's end of that moment and passes over them.
//! The choice of runs is orc-core's, value for value, so that the same values give the same bytes.

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

/// Integers of either version.
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

    /// Takes values, and appends the complete runs.
    pub fn write(&mut self, values: &[i64], out: &mut Vec<u8>) {
        match self {
            Self::V1(writer) => writer.write(values, out),
            Self::V2(writer) => writer.write(values, out),
        }
    }

    /// Values taken and not yet appended.
    pub fn pending(&self) -> usize {
        match self {
            Self::V1(writer) => writer.pending(),
            Self::V2(writer) => writer.pending(),
        }
    }

    /// Appends what is pending, and resets the writer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::V1(writer) => writer.finish(out),
            Self::V2(writer) => writer.finish(out),
        }
    }
}
