//! Decodes single values of a variant ("Value encoding").

use crate::error::{Error, Result};

use super::metadata::Metadata;
use super::{DEPTH, corrupt, text, unsigned};

/// Limit of how often the values of a variant may reuse its bytes. Fields may share a value, so without a limit a few
/// kilobytes could expand to an endless tree.
const SHARED: usize = 16;

/// A value with the dictionary of its field names.
#[derive(Debug, Clone, Copy)]
pub struct Variant<'a> {
    metadata: Metadata<'a>,
    value: &'a [u8],
}

/// A decoded value. The contents of objects and arrays are decoded on access.
#[derive(Debug, Clone, Copy)]
pub enum Node<'a> {
    /// `null`, which is a value rather than the absence of one.
    Null,
    /// `boolean`
    Boolean(bool),
    /// `int8`
    Int8(i8),
    /// `int16`
    Int16(i16),
    /// `int32`
    Int32(i32),
    /// `int64`
    Int64(i64),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// `decimal4`, `decimal8`, `decimal16`
    Decimal {
        /// The number without its point.
        unscaled: i128,
        /// Digits after the point, 0 to 38.
        scale: u8,
        /// Bytes of the unscaled number: 4, 8 or 16.
        bytes: u8,
    },
    /// `date`: days since 1970-01-01.
    Date(i32),
    /// `time`: microseconds since midnight.
    Time(i64),
    /// `timestamp`: microseconds since 1970-01-01.
    Timestamp {
        /// Microseconds.
        micros: i64,
        /// Whether it is an instant in UTC.
        is_utc: bool,
    },
    /// `timestamp` in nanoseconds since 1970-01-01.
    TimestampNanos {
        /// Nanoseconds.
        nanos: i64,
        /// Whether it is an instant in UTC.
        is_utc: bool,
    },
    /// `binary`
    Binary(&'a [u8]),
    /// `string` of any length.
    String(&'a str),
    /// `uuid`, big endian.
    Uuid([u8; 16]),
    /// An object.
    Object(Object<'a>),
    /// An array.
    Array(Elements<'a>),
}

/// Fields of an object, ordered by name.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    metadata: Metadata<'a>,
    ids: &'a [u8],
    id_width: usize,
    children: Children<'a>,
}

/// Elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    metadata: Metadata<'a>,
    children: Children<'a>,
}

/// Contiguous values, found by offsets.
#[derive(Debug, Clone, Copy)]
struct Children<'a> {
    offsets: &'a [u8],
    width: usize,
    len: usize,
    data: &'a [u8],
}

impl<'a> Children<'a> {
    /// Splits the bytes after the count and the ids; also returns the number of bytes used.
    fn read(rest: &'a [u8], len: usize, width: usize) -> Option<(Self, usize)> {
        let table = len.checked_add(1)?.checked_mul(width)?;
        let (offsets, data) = rest.split_at_checked(table)?;
        let size = unsigned(offsets, table.checked_sub(width)?, width)?;
        Some((Self { offsets, width, len, data: data.get(..size)? }, table.checked_add(size)?))
    }

    fn get(&self, at: usize) -> Result<&'a [u8]> {
        let offset = at.checked_mul(self.width).and_then(|place| unsigned(self.offsets, place, self.width));
        let rest = offset.and_then(|offset| self.data.get(offset..)).filter(|rest| !rest.is_empty());
        rest.ok_or_else(|| {
            corrupt(format!("the offset of value {at} is beyond the {} bytes of values", self.data.len()))
        })
    }
}

impl<'a> Variant<'a> {
    /// Creates a variant from its two parts.
    ///
    /// # Errors
    /// `Corrupt` if the metadata cannot be read; the value is read on access.
    pub fn new(metadata: &'a [u8], value: &'a [u8]) -> Result<Self> {
        Ok(Self { metadata: Metadata::read(metadata)?, value })
    }

    /// Creates a variant from a value and its dictionary.
    #[must_use]
    pub fn of(metadata: Metadata<'a>, value: &'a [u8]) -> Self {
        Self { metadata, value }
    }

    /// Reads metadata followed by a value, the form of bounds of variants.
    ///
    /// # Errors
    /// `Corrupt` if the metadata cannot be read.
    pub fn concatenated(bytes: &'a [u8]) -> Result<Self> {
        let metadata = Metadata::read(bytes)?;
        Ok(Self { metadata, value: bytes.get(metadata.bytes().len()..).unwrap_or_default() })
    }

    /// The dictionary.
    #[must_use]
    pub fn metadata(&self) -> Metadata<'a> {
        self.metadata
    }

    /// The bytes of the value, possibly followed by others.
    #[must_use]
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The bytes of the value only.
    ///
    /// # Errors
    /// `Corrupt` if the value exceeds its bytes.
    pub fn exact(&self) -> Result<&'a [u8]> {
        let size = self.decode()?.1;
        self.value.get(..size).ok_or_else(short)
    }

    /// Decodes one level.
    ///
    /// # Errors
    /// `Corrupt` if counts, offsets or lengths exceed the bytes; `Unsupported` for a primitive type that version 1 does
    /// not have.
    pub fn node(&self) -> Result<Node<'a>> {
        Ok(self.decode()?.0)
    }

    /// Decodes one level; also returns the number of bytes that it takes.
    fn decode(&self) -> Result<(Node<'a>, usize)> {
        let (header, rest) = self.value.split_first().ok_or_else(|| corrupt("the variant's value is empty"))?;
        let (node, used) = match header & 3 {
            0 => primitive(header >> 2, rest)?,
            1 => {
                let size = usize::from(header >> 2);
                (Node::String(text(rest.get(..size).ok_or_else(short)?, "a string")?), size)
            }
            2 => self.object(header >> 2, rest).ok_or_else(short)?,
            _ => {
                let header = header >> 2;
                let count = if header & 4 == 0 { 1 } else { 4 };
                let read = || {
                    let len = unsigned(rest, 0, count)?;
                    let (children, used) = Children::read(rest.get(count..)?, len, usize::from(header & 3) + 1)?;
                    Some((Node::Array(Elements { metadata: self.metadata, children }), count.checked_add(used)?))
                };
                read().ok_or_else(short)?
            }
        };
        Ok((node, used + 1))
    }

    fn object(&self, header: u8, rest: &'a [u8]) -> Option<(Node<'a>, usize)> {
        let count = if header & 0x10 == 0 { 1 } else { 4 };
        let (width, id_width) = (usize::from(header & 3) + 1, usize::from(header >> 2 & 3) + 1);
        let len = unsigned(rest, 0, count)?;
        let (ids, rest) = rest.get(count..)?.split_at_checked(len.checked_mul(id_width)?)?;
        let (children, used) = Children::read(rest, len, width)?;
        let object = Object { metadata: self.metadata, ids, id_width, children };
        Some((Node::Object(object), count.checked_add(ids.len())?.checked_add(used)?))
    }

    /// Checks the dictionary, and the values at every depth.
    ///
    /// # Errors
    /// `Corrupt` as [`Variant::node`]; also if values are nested deeper than [`DEPTH`], or reuse the same bytes too
    /// often.
    pub fn check(&self) -> Result<()> {
        self.metadata.check()?;
        self.check_value()
    }

    /// Like [`Variant::check`], with a dictionary that is already checked.
    ///
    /// # Errors
    /// As [`Variant::check`].
    pub fn check_value(&self) -> Result<()> {
        let mut left = self.value.len().saturating_mul(SHARED);
        let mut open: Vec<(Variant<'a>, usize)> = vec![(*self, 0)];
        while let Some((variant, depth)) = open.pop() {
            if depth > DEPTH {
                return Err(corrupt(format!("the variant is nested deeper than {DEPTH} levels")));
            }
            let (node, size) = match variant.decode() {
                Ok(decoded) => decoded,
                // A type that this version does not know: its bytes cannot be checked.
                Err(Error::Unsupported(_)) => continue,
                Err(error) => return Err(error),
            };
            let cost = match node {
                Node::Object(object) => object.len(),
                Node::Array(elements) => elements.len(),
                _ => size,
            };
            left = left.checked_sub(cost).ok_or_else(|| corrupt("values inside the variant overlap"))?;
            match node {
                Node::Object(object) => {
                    for field in object.fields() {
                        open.push((field?.1, depth + 1));
                    }
                }
                Node::Array(elements) => {
                    for element in elements.iter() {
                        open.push((element?, depth + 1));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'a> Object<'a> {
    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.children.len
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = Result<(&'a str, Variant<'a>)>> + use<'a> {
        let object = *self;
        (0..object.len()).map(move |at| Ok((object.name(at)?, object.at(at)?)))
    }

    /// Like [`Object::fields`], with the number of each name in the dictionary.
    pub fn entries(&self) -> impl Iterator<Item = Result<(usize, &'a str, Variant<'a>)>> + use<'a> {
        let object = *self;
        (0..object.len()).map(move |at| {
            let id = object.id(at)?;
            Ok((id, object.metadata.name(id)?, object.at(at)?))
        })
    }

    /// Returns the value of a field; names are case-sensitive.
    ///
    /// # Errors
    /// `Corrupt` if a name or the value cannot be read.
    pub fn get(&self, name: &str) -> Result<Option<Variant<'a>>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.name(middle)?.cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.at(middle).map(Some),
            }
        }
        Ok(None)
    }

    fn id(&self, at: usize) -> Result<usize> {
        let id = at.checked_mul(self.id_width).and_then(|place| unsigned(self.ids, place, self.id_width));
        id.ok_or_else(short)
    }

    fn name(&self, at: usize) -> Result<&'a str> {
        self.metadata.name(self.id(at)?)
    }

    fn at(&self, at: usize) -> Result<Variant<'a>> {
        Ok(Variant { metadata: self.metadata, value: self.children.get(at)? })
    }
}

impl<'a> Elements<'a> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.children.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns an element.
    ///
    /// # Errors
    /// `Corrupt` if its offset is wrong.
    pub fn get(&self, at: usize) -> Result<Option<Variant<'a>>> {
        if at >= self.len() {
            return Ok(None);
        }
        Ok(Some(Variant { metadata: self.metadata, value: self.children.get(at)? }))
    }

    /// The elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Variant<'a>>> + use<'a> {
        let elements = *self;
        (0..elements.len())
            .map(move |at| Ok(Variant { metadata: elements.metadata, value: elements.children.get(at)? }))
    }
}

fn short() -> Error {
    corrupt("the variant's value does not end within its bytes")
}

/// Decodes a primitive value; also returns its length.
fn primitive(kind: u8, rest: &[u8]) -> Result<(Node<'_>, usize)> {
    fn array<const N: usize>(rest: &[u8], at: usize) -> Result<[u8; N]> {
        let end = at.saturating_add(N);
        rest.get(at..end).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)
    }
    let bytes = || {
        let size = unsigned(rest, 0, 4).ok_or_else(short)?;
        let end = size.checked_add(4).ok_or_else(short)?;
        Ok::<_, Error>((rest.get(4..end).ok_or_else(short)?, end))
    };
    let scale = || match rest.first() {
        Some(scale @ 0..=38) => Ok(*scale),
        Some(scale) => Err(corrupt(format!("a decimal has the scale {scale}, expected 0 to 38"))),
        None => Err(short()),
    };
    let long = || array(rest, 0).map(i64::from_le_bytes);
    Ok(match kind {
        0 => (Node::Null, 0),
        1 => (Node::Boolean(true), 0),
        2 => (Node::Boolean(false), 0),
        3 => (Node::Int8(i8::from_le_bytes(array(rest, 0)?)), 1),
        4 => (Node::Int16(i16::from_le_bytes(array(rest, 0)?)), 2),
        5 => (Node::Int32(i32::from_le_bytes(array(rest, 0)?)), 4),
        6 => (Node::Int64(long()?), 8),
        7 => (Node::Double(f64::from_le_bytes(array(rest, 0)?)), 8),
        8 => (Node::Decimal { scale: scale()?, unscaled: i32::from_le_bytes(array(rest, 1)?).into(), bytes: 4 }, 5),
        9 => (Node::Decimal { scale: scale()?, unscaled: i64::from_le_bytes(array(rest, 1)?).into(), bytes: 8 }, 9),
        10 => (Node::Decimal { scale: scale()?, unscaled: i128::from_le_bytes(array(rest, 1)?), bytes: 16 }, 17),
        11 => (Node::Date(i32::from_le_bytes(array(rest, 0)?)), 4),
        12 => (Node::Timestamp { micros: long()?, is_utc: true }, 8),
        13 => (Node::Timestamp { micros: long()?, is_utc: false }, 8),
        14 => (Node::Float(f32::from_le_bytes(array(rest, 0)?)), 4),
        15 => {
            let (bytes, end) = bytes()?;
            (Node::Binary(bytes), end)
        }
        16 => {
            let (bytes, end) = bytes()?;
            (Node::String(text(bytes, "a string")?), end)
        }
        17 => (Node::Time(long()?), 8),
        18 => (Node::TimestampNanos { nanos: long()?, is_utc: true }, 8),
        19 => (Node::TimestampNanos { nanos: long()?, is_utc: false }, 8),
        20 => (Node::Uuid(array(rest, 0)?), 16),
        other => return Err(Error::unsupported(format!("the primitive type {other} of variants is not known"))),
    })
}
