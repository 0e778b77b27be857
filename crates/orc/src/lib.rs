//! The ORC file format, read and written as [Arrow](https://arrow.apache.org) record batches.
//!
//! A [`Writer`] takes batches and writes a file to anything that implements [`Sink`], such as a `Vec<u8>` or a
//! [`std::io::Write`]. A [`Reader`] reads from any [`Source`] of byte ranges, such as a [`Bytes`](bytes::Bytes) or a
//! [`std::fs::File`]; what it reads is chosen by [`ReadOptions`]: some columns, some rows, rows that match a filter.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! use icefield_orc::{Projection, ReadOptions, Reader, Writer, WriterOptions};
//!
//! let id: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
//! let name: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("c")]));
//! let batch = RecordBatch::try_from_iter_with_nullable([("id", id, false), ("name", name, true)])?;
//!
//! let mut writer = Writer::try_new(Vec::new(), &batch.schema(), WriterOptions::default())?;
//! writer.write(&batch)?;
//! let (file, written) = writer.finish()?;
//! assert_eq!((written.rows, written.length), (3, file.len() as u64));
//!
//! let reader = Reader::open(bytes::Bytes::from(file))?;
//! assert_eq!(reader.metadata().schema.to_string(), "struct<id:bigint,name:string>");
//! let projection = Projection::names(&reader.metadata().schema, ["name"])?;
//! let options = ReadOptions { projection, ..ReadOptions::default() };
//! let read = reader.batches(options)?.collect::<icefield_orc::Result<Vec<_>>>()?;
//! assert_eq!(read, [batch.project(&[1])?]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate opens no files by name and starts no threads. The caller provides sources, sinks and a [`Pool`] of
//! threads; an error of any of them passes through as [`Error::External`]. Below the readers, [`TailDecoder`] and
//! [`StripeLoader`] do no I/O at all: they return the byte ranges that they need, for callers that do their own I/O. No
//! file, however damaged, makes a reader panic or allocate beyond [`Limits`].
//!
//! The crate follows the draft of version 2 of the ORC specification and, where this is silent or wrong, the files that
//! orc-core (Java) and the C++ library write.

#![deny(missing_docs, unreachable_pub, clippy::indexing_slicing)]

mod calendar;
mod column;
mod compress;
mod encrypt;
mod error;
mod evolve;
pub mod inspect;
mod limits;
mod mask;
mod origin;
mod pool;
mod predicate;
pub mod proto;
mod read;
mod rle;
mod source;
mod stream;
mod stripe;
mod tail;
mod types;
mod utf8;
mod write;
mod zone;

pub use encrypt::{CallbackKeys, CallbackMaker, KeyMaker, KeyName, KeyProvider, MemoryKeys, NewKey};
pub use error::{Corrupt, Error, Result};
pub use evolve::{Evolution, EvolutionOptions, EvolvedColumns, Overflow};
pub use limits::Limits;
pub use mask::Mask;
pub use origin::{WriterId, WriterVersion};
pub use pool::Pool;
pub use predicate::{Literal, Predicate, Test};
pub use read::{
    AsyncReader, AsyncSource, Batches, ByColumns, CalendarRule, ColumnRef, Piece, Projection, ReadOptions, Reader,
    RowFilter, StripeLoader, StripeReader,
};
pub use rle::Packing;
pub use source::{Fetched, Source, Step};
pub use stripe::{StreamPlace, StripeDirectory};
pub use tail::{FileMetadata, FileVersion, TailDecoder};
pub use types::{ArrowOptions, Kind, OutOfRange, StringForm, TYPE_KEY, TimeUnit, TypeDescription};
pub use write::{
    BloomVersion, EncryptionOptions, LastSecond, Merger, Sink, Writer, WriterOptions, WrittenFile, WrittenStripe,
};

/// Decoders and encoders for the tests and fuzz targets of this crate. They are not part of its interface.
#[doc(hidden)]
pub mod testing {
    pub use crate::compress::{ChunkHeader, Compressor, Decompressor, HEADER, MAX_BLOCK};
    pub use crate::predicate::{BloomBuilder, BloomView, hash_bytes, hash_long, hash_of};
    pub use crate::rle::{
        BooleanReader, BooleanWriter, ByteReader, ByteWriter, IntReader, IntReader1, IntReader2, IntWriter, Run1, Run2,
        nanos_to_secondary, read_varint64, read_varint128, unzigzag, unzigzag128, write_varint64, write_varint128,
        zigzag, zigzag128,
    };
    pub use crate::stream::{ByteStream, Context, Part, Positions};
    pub use crate::stripe::sections;
    pub use crate::zone::Zone;
}
