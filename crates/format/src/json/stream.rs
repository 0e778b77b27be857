//! Reads documents with long lists without keeping the lists: each element is parsed, passed on and dropped.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::fields::{skip_byte_order_mark, syntax_error};
use super::tree::{Tree, members, scalars};
use crate::Result;
use crate::limits::Budget;

/// Receives the elements of long lists.
pub(crate) trait ListSink {
    /// Whether the sink consumes the member with this name. It is called when the member begins, so that the last of
    /// two members with the same name counts.
    fn begins(&mut self, name: &str) -> bool;

    /// Receives the next element of the list that began last.
    fn element(&mut self, element: &Json);
}

/// Parses a document, which must be an object. Arrays that `sink` consumes are empty arrays in the result.
///
/// The budget is charged for the tree, and for the values made from it: as much again, or half of it for elements that
/// the sink consumes, since their trees are dropped.
pub(crate) fn parse_object(text: &[u8], sink: &mut dyn ListSink, budget: &mut Budget) -> Result<Json> {
    let mut deserializer = serde_json::Deserializer::from_slice(skip_byte_order_mark(text));
    let parsed = Members { sink, budget: &mut *budget }.deserialize(&mut deserializer);
    let parsed = parsed.and_then(|members| deserializer.end().map(|()| members));
    let members = parsed.map_err(|error| if budget.is_spent() { budget.error() } else { syntax_error(error) })?;
    Ok(Json::Object(members))
}

struct Members<'s> {
    sink: &'s mut dyn ListSink,
    budget: &'s mut Budget,
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

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
        let Self { sink, budget } = self;
        members(access, budget, |name, access, budget| {
            if sink.begins(name) {
                return access.next_value_seed(Elements { sink: &mut *sink, budget });
            }
            let before = budget.left();
            let value = access.next_value_seed(Tree { budget: &mut *budget })?;
            budget.charge(before.saturating_sub(budget.left())).map_err(A::Error::custom)?;
            Ok(value)
        })
    }
}

struct Elements<'s> {
    sink: &'s mut dyn ListSink,
    budget: &'s mut Budget,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Passes the elements of an array to the sink. Any other value is kept, so that the reader refuses it.
impl<'de> Visitor<'de> for Elements<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        loop {
            let before = self.budget.left();
            let Some(element) = access.next_element_seed(Tree { budget: &mut *self.budget })? else { break };
            let taken = before.saturating_sub(self.budget.left()).max(size_of::<Json>());
            self.sink.element(&element);
            drop(element);
            self.budget.release(taken);
            self.budget.charge(taken / 2).map_err(A::Error::custom)?;
        }
        Ok(Json::Array(Vec::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Json, A::Error> {
        Tree { budget: self.budget }.visit_map(access)
    }

    scalars!();

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Json, E> {
        Tree { budget: self.budget }.visit_str(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

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
            assert_eq!(
                parse_object(text.as_bytes(), &mut sink, &mut Limits::default().budget(0)).unwrap().to_string(),
                rest,
                "{text}"
            );
            assert_eq!(Json::Array(sink.0).to_string(), long, "{text}");
        }
        for text in ["[]", "{} {}", r#"{"long": [1"#, r#"{"long": [1,]}"#, ""] {
            assert!(
                parse_object(text.as_bytes(), &mut Sink::default(), &mut Limits::default().budget(0)).is_err(),
                "{text}"
            );
        }
    }
}
