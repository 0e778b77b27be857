//! Creates the column readers of a stripe from the encodings and streams in its footer.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};

use super::presence::Head;
use super::{ColumnPositions, ColumnReader, decimal, nested, number, text, timestamp, union};
use crate::error::{Error, Result};
use crate::proto::{ColumnEncoding, EncodingKind, StreamKind};
use crate::rle::{BooleanReader, ByteReader, IntReader};
use crate::stream::{ByteStream, Part};
use crate::types::{ArrowOptions, Kind, MAX_SHORT_PRECISION, TypeDescription};
use crate::zone::Zone;

/// What a stripe provides to the readers of its columns.
#[derive(Debug, Default)]
pub(crate) struct StripeColumns {
    /// Streams by column and kind.
    pub streams: HashMap<(u32, StreamKind), Vec<Part>>,
    /// Encodings by column id.
    pub encodings: Vec<ColumnEncoding>,
    /// Row-group positions by column id.
    pub positions: HashMap<u32, ColumnPositions>,
    /// The chunk size; 0 without compression.
    pub block: usize,
    /// The time zone of local timestamps.
    pub zone: Arc<Zone>,
    /// File version 2: short decimals are plain integers.
    pub short_decimals: bool,
    /// Whether days before 1582-10-15 are converted from the Julian calendar.
    pub from_julian: bool,
    /// How types become Arrow types.
    pub arrow: ArrowOptions,
}

impl StripeColumns {
    /// Creates the reader of a type and its children.
    pub(crate) fn reader(&self, node: &TypeDescription) -> Result<Box<dyn ColumnReader>> {
        let head = self.head(node.column);
        let within = |error: Error| error.within(&format!("column {}", node.column));
        Ok(match &node.kind {
            Kind::Boolean => Box::new(number::BooleanColumn::new(head, BooleanReader::new(self.data(node)))),
            Kind::Byte => Box::new(number::ByteColumn::new(head, ByteReader::new(self.data(node)))),
            Kind::Short => Box::new(number::IntColumn::<Int16Type>::new(head, self.signed(node).map_err(within)?)),
            Kind::Int => Box::new(number::IntColumn::<Int32Type>::new(head, self.signed(node).map_err(within)?)),
            Kind::Long => Box::new(number::IntColumn::<Int64Type>::new(head, self.signed(node).map_err(within)?)),
            Kind::Date => {
                let days = number::IntColumn::<Date32Type>::new(head, self.signed(node).map_err(within)?);
                Box::new(days.with_calendar(self.from_julian))
            }
            Kind::Float => Box::new(number::FloatColumn::<Float32Type>::new(head, self.data(node))),
            Kind::Double => Box::new(number::FloatColumn::<Float64Type>::new(head, self.data(node))),
            Kind::String | Kind::Char { .. } | Kind::Varchar { .. } => self.text(node, head).map_err(within)?,
            Kind::Binary | Kind::Geometry { .. } | Kind::Geography { .. } => {
                let lengths = self.integers(node.column, StreamKind::Length, false, self.version2(node)?);
                Box::new(text::DirectColumn::new(head, self.data(node), lengths, text::TextForm::bytes()))
            }
            Kind::Timestamp | Kind::TimestampInstant => self.timestamp(node, head).map_err(within)?,
            Kind::Decimal { precision, scale } => self.decimal(node, head, *precision, *scale).map_err(within)?,
            Kind::List | Kind::Map | Kind::Struct => self.nested(node, head)?,
            Kind::Union => {
                let children = node.children.iter().map(|child| self.reader(child)).collect::<Result<Vec<_>>>()?;
                let tags = ByteReader::new(self.data(node));
                Box::new(union::UnionColumn::new(head, tags, children, node, &self.arrow))
            }
        })
    }

    fn head(&self, column: u32) -> Head {
        let presence = self.streams.contains_key(&(column, StreamKind::Present));
        let presence = presence.then(|| BooleanReader::new(self.stream(column, StreamKind::Present)));
        Head::new(column, presence, self.positions.get(&column).cloned())
    }

    fn stream(&self, column: u32, kind: StreamKind) -> ByteStream {
        let parts = self.streams.get(&(column, kind)).cloned().unwrap_or_default();
        ByteStream::new(column, kind, parts, self.block)
    }

    fn data(&self, node: &TypeDescription) -> ByteStream {
        self.stream(node.column, StreamKind::Data)
    }

    fn encoding(&self, node: &TypeDescription) -> Result<&ColumnEncoding> {
        self.encodings
            .get(node.column as usize)
            .ok_or_else(|| Error::corrupt("stripe footer", "a column has no encoding"))
    }

    /// Whether a column uses run-length encoding version 2. Dictionary encodings are errors, because only text columns
    /// can have them.
    fn version2(&self, node: &TypeDescription) -> Result<bool> {
        match self.encoding(node)?.kind.unwrap_or_default() {
            EncodingKind::Direct => Ok(false),
            EncodingKind::DirectV2 => Ok(true),
            other => Err(Error::corrupt(
                "stripe footer",
                format!("a {} column cannot be encoded as {other}", node.kind.name()),
            )),
        }
    }

    fn integers(&self, column: u32, kind: StreamKind, signed: bool, version2: bool) -> IntReader {
        IntReader::new(self.stream(column, kind), signed, version2)
    }

    fn signed(&self, node: &TypeDescription) -> Result<IntReader> {
        Ok(self.integers(node.column, StreamKind::Data, true, self.version2(node)?))
    }

    fn text(&self, node: &TypeDescription, head: Head) -> Result<Box<dyn ColumnReader>> {
        let column = node.column;
        let form = text::TextForm::new(&node.kind, &self.arrow);
        let encoding = self.encoding(node)?;
        let version2 = match encoding.kind.unwrap_or_default() {
            EncodingKind::Direct | EncodingKind::Dictionary => false,
            EncodingKind::DirectV2 | EncodingKind::DictionaryV2 => true,
            other => return Err(Error::unsupported(format!("{other}"))),
        };
        let lengths = self.integers(column, StreamKind::Length, false, version2);
        if matches!(encoding.kind, None | Some(EncodingKind::Direct | EncodingKind::DirectV2)) {
            return Ok(Box::new(text::DirectColumn::new(head, self.data(node), lengths, form)));
        }
        let dictionary = text::Dictionary {
            size: encoding.dictionary_size.unwrap_or_default() as usize,
            lengths,
            bytes: self.stream(column, StreamKind::DictionaryData),
        };
        let indices = self.integers(column, StreamKind::Data, false, version2);
        Ok(Box::new(text::DictionaryColumn::new(head, indices, dictionary, form)))
    }

    fn timestamp(&self, node: &TypeDescription, head: Head) -> Result<Box<dyn ColumnReader>> {
        let version2 = self.version2(node)?;
        let instant = node.kind == Kind::TimestampInstant;
        let rules = timestamp::TimestampRules {
            zone: if instant { Arc::default() } else { Arc::clone(&self.zone) },
            unit: self.arrow.unit_of(node.column),
            exact: self.arrow.exact_times.contains(&node.column),
            out_of_range: self.arrow.out_of_range,
            from_julian: self.from_julian,
            instant,
        };
        let seconds = self.integers(node.column, StreamKind::Data, true, version2);
        let nanos = self.integers(node.column, StreamKind::Secondary, false, version2);
        Ok(Box::new(timestamp::TimestampColumn::new(head, seconds, nanos, rules)))
    }

    fn decimal(&self, node: &TypeDescription, head: Head, precision: u8, scale: u8) -> Result<Box<dyn ColumnReader>> {
        if self.short_decimals && precision <= MAX_SHORT_PRECISION {
            let values = self.integers(node.column, StreamKind::Data, true, true);
            return Ok(Box::new(decimal::ShortDecimalColumn::new(head, values, precision, scale)));
        }
        let scales = self.integers(node.column, StreamKind::Secondary, true, self.version2(node)?);
        Ok(Box::new(decimal::DecimalColumn::new(head, self.data(node), scales, precision, scale)))
    }

    fn nested(&self, node: &TypeDescription, head: Head) -> Result<Box<dyn ColumnReader>> {
        let children = node.children.iter().map(|child| self.reader(child)).collect::<Result<Vec<_>>>()?;
        if node.kind == Kind::Struct {
            return Ok(Box::new(nested::StructColumn::new(head, children, node, &self.arrow)));
        }
        let lengths = self.integers(node.column, StreamKind::Length, false, self.version2(node)?);
        Ok(Box::new(nested::ListColumn::new(head, lengths, children, node, &self.arrow)))
    }
}
