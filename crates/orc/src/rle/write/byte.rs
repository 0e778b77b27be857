//! Bytes ("Byte Run Length Encoding").

/// Minimum and maximum length of a run, and maximum length of a list of literals.
const MIN_RUN: usize = 3;
const MAX_RUN: usize = 130;
const MAX_LITERALS: usize = 128;

/// Writes a byte stream.
#[derive(Debug)]
pub struct ByteWriter {
    literals: [u8; MAX_LITERALS],
    /// The number of pending bytes; of a run, only the first byte is kept.
    taken: usize,
    run: bool,
}

impl Default for ByteWriter {
    fn default() -> Self {
        Self { literals: [0; MAX_LITERALS], taken: 0, run: false }
    }
}

impl ByteWriter {
    /// Adds bytes, and appends the complete runs to `out`.
    pub fn write(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while let Some(&first) = bytes.first() {
            let used = if self.run { self.extend_run(bytes, first, out) } else { self.extend_literals(bytes, out) };
            bytes = bytes.get(used..).unwrap_or_default();
        }
    }

    /// Adds the same byte `count` times.
    pub fn write_run(&mut self, byte: u8, mut count: usize, out: &mut Vec<u8>) {
        while count > 0 {
            let step = if self.run && self.literals[0] == byte {
                let step = count.min(MAX_RUN - self.taken);
                self.taken += step;
                if self.taken == MAX_RUN {
                    self.finish(out);
                }
                step
            } else {
                let step = count.min(MIN_RUN);
                self.write([byte; MIN_RUN].get(..step).unwrap_or_default(), out);
                step
            };
            count -= step;
        }
    }

    /// The number of bytes added but not yet appended.
    pub fn pending(&self) -> usize {
        self.taken
    }

    /// Appends the pending bytes, and resets the writer.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if self.taken > 0 {
            if self.run {
                out.extend_from_slice(&[(self.taken - MIN_RUN) as u8, self.literals[0]]);
            } else {
                self.append_literals(self.taken, out);
            }
        }
        (self.taken, self.run) = (0, false);
    }

    fn append_literals(&self, count: usize, out: &mut Vec<u8>) {
        let literals = self.literals.get(..count).unwrap_or_default();
        if !literals.is_empty() {
            out.push((256 - literals.len()) as u8);
            out.extend_from_slice(literals);
        }
    }

    fn extend_run(&mut self, bytes: &[u8], first: u8, out: &mut Vec<u8>) -> usize {
        if first != self.literals[0] {
            self.finish(out);
            return 0;
        }
        let most = MAX_RUN - self.taken;
        let same = bytes.iter().take(most).take_while(|byte| **byte == first).count();
        self.taken += same;
        if self.taken == MAX_RUN {
            self.finish(out);
        }
        same
    }

    /// Copies literals up to the maximum of a list, or up to the third of three equal bytes, which start a run.
    fn extend_literals(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let start = self.taken;
        let step = bytes.len().min(MAX_LITERALS - start);
        let end = start + step;
        let (Some(room), Some(bytes)) = (self.literals.get_mut(start..end), bytes.get(..step)) else { return step };
        room.copy_from_slice(bytes);
        // A run may start in the literals before these.
        let from = start.saturating_sub(2);
        let window = self.literals.get(from..end).unwrap_or_default();
        let third =
            window.array_windows::<MIN_RUN>().position(|[first, second, third]| first == second && second == third);
        let Some(third) = third.map(|at| from + at) else {
            self.taken = end;
            if end == MAX_LITERALS {
                self.finish(out);
            }
            return step;
        };
        self.append_literals(third, out);
        self.literals[0] = self.literals.get(third).copied().unwrap_or_default();
        (self.taken, self.run) = (MIN_RUN, true);
        third + MIN_RUN - start
    }
}
