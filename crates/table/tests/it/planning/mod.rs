//! Planning over tables made for tests: which deletes are linked, what the cache may change, what a stream may take.

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
