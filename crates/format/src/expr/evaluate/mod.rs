//! Evaluates expressions on rows, on metrics of files, and on partition summaries of manifests ("Scan Planning").

mod compare;
mod files;
mod mask;
pub(super) mod metrics;
pub(super) mod rows;
pub(super) mod statistics;
pub(super) mod strict;
pub(super) mod summary;
