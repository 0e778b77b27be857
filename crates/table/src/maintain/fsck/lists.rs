//! Checks manifest lists against manifests.

use std::collections::HashSet;
use std::sync::Mutex;

use icefield_format::FormatVersion;
use icefield_format::manifest::list::FieldSummary;
use icefield_format::manifest::{Entries, ManifestContent, ManifestEntry, ManifestFile, Metrics, Status};
use icefield_format::metadata::Snapshot;
use icefield_format::types::{PrimitiveType, Type};
use icefield_format::value::{Value, binary};

use super::context::{At, Check, Level};
use super::listed::{Listed, listed, read};
use super::metrics::order;
use super::{entries as of_entries, files};
use crate::error::Result;
use crate::snapshot::manifests::with_own_lists;
use crate::snapshot::parallel::{locked, side_by_side};
use crate::storage::FileRef;

pub(super) fn check(check: &Check<'_>) -> Result<()> {
    let mut snapshots = with_own_lists(check.metadata);
    snapshots.retain(|snapshot| check.has_manifests(snapshot));
    let found: Mutex<Vec<Listed>> = Mutex::default();
    side_by_side(check.storage, check.metadata.location(), &snapshots, |snapshot| {
        if !check.goes_on() {
            return;
        }
        let manifests = listed(check, snapshot, true).unwrap_or_default();
        check_list(check, snapshot, &manifests);
        for manifest in manifests {
            if check.is_new(format!("{:?} {}", manifest.file, FileRef::of_manifest(&manifest.file).fingerprint())) {
                let held = locked(&check.state).held.keep(manifest.file.memory());
                match held {
                    Ok(()) => locked(&found).push(manifest),
                    Err(error) => drop(locked(&check.state).failed.get_or_insert(error.into())),
                }
            }
        }
    });
    let manifests = found.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    // Where files are opened, they are checked side by side, and their manifests one after another.
    if check.options.level >= Level::Files {
        manifests.iter().take_while(|_| check.goes_on()).for_each(|manifest| check_manifest(check, manifest));
    } else {
        side_by_side(check.storage, check.metadata.location(), &manifests, |manifest| {
            if check.goes_on() {
                check_manifest(check, manifest);
            }
        });
    }
    Ok(())
}

/// Checks what a list says of its manifests without reading them.
pub(super) fn check_list(check: &Check<'_>, snapshot: &Snapshot, manifests: &[Listed]) {
    let mut known = HashSet::new();
    for Listed { file, list, is_described } in manifests {
        let at = check.at(&file.manifest_path, list);
        if !known.insert(&file.manifest_path) {
            at.error("manifest-listed-twice", "manifest_path", "once", "twice");
        }
        if !is_described || check.metadata.format_version() == FormatVersion::V1 {
            continue;
        }
        if file.sequence_number > snapshot.sequence_number {
            let most = format!("at most {}", snapshot.sequence_number);
            at.error("manifest-sequence-number", "sequence_number", most, file.sequence_number);
        } else if let Some(added) = check.metadata.snapshot(file.added_snapshot_id)
            && added.sequence_number != file.sequence_number
        {
            at.error("manifest-sequence-number", "sequence_number", added.sequence_number, file.sequence_number);
        }
        if snapshot.first_row_id.is_some() && file.content == ManifestContent::Data && file.first_row_id.is_none() {
            at.error("manifest-first-row-id", "first_row_id", "a row id", "none");
        }
    }
}

fn check_manifest(check: &Check<'_>, manifest: &Listed) {
    let file = &manifest.file;
    let at = check.at(&file.manifest_path, &manifest.list);
    let (bytes, entries) = match read(check, manifest, Metrics::all()) {
        Ok(read) => read,
        Err(error) => return check.unread(at, "manifest-missing", "manifest-unreadable", error),
    };
    check.count(|report| report.manifests += 1);
    check_header(check, at, manifest, bytes.len(), &entries);
    drop(bytes);
    let mut totals = Totals::default();
    let mut live = Vec::new();
    for row in 0..entries.len() {
        let entry = match entries.entry(row, file.partition_spec_id) {
            Ok(entry) => entry,
            Err(error) => return at.error("manifest-unreadable", "", "", error),
        };
        totals.add(&entry);
        of_entries::check(check, manifest, &entry);
        if entry.status != Status::Deleted && check.options.level >= Level::Files {
            live.push(entry);
        }
    }
    if manifest.is_described {
        totals.check(at, file);
        check_summaries(at, file, &entries);
    }
    side_by_side(check.storage, check.metadata.location(), &live, |entry| {
        if check.goes_on() {
            files::check(check, manifest, entry);
        }
    });
}

/// Checks what a list says of a manifest against its length and its header.
pub(super) fn check_header(check: &Check<'_>, at: At<'_>, manifest: &Listed, length: usize, entries: &Entries) {
    let file = &manifest.file;
    if manifest.is_described {
        // That of an encrypted manifest is of its stored bytes, which its authentication depends on.
        if file.key_metadata.is_none() {
            let length = i64::try_from(length).unwrap_or(i64::MAX);
            at.same("manifest-length", "manifest_length", length, file.manifest_length);
        }
        if entries.header.content != file.content {
            let (expected, found) = (format!("{:?}", entries.header.content), format!("{:?}", file.content));
            at.error("manifest-content", "content", expected, found);
        }
        if let Some(own) = entries.header.partition_spec_id {
            at.same("manifest-spec", "partition_spec_id", own, file.partition_spec_id);
        }
    }
    if check.metadata.partition_spec(file.partition_spec_id).is_none() {
        at.error("manifest-spec", "partition_spec_id", "a partition spec of the table", file.partition_spec_id);
    }
}

/// Counts by status: added, existing, deleted.
#[derive(Default)]
pub(super) struct Totals {
    files: [i32; 3],
    rows: [i64; 3],
    least: Option<i64>,
}

impl Totals {
    pub(super) fn add(&mut self, entry: &ManifestEntry) {
        let at = match entry.status {
            Status::Added => 0,
            Status::Existing => 1,
            Status::Deleted => 2,
        };
        if let (Some(files), Some(rows)) = (self.files.get_mut(at), self.rows.get_mut(at)) {
            *files = files.saturating_add(1);
            *rows = rows.saturating_add(entry.file.record_count);
        }
        if entry.status != Status::Deleted {
            self.least = self.least.into_iter().chain(entry.sequence_number).min();
        }
    }

    pub(super) fn check(&self, at: At<'_>, listed: &ManifestFile) {
        let files = [
            ("added_files_count", listed.added_files_count),
            ("existing_files_count", listed.existing_files_count),
            ("deleted_files_count", listed.deleted_files_count),
        ];
        for ((field, found), expected) in files.into_iter().zip(self.files) {
            if let Some(found) = found {
                at.same("manifest-files-count", field, expected, found);
            }
        }
        let rows = [
            ("added_rows_count", listed.added_rows_count),
            ("existing_rows_count", listed.existing_rows_count),
            ("deleted_rows_count", listed.deleted_rows_count),
        ];
        for ((field, found), expected) in rows.into_iter().zip(self.rows) {
            if let Some(found) = found {
                at.same("manifest-rows-count", field, expected, found);
            }
        }
        // A number that is too great makes readers skip deletes or files.
        if let Some(least) = self.least.filter(|least| listed.min_sequence_number > *least) {
            let expected = format!("at most {least}");
            at.error("manifest-min-sequence-number", "min_sequence_number", expected, listed.min_sequence_number);
        }
    }
}

/// Checks the summaries of partition fields against the partitions of live files.
pub(super) fn check_summaries(at: At<'_>, listed: &ManifestFile, entries: &Entries) {
    let Some(summaries) = &listed.partitions else { return };
    let fields = &entries.partition_type.fields;
    if summaries.len() != fields.len() {
        return at.error("manifest-partitions", "partitions", format!("{} summaries", fields.len()), summaries.len());
    }
    let is_live = |row: &usize| entries.status_of(*row).is_ok_and(|status| status != Status::Deleted);
    let tuples = (0..entries.len()).filter(is_live).filter_map(|row| entries.partition_of(row).ok());
    for tuple in tuples {
        for ((value, summary), field) in tuple.iter().zip(summaries).zip(fields) {
            let Type::Primitive(ty) = &field.ty else { continue };
            if let Some(fault) = outside(value.as_ref(), summary, ty) {
                at.error(
                    "manifest-partitions",
                    &format!("partitions.{}", field.name),
                    "a summary of all values",
                    fault,
                );
                return;
            }
        }
    }
}

/// How a summary fails to include a value, if it does.
fn outside(value: Option<&Value>, summary: &FieldSummary, ty: &PrimitiveType) -> Option<String> {
    let Some(value) = value else {
        return (!summary.contains_null).then(|| "contains_null is false, and a value is null".to_owned());
    };
    if matches!(value, Value::Float(one) if one.is_nan()) || matches!(value, Value::Double(one) if one.is_nan()) {
        return (summary.contains_nan == Some(false)).then(|| "contains_nan is false, and a value is NaN".to_owned());
    }
    let bound = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| binary::from_bytes(bytes, ty));
    match (bound(&summary.lower_bound), bound(&summary.upper_bound)) {
        (None, _) | (_, None) => Some(format!("no bounds, and a value is {value:?}")),
        (Some(Err(error)), _) | (_, Some(Err(error))) => Some(error.to_string()),
        (Some(Ok(lower)), Some(Ok(upper))) => {
            let below = order(ty, value, &lower).is_lt();
            let above = order(ty, value, &upper).is_gt();
            // Java orders UUIDs in its own way.
            (*ty != PrimitiveType::Uuid && (below || above))
                .then(|| format!("{lower:?} to {upper:?}, and a value is {value:?}"))
        }
    }
}
