//! Checks files against the manifests that list them: existence, sizes, footers.

use std::collections::BTreeMap;

use arrow_schema::Fields;
use icefield_format::manifest::{DataFile, FileContent, FileFormat, ManifestEntry};
use icefield_format::metadata::StatisticsFile;
use icefield_format::puffin::{self, BlobMetadata, DeletionVector, Footer};
use icefield_format::types::arrow::{has_ids, with_mapped_ids};
use icefield_format::types::{NAME_MAPPING_PROPERTY, NameMapping, PrimitiveType};
use icefield_format::value::binary;

use super::context::{At, Check, Level, Puffin};
use super::listed::Listed;
use super::metrics::{is_truncated, order, primitive, shown};
use super::rows;
use crate::error::{Error, Result};
use crate::file::{self, DataFileReader, metrics::FileMetrics, modes::Modes};
use crate::snapshot::parallel::side_by_side;
use crate::snapshot::reachable;
use crate::storage::{FileRef, Storage};

/// Properties of the blob of a deletion vector.
pub(super) const REFERENCED: &str = "referenced-data-file";
const CARDINALITY: &str = "cardinality";

/// Checks the file of an entry.
pub(super) fn check(check: &Check<'_>, manifest: &Listed, entry: &ManifestEntry) {
    let file = &entry.file;
    let at = check.at(&file.file_path, &manifest.file.manifest_path);
    // A Puffin file has vectors of several entries; another file may be listed by several manifests.
    let is_vector = file.format() == Some(FileFormat::Puffin);
    let key = match file.content_offset.filter(|_| is_vector) {
        Some(offset) => format!("{}#{offset}", file.file_path),
        None => file.file_path.clone(),
    };
    // Manifests of other snapshots may describe the same file differently.
    let described = (
        (&key, file.file_size_in_bytes, file.record_count),
        (&file.value_counts, &file.null_value_counts, &file.nan_value_counts),
        (&file.lower_bounds, &file.upper_bounds),
        format!("{:?}", file.partition),
    );
    if !check.is_new(described) {
        return;
    }
    if check.is_new(key) {
        check.count(|report| report.files += 1);
    }
    // A Puffin file may have thousands of vectors: it is asked for once, and not for each.
    let puffin = is_vector.then(|| check.puffin(&file.file_path));
    let ask = || check.storage.size(&file.file_path);
    let size = match &puffin {
        Some(puffin) => puffin.size(ask),
        None => ask(),
    };
    let size = match size {
        Ok(size) => size,
        Err(error) => return check.unread(at, "file-missing", "file-unreadable", error),
    };
    if i64::try_from(size) != Ok(file.file_size_in_bytes) {
        return at.error("file-size", "file_size_in_bytes", size, file.file_size_in_bytes);
    }
    if check.options.level < Level::Footers {
        return;
    }
    let result = match &puffin {
        Some(puffin) => check_vector(check, at, file, puffin, size),
        None => check_footer(check, at, file, size),
    };
    if let Err(error) = result {
        return check.unread(at, "file-missing", "file-unreadable", error);
    }
    if check.options.level >= Level::Rows
        && !is_vector
        && let Err(error) = rows::check(check, at, entry)
    {
        check.unread(at, "file-missing", "file-unreadable", error);
    }
}

/// Opens a file, and finds its columns by the ids of the current schema.
pub(super) fn opened(check: &Check<'_>, file: &DataFile, size: u64) -> Result<Box<dyn DataFileReader>> {
    let schema = check.metadata.current_schema();
    let file_ref = FileRef { size, ..FileRef::of_file(file) };
    let mut reader = file::open(check.storage, &file_ref, &file.file_format, file.content)?;
    if file.format() == Some(FileFormat::Avro) || file.content != FileContent::Data {
        return Ok(reader);
    }
    let mapping = match check.metadata.property(NAME_MAPPING_PROPERTY) {
        Some(text) => NameMapping::parse(text).ok(),
        None => NameMapping::of_schema(schema).ok(),
    };
    let with_ids = |fields: &Fields| match &mapping {
        Some(mapping) if !has_ids(fields) => with_mapped_ids(fields, mapping),
        _ => fields.clone(),
    };
    reader.bind(&with_ids, schema);
    Ok(reader)
}

fn check_footer(check: &Check<'_>, at: At<'_>, file: &DataFile, size: u64) -> Result<()> {
    let reader = opened(check, file, size)?;
    if let Some(rows) = reader.rows()
        && file.record_count >= 0
        && i64::try_from(rows) != Ok(file.record_count)
    {
        at.error("file-record-count", "record_count", rows, file.record_count);
    }
    if file.format() == Some(FileFormat::Avro) || file.content != FileContent::Data {
        return Ok(());
    }
    let found = reader.metrics(&Modes::full())?;
    let counts = [
        ("file-value-count", "value_counts", &file.value_counts, &found.value_counts),
        ("file-null-count", "null_value_counts", &file.null_value_counts, &found.null_value_counts),
        ("file-nan-count", "nan_value_counts", &file.nan_value_counts, &found.nan_value_counts),
    ];
    for (name, field, listed, found) in counts {
        for (id, count) in listed.iter().flatten() {
            if let Some(expected) = found.get(id).filter(|expected| *expected != count) {
                at.error(name, &shown(check, field, *id), expected, count);
            }
        }
    }
    for (id, size) in file.column_sizes.iter().flatten() {
        if let Some(expected) = found.column_sizes.get(id).filter(|expected| *expected != size) {
            at.warning("file-column-size", &shown(check, "column_sizes", *id), expected, size);
        }
    }
    let offsets = file.split_offsets.iter().flatten();
    if let Some(offset) = offsets.into_iter().find(|offset| !found.split_offsets.contains(offset)) {
        let expected = format!("offsets of row groups or stripes, {:?}", found.split_offsets);
        at.error("file-split-offsets", "split_offsets", expected, offset);
    }
    check_bounds(check, at, file, &found);
    Ok(())
}

/// The bounds of a manifest must include those of the footer.
fn check_bounds(check: &Check<'_>, at: At<'_>, file: &DataFile, found: &FileMetrics) {
    let sides = [
        ("file-lower-bound", "lower_bounds", &file.lower_bounds, &found.lower_bounds, true),
        ("file-upper-bound", "upper_bounds", &file.upper_bounds, &found.upper_bounds, false),
    ];
    for (name, field, listed, found, is_lower) in sides {
        for (id, bytes) in listed.iter().flatten() {
            let (Some(own), Some(ty)) = (found.get(id), primitive(check, *id)) else { continue };
            // Writers order them as signed or as unsigned, and the bounds of the footer are widened to both.
            if *ty == PrimitiveType::Uuid {
                continue;
            }
            // Footers truncate long values, too.
            if is_truncated(ty) && (own.len() < bytes.len() || !is_lower) && bytes.starts_with(own) {
                continue;
            }
            let (Ok(listed), Ok(own)) = (binary::from_bytes(bytes, ty), binary::from_bytes(own, ty)) else { continue };
            let order = order(ty, &own, &listed);
            if (is_lower && order.is_lt()) || (!is_lower && order.is_gt()) {
                let expected = format!("{} {own:?}", if is_lower { "at most" } else { "at least" });
                at.error(name, &shown(check, field, *id), expected, format!("{listed:?}"));
            }
        }
    }
}

/// The footer of a Puffin file, and its length.
pub(super) fn footer_of(check: &Check<'_>, storage: &Storage, path: &str, size: u64) -> Result<(Footer, u64)> {
    let corrupt = |error: icefield_format::Error| Error::from(error.in_file(path));
    let tail = storage.range(path, size.saturating_sub(puffin::TAIL_BYTES as u64)..size)?;
    let length = Footer::length(&tail, size).map_err(corrupt)?;
    let end = storage.range(path, size.saturating_sub(length)..size)?;
    Ok((Footer::from_end(&end, size, check.limits).map_err(corrupt)?, length))
}

fn check_vector(check: &Check<'_>, at: At<'_>, file: &DataFile, puffin: &Puffin, size: u64) -> Result<()> {
    let (storage, size) = &check.storage.decrypting(&FileRef { size, ..FileRef::of_file(file) })?;
    let known = puffin.footer(|| Ok(footer_of(check, storage, &file.file_path, *size)?.0))?;
    let footer = &known.footer;
    let (Some(offset), Some(length)) = (file.content_offset, file.content_size_in_bytes) else { return Ok(()) };
    let (Ok(offset), Ok(length)) = (u64::try_from(offset), u64::try_from(length)) else { return Ok(()) };
    let blob = known.blobs.get(&(offset, length)).and_then(|at| footer.blobs.get(*at));
    match blob.filter(|blob| blob.ty == puffin::DELETION_VECTOR) {
        None => {
            let blobs: Vec<(u64, u64)> = footer.blobs.iter().map(|blob| (blob.offset, blob.length)).collect();
            let expected = format!("offset and size of a deletion vector, {blobs:?}");
            at.error("vector-blob", "content_offset", expected, format!("({offset}, {length})"));
        }
        Some(blob) => check_blob(at, file, blob),
    }
    if check.options.level >= Level::Rows && offset.saturating_add(length) <= *size {
        let bytes = storage.range(&file.file_path, offset..offset.saturating_add(length))?;
        match DeletionVector::from_bytes(&bytes, check.limits) {
            Ok(vector) if i64::try_from(vector.cardinality()) != Ok(file.record_count) => {
                at.error("vector-cardinality", "record_count", vector.cardinality(), file.record_count);
            }
            Ok(_) => {}
            Err(error) => at.error("vector-unreadable", "", "", error),
        }
    }
    Ok(())
}

fn check_blob(at: At<'_>, file: &DataFile, blob: &BlobMetadata) {
    if let (Some(own), Some(listed)) = (blob.property(REFERENCED), &file.referenced_data_file) {
        at.same("vector-data-file", "referenced_data_file", own, listed);
    }
    if let Some(own) = blob.property(CARDINALITY) {
        at.same("vector-cardinality", "record_count", own, &file.record_count.to_string());
    }
}

/// Checks the files that the metadata itself names.
pub(super) fn check_of_table(check: &Check<'_>) {
    let sized = |path: &str, expected: i64, missing: &'static str, wrong: &'static str, field: &str| -> Option<u64> {
        let at = check.at(path, check.location);
        match check.storage.size(path) {
            Ok(size) if i64::try_from(size) == Ok(expected) => return Some(size),
            Ok(size) => at.warning(wrong, field, size, expected),
            Err(error) => match check.in_its_place(path, &error) {
                Some(found) => at.warning(missing, "", "a file", found),
                None => check.unread(at, missing, missing, error),
            },
        }
        None
    };
    for file in check.metadata.statistics() {
        let size = sized(
            &file.statistics_path,
            file.file_size_in_bytes,
            "statistics-missing",
            "statistics-size",
            "statistics.file-size-in-bytes",
        );
        if let Some(size) = size.filter(|_| check.options.level >= Level::Footers) {
            let at = check.at(&file.statistics_path, check.location);
            let footer = decrypted(check, file, size)
                .and_then(|(storage, size)| footer_of(check, &storage, &file.statistics_path, size));
            match footer {
                Ok((footer, length)) => check_statistics(at, file, &footer, length),
                Err(error) => at.warning("statistics-unreadable", "", "", error),
            }
        }
    }
    for file in check.metadata.partition_statistics() {
        sized(
            &file.statistics_path,
            file.file_size_in_bytes,
            "statistics-missing",
            "statistics-size",
            "partition-statistics.file-size-in-bytes",
        );
    }
    let log: Vec<&str> = reachable::metadata_log(check.metadata).collect();
    side_by_side(check.storage, check.metadata.location(), &log, |path| {
        if let Err(error) = check.storage.size(path)
            && let Some(found) = check.in_its_place(path, &error)
        {
            check.at(path, check.location).warning("metadata-log-missing", "metadata-log", "a file", found);
        }
    });
}

/// A storage that decrypts a statistics file if it is encrypted, and the length of the decrypted file.
fn decrypted(check: &Check<'_>, file: &StatisticsFile, size: u64) -> Result<(Storage, u64)> {
    let keys = check.metadata.encryption_keys();
    let path = &file.statistics_path;
    let Some(key_id) = file.key_id(keys)? else { return Ok((check.storage.clone(), size)) };
    let Some(keyring) = check.storage.keyring() else {
        return Err(Error::unsupported(format!("{path}: it is encrypted, and there is no client of its key")));
    };
    let key = keyring.of_snapshot(keys, key_id)?.to_bytes();
    check.storage.decrypting(&FileRef { path, size, key: Some(&key) })
}

fn check_statistics(at: At<'_>, file: &StatisticsFile, footer: &Footer, length: u64) {
    if i64::try_from(length) != Ok(file.file_footer_size_in_bytes) {
        at.warning("statistics-footer", "file-footer-size-in-bytes", length, file.file_footer_size_in_bytes);
    }
    let own = footer.blobs.iter().map(|blob| {
        let properties: BTreeMap<&str, &str> =
            blob.properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        (blob.ty.as_str(), blob.fields.as_slice(), properties)
    });
    let listed = file.blob_metadata.iter().map(|blob| {
        let properties: BTreeMap<&str, &str> =
            blob.properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        (blob.blob_type.as_str(), blob.fields.as_slice(), properties)
    });
    let (own, listed): (Vec<_>, Vec<_>) = (own.collect(), listed.collect());
    if own != listed {
        at.warning("statistics-blobs", "blob-metadata", format!("{own:?}"), format!("{listed:?}"));
    }
}
