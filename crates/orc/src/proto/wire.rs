//! The protobuf wire format: tags, varints, fixed and length-delimited values (protobuf.dev, "Encoding").

use crate::error::{Error, Result};

/// Maximum bytes of a 64-bit varint.
const MAX_VARINT: usize = 10;

/// One value in its wire form.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

/// A bounded reader of tags and values.
#[derive(Debug, Clone)]
pub struct WireReader<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> WireReader<'a> {
    /// A reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len() }
    }

    /// Whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn fail(&self, message: &str) -> Error {
        Error::corrupt_at("", (self.length - self.rest.len()) as u64, message)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((head, tail)) = self.rest.split_at_checked(count) else {
            return Err(self.fail(&format!("a field of {count} bytes extends past the end of its message")));
        };
        self.rest = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, tail)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.fail("a fixed-size field extends past the end of its message"));
        };
        self.rest = tail;
        Ok(*head)
    }

    /// Reads a varint; bits beyond 64 are dropped, as in protobuf.
    pub fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for (index, &byte) in self.rest.iter().take(MAX_VARINT).enumerate() {
            value |= u64::from(byte & 0x7f).checked_shl(index as u32 * 7).unwrap_or(0);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(self.fail("unterminated varint"))
    }

    /// Reads the next field: its number and value.
    pub fn field(&mut self) -> Result<(u32, Value<'a>)> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number != 0);
        let number = number.ok_or_else(|| self.fail("invalid field number"))?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| self.fail("a length exceeds the address space"))?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(self.fail("an unknown wire type")),
        };
        Ok((number, value))
    }

    /// Reads one little-endian word of a packed list.
    pub fn fixed64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}

/// Appends a varint.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the tag of a field.
pub(super) fn put_tag(out: &mut Vec<u8>, number: u32, wire_type: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire_type));
}

/// Appends a length-delimited field.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_tag(out, number, 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
