//! Encodes Arrow arrays into the columns of a stripe ("Column Encodings").
//!
//! A writer gets arrays with exactly the slots for which its parent is not null: a null struct has no entry in the
//! streams of its children. Streams contain only the values that are not null.

mod decimal;
mod dictionary;
mod encrypted;
mod head;
mod nested;
mod number;
mod spans;
mod text;
mod timestamp;
mod union;
mod writer;

pub(super) use spans::Spans;
pub(super) use writer::{ColumnWriter, Plan};

use crate::error::{Error, Result};
use crate::tail::FileVersion;
use crate::types::{Kind, MAX_SHORT_PRECISION, TypeDescription};

impl Plan<'_> {
    /// Creates the writer of a type and its children.
    pub(super) fn writer(&self, node: &TypeDescription) -> Result<Box<dyn ColumnWriter>> {
        let encrypted = self.encrypted.iter().enumerate().find(|(_, (root, _))| *root == node.column);
        let Some((variant, (_, mask))) = encrypted else { return self.plain_writer(node) };
        let (masked, own) = (self.plain_writer(node)?, self.plain_writer(node)?);
        Ok(Box::new(encrypted::EncryptedColumn::new(node, variant, mask, masked, own)))
    }

    /// Like [`Self::writer`], but does not encrypt the type itself.
    pub(super) fn plain_writer(&self, node: &TypeDescription) -> Result<Box<dyn ColumnWriter>> {
        Ok(match &node.kind {
            Kind::Boolean => Box::new(number::BooleanColumn::new(node.column, self)),
            Kind::Byte => Box::new(number::ByteColumn::new(node.column, self)),
            Kind::Short | Kind::Int | Kind::Long => Box::new(number::IntColumn::new(node.column, self)),
            Kind::Date => Box::new(number::DateColumn::new(node.column, self)),
            Kind::Float => Box::new(number::FloatColumn::new(node.column, true, self)),
            Kind::Double => Box::new(number::FloatColumn::new(node.column, false, self)),
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => Box::new(text::TextColumn::new(node, self)),
            Kind::Binary => Box::new(text::BinaryColumn::new(node.column, text::OfBytes, self)),
            Kind::Geometry { .. } => Box::new(text::BinaryColumn::new(node.column, text::OfShapes(true), self)),
            Kind::Geography { .. } => Box::new(text::BinaryColumn::new(node.column, text::OfShapes(false), self)),
            Kind::Timestamp | Kind::TimestampInstant => Box::new(timestamp::TimestampColumn::new(node, self)),
            Kind::Decimal { precision, scale }
                if self.options.version == FileVersion::V2Draft && *precision <= MAX_SHORT_PRECISION =>
            {
                Box::new(decimal::ShortDecimalColumn::new(node.column, *precision, *scale, self))
            }
            Kind::Decimal { precision, scale } => {
                Box::new(decimal::DecimalColumn::new(node.column, *precision, *scale, self))
            }
            Kind::List => {
                let [element] = self.exactly(node, "a list of no one element type")?;
                Box::new(nested::ListColumn::new(node.column, self, element))
            }
            Kind::Map => {
                let [key, value] = self.exactly(node, "a map of no key and value types")?;
                Box::new(nested::MapColumn::new(node.column, self, key, value))
            }
            Kind::Struct => Box::new(nested::StructColumn::new(node, self, self.children(node)?)),
            Kind::Union => Box::new(union::UnionColumn::new(node, self, self.children(node)?)?),
        })
    }

    fn children(&self, node: &TypeDescription) -> Result<Vec<Box<dyn ColumnWriter>>> {
        node.children.iter().map(|child| self.writer(child)).collect()
    }

    fn exactly<const N: usize>(&self, node: &TypeDescription, refused: &str) -> Result<[Box<dyn ColumnWriter>; N]> {
        self.children(node)?.try_into().map_err(|_| Error::invalid(refused))
    }
}

/// Whether columns of this kind can have a Bloom filter.
pub(super) fn can_bloom(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::Boolean
            | Kind::List
            | Kind::Map
            | Kind::Struct
            | Kind::Union
            | Kind::Geometry { .. }
            | Kind::Geography { .. }
    )
}
