//! Arrow helpers shared by several modules: constants, cell values, casts, and checks of imported arrays.

pub mod cells;
pub mod conform;
pub mod constant;
pub(crate) mod filter;
pub mod places;
pub mod recast;
pub(crate) mod size;
pub mod text;
