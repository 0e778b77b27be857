//! What a finding says.

/// Something that costs, and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    /// The name of the finding, such as `small-files`.
    pub name: &'static str,
    /// What it is about: a partition, a column, a property; empty for the table.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What it costs in bytes: stored for nothing, or read by scans for nothing.
    pub bytes: u64,
    /// What it costs in requests: files that a scan or a commit reads in addition.
    pub requests: u64,
    /// The call that repairs it, in Python, or several with semicolons; empty if somebody has to decide how.
    pub repair: String,
}

/// A text as Python writes it.
pub(super) fn quoted(text: &str) -> String {
    // Texts of JSON are texts of Python.
    serde_json::Value::from(text).to_string()
}
