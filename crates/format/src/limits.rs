//! Limits for untrusted input.

use crate::error::{Error, Result};

/// Environment variable for [`Limits::with_memory`] when icefield is used from Python.
pub const MEMORY_VARIABLE: &str = "ICEFIELD_DOCUMENT_MEMORY";
/// Environment variable for [`Limits::operation_memory`] when icefield is used from Python.
pub const OPERATION_VARIABLE: &str = "ICEFIELD_OPERATION_MEMORY";
/// Memory per byte of its files that an operation may hold, if that is more than [`Limits::operation_memory`].
const OPERATION_RATIO: usize = 16;

/// Limits that every decoder of this crate checks before it allocates, recurses or loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Decompressed size of a metadata JSON document.
    pub metadata_json_bytes: usize,
    /// Decompressed size of an Avro block.
    pub block_bytes: usize,
    /// Decompressed size of a block per compressed byte.
    pub block_ratio: usize,
    /// Decompressed size of all blocks of an Avro file. Below 2^31, so that 32-bit Arrow offsets suffice.
    pub avro_bytes: usize,
    /// Approximate memory of the decoded values of an Avro file: short records may have many columns.
    pub decoded_bytes: usize,
    /// Depth of JSON values, Avro schemas and expressions.
    pub depth: usize,
    /// Depth of nested types. Each struct takes three levels of JSON, and JSON parsers allow 128: this limit ensures
    /// that a new table can be loaded again.
    pub type_depth: usize,
    /// Number of fields in a schema, nested ones included.
    pub fields: usize,
    /// Decompressed size of a Puffin blob.
    pub blob_bytes: usize,
    /// Memory that any document may take, however small its file is.
    pub least_memory: usize,
    /// Memory per byte of its file that a document may take in addition to [`Limits::least_memory`].
    pub memory_ratio: usize,
    /// Memory limit of a document; if four times the size of its file is more, that is the limit.
    pub most_memory: usize,
    /// Memory of all documents that an operation holds at the same time; if sixteen times the size of their files is
    /// more, that is the limit.
    pub operation_memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            metadata_json_bytes: 1 << 28,
            block_bytes: 1 << 28,
            block_ratio: 1 << 12,
            avro_bytes: 1 << 30,
            decoded_bytes: 1 << 31,
            depth: 128,
            type_depth: 40,
            fields: 100_000,
            blob_bytes: 1 << 31,
            least_memory: 1 << 26,
            memory_ratio: 128,
            most_memory: 1 << 31,
            operation_memory: 1 << 31,
        }
    }
}

impl Limits {
    /// Returns the same limits with this memory limit for any document.
    #[must_use]
    pub fn with_memory(self, bytes: usize) -> Self {
        Self {
            metadata_json_bytes: bytes,
            block_bytes: bytes,
            avro_bytes: bytes,
            decoded_bytes: bytes,
            blob_bytes: bytes,
            least_memory: bytes,
            most_memory: bytes,
            operation_memory: self.operation_memory.max(bytes),
            ..self
        }
    }

    /// Starts counting the memory of an operation's documents.
    pub fn held(&self) -> Held {
        Held { most: self.operation_memory, stored: 0, bytes: 0 }
    }

    /// Returns the memory budget of a document whose file has `stored` bytes. A small file that becomes large in memory
    /// is a bomb, but a large file may need more.
    pub fn budget(&self, stored: usize) -> Budget {
        let most = self.most_memory.max(stored.saturating_mul(4));
        let total = stored.saturating_mul(self.memory_ratio).saturating_add(self.least_memory).min(most);
        Budget { total, left: total, stored, is_spent: false }
    }
}

/// Memory of the documents that an operation holds at the same time. Each may be within its own budget, while all
/// together exceed the machine's memory.
#[derive(Debug, Clone)]
pub struct Held {
    most: usize,
    stored: usize,
    bytes: usize,
}

impl Held {
    /// Counts the bytes of a file that was read; call it once per file, even if the file is used several times.
    pub fn read(&mut self, stored: usize) {
        self.stored = self.stored.saturating_add(stored);
    }

    /// Counts the memory that stays in use.
    pub fn keep(&mut self, bytes: usize) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        let most = self.most.max(self.stored.saturating_mul(OPERATION_RATIO));
        if self.bytes <= most {
            return Ok(());
        }
        Err(Error::corrupt(
            "",
            format!(
                "this operation needs more than the {most} bytes of memory that all its metadata may take at the same \
                 time; if you trust the files, raise this limit with {OPERATION_VARIABLE}=BYTES"
            ),
        ))
    }
}

/// Remaining memory of a document; it is charged before it is allocated.
#[derive(Debug)]
pub struct Budget {
    total: usize,
    left: usize,
    stored: usize,
    is_spent: bool,
}

impl Budget {
    /// Charges memory, or fails if less is left.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.is_spent = true;
                Err(self.error())
            }
        }
    }

    /// Returns memory to the budget.
    pub fn release(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes).min(self.total);
    }

    /// Returns the same budget, limited to `most`.
    #[must_use]
    pub(crate) fn at_most(self, most: usize) -> Self {
        Self { total: self.total.min(most), left: self.left.min(most), ..self }
    }

    /// Returns the limits for an Avro file with this budget, which also limits the size of its blocks and values.
    pub(crate) fn of_avro(&self, limits: &Limits) -> Limits {
        Limits {
            block_bytes: limits.block_bytes.min(self.total),
            avro_bytes: limits.avro_bytes.min(self.total),
            decoded_bytes: limits.decoded_bytes.min(self.total),
            ..*limits
        }
    }

    /// Number of bytes that may be decompressed to a vector. A vector grows by doubling, when old and new allocation
    /// exist at the same time.
    pub(crate) fn growing(&self) -> usize {
        self.left / 3
    }

    /// Charges decompressed memory; refuses more than [`Budget::growing`] allowed.
    pub(crate) fn charge_grown(&mut self, bytes: usize) -> Result<()> {
        let growth = bytes.saturating_mul(2);
        self.charge(bytes.saturating_add(growth))?;
        self.release(growth);
        Ok(())
    }

    /// Remaining memory.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether a charge was refused.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// The error of a refused charge.
    pub fn error(&self) -> Error {
        let (total, stored) = (self.total, self.stored);
        Error::corrupt(
            "",
            format!(
                "needs more than the {total} bytes of memory that a document of {stored} bytes may take; if you trust \
                 the file, raise this limit with {MEMORY_VARIABLE}=BYTES"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_grows_with_the_file_between_its_bounds() {
        let limits = Limits::default();
        assert_eq!(limits.budget(0).left(), 1 << 26);
        assert_eq!(limits.budget(1 << 20).left(), (1 << 26) + (128 << 20));
        assert_eq!(limits.budget(100 << 20).left(), 1 << 31);
        assert_eq!(limits.budget(1 << 30).left(), 4 << 30);
        assert_eq!(limits.with_memory(1 << 20).budget(9).left(), 1 << 20);
    }

    #[test]
    fn many_documents_are_bounded_together() {
        let limits = Limits { operation_memory: 100, ..Limits::default() };
        let mut held = limits.held();
        held.keep(60).unwrap();
        let error = held.clone().keep(41).unwrap_err().to_string();
        assert!(error.contains("100 bytes") && error.contains("ICEFIELD_OPERATION_MEMORY=BYTES"), "{error}");
        held.read(10);
        held.keep(100).unwrap();
        assert!(held.keep(1).unwrap_err().to_string().contains("160 bytes"));
        assert_eq!(limits.with_memory(1 << 20).operation_memory, 1 << 20);
        assert_eq!(Limits::default().with_memory(1 << 20).operation_memory, 1 << 31);
    }

    #[test]
    fn what_is_refused_names_the_limit_and_how_to_raise_it() {
        let mut budget = Limits { least_memory: 100, memory_ratio: 0, ..Limits::default() }.budget(7);
        budget.charge(60).unwrap();
        assert!(!budget.is_spent());
        let error = budget.charge(41).unwrap_err().to_string();
        assert!(budget.is_spent());
        for part in ["100 bytes", "7 bytes", "ICEFIELD_DOCUMENT_MEMORY=BYTES"] {
            assert!(error.contains(part), "{error}");
        }
        budget.release(60);
        assert_eq!(budget.left(), 100);
    }
}
