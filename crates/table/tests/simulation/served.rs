//! The changes of the table by the catalog, and the expectations on new snapshots.

use std::collections::BTreeSet;
use std::sync::Arc;

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement};
use icefield_table::clock;
use icefield_table::commit::{Committed, read_metadata, write_metadata};

use crate::schedule::{Broken, Expected, NUMBER, Now, PART, Request, SOURCE, Schedule, Wrong};

impl Schedule {
    /// Executes a request, and records the expectations on new snapshots. Returns the table, or `None` if the request
    /// is rejected.
    pub fn serve(&self, request: &Request) -> Option<Committed> {
        let mut now = self.now.lock().unwrap();
        let (location, metadata) = match request {
            Request::Swap(base, new) => {
                if now.location != *base && self.broken != Some(Broken::SwapsAlways) {
                    return None;
                }
                match read_metadata(&self.storage, new) {
                    Ok(metadata) => (new.clone(), metadata),
                    Err(error) => {
                        now.wrong = Some(format!("the table would be at {new}: {error}"));
                        return None;
                    }
                }
            }
            Request::Updates(requirements, updates) => {
                if requirements.iter().any(|requirement| requirement.check(Some(&now.metadata)).is_err()) {
                    return None;
                }
                let clock = clock::now_ms().max(now.metadata.last_updated_ms());
                let builder =
                    MetadataBuilder::from_base(&now.metadata, clock).with_previous_file(now.location.as_str());
                let builder = builder.apply_all(updates.iter().cloned()).ok()?;
                if builder.changes().is_empty() {
                    return Some(Committed { location: now.location.clone(), metadata: now.metadata.clone() });
                }
                let metadata = builder.build().ok()?;
                (write_metadata(&self.storage, &metadata, 0).unwrap(), metadata)
            }
        };
        if let Err(wrong) = self.expect(&mut now, &metadata, request) {
            now.wrong.get_or_insert(wrong);
        }
        now.location = location.clone();
        now.metadata = Arc::new(metadata);
        let current = Committed { location: location.clone(), metadata: now.metadata.clone() };
        now.all.push(current);
        Some(Committed { location, metadata: now.metadata.clone() })
    }

    /// Checks that new snapshots follow their parents, and that branches only move forward.
    fn expect(&self, now: &mut Now, new: &TableMetadata, request: &Request) -> Result<(), Wrong> {
        let made = self.made.lock().unwrap();
        let mut own = BTreeSet::new();
        for snapshot in new.snapshots() {
            let id = snapshot.snapshot_id;
            if now.snapshots.contains_key(&id) {
                continue;
            }
            let entry = |name| snapshot.summary.as_ref().and_then(|summary| summary.get(name));
            let picked = entry(SOURCE).map(|id| now.snapshots[&id.parse::<i64>().unwrap()].number);
            let number = picked.or_else(|| entry(NUMBER)?.parse().ok()).ok_or("a snapshot of no change")?;
            let parent = snapshot.parent_snapshot_id;
            let ends: Vec<_> = now.metadata.refs().values().map(|end| end.snapshot_id).collect();
            let Some(of) = made.get(number).and_then(Option::as_ref) else {
                return Err(format!("{number} has committed and had nothing to do"));
            };
            // A staged snapshot moves no branch. As in Java, its request has no requirement on branches, so others may
            // have followed the parent meanwhile.
            let is_sent = matches!(request, Request::Updates(..));
            let follows_any = is_sent && picked.is_none() && of.change.is_staged();
            let is_end = |parent| ends.contains(&parent) || own.contains(&parent);
            if !follows_any && parent.map_or(!ends.is_empty(), |parent| !is_end(parent)) {
                return Err(format!("{number} follows {parent:?}, which is the end of no branch"));
            }
            let mut rows = parent.map_or_else(Vec::new, |parent| now.snapshots[&parent].rows.clone());
            let part: usize = entry(PART).filter(|_| picked.is_none()).map_or(0, |part| part.parse().unwrap());
            let Some((change, seen)) = of.parts.get(part) else {
                return Err(format!("{number} has committed and had nothing to do"));
            };
            own.insert(id);
            change.apply(number, seen, &mut rows);
            now.snapshots.insert(id, Expected { parent, number, rows });
        }
        for (name, end) in now.metadata.refs() {
            let Some(to) = new.reference(name) else {
                if drops_unknown(request, name) {
                    // The writer deletes no files then.
                    *self.is_untidy.lock().unwrap() = true;
                    continue;
                }
                return Err(format!("the branch {name} has gone"));
            };
            let mut at = Some(to.snapshot_id);
            while at.is_some_and(|at| at != end.snapshot_id) {
                at = at.and_then(|at| now.snapshots[&at].parent);
            }
            at.ok_or_else(|| format!("the branch {name} has lost snapshots"))?;
        }
        Ok(())
    }
}

/// Whether a request removes snapshots without knowing of the branch. A service drops a branch with its snapshot, and no
/// requirement can say that none was created meanwhile (docs/differences.md, "Branches created during an expiry").
fn drops_unknown(request: &Request, name: &str) -> bool {
    let Request::Updates(requirements, updates) = request else { return false };
    let knows = |one: &UpdateRequirement| matches!(one, UpdateRequirement::AssertRefSnapshotId { ref_name, .. } if ref_name == name);
    let removes = |one: &MetadataUpdate| matches!(one, MetadataUpdate::RemoveSnapshots { .. });
    updates.iter().any(removes) && !requirements.iter().any(knows)
}
