//! Conditions that compare two columns of a row (`sent > received`): SQL's comparison of columns, and the positions of
//! matching rows.

pub(super) mod compared;
pub(super) mod differences;
pub(super) mod places;
pub(super) mod row_condition;
