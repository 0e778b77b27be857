//! What earlier attempts of a commit have made, and what it depends on.

use std::sync::Arc;

use icefield_format::manifest::list::ManifestFile;

use crate::commit::manifests::filter::{ManifestFilter, Removal};
use crate::commit::manifests::output::Basis;
use crate::commit::manifests::summary::SummaryBuilder;

/// Results of earlier attempts, for reuse.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What the results depend on.
    pub(super) basis: Option<Basis>,
    pub(super) own: Option<Own>,
    pub(super) data_removal: Option<Arc<Removal>>,
    pub(super) data: ManifestFilter,
    pub(super) delete_removal: Option<Arc<Removal>>,
    pub(super) deletes: ManifestFilter,
    pub(super) summary: SummaryBuilder,
}

/// Manifests of the files that the snapshot adds.
#[derive(Debug, Clone)]
pub(super) struct Own {
    pub(super) data: Vec<ManifestFile>,
    pub(super) deletes: Vec<ManifestFile>,
    pub(super) summary: SummaryBuilder,
}
