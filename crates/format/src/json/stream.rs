//! Documents with long lists, read without holding the lists: each element is parsed, handed over and dropped.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json};

use super::fields::{skip_byte_order_mark, syntax_error};
use crate::Result;

/// What takes the elements of long lists.
pub(crate) trait ListSink {
    /// Whether the member of this name is taken here; told when it begins, so that of two the last one counts.
    fn begins(&mut self, name: &str) -> bool;

    /// The next element of the list that has begun last.
    fn element(&mut self, element: &Json);
}

/// Parses a document that must be an object. Members that `sink` takes are empty arrays in the result, if they are arrays.
pub(crate) fn parse_object(text: &[u8], sink: &mut dyn ListSink) -> Result<Json> {
    let mut deserializer = serde_json::Deserializer::from_slice(skip_byte_order_mark(text));
    let members = Members { sink }.deserialize(&mut deserializer).map_err(syntax_error)?;
    deserializer.end().map_err(syntax_error)?;
    Ok(Json::Object(members))
}

struct Members<'s> {
    sink: &'s mut dyn ListSink,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Map<String, Json>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Map<String, Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            let value = match self.sink.begins(&name) {
                true => access.next_value_seed(Elements { sink: &mut *self.sink })?,
                false => access.next_value()?,
            };
            members.insert(name, value);
        }
        Ok(members)
    }
}

struct Elements<'s> {
    sink: &'s mut dyn ListSink,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// An array goes to the sink; what is no array is a value as ever, for the reader to refuse.
impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        while let Some(element) = access.next_element::<Json>()? {
            self.sink.element(&element);
        }
        Ok(Json::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Json, A::Error> {
        Map::deserialize(MapAccessDeserializer::new(access)).map(Json::Object)
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Sink(Vec<Json>);

    impl ListSink for Sink {
        fn begins(&mut self, name: &str) -> bool {
            let taken = name == "long";
            if taken {
                self.0.clear();
            }
            taken
        }

        fn element(&mut self, element: &Json) {
            self.0.push(element.clone());
        }
    }

    #[test]
    fn lists_are_handed_over_and_all_else_is_as_ever() {
        let cases = [
            (r#"{"a": [1], "long": [1, {"b": [2]}, null]}"#, r#"{"a":[1],"long":[]}"#, r#"[1,{"b":[2]},null]"#),
            (r#"{"long": [1, 2], "long": [3]}"#, r#"{"long":[]}"#, "[3]"),
            (r#"{"long": {"a": [1.5, "x"]}}"#, r#"{"long":{"a":[1.5,"x"]}}"#, "[]"),
            (r#"{"long": "x", "b": -1}"#, r#"{"long":"x","b":-1}"#, "[]"),
            (r#"{"long": null}"#, r#"{"long":null}"#, "[]"),
            (r#"{"long": -7}"#, r#"{"long":-7}"#, "[]"),
        ];
        for (text, rest, long) in cases {
            let mut sink = Sink::default();
            assert_eq!(parse_object(text.as_bytes(), &mut sink).unwrap().to_string(), rest, "{text}");
            assert_eq!(Json::Array(sink.0).to_string(), long, "{text}");
        }
        for text in ["[]", "{} {}", r#"{"long": [1"#, r#"{"long": [1,]}"#, ""] {
            assert!(parse_object(text.as_bytes(), &mut Sink::default()).is_err(), "{text}");
        }
    }
}
