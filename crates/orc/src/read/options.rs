//! What a reader is asked for.

use std::ops::Range;
use std::sync::Arc;

use super::{Projection, RowFilter};
use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::proto::CalendarKind;
use crate::tail::FileMetadata;
use crate::types::ArrowOptions;

/// What happens to days before 1582-10-15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CalendarRule {
    /// They are converted to proleptic days if the footer declares them Julian, unless Iceberg wrote the file, which
    /// declares proleptic days as Julian too (docs/orc-pitfalls.md, "Calendars").
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

/// Everything that can be asked of a reader.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The columns wanted.
    pub projection: Projection,
    /// Skips files, stripes and row groups that cannot match. Rows that do not match may still be returned.
    pub predicate: Option<Predicate>,
    /// Returns matching rows only; other columns are decoded for those.
    pub filter: Option<Arc<dyn RowFilter>>,
    /// The rows wanted, by number in the file: sorted, without overlaps. `None` means all.
    pub rows: Option<Vec<Range<u64>>>,
    /// Rows of a batch, at the most.
    pub batch_size: usize,
    /// How types become Arrow types.
    pub arrow: ArrowOptions,
    /// Days before 1582-10-15.
    pub calendar: CalendarRule,
    /// The zone of timestamps where a stripe names none (old files); UTC without it.
    pub default_zone: Option<String>,
    /// Adds a column of this name: each row's number in the file.
    pub row_numbers: Option<String>,
    /// Ranges of the file that lie less than this apart are read as one.
    pub coalesce: u64,
    /// Ranges are joined to this many bytes, at the most: several can be fetched at a time.
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
    /// Refuses what makes no sense for a file.
    pub(crate) fn check(&self, file: &FileMetadata) -> Result<()> {
        if self.batch_size == 0 {
            return Err(Error::invalid("batches of no rows"));
        }
        if let Some(rows) = &self.rows {
            let mut end = 0;
            for range in rows {
                if range.start < end || range.end < range.start {
                    return Err(Error::invalid("the rows wanted are not sorted, or overlap"));
                }
                end = range.end;
            }
        }
        self.predicate.as_ref().map_or(Ok(()), |predicate| predicate.check(&file.schema))
    }
}
