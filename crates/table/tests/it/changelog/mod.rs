//! Changelogs of random histories: appends, deletes of every kind, overwrites, compactions, delete files that are taken
//! back.

mod compared;
mod history;
mod laws;
mod rows;
