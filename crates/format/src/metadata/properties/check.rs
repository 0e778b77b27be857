//! Checks properties when they are set: each takes effect or is refused. Unknown names are allowed as the user's own,
//! unless they are close to a known one. Existing properties of a table are not checked, since other tools may have set
//! them.

use super::property::unexpected;
use super::{AllowedValues, Effect, KNOWN, KnownProperty, MetricsMode};
use crate::metadata::StringMap;
use crate::types::{NameMapping, parse_shape};
use crate::{Error, Result};

/// Checks properties before they are set.
///
/// # Errors
/// A value that the property does not allow, a property that is refused, or a name that is close to a known one.
pub fn check_set(properties: &StringMap) -> Result<()> {
    properties.iter().try_for_each(|(name, value)| match known(name) {
        Some(property) => property.check(name, value),
        None => nearest(name, KNOWN.iter().map(|known| known.name)).map_or(Ok(()), |meant| {
            Err(Error::invalid(format!("there is no table property {name}: did you mean {meant}?")))
        }),
    })
}

/// What is wrong with a property that a table has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flaw {
    /// The property expects other values.
    Value(AllowedValues),
    /// There is no property with this name, but one with a name close to it.
    Name(&'static str),
}

/// Finds what is wrong with a property that a table has already; `None` for unknown names, which are the user's own.
pub fn flaw(name: &str, value: &str) -> Option<Flaw> {
    match known(name) {
        Some(property) => (!property.values.allow(value)).then_some(Flaw::Value(property.values)),
        None => nearest(name, KNOWN.iter().map(|known| known.name)).map(Flaw::Name),
    }
}

fn known(name: &str) -> Option<&'static KnownProperty> {
    KNOWN.iter().find(|known| match known.name.ends_with('.') {
        true => name.len() > known.name.len() && name.starts_with(known.name),
        false => name == known.name,
    })
}

impl KnownProperty {
    fn check(&self, name: &str, value: &str) -> Result<()> {
        if let Effect::Refused(why) = self.effect {
            return Err(Error::unsupported(format!("the table property {name}={value}: {why}")));
        }
        match self.values.allow(value) {
            true => Ok(()),
            false => Err(unexpected(name, self.values, value)),
        }
    }
}

impl AllowedValues {
    /// Whether a property may have this value.
    pub(super) fn allow(&self, text: &str) -> bool {
        let text = text.trim();
        match self {
            Self::Text => true,
            Self::Filled => !text.is_empty(),
            Self::Flag => text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false"),
            Self::AtLeast(least) => text.parse::<i64>().is_ok_and(|number| number >= *least),
            Self::Level => matches!(text, "" | "null") || text.parse::<i32>().is_ok(),
            Self::Fraction => text.parse::<f64>().is_ok_and(|number| number > 0.0 && number < 1.0),
            Self::NameMapping => NameMapping::parse(text).is_ok(),
            Self::MetricsMode => MetricsMode::parse(text).is_some(),
            Self::Shape => parse_shape(text).is_ok(),
            Self::OneOf(allowed) => allowed.iter().any(|one| one.eq_ignore_ascii_case(text)),
        }
    }
}

impl std::fmt::Display for AllowedValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text => f.write_str("a string"),
            Self::Filled => f.write_str("a non-empty string"),
            Self::Flag => f.write_str("true or false"),
            Self::AtLeast(least) => write!(f, "an integer of at least {least}"),
            Self::Level => f.write_str("an integer, or empty for the codec's default"),
            Self::Fraction => f.write_str("a number between 0 and 1"),
            Self::NameMapping => f.write_str("a name mapping as JSON"),
            Self::MetricsMode => f.write_str("none, counts, truncate(LENGTH) or full"),
            Self::Shape => f.write_str("a type such as struct<a: long, b: string>"),
            Self::OneOf(allowed) => match allowed.split_last() {
                Some((last, others)) if !others.is_empty() => write!(f, "{} or {last}", others.join(", ")),
                _ => f.write_str(&allowed.concat()),
            },
        }
    }
}

/// Returns the known name that was probably meant: the same letters in another case or with other separators, or up to
/// two edits away in a long name with the same first letter. A known name that ends with a dot is compared with the
/// part before the column.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const EDITS: usize = 2;
    const LONG: usize = 10;
    let letters = |text: &str| -> Vec<char> {
        text.chars()
            .filter(|letter| !matches!(letter, '-' | '_' | '.'))
            .map(|letter| letter.to_ascii_lowercase())
            .collect()
    };
    let candidates = known.into_iter().filter_map(|known| {
        let levels = known.matches('.').count();
        let head = match known.strip_suffix('.') {
            Some(_) => name.match_indices('.').nth(levels.checked_sub(1)?).and_then(|(at, _)| name.get(..at))?,
            None => name,
        };
        let (meant, given) = (letters(known), letters(head));
        let distance = edits(&meant, &given);
        let close = distance <= EDITS && meant.first() == given.first() && meant.len().min(given.len()) >= LONG;
        (distance == 0 || close).then_some((distance, known))
    });
    candidates.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// Edit distance: letters to insert, delete or replace.
fn edits(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.iter().enumerate() {
        let mut left = at + 1;
        let mut diagonal = std::mem::replace(row.first_mut().unwrap_or(&mut 0), left);
        for (cell, other) in row.iter_mut().skip(1).zip(other) {
            let changed = diagonal + usize::from(letter != other);
            diagonal = *cell;
            left = changed.min(left + 1).min(diagonal + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(one.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str) -> std::result::Result<(), String> {
        let properties: StringMap = [(name.to_owned(), value.to_owned())].into_iter().collect();
        check_set(&properties).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_checked_when_they_are_set() {
        for (name, value) in [
            ("write.parquet.page-version", "v9"),
            ("write.target-file-size-bytes", "0"),
            ("write.target-file-size-bytes", "big"),
            ("write.format.default", "csv"),
            ("write.metadata.metrics.column.a.b", "truncate(0)"),
            ("write.parquet.bloom-filter-fpp.column.a", "1.5"),
            ("write.wap.enabled", "yes"),
            ("write.data.path", ""),
            ("schema.name-mapping.default", "[{"),
            ("encryption.data-key-length", "20"),
            ("write.location-provider.impl", ""),
            ("write.parquet.shred-variants.column.v", "struct<a>"),
        ] {
            let error = set(name, value).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        for (name, value) in [
            ("write.parquet.page-version", "V2"),
            ("write.metadata.metrics.default", "Truncate(8)"),
            ("write.parquet.compression-level", "null"),
            ("commit.retry.min-wait-ms", "0"),
            ("schema.name-mapping.default", r#"[{"field-id": 1, "names": ["a"]}]"#),
            ("write.parquet.shred-variants.column.v", "struct<a: long, b: list<int8>>"),
            ("owner", "me"),
            ("write.strange", "x"),
            ("commit", "x"),
            ("format", "x"),
            ("my.write.format", "x"),
        ] {
            assert_eq!(set(name, value), Ok(()), "{name}");
        }
    }

    #[test]
    fn flaws_of_properties_that_a_table_has() {
        assert_eq!(flaw("write.target-file-size-bytes", "0"), Some(Flaw::Value(AllowedValues::AtLeast(1))));
        assert_eq!(flaw("gc.enabled", "maybe"), Some(Flaw::Value(AllowedValues::Flag)));
        assert_eq!(flaw("write.format.defualt", "orc"), Some(Flaw::Name("write.format.default")));
        for (name, value) in [("write.target-file-size-bytes", "1"), ("gc.enabled", "FALSE"), ("owner", "me")] {
            assert_eq!(flaw(name, value), None, "{name}");
        }
    }

    #[test]
    fn names_close_to_known_ones_are_refused() {
        for (name, meant) in [
            ("format_version", "format-version"),
            ("formatVersion", "format-version"),
            ("write.format.defualt", "write.format.default"),
            ("write.parquet.compression.codec", "write.parquet.compression-codec"),
            ("write.target-file-size-byte", "write.target-file-size-bytes"),
            ("encryption.keyid", "encryption.key-id"),
            ("write.metadata.metrics.colum.a.b", "write.metadata.metrics.column."),
            ("write.wap-enabled", "write.wap.enabled"),
        ] {
            assert_eq!(set(name, "1"), Err(format!("there is no table property {name}: did you mean {meant}?")));
        }
    }

    #[test]
    fn defaults_can_be_set() {
        for known in KNOWN.iter().filter(|known| !matches!(known.effect, Effect::Refused(_))) {
            let Some(default) = known.default else { continue };
            assert_eq!(set(known.name, &default()), Ok(()), "{}", known.name);
        }
        let mut names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
