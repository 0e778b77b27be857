//! Parses partition fields and sort fields as users write them: `month(time)`, `bucket(8, carrier)`,
//! `time desc nulls last`.
//!
//! The specification has no text form. This is the form of SQL dialects for Iceberg (`years(x)` is `year(x)`), and also
//! accepts the specification's names of transforms (`bucket[8](carrier)`).

use super::{FIRST_PARTITION_FIELD_ID, NullOrder, PartitionField, PartitionSpec, SortDirection, SortField, SortOrder};
use crate::transform::Transform;
use crate::types::Schema;
use crate::{Error, Result};

/// A transform of a column, and the text after it.
struct Term<'a> {
    transform: Transform,
    column: String,
    rest: &'a str,
}

impl PartitionSpec {
    /// Parses a spec, and names its fields like the Java library (`time_month`, `carrier_bucket`); `transform as name`
    /// sets the name.
    pub fn from_text<S: AsRef<str>>(spec_id: i32, fields: &[S], schema: &Schema) -> Result<Self> {
        let fields = fields.iter().zip(FIRST_PARTITION_FIELD_ID..).map(|(text, field_id)| {
            let PartitionTerm { transform, column, name } = PartitionTerm::parse(text.as_ref())?;
            let name = name.unwrap_or_else(|| default_name(&transform, &column));
            Ok(PartitionField { source_ids: vec![source_id(schema, &column)?], field_id, name, transform })
        });
        Ok(Self { spec_id, fields: fields.collect::<Result<_>>()? })
    }
}

/// A partition field as written; the column need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionTerm {
    /// The transform.
    pub transform: Transform,
    /// Full name of the column.
    pub column: String,
    /// The name, if one is given.
    pub name: Option<String>,
}

impl PartitionTerm {
    /// Parses `transform` or `transform as name`.
    pub fn parse(text: &str) -> Result<Self> {
        let Term { transform, column, rest } = term(text)?;
        let name = match words(rest).as_slice() {
            [] => None,
            [word, name] if word.eq_ignore_ascii_case("as") => Some((*name).to_owned()),
            _ => return Err(Error::invalid(format!("not a partition field: {text:?}"))),
        };
        Ok(Self { transform, column, name })
    }
}

impl SortOrder {
    /// Parses a sort order: each field is a column or transform, then optionally `asc` or `desc`, then optionally
    /// `nulls first` or `nulls last`. The default is ascending with nulls first; descending has nulls last by default.
    pub fn from_text<S: AsRef<str>>(order_id: i32, fields: &[S], schema: &Schema) -> Result<Self> {
        Self::from_text_with(order_id, fields, schema, true)
    }

    /// As [`SortOrder::from_text`], with names of columns in any letter case unless `case_sensitive`.
    pub fn from_text_with<S: AsRef<str>>(
        order_id: i32,
        fields: &[S],
        schema: &Schema,
        case_sensitive: bool,
    ) -> Result<Self> {
        let fields = fields.iter().map(|text| {
            let Term { transform, column, rest } = term(text.as_ref())?;
            SortField::new(&column, transform, rest, schema, case_sensitive)
        });
        Ok(Self { order_id, fields: fields.collect::<Result<_>>()? })
    }
}

impl SortField {
    /// Rejects a text that is no sort field of any schema.
    pub fn check_text(text: &str) -> Result<()> {
        let Term { rest, .. } = term(text)?;
        order_of(rest).map(drop)
    }

    /// Parses a sort field as a user writes it.
    pub fn from_text(text: &str, schema: &Schema) -> Result<Self> {
        let Term { transform, column, rest } = term(text)?;
        Self::new(&column, transform, rest, schema, true)
    }

    /// Creates a field from a transform (`day`, `bucket[16]`), the exact name of a column, and the words for direction
    /// and null order.
    pub fn of_column(column: &str, transform: &str, order: &str, schema: &Schema) -> Result<Self> {
        let (name, width) = match transform.strip_suffix(']').and_then(|inside| inside.split_once('[')) {
            Some((name, width)) => (name, Some(width)),
            None => (transform, None),
        };
        Self::new(column, self::transform(name, width, transform)?, order, schema, true)
    }

    fn new(column: &str, transform: Transform, order: &str, schema: &Schema, case_sensitive: bool) -> Result<Self> {
        let (direction, null_order) = order_of(order)?;
        let source_ids = vec![schema.named(column, case_sensitive)?.id];
        Ok(Self { source_ids, transform, direction, null_order })
    }
}

fn order_of(text: &str) -> Result<(SortDirection, NullOrder)> {
    let lower = text.to_ascii_lowercase();
    directions(&words(&lower)).ok_or_else(|| {
        Error::invalid(format!("expected asc or desc, then nulls first or nulls last, got {:?}", text.trim()))
    })
}

fn directions(words: &[&str]) -> Option<(SortDirection, NullOrder)> {
    let (direction, rest) = match words {
        ["desc", rest @ ..] => (SortDirection::Descending, rest),
        ["asc", rest @ ..] => (SortDirection::Ascending, rest),
        rest => (SortDirection::Ascending, rest),
    };
    let null_order = match (rest, direction) {
        (["nulls", "first"], _) | ([], SortDirection::Ascending) => NullOrder::First,
        (["nulls", "last"], _) | ([], SortDirection::Descending) => NullOrder::Last,
        _ => return None,
    };
    Some((direction, null_order))
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn source_id(schema: &Schema, column: &str) -> Result<i32> {
    schema.named(column, true).map(|field| field.id)
}

fn default_name(transform: &Transform, column: &str) -> String {
    let suffix = match transform {
        Transform::Identity => return column.to_owned(),
        Transform::Bucket(_) => "bucket",
        Transform::Truncate(_) => "trunc",
        Transform::Year => "year",
        Transform::Month => "month",
        Transform::Day => "day",
        Transform::Hour => "hour",
        Transform::Void => "null",
        Transform::Unknown(name) => name,
    };
    format!("{column}_{suffix}")
}

fn term(text: &str) -> Result<Term<'_>> {
    let refuse = || Error::invalid(format!("not a column or a transform of one: {text:?}"));
    let trimmed = text.trim();
    let (head, rest) = name(trimmed).ok_or_else(refuse)?;
    let (width, after) = bracketed(rest);
    let Some(inside) = after.trim_start().strip_prefix('(') else {
        // A plain column.
        return match width {
            None => Ok(Term { transform: Transform::Identity, column: head, rest }),
            _ => Err(refuse()),
        };
    };
    let close = outside_quotes(inside, ')').ok_or_else(refuse)?;
    let (arguments, rest) = (&inside[..close], &inside[close + 1..]);
    let pair = outside_quotes(arguments, ',').map(|comma| (&arguments[..comma], &arguments[comma + 1..]));
    let (width, column) = match (width, pair) {
        (Some(width), None) => (Some(width), arguments),
        (None, Some((first, second))) if second.trim().bytes().all(|byte| byte.is_ascii_digit()) => {
            (Some(second), first)
        }
        (None, Some((first, second))) => (Some(first), second),
        (None, None) => (None, arguments),
        (Some(_), Some(_)) => return Err(refuse()),
    };
    let (column, left) = name(column.trim()).ok_or_else(refuse)?;
    if !left.trim().is_empty() {
        return Err(refuse());
    }
    Ok(Term { transform: transform(&head, width, text)?, column, rest })
}

fn transform(name: &str, width: Option<&str>, text: &str) -> Result<Transform> {
    let lower = name.to_ascii_lowercase();
    let singular = match lower.as_str() {
        "years" | "months" | "days" | "hours" => lower.trim_end_matches('s'),
        "date" => "day",
        other => other,
    };
    let parsed = match width {
        Some(width) => Transform::parse(&format!("{singular}[{}]", width.trim()))?,
        None => Transform::parse(singular)?,
    };
    match parsed {
        Transform::Unknown(_) => Err(Error::invalid(format!(
            "unknown transform in {text:?}: expected identity, bucket(n, x), truncate(w, x), year, month, day, hour, void"
        ))),
        known => Ok(known),
    }
}

/// Splits off `[16]` at the start of a text; also returns the text after it.
fn bracketed(text: &str) -> (Option<&str>, &str) {
    match text.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
        Some((width, after)) => (Some(width), after),
        None => (None, text),
    }
}

/// Finds a character outside of quotes and backticks. A doubled quote closes and reopens them.
fn outside_quotes(text: &str, wanted: char) -> Option<usize> {
    let mut open = None;
    for (place, c) in text.char_indices() {
        match open {
            Some(quote) if c == quote => open = None,
            None if c == wanted => return Some(place),
            None if matches!(c, '"' | '`') => open = Some(c),
            _ => {}
        }
    }
    None
}

/// Parses a name, optionally in quotes or backticks (doubled inside); also returns the text after it. Dots belong to
/// the name.
fn name(text: &str) -> Option<(String, &str)> {
    for quote in ['"', '`'] {
        let Some(mut rest) = text.strip_prefix(quote) else { continue };
        let mut name = String::new();
        loop {
            let (part, after) = rest.split_once(quote)?;
            name.push_str(part);
            let Some(more) = after.strip_prefix(quote) else { return Some((name, after)) };
            name.push(quote);
            rest = more;
        }
    }
    let end = text.find(|c: char| c.is_whitespace() || "([,)]".contains(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then(|| (name.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Field, PrimitiveType};

    fn schema() -> Schema {
        let fields = [("id", PrimitiveType::Long), ("time", PrimitiveType::Timestamp), ("a b", PrimitiveType::String)];
        let fields = [fields.as_slice(), &[("", PrimitiveType::Int), ("a\"),`", PrimitiveType::Int)]].concat();
        let fields = fields.into_iter().zip(1..).map(|((name, ty), id)| Field::optional(id, name, ty)).collect();
        Schema::new(0, fields).unwrap()
    }

    #[test]
    fn partition_fields() {
        for (text, transform, source, name) in [
            ("id", Transform::Identity, 1, "id"),
            (" month( time ) ", Transform::Month, 2, "time_month"),
            ("Months(time)", Transform::Month, 2, "time_month"),
            ("bucket(8, id)", Transform::Bucket(8), 1, "id_bucket"),
            ("bucket(id, 8)", Transform::Bucket(8), 1, "id_bucket"),
            ("bucket[8](id) as b", Transform::Bucket(8), 1, "b"),
            ("truncate(4, `a b`)", Transform::Truncate(4), 3, "a b_trunc"),
            ("\"a b\"", Transform::Identity, 3, "a b"),
            ("identity(id)", Transform::Identity, 1, "id"),
            ("void(id)", Transform::Void, 1, "id_null"),
            ("\"\"", Transform::Identity, 4, ""),
            ("bucket(2, `a\"),```)", Transform::Bucket(2), 5, "a\"),`_bucket"),
            ("\"a\"\"),`\" as c", Transform::Identity, 5, "c"),
        ] {
            let spec = PartitionSpec::from_text(0, &[text], &schema()).unwrap();
            let expected =
                PartitionField { source_ids: vec![source], field_id: 1000, name: name.to_owned(), transform };
            assert_eq!(spec.fields, [expected], "{text}");
        }
    }

    #[test]
    fn sort_fields() {
        use NullOrder::{First, Last};
        use SortDirection::{Ascending, Descending};
        for (text, direction, null_order) in [
            ("id", Ascending, First),
            ("id DESC", Descending, Last),
            ("bucket(4, id) desc nulls first", Descending, First),
            ("id nulls last", Ascending, Last),
            ("id asc NULLS LAST", Ascending, Last),
        ] {
            let order = SortOrder::from_text(1, &[text], &schema()).unwrap();
            assert_eq!((order.fields[0].direction, order.fields[0].null_order), (direction, null_order), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in [
            "",
            "nope",
            "month(time",
            "month(nope)",
            "bucket(id)",
            "bucket(x, id)",
            "weeks(time)",
            "bucket[2](3, id)",
            "id as",
            "bucket(0, id)",
            "month(time) extra",
            "()",
            "month()",
            "bucket(4 5, id)",
            "year(time id)",
            "`id",
            "bucket[4]",
        ] {
            let refused = PartitionSpec::from_text(0, &[text], &schema());
            assert!(matches!(refused, Err(Error::Invalid(_) | Error::Unfit(_))), "{text}: {refused:?}");
        }
        assert!(SortOrder::from_text(1, &["id sideways"], &schema()).is_err());
        assert!(SortOrder::from_text(1, &["id nulls"], &schema()).is_err());
    }
}
