//! The classes of `icefield_orc`: ORC files without a table.

pub(crate) mod read;
pub(crate) mod write;
