//! Upkeep of tables: what removes files and history rather than rows.

pub mod expire;
pub mod purge;
pub mod resolve;
