//! Row-level deletes: random tables against a naive reading, budgets of memory, and damaged delete files.

mod damage;
mod laws;
mod places;
mod rows;
mod world;
