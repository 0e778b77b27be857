//! Options of maintenance by name: names, defaults and limits are those of the Java library's actions.

use icefield_format::metadata::StringMap;
use icefield_format::nearest::hint;

use crate::error::{Error, Result};

/// The options of one call. Each option that is read becomes a known one; [`Given::end`] rejects all others.
pub(super) struct Given<'a> {
    options: &'a StringMap,
    known: Vec<&'static str>,
}

impl<'a> Given<'a> {
    pub(super) fn new(options: &'a StringMap) -> Self {
        Self { options, known: Vec::new() }
    }

    /// The text of an option.
    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        self.options.get(name).map(|text| text.trim())
    }

    /// An integer of at least `least`.
    pub(super) fn integer(&mut self, name: &'static str, default: i64, least: i64) -> Result<i64> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse::<i64>().ok().filter(|number| *number >= least);
        number.ok_or_else(|| wrong(name, &format!("an integer of at least {least}"), text))
    }

    /// A number for which `holds`.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        default: f64,
        expected: &str,
        holds: impl Fn(f64) -> bool,
    ) -> Result<f64> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse::<f64>().ok().filter(|number| holds(*number));
        number.ok_or_else(|| wrong(name, expected, text))
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, name: &'static str, default: bool) -> Result<bool> {
        match self.text(name) {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(wrong(name, "true or false", text)),
        }
    }

    /// Rejects options that were not read.
    pub(super) fn end(self, operation: &str) -> Result<()> {
        let Some(other) = self.options.keys().find(|name| !self.known.contains(&name.as_str())) else { return Ok(()) };
        let near = hint(other, self.known.iter().copied());
        Err(Error::invalid(format!(
            "{operation}: unknown option '{other}'{near} (there are: {})",
            self.known.join(", ")
        )))
    }
}

/// The error for the value of an option.
pub(super) fn wrong(name: &str, expected: &str, got: &str) -> Error {
    Error::invalid(format!("option '{name}': expected {expected}, got '{got}'"))
}
