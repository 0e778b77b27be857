//! Converts predicates on rows to predicates on partitions, and computes residuals ("Scan Planning").

pub(super) mod project;
pub(super) mod residual;
