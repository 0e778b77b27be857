//! Reading: options, the plan of a stripe, batches of a stripe, and a plain synchronous reader above them.
//!
//! [`TailDecoder`](crate::tail::TailDecoder) and [`StripeLoader`] are free of I/O: they say which ranges they need. Each
//! [`StripeReader`] stands alone, so stripes can be read by as many threads as the caller has.

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
