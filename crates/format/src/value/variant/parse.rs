//! Variants from JSON text, with the types that Spark's `parse_json` gives: integers are the smallest that hold the
//! number, numbers with a point are decimals of up to 38 digits, all others are doubles.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

use super::DEPTH;
use super::node::Node;
use super::tree::{Primitive, Tree};

/// Maximum digits of a decimal.
const DIGITS: usize = 38;

/// Parses one JSON value.
///
/// # Errors
/// `Invalid`, with the place in the text: what is not JSON, an object with two fields of one name, nesting deeper than
/// [`DEPTH`], a number beyond those of doubles.
pub fn from_json(text: &str) -> Result<Tree> {
    let mut parser = Parser { text, at: 0 };
    let tree = parser.value()?;
    match parser.peek() {
        None => Ok(tree),
        Some(_) => Err(parser.wrong("expected the end of the text")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
}

/// An object or array that is not complete; the object has the name of the field whose value comes next.
enum Open {
    Object(BTreeMap<String, Tree>, String),
    Array(Vec<Tree>),
}

impl<'a> Parser<'a> {
    /// Reads a value with all values in it; no recursion, because texts may be nested deeply.
    fn value(&mut self) -> Result<Tree> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            if open.len() > DEPTH {
                return Err(self.wrong(&format!("a variant has {DEPTH} levels or fewer")));
            }
            let mut value = match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    if !self.takes(b'}') {
                        let fields = BTreeMap::new();
                        let name = self.name(&fields)?;
                        open.push(Open::Object(fields, name));
                        continue;
                    }
                    Tree::Object(BTreeMap::new())
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.takes(b']') {
                        open.push(Open::Array(Vec::new()));
                        continue;
                    }
                    Tree::Array(Vec::new())
                }
                _ => self.scalar()?,
            };
            loop {
                value = match open.pop() {
                    None => return Ok(value),
                    Some(Open::Array(mut elements)) => {
                        elements.push(value);
                        if self.takes(b',') {
                            open.push(Open::Array(elements));
                            break;
                        }
                        if !self.takes(b']') {
                            return Err(self.wrong("expected ',' or ']'"));
                        }
                        Tree::Array(elements)
                    }
                    Some(Open::Object(mut fields, name)) => {
                        fields.insert(name, value);
                        if self.takes(b',') {
                            let name = self.name(&fields)?;
                            open.push(Open::Object(fields, name));
                            break;
                        }
                        if !self.takes(b'}') {
                            return Err(self.wrong("expected ',' or '}'"));
                        }
                        Tree::Object(fields)
                    }
                };
            }
        }
    }

    fn scalar(&mut self) -> Result<Tree> {
        match self.peek() {
            Some(b'"') => return Ok(Tree::Primitive(Primitive::String(self.string()?))),
            Some(b'-' | b'0'..=b'9') => return self.number(),
            _ => {}
        }
        for (word, node) in [("null", Node::Null), ("true", Node::Boolean(true)), ("false", Node::Boolean(false))] {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(Tree::fixed(node));
            }
        }
        Err(self.wrong("expected a JSON value"))
    }

    /// Reads the name of a field that the object does not have yet, and the colon behind it.
    fn name(&mut self, fields: &BTreeMap<String, Tree>) -> Result<String> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong("expected the name of a field in double quotes"));
        }
        let start = self.at;
        let name = self.string()?;
        if fields.contains_key(&name) {
            self.at = start;
            return Err(self.wrong(&format!("the object has two fields {name:?}")));
        }
        if !self.takes(b':') {
            return Err(self.wrong("expected ':'"));
        }
        Ok(name)
    }

    fn string(&mut self) -> Result<String> {
        let bytes = self.rest().as_bytes();
        let mut end = 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err(self.wrong("a string without its end")),
            }
        }
        let quoted = self.rest().get(..=end).unwrap_or_default();
        // Escapes are those of JSON.
        let text = serde_json::from_str(quoted).map_err(|_| self.wrong("a string with an invalid character or escape"));
        self.at += end + 1;
        text
    }

    fn number(&mut self) -> Result<Tree> {
        let rest = self.rest();
        let ends = |letter: char| !matches!(letter, '-' | '+' | '.' | 'e' | 'E' | '0'..='9');
        let text = rest.split(ends).next().unwrap_or_default();
        let wrong = |parser: &mut Self| parser.wrong("not a number of JSON");
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
            None => (unsigned, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_whole = is_digits(whole) && (whole == "0" || !whole.starts_with('0'));
        if !is_whole || !fraction.is_none_or(is_digits) || !exponent.is_none_or(is_digits) {
            return Err(wrong(self));
        }
        let scale = fraction.map_or(0, str::len);
        let unscaled =
            format!("{}{whole}{}", if text.starts_with('-') { "-" } else { "" }, fraction.unwrap_or_default());
        let digits = unscaled.trim_start_matches(['-', '0']).len();
        let tree = match (exponent, fraction) {
            (None, None) if unscaled.parse::<i64>().is_ok() => Tree::integer(unscaled.parse().unwrap_or_default()),
            (None, _) if digits <= DIGITS && scale <= DIGITS => match unscaled.parse() {
                Ok(unscaled) => Tree::decimal(unscaled, u8::try_from(scale).unwrap_or_default())?,
                Err(_) => return Err(wrong(self)),
            },
            _ => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Tree::fixed(Node::Double(number)),
                _ => return Err(self.wrong("a number beyond those of a double")),
            },
        };
        self.at += text.len();
        Ok(tree)
    }

    /// The text from the next token on.
    fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn peek(&mut self) -> Option<u8> {
        self.rest().bytes().next()
    }

    fn takes(&mut self, expected: u8) -> bool {
        let found = self.peek() == Some(expected);
        self.at += usize::from(found);
        found
    }

    fn wrong(&mut self, problem: &str) -> Error {
        let place = match self.rest().is_empty() {
            true => "at the end".to_owned(),
            false => format!("at character {}", self.text.get(..self.at).unwrap_or_default().chars().count() + 1),
        };
        Error::invalid(format!("JSON, {place}: {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::variant::{Variant, human};

    #[test]
    fn json_has_the_types_that_spark_gives() {
        for (text, shown) in [
            (" 5 ", "Variant(type=INT8, value=5)"),
            ("-129", "Variant(type=INT16, value=-129)"),
            ("9223372036854775807", "Variant(type=INT64, value=9223372036854775807)"),
            ("9223372036854775808", "Variant(type=DECIMAL16, value=9223372036854775808)"),
            ("1.50", "Variant(type=DECIMAL4, value=1.50)"),
            ("-0.5", "Variant(type=DECIMAL4, value=-0.5)"),
            ("1e3", "Variant(type=DOUBLE, value=1000.0)"),
            ("100000000000000000000000000000000000000", "Variant(type=DOUBLE, value=1.0E38)"),
            ("true", "Variant(type=BOOLEAN_TRUE, value=true)"),
            ("null", "Variant(type=NULL, value=null)"),
            (r#""a\"\u00e9\n\ud83d\ude00""#, "Variant(type=STRING, value=a\"é\n😀)"),
            ("[ ]", "VariantArray([])"),
            (
                r#"{"b" : [1, {}], "a": false}"#,
                "VariantObject(fields={a: Variant(type=BOOLEAN_FALSE, value=false), b: \
              VariantArray([Variant(type=INT8, value=1), VariantObject(fields={})])})",
            ),
        ] {
            let (metadata, value) = from_json(text).unwrap().encode().unwrap();
            assert_eq!(human::to_human_string(&Variant::new(&metadata, &value).unwrap()).unwrap(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let deep = format!("{}1{}", "[".repeat(1002), "]".repeat(1002));
        for (text, words) in [
            ("", "at the end: expected a JSON value"),
            ("{\"a\": 1, \"a\": 2}", "at character 10: the object has two fields \"a\""),
            ("{a: 1}", "at character 2: expected the name of a field"),
            ("{\"a\" 1}", "expected ':'"),
            ("[1 2]", "at character 4: expected ',' or ']'"),
            ("[1, ]", "expected a JSON value"),
            ("01", "not a number"),
            ("1.", "not a number"),
            ("1e999", "beyond those of a double"),
            ("\"é", "at character 1: a string without its end"),
            ("\"\\x\"", "invalid character or escape"),
            ("NaN", "expected a JSON value"),
            ("1 1", "at character 3: expected the end"),
            (&deep, "1000 levels or fewer"),
        ] {
            let error = from_json(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
