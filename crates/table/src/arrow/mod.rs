//! Arrow arrays that several rooms need: constants, values of cells, recasts.

pub mod cells;
pub mod conform;
pub mod constant;
pub mod recast;
