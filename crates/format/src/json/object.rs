//! The members of an object, each read as the kind that it must have.

use serde_json::{Map, Value as Json};

use crate::error::{Error, Result};

/// The members of a JSON object.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a>(&'a Map<String, Json>);

impl<'a> Object<'a> {
    /// The object that `json` must be; `what` names it for the error.
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

    /// The member, which may be missing; `null` is the same as missing.
    pub fn get(self, key: &str) -> Option<&'a Json> {
        self.0.get(key).filter(|json| !json.is_null())
    }

    /// The member, which must be there and not `null`.
    pub fn required(self, key: &str) -> Result<&'a Json> {
        self.get(key).ok_or_else(|| Error::corrupt("", format!("`{key}` is missing")))
    }

    /// A 32-bit integer.
    pub fn int(self, key: &str) -> Result<i32> {
        read(self.required(key)?, key, "a 32-bit integer", as_int)
    }

    /// A 32-bit integer that may be missing.
    pub fn optional_int(self, key: &str) -> Result<Option<i32>> {
        self.get(key).map(|json| read(json, key, "a 32-bit integer", as_int)).transpose()
    }

    /// A 64-bit integer.
    pub fn long(self, key: &str) -> Result<i64> {
        read(self.required(key)?, key, "a 64-bit integer", Json::as_i64)
    }

    /// A 64-bit integer that may be missing.
    pub fn optional_long(self, key: &str) -> Result<Option<i64>> {
        self.get(key).map(|json| read(json, key, "a 64-bit integer", Json::as_i64)).transpose()
    }

    /// `true` or `false`.
    pub fn boolean(self, key: &str) -> Result<bool> {
        read(self.required(key)?, key, "true or false", Json::as_bool)
    }

    /// A string.
    pub fn string(self, key: &str) -> Result<&'a str> {
        read(self.required(key)?, key, "a string", Json::as_str)
    }

    /// A string that may be missing.
    pub fn optional_string(self, key: &str) -> Result<Option<&'a str>> {
        self.get(key).map(|json| read(json, key, "a string", Json::as_str)).transpose()
    }

    /// An array.
    pub fn array(self, key: &str) -> Result<&'a [Json]> {
        read(self.required(key)?, key, "an array", array)
    }

    /// An array that may be missing.
    pub fn optional_array(self, key: &str) -> Result<Option<&'a [Json]>> {
        self.get(key).map(|json| read(json, key, "an array", array)).transpose()
    }

    /// An array of 32-bit integers that may be missing.
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

/// A value for an error message: short, whatever was in the document.
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
