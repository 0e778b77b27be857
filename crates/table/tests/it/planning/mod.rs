//! Planning on generated tables: links of deletes, the cache, streams, damage.

mod cache;
mod counts;
mod damaged;
mod engine;
mod held;
mod links;
mod micro_batches;
mod purge;
mod skippable;
mod streams;
mod tasks;
mod world;
