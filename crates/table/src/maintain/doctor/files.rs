//! Findings about files, partitions, manifests and metadata files.

use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::{
    MANIFEST_MIN_MERGE_COUNT, MANIFEST_TARGET_SIZE_BYTES, METADATA_DELETE_AFTER_COMMIT_ENABLED,
    METADATA_PREVIOUS_VERSIONS_MAX,
};

use super::advice::{Advice, quoted};
use super::survey::{OfPartition, Survey};
use crate::commit::Committed;
use crate::error::Result;
use crate::storage::Storage;
use crate::write::deletes::Granularity;

/// Files that a partition needs to be worth a compaction, as in Java (`min-input-files`).
const MIN_INPUT_FILES: u64 = 5;
/// A partition is skewed if it has this many times the bytes of the median one.
const SKEW: u64 = 10;
/// Partitions that a table needs for skew and smallness to matter.
const PARTITIONS: usize = 4;
const MANY_PARTITIONS: usize = 100;
/// Files that are not sorted matter from this part of all bytes on: one in as many.
const UNSORTED: u64 = 10;
/// Metadata files larger than this make each commit slow.
const LARGE_METADATA: u64 = 8 << 20;

/// Findings about data and delete files.
pub(super) fn of_files(metadata: &TableMetadata, survey: &Survey) -> Result<Vec<Advice>> {
    let mut found = Vec::new();
    found.extend(small_files(survey));
    found.extend(deletes(metadata, survey)?);
    found.extend(partitions(survey));
    let ((files, bytes), all) = (survey.unsorted, survey.partitions.values().map(|partition| partition.bytes).sum());
    // The repair writes every file again, which single appends of other writers are not worth.
    if files > 0 && bytes.saturating_mul(UNSORTED) >= all {
        found.push(Advice {
            name: "unsorted-files",
            message: format!(
                "{files} data files are not sorted as the table's sort order says; the repair writes {all} bytes"
            ),
            bytes,
            repair: "table.maintenance.compact(strategy=\"sort\", options={\"rewrite-all\": \"true\"})".to_owned(),
            ..Advice::default()
        });
    }
    for (id, unbounded) in survey.unbounded.iter().filter(|(_, unbounded)| unbounded.files > 0) {
        let column = metadata.current_schema().column_name(*id).unwrap_or_default().to_owned();
        found.push(Advice {
            name: "missing-bounds",
            message: format!("{} data files have no bounds of {column}, so filters on it read them", unbounded.files),
            bytes: unbounded.bytes,
            requests: unbounded.files,
            repair: format!(
                "table.update_properties({{{}: \"truncate(16)\"}}); \
                 table.maintenance.compact(options={{\"rewrite-all\": \"true\"}})",
                quoted(&format!("write.metadata.metrics.column.{column}"))
            ),
            subject: column,
        });
    }
    Ok(found)
}

fn small_files(survey: &Survey) -> Option<Advice> {
    let mut many = survey.partitions.values().filter(|partition| partition.small >= MIN_INPUT_FILES).peekable();
    many.peek()?;
    let (mut partitions, mut files, mut bytes, mut spared) = (0u64, 0, 0, 0);
    for partition in many {
        partitions += 1;
        files += partition.small;
        bytes += partition.small_bytes;
        spared += partition.small - partition.small_bytes.div_ceil(survey.target.max(1)).clamp(1, partition.small);
    }
    (spared > 0).then(|| Advice {
        name: "small-files",
        message: format!(
            "{files} data files in {partitions} {} are smaller than 3/4 of {} bytes",
            if partitions == 1 { "partition" } else { "partitions" },
            survey.target
        ),
        bytes,
        requests: spared,
        repair: "table.maintenance.compact()".to_owned(),
        ..Advice::default()
    })
}

fn deletes(metadata: &TableMetadata, survey: &Survey) -> Result<Vec<Advice>> {
    let mut found = Vec::new();
    let sum = |of: fn(&OfPartition) -> u64| survey.partitions.values().map(of).fold(0, u64::saturating_add);
    let (equality, bytes) = (sum(|partition| partition.equality_files), sum(|partition| partition.delete_bytes));
    if equality > 0 {
        found.push(Advice {
            name: "equality-deletes",
            message: format!("{equality} equality delete files are compared with every row of older files"),
            bytes,
            requests: equality,
            repair: "table.maintenance.convert_equality_deletes()".to_owned(),
            ..Advice::default()
        });
    }
    let (files, of_rows) = survey.mostly_deleted;
    if files > 0 {
        found.push(Advice {
            name: "delete-debt",
            message: format!("{files} data files have lost at least 3 of 10 rows, which scans still read"),
            bytes: of_rows,
            requests: files,
            repair: "table.maintenance.compact()".to_owned(),
            ..Advice::default()
        });
    }
    // How many files a rewrite spares: by default it writes one for each data file.
    let of_partitions = Granularity::of(metadata.properties())? == Granularity::Partition;
    let spared = |partition: &OfPartition| match of_partitions {
        true => partition.position_files.saturating_sub(1),
        // How many data files the others are about is not in manifests.
        false if partition.unscoped_files > 0 => 0,
        false => partition.position_files.saturating_sub(partition.position_targets),
    };
    let is_crowded = |partition: &&OfPartition| partition.position_files >= MIN_INPUT_FILES && spared(partition) > 0;
    let crowded: Vec<&OfPartition> = survey.partitions.values().filter(is_crowded).collect();
    if !crowded.is_empty() && metadata.format_version().number() < 3 {
        let position: u64 = crowded.iter().map(|partition| partition.position_files).sum();
        let fewer: u64 = crowded.iter().map(|partition| spared(partition)).sum();
        found.push(Advice {
            name: "position-delete-files",
            message: format!("{position} position delete files, where {} do", position - fewer),
            bytes: crowded.iter().map(|partition| partition.delete_bytes).sum(),
            requests: fewer,
            repair: "table.maintenance.rewrite_position_deletes()".to_owned(),
            ..Advice::default()
        });
    }
    Ok(found)
}

fn partitions(survey: &Survey) -> Option<Advice> {
    let mut sizes: Vec<(u64, u64, &str)> = Vec::new();
    for ((_, name), partition) in survey.partitions.iter().filter(|(_, partition)| partition.files > 0) {
        sizes.push((partition.bytes, partition.files, name));
    }
    sizes.sort_unstable();
    if sizes.len() < PARTITIONS {
        return None;
    }
    let (median, _, _) = *sizes.get(sizes.len() / 2)?;
    let (largest, files, name) = *sizes.last()?;
    if largest > survey.target && largest > median.saturating_mul(SKEW) {
        return Some(Advice {
            name: "skewed-partitions",
            subject: name.to_owned(),
            message: format!(
                "a partition has {largest} bytes, the median one {median}; a further partition field, such as a bucket of \
                 a key, divides it (table.update_spec(), then a compaction with rewrite-all)"
            ),
            bytes: largest - median,
            requests: files,
            ..Advice::default()
        });
    }
    let files = sizes.iter().map(|(_, files, _)| files).sum::<u64>();
    let bytes: u64 = sizes.iter().map(|(bytes, _, _)| bytes).sum();
    let needed = bytes.div_ceil(survey.target.max(1)).max(1);
    let is_small = median.saturating_mul(64) < survey.target;
    (sizes.len() >= MANY_PARTITIONS && is_small).then(|| Advice {
        name: "small-partitions",
        message: format!(
            "half of the {} partitions have at most {median} bytes; a coarser transform, such as month instead of day, makes \
             fewer (table.update_spec(), then a compaction with rewrite-all)",
            sizes.len()
        ),
        bytes,
        requests: files.saturating_sub(needed),
        ..Advice::default()
    })
}

/// Findings about manifests and metadata files.
pub(super) fn of_metadata(storage: &Storage, table: &Committed, survey: &Survey) -> Result<Vec<Advice>> {
    let properties = table.metadata.properties();
    let mut found = Vec::new();
    let target = MANIFEST_TARGET_SIZE_BYTES.read(properties)?.max(1).unsigned_abs();
    let most = MANIFEST_MIN_MERGE_COUNT.read(properties)?.max(2).unsigned_abs();
    let (mut requests, mut bytes, mut count) = (0, 0, 0);
    for (manifests, size) in survey.manifests.values().filter(|(manifests, _)| *manifests >= most) {
        let spared = manifests.saturating_sub(size.div_ceil(target).max(1));
        if spared.saturating_mul(2) >= *manifests {
            (requests, bytes, count) = (requests + spared, bytes + size, count + manifests);
        }
    }
    if requests > 0 {
        found.push(Advice {
            name: "many-manifests",
            message: format!("{count} manifests of data, most smaller than {target} bytes"),
            bytes,
            requests,
            repair: "table.rewrite_manifests().cluster_by().commit()".to_owned(),
            ..Advice::default()
        });
    }
    if table.location.is_empty() {
        return Ok(found);
    }
    let size = storage.size(&table.location)?;
    if size > LARGE_METADATA {
        found.push(Advice {
            name: "metadata-growth",
            message: format!("the metadata file has {size} bytes, {} snapshots", table.metadata.snapshots().len()),
            bytes: size,
            repair: "table.expire_snapshots(clean_expired_metadata=True)".to_owned(),
            ..Advice::default()
        });
    }
    let log = table.metadata.metadata_log().len() as u64;
    let kept = METADATA_PREVIOUS_VERSIONS_MAX.read(properties)?.max(1).unsigned_abs();
    if !METADATA_DELETE_AFTER_COMMIT_ENABLED.read(properties) && log >= kept {
        found.push(Advice {
            name: "metadata-files",
            subject: METADATA_DELETE_AFTER_COMMIT_ENABLED.name.to_owned(),
            message: format!("the log has {log} metadata files, and older ones stay for ever"),
            bytes: size.saturating_mul(log),
            repair: format!("table.update_properties({{\"{}\": \"true\"}})", METADATA_DELETE_AFTER_COMMIT_ENABLED.name),
            ..Advice::default()
        });
    }
    Ok(found)
}
