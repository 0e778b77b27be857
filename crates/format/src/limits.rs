//! Limits on what untrusted input may demand.

use crate::error::{Error, Result};

/// The variable that sets [`Limits::with_memory`] where icefield is used from Python.
pub const MEMORY_VARIABLE: &str = "ICEFIELD_DOCUMENT_MEMORY";
/// The variable that sets [`Limits::operation_memory`] where icefield is used from Python.
pub const OPERATION_VARIABLE: &str = "ICEFIELD_OPERATION_MEMORY";
/// Memory that an operation may hold for each byte of its files, where that is more than [`Limits::operation_memory`].
const OPERATION_RATIO: usize = 16;

/// Bounds that every decoder of this crate checks before it allocates, recurses or loops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one metadata JSON document after decompression.
    pub metadata_json_bytes: usize,
    /// Bytes of one Avro block after decompression.
    pub block_bytes: usize,
    /// Decompressed bytes of one block for each compressed byte.
    pub block_ratio: usize,
    /// Bytes of all blocks of one Avro file after decompression. Below 2^31, so that 32-bit Arrow offsets reach.
    pub avro_bytes: usize,
    /// Approximate bytes of the values of one Avro file: records of few bytes may have many columns.
    pub decoded_bytes: usize,
    /// Depth of JSON values, Avro schemas and expressions.
    pub depth: usize,
    /// Depth of nested types. Each struct takes three levels of JSON, so that this is what a JSON parser's 128 leave room
    /// for: a table is not created that could not be loaded again.
    pub type_depth: usize,
    /// Fields of one schema, nested ones included.
    pub fields: usize,
    /// Bytes of one Puffin blob after decompression.
    pub blob_bytes: usize,
    /// Memory that any document may take, however short its file is.
    pub least_memory: usize,
    /// Memory that a document may take per byte of its file, beyond [`Limits::least_memory`].
    pub memory_ratio: usize,
    /// Limit of the memory that a document takes; a file that is larger than this may take four times its own size.
    pub most_memory: usize,
    /// Memory of all documents that one operation holds at the same time; those of large files may take sixteen times as
    /// much as the files.
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
    /// The same limits, with this much memory for any document.
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

    /// The memory of the documents of one operation: none yet.
    pub fn held(&self) -> Held {
        Held { most: self.operation_memory, stored: 0, bytes: 0 }
    }

    /// The memory of one document whose file has `stored` bytes: a short file that becomes large is a bomb, and a
    /// large file may become what it needs.
    pub fn budget(&self, stored: usize) -> Budget {
        let most = self.most_memory.max(stored.saturating_mul(4));
        let total = stored.saturating_mul(self.memory_ratio).saturating_add(self.least_memory).min(most);
        Budget { total, left: total, stored, is_spent: false }
    }
}

/// Memory of the documents that one operation holds at the same time: each may be within its own budget, and all together
/// more than the machine has.
#[derive(Debug, Clone)]
pub struct Held {
    most: usize,
    stored: usize,
    bytes: usize,
}

impl Held {
    /// Counts the bytes of a file that was read, once however often it is named.
    pub fn read(&mut self, stored: usize) {
        self.stored = self.stored.saturating_add(stored);
    }

    /// Counts what is kept of what was read.
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

/// Memory that is left for one document: charged before it is taken.
#[derive(Debug)]
pub struct Budget {
    total: usize,
    left: usize,
    stored: usize,
    is_spent: bool,
}

impl Budget {
    /// Charges memory, if so much is left.
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

    /// The same budget, but no more than this.
    #[must_use]
    pub(crate) fn at_most(self, most: usize) -> Self {
        Self { total: self.total.min(most), left: self.left.min(most), ..self }
    }

    /// The same limits, for an Avro file of this budget: what its blocks and values may become ends with it as well.
    pub(crate) fn of_avro(&self, limits: &Limits) -> Limits {
        Limits {
            block_bytes: limits.block_bytes.min(self.total),
            avro_bytes: limits.avro_bytes.min(self.total),
            decoded_bytes: limits.decoded_bytes.min(self.total),
            ..*limits
        }
    }

    /// Bytes that may be decompressed into a vector, which grows by doubling: old and new room are there at a time.
    pub(crate) fn growing(&self) -> usize {
        self.left / 3
    }

    /// Takes the memory of what was decompressed; refuses what is more than [`Budget::growing`] was.
    pub(crate) fn charge_grown(&mut self, bytes: usize) -> Result<()> {
        let growth = bytes.saturating_mul(2);
        self.charge(bytes.saturating_add(growth))?;
        self.release(growth);
        Ok(())
    }

    /// Memory that is left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Whether a charge was refused.
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// What a refused charge says.
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
