//! Forwards the log messages of the Rust crates to Python's `logging.getLogger("icefield")`: commit conflicts and
//! retries, unknown outcomes, deleted files and files that could not be deleted.

use icefield_table::storage::redacted;
use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::prelude::*;

use crate::callback::call_python;

/// The name of the logger.
const LOGGER: &str = "icefield";

struct Forwarding;

impl Log for Forwarding {
    /// Only our own messages: libraries may log the bytes of requests.
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

/// Starts forwarding log messages.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Without a handler, logging prints warnings to standard error, which a library should not do.
    let logging = module.py().import("logging")?;
    let logger = logging.call_method1("getLogger", (LOGGER,))?;
    logger.call_method1("addHandler", (logging.call_method0("NullHandler")?,))?;
    if log::set_logger(&Forwarding).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
    Ok(())
}
