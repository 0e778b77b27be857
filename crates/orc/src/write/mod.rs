//! Writing: Arrow batches in, a file out.
//!
//! A batch is cut at the borders of row groups; each column encodes its part, and compresses it chunk by chunk. When
//! enough bytes are held, or enough rows, the columns hand their streams to a [`StripeWriter`](stripe::StripeWriter), and the
//! stripe is written to the [`Sink`].

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
