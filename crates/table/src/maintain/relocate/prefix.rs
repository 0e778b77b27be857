//! Replaces the prefix of paths.

use crate::error::{Error, Result};

/// A prefix of paths and the one that replaces it. Prefixes end where a part of a path ends.
#[derive(Debug, Clone)]
pub(super) struct Prefix {
    /// Its spellings, the given one first, with a slash at the end.
    sources: Vec<String>,
    target: String,
}

/// Schemes of one store.
const SAME: [&[&str]; 2] = [&["s3", "s3a", "s3n"], &["gs", "gcs"]];

impl Prefix {
    /// # Errors
    /// An empty prefix, or twice the same one.
    pub(super) fn new(source: &str, target: &str) -> Result<Self> {
        for (name, prefix) in [("source", source), ("target", target)] {
            if prefix.trim().is_empty() {
                return Err(Error::invalid(format!("the {name} prefix is empty")));
            }
        }
        let (source, target) = (with_slash(source), with_slash(target));
        if source == target {
            return Err(Error::invalid(format!("the source prefix and the target prefix are the same: {source}")));
        }
        Ok(Self { sources: spellings(source), target })
    }

    /// Whether either prefix contains the other.
    pub(super) fn overlap(&self) -> bool {
        self.sources.iter().any(|source| source.starts_with(&self.target) || self.target.starts_with(source))
    }

    /// The path with the other prefix; `what` describes it in the error.
    ///
    /// # Errors
    /// A path without the prefix.
    pub(super) fn replaced(&self, what: &str, path: &str) -> Result<String> {
        self.below(&self.target, what, path)
    }

    /// The path below a folder instead of the prefix.
    ///
    /// # Errors
    /// As [`Prefix::replaced`].
    pub(super) fn below(&self, folder: &str, what: &str, path: &str) -> Result<String> {
        let folder = with_slash(folder);
        for source in &self.sources {
            if let Some(rest) = path.strip_prefix(source) {
                return Ok(format!("{folder}{rest}"));
            }
            if source.strip_suffix('/') == Some(path) {
                return Ok(folder.strip_suffix('/').unwrap_or(&folder).to_owned());
            }
        }
        let source = self.sources.first().map_or("", String::as_str);
        Err(Error::invalid(format!(
            "{what} is not below the source prefix {source}: {path}; all files of the table must be below one prefix"
        )))
    }
}

/// The ways in which writers spell a prefix: `file:///a` is `file:/a` to Hadoop, and `s3://` is `s3a://`.
fn spellings(prefix: String) -> Vec<String> {
    let local = prefix.strip_prefix("file:").unwrap_or(&prefix);
    if local.starts_with('/') && (local.starts_with("///") || !local.starts_with("//")) {
        let path = format!("/{}", local.trim_start_matches('/'));
        let all = [format!("file://{path}"), format!("file:{path}"), path];
        return std::iter::once(prefix.clone()).chain(all.into_iter().filter(|other| *other != prefix)).collect();
    }
    let Some((scheme, rest)) = prefix.split_once("://") else { return vec![prefix] };
    let same = SAME.iter().find(|all| all.contains(&scheme)).into_iter().flat_map(|all| all.iter());
    let others: Vec<String> = same.filter(|other| **other != scheme).map(|other| format!("{other}://{rest}")).collect();
    std::iter::once(prefix.clone()).chain(others).collect()
}

/// A folder with a slash at the end.
pub(super) fn with_slash(folder: &str) -> String {
    if folder.ends_with('/') { folder.to_owned() } else { format!("{folder}/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_where_a_part_of_a_path_ends() {
        for (source, target, path, expected) in [
            ("s3://a/t", "s3://b/u", "s3://a/t/data/f", Some("s3://b/u/data/f")),
            ("s3://a/t/", "s3://b/u", "s3://a/t/data/f", Some("s3://b/u/data/f")),
            ("s3://a/t", "s3://b/u/", "s3://a/t", Some("s3://b/u")),
            ("s3://a", "file:///x", "s3://a/t/f", Some("file:///x/t/f")),
            ("s3://a/t", "s3://b", "s3://a/tt/f", None),
            ("s3://a/t", "s3://b", "s3a://a/t/f", Some("s3://b/f")),
            ("s3://a/t", "s3://b", "gs://a/t/f", None),
            ("file:///a/t", "s3://b", "file:/a/t/f", Some("s3://b/f")),
            ("file:/a/t", "s3://b", "/a/t/f", Some("s3://b/f")),
            ("/a/t", "s3://b", "file:///a/t/f", Some("s3://b/f")),
            ("file://host/t", "s3://b", "/t/f", None),
        ] {
            let replaced = Prefix::new(source, target).unwrap().replaced("a data file", path);
            assert_eq!(replaced.as_deref().ok(), expected, "{source} {target} {path}");
        }
        let refused = |source: &str, target: &str| Prefix::new(source, target).unwrap_err().to_string();
        assert_eq!(refused("", "a"), "the source prefix is empty");
        assert_eq!(refused("a", " "), "the target prefix is empty");
        assert_eq!(refused("a/", "a"), "the source prefix and the target prefix are the same: a/");
        assert!(Prefix::new("/a", "/a/b").unwrap().overlap());
        assert!(Prefix::new("file:///a", "/a/b").unwrap().overlap());
        assert!(!Prefix::new("/a", "/ab").unwrap().overlap());
    }
}
