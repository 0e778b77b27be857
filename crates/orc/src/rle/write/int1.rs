//! Integers, version 1 ("Integer Run Length Encoding, version 1").

use crate::rle::varint::{write_varint64, zigzag};

/// Minimum and maximum length of a run, and maximum length of a list of literals.
const MIN_RUN: usize = 3;
const MAX_RUN: usize = 130;
const MAX_LITERALS: usize = 128;

/// Writes an integer stream of version 1.
#[derive(Debug)]
pub struct IntWriter1 {
    signed: bool,
    literals: Vec<i64>,
    /// The difference of the run, or of the last `tail` literals.
    delta: i8,
    tail: usize,
    /// The number of values of the run; 0 in literals.
    run: usize,
}

impl IntWriter1 {
    /// A writer of signed or unsigned values.
    pub fn new(signed: bool) -> Self {
        Self { signed, literals: Vec::with_capacity(MAX_LITERALS), delta: 0, tail: 0, run: 0 }
    }

    /// Adds values, and appends the complete runs to `out`.
    pub fn write(&mut self, values: &[i64], out: &mut Vec<u8>) {
        for value in values {
            self.take(*value, out);
        }
    }

    /// The number of values added but not yet appended.
    pub fn pending(&self) -> usize {
        if self.run > 0 { self.run } else { self.literals.len() }
    }

    /// Appends the pending values, and resets the writer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.run > 0 {
            out.extend_from_slice(&[(self.run - MIN_RUN) as u8, self.delta as u8]);
            self.varint(self.literals.first().copied().unwrap_or_default(), out);
        } else if !self.literals.is_empty() {
            out.push((256 - self.literals.len()) as u8);
            self.literals.iter().for_each(|value| self.varint(*value, out));
        }
        self.literals.clear();
        (self.run, self.tail) = (0, 0);
    }

    fn varint(&self, value: i64, out: &mut Vec<u8>) {
        write_varint64(if self.signed { zigzag(value) } else { value as u64 }, out);
    }

    #[inline]
    fn take(&mut self, value: i64, out: &mut Vec<u8>) {
        if self.run > 0 {
            let first = self.literals.first().copied().unwrap_or_default();
            if value == first.wrapping_add(i64::from(self.delta).wrapping_mul(self.run as i64)) {
                self.run += 1;
                if self.run == MAX_RUN {
                    self.finish(out);
                }
                return;
            }
            self.finish(out);
        }
        let Some(&last) = self.literals.last() else {
            self.literals.push(value);
            self.tail = 1;
            return;
        };
        let delta = value.wrapping_sub(last);
        if self.tail > 1 && delta == i64::from(self.delta) {
            self.tail += 1;
        } else if let Ok(delta) = i8::try_from(delta) {
            (self.delta, self.tail) = (delta, 2);
        } else {
            self.tail = 1;
        }
        if self.tail == MIN_RUN {
            // The last two literals become the start of the run.
            let first = self.literals.split_off(self.literals.len() + 1 - MIN_RUN);
            let delta = self.delta;
            self.finish(out);
            self.literals.extend(first.first());
            (self.delta, self.run) = (delta, MIN_RUN);
            return;
        }
        self.literals.push(value);
        if self.literals.len() == MAX_LITERALS {
            self.finish(out);
        }
    }
}
