//! Determines from the writer's schema whether values may be null, and reports errors in that schema.

use crate::Error;
use crate::avro::{Cursor, Fault, Schema};

/// The name of the writer's schema in errors.
pub(super) const PLACE: &str = "avro.schema";

/// How the writer encodes null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Never null: no branch is written.
    Required,
    /// A union whose branch with this number is the value; any other branch is null.
    Branch(u64),
}

impl Presence {
    /// Whether a value follows.
    #[inline]
    pub(super) fn is_some(self, cursor: &mut Cursor<'_>) -> Result<bool, Fault> {
        match self {
            Self::Required => Ok(true),
            Self::Branch(value) => match cursor.length()? {
                branch if branch == value => Ok(true),
                0 | 1 => Ok(false),
                _ => Err(Fault::Branch),
            },
        }
    }
}

/// Resolves a union of null and one other type to that type.
pub(super) fn reduce(schema: &Schema) -> Option<(Presence, &Schema)> {
    match schema {
        Schema::Union(branches) => match &**branches {
            [Schema::Null, value] => Some((Presence::Branch(1), value)),
            [value, Schema::Null] => Some((Presence::Branch(0), value)),
            _ => None,
        },
        schema => Some((Presence::Required, schema)),
    }
}

#[cold]
pub(super) fn unexpected(name: &str, schema: &Schema, wanted: &str) -> Error {
    Error::corrupt(PLACE, format!("field {name}: expected {wanted}, found {}", schema.word()))
}
