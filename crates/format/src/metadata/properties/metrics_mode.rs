//! Metrics modes: which metrics of a column go into manifests (Java's `MetricsModes`).

use std::fmt;

/// Which metrics of a column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsMode {
    /// No metrics.
    None,
    /// Counts of values, nulls and NaNs.
    Counts,
    /// Counts, and bounds truncated to this length.
    Truncate(usize),
    /// Counts and whole bounds.
    Full,
}

impl MetricsMode {
    /// Parses `none`, `counts`, `truncate(16)` or `full`, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        match text.as_str() {
            "none" => Some(Self::None),
            "counts" => Some(Self::Counts),
            "full" => Some(Self::Full),
            _ => {
                let length = text.strip_prefix("truncate(")?.strip_suffix(')')?.trim().parse::<usize>().ok()?;
                (length > 0).then_some(Self::Truncate(length))
            }
        }
    }

    /// Maximum length of bounds; `None` if the mode has no bounds.
    pub fn bound_length(self) -> Option<usize> {
        match self {
            Self::None | Self::Counts => None,
            Self::Truncate(length) => Some(length),
            Self::Full => Some(usize::MAX),
        }
    }
}

impl fmt::Display for MetricsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Counts => f.write_str("counts"),
            Self::Truncate(length) => write!(f, "truncate({length})"),
            Self::Full => f.write_str("full"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, mode) in [
            ("none", Some(MetricsMode::None)),
            ("Counts", Some(MetricsMode::Counts)),
            ("TRUNCATE(7)", Some(MetricsMode::Truncate(7))),
            ("full", Some(MetricsMode::Full)),
            ("truncate(0)", None),
            ("truncate(x)", None),
            ("", None),
        ] {
            assert_eq!(MetricsMode::parse(text), mode, "{text}");
            assert!(mode.is_none_or(|mode| MetricsMode::parse(&mode.to_string()) == Some(mode)));
        }
    }
}
