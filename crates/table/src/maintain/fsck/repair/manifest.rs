//! Corrects one manifest: its entries, and what the manifest list says of it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;

use icefield_format::manifest::{DataFile, Entries, FileContent, ManifestEntry, Metrics, Status};

use super::entry::{self, check_all};
use super::report::{Correction, Left, Repaired, Scope};
use super::why;
use crate::commit::{CorrectedManifest, Manifests, Specs};
use crate::error::{Error, Result};
use crate::maintain::fsck::context::{Check, Finding};
use crate::maintain::fsck::listed::{Listed, read_as};
use crate::maintain::fsck::lists::{Totals, check_header, check_summaries};
use crate::snapshot::parallel::{locked, side_by_side};

/// Counts of the live files of a manifest, as the totals of a summary.
#[derive(Debug, Clone, Default)]
pub(super) struct FileTotals(pub(super) BTreeMap<&'static str, i64>);

impl FileTotals {
    fn count(&mut self, file: &DataFile) {
        let mut add = |name: &'static str, by: i64| {
            let total = self.0.entry(name).or_default();
            *total = total.saturating_add(by);
        };
        add("total-files-size", file.content_size_in_bytes.unwrap_or(file.file_size_in_bytes));
        match file.content {
            FileContent::Data => {
                add("total-data-files", 1);
                add("total-records", file.record_count);
            }
            FileContent::PositionDeletes => {
                add("total-delete-files", 1);
                add("total-position-deletes", file.record_count);
            }
            FileContent::EqualityDeletes => {
                add("total-delete-files", 1);
                add("total-equality-deletes", file.record_count);
            }
        }
    }
}

/// A manifest after its corrections.
#[derive(Debug)]
pub(super) struct Outcome {
    /// What replaces it; `None` if it stays.
    pub(super) corrected: Option<CorrectedManifest>,
    /// Counts of the files that it then has; `None` if it cannot be read, or does not say how many rows a file has.
    pub(super) totals: Option<FileTotals>,
    /// What was corrected and left in it.
    pub(super) report: Repaired,
}

/// Checks a manifest, and writes it again if there is something to correct. `is_fixed` says that the list has faults
/// about it which entries inherit, so that it stays as it is.
pub(super) fn corrected(
    scope: &Scope<'_>,
    specs: &Specs,
    manifests: &Manifests,
    manifest: &Listed,
    is_fixed: bool,
) -> Result<Outcome> {
    let most = scope.options.most;
    let mut report = Repaired::default();
    let check = scope.check(scope.options.level);
    let partition_type = specs.of_manifest(&manifest.file).ok().map(|spec| spec.partition_type.clone());
    let at = check.at(&manifest.file.manifest_path, &manifest.list);
    let read = read_as(&check, manifest, Metrics::all(), partition_type.as_ref()).and_then(|(bytes, entries)| {
        check_header(&check, at, manifest, bytes.len(), &entries);
        Ok((all_entries(&entries, manifest)?, entries))
    });
    let (all, entries) = match read {
        Ok(read) => read,
        Err(error) => {
            check.unread(at, "manifest-missing", "manifest-unreadable", error);
            report.leave(most, check.finish()?.findings.into_iter().map(Left::other));
            return Ok(Outcome { corrected: None, totals: None, report });
        }
    };
    if manifest.is_described {
        let mut totals = Totals::default();
        all.iter().for_each(|entry| totals.add(entry));
        totals.check(at, &manifest.file);
        check_summaries(at, &manifest.file, &entries);
    }
    drop(entries);
    let of_list = check.finish()?.findings;
    let is_other = is_fixed || is_another(&of_list);
    let live: Vec<ManifestEntry> = all.into_iter().filter(|entry| entry.status != Status::Deleted).collect();
    let damaged = damaged(scope, manifest, &live)?;
    let mut is_changed = !is_other && !of_list.is_empty();
    if is_other {
        report.leave(most, of_list.into_iter().map(Left::other));
    } else {
        report.correct(most, of_list.iter().map(of_manifest));
    }
    let mut kept = Vec::with_capacity(live.len());
    for entry in live {
        if !damaged.contains(entry.file.file_path.as_str()) {
            kept.push(entry);
            continue;
        }
        let mut one = entry::corrected(scope, manifest, &entry)?;
        if is_other && !one.corrections.is_empty() {
            let reason = why::of("manifest-length", true);
            let left = |correction: Correction| Left { finding: found(correction), reason };
            report.leave(most, one.corrections.drain(..).map(left));
            one.entry = entry;
        }
        if one.entry.status == Status::Deleted {
            if one.entry.file.content == FileContent::Data {
                report.removed_files += 1;
                report.removed_rows = report.removed_rows.saturating_add(one.entry.file.record_count.max(0));
            } else {
                report.removed_deletes += 1;
            }
        }
        is_changed |= !one.corrections.is_empty();
        report.correct(most, one.corrections);
        report.leave(most, one.left);
        kept.push(one.entry);
    }
    let mut totals = FileTotals::default();
    let remaining = || kept.iter().filter(|entry| entry.status != Status::Deleted).map(|entry| &entry.file);
    remaining().for_each(|file| totals.count(file));
    let totals = (!is_other && remaining().all(|file| file.record_count >= 0)).then_some(totals);
    if !is_changed {
        return Ok(Outcome { corrected: None, totals, report });
    }
    let spec = specs.of_manifest(&manifest.file)?;
    match manifests.corrected(&scope.table.metadata, spec, &manifest.file, kept) {
        Ok(corrected) => {
            report.manifests = 1;
            Ok(Outcome { corrected: Some(corrected), totals, report })
        }
        // Another entry of the manifest may be such that none can have it.
        Err(Error::Format(_) | Error::Validation(_)) => {
            let left: Vec<Left> =
                report.corrections.drain(..).map(|one| Left { finding: found(one), reason: why::UNWRITABLE }).collect();
            let report = Repaired { left: report.left, left_count: report.left_count, ..Repaired::default() };
            let mut outcome = Outcome { corrected: None, totals: None, report };
            outcome.report.leave(most, left);
            Ok(outcome)
        }
        Err(error) => Err(error),
    }
}

fn all_entries(entries: &Entries, manifest: &Listed) -> Result<Vec<ManifestEntry>> {
    let path = &manifest.file.manifest_path;
    let entry = |row| entries.entry(row, manifest.file.partition_spec_id);
    (0..entries.len()).map(|row| entry(row).map_err(|error| Error::from(error.in_file(path)))).collect()
}

/// The paths of the files whose entries have findings.
fn damaged(scope: &Scope<'_>, manifest: &Listed, live: &[ManifestEntry]) -> Result<HashSet<String>> {
    let check: Check<'_> = scope.check(scope.options.level);
    let failed: Mutex<Option<Error>> = Mutex::new(None);
    side_by_side(check.storage, check.metadata.location(), live, |entry| {
        if locked(&failed).is_none() && check.goes_on() {
            check_all(&check, manifest, entry);
        }
    });
    Ok(check.finish()?.findings.into_iter().map(|finding| finding.file).collect())
}

/// Whether what the list says of a manifest differs so much that it may be of another one.
fn is_another(findings: &[Finding]) -> bool {
    let has = |names: &[&str]| findings.iter().any(|finding| names.contains(&finding.check));
    let has_length = has(&["manifest-length"]);
    let has_counts = has(&["manifest-files-count", "manifest-rows-count", "manifest-partitions"]);
    has(&["manifest-content", "manifest-spec"]) || (has_length && has_counts)
}

fn of_manifest(finding: &Finding) -> Correction {
    let after = match finding.check {
        "manifest-partitions" => "summaries of all values".to_owned(),
        _ => finding.expected.clone(),
    };
    Correction::of(finding, finding.found.clone(), after)
}

fn found(correction: Correction) -> Finding {
    Finding {
        severity: crate::maintain::fsck::Severity::Error,
        check: correction.check,
        file: correction.file,
        field: correction.field,
        expected: correction.after,
        found: correction.before,
        described_by: correction.described_by,
    }
}
