//! Parses the literals that years, months, days and hours are compared with: `year(d) = '2013'`,
//! `day(ts) = DATE '2020-01-01'`.
//!
//! Iceberg counts these from 1970, but SQL users think in calendar dates. A plain number would not mean what it seems
//! to say, so it is refused. Texts have the form of partition values, `2013`, `2013-02`, `2013-02-05-10`; an ordinal
//! must name its type, `INT '43'`.

use std::fmt;

use crate::error::{Error, Result};
use crate::transform::Transform;
use crate::types::PrimitiveType;
use crate::value::Value;
use crate::value::calendar::{self, CivilDate};
use crate::value::human;

use super::super::lexer::TokenKind;
use super::super::literal::{Literal, write_quoted};
use super::super::predicate::Term;
use super::Parser;

/// Returns the transform if it counts years, months, days or hours.
fn counts_periods(transform: Option<&Transform>) -> Option<&Transform> {
    transform
        .filter(|transform| matches!(transform, Transform::Year | Transform::Month | Transform::Day | Transform::Hour))
}

/// Parses a year, month or hour from the text form of its partition value; returns its ordinal.
fn ordinal(transform: &Transform, text: &str) -> Option<i64> {
    let civil = |days: i64| {
        let date = CivilDate::from_days(days);
        (date.year - 1970, i64::from(date.month) - 1)
    };
    match transform {
        Transform::Year => Some(civil(calendar::parse_date(&format!("{text}-01-01"))?).0),
        Transform::Month => {
            let (years, month) = civil(calendar::parse_date(&format!("{text}-01"))?);
            Some(years * 12 + month)
        }
        Transform::Hour => {
            let (date, hour) = text.split_at_checked(text.len().checked_sub(3)?)?;
            let hour = hour.strip_prefix(['-', 'T', 't', ' '])?;
            let hour: i64 = hour.bytes().all(|digit| digit.is_ascii_digit()).then(|| hour.parse().ok())??;
            (hour < 24).then_some(calendar::parse_date(date)? * 24 + hour)
        }
        _ => None,
    }
}

/// Writes an ordinal so that the parser reads the same number back.
pub(in super::super) fn write_ordinal(
    f: &mut fmt::Formatter<'_>,
    transform: Option<&Transform>,
    ty: &PrimitiveType,
    value: &Value,
) -> Option<fmt::Result> {
    let transform = counts_periods(transform)?;
    let (word, number) = match (ty, value) {
        (PrimitiveType::Long, Value::Long(number)) => ("LONG", *number),
        (PrimitiveType::Int, Value::Int(number)) => ("INT", i64::from(*number)),
        (PrimitiveType::Double, Value::Double(number)) => return Some(write!(f, "DOUBLE '{number:?}'")),
        _ => return None,
    };
    let text = i32::try_from(number).ok().and_then(|ordinal| match transform {
        Transform::Year => Some(human::year(ordinal)),
        Transform::Month => Some(human::month(ordinal)),
        Transform::Hour => Some(human::hour(ordinal)),
        _ => None,
    });
    let exact = text.filter(|text| word == "LONG" && ordinal(transform, text) == Some(number));
    Some(match exact {
        Some(text) => write_quoted(f, &text, '\''),
        None => write!(f, "{word} '{number}'"),
    })
}

impl Parser<'_> {
    /// Converts a literal compared with a term: the text of a period becomes its ordinal.
    ///
    /// # Errors
    /// For years, months, days and hours: a plain number, or a text that is not such a period.
    pub(super) fn beside(&self, term: &Term, literal: Literal, place: usize) -> Result<Literal> {
        let Some(transform) = counts_periods(term.transform.as_ref()) else { return Ok(literal) };
        let is_typed = matches!(self.tokens.get(place).map(|token| &token.kind), Some(TokenKind::Word(_)))
            && matches!(self.tokens.get(place + 1).map(|token| &token.kind), Some(TokenKind::Text(_)));
        let of_calendar = match literal.ty() {
            PrimitiveType::Date | PrimitiveType::Timestamp | PrimitiveType::Timestamptz => true,
            ty => matches!(ty, PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs),
        };
        let no_period = || {
            let advice = advice(transform, term, None);
            self.error_at(place, &format!("{literal} is no {transform}: {advice}"))
        };
        match literal.value() {
            Value::String(_) if *transform == Transform::Day => Ok(literal),
            Value::String(text) => ordinal(transform, text).map(Literal::long).ok_or_else(no_period),
            _ if of_calendar && *transform == Transform::Day => Ok(literal),
            _ if of_calendar => Err(no_period()),
            Value::Int(_) | Value::Long(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_) if !is_typed => {
                Err(self.plain_number(transform, term, &literal, place))
            }
            _ => Ok(literal),
        }
    }

    fn plain_number(&self, transform: &Transform, term: &Term, literal: &Literal, place: usize) -> Error {
        let year = match (transform, literal.value()) {
            (Transform::Year, Value::Long(year)) if (1..9999).contains(year) => Some(*year),
            _ => None,
        };
        let advice = advice(transform, term, year);
        self.error_at(
            place,
            &format!("{term} counts {transform}s from 1970, not those of the calendar, so it is not compared with {literal}: {advice}"),
        )
    }
}

/// Returns advice about what to write instead.
fn advice(transform: &Transform, term: &Term, year: Option<i64>) -> String {
    let year = year.unwrap_or(2013);
    let name = Term::column(&term.name);
    let (from, until, period) = match transform {
        Transform::Year => (format!("{year:04}-01-01"), format!("{:04}-01-01", year + 1), format!("{year:04}")),
        Transform::Month => ("2013-02-01".to_owned(), "2013-03-01".to_owned(), "2013-02".to_owned()),
        Transform::Day => ("2013-02-05".to_owned(), "2013-02-06".to_owned(), "2013-02-05".to_owned()),
        _ => ("2013-02-05T10:00:00".to_owned(), "2013-02-05T11:00:00".to_owned(), "2013-02-05-10".to_owned()),
    };
    format!(
        "write {name} >= '{from}' AND {name} < '{until}', or {term} = '{period}' (a number of {transform}s from 1970 is INT '43')"
    )
}
