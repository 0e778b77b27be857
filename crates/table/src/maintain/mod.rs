//! Table maintenance: compaction, deletes, expiry and purge.

pub mod compact;
pub mod deletes;
pub mod doctor;
pub mod expire;
pub mod fsck;
mod options;
pub mod orphans;
pub mod purge;
pub mod resolve;
mod sizes;
pub mod statistics;
