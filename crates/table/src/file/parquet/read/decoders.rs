//! Chooses who decodes pages: this crate, or for measurements the parquet crate alone.

/// Environment variable; `library` leaves all pages of local files to the parquet crate, as benches and tests do that
/// compare the two.
const VARIABLE: &str = "ICEFIELD_PARQUET";

/// Who decodes pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoders {
    /// This crate, as far as it can.
    Own,
    /// The parquet crate.
    Library,
}

impl Decoders {
    /// What the environment asks for.
    pub(super) fn chosen() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Ok("library") => Self::Library,
            _ => Self::Own,
        }
    }
}
