//! Arrow arrays that several rooms need: constants, values of cells, recasts; checks of arrays that others made.

pub mod cells;
pub mod conform;
pub mod constant;
pub(crate) mod filter;
pub mod places;
pub mod recast;
pub(crate) mod size;
pub mod text;
