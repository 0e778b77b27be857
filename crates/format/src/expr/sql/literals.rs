//! Parses literals in SQL-like text: `5`, `1.5e3`, `'text'`, `DATE '2020-01-01'`, `CAST('1' AS decimal(9, 2))`.

use crate::error::Result;
use crate::types::{PrimitiveType, Type};
use crate::value::{Value, calendar, decimal};

use super::super::convert::{Converted, parse_hex, parse_zoned};
use super::super::lexer::TokenKind;
use super::super::literal::Literal;
use super::super::predicate::Term;
use super::Parser;

impl Parser<'_> {
    /// Parses a literal that a term is compared with.
    pub(super) fn literal_beside(&mut self, term: &Term) -> Result<Literal> {
        let start = self.next;
        let literal = self.literal()?;
        self.beside(term, literal, start)
    }

    /// Parses a literal.
    pub(super) fn literal(&mut self) -> Result<Literal> {
        let start = self.next;
        match self.advance() {
            TokenKind::Text(text) => Ok(Literal::string(text.as_ref())),
            TokenKind::Number(digits) => self.number(start, "", digits),
            TokenKind::Symbol(sign @ ("-" | "+")) => match self.advance() {
                TokenKind::Number(digits) => self.number(start, sign, digits),
                _ => Err(self.error_at(start, "a number is expected after the sign")),
            },
            TokenKind::Word(word) => match (word.to_ascii_lowercase().as_str(), self.peek()) {
                ("true", _) => Ok(Literal::boolean(true)),
                ("false", _) => Ok(Literal::boolean(false)),
                ("null", _) => Err(self.error_at(start, "nothing compares to NULL: use IS NULL or IS NOT NULL")),
                ("cast", TokenKind::Symbol("(")) => self.cast(start),
                (kind, TokenKind::Text(text)) => {
                    self.next += 1;
                    typed(kind, text).ok_or_else(|| self.error_at(start, &format!("{text:?} is not a {word}")))
                }
                _ => Err(self.error_at(start, "a literal is expected here")),
            },
            _ => {
                let quoted = self.double_quoted(start).unwrap_or_default();
                Err(self.error_at(start, &format!("a literal is expected here{quoted}")))
            }
        }
    }

    /// Parses a number: a long, a double, or a decimal if a double would lose digits.
    fn number(&self, start: usize, sign: &str, digits: &str) -> Result<Literal> {
        let sign = if sign == "-" { "-" } else { "" };
        let text = format!("{sign}{digits}");
        if let Ok(number) = text.parse() {
            return Ok(Literal::long(number));
        }
        let exponent = digits.contains(['e', 'E']);
        let significant = digits.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count();
        if (exponent || digits.contains('.') && significant <= 15)
            && let Ok(number) = text.parse::<f64>()
        {
            return Literal::double(number).map_err(|error| self.error_at(start, &error.to_string()));
        }
        let decimal = decimal::parse(&text)
            .and_then(|parsed| Some(Literal::decimal(parsed.unscaled, u8::try_from(parsed.scale).ok()?)));
        decimal.ok_or_else(|| self.error_at(start, "a number of more than 38 digits"))
    }

    /// Parses `CAST(literal AS type)`.
    fn cast(&mut self, start: usize) -> Result<Literal> {
        self.expect_symbol("(")?;
        let literal = self.literal()?;
        self.expect_word("as")?;
        let TokenKind::Word(name) = self.advance() else { return Err(self.error_at(start, "CAST needs a type")) };
        let mut numbers = Vec::new();
        if self.eat_symbol("(") {
            while let Some(number) = self.parameter_value()? {
                numbers.push(number);
                self.eat_symbol(",");
            }
            self.expect_symbol(")")?;
        }
        self.expect_symbol(")")?;
        cast(&literal, &name.to_ascii_lowercase(), &numbers)
            .ok_or_else(|| self.error_at(start, &format!("{literal} cannot be cast to {name}")))
    }
}

/// Converts a typed literal such as `DATE '2020-01-01'`.
fn typed(kind: &str, text: &str) -> Option<Literal> {
    use PrimitiveType as P;
    let convert = |ty: PrimitiveType| match Literal::string(text).convert(&Type::Primitive(ty.clone())) {
        Ok(Converted::Value(value)) => Literal::new(ty, value).ok(),
        _ => None,
    };
    match kind {
        "x" | "binary" => parse_hex(text).map(Literal::binary),
        "date" => convert(P::Date),
        "time" => convert(P::Time),
        "uuid" => convert(P::Uuid),
        "timestamp" | "timestamptz" | "timestamp_ntz" | "timestamp_ltz" | "timestamp_ns" | "timestamptz_ns" => {
            timestamp(text, kind)
        }
        "decimal" => {
            let parsed = decimal::parse(text)?;
            Some(Literal::decimal(parsed.unscaled, u8::try_from(parsed.scale).ok()?))
        }
        "float" => Literal::new(P::Float, Value::Float(text.parse().ok()?)).ok(),
        "double" => Literal::double(text.parse().ok()?).ok(),
        "int" => Literal::new(P::Int, Value::Int(text.parse().ok()?)).ok(),
        "long" => text.parse().ok().map(Literal::long),
        _ if kind.starts_with("fixed") => parse_hex(text).map(Literal::binary),
        _ => None,
    }
}

/// Parses a timestamp in SQL form: a space instead of the `T`, ` UTC` as the offset, or the date alone. Without a zone
/// it is UTC.
fn timestamp(text: &str, kind: &str) -> Option<Literal> {
    let (text, utc) = match text.strip_suffix(" UTC") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let mut iso = text.trim().replacen(' ', "T", 1);
    if !iso.contains(['T', 't']) {
        iso.push_str("T00:00:00");
    }
    let (moment, zoned) = match calendar::parse_timestamp(&iso) {
        Some(moment) => (moment, utc),
        None => (parse_zoned(&iso)?, true),
    };
    let zoned = zoned || matches!(kind, "timestamptz" | "timestamptz_ns" | "timestamp_ltz");
    // More than six fractional digits mean nanoseconds, whatever the type's name.
    let nanos = kind.ends_with("_ns") || moment.1 % 1000 != 0;
    let (ty, value) = match (nanos, zoned) {
        (false, false) => (PrimitiveType::Timestamp, calendar::to_micros(moment)?),
        (false, true) => (PrimitiveType::Timestamptz, calendar::to_micros(moment)?),
        (true, false) => (PrimitiveType::TimestampNs, calendar::to_nanos(moment)?),
        (true, true) => (PrimitiveType::TimestamptzNs, calendar::to_nanos(moment)?),
    };
    Literal::new(ty, Value::Long(value)).ok()
}

/// Casts a literal to an SQL type.
fn cast(literal: &Literal, name: &str, parameters: &[u32]) -> Option<Literal> {
    use PrimitiveType as P;
    if let Value::String(text) = literal.value() {
        return match name {
            "string" | "varchar" => Some(literal.clone()),
            "boolean" => text.to_ascii_lowercase().parse().ok().map(Literal::boolean),
            "bigint" | "long" => text.parse().ok().map(Literal::long),
            name => typed(name, text),
        };
    }
    let ty = match (name, parameters) {
        ("boolean", []) => P::Boolean,
        ("int" | "integer", []) => P::Int,
        ("bigint" | "long", []) => P::Long,
        ("float" | "real", []) => P::Float,
        ("double", []) => P::Double,
        ("date", []) => P::Date,
        ("timestamp", []) => P::Timestamp,
        ("decimal" | "numeric", [precision]) => P::Decimal { precision: u8::try_from(*precision).ok()?, scale: 0 },
        ("decimal" | "numeric", [precision, scale]) => {
            P::Decimal { precision: u8::try_from(*precision).ok()?, scale: u8::try_from(*scale).ok()? }
        }
        _ => return None,
    };
    match literal.convert(&Type::Primitive(ty.clone())) {
        Ok(Converted::Value(value)) => Literal::new(ty, value).ok(),
        _ => None,
    }
}
