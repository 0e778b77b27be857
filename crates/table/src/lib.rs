//! What one does with an Iceberg table: bytes from storage, planning, reading, writing, committing.
//!
//! Everything here is synchronous to its caller: the network is driven by one runtime and processor work by one pool,
//! both of this process alone and both started at first use (see [`runtime`]).

pub mod arrow;
pub mod commit;
pub mod error;
pub mod file;
pub mod inspect;
pub mod interrupt;
mod limits;
pub mod maintain;
mod memory;
pub mod operation;
pub mod orc_pool;
pub mod plan;
pub mod read;
pub mod runtime;
pub mod snapshot;
pub mod storage;
pub mod stream;
mod table;
pub mod transform;
pub mod write;

pub use error::{Error, Result};
pub use limits::{limits, orc_limits};
pub use table::{Appended, Table};
