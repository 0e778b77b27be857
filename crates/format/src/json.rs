//! Reads JSON objects: for a member that is missing or of the wrong type, the error has its JSON pointer.
//!
//! Pointers are relative to the current object; the reader of the outer document adds its part with
//! [`Error::within`](crate::Error::within).

mod fields;
mod object;
mod stream;
mod tree;
mod writer;

pub use fields::StringMap;
pub(crate) use fields::{int, list, locate, long, map, present_strings, step, string, string_map};
pub use object::Object;
pub(crate) use object::brief;
pub(crate) use stream::{ListSink, parse_object};
pub use tree::{parse, parse_within};
pub(crate) use writer::{Writer, write_strings};
