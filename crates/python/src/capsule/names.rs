//! The names of the capsules in the PyCapsule interface.

use std::ffi::CStr;

pub(super) const SCHEMA: &CStr = c"arrow_schema";
pub(super) const ARRAY: &CStr = c"arrow_array";
pub(super) const STREAM: &CStr = c"arrow_array_stream";
