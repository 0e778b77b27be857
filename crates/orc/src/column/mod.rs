//! Columns of a stripe, decoded into Arrow arrays ("Column Encodings").
//!
//! Values are decoded dense, as the file holds them, and then spread over the slots that a null does not take. A reader
//! learns from its parent which slots exist at all: a null struct has no place in its children's streams.

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

/// Reads one column, and what is below it.
pub(crate) trait ColumnReader: Debug + Send {
    /// An array of as many values as there are slots.
    fn read(&mut self, slots: Slots<'_>, context: &mut Context) -> Result<ArrayRef>;
    /// Skips rows that exist for this column's parent.
    fn skip(&mut self, rows: usize, context: &mut Context) -> Result<()>;
    /// Seeks to the first row of a row group.
    fn seek(&mut self, group: usize, context: &mut Context) -> Result<()>;
}
