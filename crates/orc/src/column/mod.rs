//! Columns of a stripe, decoded into Arrow arrays ("Column Encodings").
//!
//! A file stores only the values that are not null. A reader decodes these dense values and then spreads them over the
//! slots that are not null. Its parent says which slots exist at all: a null struct has no entry in the streams of its
//! children.

mod decimal;
mod nested;
mod number;
mod presence;
mod stripe_columns;
mod text;
mod timestamp;
mod union;

use std::fmt::Debug;

use arrow_array::ArrayRef;

use crate::error::Result;
use crate::stream::Context;

pub(crate) use decimal::power_of_ten;
pub(crate) use presence::{ColumnPositions, Slots};
pub(crate) use stripe_columns::StripeColumns;
pub(crate) use timestamp::BASE as TIMESTAMP_BASE;

/// Reads one column and its children.
pub(crate) trait ColumnReader: Debug + Send {
    /// Reads an array with one value per slot.
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef>;
    /// Skips rows, not counting those in which the parent is null.
    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()>;
    /// Seeks to the first row of a row group.
    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()>;
}
