//! The ORC file format, read and written to and from Arrow.
//!
//! The core knows no files and no threads: decoders take bytes and give columns. Authority is the ORC draft of version 2
//! and, where it is silent or wrong, the files that orc-core and the C++ library write.

pub mod compress;
pub mod error;
pub mod limits;
pub mod proto;
pub mod types;

pub use error::{Corrupt, Error, Result};
pub use limits::Limits;
pub use types::{ArrowOptions, Kind, OutOfRange, StringForm, TimeUnit, TypeDescription};
