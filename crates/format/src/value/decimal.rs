//! Decimals: minimal big-endian bytes (Appendices B and D) and texts.

use std::fmt::Write as _;

/// Minimal big-endian two's complement of a number, stored inline.
#[derive(Debug, Clone, Copy)]
pub struct MinimalBytes {
    bytes: [u8; 16],
    start: usize,
}

impl MinimalBytes {
    /// The bytes, 1 to 16.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or(&self.bytes)
    }
}

/// Returns the minimal big-endian two's complement of `unscaled`: one byte or more, without redundant sign bytes.
pub fn minimal_bytes(unscaled: i128) -> MinimalBytes {
    // n bytes hold 8n-1 value bits and a sign bit; xor with the sign leaves the value bits.
    let value_bits = 128 - (unscaled ^ (unscaled >> 127)).leading_zeros() as usize;
    MinimalBytes { bytes: unscaled.to_be_bytes(), start: 15 - value_bits / 8 }
}

/// Reads a big-endian two's complement number of any length, with sign bytes at its start. `None` if it exceeds 128
/// bits or there are no bytes.
pub fn from_big_endian(bytes: &[u8]) -> Option<i128> {
    let negative = *bytes.first()? & 0x80 != 0;
    let fill = if negative { 0xff } else { 0 };
    let (extra, tail) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut out = [fill; 16];
    for (to, from) in out.iter_mut().rev().zip(tail.iter().rev()) {
        *to = *from;
    }
    let value = i128::from_be_bytes(out);
    (extra.iter().all(|byte| *byte == fill) && (value < 0) == negative).then_some(value)
}

/// Formats in plain notation with `scale` fractional digits.
pub fn to_plain_string(unscaled: i128, scale: u8) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() + usize::from(scale) + 3);
    if unscaled < 0 {
        out.push('-');
    }
    let scale = usize::from(scale);
    if scale == 0 {
        return out + &digits;
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    out.push_str(whole);
    out.push('.');
    out + fraction
}

/// Formats like Java's `BigDecimal.toString`: plain, except for very small numbers (`1.27E-8`, `0E-10`).
pub fn to_scientific_string(unscaled: i128, scale: u8) -> String {
    let digits = unscaled.unsigned_abs().to_string();
    let exponent = digits.len() as i64 - 1 - i64::from(scale);
    if exponent >= -6 {
        return to_plain_string(unscaled, scale);
    }
    let (first, rest) = digits.split_at(1);
    let mut out = String::with_capacity(digits.len() + 6);
    if unscaled < 0 {
        out.push('-');
    }
    out.push_str(first);
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "E{exponent}");
    out
}

/// A parsed decimal: the unscaled number, and the scale, which an exponent may make negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedDecimal {
    /// The number without its point.
    pub unscaled: i128,
    /// Number of fractional digits.
    pub scale: i64,
}

impl ParsedDecimal {
    /// Converts to another scale; `None` if digits would be lost or 128 bits exceeded.
    pub fn rescaled(self, scale: u8) -> Option<i128> {
        let shift = i64::from(scale) - self.scale;
        if self.unscaled == 0 {
            return Some(0);
        }
        let power = 10i128.checked_pow(u32::try_from(shift.unsigned_abs()).ok()?);
        if shift >= 0 {
            return self.unscaled.checked_mul(power?);
        }
        let power = power?;
        (self.unscaled % power == 0).then_some(self.unscaled / power)
    }
}

/// Parses a decimal: sign, digits, point, exponent, as Java's `BigDecimal(String)`. `None` if it is not a decimal or
/// overflows 128 bits.
pub fn parse(text: &str) -> Option<ParsedDecimal> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut unscaled = 0i128;
    for byte in whole.bytes().chain(fraction.bytes()) {
        let digit = i128::from(byte.is_ascii_digit().then(|| byte - b'0')?);
        let digit = if negative { -digit } else { digit };
        unscaled = unscaled.checked_mul(10)?.checked_add(digit)?;
    }
    Some(ParsedDecimal { unscaled, scale: i64::try_from(fraction.len()).ok()?.checked_sub(exponent)? })
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let sound = !digits.is_empty() && digits.len() <= 10 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if sound { text.parse().ok() } else { None }
}
