//! Predicates on rows as predicates on partitions, and what is left of them within a partition ("Scan Planning").

pub(super) mod project;
pub(super) mod residual;
