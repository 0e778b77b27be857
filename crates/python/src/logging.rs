//! What the Rust crates log, in Python's `logging.getLogger("icefield")`: lost races and retries, unknown outcomes, files
//! that are deleted or stay.

use icefield_table::storage::redacted;
use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;

use crate::callback::call_python;

/// The name of the logger.
const LOGGER: &str = "icefield";

struct Forwarding;

impl Log for Forwarding {
    /// Libraries beneath us may log the bytes of requests.
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("icefield")
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let level = match record.level() {
            Level::Error => "error",
            Level::Warn => "warning",
            Level::Info => "info",
            Level::Debug | Level::Trace => "debug",
        };
        let message = redacted(&record.args().to_string());
        // A handler that raises must not fail a commit.
        call_python(|py| {
            if let Err(raised) = write(py, level, &message) {
                raised.write_unraisable(py, None);
            }
        });
    }

    fn flush(&self) {}
}

fn write(py: Python<'_>, level: &str, message: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", (LOGGER,))?;
    logger.call_method1(level, ("%s", message)).map(drop)
}

/// Forwards what is logged from now on.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Where the application has no handler, logging prints warnings to standard error: not those of a library.
    let logging = module.py().import("logging")?;
    let logger = logging.call_method1("getLogger", (LOGGER,))?;
    logger.call_method1("addHandler", (logging.call_method0("NullHandler")?,))?;
    if log::set_logger(&Forwarding).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
    Ok(())
}
