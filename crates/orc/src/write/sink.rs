//! The [`Sink`], to which the bytes of a new file are written.

use std::io::Write;

use crate::error::Result;

/// Receives the bytes of a file in order: a `Vec<u8>`, or any other [`Write`].
pub trait Sink {
    /// Appends bytes.
    ///
    /// # Errors
    ///
    /// Any error of the sink, which passes through the writer: [`Error::External`](crate::Error::External), or for a
    /// [`Write`] [`Error::Io`](crate::Error::Io).
    fn append(&mut self, bytes: &[u8]) -> Result<()>;
}

impl<W: Write> Sink for W {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.write_all(bytes)?)
    }
}
