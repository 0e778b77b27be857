//! `icefield._core`: the Python binding of the Rust crates. It converts arguments, results (Arrow or small values) and
//! errors, and has no logic of its own.
//!
//! There is a folder for each of the crates ([`mod@format`], [`table`], [`orc`]), one for the conversion of
//! [`arguments`], and one for Arrow ([`capsule`]). A file with classes or functions has one line in [`ROOMS`]. The
//! rules: classes are `frozen`; work that takes longer than microseconds runs inside [`entry::detached`]; columns are
//! passed as the classes of [`capsule`], never as lists; `?` converts errors ([`errors`]).

#![deny(missing_docs, unreachable_pub)]

mod allocator;
mod arguments;
mod callback;
mod capsule;
mod clock;
mod entry;
mod errors;
mod format;
mod held;
mod logging;
mod orc;
mod storage;
mod table;

use pyo3::prelude::*;

/// Adds the names of one file to the module.
type Room = fn(&Bound<'_, PyModule>) -> PyResult<()>;

/// All files that add names.
const ROOMS: &[Room] = &[
    entry::register, // one per line
    logging::register,
    clock::register,
    capsule::register,
    format::schemas::types::register,
    format::schemas::type_classes::register,
    format::schemas::schema::register,
    format::name_mapping::register,
    format::values::register,
    format::variant::register,
    format::transforms::register,
    format::expr::expression_classes::register,
    format::literals::register,
    format::expr::bound_classes::register,
    format::expr::expressions::register,
    format::expr::predicates::register,
    format::files::manifests::register,
    format::files::manifest_file::register,
    format::files::puffin::register,
    format::files::data_file::register,
    storage::register,
    table::state::register,
    table::changes::transaction::register,
    format::partitioning::register,
    format::sorting::register,
    format::metadata::register,
    format::snapshots::register,
    table::changes::evolution::register,
    table::reads::scan::register,
    table::reads::micro_batches::register,
    table::reads::inspect::register,
    table::reads::diff::register,
    table::locations::register,
    table::maintenance::register,
    table::compaction::register,
    table::changes::manifests::register,
    table::migration::register,
    table::relocation::register,
    table::outcomes::register,
    table::write::register,
    table::row_change::register,
    table::changes::rows::register,
    table::changes::merging::register,
    table::changes::upsert_stream::register,
    orc::read::register,
    orc::write::register,
];

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    allocator::keep_freed_memory();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    ROOMS.iter().try_for_each(|register| register(module))
}
