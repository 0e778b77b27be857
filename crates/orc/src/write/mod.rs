//! Writing: Arrow batches in, a file out.
//!
//! A batch is cut at the borders of row groups; each column encodes its part, and compresses it chunk by chunk. When
//! enough is held, or enough rows, the columns give their streams to a [`StripeWriter`](stripe::StripeWriter), and the
//! stripe goes to the [`Sink`].

mod column;
mod encryption;
mod file;
mod merge;
mod options;
mod sink;
mod statistics;
mod stream;
mod stripe;
mod tail;
mod texts;

pub use file::{Writer, WrittenFile, WrittenStripe};
pub use merge::Merger;
pub use options::{BloomVersion, EncryptionOptions, LastSecond, WriterOptions};
pub use sink::Sink;
