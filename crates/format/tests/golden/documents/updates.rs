//! Changes of metadata: updates, requirements, expiry, properties.

use icefield_format::metadata::retention::ExpireSnapshots;
use icefield_format::metadata::{
    MAIN_BRANCH, MetadataBuilder, MetadataUpdate, TableMetadata, UpdateRequirement, properties,
};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use super::metadata::NOW_MS;
use crate::documents::{self, changed, same};
use crate::{Golden, trials};

/// `updates.json`: `base`, `updates`, and the result.
pub fn updates(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    documents::trials_on(golden, "updates.json", cases, "base", |base, case| {
        let mut stage = "parse";
        let result = apply(base, case, &mut stage);
        if let Some(error) = case.get("error") {
            same_stage(stage, error, &["parse", "apply", "build"])?;
            return result.map_or(Ok(()), |_| Err("went through, but must fail".into()));
        }
        let (got, unchanged) = result?;
        if unchanged != case["unchanged"].as_bool().unwrap_or(false) {
            return Err(format!("unchanged: {unchanged}").into());
        }
        let mut expected = match base {
            Some(base) => changed(base, &case["out"]),
            None => case["out"].clone(),
        };
        expected["last-updated-ms"] = got["last-updated-ms"].clone();
        for log in ["snapshot-log", "metadata-log"] {
            for entry in expected[log].as_array_mut().unwrap() {
                if entry["timestamp-ms"] == "now" {
                    entry["timestamp-ms"] = NOW_MS.into();
                }
            }
        }
        // Row ids continue from the highest of any snapshot (docs/differences.md, "Last ids that are too low").
        same(&got, &documents::raised(&expected))
    })
}

/// Checks that an error occurs at the same stage as in the library, or earlier, when the text is parsed.
fn same_stage(ours: &str, error: &Json, stages: &[&str]) -> Result<(), Failed> {
    let Some(theirs) = error.get("stage").map(|stage| stage.as_str().unwrap_or_default()) else { return Ok(()) };
    match ours == theirs || ours == "parse" && stages.contains(&theirs) {
        true => Ok(()),
        false => Err(format!("stage: got {ours}, expected {theirs}").into()),
    }
}

/// The document after the updates of the case, and whether none of them changed anything; `stage` is the current stage.
fn apply(base: Option<&Json>, case: &Json, stage: &mut &str) -> Result<(Json, bool), Failed> {
    let mut builder = match base {
        Some(base) => MetadataBuilder::from_base(&documents::read(base)?, NOW_MS),
        None => MetadataBuilder::new_table(NOW_MS),
    };
    if let Some(location) = case["metadata_location"].as_str() {
        builder = builder.with_previous_file(location);
    }
    let updates = case["updates"].as_array().unwrap();
    let read = updates.iter().map(MetadataUpdate::from_json).collect::<Result<Vec<_>, _>>()?;
    *stage = "apply";
    for (number, (json, update)) in updates.iter().zip(read).enumerate() {
        let written = case.get("written").map_or(json, |written| &written[number]);
        // The library cannot write specs without field ids.
        if written.get("error").is_none() && update.to_json() != *written {
            return Err(format!("written: {}", update.to_json()).into());
        }
        builder = builder.apply(update)?;
    }
    let unchanged = builder.changes().is_empty();
    *stage = "build";
    Ok((builder.build()?.to_json_value(), unchanged))
}

/// `requirements.json`: `base`, `requirement`, `pass`.
pub fn requirements(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let mut trials = documents::trials_on(golden, "requirements.json", cases, "base", |base, case| {
        let base = base.map(documents::read).transpose()?;
        let requirement = UpdateRequirement::from_json(&case["requirement"]);
        if let Ok(requirement) = &requirement {
            let written = case.get("written").unwrap_or(&case["requirement"]);
            if requirement.to_json() != *written {
                return Err(format!("written: {}", requirement.to_json()).into());
            }
        }
        if let Some(error) = case.get("error") {
            let stage = if requirement.is_err() { "parse" } else { "validate" };
            same_stage(stage, error, &["parse", "validate"])?;
        }
        // For a table that does not exist, the library accepts any last assigned id (docs/differences.md, "Requirements
        // of commits").
        let of_last_id = matches!(
            requirement,
            Ok(UpdateRequirement::AssertLastAssignedFieldId { .. }
                | UpdateRequirement::AssertLastAssignedPartitionId { .. })
        );
        let passes = requirement.and_then(|requirement| requirement.check(base.as_ref()));
        if base.is_none() && of_last_id {
            return refused_as_missing(&passes);
        }
        match (&passes, case["pass"].as_bool().unwrap()) {
            (Ok(()), true) | (Err(_), false) => Ok(()),
            (result, pass) => Err(format!("{result:?}, but pass is {pass}").into()),
        }
    });
    trials.push(requirements_on_no_table());
    trials
}

fn refused_as_missing(result: &icefield_format::Result<()>) -> Result<(), Failed> {
    match result {
        Err(icefield_format::Error::RequirementFailed(why)) if why == "the table does not exist" => Ok(()),
        other => Err(format!("{other:?} on a table that does not exist").into()),
    }
}

/// The two requirements that the library considers met if the table does not exist; independent of the golden set.
fn requirements_on_no_table() -> Trial {
    Trial::test("requirements.json::of no table", || {
        for (kind, id) in [
            ("assert-last-assigned-field-id", "last-assigned-field-id"),
            ("assert-last-assigned-partition-id", "last-assigned-partition-id"),
        ] {
            let requirement = UpdateRequirement::from_json(&json!({"type": kind, id: 0}))?;
            refused_as_missing(&requirement.check(None))?;
        }
        Ok(())
    })
}

/// `expire.json`: a history, what to expire, and what remains.
pub fn expire(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("expire.json", cases, |case| {
        let metadata = documents::read(&history(case))?;
        let now_ms = case["now"].as_i64().unwrap();
        let options = &case["options"];
        let request = ExpireSnapshots {
            older_than_ms: options["older_than"].as_i64(),
            retain_last: options["retain_last"].as_i64().map(|count| i32::try_from(count).unwrap()),
            snapshot_ids: options["expire_ids"].as_array().into_iter().flatten().filter_map(Json::as_i64).collect(),
            clean_expired_metadata: options["clean_expired_metadata"].as_bool().unwrap_or(false),
        };
        let expiry = request.plan(&metadata, now_ms);
        if case.get("error").is_some() {
            return expiry.map_or(Ok(()), |_| Err("went through, but must fail".into()));
        }
        let expiry = expiry?;
        let left = MetadataBuilder::from_base(&metadata, now_ms).apply_all(expiry.updates())?.build()?;
        compare("kept", json!(expiry.kept_snapshots), case)?;
        compare("kept", left.snapshots().iter().map(|snapshot| snapshot.snapshot_id).collect(), case)?;
        compare("removed_refs", json!(expiry.removed_refs), case)?;
        compare("snapshot_log", left.snapshot_log().iter().map(|entry| entry.snapshot_id).collect(), case)?;
        compare("schema_ids", left.schemas().iter().map(|schema| schema.schema_id()).collect(), case)
    })
}

fn compare(what: &str, got: Json, case: &Json) -> Result<(), Failed> {
    match case.get(what) {
        Some(expected) if *expected != got => Err(format!("{what}: got {got}, expected {expected}").into()),
        _ => Ok(()),
    }
}

/// The table of the case: three schemas, one spec, a snapshot log of the ancestors of main.
fn history(case: &Json) -> Json {
    let snapshots: Vec<Json> = case["snapshots"].as_array().unwrap().iter().map(with_manifest_list).collect();
    let main = case["refs"][MAIN_BRANCH]["snapshot-id"].as_i64();
    let mut log = Vec::new();
    let mut next = main;
    // At most one step per snapshot, so that cycles of parents end too.
    for _ in &snapshots {
        let found = snapshots.iter().find(|snapshot| next.is_some() && snapshot["snapshot-id"].as_i64() == next);
        let Some(snapshot) = found else { break };
        log.insert(0, json!({"timestamp-ms": snapshot["timestamp-ms"], "snapshot-id": snapshot["snapshot-id"]}));
        next = snapshot["parent-snapshot-id"].as_i64();
    }
    let schema = |id: i32| {
        json!({"type": "struct", "schema-id": id, "fields": [
        {"id": 1, "name": format!("c{id}"), "required": false, "type": "int"}]})
    };
    json!({
        "format-version": 2, "table-uuid": "a", "location": "s3://b/t", "last-sequence-number": 0,
        "last-updated-ms": case["now"], "last-column-id": 1, "current-schema-id": 2,
        "schemas": [schema(0), schema(1), schema(2)], "default-spec-id": 0, "last-partition-id": 999,
        "partition-specs": [{"spec-id": 0, "fields": []}], "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}], "properties": case["properties"],
        "current-snapshot-id": main, "refs": case["refs"], "snapshots": snapshots, "snapshot-log": log,
    })
}

fn with_manifest_list(snapshot: &Json) -> Json {
    let mut snapshot = snapshot.clone();
    snapshot["manifest-list"] = "s3://b/t/metadata/snap.avro".into();
    snapshot
}

/// `properties.json`: properties have the same names and defaults as in the library.
pub fn property_names(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("properties.json", cases, |case| {
        let Some(name) = case["property"].as_str() else { return reserved(&case["defaults"]) };
        // Some constants are values, not names.
        let is_value = ["none", "hash", "range"].contains(&name);
        let listed = properties::RESERVED.contains(&name) || properties::KNOWN.iter().any(|known| known.name == name);
        if !is_value && !listed {
            return Err(format!("{name}: not in the list of known properties").into());
        }
        let ours = properties::defaults().into_iter().find(|(ours, _)| *ours == name);
        let since = case["defaults"].get("DEFAULT_SINCE_1_4_0").and_then(Json::as_str);
        let new_tables = properties::PARQUET_COMPRESSION_OF_NEW_TABLES;
        if name == properties::PARQUET_COMPRESSION.name && since.is_some_and(|since| since != new_tables) {
            return Err(format!("default of new tables: got {new_tables:?}, expected {since:?}").into());
        }
        match (ours, case["defaults"].get("DEFAULT")) {
            (Some((_, ours)), expected) if expected.and_then(Json::as_str) != Some(&ours) => {
                Err(format!("default: got {ours:?}, expected {expected:?}").into())
            }
            _ => Ok(()),
        }
    })
}

fn reserved(others: &Json) -> Result<(), Failed> {
    let ours = format!("[{}]", properties::RESERVED.join(", "));
    let names = [
        (properties::DELETE_DEFAULT_FILE_FORMAT.name, "DELETE_DEFAULT_FILE_FORMAT"),
        (properties::METRICS_MAX_INFERRED_COLUMN_DEFAULTS.name, "METRICS_MAX_INFERRED_COLUMN_DEFAULTS"),
        (
            &properties::METRICS_MAX_INFERRED_COLUMN_DEFAULTS.default.to_string(),
            "METRICS_MAX_INFERRED_COLUMN_DEFAULTS_DEFAULT",
        ),
        (&ours, "RESERVED_PROPERTIES"),
    ];
    names.iter().try_for_each(|(ours, constant)| match others.get(constant).and_then(Json::as_str) {
        Some(expected) if expected != *ours => Err(format!("{constant}: got {ours}, expected {expected}").into()),
        _ => Ok(()),
    })
}

/// Creates a table to change from a schema and a spec; other vector files use it too.
pub fn table(format_version: u8, schema: &Json, spec: &Json) -> Result<TableMetadata, Failed> {
    let last_id = spec["fields"].as_array().into_iter().flatten().filter_map(|field| field["field-id"].as_i64()).max();
    let mut document = json!({
        "format-version": format_version, "table-uuid": "a", "location": "s3://b/t", "last-sequence-number": 0,
        "last-updated-ms": 0, "last-column-id": 100, "current-schema-id": schema["schema-id"], "schemas": [schema],
        "default-spec-id": spec["spec-id"], "partition-specs": [spec], "last-partition-id": last_id.unwrap_or(999),
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
    });
    if format_version > 2 {
        document["next-row-id"] = 0.into();
    }
    Ok(documents::read(&document)?)
}
