//! Corrects the entry of one file, as far as the file itself says what is right.

use std::collections::{BTreeMap, HashSet};

use icefield_format::manifest::{DataFile, FileContent, FileFormat, ManifestEntry, Status};
use icefield_format::puffin::{self, BlobMetadata, DeletionVector};

use super::report::{Correction, Left, Scope};
use super::why;
use crate::error::Result;
use crate::file::metrics::FileMetrics;
use crate::file::modes::Modes;
use crate::maintain::fsck::context::{Check, Finding, Level};
use crate::maintain::fsck::files::{self, REFERENCED, footer_of};
use crate::maintain::fsck::listed::Listed;
use crate::maintain::fsck::{entries, metrics};
use crate::storage::FileRef;

/// A correction may show what an earlier check has hidden: the size of a file, then its rows, then its columns.
const ROUNDS: usize = 4;

/// An entry after its corrections.
#[derive(Debug)]
pub(super) struct Corrected {
    /// The entry; `Deleted` if its file is removed from the table.
    pub(super) entry: ManifestEntry,
    pub(super) corrections: Vec<Correction>,
    pub(super) left: Vec<Left>,
}

/// Corrects an entry. A correction is kept only if the checks that found the fault find nothing in its place.
pub(super) fn corrected(scope: &Scope<'_>, manifest: &Listed, entry: &ManifestEntry) -> Result<Corrected> {
    let is_vector = entry.file.format() == Some(FileFormat::Puffin);
    // The cardinality of a vector is in its bitmap.
    let level = if is_vector { Level::Rows } else { scope.options.level };
    let before = findings(scope, manifest, entry, level)?;
    let untouched = |before: &[Finding]| Corrected {
        entry: entry.clone(),
        corrections: Vec::new(),
        left: before.iter().map(|finding| Left::of(finding, entry)).collect(),
    };
    if let Some(missing) = before.iter().find(|finding| finding.check == "file-missing") {
        let is_data = entry.file.content == FileContent::Data;
        let consent = if is_data { scope.options.remove_missing_files } else { scope.options.remove_missing_deletes };
        if !consent {
            return Ok(untouched(&before));
        }
        let rows = entry.file.record_count;
        let correction = Correction::of(missing, format!("an entry of {rows} rows"), "removed".to_owned());
        let entry = ManifestEntry { status: Status::Deleted, ..entry.clone() };
        return Ok(Corrected { entry, corrections: vec![correction], left: Vec::new() });
    }
    // A file of another length may have been cut or replaced: then only its rows can say that it is whole.
    let has_other_size = |finding: &Finding| matches!(finding.check, "file-size" | "entry-file-size");
    let proof = if before.iter().any(has_other_size) { Level::Rows } else { level };
    let mut fixed = entry.clone();
    let mut seen = before.clone();
    for _ in 0..ROUNDS {
        let found = findings(scope, manifest, &fixed, proof)?;
        let mut changed = false;
        for finding in &found {
            changed |= fix(scope, &mut fixed.file, finding)?;
        }
        seen.extend(found);
        if !changed {
            break;
        }
    }
    let rest = findings(scope, manifest, &fixed, proof)?;
    let key = |finding: &Finding| (finding.check, finding.field.clone());
    let known: HashSet<_> = before.iter().map(key).collect();
    if rest.iter().any(|finding| !known.contains(&key(finding))) {
        return Ok(untouched(&before));
    }
    let left: HashSet<_> = rest.iter().map(key).collect();
    let mut corrections = Vec::new();
    let mut told = HashSet::new();
    for finding in seen.iter().filter(|finding| !left.contains(&key(finding)) && told.insert(key(finding))) {
        if finding.check == "file-unreadable" {
            let finding = Finding { check: "rows-record-count", field: "record_count".to_owned(), ..finding.clone() };
            let (wrong, right) = (entry.file.record_count.to_string(), fixed.file.record_count.to_string());
            corrections.push(Correction::of(&finding, wrong, right));
        } else {
            corrections.push(Correction::of(finding, finding.found.clone(), value_of(&fixed.file, finding)));
        }
    }
    Ok(Corrected { entry: fixed, corrections, left: rest.iter().map(|finding| Left::of(finding, entry)).collect() })
}

/// What the checks of fsck find about an entry and its file.
fn findings(scope: &Scope<'_>, manifest: &Listed, entry: &ManifestEntry, level: Level) -> Result<Vec<Finding>> {
    let check = scope.check(level);
    entries::check(&check, manifest, entry);
    files::check(&check, manifest, entry);
    Ok(check.finish()?.findings)
}

/// Corrects a field; returns whether it has changed.
fn fix(scope: &Scope<'_>, file: &mut DataFile, finding: &Finding) -> Result<bool> {
    let before = file.clone();
    let column = metrics::column_of(&finding.field);
    match (finding.check, column) {
        ("file-size" | "entry-file-size", _) => match scope.storage.size(&file.file_path).map(i64::try_from) {
            Ok(Ok(size)) => file.file_size_in_bytes = size,
            _ => return Ok(false),
        },
        ("file-record-count" | "rows-record-count", _) => match finding.expected.parse() {
            // Their row ids would be those of the next file.
            Ok(rows) if file.first_row_id.is_some() && rows > file.record_count => return Ok(false),
            Ok(rows) => file.record_count = rows,
            Err(_) => return Ok(false),
        },
        // Reading compares the number of rows of Avro files, which have no footer.
        ("file-unreadable", _) if file.format() == Some(FileFormat::Avro) => match counted(scope, file) {
            Some(rows) if file.first_row_id.is_none() || rows <= file.record_count => file.record_count = rows,
            _ => return Ok(false),
        },
        ("entry-sort-order", _) => file.sort_order_id = None,
        ("entry-split-offsets" | "file-split-offsets", _) => {
            let offsets = described(scope, file).map(|found| found.split_offsets);
            file.split_offsets = offsets.filter(|offsets| !offsets.is_empty());
        }
        ("column-sizes", _) => {
            let sizes = described(scope, file).map(|found| found.column_sizes).unwrap_or_default();
            file.column_sizes = Some(sizes.into_iter().collect()).filter(|sizes: &Vec<_>| !sizes.is_empty());
        }
        ("file-column-size", Some(id)) => {
            set(&mut file.column_sizes, id, described(scope, &before).map(|found| found.column_sizes));
        }
        ("value-count" | "file-value-count" | "rows-value-count", Some(id)) => {
            set(&mut file.value_counts, id, described(scope, &before).map(|found| found.value_counts));
        }
        ("null-count" | "file-null-count" | "rows-null-count", Some(id)) => {
            set(&mut file.null_value_counts, id, described(scope, &before).map(|found| found.null_value_counts));
        }
        ("nan-count" | "file-nan-count" | "rows-nan-count", Some(id)) => {
            set(&mut file.nan_value_counts, id, described(scope, &before).map(|found| found.nan_value_counts));
        }
        (
            "bound-unreadable" | "bounds-order" | "file-lower-bound" | "file-upper-bound" | "rows-lower-bound"
            | "rows-upper-bound",
            Some(id),
        ) => set_bounds(scope, file, id),
        // The bounds of its source column may be wrong, and not the partition.
        ("entry-partition", None) => {
            let spec = scope.table.metadata.partition_spec(file.partition_spec_id);
            let name = finding.field.strip_prefix("partition.");
            let field = spec.and_then(|spec| spec.fields.iter().find(|field| Some(field.name.as_str()) == name));
            if let Some(id) = field.and_then(|field| field.source_id())
                && let Some(found) = described(scope, file)
            {
                replace(&mut file.lower_bounds, id, found.lower_bounds.get(&id));
                replace(&mut file.upper_bounds, id, found.upper_bounds.get(&id));
            }
        }
        ("vector-cardinality" | "vector-rows", _) => return fix_cardinality(scope, file),
        ("vector-fields" | "vector-blob", _) => fix_blob(scope, file)?,
        _ => {}
    }
    Ok(*file != before)
}

/// Sets the number of a column, or leaves it out if the file does not have it, or has what was wrong.
fn set(numbers: &mut Option<Vec<(i32, i64)>>, id: i32, found: Option<BTreeMap<i32, i64>>) {
    let right = found.and_then(|found| found.get(&id).copied());
    set_to(numbers, id, right);
}

fn set_bounds(scope: &Scope<'_>, file: &mut DataFile, id: i32) {
    let found = described(scope, file).unwrap_or_default();
    set_to(&mut file.lower_bounds, id, found.lower_bounds.get(&id).cloned());
    set_to(&mut file.upper_bounds, id, found.upper_bounds.get(&id).cloned());
}

/// Replaces the value of a column. One that is right already stays: to leave it out would only hide a fault elsewhere.
fn replace<T: Clone>(values: &mut Option<Vec<(i32, T)>>, id: i32, right: Option<&T>) {
    let listed = values.iter_mut().flatten().find(|(of, _)| *of == id);
    if let (Some((_, listed)), Some(right)) = (listed, right) {
        listed.clone_from(right);
    }
}

fn set_to<T: PartialEq>(values: &mut Option<Vec<(i32, T)>>, id: i32, right: Option<T>) {
    let Some(all) = values else { return };
    if let Some(place) = all.iter().position(|(of, _)| *of == id) {
        match right {
            Some(right) if all.get(place).is_some_and(|(_, listed)| *listed != right) => {
                if let Some((_, listed)) = all.get_mut(place) {
                    *listed = right;
                }
            }
            _ => drop(all.remove(place)),
        }
    }
    if all.is_empty() {
        *values = None;
    }
}

/// What the footer of a data file says of it, in the metrics modes of the table; `None` if it has none, or cannot be read.
fn described(scope: &Scope<'_>, file: &DataFile) -> Option<FileMetrics> {
    if file.format() == Some(FileFormat::Avro) || file.content != FileContent::Data {
        return None;
    }
    let metadata = &scope.table.metadata;
    let modes =
        Modes::new(metadata.properties(), metadata.current_schema(), Some(metadata.default_sort_order())).ok()?;
    let check = scope.check(Level::Footers);
    let size = scope.storage.size(&file.file_path).ok()?;
    files::opened(&check, file, size).and_then(|reader| reader.metrics(&modes)).ok()
}

/// Counts the rows of a file by reading all of its blocks.
fn counted(scope: &Scope<'_>, file: &DataFile) -> Option<i64> {
    let check = scope.check(Level::Rows);
    let size = scope.storage.size(&file.file_path).ok()?;
    let rows = files::opened(&check, file, size).and_then(|reader| reader.count_rows()).ok()?;
    i64::try_from(rows).ok()
}

/// The cardinality of a deletion vector is that of its bitmap.
fn fix_cardinality(scope: &Scope<'_>, file: &mut DataFile) -> Result<bool> {
    let (Some(offset), Some(length)) = (file.content_offset, file.content_size_in_bytes) else { return Ok(false) };
    let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(length)) else { return Ok(false) };
    let (storage, size) = scope.storage.decrypting(&FileRef::of_file(file))?;
    let Some(end) = offset.checked_add(length).filter(|end| *end <= size) else { return Ok(false) };
    let vector = storage
        .range(&file.file_path, offset..end)
        .ok()
        .and_then(|bytes| DeletionVector::from_bytes(&bytes, scope.limits).ok());
    let Some(rows) = vector.and_then(|vector| i64::try_from(vector.cardinality()).ok()) else { return Ok(false) };
    let changed = rows != file.record_count;
    file.record_count = rows;
    Ok(changed)
}

/// The place of a deletion vector is that of the only blob that is for its data file.
fn fix_blob(scope: &Scope<'_>, file: &mut DataFile) -> Result<()> {
    let (storage, size) = scope.storage.decrypting(&FileRef::of_file(file))?;
    let check = scope.check(Level::Footers);
    let Ok((footer, _)) = footer_of(&check, &storage, &file.file_path, size) else { return Ok(()) };
    let target = |blob: &BlobMetadata| blob.property(REFERENCED).map(str::to_owned);
    let is_here = |blob: &BlobMetadata| {
        let place = (i64::try_from(blob.offset).ok(), i64::try_from(blob.length).ok());
        place == (file.content_offset, file.content_size_in_bytes)
    };
    let fits = |blob: &&BlobMetadata| match &file.referenced_data_file {
        Some(listed) => target(blob).as_ref() == Some(listed),
        None => is_here(blob),
    };
    let mut blobs = footer.blobs.iter().filter(|blob| blob.ty == puffin::DELETION_VECTOR).filter(fits);
    let (Some(blob), None) = (blobs.next(), blobs.next()) else { return Ok(()) };
    file.content_offset = i64::try_from(blob.offset).ok();
    file.content_size_in_bytes = i64::try_from(blob.length).ok();
    file.referenced_data_file = target(blob);
    Ok(())
}

/// The value of the field of a finding, as text.
fn value_of(file: &DataFile, finding: &Finding) -> String {
    fn listed<T: Clone>(values: &Option<Vec<(i32, T)>>, id: Option<i32>) -> Option<T> {
        values.iter().flatten().find(|(of, _)| Some(*of) == id).map(|(_, value)| value.clone())
    }
    let id = metrics::column_of(&finding.field);
    let number = |values: &Option<Vec<(i32, i64)>>| listed(values, id).map(|number| number.to_string());
    let bound = |values: &Option<Vec<(i32, Vec<u8>)>>| listed(values, id).map(|bytes| hexadecimal(&bytes));
    let name = finding.field.split(['[', '.']).next().unwrap_or_default();
    let value = match name {
        "file_size_in_bytes" => Some(file.file_size_in_bytes.to_string()),
        "record_count" => Some(file.record_count.to_string()),
        "column_sizes" if id.is_none() => file.column_sizes.as_ref().map(|sizes| format!("{} columns", sizes.len())),
        "column_sizes" => number(&file.column_sizes),
        "value_counts" => number(&file.value_counts),
        "null_value_counts" => number(&file.null_value_counts),
        "nan_value_counts" => number(&file.nan_value_counts),
        "lower_bounds" => bound(&file.lower_bounds),
        "upper_bounds" => bound(&file.upper_bounds),
        "split_offsets" => file.split_offsets.as_ref().map(|offsets| format!("{offsets:?}")),
        "content_offset" => file.content_offset.map(|offset| offset.to_string()),
        "referenced_data_file" => file.referenced_data_file.clone(),
        "partition" => Some("other bounds of the source column".to_owned()),
        _ => None,
    };
    value.unwrap_or_else(|| why::LEFT_OUT.to_owned())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Whether any entry of a manifest has a finding, by the checks of `check`.
pub(super) fn check_all(check: &Check<'_>, manifest: &Listed, entry: &ManifestEntry) {
    entries::check(check, manifest, entry);
    if entry.status != Status::Deleted {
        files::check(check, manifest, entry);
    }
}
