//! Bytes ("Byte Run Length Encoding"): runs of one repeated byte, and lists of literals.

use crate::error::Result;
use crate::stream::{ByteStream, Context, Positions};

/// Minimum length of a run.
const MIN_RUN: usize = 3;

/// Reads a byte stream.
#[derive(Debug)]
pub struct ByteReader {
    stream: ByteStream,
    left: usize,
    /// The repeated byte of a run; `None` in literals.
    run: Option<u8>,
}

impl ByteReader {
    /// A reader of a stream.
    pub fn new(stream: ByteStream) -> Self {
        Self { stream, left: 0, run: None }
    }

    /// An error in the stream.
    pub fn corrupt(&self, message: &str) -> crate::Error {
        self.stream.corrupt(message)
    }

    fn next_run(&mut self, context: &mut Context) -> Result<()> {
        let control = self.stream.byte(context)?;
        if control < 0x80 {
            self.run = Some(self.stream.byte(context)?);
            self.left = usize::from(control) + MIN_RUN;
        } else {
            self.run = None;
            self.left = 256 - usize::from(control);
        }
        Ok(())
    }

    /// Appends `count` bytes.
    pub fn read_onto(&mut self, mut count: usize, out: &mut Vec<u8>, context: &mut Context) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                self.next_run(context)?;
            }
            let step = self.left.min(count);
            match self.run {
                Some(byte) => out.resize(out.len() + step, byte),
                None => self.stream.read_onto(step, out, context)?,
            }
            self.left -= step;
            count -= step;
        }
        Ok(())
    }

    /// Skips bytes.
    pub fn skip(&mut self, mut count: usize, context: &mut Context) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                self.next_run(context)?;
            }
            let step = self.left.min(count);
            if self.run.is_none() {
                self.stream.skip(step, context)?;
            }
            self.left -= step;
            count -= step;
        }
        Ok(())
    }

    /// Seeks to a position: that of the stream, then the number of bytes to skip.
    pub fn seek(&mut self, positions: &mut Positions<'_>, context: &mut Context) -> Result<()> {
        self.stream.seek(positions)?;
        self.left = 0;
        self.skip(positions.take()?, context)
    }
}
