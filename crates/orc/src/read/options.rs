//! The options of a reader.

use std::ops::Range;
use std::sync::Arc;

use super::{Projection, RowFilter};
use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::proto::CalendarKind;
use crate::tail::FileMetadata;
use crate::types::ArrowOptions;

/// How days before 1582-10-15 are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CalendarRule {
    /// They are converted to proleptic Gregorian days if the footer declares them Julian, unless Iceberg wrote the
    /// file, because it declares proleptic days as Julian too (docs/orc-pitfalls.md, "Calendars").
    #[default]
    Footer,
    /// They are read as they are stored.
    Stored,
    /// They are converted, whatever the footer says.
    Julian,
}

impl CalendarRule {
    pub(crate) fn is_julian(self, file: &FileMetadata) -> bool {
        match self {
            Self::Stored => false,
            Self::Julian => true,
            Self::Footer => file.footer.calendar == Some(CalendarKind::JulianGregorian) && !file.has_field_ids(),
        }
    }
}

/// Which part of a file to read, and in which form.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The columns to read; all by default.
    pub projection: Projection,
    /// Skips the file, stripes and row groups that cannot match, by statistics and Bloom filters. Rows that do not
    /// match may still be returned.
    pub predicate: Option<Predicate>,
    /// Returns only the rows for which this is true. Its columns are decoded first, and the others only for those rows.
    pub filter: Option<Arc<dyn RowFilter>>,
    /// The rows to read, by their numbers in the file, which count from 0: sorted ranges that do not overlap. `None`
    /// means all rows.
    pub rows: Option<Vec<Range<u64>>>,
    /// The maximum number of rows in a batch, at least 1; 8192 by default. A batch does not span stripes.
    pub batch_size: usize,
    /// How ORC types become Arrow types.
    pub arrow: ArrowOptions,
    /// The calendar of days before 1582-10-15.
    pub calendar: CalendarRule,
    /// The time zone of timestamps in stripes that name none, as in old files; UTC if this is `None`.
    pub default_zone: Option<String>,
    /// Adds a last column with this name: the number of each row in the file, from 0, as `Int64`.
    pub row_numbers: Option<String>,
    /// Ranges of the file with at most this many bytes between them are read as one; 64 KiB by default.
    pub coalesce: u64,
    /// The maximum number of bytes in a range that was joined from several; unlimited by default. With a limit, a
    /// stripe is several ranges, which can be fetched in parallel.
    pub longest: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            projection: Projection::All,
            predicate: None,
            filter: None,
            rows: None,
            batch_size: 8192,
            arrow: ArrowOptions::default(),
            calendar: CalendarRule::default(),
            default_zone: None,
            row_numbers: None,
            coalesce: 1 << 16,
            longest: u64::MAX,
        }
    }
}

impl ReadOptions {
    /// Checks the options against a file.
    pub(crate) fn check(&self, file: &FileMetadata) -> Result<()> {
        if self.batch_size == 0 {
            return Err(Error::invalid("the batch size must be positive"));
        }
        if let Some(rows) = &self.rows {
            let mut end = 0;
            for range in rows {
                if range.start < end || range.end < range.start {
                    return Err(Error::invalid("the ranges of rows must be sorted and must not overlap"));
                }
                end = range.end;
            }
        }
        self.predicate.as_ref().map_or(Ok(()), |predicate| predicate.check(&file.schema))
    }
}
