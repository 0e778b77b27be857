//! Reading: options, the plan of a stripe, batches of a stripe, and the readers that use them.
//!
//! [`TailDecoder`](crate::tail::TailDecoder) and [`StripeLoader`] do no I/O: they return the ranges that they need.
//! Each [`StripeReader`] is independent, so any number of threads can read stripes.

mod asynchronous;
mod columns;
mod filter;
mod groups;
mod loader;
mod options;
mod parallel;
mod projection;
mod reader;
mod stripe;
mod stripes;
mod wanted;

pub use asynchronous::{AsyncReader, AsyncSource};
pub use columns::ByColumns;
pub use filter::RowFilter;
pub use loader::StripeLoader;
pub use options::{CalendarRule, ReadOptions};
pub use projection::{ColumnRef, Projection};
pub use reader::{Piece, Reader};
pub use stripe::StripeReader;
pub use stripes::Batches;
