//! Truncates bounds ("Data File Fields"; `truncate(n)` in `write.metadata.metrics.*`).
//!
//! A lower bound may be cut anywhere. A cut upper bound would be below the value, so its last byte or code point is
//! incremented; if nothing can be incremented, there is no upper bound of that length.

use std::borrow::Cow;

use crate::primitive::PrimitiveType;
use crate::value::Value;

/// Cuts `text` to `length` code points.
pub fn truncate_text(text: &str, length: usize) -> &str {
    // A code point takes one byte or more, so most texts need no count.
    if text.len() <= length {
        return text;
    }
    text.char_indices().nth(length).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Cuts `bytes` to `length` bytes.
pub fn truncate_bytes(bytes: &[u8], length: usize) -> &[u8] {
    bytes.get(..length).unwrap_or(bytes)
}

/// Returns an upper bound, of maximum length `length`, for all texts that start with the first `length` code points of
/// `text`.
///
/// Returns `text` itself if it is short enough; `None` if every code point is the highest one.
pub fn upper_text(text: &str, length: usize) -> Option<Cow<'_, str>> {
    let cut = truncate_text(text, length);
    if cut.len() == text.len() {
        return Some(Cow::Borrowed(text));
    }
    let (start, raised) = cut.char_indices().rev().find_map(|(start, last)| Some((start, next_code_point(last)?)))?;
    let mut upper = cut.get(..start)?.to_owned();
    upper.push(raised);
    Some(Cow::Owned(upper))
}

/// Like [`upper_text`], for bytes.
pub fn upper_bytes(bytes: &[u8], length: usize) -> Option<Cow<'_, [u8]>> {
    let cut = truncate_bytes(bytes, length);
    if cut.len() == bytes.len() {
        return Some(Cow::Borrowed(bytes));
    }
    let end = cut.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut upper = cut.get(..=end)?.to_vec();
    if let Some(last) = upper.last_mut() {
        *last += 1;
    }
    Some(Cow::Owned(upper))
}

/// Returns a lower bound of at most `length` code points (strings) or bytes (binary); other types are unchanged.
pub fn lower_bound(value: Value, ty: &PrimitiveType, length: usize) -> Value {
    match (ty, value) {
        (PrimitiveType::String, Value::String(mut text)) => {
            let end = truncate_text(&text, length).len();
            text.truncate(end);
            Value::String(text)
        }
        (PrimitiveType::Binary, Value::Binary(mut bytes)) => {
            bytes.truncate(length);
            Value::Binary(bytes)
        }
        (_, value) => value,
    }
}

/// Returns an upper bound of at most `length` code points (strings) or bytes (binary); other types are unchanged.
///
/// `None` if no upper bound of that length exists.
pub fn upper_bound(value: Value, ty: &PrimitiveType, length: usize) -> Option<Value> {
    match (ty, value) {
        (PrimitiveType::String, Value::String(text)) => match upper_text(&text, length)? {
            Cow::Borrowed(_) => Some(Value::String(text)),
            Cow::Owned(upper) => Some(Value::String(upper)),
        },
        (PrimitiveType::Binary, Value::Binary(bytes)) => match upper_bytes(&bytes, length)? {
            Cow::Borrowed(_) => Some(Value::Binary(bytes)),
            Cow::Owned(upper) => Some(Value::Binary(upper)),
        },
        (_, value) => Some(value),
    }
}

/// Returns the next Unicode scalar value, skipping surrogates, which are not characters.
fn next_code_point(c: char) -> Option<char> {
    match c {
        '\u{d7ff}' => Some('\u{e000}'),
        c => char::from_u32(u32::from(c) + 1),
    }
}
