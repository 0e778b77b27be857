//! Row-level deletes: random tables against naive reading, memory budgets, and damaged delete files.

mod damage;
mod laws;
mod places;
mod rows;
mod world;
