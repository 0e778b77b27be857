//! Table properties that work against each other, or against the table.

use icefield_format::metadata::TableMetadata;
use icefield_format::metadata::properties::{
    COMMIT_MAX_RETRY_WAIT_MS, COMMIT_MIN_RETRY_WAIT_MS, DELETE_MODE, GC_ENABLED, MANIFEST_MERGE_ENABLED,
    MAX_SNAPSHOT_AGE_MS, MERGE_MODE, METRICS_MODE_COLUMN_CONF_PREFIX, MIN_SNAPSHOTS_TO_KEEP, MetricsMode,
    PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX, PARQUET_PAGE_SIZE_BYTES, PARQUET_ROW_GROUP_SIZE_BYTES, UPDATE_MODE,
    WRITE_TARGET_FILE_SIZE_BYTES,
};

use super::advice::{Advice, quoted};
use crate::error::Result;

/// Snapshots above which keeping all of them makes metadata large.
const MANY_SNAPSHOTS: i64 = 1000;

/// Finds properties that contradict each other.
pub(super) fn contradictions(metadata: &TableMetadata) -> Result<Vec<Advice>> {
    let properties = metadata.properties();
    let schema = metadata.current_schema();
    let mut found = Vec::new();
    let mut add = |name: &str, value: Option<&str>, message: String| {
        let repair = match value {
            Some(value) => format!("table.update_properties({{{}: {}}})", quoted(name), quoted(value)),
            None => format!("table.update_properties(removals={})", quoted(name)),
        };
        found.push(Advice { name: "properties", subject: name.to_owned(), message, repair, ..Advice::default() });
    };
    if metadata.format_version().number() == 1 {
        for mode in [DELETE_MODE, UPDATE_MODE, MERGE_MODE] {
            if mode.read(properties) == "merge-on-read" {
                let message = format!("{}=merge-on-read needs format version 2; files are rewritten", mode.name);
                add(mode.name, Some("copy-on-write"), message);
            }
        }
    }
    let (target, group) =
        (WRITE_TARGET_FILE_SIZE_BYTES.read(properties)?, PARQUET_ROW_GROUP_SIZE_BYTES.read(properties)?);
    if properties.contains_key(PARQUET_ROW_GROUP_SIZE_BYTES.name) && group > target {
        let message = format!("row groups of {group} bytes are larger than files of {target}");
        add(PARQUET_ROW_GROUP_SIZE_BYTES.name, Some(&target.to_string()), message);
    }
    let page = PARQUET_PAGE_SIZE_BYTES.read(properties)?;
    if properties.contains_key(PARQUET_PAGE_SIZE_BYTES.name) && page > group {
        let message = format!("pages of {page} bytes are larger than row groups of {group}");
        add(PARQUET_PAGE_SIZE_BYTES.name, None, message);
    }
    let (least, most) = (COMMIT_MIN_RETRY_WAIT_MS.read(properties)?, COMMIT_MAX_RETRY_WAIT_MS.read(properties)?);
    if least > most {
        let message = format!("waits of at least {least} ms exceed the most, {most} ms");
        add(COMMIT_MIN_RETRY_WAIT_MS.name, Some(&most.to_string()), message);
    }
    let expires =
        properties.contains_key(MAX_SNAPSHOT_AGE_MS.name) || properties.contains_key(MIN_SNAPSHOTS_TO_KEEP.name);
    if !GC_ENABLED.read(properties) && expires {
        // Files of tables with gc.enabled=false may belong to others, so it stays as it is.
        for name in [MAX_SNAPSHOT_AGE_MS.name, MIN_SNAPSHOTS_TO_KEEP.name] {
            if properties.contains_key(name) {
                add(name, None, format!("gc.enabled=false stops the expiry that {name} describes"));
            }
        }
    }
    let keep = MIN_SNAPSHOTS_TO_KEEP.read(properties)?;
    if keep > MANY_SNAPSHOTS {
        let message = format!("at least {keep} snapshots are kept, whatever history.expire.max-snapshot-age-ms says");
        add(MIN_SNAPSHOTS_TO_KEEP.name, Some(&MANY_SNAPSHOTS.to_string()), message);
    }
    if properties.contains_key("commit.manifest.min-count-to-merge") && !MANIFEST_MERGE_ENABLED.read(properties) {
        let message = "commit.manifest-merge.enabled=false, so commit.manifest.min-count-to-merge has no effect";
        add(MANIFEST_MERGE_ENABLED.name, None, message.to_owned());
    }
    let known = |column: &str| schema.find_by_name(column, true).ok().flatten().map(|field| field.id);
    for (column, text) in METRICS_MODE_COLUMN_CONF_PREFIX.columns(properties) {
        let name = format!("{}{column}", METRICS_MODE_COLUMN_CONF_PREFIX.prefix);
        match known(column) {
            None => add(&name, None, format!("the table has no column {column}")),
            Some(id) if matches!(MetricsMode::parse(text), Some(MetricsMode::None | MetricsMode::Counts)) => {
                let sorted = metadata.default_sort_order().fields.iter().any(|field| field.source_ids.contains(&id));
                let is_key = schema.identifier_field_ids().contains(&id);
                let is_partition = metadata.default_spec().fields.iter().any(|field| field.source_id() == Some(id));
                if sorted || is_key || is_partition {
                    let what = if sorted {
                        "sorted"
                    } else if is_key {
                        "identified"
                    } else {
                        "partitioned"
                    };
                    add(&name, None, format!("the table is {what} by {column}, and keeps no bounds of it"));
                }
            }
            Some(_) => {}
        }
    }
    for (column, _) in PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX.flags(properties) {
        if known(column).is_none() {
            let name = format!("{}{column}", PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX.prefix);
            add(&name, None, format!("the table has no column {column}"));
        }
    }
    Ok(found)
}
