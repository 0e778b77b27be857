//! Schemas as people type them: `id long not null, name string, place struct<lat: double, lon: double>`; and what
//! variants are shredded as, in the same words.

use super::{Field, ListType, MapType, PrimitiveType, Schema, StructType, Type};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::value::variant::{Kind, Shape};

impl Schema {
    /// Parses a list of columns, separated by commas: a name, a type, and then `not null` (or `required`) and
    /// `comment 'text'` where wanted. Types are those of the specification, and `list<…>`, `map<…, …>`,
    /// `struct<name type, …>`. Names with other signs are quoted with backticks or double quotes. Ids are assigned from
    /// 1, in the order of the text.
    ///
    /// # Errors
    /// [`Error::Invalid`], with the place in the text.
    pub fn from_text(text: &str) -> Result<Self> {
        let mut columns = TextReader { text, at: 0, level: 0, last_id: 0, what: "columns", small: false };
        let fields = columns.fields()?;
        match columns.peek() {
            Token::End => Self::new(0, fields),
            _ => Err(columns.wrong("expected ',', 'not null' or 'comment'")),
        }
    }
}

/// Parses one type, in the words of [`Schema::from_text`]. With `small`, also the integers of one and two bytes, as
/// unrecognized types by the names `int8` and `int16`.
fn one_type(text: &str, what: &'static str, small: bool) -> Result<Type> {
    let mut columns = TextReader { text, at: 0, level: 0, last_id: 0, what, small };
    let ty = columns.ty()?;
    match columns.peek() {
        Token::End => Ok(ty),
        _ => Err(columns.wrong("expected nothing more")),
    }
}

/// The text, and how much of it has been read.
struct TextReader<'a> {
    text: &'a str,
    /// In bytes.
    at: usize,
    level: usize,
    last_id: i32,
    /// What errors call the text.
    what: &'static str,
    /// Whether there are integers of one and two bytes.
    small: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    /// With its quotes, which are backticks or double quotes.
    Quoted(&'a str),
    /// With its single quotes.
    Text(&'a str),
    Word(&'a str),
    Sign(char),
    End,
    /// A quote without its end.
    Open,
}

const SIGNS: [char; 7] = [',', '<', '>', '(', ')', ':', '['];

impl<'a> TextReader<'a> {
    fn fields(&mut self) -> Result<Vec<Field>> {
        let mut fields = vec![self.field()?];
        while self.takes(",") {
            fields.push(self.field()?);
        }
        Ok(fields)
    }

    fn field(&mut self) -> Result<Field> {
        let id = self.next_id()?;
        let name = self.name()?;
        self.takes(":");
        let ty = self.ty()?;
        let made = if self.is_required()? { Field::required(id, name, ty) } else { Field::optional(id, name, ty) };
        let doc = if self.takes("comment") || self.takes("doc") { Some(self.doc()?) } else { None };
        Ok(Field { doc, ..made })
    }

    fn name(&mut self) -> Result<String> {
        let name = match self.peek() {
            Token::Quoted(quoted) => unquoted(quoted),
            Token::Word(word) => word.to_owned(),
            _ => String::new(),
        };
        if name.is_empty() {
            return Err(self.wrong("expected the name of a column"));
        }
        self.skip();
        Ok(name)
    }

    fn ty(&mut self) -> Result<Type> {
        let Token::Word(word) = self.peek() else { return Err(self.wrong("expected a type")) };
        let start = self.at;
        self.skip();
        // SQL has other names for lists and structs.
        let nested = word.to_ascii_lowercase();
        if matches!(nested.as_str(), "array" | "list" | "map" | "row" | "struct") && self.takes("<") {
            self.level += 1;
            let most = Limits::default().type_depth;
            if self.level > most {
                return Err(self.wrong(&format!("types are nested more than {most} levels deep")));
            }
            let made = self.nested(&nested)?;
            self.level -= 1;
            return Ok(made);
        }
        if self.small
            && let Some(name) = small_integer(&nested)
        {
            return Ok(Type::Primitive(PrimitiveType::Unrecognized(name.into())));
        }
        let text = format!("{word}{}", self.arguments()?);
        Type::parse(&text).map_err(|error| {
            self.at = start;
            self.wrong(&error.to_string())
        })
    }

    fn nested(&mut self, kind: &str) -> Result<Type> {
        let made = match kind {
            "map" => {
                let (key_id, value_id) = (self.next_id()?, self.next_id()?);
                let key = self.ty()?;
                // Keys are always required.
                self.is_required()?;
                self.expect(",")?;
                let value = self.ty()?;
                match self.is_required()? {
                    true => MapType::required(key_id, key, value_id, value).into(),
                    false => MapType::optional(key_id, key, value_id, value).into(),
                }
            }
            "array" | "list" => {
                let id = self.next_id()?;
                let element = self.ty()?;
                match self.is_required()? {
                    true => ListType::required(id, element).into(),
                    false => ListType::optional(id, element).into(),
                }
            }
            _ => StructType { fields: self.fields()? }.into(),
        };
        self.expect(">")?;
        Ok(made)
    }

    /// The brackets after the name of a type and what they hold, as in `decimal(9, 2)`.
    fn arguments(&mut self) -> Result<&'a str> {
        let closing = match self.peek() {
            Token::Sign('(') => ')',
            Token::Sign('[') => ']',
            _ => return Ok(""),
        };
        let rest = self.rest();
        let Some(end) = rest.find(closing) else { return Err(self.wrong(&format!("'{closing}' is missing"))) };
        let found = rest.get(..=end).unwrap_or_default();
        self.at += found.len();
        Ok(found)
    }

    fn is_required(&mut self) -> Result<bool> {
        if self.takes("required") {
            return Ok(true);
        }
        if self.takes("not") {
            self.expect("null")?;
            return Ok(true);
        }
        let _ = self.takes("optional") || self.takes("null");
        Ok(false)
    }

    fn doc(&mut self) -> Result<String> {
        let Token::Text(text) = self.peek() else { return Err(self.wrong("expected a text in single quotes")) };
        self.skip();
        Ok(unquoted(text))
    }

    fn next_id(&mut self) -> Result<i32> {
        self.last_id = self.last_id.checked_add(1).ok_or_else(|| Error::invalid("too many columns"))?;
        Ok(self.last_id)
    }

    /// The text from the next token on.
    fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    fn peek(&mut self) -> Token<'a> {
        let rest = self.rest();
        match rest.chars().next() {
            None => Token::End,
            Some(quote @ ('`' | '"')) => quoted(rest, quote).map_or(Token::Open, Token::Quoted),
            Some('\'') => quoted(rest, '\'').map_or(Token::Open, Token::Text),
            Some(sign) if SIGNS.contains(&sign) || sign == ']' => Token::Sign(sign),
            Some(_) => {
                let ends = |letter: char| {
                    letter.is_whitespace() || SIGNS.contains(&letter) || matches!(letter, ']' | '\'' | '`' | '"')
                };
                Token::Word(rest.split(ends).next().unwrap_or_default())
            }
        }
    }

    /// Moves past the next token.
    fn skip(&mut self) {
        self.at += match self.peek() {
            Token::Quoted(text) | Token::Text(text) | Token::Word(text) => text.len(),
            Token::Sign(sign) => sign.len_utf8(),
            Token::End | Token::Open => 0,
        };
    }

    fn takes(&mut self, expected: &str) -> bool {
        let found = match self.peek() {
            Token::Word(word) => word.eq_ignore_ascii_case(expected),
            Token::Sign(sign) => expected.chars().eq([sign]),
            _ => false,
        };
        if found {
            self.skip();
        }
        found
    }

    fn expect(&mut self, expected: &str) -> Result<()> {
        if self.takes(expected) { Ok(()) } else { Err(self.wrong(&format!("expected '{expected}'"))) }
    }

    fn wrong(&mut self, problem: &str) -> Error {
        let rest = self.rest();
        let place = match rest.is_empty() {
            true => "at the end".to_owned(),
            false => {
                let before = self.text.get(..self.at).unwrap_or_default().chars().count();
                let shown: String = rest.chars().take(20).collect();
                format!("at character {} ({shown:?})", before + 1)
            }
        };
        Error::invalid(format!("{}, {place}: {problem}", self.what))
    }
}

fn small_integer(word: &str) -> Option<&'static str> {
    match word {
        "int8" => Some("int8"),
        "int16" => Some("int16"),
        _ => None,
    }
}

/// The quoted text at the beginning, with its quotes; a doubled quote stands for itself. `None` without an end.
fn quoted(text: &str, quote: char) -> Option<&str> {
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter != quote {
            continue;
        }
        match letters.peek() {
            Some((_, next)) if *next == quote => drop(letters.next()),
            _ => return text.get(..at + quote.len_utf8()),
        }
    }
    None
}

fn unquoted(text: &str) -> String {
    let quote: String = text.chars().take(1).collect();
    let inner = text.strip_prefix(&quote).and_then(|text| text.strip_suffix(&quote)).unwrap_or(text);
    inner.replace(&quote.repeat(2), &quote)
}

/// Maximum nesting of a given shape.
const LEVELS: usize = 50;

/// Parses what variants are shredded as: `struct<a: long, b: list<decimal(9, 2)>>`. Besides the words of schemas there
/// are `int8` and `int16`.
///
/// # Errors
/// `Invalid`, with the place in the text, for what is not a type that variants can be shredded as.
pub fn parse_shape(text: &str) -> Result<Shape> {
    shape(&one_type(text, "the type of a shredded variant", true)?, LEVELS)
}

fn shape(ty: &Type, levels: usize) -> Result<Shape> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(Error::invalid(format!("a variant is shredded {LEVELS} levels deep, no deeper")));
    };
    Ok(match ty {
        Type::Primitive(ty) => Shape::Primitive(kind(ty).ok_or_else(|| refused(ty))?),
        Type::List(list) => Shape::Array(Box::new(shape(&list.element.ty, levels)?)),
        Type::Struct(inner) => {
            let field = |field: &Field| Ok((field.name.clone(), shape(&field.ty, levels)?));
            let mut fields = inner.fields.iter().map(field).collect::<Result<Vec<_>>>()?;
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            let twice = fields.windows(2).find_map(|pair| match pair {
                [(a, _), (b, _)] if a == b => Some(a),
                _ => None,
            });
            if let Some(name) = twice {
                return Err(Error::invalid(format!("the type of a shredded variant has two fields {name:?}")));
            }
            Shape::Object(fields)
        }
        Type::Map(_) | Type::Variant => return Err(refused(ty)),
    })
}

fn refused(ty: &impl std::fmt::Display) -> Error {
    Error::invalid(format!("a variant cannot be shredded as {ty}: variants have no such values"))
}

fn kind(ty: &PrimitiveType) -> Option<Kind> {
    use PrimitiveType as T;
    Some(match ty {
        T::Boolean => Kind::Boolean,
        T::Unrecognized(name) if **name == *"int8" => Kind::Int8,
        T::Unrecognized(name) if **name == *"int16" => Kind::Int16,
        T::Int => Kind::Int32,
        T::Long => Kind::Int64,
        T::Float => Kind::Float,
        T::Double => Kind::Double,
        T::Decimal { precision, scale } if (1..=38).contains(precision) && scale <= precision => {
            Kind::Decimal { precision: *precision, scale: *scale }
        }
        T::Date => Kind::Date,
        T::Time => Kind::Time,
        T::Timestamp => Kind::Timestamp { is_utc: false },
        T::Timestamptz => Kind::Timestamp { is_utc: true },
        T::TimestampNs => Kind::TimestampNanos { is_utc: false },
        T::TimestamptzNs => Kind::TimestampNanos { is_utc: true },
        T::String => Kind::String,
        T::Binary => Kind::Binary,
        T::Uuid => Kind::Uuid,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_words() {
        for (text, fields) in [
            ("id long", vec!["1: id: optional long"]),
            ("id LONG NOT NULL", vec!["1: id: required long"]),
            ("id: long required, b int optional", vec!["1: id: required long", "2: b: optional int"]),
            (
                "`a,``b` string, \"say \"\"x\"\"\" binary",
                vec!["1: a,`b: optional string", "2: say \"x\": optional binary"],
            ),
            (" \n id\n long\n,\n b int \n", vec!["1: id: optional long", "2: b: optional int"]),
            ("a decimal( 9 , 2 ), b fixed[16]", vec!["1: a: optional decimal(9, 2)", "2: b: optional fixed[16]"]),
        ] {
            let found: Vec<String> =
                Schema::from_text(text).unwrap().fields().iter().map(ToString::to_string).collect();
            assert_eq!(found, fields, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, words) in [
            ("", "at the end: expected the name of a column"),
            ("größe bigint", "at character 7 (\"bigint\"): not a type"),
            ("id long name string", "at character 9 (\"name string\"): expected ','"),
            ("`id long", "at character 1 (\"`id long\"): expected the name of a column"),
            ("id long comment 'x", "expected a text in single quotes"),
            ("id decimal(9", "')' is missing"),
            ("id map<int>", "at character 11 (\">\"): expected ','"),
        ] {
            let error = Schema::from_text(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
        let deep = format!("x {}int{}", "list<".repeat(2000), ">".repeat(2000));
        assert!(Schema::from_text(&deep).unwrap_err().to_string().contains("levels deep"));
    }

    #[test]
    fn shapes_in_words() {
        for (text, shown) in [
            ("long", "long"),
            ("struct<b: string, a: long>", "struct<a: long, b: string>"),
            ("list<INT8>", "list<int8>"),
            ("array<struct<`x y` decimal(9,2), s int16>>", "list<struct<s: int16, `x y`: decimal(9, 2)>>"),
            (
                "struct<t: timestamptz_ns, u: uuid, d: date, c: time>",
                "struct<c: time, d: date, t: timestamptz_ns, u: uuid>",
            ),
        ] {
            let shape = parse_shape(text).unwrap();
            assert_eq!(shape.to_string(), shown);
            assert_eq!(parse_shape(shown).unwrap(), shape);
        }
        let deep = format!("{}int{}", "list<".repeat(60), ">".repeat(60));
        for (text, words) in [
            ("map<string, int>", "variants have no such values"),
            ("fixed[4]", "variants have no such values"),
            ("unknown", "variants have no such values"),
            ("struct<a: int, a: long>", "two fields \"a\""),
            ("struct<a: int", "at the end: expected '>'"),
            ("long long", "at character 6 (\"long\"): expected nothing more"),
            (&deep, "levels deep"),
        ] {
            let error = parse_shape(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
