//! Splits paths into scheme, authority and path, with those schemes and authorities equal that the caller says are.

use std::collections::HashMap;

use crate::storage::{Parts, Places, Storage};

/// Scheme and authority of a path, in one spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Prefix {
    pub(super) scheme: String,
    pub(super) authority: String,
    /// Whether the path was written without a scheme: then it may be in any store.
    pub(super) is_open: bool,
}

impl Prefix {
    /// Whether a listed file with the prefix `listed` may be a referenced one with this prefix.
    pub(super) fn admits(&self, listed: &Self) -> bool {
        self.is_open
            || (self.scheme == listed.scheme && (self.authority.is_empty() || self.authority == listed.authority))
    }

    /// The texts that differ between a referenced and a listed file.
    pub(super) fn conflicts(&self, listed: &Self) -> Vec<(String, String)> {
        let mut found = Vec::new();
        if self.scheme != listed.scheme {
            found.push((self.scheme.clone(), listed.scheme.clone()));
        }
        if self.authority != listed.authority {
            let shown = |text: &String| if text.is_empty() { "no authority".to_owned() } else { text.clone() };
            found.push((shown(&self.authority), shown(&listed.authority)));
        }
        found
    }
}

/// Splits paths.
pub(super) struct Prefixes {
    places: Places,
    schemes: HashMap<String, String>,
    authorities: HashMap<String, String>,
}

impl Prefixes {
    pub(super) fn new(storage: &Storage, schemes: &[(String, String)], authorities: &[(String, String)]) -> Self {
        Self { places: Places::of(storage), schemes: flattened(schemes), authorities: flattened(authorities) }
    }

    /// The prefix of a path, and the rest in one spelling.
    pub(super) fn split(&self, path: &str) -> (Prefix, String) {
        let Parts { scheme, authority, path: rest, written } = self.places.parts(path);
        let is_open = written.as_ref().is_none_or(|(scheme, _)| scheme.is_empty());
        let (written_scheme, written_authority) = written.unwrap_or_default();
        let equal = |known: &HashMap<String, String>, written: &str, own: String| {
            let found = known.get(&written.to_ascii_lowercase()).or_else(|| known.get(&own.to_ascii_lowercase()));
            found.cloned().unwrap_or(own)
        };
        let scheme = Places::scheme(&equal(&self.schemes, &written_scheme, scheme)).to_owned();
        let authority = equal(&self.authorities, &written_authority, authority).to_ascii_lowercase();
        (Prefix { scheme, authority, is_open }, rest)
    }
}

/// Each of the texts separated by commas with the one that it is equal to.
fn flattened(equal: &[(String, String)]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for (texts, to) in equal {
        let to = to.trim().to_ascii_lowercase();
        found.extend(texts.split(',').map(|text| (text.trim().to_ascii_lowercase(), to.clone())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let pair = |one: &str| one.split_once('=').map(|(from, to)| (from.to_owned(), to.to_owned())).unwrap();
        text.split(';').filter(|one| !one.is_empty()).map(pair).collect()
    }

    #[test]
    fn equal_schemes_and_authorities() {
        // A referenced path, a listed one, equal schemes and authorities, and whether both are the same file.
        let table: &[(&str, &str, &str, &str, bool)] = &[
            ("s3a://b/t/x", "s3://b/t/x", "", "", true),
            ("s3a://b/t/x", "s3://B/t//x", "", "", true),
            ("s3://a/t/x", "s3://b/t/x", "", "", false),
            ("s3://a/t/x", "s3://b/t/x", "", "a=b", true),
            ("s3://a/t/x", "s3://b/t/x", "", "a,c=b", true),
            ("s3://b/t/x", "gs://b/t/x", "", "", false),
            ("s3a://b/t/x", "gs://b/t/x", "s3a,s3n=gs", "", true),
            ("gs://b/t/x", "s3n://b/t/x", "s3=gs", "", true),
            ("hdfs://node:8020/w/t/x", "/w/t/x", "", "", false),
            ("hdfs://node:8020/w/t/x", "/w/t/x", "hdfs=file", "node:8020=", true),
            ("/w/t/x", "file:///w/t/x", "", "", true),
            ("/w/t/x", "s3://w/w/t/x", "", "", true),
            ("file:///w/t/x", "s3://w/w/t/x", "", "", false),
            ("viewfs:///w/t/x", "viewfs://one/w/t/x", "", "", true),
            ("memory:/t/x", "memory:///t/x", "", "", true),
        ];
        for (known, listed, schemes, authorities, same) in table {
            let prefixes = Prefixes::new(&Storage::default(), &pairs(schemes), &pairs(authorities));
            let ((known_prefix, one), (listed_prefix, other)) = (prefixes.split(known), prefixes.split(listed));
            assert_eq!(one, other, "{known} and {listed}");
            assert_eq!(known_prefix.admits(&listed_prefix), *same, "{known} and {listed}");
            // A missing authority is a difference, and not a conflict.
            let conflicts = known_prefix.conflicts(&listed_prefix);
            let agree = conflicts.iter().all(|(known, _)| known == "no authority");
            assert_eq!(known_prefix.is_open || agree, *same, "{known} and {listed}: {conflicts:?}");
        }
    }
}
