//! Reads fields with functions. Each field defines whether null means missing, and errors collect the path to the
//! field.
//!
//! Readers descend with methods such as [`Object::field`], which extend the JSON pointer of an error that passes
//! through them. Only numbers written as integers count as integers, as in the Java library.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::{Object, brief};
use crate::{Error, Result};

/// A map of strings in document order.
pub type StringMap = IndexMap<String, String>;

/// Depth limit of `serde_json`.
const DEPTH: usize = 128;

pub(super) fn skip_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Converts an error of `serde_json`.
pub(super) fn syntax_error(error: serde_json::Error) -> Error {
    let place = format!("line {} column {}", error.line(), error.column());
    if error.to_string().starts_with("recursion limit exceeded") {
        return Error::unsupported(format!("{place}: JSON that is nested deeper than {DEPTH} levels is not supported"));
    }
    Error::corrupt(place, format!("not valid JSON: {error}"))
}

/// One step of a JSON pointer (RFC 6901).
pub(crate) fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// Adds `outer` to the place of an error; errors without a place get this one.
pub(crate) fn locate(error: Error, outer: &str) -> Error {
    match error {
        Error::Invalid(message) | Error::Unfit(message) => Error::corrupt(outer, message),
        other => other.within(outer),
    }
}

fn mismatch(wanted: &str, value: &Json) -> Error {
    Error::corrupt("", format!("expected {wanted}, found {}", brief(value)))
}

/// Reads a 32-bit integer.
pub(crate) fn int(value: &Json) -> Result<i32> {
    let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
    number.ok_or_else(|| mismatch("a 32-bit integer", value))
}

/// Reads a 64-bit integer.
pub(crate) fn long(value: &Json) -> Result<i64> {
    value.as_i64().ok_or_else(|| mismatch("a 64-bit integer", value))
}

/// Reads a string.
pub(crate) fn string(value: &Json) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| mismatch("a string", value))
}

/// Reads an array; `read` reads each element.
pub(crate) fn list<T>(value: &Json, mut read: impl FnMut(&Json) -> Result<T>) -> Result<Vec<T>> {
    let elements = value.as_array().ok_or_else(|| mismatch("an array", value))?;
    let read = |(index, element)| read(element).map_err(|error| locate(error, &format!("/{index}")));
    elements.iter().enumerate().map(read).collect()
}

/// Reads an object whose values are all strings.
pub(crate) fn string_map(value: &Json) -> Result<StringMap> {
    map(value, string)
}

/// Reads an object whose values are strings; null values count as missing.
pub(crate) fn present_strings(value: &Json) -> Result<StringMap> {
    let read = |value: &Json| if value.is_null() { Ok(None) } else { string(value).map(Some) };
    Ok(map(value, read)?.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

/// Reads an object with arbitrary names; `read` reads each value.
pub(crate) fn map<T>(value: &Json, mut read: impl FnMut(&Json) -> Result<T>) -> Result<IndexMap<String, T>> {
    let entry = |(name, value): (&String, &Json)| match read(value) {
        Ok(item) => Ok((name.clone(), item)),
        Err(error) => Err(locate(error, &step(name))),
    };
    Object::new(value, "a map")?.members().iter().map(entry).collect()
}

impl<'a> Object<'a> {
    /// Returns the member unchanged; null is a value.
    pub(crate) fn member(self, name: &str) -> Option<&'a Json> {
        self.members().get(name)
    }

    /// Reads a required field.
    pub(crate) fn field<T>(self, name: &str, read: impl FnOnce(&'a Json) -> Result<T>) -> Result<T> {
        let missing = || Error::corrupt(step(name), "required, but missing");
        let value = self.member(name).ok_or_else(missing)?;
        read(value).map_err(|error| locate(error, &step(name)))
    }

    /// Reads a field that may be missing or null.
    pub(crate) fn nullable<T>(self, name: &str, read: impl FnOnce(&'a Json) -> Result<T>) -> Result<Option<T>> {
        match self.member(name) {
            None | Some(Json::Null) => Ok(None),
            Some(_) => self.field(name, read).map(Some),
        }
    }

    /// Returns the fields whose names are not in `known`, which come from a newer writer, unchanged.
    pub(crate) fn unknown(self, known: &[&str]) -> Map<String, Json> {
        let unknown = self.members().iter().filter(|(name, _)| !known.contains(&name.as_str()));
        unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    /// Reads `/outer/list` of a document as longs.
    fn read(text: &str) -> Result<Vec<i64>> {
        let document = parse(text.as_bytes())?;
        Object::new(&document, "document")?
            .field("outer", |outer| Object::new(outer, "outer")?.field("a/b", |value| list(value, long)))
    }

    #[test]
    fn errors_name_the_place() {
        let cases = [
            (r#"{"outer": {"a/b": [1, 2]}}"#, "ok"),
            (r#"{"outer": {"a/b": [1, "2"]}}"#, "/outer/a~1b/1: expected a 64-bit integer, found \"2\""),
            (r#"{"outer": {"a/b": [2.0]}}"#, "/outer/a~1b/0: expected a 64-bit integer, found 2.0"),
            (r#"{"outer": {"a/b": 3}}"#, "/outer/a~1b: expected an array, found 3"),
            (r#"{"outer": {}}"#, "/outer/a~1b: required, but missing"),
            (r#"{"outer": null}"#, "/outer: outer must be an object, not null"),
        ];
        for (text, expected) in cases {
            let got = read(text).map_or_else(|error| error.to_string(), |_| "ok".to_owned());
            assert_eq!(got, expected, "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_trailing_text_is_not() {
        assert!(parse(b"\xef\xbb\xbf{}").is_ok());
        assert!(parse(b"{} {}").is_err());
        assert!(parse(&[b'['; 100_000]).is_err());
    }
}
