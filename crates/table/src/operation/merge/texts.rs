//! Finds strings given as values that look like columns: `s.name`, `upper(source.name)`.
//!
//! Only `source.NAME` and `target.NAME` are columns; every other string is a value. Someone who writes the alias of
//! another engine, or a function call, would store that text in every row, so such strings are rejected.

use super::joined::{SOURCE, TARGET};

/// Operators that are common in expressions and rare in names and dates.
const OPERATORS: [&str; 7] = ["(", " + ", " - ", " * ", " / ", " % ", "||"];

/// The part of a text that names a column, if the text looks like an expression: `WORD.NAME` by itself, in a call or
/// among operators, or a column name as an argument of a call. `is_column` says whether a column with this name exists.
pub fn column_in_text(text: &str, is_column: impl Fn(&str) -> bool) -> Option<&str> {
    let text = text.trim();
    let pieces =
        || text.split(|c: char| !(c == '_' || c == '.' || c.is_alphanumeric())).filter(|piece| !piece.is_empty());
    let has_operator = OPERATORS.iter().any(|operator| text.contains(operator));
    let is_expression = pieces().count() > 1 && has_operator;
    let dotted = pieces().find(|piece| {
        let Some((word, name)) = piece.split_once('.') else { return false };
        let is_name = !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty();
        let is_side = [SOURCE, TARGET].iter().any(|side| side.eq_ignore_ascii_case(word));
        is_name && (is_side || is_expression || *piece == text) && (is_column(name) || is_column(piece))
    });
    dotted.or_else(|| {
        let (function, arguments) = text.strip_suffix(')')?.split_once('(')?;
        let is_name = function.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && function.chars().all(|c| c == '_' || c == '.' || c.is_alphanumeric());
        let column = pieces().skip(1).find(|piece| arguments.contains(piece) && is_column(piece));
        column.filter(|_| is_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_look_like_columns() {
        let columns = ["name", "v", "place.lat"];
        let is_column = |name: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(name));
        for (text, found) in [
            ("s.name", Some("s.name")),
            ("Source.name", Some("Source.name")),
            ("src.NAME", Some("src.NAME")),
            (" t.v ", Some("t.v")),
            ("place.lat", Some("place.lat")),
            ("s.place.lat", Some("s.place.lat")),
            ("upper(source.name)", Some("source.name")),
            ("upper(name)", Some("name")),
            ("coalesce(s.name, 'x')", Some("s.name")),
            ("concat('a', name)", Some("name")),
            ("s.v + 1", Some("s.v")),
            ("1 + source.v", Some("source.v")),
            ("s.nothing", None),
            ("name", None),
            ("a name", None),
            ("my name is v", None),
            ("1.v", None),
            ("www.example.com", None),
            ("see s.name there", None),
            ("e-mail", None),
            ("my-file.name", None),
            ("s.v||'x'", Some("s.v")),
            ("name (v)", None),
            ("", None),
            ("()", None),
            ("f()", None),
            (".", None),
            ("ünï.name", Some("ünï.name")),
        ] {
            assert_eq!(column_in_text(text, is_column), found, "{text}");
        }
    }
}
