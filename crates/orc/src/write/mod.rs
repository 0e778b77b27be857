//! Writes Arrow batches to a file.
//!
//! A batch is split at the ends of row groups. Each column encodes its part, and compresses it chunk by chunk. When the
//! columns hold enough bytes or rows, they give their streams to a [`StripeWriter`](stripe::StripeWriter), and the
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
