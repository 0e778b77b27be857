//! Converts Iceberg names to valid Avro names, like the Java library.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the Avro name of a field: each UTF-16 unit that Avro does not allow becomes `_x` and its hexadecimal number,
/// and a leading digit gets a `_` before it. The property `iceberg-field-name` keeps the original name.
pub fn sanitized(name: &str) -> Cow<'_, str> {
    if is_plain(name) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 8);
    for (index, character) in name.chars().enumerate() {
        let first = index == 0;
        if character == '_' || is_letter(character) || (!first && is_digit(character)) {
            out.push(character);
        } else if is_digit(character) {
            out.push('_');
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "_x{unit:X}");
            }
        }
    }
    Cow::Owned(out)
}

fn is_plain(name: &str) -> bool {
    let rest = name.strip_prefix(|first| first == '_' || is_letter(first));
    rest.is_some_and(|rest| rest.chars().all(|c| c == '_' || is_letter(c) || is_digit(c)))
}

/// Java's `Character.isLetter` for a UTF-16 unit. Characters outside the basic plane are two surrogates, which are not
/// letters.
fn is_letter(character: char) -> bool {
    character.len_utf16() == 1 && character.is_alphabetic() && !character.is_numeric()
}

/// Java's `Character.isDigit`.
fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::sanitized;

    #[test]
    fn names_are_those_of_java() {
        for (name, expected) in [
            ("plain_1", "plain_1"),
            ("_x", "_x"),
            ("9x", "_9x"),
            ("a b", "a_x20b"),
            ("a.b", "a_x2Eb"),
            ("x-y", "x_x2Dy"),
            ("größe", "größe"),
            ("☃", "_x2603"),
            ("a😀", "a_xD83D_xDE00"),
        ] {
            assert_eq!(sanitized(name), expected, "{name}");
        }
    }
}
