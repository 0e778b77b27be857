//! Parses JSON values, each charged to a budget before it is allocated: a byte of text can become a hundred bytes in
//! memory.

use std::fmt;
use std::mem::size_of;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::fields::{skip_byte_order_mark, syntax_error};
use crate::limits::Budget;
use crate::{Limits, Result};

/// Memory of an array element; arrays grow by doubling.
const ELEMENT: usize = 2 * size_of::<Json>();
/// Memory of an object's member, including its entry in the object's index.
const MEMBER: usize = 2 * (size_of::<String>() + size_of::<Json>() + 2 * size_of::<usize>());
/// Overhead of a heap allocation.
const ALLOCATION: usize = 16;

/// Parses a complete document. The depth is limited (128, by `serde_json`), and so is the memory, by the budget for a
/// document of this length.
pub fn parse(text: &[u8]) -> Result<Json> {
    parse_within(text, &mut Limits::default().budget(text.len()))
}

/// Parses a complete document, and charges its memory to a budget.
pub fn parse_within(text: &[u8], budget: &mut Budget) -> Result<Json> {
    let mut deserializer = serde_json::Deserializer::from_slice(skip_byte_order_mark(text));
    let tree = Tree { budget: &mut *budget }.deserialize(&mut deserializer);
    let parsed = tree.and_then(|json| deserializer.end().map(|()| json));
    parsed.map_err(|error| if budget.is_spent() { budget.error() } else { syntax_error(error) })
}

/// Visitor methods for values that need no heap memory.
macro_rules! scalars {
    () => {
        scalars!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

        fn visit_unit<E>(self) -> Result<Json, E> {
            Ok(Json::Null)
        }
    };
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E>(self, value: $type) -> Result<Json, E> {
            Ok(value.into())
        })*
    };
}
pub(super) use scalars;

/// A value to parse within a budget.
pub(super) struct Tree<'b> {
    pub(super) budget: &'b mut Budget,
}

impl Tree<'_> {
    fn charge<E: serde::de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.budget.charge(bytes).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Json, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = access.next_element_seed(Tree { budget: &mut *self.budget })? {
            self.charge(ELEMENT)?;
            elements.push(element);
        }
        Ok(Json::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Json, A::Error> {
        members(access, self.budget, |_, access, budget| access.next_value_seed(Tree { budget })).map(Json::Object)
    }

    scalars!();

    fn visit_str<E: serde::de::Error>(mut self, value: &str) -> Result<Json, E> {
        self.charge(value.len() + ALLOCATION)?;
        Ok(value.into())
    }
}

/// Parses the members of an object; `value` parses each value, and gets its name.
pub(super) fn members<'de, A: MapAccess<'de>>(
    mut access: A,
    budget: &mut Budget,
    mut value: impl FnMut(&str, &mut A, &mut Budget) -> Result<Json, A::Error>,
) -> Result<Map<String, Json>, A::Error> {
    let mut members = Map::new();
    while let Some(name) = access.next_key::<String>()? {
        budget.charge(MEMBER + ALLOCATION + name.len()).map_err(A::Error::custom)?;
        let value = value(&name, &mut access, budget)?;
        members.insert(name, value);
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(text: &str, least_memory: usize) -> Result<Json> {
        let limits = Limits { least_memory, memory_ratio: 0, most_memory: 0, ..Limits::default() };
        // The ratio is 0, so that the larger limit for large files does not apply either.
        parse_within(text.as_bytes(), &mut limits.with_memory(least_memory).budget(0))
    }

    #[test]
    fn values_are_those_of_serde_json() {
        for text in [r#"{"a":[1,-2,3.5,null,true,"x",{"b":{}}],"c":"é\n","a":[]}"#, "[]", "7", "\"\"", "null"] {
            let expected: Json = serde_json::from_str(text).unwrap();
            assert_eq!(within(text, 1 << 20).unwrap(), expected, "{text}");
        }
        for text in ["", "{", "[1,]", "{} {}", "{\"a\" 1}"] {
            let error = within(text, 1 << 20).unwrap_err().to_string();
            assert!(error.contains("not valid JSON"), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_text_becomes_is_charged() {
        for text in [
            format!("[{}1]", "1,".repeat(1000)),
            format!("[{}[]]", "[],".repeat(1000)),
            format!("[{}{{}}]", "{},".repeat(1000)),
            format!("[{}\"\"]", "\"\",".repeat(1000)),
            format!("{{{}\"z\":0}}", (0..1000).map(|n| format!("\"{n}\":0,")).collect::<String>()),
            format!("\"{}\"", "x".repeat(100_000)),
        ] {
            let error = within(&text, 70_000).unwrap_err().to_string();
            assert!(error.contains("70000 bytes of memory"), "{error}");
            assert!(within(&text, 1 << 20).is_ok());
        }
    }
}
