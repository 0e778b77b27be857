//! Integers, version 2 ("Integer Run Length Encoding, version 2").

use super::unpack::unpack;
use super::varint::{read_varint64, unzigzag};
use crate::error::Result;
use crate::stream::{ByteStream, Context, Positions};

/// Maximum length of a run.
pub(super) const MAX_RUN: usize = 512;
/// Maximum bytes of a varint.
const MAX_VARINT: usize = 10;

/// Bit widths by their five-bit codes; up to 24 bits, the code is the width minus one. In delta runs, code 0 means
/// width 0.
pub(crate) const WIDTHS: [u8; 32] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 40, 48, 56,
    64,
];

fn width_of(code: u8) -> usize {
    WIDTHS.get(usize::from(code)).copied().map_or(64, usize::from)
}

/// The smallest width of the table with at least this many bits.
#[inline]
pub(super) fn closest_width(bits: usize) -> usize {
    match bits {
        0 => 1,
        1..=24 => bits,
        25..=32 => bits.next_multiple_of(2),
        33..=64 => bits.next_multiple_of(8),
        _ => 64,
    }
}

/// The header of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run2 {
    /// One value, repeated.
    ShortRepeat {
        /// Bytes of the value.
        bytes: usize,
        /// The number of repetitions.
        length: usize,
    },
    /// Packed values.
    Direct {
        /// Bits of each.
        width: usize,
        /// How many.
        length: usize,
    },
    /// Packed differences from a base; large ones have their high bits in patches.
    PatchedBase {
        /// Bits of each.
        width: usize,
        /// How many.
        length: usize,
        /// Bytes of the base.
        base: usize,
        /// Bits of each patch.
        patch: usize,
        /// Bits of each gap.
        gap: usize,
        /// The number of patches.
        patches: usize,
    },
    /// A base, the first difference, and the packed magnitudes of further differences.
    Delta {
        /// Bits of each difference; 0 if all equal the first.
        width: usize,
        /// The number of values.
        length: usize,
    },
}

impl Run2 {
    /// Decodes the header of a run, and returns its length too: one byte for short repeats, four for patched base, two
    /// otherwise.
    pub fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let first = *bytes.first()?;
        if first >> 6 == 0 {
            let (bytes, length) = (usize::from(first >> 3 & 7) + 1, usize::from(first & 7) + 3);
            return Some((Self::ShortRepeat { bytes, length }, 1));
        }
        let length = usize::from(first & 1) << 8 | usize::from(*bytes.get(1)?);
        let (length, code) = (length + 1, first >> 1 & 31);
        let width = width_of(code);
        match first >> 6 {
            1 => Some((Self::Direct { width, length }, 2)),
            2 => {
                let (third, fourth) = (*bytes.get(2)?, *bytes.get(3)?);
                let (base, patch) = (usize::from(third >> 5) + 1, width_of(third & 31));
                let (gap, patches) = (usize::from(fourth >> 5) + 1, usize::from(fourth & 31));
                Some((Self::PatchedBase { width, length, base, patch, gap, patches }, 4))
            }
            _ => Some((Self::Delta { width: if code == 0 { 0 } else { width }, length }, 2)),
        }
    }

    /// The number of values.
    pub fn length(self) -> usize {
        match self {
            Self::ShortRepeat { length, .. }
            | Self::Direct { length, .. }
            | Self::PatchedBase { length, .. }
            | Self::Delta { length, .. } => length,
        }
    }

    /// The number of bytes after the header; with varints, the maximum.
    pub fn body(self) -> usize {
        match self {
            Self::ShortRepeat { bytes, .. } => bytes,
            Self::Direct { width, length } => (width * length).div_ceil(8),
            Self::PatchedBase { width, length, base, patch, gap, patches } => {
                base + (width * length).div_ceil(8) + (closest_width(patch + gap) * patches).div_ceil(8)
            }
            Self::Delta { width, length } => 2 * MAX_VARINT + (width * length.saturating_sub(2)).div_ceil(8),
        }
    }
}

/// Reads an integer stream of version 2.
#[derive(Debug)]
pub struct IntReader2 {
    pub(super) stream: ByteStream,
    signed: bool,
    /// The decoded values of the current run, and the number of values used.
    begun: Vec<i64>,
    used: usize,
}

impl IntReader2 {
    /// A reader of a stream.
    pub fn new(stream: ByteStream, signed: bool) -> Self {
        Self { stream, signed, begun: Vec::new(), used: 0 }
    }

    /// Fills `out`.
    pub fn read(&mut self, mut out: &mut [i64], context: &mut Context) -> Result<()> {
        while !out.is_empty() {
            if let Some(rest) = self.begun.get(self.used..).filter(|rest| !rest.is_empty()) {
                let step = rest.len().min(out.len());
                let (target, later) = std::mem::take(&mut out).split_at_mut(step);
                target.copy_from_slice(rest.get(..step).unwrap_or_default());
                self.used += step;
                out = later;
                continue;
            }
            self.stream.fill(1, context)?;
            let (used, filled) = whole_runs(self.stream.window(), self.signed, out);
            if filled > 0 {
                self.stream.consume(used);
                out = std::mem::take(&mut out).get_mut(filled..).unwrap_or_default();
                continue;
            }
            // The next run extends past the end of the window or of `out`, or is corrupt.
            let (run, head) = self.head(context)?;
            if run.length() > out.len() {
                self.begin(run, head, context)?;
                continue;
            }
            let (target, later) = std::mem::take(&mut out).split_at_mut(run.length());
            self.decode(run, head, target, context)?;
            out = later;
        }
        Ok(())
    }

    /// Skips values. Whole runs are not unpacked if their header says how many bytes they take.
    pub fn skip(&mut self, mut count: usize, context: &mut Context) -> Result<()> {
        while count > 0 {
            let left = self.begun.len() - self.used;
            if left > 0 {
                let step = left.min(count);
                self.used += step;
                count -= step;
                continue;
            }
            let (run, head) = self.head(context)?;
            if run.length() > count || matches!(run, Run2::Delta { .. }) {
                self.begin(run, head, context)?;
                continue;
            }
            self.stream.need(head + run.body(), context)?;
            self.stream.consume(head + run.body());
            count -= run.length();
        }
        Ok(())
    }

    /// Seeks to a position of the stream; the caller skips the values.
    pub fn restart(&mut self, positions: &mut Positions<'_>) -> Result<()> {
        self.begun.clear();
        self.used = 0;
        self.stream.seek(positions)
    }

    /// Skips the next run and returns its header, for counting runs.
    pub fn next_run(&mut self, context: &mut Context) -> Result<Run2> {
        let (run, head) = self.head(context)?;
        self.begin(run, head, context)?;
        self.used = self.begun.len();
        Ok(run)
    }

    /// Whether the stream is at its end.
    pub fn is_finished(&mut self, context: &mut Context) -> Result<bool> {
        Ok(self.used >= self.begun.len() && self.stream.is_finished(context)?)
    }

    fn head(&mut self, context: &mut Context) -> Result<(Run2, usize)> {
        self.stream.need(1, context)?;
        if let Some(found) = Run2::read(self.stream.window()) {
            return Ok(found);
        }
        self.stream.fill(4, context)?;
        Run2::read(self.stream.window()).ok_or_else(|| self.stream.corrupt("truncated run header"))
    }

    fn begin(&mut self, run: Run2, head: usize, context: &mut Context) -> Result<()> {
        let mut begun = std::mem::take(&mut self.begun);
        begun.clear();
        begun.resize(run.length().min(MAX_RUN), 0);
        self.used = 0;
        let done = self.decode(run, head, &mut begun, context);
        self.begun = begun;
        done
    }

    /// Decodes a run of exactly `out.len()` values.
    fn decode(&mut self, run: Run2, head: usize, out: &mut [i64], context: &mut Context) -> Result<()> {
        self.stream.fill(head + run.body(), context)?;
        let body = self.stream.window().get(head..).unwrap_or_default();
        let used = decode_body(run, body, self.signed, out).map_err(|message| self.stream.corrupt(message))?;
        self.stream.consume(head + used);
        Ok(())
    }
}

type Used = std::result::Result<usize, &'static str>;
const CUT: &str = "truncated run";

#[inline]
fn decode_body(run: Run2, body: &[u8], signed: bool, out: &mut [i64]) -> Used {
    match run {
        Run2::ShortRepeat { bytes, .. } => short_repeat(body, bytes, signed, out),
        Run2::Direct { width, .. } => direct(body, width, signed, out),
        Run2::PatchedBase { width, base, patch, gap, patches, .. } => {
            patched_base(body, &Patched { width, base, patch, gap, patches }, out)
        }
        Run2::Delta { width, .. } => delta(body, width, signed, out),
    }
}

/// Decodes runs that are completely in the window and fit `out`; returns the numbers of bytes read and values decoded.
/// If values repeat a few times each, the runs are short, and asking the stream for each would cost as much as the
/// decoding.
fn whole_runs(window: &[u8], signed: bool, out: &mut [i64]) -> (usize, usize) {
    let (mut at, mut filled) = (0, 0);
    while let Some((run, head)) = window.get(at..).and_then(Run2::read) {
        let Some(body) = window.get(at + head..).filter(|body| body.len() >= run.body()) else { break };
        let Some(target) = out.get_mut(filled..).and_then(|rest| rest.get_mut(..run.length())) else { break };
        let Ok(used) = decode_body(run, body, signed, target) else { break };
        at += head + used;
        filled += run.length();
    }
    (at, filled)
}

/// Reads a big-endian number of one to eight bytes.
#[inline]
fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn short_repeat(body: &[u8], bytes: usize, signed: bool, out: &mut [i64]) -> Used {
    let word = big_endian(body.get(..bytes).ok_or(CUT)?);
    out.fill(if signed { unzigzag(word) } else { word as i64 });
    Ok(bytes)
}

fn direct(body: &[u8], width: usize, signed: bool, out: &mut [i64]) -> Used {
    let used = (width * out.len()).div_ceil(8);
    if body.len() < used {
        return Err(CUT);
    }
    unpack(body, width, out);
    if signed {
        out.iter_mut().for_each(|value| *value = unzigzag(*value as u64));
    }
    Ok(used)
}

struct Patched {
    width: usize,
    base: usize,
    patch: usize,
    gap: usize,
    patches: usize,
}

fn patched_base(body: &[u8], run: &Patched, out: &mut [i64]) -> Used {
    let (base, body) = body.split_at_checked(run.base).ok_or(CUT)?;
    let packed = (run.width * out.len()).div_ceil(8);
    let (packed, body) = body.split_at_checked(packed).ok_or(CUT)?;
    if run.patches == 0 {
        return Err("a patched run without patches");
    }
    if run.patch + run.gap > 64 {
        return Err("a patch and its gap of more than 64 bits");
    }
    let entry = closest_width(run.patch + run.gap);
    let list = (entry * run.patches).div_ceil(8);
    unpack(packed, run.width, out);
    let mut entries = [0i64; 32];
    let entries = entries.get_mut(..run.patches).ok_or(CUT)?;
    unpack(body.get(..list).ok_or(CUT)?, entry, entries);
    let mut index = 0usize;
    for entry in entries.iter().map(|entry| *entry as u64) {
        // Patch and gap have at most 64 bits together and the gap has at least one, so both shifts are below 64.
        index += (entry >> run.patch) as usize & 0xff;
        let patch = entry & (u64::MAX >> (64 - run.patch));
        // Patches past the end are ignored, as in orc-core.
        if let Some(value) = out.get_mut(index) {
            *value |= patch.checked_shl(run.width as u32).unwrap_or(0) as i64;
        }
    }
    // The base is stored as sign and magnitude, not in two's complement.
    let word = big_endian(base);
    let sign = 1u64 << (run.base * 8 - 1);
    let base_value = if word & sign != 0 { ((word & !sign) as i64).wrapping_neg() } else { word as i64 };
    out.iter_mut().for_each(|value| *value = value.wrapping_add(base_value));
    Ok(run.base + packed.len() + list)
}

fn delta(body: &[u8], width: usize, signed: bool, out: &mut [i64]) -> Used {
    let (base, base_length) = read_varint64(body).ok_or(CUT)?;
    let rest = body.get(base_length..).ok_or(CUT)?;
    let (step, step_length) = read_varint64(rest).ok_or(CUT)?;
    let head = base_length + step_length;
    let mut value = if signed { unzigzag(base) } else { base as i64 };
    let step = unzigzag(step);
    let Some((first, more)) = out.split_first_mut() else { return Ok(head) };
    *first = value;
    if width == 0 {
        for slot in more {
            value = value.wrapping_add(step);
            *slot = value;
        }
        return Ok(head);
    }
    let Some((second, more)) = more.split_first_mut() else { return Ok(head) };
    value = value.wrapping_add(step);
    *second = value;
    let used = (width * more.len()).div_ceil(8);
    let packed = body.get(head..).filter(|packed| packed.len() >= used).ok_or(CUT)?;
    unpack(packed, width, more);
    if step < 0 {
        more.iter_mut().for_each(|slot| {
            value = value.wrapping_sub(*slot);
            *slot = value;
        });
    } else {
        more.iter_mut().for_each(|slot| {
            value = value.wrapping_add(*slot);
            *slot = value;
        });
    }
    Ok(head + used)
}
