//! Parses values inside variants in SQL-like text: `v:a.b[0]::long`.

use crate::error::Result;
use crate::limits::Limits;
use crate::types::PrimitiveType;
use crate::value::variant::Path;
use crate::value::variant::path::Step;

use super::super::extract::Extract;
use super::super::lexer::{TokenKind, tokens};
use super::super::predicate::Term;
use super::Parser;

impl Term {
    /// Parses a value inside a variant, `v:a.b[0]::long`. Errors state the position as a character number.
    pub fn parse_extract(text: &str) -> Result<Self> {
        let tokens = tokens(text)?;
        let mut parser =
            Parser { text, tokens: &tokens, next: 0, depth: Limits::default().depth, compares_columns: false };
        let name = parser.name()?;
        let extract = parser.extract()?;
        match (extract, parser.peek()) {
            (Some(extract), TokenKind::End) => Ok(Self::extract(extract, name)),
            _ => Err(parser.error("a path and the end are expected here, as in v:a.b::long")),
        }
    }
}

impl Parser<'_> {
    /// Parses `:a.b[0]::long`, or `::long` for the variant itself.
    pub(super) fn extract(&mut self) -> Result<Option<Extract>> {
        let mut steps = Vec::new();
        if self.eat_symbol(":") {
            if !matches!(self.peek(), TokenKind::Symbol("[")) {
                steps.push(self.field()?);
            }
            loop {
                if self.eat_symbol(".") {
                    steps.push(self.field()?);
                } else if self.eat_symbol("[") {
                    steps.push(self.subscript()?);
                    self.expect_symbol("]")?;
                } else {
                    break;
                }
            }
        } else if !matches!(self.peek(), TokenKind::Symbol("::")) {
            return Ok(None);
        }
        let start = self.next;
        if !self.eat_symbol("::") {
            return Err(self.error(":: and the type of the value are expected here, as in v:a.b::long"));
        }
        let ty = self.type_name()?;
        let extract = PrimitiveType::parse(&ty).and_then(|ty| Extract::new(Path::new(steps), ty));
        extract.map(Some).map_err(|error| self.error_at(start, &error.to_string()))
    }

    /// Parses the name of a variant's field: any word, or quoted.
    fn field(&mut self) -> Result<Step> {
        let name = match self.peek() {
            TokenKind::Word(word) => (*word).to_owned(),
            TokenKind::Name(quoted) => quoted.clone().into_owned(),
            _ => return Err(self.error("the name of a field is expected here")),
        };
        self.next += 1;
        Ok(Step::Field(name))
    }

    /// Parses what is in brackets: the index of an element, or the quoted name of a field.
    fn subscript(&mut self) -> Result<Step> {
        let step = match self.peek() {
            TokenKind::Number(digits) => digits.parse().ok().map(Step::Element),
            TokenKind::Text(name) | TokenKind::Name(name) => Some(Step::Field(name.clone().into_owned())),
            _ => None,
        };
        let step = step.ok_or_else(|| self.error("the number of an element or a name in quotes is expected here"))?;
        self.next += 1;
        Ok(step)
    }
}
