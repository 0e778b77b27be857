//! Decides which snapshots are kept and which expire ("Snapshot Retention Policy").

use std::collections::{BTreeSet, HashSet};

use super::properties::{GC_ENABLED, MAX_REF_AGE_MS, MAX_SNAPSHOT_AGE_MS, MIN_SNAPSHOTS_TO_KEEP};
use super::{MAIN_BRANCH, MetadataUpdate, RefKind, SnapshotRef, TableMetadata};
use crate::{Error, Result};

/// What to expire. The table's properties and references supply what is not set here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpireSnapshots {
    /// Expires snapshots before this time (milliseconds from the epoch), except in branches that set their own age.
    pub older_than_ms: Option<i64>,
    /// Number of snapshots to keep in branches that do not set their own.
    pub retain_last: Option<i32>,
    /// Snapshots to expire whatever their age; an error if a reference points to one of them.
    pub snapshot_ids: Vec<i64>,
    /// Whether to remove schemas that no kept snapshot uses (for partition specs see [`Expiry::unused_specs`]).
    pub clean_expired_metadata: bool,
}

/// The result: what expires and what stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expiry {
    /// Branches and tags that are too old.
    pub removed_refs: Vec<String>,
    /// Snapshots that expire, in the table's order.
    pub removed_snapshots: Vec<i64>,
    /// Snapshots that stay, in the table's order.
    pub kept_snapshots: Vec<i64>,
    /// Schemas that expire.
    pub removed_schemas: Vec<i32>,
}

impl ExpireSnapshots {
    /// Decides what expires at this time (milliseconds from the epoch).
    pub fn plan(&self, metadata: &TableMetadata, now_ms: i64) -> Result<Expiry> {
        if !GC_ENABLED.read(metadata.properties()) {
            return Err(Error::invalid(
                "gc.enabled is false: the table's files may be shared with other tables, so snapshots cannot expire",
            ));
        }
        if let Some(count) = self.retain_last.filter(|count| *count < 1) {
            return Err(Error::invalid(format!("at least one snapshot must be retained, not {count}")));
        }
        let rules = DefaultRetention::new(self, metadata, now_ms)?;
        let kept_refs: Vec<_> = metadata.refs().iter().filter(|(name, r)| rules.keeps_ref(name, r)).collect();
        let kept: HashSet<i64> = rules.kept_snapshots(kept_refs.iter().map(|(_, reference)| *reference));
        for id in &self.snapshot_ids {
            if let Some((name, reference)) = kept_refs.iter().find(|(_, reference)| reference.snapshot_id == *id) {
                return Err(Error::invalid(format!(
                    "snapshot {id} cannot expire: {} {name} refers to it",
                    reference.kind
                )));
            }
        }
        let named: HashSet<i64> = self.snapshot_ids.iter().copied().collect();
        let ids = metadata.snapshots().iter().map(|snapshot| snapshot.snapshot_id);
        let (kept_snapshots, removed_snapshots) = ids.partition(|id| kept.contains(id) && !named.contains(id));
        let removed_refs = metadata.refs().iter().filter(|(name, r)| !rules.keeps_ref(name, r));
        Ok(Expiry {
            removed_refs: removed_refs.map(|(name, _)| name.clone()).collect(),
            removed_schemas: if self.clean_expired_metadata { unused_schemas(metadata, &kept) } else { Vec::new() },
            removed_snapshots,
            kept_snapshots,
        })
    }
}

impl Expiry {
    /// Returns the updates that carry out the expiry.
    pub fn updates(&self) -> Vec<MetadataUpdate> {
        let refs = self.removed_refs.iter().map(|name| MetadataUpdate::RemoveSnapshotRef { ref_name: name.clone() });
        let snapshot_ids = self.removed_snapshots.clone();
        let snapshots = (!snapshot_ids.is_empty()).then_some(MetadataUpdate::RemoveSnapshots { snapshot_ids });
        let schema_ids = self.removed_schemas.clone();
        let schemas = (!schema_ids.is_empty()).then_some(MetadataUpdate::RemoveSchemas { schema_ids });
        refs.chain(snapshots).chain(schemas).collect()
    }

    /// Returns the specs that can be removed as well: neither the default nor used by manifests of the kept snapshots.
    pub fn unused_specs(metadata: &TableMetadata, in_manifests: &BTreeSet<i32>) -> Vec<i32> {
        let ids = metadata.partition_specs().iter().map(|spec| spec.spec_id);
        ids.filter(|id| *id != metadata.default_spec_id() && !in_manifests.contains(id)).collect()
    }
}

/// Returns schemas that are neither current nor used by a kept snapshot.
fn unused_schemas(metadata: &TableMetadata, kept: &HashSet<i64>) -> Vec<i32> {
    let kept = metadata.snapshots().iter().filter(|snapshot| kept.contains(&snapshot.snapshot_id));
    let mut used: HashSet<i32> = kept.filter_map(|snapshot| snapshot.schema_id).collect();
    used.insert(metadata.current_schema_id());
    metadata.schemas().iter().map(|schema| schema.schema_id()).filter(|id| !used.contains(id)).collect()
}

/// Retention for references that do not set their own.
struct DefaultRetention<'a> {
    metadata: &'a TableMetadata,
    now_ms: i64,
    older_than_ms: i64,
    min_snapshots: i64,
    max_ref_age_ms: i64,
}

impl<'a> DefaultRetention<'a> {
    fn new(request: &ExpireSnapshots, metadata: &'a TableMetadata, now_ms: i64) -> Result<Self> {
        let properties = metadata.properties();
        let older_than_ms = match request.older_than_ms {
            Some(time) => time,
            None => now_ms.saturating_sub(MAX_SNAPSHOT_AGE_MS.read(properties)?),
        };
        let min_snapshots = match request.retain_last {
            Some(count) => i64::from(count),
            None => MIN_SNAPSHOTS_TO_KEEP.read(properties)?,
        };
        let max_ref_age_ms = MAX_REF_AGE_MS.read(properties)?;
        Ok(Self { metadata, now_ms, older_than_ms, min_snapshots, max_ref_age_ms })
    }

    /// Whether a reference is young enough; it is as old as its snapshot. `main` is always kept.
    fn keeps_ref(&self, name: &str, reference: &SnapshotRef) -> bool {
        let Some(snapshot) = self.metadata.snapshot(reference.snapshot_id) else { return false };
        let age_ms = self.now_ms.saturating_sub(snapshot.timestamp_ms);
        name == MAIN_BRANCH || age_ms <= reference.max_ref_age_ms.unwrap_or(self.max_ref_age_ms)
    }

    fn kept_snapshots(&self, refs: impl Iterator<Item = &'a SnapshotRef>) -> HashSet<i64> {
        let mut kept = HashSet::new();
        let mut reachable = HashSet::new();
        for reference in refs {
            kept.insert(reference.snapshot_id);
            reachable.insert(reference.snapshot_id);
            if let RefKind::Branch { min_snapshots_to_keep, max_snapshot_age_ms } = reference.kind {
                let older_than_ms =
                    max_snapshot_age_ms.map_or(self.older_than_ms, |age| self.now_ms.saturating_sub(age));
                let min_snapshots = min_snapshots_to_keep.map_or(self.min_snapshots, i64::from);
                kept.extend(self.kept_in_branch(reference.snapshot_id, older_than_ms, min_snapshots));
                reachable.extend(self.metadata.ancestors(reference.snapshot_id).map(|snapshot| snapshot.snapshot_id));
            }
        }
        // Snapshots that no branch contains, such as staged ones, are kept by age alone.
        let loose = self.metadata.snapshots().iter().filter(|snapshot| !reachable.contains(&snapshot.snapshot_id));
        let young = loose.filter(|snapshot| snapshot.timestamp_ms >= self.older_than_ms);
        kept.extend(young.map(|snapshot| snapshot.snapshot_id));
        kept
    }

    /// Returns the snapshots to keep in a branch, newest first: at least `min_snapshots`, and those that are young
    /// enough.
    fn kept_in_branch(&self, head: i64, older_than_ms: i64, min_snapshots: i64) -> impl Iterator<Item = i64> {
        let numbered = (0..).zip(self.metadata.ancestors(head));
        let kept = numbered.take_while(move |(number, snapshot): &(i64, _)| {
            *number < min_snapshots || snapshot.timestamp_ms >= older_than_ms
        });
        kept.map(|(_, snapshot)| snapshot.snapshot_id)
    }
}
