//! The ORC file format, read and written to and from Arrow.
//!
//! The core knows no files and no threads: decoders take bytes and give columns. Authority is the ORC draft of version 2
//! and, where it is silent or wrong, the files that orc-core and the C++ library write.

mod calendar;
mod column;
pub mod compress;
pub mod encrypt;
pub mod error;
pub mod inspect;
pub mod limits;
pub mod mask;
mod origin;
mod pool;
pub mod predicate;
pub mod proto;
pub mod read;
pub mod rle;
pub mod source;
pub mod stream;
pub mod stripe;
pub mod tail;
pub mod types;
mod utf8;
pub mod write;
pub mod zone;

pub use encrypt::{CallbackKeys, CallbackMaker, KeyMaker, KeyName, KeyProvider, MemoryKeys, NewKey};
pub use error::{Corrupt, Error, Result};
pub use limits::Limits;
pub use mask::Mask;
pub use origin::{WriterId, WriterVersion};
pub use pool::Pool;
pub use predicate::{Literal, Predicate, Test};
pub use read::{
    AsyncReader, AsyncSource, Batches, ByColumns, CalendarRule, Piece, Projection, ReadOptions, Reader, RowFilter,
    StripeLoader, StripeReader,
};
pub use source::{Source, Step};
pub use tail::{FileMetadata, FileVersion, TailDecoder};
pub use types::{ArrowOptions, Kind, OutOfRange, StringForm, TimeUnit, TypeDescription};
pub use write::{
    BloomVersion, EncryptionOptions, LastSecond, Merger, Sink, Writer, WriterOptions, WrittenFile, WrittenStripe,
};
