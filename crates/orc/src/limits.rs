//! Limits on what untrusted input can make a decoder do.

use crate::error::{Error, Result};

/// Limits that every decoder of this crate checks before it allocates, recurses or loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one compression chunk after decompression, whatever the postscript says (the format allows up to 2^23).
    pub chunk_bytes: usize,
    /// Bytes of one metadata section (footer, stripe statistics, stripe footer, index stream) after decompression.
    pub metadata_bytes: usize,
    /// Depth of nested types, because recursion over them uses the stack.
    pub depth: usize,
    /// Columns of one file, including nested ones.
    pub columns: usize,
    /// Values of one nested column (elements of lists, entries of maps) in one batch.
    pub batch_values: usize,
    /// Entries, and bytes, of one dictionary.
    pub dictionary_bytes: usize,
    /// Bytes of memory that any decoded metadata section may take, however short it is.
    pub least_memory: usize,
    /// Bytes of memory that a decoded metadata section may take per stored byte, beyond [`Limits::least_memory`].
    pub memory_ratio: usize,
    /// Maximum bytes of memory of a decoded metadata section. A section that is itself larger than a quarter of this
    /// may take four times its size.
    pub most_memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chunk_bytes: 1 << 23,
            metadata_bytes: 1 << 30,
            depth: 200,
            columns: 1 << 20,
            batch_values: 1 << 28,
            dictionary_bytes: 1 << 31,
            least_memory: 1 << 26,
            memory_ratio: 256,
            most_memory: 1 << 31,
        }
    }
}

impl Limits {
    /// The same limits, except that any metadata section may take this many bytes of memory.
    #[must_use]
    pub fn with_memory(self, bytes: usize) -> Self {
        Self { metadata_bytes: bytes, least_memory: bytes, most_memory: bytes, ..self }
    }

    /// The memory budget of a metadata section of `stored` bytes. It grows with the section, so that a short section
    /// cannot expand without bound.
    pub fn budget(&self, stored: usize) -> Budget {
        let most = self.most_memory.max(stored.saturating_mul(4));
        let total = stored.saturating_mul(self.memory_ratio).saturating_add(self.least_memory).min(most);
        Budget { total, left: total, stored }
    }
}

/// The memory left for one metadata section; it is charged before an allocation.
#[derive(Debug)]
pub struct Budget {
    total: usize,
    left: usize,
    stored: usize,
}

impl Budget {
    /// Charges bytes of memory to the budget.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] if fewer bytes are left.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let (total, stored) = (self.total, self.stored);
            Error::limit(format!(
                "needs more than the {total} bytes of memory that a section of {stored} bytes may take; if you trust the \
                 file, raise this limit (icefield: ICEFIELD_DOCUMENT_MEMORY=BYTES)"
            ))
        })?;
        Ok(())
    }

    /// Releases bytes of memory that were charged.
    pub fn release(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes).min(self.total);
    }

    /// Bytes of memory that are left.
    pub fn left(&self) -> usize {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_grows_with_the_section_and_says_how_to_raise_it() {
        let limits = Limits { least_memory: 100, memory_ratio: 2, most_memory: 150, ..Limits::default() };
        assert_eq!([0, 10, 25, 1000].map(|stored| limits.budget(stored).left()), [100, 120, 150, 2100]);
        let mut budget = limits.budget(10);
        budget.charge(100).unwrap();
        let error = budget.charge(21).unwrap_err().to_string();
        for part in ["120 bytes", "10 bytes", "ICEFIELD_DOCUMENT_MEMORY=BYTES"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
