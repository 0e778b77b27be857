//! Table maintenance: operations that remove files and history, not rows.

pub mod expire;
pub mod purge;
pub mod resolve;
