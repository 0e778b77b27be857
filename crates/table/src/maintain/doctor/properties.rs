//! Table properties that cannot be read, or that work against each other or against the table.

use std::sync::Arc;

use icefield_format::metadata::properties::{
    AllowedValues, COMMIT_MAX_RETRY_WAIT_MS, COMMIT_MIN_RETRY_WAIT_MS, DELETE_MODE, Flaw, GC_ENABLED,
    MANIFEST_MERGE_ENABLED, MAX_SNAPSHOT_AGE_MS, MERGE_MODE, METRICS_MODE_COLUMN_CONF_PREFIX, MIN_SNAPSHOTS_TO_KEEP,
    MetricsMode, PARQUET_BLOOM_FILTER_COLUMN_ENABLED_PREFIX, PARQUET_PAGE_SIZE_BYTES, PARQUET_ROW_GROUP_SIZE_BYTES,
    UPDATE_MODE, WRITE_TARGET_FILE_SIZE_BYTES, flaw,
};
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata};

use super::advice::{Advice, quoted};
use crate::commit::Committed;
use crate::error::Result;

/// Snapshots above which keeping all of them makes metadata large.
const MANY_SNAPSHOTS: i64 = 1000;

/// Finds values that their properties do not allow, and names that were probably meant to be others. What other tools
/// have set is not checked before it is used.
pub(super) fn flaws(metadata: &TableMetadata) -> Vec<Advice> {
    let found = metadata.properties().iter().filter_map(|(name, value)| Some((name, value, flaw(name, value)?)));
    let advice = found.map(|(name, value, flaw)| {
        let (message, repair) = match flaw {
            Flaw::Value(allowed) => (format!("expected {allowed}, got {}", quoted(value)), repair(name, allowed)),
            Flaw::Name(meant) => {
                let is_set = metadata.properties().contains_key(meant);
                // The name of a column follows.
                let repair = (!is_set && !meant.ends_with('.')).then(|| {
                    let (old, new) = (quoted(name), quoted(meant));
                    format!("table.update_properties({{{new}: {}}}, removals={old})", quoted(value))
                });
                (format!("there is no property of this name: did you mean {meant}?"), repair.unwrap_or_default())
            }
        };
        Advice { name: "properties", subject: String::from(name), message, repair, ..Advice::default() }
    });
    advice.collect()
}

/// The call that gives a property the value that it is read as.
fn repair(name: &str, allowed: AllowedValues) -> String {
    match allowed {
        // Without its key a table would be plain.
        _ if name.starts_with("encryption.") => String::new(),
        // Every other text than true is false.
        AllowedValues::Flag => format!("table.update_properties({{{}: \"false\"}})", quoted(name)),
        _ => format!("table.update_properties(removals={})", quoted(name)),
    }
}

/// The table without properties that cannot be read.
pub(super) fn readable(table: &Committed) -> Committed {
    let is_unreadable = |name: &str, value: &str| match flaw(name, value) {
        Some(Flaw::Value(allowed)) => allowed != AllowedValues::Flag,
        _ => false,
    };
    let properties = table.metadata.properties().iter();
    let removals: Vec<String> =
        properties.filter(|(name, value)| is_unreadable(name, value)).map(|(name, _)| name.clone()).collect();
    let builder = MetadataBuilder::from_base(&table.metadata, table.metadata.last_updated_ms());
    let changed = builder.apply(MetadataUpdate::RemoveProperties { removals }).and_then(MetadataBuilder::build);
    // Damaged metadata stays as it is, and is a finding of its own.
    let metadata = changed.map_or_else(|_| table.metadata.clone(), Arc::new);
    Committed { location: table.location.clone(), metadata }
}

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
