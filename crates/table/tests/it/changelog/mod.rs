//! Changelogs of random histories: appends, deletes of every kind, overwrites, compactions, removed delete files.

mod compared;
mod history;
mod laws;
mod rows;
