//! Versions of the table format ("Format Versioning").

use std::fmt;

use crate::error::{Error, Result};

/// Version of the table format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FormatVersion {
    /// Analytic tables.
    V1 = 1,
    /// Row-level deletes.
    V2 = 2,
    /// Extended types, row lineage, deletion vectors.
    V3 = 3,
}

impl FormatVersion {
    /// The version as a number.
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl TryFrom<i32> for FormatVersion {
    type Error = Error;

    fn try_from(number: i32) -> Result<Self> {
        match number {
            1 => Ok(Self::V1),
            2 => Ok(Self::V2),
            3 => Ok(Self::V3),
            4 => Err(Error::unsupported(
                "table format version 4, whose specification is not adopted yet (supported: 1, 2 and 3)",
            )),
            _ => Err(Error::unsupported(format!("table format version {number} (supported: 1, 2 and 3)"))),
        }
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}
