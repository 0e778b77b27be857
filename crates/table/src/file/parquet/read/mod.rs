//! Reads Parquet data files: which row groups and rows to decode, and how to assemble batches from columns.

mod arrow_types;
mod batches;
mod bound;
mod columns;
mod decoders;
#[cfg(test)]
mod drawn;
mod encrypted;
mod footers;
mod int96;
mod late;
mod reader;
mod selection;
mod tail;

pub use reader::ParquetFile;
