//! Plans for engines with readers of their own, as Arrow tables.

pub mod columns;
mod delete_lists;
mod obstacles;

pub use obstacles::{EngineColumn, EngineRead, Obstacle};
