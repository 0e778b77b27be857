//! Reads the members of an object, each as a required type.

use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};

/// The members of a JSON object.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a>(&'a Map<String, Json>);

impl<'a> Object<'a> {
    /// Wraps `json`, which must be an object; `what` names it in the error.
    pub fn new(json: &'a Json, what: &str) -> Result<Self> {
        match json {
            Json::Object(members) => Ok(Self(members)),
            other => Err(Error::corrupt("", format!("{what} must be an object, not {}", brief(other)))),
        }
    }

    /// All members.
    pub fn members(self) -> &'a Map<String, Json> {
        self.0
    }

    /// Returns an optional member; `null` means missing.
    pub fn get(self, key: &str) -> Option<&'a Json> {
        self.0.get(key).filter(|json| !json.is_null())
    }

    /// Returns a required member, which must not be `null`.
    pub fn required(self, key: &str) -> Result<&'a Json> {
        self.get(key).ok_or_else(|| Error::corrupt("", format!("`{key}` is missing")))
    }

    /// Reads a 32-bit integer.
    pub fn int(self, key: &str) -> Result<i32> {
        read(self.required(key)?, key, "a 32-bit integer", as_int)
    }

    /// Reads an optional 32-bit integer.
    pub fn optional_int(self, key: &str) -> Result<Option<i32>> {
        self.get(key).map(|json| read(json, key, "a 32-bit integer", as_int)).transpose()
    }

    /// Reads a 64-bit integer.
    pub fn long(self, key: &str) -> Result<i64> {
        read(self.required(key)?, key, "a 64-bit integer", Json::as_i64)
    }

    /// Reads an optional 64-bit integer.
    pub fn optional_long(self, key: &str) -> Result<Option<i64>> {
        self.get(key).map(|json| read(json, key, "a 64-bit integer", Json::as_i64)).transpose()
    }

    /// Reads `true` or `false`.
    pub fn boolean(self, key: &str) -> Result<bool> {
        read(self.required(key)?, key, "true or false", Json::as_bool)
    }

    /// Reads a string.
    pub fn string(self, key: &str) -> Result<&'a str> {
        read(self.required(key)?, key, "a string", Json::as_str)
    }

    /// Reads an optional string.
    pub fn optional_string(self, key: &str) -> Result<Option<&'a str>> {
        self.get(key).map(|json| read(json, key, "a string", Json::as_str)).transpose()
    }

    /// Reads an array.
    pub fn array(self, key: &str) -> Result<&'a [Json]> {
        read(self.required(key)?, key, "an array", array)
    }

    /// Reads an optional array.
    pub fn optional_array(self, key: &str) -> Result<Option<&'a [Json]>> {
        self.get(key).map(|json| read(json, key, "an array", array)).transpose()
    }

    /// Reads an optional array of 32-bit integers.
    pub fn optional_ints(self, key: &str) -> Result<Option<Vec<i32>>> {
        let Some(items) = self.optional_array(key)? else { return Ok(None) };
        let ints = items.iter().enumerate().map(|(position, item)| {
            read(item, &position.to_string(), "a 32-bit integer", as_int).map_err(|e| e.within(&format!("/{key}")))
        });
        ints.collect::<Result<_>>().map(Some)
    }
}

fn read<'a, T>(json: &'a Json, key: &str, expected: &str, convert: impl Fn(&'a Json) -> Option<T>) -> Result<T> {
    convert(json)
        .ok_or_else(|| Error::corrupt(format!("/{key}"), format!("expected {expected}, found {}", brief(json))))
}

fn as_int(json: &Json) -> Option<i32> {
    json.as_i64().and_then(|number| i32::try_from(number).ok())
}

fn array(json: &Json) -> Option<&[Json]> {
    json.as_array().map(Vec::as_slice)
}

/// Formats a value for an error message; long values are cut.
pub(crate) fn brief(json: &Json) -> String {
    const LONGEST: usize = 60;
    match json {
        Json::Object(_) => "an object".to_owned(),
        Json::Array(_) => "an array".to_owned(),
        Json::String(text) if text.chars().nth(LONGEST).is_some() => {
            format!("{:?}…", text.chars().take(LONGEST).collect::<String>())
        }
        other => other.to_string(),
    }
}
