//! Row ids that appends assign ("Row Lineage"): histories of commits from `row_lineage.json`, up to the first operation
//! that is not an append.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use icefield_format::Limits;
use icefield_format::manifest::entries::{self, ReadOptions};
use icefield_format::manifest::{DataFile, ManifestContent, ManifestFile, Status};
use icefield_format::metadata::{MetadataUpdate, TableDefinition, TableMetadata};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::commit::{Pointer, PointerCatalog, SnapshotOptions};
use icefield_table::operation::create::create;
use icefield_table::snapshot::manifests::of_snapshot;
use icefield_table::storage::Storage;
use icefield_table::{Error, Result, Table};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

struct Location(Mutex<String>);

impl Pointer for Location {
    fn load(&self) -> Result<String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        let mut location = self.0.lock().unwrap();
        if *location != base {
            return Err(Error::CommitFailed("the table has changed".into()));
        }
        *location = new.to_owned();
        Ok(())
    }
}

/// One trial per history.
pub fn trials(cases: Vec<Json>) -> Vec<Trial> {
    let numbered = cases.into_iter().enumerate().filter(|(_, case)| case["kind"] == "table");
    let trial = |(number, case): (usize, Json)| Trial::test(format!("row_lineage::{number}"), move || history(&case));
    numbered.map(trial).collect()
}

fn history(case: &Json) -> std::result::Result<(), Failed> {
    let storage = Storage::default();
    let mut properties = vec![("format-version".to_owned(), case["start_format"].to_string())];
    if case["merging"] == json!(true) {
        properties.push(("commit.manifest.min-count-to-merge".to_owned(), "2".to_owned()));
    }
    let definition = TableDefinition {
        schema: Schema::new(0, vec![Field::optional(1, "id", PrimitiveType::Long)])?,
        partition_spec: PartitionSpec::unpartitioned(),
        sort_order: SortOrder::default(),
        location: format!("memory://row-lineage/{}", uuid::Uuid::new_v4()),
        properties: properties.into_iter().collect(),
    };
    let created = create(&storage, &definition)?;
    let catalog = PointerCatalog::new(storage.clone(), Location(Mutex::new(created.location.clone())));
    let mut table = Table::new(storage.clone(), Arc::new(catalog), created);
    let mut known = HashSet::new();
    for (number, step) in case["steps"].as_array().into_iter().flatten().enumerate() {
        table = match step["operation"].as_str().unwrap_or_default() {
            "upgrade to v3" => {
                let update = MetadataUpdate::UpgradeFormatVersion { format_version: 3 };
                table.update(Vec::new(), vec![update])?
            }
            operation @ ("append" | "fast append") => {
                let options = SnapshotOptions { merge: operation == "append", ..SnapshotOptions::default() };
                table.append_files(added(step, &mut known)?, options)?.table
            }
            _ => return Ok(()),
        };
        let found = state(&storage, table.metadata(), step.get("manifests").is_some())?;
        for (field, value) in found.as_object().into_iter().flatten() {
            if step[field] != *value {
                return Err(format!("step {number}, {field}: expected {}, found {value}", step[field]).into());
            }
        }
    }
    Ok(())
}

/// The files that a step adds: those in its manifests that no earlier step had, with their numbers of rows.
fn added(step: &Json, known: &mut HashSet<String>) -> std::result::Result<Vec<DataFile>, Failed> {
    let manifests = step["manifests"].as_array().into_iter().flatten();
    let entries = manifests.flat_map(|manifest| manifest["entries"].as_array().into_iter().flatten());
    let paths = entries.filter_map(|entry| entry[0].as_str().filter(|path| known.insert((*path).to_owned())));
    let paths: Vec<&str> = paths.collect();
    let counts: Vec<i64> = step["added_records"].as_array().into_iter().flatten().filter_map(Json::as_i64).collect();
    if paths.len() != counts.len() {
        return Err(format!("{} files are new, {} are said to be added", paths.len(), counts.len()).into());
    }
    let file = |(path, record_count): (&str, i64)| DataFile {
        file_path: path.to_owned(),
        file_format: "PARQUET".to_owned(),
        record_count,
        file_size_in_bytes: 10,
        ..DataFile::default()
    };
    Ok(paths.into_iter().zip(counts).map(file).collect())
}

fn state(storage: &Storage, metadata: &TableMetadata, with_snapshot: bool) -> Result<Json> {
    let mut state = json!({ "next_row_id": metadata.next_row_id() });
    if let Some(snapshot) = metadata.current_snapshot().filter(|_| with_snapshot) {
        state["first_row_id"] = json!(snapshot.first_row_id);
        state["added_rows"] = json!(snapshot.added_rows);
        let manifests = of_snapshot(storage, metadata, snapshot, &Limits::default())?;
        state["manifests"] = manifests.iter().map(|one| manifest(storage, one)).collect::<Result<_>>()?;
    }
    Ok(state)
}

fn manifest(storage: &Storage, manifest: &ManifestFile) -> Result<Json> {
    assert_eq!(manifest.content, ManifestContent::Data);
    let options = ReadOptions { inherit: Some(manifest), ..ReadOptions::default() };
    let read = entries::read(&storage.read(&manifest.manifest_path)?, &options, &Limits::default())?;
    let entry = |row| -> Result<Json> {
        let entry = read.entry(row, manifest.partition_spec_id)?;
        let status = match entry.status {
            Status::Added => "added",
            Status::Existing => "existing",
            Status::Deleted => "deleted",
        };
        Ok(json!([entry.file.file_path, status, entry.file.record_count, entry.file.first_row_id]))
    };
    Ok(json!({
        "added_rows": manifest.added_rows_count,
        "existing_rows": manifest.existing_rows_count,
        "deleted_rows": manifest.deleted_rows_count,
        "first_row_id": manifest.first_row_id,
        "entries": (0..read.len()).map(entry).collect::<Result<Vec<_>>>()?,
    }))
}
