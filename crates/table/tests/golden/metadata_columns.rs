//! `expected/NAME/metadata_columns.arrow` and `lineage.arrow`: the files and positions of rows, and their row ids.

use std::path::{Path, PathBuf};

use icefield_table::Error;
use icefield_table::plan::{At, Scan};
use icefield_table::read::scan as rows;
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::tables::Table;
use crate::{arrow_file, encoding, refused};

const ROW_ID: &str = "_row_id";
const SEQUENCE_NUMBER: &str = "_last_updated_sequence_number";

/// Deleted rows that the set contains nevertheless (docs/differences.md), by their first column.
const DELETED: [(&str, &[i64]); 2] = [("del_eq_evolution", &[2, 14, 29]), ("del_eq_types", &[23])];

/// One trial for the current rows, and one per snapshot for their row ids.
pub fn trials(table: &Table) -> Vec<Trial> {
    let mut trials = Vec::new();
    if let Some(file) = file(table, "metadata_columns") {
        let table = table.clone();
        let name = format!("metadata_columns::{}", table.name);
        trials.push(Trial::test(name, move || check(&table, &file, None, None)));
    }
    let Some(file) = file(table, "lineage") else { return trials };
    for snapshot in table.facts["snapshots"].as_array().into_iter().flatten() {
        let (Some(id), Some(batch)) = (snapshot["snapshot_id"].as_i64(), snapshot["lineage_batch"].as_u64()) else {
            continue;
        };
        let (of, file) = (table.clone(), file.clone());
        let name = format!("lineage::{}::{id}", table.name);
        trials.push(Trial::test(name, move || check(&of, &file, Some(id), Some(batch))));
    }
    trials
}

fn file(table: &Table, what: &str) -> Option<PathBuf> {
    let named = table.facts[format!("{what}_file")].as_str().map(str::to_owned);
    let path = table.expected.join(named.unwrap_or_else(|| format!("{what}.arrow")));
    path.is_file().then_some(path)
}

/// Compares the rows of a snapshot, or the current ones, with one batch of a file, or all batches.
fn check(table: &Table, file: &Path, snapshot_id: Option<i64>, batch: Option<u64>) -> Result<(), Failed> {
    let (schema, mut expected) = arrow_file::read(file)?;
    if let Some(number) = batch {
        expected = expected.into_iter().skip(usize::try_from(number)?).take(1).collect();
    }
    let columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let scan = Scan::new(table.storage.clone(), table.metadata.clone(), &At { snapshot_id, ..At::default() })?;
    let (plan, wanted) = (scan.plan()?, scan.wanted(Some(&columns))?);
    let read = rows::rows(&scan, &plan, &wanted, None).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = match read {
        Err(Error::Unsupported(message)) => {
            return refused::note(&table.name, refused::may_refuse(&plan, &scan.schema), &message);
        }
        other => other?,
    };
    for batch in &found {
        let names: Vec<&String> = batch.schema_ref().fields().iter().map(|field| field.name()).collect();
        assert_eq!(names, columns.iter().collect::<Vec<_>>());
    }
    let mut expected = encoding::rows(&expected);
    for (_, keys) in DELETED.iter().filter(|(name, _)| *name == table.name && snapshot_id.is_none()) {
        expected.retain(|row| row[&columns[0]].as_i64().is_none_or(|key| !keys.contains(&key)));
    }
    let found: Vec<Json> = encoding::rows(&found).into_iter().map(|row| as_expected(table, row)).collect();
    let expected: Vec<Json> = expected.into_iter().map(|row| as_expected(table, row)).collect();
    assert_eq!(found.len(), expected.len(), "rows");
    let sorted = |rows| Json::Array(encoding::sorted(rows));
    encoding::same("rows", &sorted(found), &sorted(expected))
}

/// A row with the path as in the set. The sequence number is removed if there is no row id, because only the Avro
/// reader of the library returns it then (docs/differences.md).
fn as_expected(table: &Table, mut row: Json) -> Json {
    if let Some(path) = row.get("_file").and_then(Json::as_str) {
        row["_file"] = table.relative(path).into();
    }
    if row.get(ROW_ID).is_some_and(Json::is_null) {
        row[SEQUENCE_NUMBER] = Json::Null;
    }
    row
}
