//! Integers, version 1 ("Integer Run Length Encoding, version 1").

use super::varint::{read_varint64, unzigzag};
use crate::error::Result;
use crate::stream::{ByteStream, Context, Positions};

/// Minimum length of a run.
const MIN_RUN: usize = 3;
/// Maximum bytes of a varint.
const MAX_VARINT: usize = 10;

/// The header of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run1 {
    /// Values with the constant difference `delta`.
    Run {
        /// The number of values.
        length: usize,
        /// The difference between successive values.
        delta: i8,
    },
    /// A list of this many varints.
    Literals(usize),
}

/// Reads an integer stream of version 1.
#[derive(Debug)]
pub struct IntReader1 {
    pub(super) stream: ByteStream,
    signed: bool,
    left: usize,
    value: i64,
    /// The difference of a run; `None` in literals.
    delta: Option<i64>,
}

impl IntReader1 {
    /// A reader of a stream.
    pub fn new(stream: ByteStream, signed: bool) -> Self {
        Self { stream, signed, left: 0, value: 0, delta: None }
    }

    /// Reads the header of the next run; for [`Run1::Run`], also its first value.
    pub fn next_run(&mut self, context: &mut Context) -> Result<Run1> {
        let control = self.stream.byte(context)?;
        if control < 0x80 {
            let delta = self.stream.byte(context)? as i8;
            self.delta = Some(i64::from(delta));
            self.value = self.varint(context)?;
            self.left = usize::from(control) + MIN_RUN;
            Ok(Run1::Run { length: self.left, delta })
        } else {
            self.delta = None;
            self.left = 256 - usize::from(control);
            Ok(Run1::Literals(self.left))
        }
    }

    /// Whether the stream is at its end.
    pub fn is_finished(&mut self, context: &mut Context) -> Result<bool> {
        Ok(self.left == 0 && self.stream.is_finished(context)?)
    }

    fn varint(&mut self, context: &mut Context) -> Result<i64> {
        self.stream.fill(MAX_VARINT, context)?;
        let Some((value, length)) = read_varint64(self.stream.window()) else {
            return Err(self.stream.corrupt("unterminated varint"));
        };
        self.stream.consume(length);
        Ok(if self.signed { unzigzag(value) } else { value as i64 })
    }

    /// Fills `out`.
    pub fn read(&mut self, mut out: &mut [i64], context: &mut Context) -> Result<()> {
        while !out.is_empty() {
            if self.left == 0 {
                self.next_run(context)?;
            }
            let step = self.left.min(out.len());
            let (target, rest) = std::mem::take(&mut out).split_at_mut(step);
            match self.delta {
                Some(delta) => {
                    for slot in target {
                        *slot = self.value;
                        self.value = self.value.wrapping_add(delta);
                    }
                }
                None => {
                    for slot in target {
                        *slot = self.varint(context)?;
                    }
                }
            }
            self.left -= step;
            out = rest;
        }
        Ok(())
    }

    /// Skips values.
    pub fn skip(&mut self, mut count: usize, context: &mut Context) -> Result<()> {
        while count > 0 {
            if self.left == 0 {
                self.next_run(context)?;
            }
            let step = self.left.min(count);
            match self.delta {
                Some(delta) => self.value = self.value.wrapping_add(delta.wrapping_mul(step as i64)),
                None => {
                    for _ in 0..step {
                        self.varint(context)?;
                    }
                }
            }
            self.left -= step;
            count -= step;
        }
        Ok(())
    }

    /// Seeks to a position of the stream; the caller skips the values.
    pub fn restart(&mut self, positions: &mut Positions<'_>) -> Result<()> {
        self.left = 0;
        self.stream.seek(positions)
    }
}
