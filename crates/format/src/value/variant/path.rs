//! Paths to values inside variants: `$.a.b[0]` or `$['a']['b'][0]` (RFC 9535, singular queries).

use std::fmt;
use std::fmt::Write as _;

use crate::error::{Error, Result};

use super::node::{Node, Variant};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// A field of an object.
    Field(String),
    /// An element of an array, counted from 0.
    Element(usize),
}

/// Steps from the root of a variant to a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Path(Vec<Step>);

impl Path {
    /// Creates a path from steps.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self(steps)
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether all steps are fields, so that the path can have bounds.
    #[must_use]
    pub fn is_of_fields(&self) -> bool {
        self.0.iter().all(|step| matches!(step, Step::Field(_)))
    }

    /// Parses `$`, followed by any number of `.name`, `['name']`, `["name"]` and `[number]`.
    ///
    /// # Errors
    /// `Invalid`, with the position of the error.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |rest: &str, message: &str| {
            let at = text.len().saturating_sub(rest.len());
            let character = text.get(..at).map_or(0, |head| head.chars().count()) + 1;
            Error::invalid(format!("path {text:?} at character {character}: {message}"))
        };
        let mut rest = text.strip_prefix('$').ok_or_else(|| wrong(text, "expected $"))?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(tail) = rest.strip_prefix('.') {
                let end = tail.find(|c| !is_name(c)).unwrap_or(tail.len());
                let (name, after) = tail.split_at(end);
                if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                    return Err(wrong(tail, "expected the name of a field: letters, digits and _, or ['name']"));
                }
                (Step::Field(name.to_owned()), after)
            } else if let Some(tail) = rest.strip_prefix('[') {
                bracket(tail).ok_or_else(|| wrong(tail, "expected ['name'] or [number]"))?
            } else {
                return Err(wrong(rest, "expected . or ["));
            };
            steps.push(step);
            rest = after;
        }
        Ok(Self(steps))
    }

    /// Returns the value at this path; `None` if a field or element is absent, or a step does not fit its value.
    ///
    /// # Errors
    /// `Corrupt` if the variant cannot be read on the way.
    pub fn find<'a>(&self, variant: Variant<'a>) -> Result<Option<Variant<'a>>> {
        let mut found = variant;
        for step in &self.0 {
            let next = match (found.node(), step) {
                (Ok(Node::Object(object)), Step::Field(name)) => object.get(name)?,
                (Ok(Node::Array(elements)), Step::Element(at)) => elements.get(*at)?,
                (Ok(_) | Err(Error::Unsupported(_)), _) => None,
                (Err(error), _) => return Err(error),
            };
            match next {
                Some(next) => found = next,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

/// Writes the normalized path, `$['a']['b'][0]`, which names fields in bounds of variants.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('$')?;
        for step in &self.0 {
            match step {
                Step::Element(at) => write!(f, "[{at}]")?,
                Step::Field(name) => {
                    f.write_str("['")?;
                    for c in name.chars() {
                        match c {
                            '\u{8}' => f.write_str("\\b")?,
                            '\t' => f.write_str("\\t")?,
                            '\u{c}' => f.write_str("\\f")?,
                            '\n' => f.write_str("\\n")?,
                            '\r' => f.write_str("\\r")?,
                            '\'' => f.write_str("\\'")?,
                            '\\' => f.write_str("\\\\")?,
                            '\0'..='\u{1f}' => write!(f, "\\u{:04x}", u32::from(c))?,
                            c => f.write_char(c)?,
                        }
                    }
                    f.write_str("']")?;
                }
            }
        }
        Ok(())
    }
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || c >= '\u{80}'
}

/// Parses what is in brackets; also returns the text after the closing one.
fn bracket(text: &str) -> Option<(Step, &str)> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        let (number, rest) = text.split_once(']')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = number == "0" || !number.starts_with('0');
        return (is_number && is_canonical)
            .then_some(())
            .and_then(|()| Some((Step::Element(number.parse().ok()?), rest)));
    };
    let mut name = String::new();
    let mut chars = text.get(1..)?.chars();
    loop {
        match chars.next()? {
            c if c == quote => break,
            '\\' => name.push(match chars.next()? {
                'b' => '\u{8}',
                't' => '\t',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                c @ ('\'' | '"' | '\\' | '/') => c,
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    let is_hex = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                    char::from_u32(is_hex.then(|| u32::from_str_radix(&digits, 16).ok())??)?
                }
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    Some((Step::Field(name), chars.as_str().strip_prefix(']')?))
}
