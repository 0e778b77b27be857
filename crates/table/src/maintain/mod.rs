//! Table maintenance: compaction, deletes, expiry, purge, statistics and copies.

pub mod compact;
pub mod deletes;
pub mod doctor;
pub mod expire;
pub mod export;
pub mod fsck;
mod options;
pub mod orphans;
pub mod partition_statistics;
pub mod purge;
pub mod relocate;
pub mod resolve;
mod seen;
mod sizes;
pub mod statistics;
