//! Upkeep of tables: what removes files and history rather than rows.

pub mod expire;
mod parallel;
pub mod purge;
pub mod resolve;
