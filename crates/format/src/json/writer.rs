//! Writes objects field by field, in the order of the calls.

use serde_json::{Map, Value as Json};

use super::StringMap;

/// An object under construction, whose fields keep the order of the calls.
#[derive(Default)]
pub(crate) struct Writer(Map<String, Json>);

impl Writer {
    /// Adds a field.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<Json>) -> &mut Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field unless the value is `None`.
    pub(crate) fn put_some(&mut self, name: &str, value: Option<impl Into<Json>>) -> &mut Self {
        if let Some(value) = value {
            self.put(name, value);
        }
        self
    }

    /// Adds fields of a newer writer; they never replace a field that is already written.
    pub(crate) fn put_unknown(&mut self, unknown: &Map<String, Json>) -> &mut Self {
        for (name, value) in unknown {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }

    /// Returns the object.
    pub(crate) fn finish(&mut self) -> Json {
        Json::Object(std::mem::take(&mut self.0))
    }
}

/// Writes a map of strings as an object.
pub(crate) fn write_strings(map: &StringMap) -> Json {
    map.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect::<Map<_, _>>().into()
}
