//! Reads the pages of column chunks: from memory, from local files while they are decoded, and at the places that the page
//! index names.

mod indexed;
pub(super) mod loaded;
pub(super) mod page_index;
pub(super) mod paged;
pub(super) mod slices;
mod whole_chunk;
