//! Skips values without decoding them.

use super::cursor::{Cursor, Fault};
use super::schema::Schema;

/// How to skip a value: a schema, reduced to the shape of its encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// This number of bytes.
    Bytes(u64),
    /// This number of varints.
    Varints(u64),
    /// A length, followed by that number of bytes.
    Prefixed,
    /// A branch number, and the value of that branch.
    Union(Box<[Skip]>),
    /// Blocks of items: arrays, and maps with key-value items.
    Items(Box<Skip>),
    /// Several values, one after the other.
    Sequence(Box<[Skip]>),
}

impl Skip {
    /// How to skip a value of `schema`.
    pub fn of(schema: &Schema) -> Self {
        match schema {
            Schema::Null => Self::Bytes(0),
            Schema::Boolean => Self::Bytes(1),
            Schema::Int(_) | Schema::Long(_) | Schema::Enum(_) => Self::Varints(1),
            Schema::Float => Self::Bytes(4),
            Schema::Double => Self::Bytes(8),
            Schema::Fixed(size, _) => Self::Bytes(*size),
            Schema::Bytes(_) | Schema::String(_) => Self::Prefixed,
            Schema::Union(branches) => Self::Union(branches.iter().map(Self::of).collect()),
            Schema::Array(array) => Self::Items(Box::new(Self::of(&array.items))),
            Schema::Map(map) => Self::Items(Box::new(Self::sequence([Self::Prefixed, Self::of(&map.values)]))),
            Schema::Record(record) => Self::sequence(record.fields.iter().map(|field| Self::of(&field.schema))),
        }
    }

    /// How to skip several values; neighbours of the same kind are merged.
    pub fn sequence(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut drawn: Vec<Self> = Vec::new();
        for part in parts {
            let inner = if let Self::Sequence(inner) = part { inner.into_vec() } else { vec![part] };
            for part in inner {
                match (drawn.last_mut(), part) {
                    (_, Self::Bytes(0)) => {}
                    (Some(Self::Bytes(n)), Self::Bytes(more)) => *n = n.saturating_add(more),
                    (Some(Self::Varints(n)), Self::Varints(more)) => *n = n.saturating_add(more),
                    (_, part) => drawn.push(part),
                }
            }
        }
        match drawn.pop() {
            None => Self::Bytes(0),
            Some(only) if drawn.is_empty() => only,
            Some(last) => {
                drawn.push(last);
                Self::Sequence(drawn.into())
            }
        }
    }

    /// Minimum length of a value in bytes; zero only if values are always empty.
    pub fn min_bytes(&self) -> u64 {
        match self {
            Self::Bytes(n) | Self::Varints(n) => *n,
            Self::Prefixed | Self::Union(_) | Self::Items(_) => 1,
            Self::Sequence(parts) => parts.iter().fold(0, |sum, part| sum.saturating_add(part.min_bytes())),
        }
    }

    /// Skips one value.
    #[inline]
    pub fn run(&self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        match self {
            Self::Bytes(n) => cursor.take(*n).map(|_| ()),
            Self::Varints(n) => cursor.skip_varints(*n),
            Self::Prefixed => cursor.bytes().map(|_| ()),
            Self::Union(branches) => {
                let branch = usize::try_from(cursor.length()?).map_err(|_| Fault::Branch)?;
                branches.get(branch).ok_or(Fault::Branch)?.run(cursor)
            }
            Self::Items(item) => skip_items(item, cursor),
            Self::Sequence(parts) => parts.iter().try_for_each(|part| part.run(cursor)),
        }
    }
}

/// Skips the blocks of an array or map.
fn skip_items(item: &Skip, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    loop {
        let (count, bytes) = cursor.items()?;
        if let Some(bytes) = bytes {
            cursor.take(bytes)?;
            continue;
        }
        match item {
            _ if count == 0 => return Ok(()),
            Skip::Bytes(n) => cursor.take(n.checked_mul(count).ok_or(Fault::TooLong)?).map(|_| ())?,
            Skip::Varints(n) => cursor.skip_varints(n.checked_mul(count).ok_or(Fault::TooLong)?)?,
            Skip::Sequence(parts) if matches!(**parts, [Skip::Varints(1), Skip::Prefixed]) => {
                skip_keyed_bytes(count, cursor)?
            }
            // Every such item has a byte or more, so the loop ends with the input.
            item => (0..count).try_for_each(|_| item.run(cursor))?,
        }
    }
}

/// Skips pairs of a varint and bytes, such as the bounds of an entry.
pub(crate) fn skip_keyed_bytes(count: u64, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    for _ in 0..count {
        match *cursor.rest() {
            // The usual case: key and length take one byte each. A zigzag length is even if it is not negative.
            [key, length, ref tail @ ..] if key < 0x80 && length < 0x80 && length & 1 == 0 => {
                *cursor = Cursor::new(tail.get(usize::from(length >> 1)..).ok_or(Fault::TooLong)?);
            }
            _ => {
                cursor.skip_varints(1)?;
                cursor.bytes()?;
            }
        }
    }
    Ok(())
}
