//! Compares all manifest lists and manifests of the golden tables with the tables `all_manifests` and `all_entries` of
//! the reference.

use std::collections::{BTreeMap, BTreeSet};

use icefield_format::Limits;
use icefield_format::manifest::{self, DataFile, FieldSummary, ManifestEntry, ManifestFile, Metrics, ReadOptions};
use icefield_format::metadata::SnapshotManifests;
use icefield_format::types::value_json;
use icefield_format::types::{PrimitiveType, StructType};
use icefield_format::value::Value;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::Golden;
use crate::tables::{self, Table};

/// Two trials per table.
pub fn trials(golden: &Golden) -> Vec<Trial> {
    let mut trials = Vec::new();
    for name in tables::names(golden) {
        let load = {
            let (golden, name) = (golden.clone(), name.clone());
            move || Table::load(&golden, &name)
        };
        let again = load.clone();
        let left_out = !tables::is_there(golden, &name);
        let all = [
            Trial::test(format!("tables::{name}::all_manifests"), move || all_manifests(&load())),
            Trial::test(format!("tables::{name}::all_entries"), move || all_entries(&again())),
        ];
        trials.extend(all.map(|trial| trial.with_ignored_flag(left_out)));
    }
    trials
}

/// The manifests of all snapshots whose manifest list exists: snapshot, manifest.
pub fn manifests(table: &Table) -> Vec<(i64, ManifestFile)> {
    let mut manifests = Vec::new();
    for snapshot in table.metadata.snapshots() {
        let SnapshotManifests::List(location) = &snapshot.manifests else { continue };
        let bytes = table.file(location).unwrap_or_else(|| panic!("{location} is not there"));
        let list = manifest::list::read(bytes, &Limits::default()).unwrap();
        manifests.extend(list.manifests.into_iter().map(|manifest| (snapshot.snapshot_id, manifest)));
    }
    manifests
}

fn all_manifests(table: &Table) -> Result<(), Failed> {
    let expected: BTreeSet<String> = table.rows("all_manifests").map(expected_manifest).collect();
    if expected.is_empty() {
        return Ok(());
    }
    let found = manifests(table).iter().map(|(snapshot, manifest)| manifest_row(*snapshot, manifest)).collect();
    same(&found, &expected)
}

/// The fields of a manifest that both sides have. The reference shows bounds as text for people; `oracle.rs` compares
/// them.
fn manifest_row(snapshot: i64, manifest: &ManifestFile) -> String {
    let deletes = manifest.content == manifest::ManifestContent::Deletes;
    let counts = [manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count];
    let of = |wanted: bool| counts.map(|count| if wanted == deletes { count.unwrap_or(0) } else { 0 });
    let summary = |summary: &FieldSummary| json!([summary.contains_null, summary.contains_nan]);
    let summaries: Option<Vec<_>> = manifest.partitions.as_ref().map(|all| all.iter().map(summary).collect());
    json!([
        snapshot,
        manifest.content.id(),
        manifest.manifest_path,
        manifest.manifest_length,
        manifest.partition_spec_id,
        manifest.added_snapshot_id,
        of(false),
        of(true),
        summaries.unwrap_or_default(),
    ])
    .to_string()
}

fn expected_manifest(row: &Json) -> String {
    let counts =
        |kind: &str| ["added", "existing", "deleted"].map(|what| row[format!("{what}_{kind}_files_count")].clone());
    let summary = |summary: &Json| json!([summary["contains_null"], summary["contains_nan"]]);
    let summaries: Vec<_> = row["partition_summaries"].as_array().into_iter().flatten().map(summary).collect();
    json!([
        row["reference_snapshot_id"],
        row["content"],
        row["path"],
        row["length"],
        row["partition_spec_id"],
        row["added_snapshot_id"],
        counts("data"),
        counts("delete"),
        summaries,
    ])
    .to_string()
}

fn all_entries(table: &Table) -> Result<(), Failed> {
    let expected: BTreeSet<String> = table.rows("all_entries").map(expected_entry).collect();
    if expected.is_empty() {
        return Ok(());
    }
    let mut manifests: BTreeMap<_, _> = BTreeMap::new();
    for (_, manifest) in self::manifests(table) {
        // A manifest from before an upgrade gets row ids in later lists; the reference uses the first list.
        manifests.entry(manifest.manifest_path.clone()).or_insert(manifest);
    }
    let mut found = BTreeSet::new();
    for manifest in manifests.values() {
        let spec = table.metadata.partition_spec(manifest.partition_spec_id).unwrap();
        let ty = spec.partition_type(table.metadata.current_schema());
        for partition_type in [Some(&ty), None] {
            let options = ReadOptions {
                partition_type,
                metrics: Metrics::all(),
                inherit: Some(manifest),
                ..ReadOptions::default()
            };
            let bytes = table.file(&manifest.manifest_path).unwrap();
            let entries =
                manifest::entries::read(bytes, &options, &Limits::default()).map_err(|error| error.to_string())?;
            for row in 0..entries.len() {
                let entry = entries.entry(row, manifest.partition_spec_id).unwrap();
                if partition_type.is_some() {
                    found.insert(entry_row(&entry, &entries.partition_type).to_string());
                }
            }
        }
    }
    same(&found, &expected)
}

fn entry_row(entry: &ManifestEntry, partition: &StructType) -> Json {
    let DataFile { file_path, record_count, file_size_in_bytes, .. } = &entry.file;
    let file = &entry.file;
    // Maps have no order; those of the reference are sorted.
    let counts = |map: &Option<Vec<(i32, i64)>>| {
        json!(map.as_ref().map(|map| map.iter().copied().collect::<BTreeMap<_, _>>().into_iter().collect::<Vec<_>>()))
    };
    let bounds = |map: &Option<Vec<(i32, Vec<u8>)>>| {
        json!(map.as_ref().map(|map| {
            map.iter().map(|(id, bytes)| (id, hex(bytes))).collect::<BTreeMap<_, _>>().into_iter().collect::<Vec<_>>()
        }))
    };
    let tuple: BTreeMap<&str, Json> = partition
        .fields
        .iter()
        .zip(&file.partition)
        .filter_map(|(field, value)| Some((field.name.as_str(), encoded(value.as_ref()?, field.ty.as_primitive()?))))
        .collect();
    json!([
        entry.status.id(),
        entry.snapshot_id,
        entry.sequence_number,
        entry.file_sequence_number,
        file.content.id(),
        file_path,
        file.file_format.to_uppercase(),
        file.partition_spec_id,
        tuple,
        record_count,
        file_size_in_bytes,
        counts(&file.column_sizes),
        counts(&file.value_counts),
        counts(&file.null_value_counts),
        counts(&file.nan_value_counts),
        bounds(&file.lower_bounds),
        bounds(&file.upper_bounds),
        file.key_metadata.as_deref().map(hex),
        file.split_offsets,
        file.equality_ids,
        file.sort_order_id,
        file.first_row_id,
        file.referenced_data_file,
        file.content_offset,
        file.content_size_in_bytes,
    ])
}

fn expected_entry(row: &Json) -> String {
    let file = &row["data_file"];
    let tuple = file["partition"].as_object().cloned().unwrap_or_default();
    let tuple: BTreeMap<_, _> = tuple.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let of = |names: &[&str]| names.iter().map(|name| file[*name].clone()).collect::<Vec<_>>();
    let mut whole = vec![
        row["status"].clone(),
        row["snapshot_id"].clone(),
        row["sequence_number"].clone(),
        row["file_sequence_number"].clone(),
    ];
    whole.extend(of(&["content", "file_path", "file_format", "spec_id"]));
    whole.push(json!(tuple));
    whole.extend(of(&["record_count", "file_size_in_bytes"]));
    let maps =
        ["column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"];
    whole.extend(of(&maps));
    whole.extend(of(&[
        "key_metadata",
        "split_offsets",
        "equality_ids",
        "sort_order_id",
        "first_row_id",
        "referenced_data_file",
        "content_offset",
        "content_size_in_bytes",
    ]));
    Json::Array(whole).to_string()
}

/// A value in the encoding of the golden rows.
fn encoded(value: &Value, ty: &PrimitiveType) -> Json {
    match value {
        Value::Int(days) => json!(days),
        Value::Long(moment) => json!(moment),
        Value::Float(number) => float(f64::from(*number), json!(number)),
        Value::Double(number) => float(*number, json!(number)),
        Value::Binary(bytes) => json!(hex(bytes)),
        value => value_json::to_json(value, &ty.clone().into()).unwrap(),
    }
}

fn float(number: f64, plain: Json) -> Json {
    match number {
        _ if number.is_nan() => json!("NaN"),
        f64::INFINITY => json!("Infinity"),
        f64::NEG_INFINITY => json!("-Infinity"),
        _ if number == 0.0 && number.is_sign_negative() => json!("-0.0"),
        _ => plain,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn same(found: &BTreeSet<String>, expected: &BTreeSet<String>) -> Result<(), Failed> {
    let only =
        |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).take(3).cloned().collect::<Vec<_>>().join("\n");
    if found == expected {
        return Ok(());
    }
    Err(format!("only here:\n{}\nonly in the reference:\n{}", only(found, expected), only(expected, found)).into())
}
