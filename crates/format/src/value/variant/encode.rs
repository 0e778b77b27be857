//! Encodes variants ("Value encoding"), byte for byte like the Java library.

use crate::error::{Error, Result};

use super::node::Node;

/// Maximum length of strings whose length is stored in the header.
const SHORT: usize = 63;

/// Minimum number of bytes, one to four, for an unsigned number.
fn width(number: usize) -> usize {
    match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xff_ffff => 3,
        _ => 4,
    }
}

fn push(out: &mut Vec<u8>, number: usize, width: usize) {
    out.extend(number.to_le_bytes().into_iter().take(width));
}

fn too_large() -> Error {
    Error::unsupported("a variant of 4 GiB and more")
}

/// Appends a value other than an object or array; for those see [`finish_object`] and [`finish_array`].
pub fn primitive(out: &mut Vec<u8>, node: &Node<'_>) -> Result<()> {
    let mut tagged = |kind: u8, bytes: &[u8]| {
        out.push(kind << 2);
        out.extend(bytes);
    };
    match node {
        Node::Null => tagged(0, &[]),
        Node::Boolean(true) => tagged(1, &[]),
        Node::Boolean(false) => tagged(2, &[]),
        Node::Int8(value) => tagged(3, &value.to_le_bytes()),
        Node::Int16(value) => tagged(4, &value.to_le_bytes()),
        Node::Int32(value) => tagged(5, &value.to_le_bytes()),
        Node::Int64(value) => tagged(6, &value.to_le_bytes()),
        Node::Double(value) => tagged(7, &value.to_le_bytes()),
        Node::Decimal { unscaled, scale, bytes } => {
            let kind = match bytes {
                4 => 8,
                8 => 9,
                _ => 10,
            };
            tagged(kind, &[*scale]);
            out.extend(unscaled.to_le_bytes().into_iter().take(usize::from(*bytes)));
        }
        Node::Date(days) => tagged(11, &days.to_le_bytes()),
        Node::Timestamp { micros, is_utc } => tagged(if *is_utc { 12 } else { 13 }, &micros.to_le_bytes()),
        Node::Float(value) => tagged(14, &value.to_le_bytes()),
        Node::Binary(bytes) => {
            let size = u32::try_from(bytes.len()).map_err(|_| too_large())?;
            tagged(15, &size.to_le_bytes());
            out.extend(*bytes);
        }
        Node::String(text) if text.len() <= SHORT => {
            out.push(u8::try_from(text.len()).unwrap_or(0) << 2 | 1);
            out.extend(text.as_bytes());
        }
        Node::String(text) => {
            let size = u32::try_from(text.len()).map_err(|_| too_large())?;
            tagged(16, &size.to_le_bytes());
            out.extend(text.as_bytes());
        }
        Node::Time(micros) => tagged(17, &micros.to_le_bytes()),
        Node::TimestampNanos { nanos, is_utc } => tagged(if *is_utc { 18 } else { 19 }, &nanos.to_le_bytes()),
        Node::Uuid(bytes) => tagged(20, bytes),
        Node::Object(_) | Node::Array(_) => return Err(Error::invalid("an object or array is not a primitive value")),
    }
    Ok(())
}

/// Turns the values after `start` into an object: `fields` has the field id and the position in `out` of each, ordered
/// by field name. `names` is the size of the dictionary.
pub fn finish_object(out: &mut Vec<u8>, start: usize, fields: &[(usize, usize)], names: usize) -> Result<()> {
    let size = out.len().saturating_sub(start);
    let (id_width, offset_width) = (width(names), width(size));
    let is_large = fields.len() > 0xff;
    let mut head = Vec::with_capacity(2 + (fields.len() + 2) * (id_width + offset_width));
    head.push(header(usize::from(is_large) << 4 | (id_width - 1) << 2 | (offset_width - 1), 2));
    push(&mut head, fields.len(), if is_large { 4 } else { 1 });
    for (id, _) in fields {
        push(&mut head, *id, id_width);
    }
    finish(out, start, head, fields.iter().map(|(_, place)| *place), offset_width)
}

/// Turns the values after `start`, at these positions in `out`, into an array.
pub fn finish_array(out: &mut Vec<u8>, start: usize, places: &[usize]) -> Result<()> {
    let offset_width = width(out.len().saturating_sub(start));
    let is_large = places.len() > 0xff;
    let mut head = Vec::with_capacity(6 + (places.len() + 1) * offset_width);
    head.push(header(usize::from(is_large) << 2 | (offset_width - 1), 3));
    push(&mut head, places.len(), if is_large { 4 } else { 1 });
    finish(out, start, head, places.iter().copied(), offset_width)
}

fn header(bits: usize, basic: u8) -> u8 {
    u8::try_from(bits << 2).unwrap_or(0) | basic
}

/// Inserts the header and the offsets before the values.
fn finish(
    out: &mut Vec<u8>,
    start: usize,
    mut head: Vec<u8>,
    places: impl Iterator<Item = usize>,
    width: usize,
) -> Result<()> {
    let size = out.len().saturating_sub(start);
    if u32::try_from(size).is_err() {
        return Err(too_large());
    }
    for place in places {
        push(&mut head, place.saturating_sub(start), width);
    }
    push(&mut head, size, width);
    out.splice(start..start, head);
    Ok(())
}

/// Encodes a dictionary of sorted names.
pub fn metadata<'a>(names: impl ExactSizeIterator<Item = &'a str> + Clone) -> Result<Vec<u8>> {
    let size: usize = names.clone().map(str::len).sum();
    let len = names.len();
    if u32::try_from(size.max(len)).is_err() {
        return Err(too_large());
    }
    let width = width(size.max(len));
    let mut out = Vec::with_capacity(1 + (len + 2) * width + size);
    // The Java library marks an empty dictionary as not sorted.
    let sorted = if len == 0 { 0 } else { 0x10 };
    out.push(u8::try_from((width - 1) << 6).unwrap_or(0) | sorted | 1);
    push(&mut out, len, width);
    let mut offset = 0;
    push(&mut out, 0, width);
    for name in names.clone() {
        offset += name.len();
        push(&mut out, offset, width);
    }
    for name in names {
        out.extend(name.as_bytes());
    }
    Ok(out)
}
