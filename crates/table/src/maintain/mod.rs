//! Table maintenance: compaction, deletes, expiry and purge.

pub mod compact;
pub mod deletes;
pub mod expire;
mod options;
pub mod purge;
pub mod resolve;
mod sizes;
