//! Compares every metadata table of every golden table with that of the reference, row by row.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};

use flate2::read::GzDecoder;
use icefield_format::Limits;
use icefield_format::transform::Transform;
use icefield_table::Error;
use icefield_table::inspect::{Inspect, MetadataTable, Selection};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::encoding;
use crate::refused;
use crate::tables::Table;

/// Rows by the name of their metadata table.
type Expected = BTreeMap<String, Vec<Json>>;

/// One test per metadata table for which the set has rows.
pub fn trials(tables: &[Table]) -> Vec<Trial> {
    let expected: Vec<(&Table, Expected)> = tables.iter().filter_map(|table| Some((table, read(table)?))).collect();
    let kinds: BTreeSet<String> = expected.iter().flat_map(|(_, rows)| rows.keys().cloned()).collect();
    let mut trials = Vec::new();
    for (table, mut rows) in expected {
        // If there are snapshots but no manifests, the reference was asked for some metadata tables only.
        let all_asked = rows.contains_key("metadata_log_entries")
            && rows.contains_key("snapshots") == rows.contains_key("all_manifests");
        let failed = table.facts["metadata_table_errors"].clone();
        for kind in &kinds {
            let Some(rows) = rows.remove(kind).or(all_asked.then(Vec::new)) else { continue };
            // If the reference fails, the test only checks that we do not.
            let rows = if failed[kind].is_string() { None } else { Some(rows) };
            let (inspect, kind) = (inspect(table), kind.clone());
            let location = table.metadata_file.clone();
            let (title, name) = (format!("metadata_tables::{}::{kind}", table.name), table.name.clone());
            trials.push(Trial::test(title, move || check(&name, &inspect, &kind, rows, &location)));
        }
        let inspect = inspect(table);
        let name = format!("metadata_tables::{}::all_files", table.name);
        trials.push(Trial::test(name, move || all_files(&inspect)));
    }
    trials
}

fn read(table: &Table) -> Option<Expected> {
    let mut expected = Expected::new();
    let files = std::fs::read_dir(&table.expected).ok()?.map(|entry| entry.unwrap().path());
    let named = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        name.starts_with("metadata_tables") && name.ends_with(".jsonl.gz")
    };
    for path in files.filter(named) {
        let lines = BufReader::new(GzDecoder::new(std::fs::File::open(path).unwrap())).lines();
        for line in lines {
            let mut line: Json = serde_json::from_str(&line.unwrap()).unwrap();
            let kind = line["table"].as_str().unwrap().to_owned();
            expected.entry(kind).or_default().push(line["row"].take());
        }
    }
    (!expected.is_empty()).then_some(expected)
}

fn inspect(table: &Table) -> Inspect {
    Inspect {
        storage: table.storage.clone(),
        metadata: table.metadata.clone(),
        metadata_location: table.metadata_file.clone(),
        limits: Limits::default(),
    }
}

fn scan(inspect: &Inspect, table: MetadataTable, columns: Option<Vec<String>>) -> Result<Vec<Json>, Failed> {
    let stream = inspect.scan(table, &Selection { columns, ..Selection::default() })?;
    let schema = stream.schema().clone();
    let batches = stream.collect::<Result<Vec<_>, _>>()?;
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    Ok(encoding::rows(&batches))
}

/// Whether a metadata table may be refused, because a partition transform is unknown.
fn may_refuse(inspect: &Inspect) -> bool {
    let mut fields = inspect.metadata.partition_specs().iter().flat_map(|spec| &spec.fields);
    fields.any(|field| matches!(field.transform, Transform::Unknown(_)))
}

fn check(name: &str, inspect: &Inspect, kind: &str, expected: Option<Vec<Json>>, location: &str) -> Result<(), Failed> {
    let table = MetadataTable::parse(kind)?;
    let schema = inspect.schema(table)?;
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name.as_str()).collect();
    let mut found = match inspect.scan(table, &Selection::default())?.collect::<Result<Vec<_>, _>>() {
        Ok(batches) => encoding::rows(&batches),
        Err(Error::Unsupported(message)) => return refused::note(name, may_refuse(inspect), &message),
        Err(error) => return Err(error.into()),
    };
    let Some(mut expected) = expected else { return Ok(()) };
    if let Some(first) = expected.first() {
        // The set omits `row` of position deletes if no file has rows.
        let given: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
        let same = |name: &&&str| **name != "row" || given.contains(*name);
        assert_eq!(names.iter().filter(same).copied().collect::<Vec<_>>(), given, "columns of {kind}");
        found = encoding::sorted(found.iter().map(|row| encoding::pick(row, &given)).collect());
    }
    if table == MetadataTable::MetadataLogEntries {
        // The current metadata file is named by the path with which it was opened.
        let file = Json::from(location);
        let is_open = |row: &&mut Json| row["file"].as_str().is_some_and(|file| file.ends_with(location));
        expected.iter_mut().filter(is_open).for_each(|row| row["file"] = file.clone());
    }
    let expected = encoding::sorted(expected);
    assert_eq!(found.len(), expected.len(), "rows of {kind}");
    for (found, expected) in found.iter().zip(&expected) {
        encoding::same(kind, found, expected)?;
    }
    // Each column read alone is the same as together with others.
    for name in names.iter().filter(|name| expected.first().is_some_and(|row| row.get(**name).is_some())) {
        let alone = scan(inspect, table, Some(vec![(*name).to_owned()]))?;
        let among: Vec<Json> = expected.iter().map(|row| encoding::pick(row, &[name])).collect();
        assert_eq!(alone, encoding::sorted(among), "column {name} alone");
    }
    Ok(())
}

/// Checks `all_files` and `all_delete_files`, for which the reference was not asked, against the other tables.
fn all_files(inspect: &Inspect) -> Result<(), Failed> {
    let mut parts = scan(inspect, MetadataTable::AllDataFiles, None)?;
    parts.extend(scan(inspect, MetadataTable::AllDeleteFiles, None)?);
    assert_eq!(scan(inspect, MetadataTable::AllFiles, None)?, encoding::sorted(parts));
    Ok(())
}
