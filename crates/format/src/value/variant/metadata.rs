//! The dictionary of field names in a variant ("Metadata encoding").

use crate::error::Result;

use super::{corrupt, text, unsigned};

const VERSION: u8 = 1;

/// The dictionary of a variant, to whose names its values refer by number.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'a> {
    bytes: &'a [u8],
    width: usize,
    len: usize,
    is_sorted: bool,
    /// Offset of the first name.
    names: usize,
}

impl<'a> Metadata<'a> {
    /// An empty dictionary.
    pub const EMPTY: [u8; 3] = [1, 0, 0];

    /// Reads the header, and cuts bytes after the last name. Names are decoded only when they are used.
    ///
    /// # Errors
    /// `Corrupt` for another version, or if names or offsets are beyond the bytes.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let header = *bytes.first().ok_or_else(|| corrupt("the variant's metadata are empty"))?;
        if header & 0x0f != VERSION {
            return Err(corrupt(format!("the variant's metadata have version {}, expected 1", header & 0x0f)));
        }
        let width = usize::from(header >> 6) + 1;
        let short =
            || corrupt(format!("the variant's metadata end after {} bytes, within the dictionary", bytes.len()));
        let len = unsigned(bytes, 1, width).ok_or_else(short)?;
        // `VariantShredding.md` writes an empty dictionary as `01 00`, without the one offset that the encoding
        // requires.
        if len == 0 && bytes.len() == width + 1 {
            return Ok(Self { bytes, width, len, is_sorted: false, names: bytes.len() });
        }
        let names = len.checked_add(2).and_then(|count| count.checked_mul(width)).ok_or_else(short)?.saturating_add(1);
        let last = unsigned(bytes, names.saturating_sub(width), width).ok_or_else(short)?;
        let end = names.checked_add(last).ok_or_else(short)?;
        let bytes = bytes.get(..end).ok_or_else(short)?;
        Ok(Self { bytes, width, len, is_sorted: header & 0x10 != 0, names })
    }

    /// Its bytes up to the last name.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the name with a number.
    ///
    /// # Errors
    /// `Corrupt` if the name is missing, or its bytes are not text.
    pub fn name(&self, id: usize) -> Result<&'a str> {
        if id >= self.len {
            return Err(corrupt(format!("field id {id} is not in the dictionary, which has {} names", self.len)));
        }
        let offset = |id: usize| unsigned(self.bytes, (id + 1) * self.width + 1, self.width);
        let name = offset(id)
            .zip(offset(id + 1))
            .and_then(|(start, end)| self.bytes.get(self.names.checked_add(start)?..self.names.checked_add(end)?));
        text(name.ok_or_else(|| corrupt(format!("name {id} of the dictionary has invalid offsets")))?, "a field name")
    }

    /// Returns the number of a name.
    ///
    /// # Errors
    /// `Corrupt` if a name that it is compared with cannot be read.
    pub fn id(&self, name: &str) -> Result<Option<usize>> {
        if !self.is_sorted {
            for id in 0..self.len {
                if self.name(id)? == name {
                    return Ok(Some(id));
                }
            }
            return Ok(None);
        }
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle)?.cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
            }
        }
        Ok(None)
    }

    /// Checks all names.
    ///
    /// # Errors
    /// `Corrupt` if a name cannot be read.
    pub fn check(&self) -> Result<()> {
        (0..self.len).try_for_each(|id| self.name(id).map(drop))
    }
}
