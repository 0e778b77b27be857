//! The protobuf messages of ORC (orc-format 1.1.1; the draft's "File Tail", "Stripes" and "Indexes" less its
//! misprints).
//!
//! Every field is optional, whatever the draft says, and a missing enumeration has its first value.

mod message;
mod wire;

mod encryption;
mod statistics;
mod stripe;
mod tail;

pub use encryption::*;
pub use message::{Message, Shown};
pub use statistics::*;
pub use stripe::*;
pub use tail::*;
