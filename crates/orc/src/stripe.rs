//! The directory of a stripe ("Stripe Footer"): the byte ranges of its streams, and which positions belong to each.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::proto::{ColumnEncoding, EncodingKind, Stream, StreamKind, StripeFooter, StripeInformation};
use crate::tail::{FileMetadata, FileVersion};
use crate::types::{Kind, MAX_SHORT_PRECISION, TypeDescription};

/// One stream of a stripe and its byte range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPlace {
    /// The id of its column.
    pub column: u32,
    /// The kind of its contents.
    pub kind: StreamKind,
    /// The encrypted variant that it belongs to, by its index in the footer; `None` if it is not encrypted.
    pub variant: Option<usize>,
    /// Its byte range in the file.
    pub range: Range<u64>,
}

/// The footer of a stripe, with the byte ranges of all streams.
#[derive(Debug, Clone)]
pub struct StripeDirectory {
    /// The footer, as it is stored.
    pub footer: StripeFooter,
    /// All streams in the order of the file, including those inside the areas of encrypted streams.
    pub streams: Vec<StreamPlace>,
}

/// The byte ranges of the sections of a stripe: index, data, footer.
///
/// # Errors
///
/// A section that extends past `length`, the end of the file.
pub fn sections(stripe: &StripeInformation, length: u64) -> Result<[Range<u64>; 3]> {
    let get = |field: Option<u64>| field.unwrap_or(0);
    let mut at = get(stripe.offset);
    let mut next = |length: Option<u64>| {
        let start = at;
        at = at.checked_add(get(length)).ok_or(())?;
        Ok(start..at)
    };
    let sections: Result<[Range<u64>; 3], ()> =
        (|| Ok([next(stripe.index_length)?, next(stripe.data_length)?, next(stripe.footer_length)?]))();
    match sections {
        Ok(sections) if sections.iter().all(|section| section.end <= length) => Ok(sections),
        _ => Err(Error::corrupt("footer", "a stripe extends past the end of the file")),
    }
}

impl StripeDirectory {
    /// Decodes the footer of a stripe from its bytes in the file.
    ///
    /// # Errors
    ///
    /// A damaged footer, or streams whose lengths do not add up to that of the stripe.
    pub fn read(file: &FileMetadata, stripe: &StripeInformation, bytes: &[u8]) -> Result<Self> {
        let footer: StripeFooter = file.section(bytes, "footer")?;
        let [index, data, _] = sections(stripe, file.length)?;
        let mut at = index.start;
        let mut streams = Vec::with_capacity(footer.streams.len());
        for stream in &footer.streams {
            let range = place(&mut at, stream, data.end)?;
            match stream.kind.unwrap_or_default() {
                StreamKind::EncryptedIndex => open_area(&footer, range, true, &mut streams)?,
                StreamKind::EncryptedData => open_area(&footer, range, false, &mut streams)?,
                kind => streams.push(StreamPlace { column: stream.column.unwrap_or(0), kind, variant: None, range }),
            }
        }
        if at != data.end {
            // A missing stream would leave a column without values, and shift all streams after it.
            let (found, expected) = (at.saturating_sub(index.start), data.end.saturating_sub(index.start));
            let message = format!("its streams have {found} bytes, but the stripe has {expected} of index and data");
            return Err(Error::corrupt("footer", message));
        }
        Ok(Self { footer, streams })
    }
}

fn place(at: &mut u64, stream: &Stream, end: u64) -> Result<Range<u64>> {
    let start = *at;
    *at = start.checked_add(stream.length.unwrap_or(0)).filter(|at| *at <= end).ok_or_else(|| {
        let kind = stream.kind.unwrap_or_default();
        let message = format!("column {} {kind} extends past the end of the stripe", stream.column.unwrap_or(0));
        Error::corrupt("footer", message)
    })?;
    Ok(start..*at)
}

fn is_index(kind: StreamKind) -> bool {
    matches!(kind, StreamKind::RowIndex | StreamKind::BloomFilter | StreamKind::BloomFilterUtf8)
}

/// Lists the streams in an encrypted area, variant by variant.
fn open_area(footer: &StripeFooter, area: Range<u64>, index: bool, out: &mut Vec<StreamPlace>) -> Result<()> {
    let mut at = area.start;
    for (variant, streams) in footer.encryption.iter().enumerate() {
        for stream in &streams.streams {
            let kind = stream.kind.unwrap_or_default();
            if is_index(kind) == index {
                let range = place(&mut at, stream, area.end)?;
                out.push(StreamPlace { column: stream.column.unwrap_or(0), kind, variant: Some(variant), range });
            }
        }
    }
    Ok(())
}

/// The streams of a column that have positions, in their fixed order, with the index of the first number of each in a
/// row-index entry.
pub(crate) fn position_starts(
    node: &TypeDescription,
    encoding: &ColumnEncoding,
    present: bool,
    compressed: bool,
    version: FileVersion,
) -> Vec<(StreamKind, usize)> {
    let bytes = 1 + usize::from(compressed);
    let dictionary = matches!(encoding.kind, Some(EncodingKind::Dictionary | EncodingKind::DictionaryV2));
    let short = |precision: u8| version == FileVersion::V2Draft && precision <= MAX_SHORT_PRECISION;
    let runs = bytes + 1;
    let streams = match &node.kind {
        Kind::Boolean => vec![(StreamKind::Data, runs + 1)],
        Kind::Byte | Kind::Short | Kind::Int | Kind::Long | Kind::Date | Kind::Union => vec![(StreamKind::Data, runs)],
        Kind::Float | Kind::Double => vec![(StreamKind::Data, bytes)],
        Kind::String | Kind::Char { .. } | Kind::Varchar { .. } if dictionary => vec![(StreamKind::Data, runs)],
        Kind::String
        | Kind::Char { .. }
        | Kind::Varchar { .. }
        | Kind::Binary
        | Kind::Geometry { .. }
        | Kind::Geography { .. } => vec![(StreamKind::Data, bytes), (StreamKind::Length, runs)],
        Kind::Decimal { precision, .. } if short(*precision) => vec![(StreamKind::Data, runs)],
        Kind::Decimal { .. } => vec![(StreamKind::Data, bytes), (StreamKind::Secondary, runs)],
        Kind::Timestamp | Kind::TimestampInstant => vec![(StreamKind::Data, runs), (StreamKind::Secondary, runs)],
        Kind::List | Kind::Map => vec![(StreamKind::Length, runs)],
        Kind::Struct => Vec::new(),
    };
    let mut at = 0;
    let present = present.then_some((StreamKind::Present, runs + 1));
    let start = |(kind, numbers): (StreamKind, usize)| {
        let start = at;
        at += numbers;
        (kind, start)
    };
    present.into_iter().chain(streams).map(start).collect()
}
