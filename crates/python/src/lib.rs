//! `icefield._core`: the border between Python and the crates beneath. Arguments in, Arrow or small values out, errors
//! mapped; no logic.
//!
//! Each room of the public API is one file here, beside one of the same name in `python/icefield`, and one line in
//! [`ROOMS`]. The rules of a room: classes are `frozen`; what takes longer than microseconds runs inside [`entry::detached`];
//! columns cross as the classes of [`capsule`], never as lists; errors cross by `?` ([`errors`]).

mod callback;
mod capsule;
mod catalog;
mod entry;
mod errors;
mod evolution;
mod expressions;
mod inspect;
mod integer;
mod json;
mod logging;
mod manifests;
mod metadata;
mod name_mapping;
mod orc;
mod orc_write;
mod partitioning;
mod puffin;
mod scan;
mod schema;
mod sorting;
mod storage;
mod table;
mod transaction;
mod transforms;
mod type_input;
mod types;
mod values;
mod write;

use pyo3::prelude::*;

/// Columns are large and short-lived: the C library's allocator gives their pages back to the system at once, and most of
/// the time of a kernel that only copies would then be the system's, clearing pages for it again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What adds a room's names to the module.
type Room = fn(&Bound<'_, PyModule>) -> PyResult<()>;

/// Every room of the border.
const ROOMS: &[Room] = &[
    entry::register, // one a line
    logging::register,
    capsule::register,
    types::register,
    schema::register,
    name_mapping::register,
    values::register,
    transforms::register,
    expressions::register,
    manifests::register,
    puffin::register,
    storage::register,
    table::register,
    transaction::register,
    partitioning::register,
    sorting::register,
    metadata::register,
    evolution::register,
    scan::register,
    inspect::register,
    write::register,
    orc::register,
    orc_write::register,
];

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    ROOMS.iter().try_for_each(|register| register(module))
}
