//! Parses SQL-like text: `id > 5 AND day(ts) = DATE '2020-01-01' OR name LIKE 'ab%'`.
//!
//! A predicate has a column, or a transform of a column, on one side and literals on the other. `AND` binds tighter
//! than `OR`, and `NOT` tighter than both.

mod literals;
mod paths;
pub(super) mod periods;

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::transform::Transform;
use crate::types::{PrimitiveType, Type};
use crate::value::Value;
use crate::value::envelope::Envelope;

use super::condition::{ColumnComparison, Condition, ConditionPredicate};
use super::convert::Converted;
use super::lexer::{Token, TokenKind, place, tokens};
use super::literal::Literal;
use super::predicate::{Comparison, Predicate, Term, Test};
use super::{Expr, Expression};

impl std::str::FromStr for Expr {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl Expr {
    /// Parses SQL-like text. Errors state the position as a character number.
    pub fn parse(text: &str) -> Result<Self> {
        parsed(text, false)?.as_filter().ok_or_else(|| Error::invalid("two columns cannot be compared"))
    }
}

impl Condition {
    /// Parses SQL-like text like [`Expr::parse`], but also allows comparisons of two columns.
    ///
    /// # Errors
    /// As [`Expr::parse`].
    pub fn parse(text: &str) -> Result<Self> {
        parsed(text, true)
    }
}

fn parsed(text: &str, compares_columns: bool) -> Result<Condition> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, tokens: &tokens, next: 0, depth: Limits::default().depth, compares_columns };
    let condition = parser.disjunction(0)?;
    match parser.peek() {
        TokenKind::End => Ok(condition),
        _ => Err(parser.error("AND, OR or the end is expected here")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    next: usize,
    depth: usize,
    /// Whether comparisons of two columns are allowed.
    compares_columns: bool,
}

fn tested(term: Term, test: Test<Literal, Vec<Literal>>) -> Condition {
    Expression::Predicate(ConditionPredicate::Literals(Predicate { term, test }))
}

/// One side of a comparison.
enum Operand {
    Term(Term),
    Literal(Literal),
}

impl<'a> Parser<'a> {
    fn peek(&self) -> &'a TokenKind<'a> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> &'a TokenKind<'a> {
        self.tokens.get(self.next + by).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn advance(&mut self) -> &'a TokenKind<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn error(&self, message: &str) -> Error {
        let quoted = self.unquoted_time(self.next).unwrap_or_default();
        self.error_at(self.next, &format!("{message}{quoted}"))
    }

    fn error_at(&self, token: usize, message: &str) -> Error {
        place(self.text, self.tokens.get(token).map_or(self.text.len(), |token| token.start), message)
    }

    fn is_word(&self, by: usize, word: &str) -> bool {
        matches!(self.ahead(by), TokenKind::Word(found) if found.eq_ignore_ascii_case(word))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        self.next += usize::from(found);
        found
    }

    fn eat_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Symbol(found) if *found == symbol);
        self.next += usize::from(found);
        found
    }

    fn expect_symbol(&mut self, symbol: &str) -> Result<()> {
        if self.eat_symbol(symbol) { Ok(()) } else { Err(self.error(&format!("{symbol} is expected here"))) }
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.error(&format!("{word} is expected here"))) }
    }

    /// Parses operands of `OR`. Long chains are balanced to stay within the depth limit; shorter ones group to the
    /// left, as written.
    fn disjunction(&mut self, depth: usize) -> Result<Condition> {
        let mut operands = vec![self.conjunction(depth)?];
        while self.eat_word("or") {
            operands.push(self.conjunction(depth)?);
        }
        Ok(self.chain(operands, Condition::or, Condition::any))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Condition> {
        let mut operands = vec![self.negation(depth)?];
        while self.eat_word("and") {
            operands.push(self.negation(depth)?);
        }
        Ok(self.chain(operands, Condition::and, Condition::all))
    }

    fn chain(
        &self,
        operands: Vec<Condition>,
        pair: fn(Condition, Condition) -> Condition,
        balance: fn(Vec<Condition>) -> Condition,
    ) -> Condition {
        const LONG: usize = 32;
        if operands.len() > LONG {
            return balance(operands);
        }
        operands.into_iter().reduce(pair).unwrap_or(Expression::True)
    }

    fn negation(&mut self, depth: usize) -> Result<Condition> {
        if depth > self.depth {
            return Err(self.error(&format!("nested deeper than {} levels", self.depth)));
        }
        if self.eat_word("not") {
            return Ok(Expression::not(self.negation(depth + 1)?));
        }
        if self.eat_symbol("(") {
            let inner = self.disjunction(depth + 1)?;
            self.expect_symbol(")")?;
            return Ok(inner);
        }
        self.predicate()
    }

    /// Parses one predicate: a function, a constant, a comparison, or a term with a test such as `IN`.
    fn predicate(&mut self) -> Result<Condition> {
        if let Some(expr) = self.nan_function()? {
            return Ok(expr);
        }
        if let Some(expr) = self.spatial_function()? {
            return Ok(expr);
        }
        let start = self.next;
        let left = self.operand()?;
        if let Operand::Literal(literal) = &left
            && let (Value::Boolean(constant), None) = (literal.value(), self.comparison())
        {
            return Ok(if *constant { Expression::True } else { Expression::False });
        }
        if let Some(comparison) = self.comparison() {
            self.next += 1;
            let right = self.next;
            let test = match (left, self.operand()?) {
                (Operand::Term(term), Operand::Literal(literal)) => {
                    let literal = self.beside(&term, literal, right)?;
                    (term, Test::Compare(comparison, literal))
                }
                (Operand::Literal(literal), Operand::Term(term)) => {
                    let literal = self.beside(&term, literal, start)?;
                    (term, Test::Compare(comparison.flip(), literal))
                }
                (Operand::Term(left), Operand::Term(right)) if self.compares_columns => {
                    let columns = ColumnComparison { left, comparison, right };
                    return Ok(Expression::Predicate(ConditionPredicate::Columns(columns)));
                }
                (Operand::Term(_), Operand::Term(_)) => {
                    let quoted = [start, right].into_iter().find_map(|place| self.double_quoted(place));
                    let quoted = quoted.or_else(|| self.unquoted(right)).unwrap_or_default();
                    let message = "two columns cannot be compared here: one side is a literal";
                    return Err(self.error_at(start, &format!("{message}{quoted}")));
                }
                (Operand::Literal(_), Operand::Literal(_)) => {
                    return Err(self.error_at(start, "two literals cannot be compared: one side is a column"));
                }
            };
            return Ok(tested(test.0, test.1));
        }
        match left {
            Operand::Term(term) => self.test(term),
            Operand::Literal(_) => Err(self.error("a comparison is expected here")),
        }
    }

    /// Parses `isnan(x)`, as Spark writes `x IS NAN`.
    fn nan_function(&mut self) -> Result<Option<Condition>> {
        let called = matches!(self.ahead(1), TokenKind::Symbol("("));
        if !called || !(self.is_word(0, "isnan") || self.is_word(0, "is_nan")) {
            return Ok(None);
        }
        self.next += 2;
        let term = self.term()?;
        self.expect_symbol(")")?;
        Ok(Some(tested(term, Test::IsNan)))
    }

    /// Parses `st_intersects(geometry, st_makeenvelope(xmin, ymin, xmax, ymax))` and `st_disjoint`; the box may come
    /// first, and may have Sedona's name for it.
    fn spatial_function(&mut self) -> Result<Option<Condition>> {
        let is_called = |by: usize, names: &[&str]| {
            names.iter().any(|name| self.is_word(by, name)) && matches!(self.ahead(by + 1), TokenKind::Symbol("("))
        };
        const ENVELOPE: [&str; 2] = ["st_makeenvelope", "st_polygonfromenvelope"];
        let (intersects, disjoint) = (is_called(0, &["st_intersects"]), is_called(0, &["st_disjoint"]));
        if !intersects && !disjoint {
            return Ok(None);
        }
        let box_first = is_called(2, &ENVELOPE);
        self.next += 2;
        let mut term = None;
        if !box_first {
            term = Some(Term::column(self.name()?));
            self.expect_symbol(",")?;
        }
        let start = self.next;
        if !ENVELOPE.iter().any(|name| self.eat_word(name)) {
            return Err(self.error("st_makeenvelope(xmin, ymin, xmax, ymax) is expected here"));
        }
        self.expect_symbol("(")?;
        let mut corners = [0.0; 4];
        for (place, corner) in corners.iter_mut().enumerate() {
            if place > 0 {
                self.expect_symbol(",")?;
            }
            *corner = self.coordinate()?;
        }
        self.expect_symbol(")")?;
        let envelope = Envelope::new(corners).map_err(|error| self.error_at(start, &error.to_string()))?;
        let term = match term {
            Some(term) => term,
            None => {
                self.expect_symbol(",")?;
                Term::column(self.name()?)
            }
        };
        self.expect_symbol(")")?;
        let test = if intersects { Test::Intersects(envelope) } else { Test::Disjoint(envelope) };
        Ok(Some(tested(term, test)))
    }

    fn coordinate(&mut self) -> Result<f64> {
        let start = self.next;
        let literal = self.literal()?;
        let double = literal.convert(&Type::Primitive(PrimitiveType::Double));
        match double {
            Ok(Converted::Value(Value::Double(number))) => Ok(number),
            _ => Err(self.error_at(start, "a coordinate is expected here")),
        }
    }

    fn comparison(&self) -> Option<Comparison> {
        let TokenKind::Symbol(symbol) = self.peek() else { return None };
        Some(match *symbol {
            "<" => Comparison::Lt,
            "<=" => Comparison::LtEq,
            ">" => Comparison::Gt,
            ">=" => Comparison::GtEq,
            "=" | "==" => Comparison::Eq,
            "!=" | "<>" => Comparison::NotEq,
            _ => return None,
        })
    }

    /// Parses what follows a term, except comparisons: `IS`, `IN`, `BETWEEN`, `LIKE` and their negations.
    fn test(&mut self, term: Term) -> Result<Condition> {
        let predicate = |test| Ok(tested(term.clone(), test));
        if self.eat_word("is") {
            let not = self.eat_word("not");
            let test = if self.eat_word("null") {
                Test::IsNull
            } else if self.eat_word("nan") {
                Test::IsNan
            } else {
                return Err(self.error("NULL or NAN is expected here"));
            };
            return predicate(if not { test.negate() } else { test });
        }
        let not = self.eat_word("not");
        let test = if self.eat_word("in") {
            Test::In(self.list(&term)?)
        } else if self.eat_word("like") {
            self.pattern()?
        } else if self.eat_word("between") {
            let lower = self.literal_beside(&term)?;
            self.expect_word("and")?;
            let upper = self.literal_beside(&term)?;
            let between = Expression::and(
                predicate(Test::Compare(Comparison::GtEq, lower))?,
                predicate(Test::Compare(Comparison::LtEq, upper))?,
            );
            return Ok(if not { Expression::not(between).rewrite_not() } else { between });
        } else {
            let ends = matches!(self.peek(), TokenKind::End | TokenKind::Symbol(")"));
            let ends = ends || self.is_word(0, "and") || self.is_word(0, "or");
            let boolean =
                if ends && !not { format!("; if {term} is a boolean, write {term} = true") } else { String::new() };
            return Err(self.error(&format!("a comparison, IS, IN, LIKE or BETWEEN is expected here{boolean}")));
        };
        predicate(if not { test.negate() } else { test })
    }

    fn list(&mut self, term: &Term) -> Result<Vec<Literal>> {
        self.expect_symbol("(")?;
        let mut literals = Vec::new();
        if self.eat_symbol(")") {
            return Ok(literals);
        }
        loop {
            literals.push(self.literal_beside(term)?);
            if self.eat_symbol(")") {
                return Ok(literals);
            }
            if !self.eat_symbol(",") {
                return Err(self.error(", or ) is expected here"));
            }
        }
    }

    /// Parses a pattern that is a prefix: text, then `%`. Without a wildcard it is the whole value.
    fn pattern(&mut self) -> Result<Test<Literal, Vec<Literal>>> {
        let start = self.next;
        let TokenKind::Text(pattern) = self.advance() else {
            let quoted = self.double_quoted(start).unwrap_or_default();
            return Err(self.error_at(start, &format!("a pattern in single quotes is expected here{quoted}")));
        };
        let mut prefix = String::with_capacity(pattern.len());
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some(escaped @ ('%' | '_' | '\\')) => prefix.push(escaped),
                    _ => return Err(self.error_at(start, "a backslash in a pattern stands before %, _ or another one")),
                },
                '%' if chars.as_str().is_empty() => return Ok(Test::StartsWith(Literal::string(prefix))),
                '%' | '_' => {
                    let message = "only patterns with a single % at the end can be filtered by, such as 'abc%'; \
                                   \\% and \\_ are the characters themselves";
                    return Err(self.error_at(start, message));
                }
                c => prefix.push(c),
            }
        }
        Ok(Test::Compare(Comparison::Eq, Literal::string(prefix)))
    }

    fn operand(&mut self) -> Result<Operand> {
        if self.is_literal() { self.literal().map(Operand::Literal) } else { self.term().map(Operand::Term) }
    }

    fn is_literal(&self) -> bool {
        match self.peek() {
            TokenKind::Text(_) | TokenKind::Number(_) | TokenKind::Symbol("-" | "+") => true,
            // `DATE '…'` is a literal, but `date = …` is a column with that name.
            TokenKind::Word(word) => match self.ahead(1) {
                TokenKind::Text(_) => true,
                TokenKind::Symbol("(") => word.eq_ignore_ascii_case("cast"),
                _ => ["true", "false", "null"].iter().any(|known| known.eq_ignore_ascii_case(word)),
            },
            _ => false,
        }
    }

    /// Parses a column, or a transform such as `bucket(16, column)`.
    fn term(&mut self) -> Result<Term> {
        match (self.peek(), self.ahead(1)) {
            (TokenKind::Word(function), TokenKind::Symbol("(")) => {
                let start = self.next;
                self.next += 2;
                let number = self.parameter()?;
                let name = self.name()?;
                let number = match (number, self.eat_symbol(",")) {
                    (None, true) => self.parameter_value()?,
                    (number, _) => number,
                };
                self.expect_symbol(")")?;
                let transform = transform_named(function, number).ok_or_else(|| {
                    self.error_at(start, &format!("{function} is not a transform, or not with these arguments"))
                })?;
                Ok(Term::transform(transform, name))
            }
            _ => {
                let name = self.name()?;
                Ok(match self.extract()? {
                    Some(extract) => Term::extract(extract, name),
                    None => Term::column(name),
                })
            }
        }
    }

    /// Parses an Iceberg type name: `long`, `decimal(9, 2)`, `fixed[16]`.
    fn type_name(&mut self) -> Result<String> {
        let TokenKind::Word(word) = self.peek() else { return Err(self.error("a type is expected here")) };
        let mut name = (*word).to_ascii_lowercase();
        self.next += 1;
        for (open, close) in [("(", ")"), ("[", "]")] {
            if self.eat_symbol(open) {
                let mut numbers = Vec::new();
                while let Some(number) = self.parameter_value()? {
                    numbers.push(number.to_string());
                    self.eat_symbol(",");
                }
                self.expect_symbol(close)?;
                name.extend([open, &numbers.join(", "), close]);
            }
        }
        Ok(name)
    }

    /// Parses a parameter with its comma: `16,`.
    fn parameter(&mut self) -> Result<Option<u32>> {
        let number = self.parameter_value()?;
        if number.is_some() {
            self.expect_symbol(",")?;
        }
        Ok(number)
    }

    fn parameter_value(&mut self) -> Result<Option<u32>> {
        let TokenKind::Number(digits) = self.peek() else { return Ok(None) };
        let number = digits.parse().map_err(|_| self.error("a whole number is expected here"))?;
        self.next += 1;
        Ok(Some(number))
    }

    /// Parses a name with dots.
    fn name(&mut self) -> Result<String> {
        let mut name = String::new();
        loop {
            match self.peek() {
                TokenKind::Word(word) if name.is_empty() && super::lexer::is_reserved(word) => {
                    return Err(self.error(&format!("a column is expected here; {word} as a name needs quotes")));
                }
                TokenKind::Word(word) => name.push_str(word),
                TokenKind::Name(quoted) => name.push_str(quoted),
                _ => return Err(self.error("a column is expected here")),
            }
            self.next += 1;
            if !self.eat_symbol(".") {
                return Ok(name);
            }
            name.push('.');
        }
    }

    /// Returns a hint if a name in double quotes was probably meant to be text.
    fn double_quoted(&self, place: usize) -> Option<String> {
        match self.tokens.get(place).map(|token| &token.kind) {
            Some(TokenKind::Name(name)) => {
                Some(format!("; double quotes name a column, text stands in single quotes: '{name}'"))
            }
            _ => None,
        }
    }

    /// Returns a hint if a word was probably meant to be text.
    fn unquoted(&self, place: usize) -> Option<String> {
        match self.tokens.get(place).map(|token| &token.kind) {
            Some(TokenKind::Word(word)) => Some(format!("; if {word} is a text, write it in single quotes: '{word}'")),
            _ => None,
        }
    }

    /// Returns a hint if a date or time was read as a number.
    fn unquoted_time(&self, place: usize) -> Option<String> {
        let before = self.tokens.get(place.checked_sub(1)?)?;
        let TokenKind::Number(digits) = before.kind else { return None };
        let is_time = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '+');
        let rest = self.text.get(before.start..)?;
        let time = rest.get(..rest.find(|c| !is_time(c)).unwrap_or(rest.len()))?;
        let after = time.get(digits.len()..)?;
        after.starts_with(['-', ':']).then(|| format!("; dates and times stand in single quotes: '{time}'"))
    }
}

fn transform_named(function: &str, parameter: Option<u32>) -> Option<Transform> {
    let name = function.to_ascii_lowercase();
    Some(match (name.as_str(), parameter) {
        ("bucket", Some(buckets @ 1..)) => Transform::Bucket(buckets),
        ("truncate", Some(width @ 1..)) => Transform::Truncate(width),
        ("year" | "years", None) => Transform::Year,
        ("month" | "months", None) => Transform::Month,
        ("day" | "days", None) => Transform::Day,
        ("hour" | "hours", None) => Transform::Hour,
        ("identity", None) => Transform::Identity,
        ("void", None) => Transform::Void,
        _ => return None,
    })
}
