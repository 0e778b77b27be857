//! Where the bytes of a new file go.

use std::io::Write;

use crate::error::Result;

/// Takes the bytes of a file, from the first to the last: a `Vec<u8>`, or whatever writes.
pub trait Sink {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
}

impl<W: Write> Sink for W {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.write_all(bytes)?)
    }
}
