//! The limits in use: the decoders' defaults, or those set by the environment.

use std::sync::OnceLock;

use icefield_format::Limits;
use icefield_format::limits::{MEMORY_VARIABLE, OPERATION_VARIABLE};

use crate::error::{Error, Result};

/// The limits of this process. `ICEFIELD_DOCUMENT_MEMORY` limits the memory of one document,
/// `ICEFIELD_OPERATION_MEMORY` that of all documents held by one operation; both are read once.
pub fn limits() -> Result<Limits> {
    static OPERATION: Setting = Setting::new();
    let limits = match memory()? {
        Some(bytes) => Limits::default().with_memory(bytes),
        None => Limits::default(),
    };
    let operation_memory = set(&OPERATION, OPERATION_VARIABLE)?.unwrap_or(limits.operation_memory);
    Ok(Limits { operation_memory, ..limits })
}

/// The same for ORC files.
pub fn orc_limits() -> Result<icefield_orc::Limits> {
    Ok(match memory()? {
        Some(bytes) => icefield_orc::Limits::default().with_memory(bytes),
        None => icefield_orc::Limits::default(),
    })
}

/// The value of an environment variable when it was first read.
type Setting = OnceLock<Option<String>>;

fn memory() -> Result<Option<usize>> {
    static DOCUMENT: Setting = Setting::new();
    set(&DOCUMENT, MEMORY_VARIABLE)
}

fn set(known: &Setting, variable: &str) -> Result<Option<usize>> {
    let text = known.get_or_init(|| std::env::var_os(variable).map(|text| text.to_string_lossy().into_owned()));
    text.as_deref().map(|text| bytes(variable, text)).transpose()
}

fn bytes(variable: &str, text: &str) -> Result<usize> {
    let units = [("KiB", 1usize << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
    let unit = units.iter().find_map(|(unit, size)| Some((text.trim().strip_suffix(unit)?, *size)));
    let (number, size) = unit.unwrap_or((text, 1));
    let bytes = number.trim().parse::<usize>().ok().and_then(|number| number.checked_mul(size));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        Error::invalid(format!(
            "environment variable {variable}: expected a number of bytes such as 4294967296 or 4GiB, got {text:?}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_and_without_a_unit() {
        for (text, expected) in [("1048576", 1 << 20), (" 4GiB ", 4 << 30), ("512 MiB", 512 << 20), ("1KiB", 1 << 10)] {
            assert_eq!(bytes(MEMORY_VARIABLE, text).unwrap(), expected, "{text}");
        }
        for text in ["", "0", "-1", "many", "1.5GiB", "99999999999GiB", "4GB"] {
            let error = bytes(MEMORY_VARIABLE, text).unwrap_err().to_string();
            assert!(error.contains(MEMORY_VARIABLE) && error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
