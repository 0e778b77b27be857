//! Prunes row groups and rows: by statistics, dictionaries, Bloom filters and the page index.

pub(super) mod bounds;
pub(super) mod distinct;
pub(super) mod pages;
pub(super) mod row_groups;
pub(super) mod shredded;
