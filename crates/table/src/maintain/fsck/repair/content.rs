//! The content of the snapshot that a repair makes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use icefield_format::manifest::list::ManifestFile;
use icefield_format::metadata::{Operation, Snapshot, SnapshotManifests, TableMetadata};

use super::manifest::{FileTotals, Outcome, corrected};
use super::report::{Correction, Left, RepairOptions, Repaired, Scope};
use crate::commit::{
    Arranged, Basis, Committed, Content, FileChanges, ManifestKey, Manifests, Specs, SummaryBuilder, basis,
};
use crate::error::Result;
use crate::limits::limits;
use crate::maintain::fsck::context::{Finding, Level};
use crate::maintain::fsck::listed::Listed;
use crate::maintain::fsck::{listed as lists_of, lists, metadata, snapshot};
use crate::snapshot::manifests::{list_key, of_snapshot};
use crate::snapshot::parallel::locked;
use crate::storage::Storage;
use crate::table::Table;

/// The names of totals in summaries.
const TOTALS: [&str; 6] = [
    "total-records",
    "total-files-size",
    "total-data-files",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
];

/// The current snapshot of a branch.
pub(super) fn head<'a>(base: &'a TableMetadata, branch: &str) -> Option<&'a Snapshot> {
    let found = base.reference(branch).and_then(|reference| base.snapshot(reference.snapshot_id));
    found.or_else(|| base.current_snapshot()).map(|snapshot| &**snapshot)
}

/// Corrects the manifests of the current snapshot of a branch.
pub(super) struct Repair {
    storage: Storage,
    location: String,
    branch: String,
    options: RepairOptions,
    /// Outcomes of an earlier attempt, and what the written manifests depend on.
    known: HashMap<ManifestKey, Arc<Outcome>>,
    basis: Option<Basis>,
    /// Counts of removed files, and totals, of the last attempt.
    summary: SummaryBuilder,
    done: Arc<Mutex<Repaired>>,
    /// Always empty: files are neither added nor removed by path.
    changes: FileChanges,
}

impl Repair {
    pub(super) fn new(table: &Table, options: RepairOptions, branch: &str, done: Arc<Mutex<Repaired>>) -> Self {
        Self {
            storage: table.storage().clone(),
            location: table.committed().location.clone(),
            branch: branch.to_owned(),
            options,
            known: HashMap::new(),
            basis: None,
            summary: SummaryBuilder::default(),
            done,
            changes: FileChanges::new(),
        }
    }

    /// What the repair would do to the branch; nothing is written.
    pub(super) fn preview(&mut self, base: &TableMetadata) -> Result<Repaired> {
        let Some(parent) = head(base, &self.branch) else { return Ok(Repaired::default()) };
        if parent.key_id.is_some() && self.storage.keyring().is_none() {
            list_key(&self.storage, base, parent)?;
        }
        let limits = limits()?;
        let Ok(older) = of_snapshot(&self.storage, base, parent, &limits) else {
            let table = Committed { location: self.location.clone(), metadata: Arc::new(base.clone()) };
            let scope = Scope { storage: &self.storage, table: &table, limits: &limits, options: self.options };
            let check = scope.check(Level::Manifests);
            lists_of::listed(&check, parent, true);
            let mut report = Repaired::default();
            report.leave(self.options.most, check.finish()?.findings.into_iter().map(Left::other));
            return Ok(report);
        };
        self.make(base, older, &Manifests::unwritten(&self.storage))?;
        Ok(locked(&self.done).clone())
    }

    fn make(&mut self, base: &TableMetadata, older: Vec<ManifestFile>, manifests: &Manifests) -> Result<Arranged> {
        let table = Committed { location: self.location.clone(), metadata: Arc::new(base.clone()) };
        let (limits, specs) = (limits()?, Specs::of(base));
        let scope = Scope { storage: &self.storage, table: &table, limits: &limits, options: self.options };
        let basis = basis(base)?;
        if self.basis.replace(basis) != Some(basis) {
            self.known.clear();
        }
        let Some(parent) = head(base, &self.branch) else { return Ok(Arranged::default()) };
        let mut report = Repaired::default();
        let is_described = matches!(parent.manifests, SnapshotManifests::List(_));
        let list = parent.manifest_list().unwrap_or(&self.location).to_owned();
        let listed: Vec<Listed> =
            older.into_iter().map(|file| Listed { file, list: list.clone(), is_described }).collect();
        let (fixed, of_totals) = self.check_snapshot(&scope, parent, &listed, &mut report)?;
        let (mut all, mut replaced, mut totals) = (Vec::new(), 0, Some(FileTotals::default()));
        self.summary = SummaryBuilder::default();
        for manifest in listed {
            let key = ManifestKey::of(&manifest.file);
            let outcome = match self.known.get(&key) {
                Some(known) => known.clone(),
                None => {
                    let is_fixed = fixed.contains(&manifest.file.manifest_path);
                    let made = Arc::new(corrected(&scope, &specs, manifests, &manifest, is_fixed)?);
                    self.known.entry(key).or_insert(made).clone()
                }
            };
            report.add(self.options.most, outcome.report.clone());
            totals = totals.zip(outcome.totals.as_ref()).map(|(mut sum, more)| {
                for (name, count) in &more.0 {
                    let total = sum.0.entry(name).or_default();
                    *total = total.saturating_add(*count);
                }
                sum
            });
            match &outcome.corrected {
                None => all.push(manifest.file),
                Some(corrected) => {
                    replaced += 1;
                    self.summary.merge(&corrected.removed);
                    all.push(corrected.manifest.clone());
                }
            }
        }
        if let Some(FileTotals(totals)) = totals {
            let totals: BTreeMap<&str, i64> = TOTALS.map(|name| (name, totals.get(name).copied().unwrap_or(0))).into();
            let after = |finding: &Finding| {
                let name = finding.field.rsplit('.').next().unwrap_or_default();
                totals.get(name).copied().unwrap_or(0).to_string()
            };
            let corrections = of_totals.iter().map(|one| Correction::of(one, one.found.clone(), after(one)));
            report.correct(self.options.most, corrections);
            self.summary.set_totals(totals);
        } else {
            report.leave(self.options.most, of_totals.into_iter().map(Left::other));
        }
        report.drop_solved();
        report.corrections.sort();
        report.left.sort();
        *locked(&self.done) = report;
        Ok(Arranged { manifests: all, replaced })
    }

    /// Checks the snapshot as a whole. Findings are left, but for wrong totals, which are returned. Also returns the manifests
    /// that stay as they are, because the list is wrong about numbers that their entries inherit.
    fn check_snapshot(
        &self,
        scope: &Scope<'_>,
        parent: &Snapshot,
        listed: &[Listed],
        report: &mut Repaired,
    ) -> Result<(HashSet<String>, Vec<Finding>)> {
        let most = self.options.most;
        let check = scope.check(Level::Manifests);
        lists::check_list(&check, parent, listed);
        let of_list = check.finish()?.findings;
        let fixed = of_list.iter().map(|finding| finding.file.clone()).collect();
        report.leave(most, of_list.into_iter().map(Left::other));
        let check = scope.check(Level::Manifests);
        metadata::check(&check);
        snapshot::check_one(&check, parent)?;
        let mut of_totals = Vec::new();
        for finding in check.finish()?.findings {
            match finding.check {
                "summary-total" => of_totals.push(finding),
                _ => report.leave(most, [Left::other(finding)]),
            }
        }
        Ok((fixed, of_totals))
    }
}

impl fmt::Debug for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repair").field("branch", &self.branch).field("options", &self.options).finish_non_exhaustive()
    }
}

impl Content for Repair {
    fn operation(&self) -> Operation {
        let done = locked(&self.done);
        // "delete" removes data files and their rows; without deletes, rows come back.
        match (done.removed_files, done.removed_deletes) {
            (0, 0) => Operation::Replace,
            (_, 0) => Operation::Delete,
            _ => Operation::Overwrite,
        }
    }

    fn changes(&self) -> &FileChanges {
        &self.changes
    }

    fn changes_mut(&mut self) -> &mut FileChanges {
        &mut self.changes
    }

    fn manifests(
        &mut self,
        base: &TableMetadata,
        older: Vec<ManifestFile>,
        manifests: &mut Manifests,
        _merge: bool,
    ) -> Result<Arranged> {
        self.make(base, older, manifests)
    }

    fn summary(&self, _base: &TableMetadata) -> Result<SummaryBuilder> {
        Ok(self.summary.clone())
    }
}
