//! `expected/NAME/incremental.json.gz`: files and rows that Java reads between two snapshots, appended and changed.

use std::collections::BTreeMap;

use icefield_table::plan::incremental::{Point, Range};
use icefield_table::plan::split::SplitOptions;
use icefield_table::plan::{Plan, Scan};
use icefield_table::read::{scan as rows_of, task, wire};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::encoding;
use crate::tables::Table;

pub fn trials(table: &Table) -> Vec<Trial> {
    let Some(Json::Array(cases)) = table.expectation("incremental") else { return Vec::new() };
    let trial = |(number, case): (usize, Json)| {
        let table = table.clone();
        Trial::test(format!("incremental::{}::{number}", table.name), move || check(&table, &case))
    };
    cases.into_iter().enumerate().map(trial).collect()
}

fn check(table: &Table, case: &Json) -> Result<(), Failed> {
    let point = |name: &str| case[name].as_i64().map(Point::Id);
    let range = Range { from: point("from_exclusive"), to: point("to_inclusive"), ..Range::default() };
    let scan = Scan::appends(table.storage.clone(), table.metadata.clone(), &range)?;
    appends(table, case, &scan)?;
    // The range that begins with the snapshot after the one left out is the same.
    if let Some(from) = case["from_exclusive"].as_i64() {
        let first = table.metadata.ancestors(case["to_inclusive"].as_i64().unwrap());
        let first = first.filter(|snapshot| snapshot.parent_snapshot_id == Some(from)).last().unwrap();
        let from = Some(Point::Id(first.snapshot_id));
        let range = Range { from, from_inclusive: true, ..range.clone() };
        appends(table, case, &Scan::appends(table.storage.clone(), table.metadata.clone(), &range)?)?;
    }
    changelog(table, case, &Scan::changelog(table.storage.clone(), table.metadata.clone(), &range)?)
}

fn appends(table: &Table, case: &Json, scan: &Scan) -> Result<(), Failed> {
    let Some(expected) = case["append_files"].as_array() else { return Ok(()) };
    let plan = scan.plan()?;
    let mut found = Vec::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let entry = manifest.entries.entry(row, manifest.spec_id())?;
            found.push(json!({
                "file": table.relative(&entry.file.file_path),
                "spec_id": manifest.spec_id(),
                "record_count": entry.file.record_count,
                "data_sequence_number": entry.sequence_number,
                "first_row_id": entry.file.first_row_id,
                "deletes": manifest.deletes(row),
                "residual": manifest.residual(row)?.to_json()?,
            }));
        }
    }
    let expected = encoding::sorted(expected.clone());
    encoding::same("append_files", &Json::Array(encoding::sorted(found)), &Json::Array(expected))?;
    let Some(rows) = case["append_rows"].as_array() else { return Ok(()) };
    let batches = rows_of::rows(scan, &plan, &scan.wanted(None)?, None)?.collect::<Result<Vec<_>, _>>()?;
    assert_eq!(rows_of::count(scan, None)?, i64::try_from(rows.len())?);
    same_rows("append_rows", &encoding::rows(&batches), rows)
}

fn changelog(table: &Table, case: &Json, scan: &Scan) -> Result<(), Failed> {
    if case["changelog_error"].is_string() || case["changelog_rows_error"].is_string() {
        return match scan.plan() {
            Err(icefield_table::Error::Unsupported(_)) => Ok(()),
            other => Err(format!("should be refused, and is {other:?}").into()),
        };
    }
    let Some(expected) = case["changelog_tasks"].as_array() else { return Ok(()) };
    let plan = scan.plan()?;
    let encoded = |found| encoding::same("changelog_tasks", &Json::Array(found), &sorted(expected));
    encoded(encoding::sorted(changes(table, scan, &plan)?))?;
    let Some(expected) = case["changelog_rows"].as_array() else { return Ok(()) };
    let wanted = scan.wanted(None)?;
    let batches = rows_of::rows(scan, &plan, &wanted, None)?.collect::<Result<Vec<_>, _>>()?;
    let rows = encoding::rows(&batches);
    assert_eq!(rows_of::count(scan, None)?, i64::try_from(rows.len())?);
    same_but_carried_over(&rows, expected)?;
    let rows = &rows;
    // A worker elsewhere reads the same.
    let mut batches = Vec::new();
    for one in scan.tasks(&plan, &wanted, &SplitOptions::default())? {
        let one = wire::from_bytes(&wire::to_bytes(&one)?)?;
        batches.extend(task::rows(one, &table.storage, None)?.collect::<Result<Vec<_>, _>>()?);
    }
    same_rows("changelog_rows of tasks", &encoding::rows(&batches), rows)?;
    // What tells of the change can be read without the rows.
    let named = ["_change_type".to_owned(), "_change_ordinal".to_owned()];
    let wanted = scan.wanted(Some(&named))?;
    let batches = rows_of::rows(scan, &plan, &wanted, None)?.collect::<Result<Vec<_>, _>>()?;
    let picked: Vec<Json> = rows.iter().map(|row| encoding::pick(row, &["_change_type", "_change_ordinal"])).collect();
    same_rows("columns of the change", &encoding::rows(&batches), &picked)
}

fn changes(table: &Table, scan: &Scan, plan: &Plan) -> Result<Vec<Json>, Failed> {
    let changes = scan.changes.as_ref().unwrap();
    let mut found = Vec::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let change = changes.change(manifest, row)?;
            let operation = change.change_type.as_str();
            found.push(json!({
                "operation": operation,
                "change_ordinal": change.ordinal,
                "commit_snapshot_id": change.snapshot_id,
                "file": table.relative(manifest.entries.file_path.value(row)),
                "residual": manifest.residual(row)?.to_json()?,
                "task": if operation == "INSERT" { "added_rows" } else { "deleted_data_file" },
            }));
        }
    }
    Ok(found)
}

/// The reference's rows come of a view that leaves out most rows that a snapshot deletes and inserts again as they were.
fn same_but_carried_over(found: &[Json], expected: &[Json]) -> Result<(), Failed> {
    let mut left: BTreeMap<String, i64> = BTreeMap::new();
    found.iter().for_each(|row| *left.entry(row.to_string()).or_default() += 1);
    for row in expected {
        match left.get_mut(&row.to_string()) {
            Some(count) if *count > 0 => *count -= 1,
            _ => return Err(format!("changelog_rows: {row} is missing").into()),
        }
    }
    left.retain(|_, count| *count > 0);
    let turned = |row: &str| match row.replace(r#""_change_type":"INSERT""#, r#""_change_type":"DELETE""#) {
        other if other == row => row.replace(r#""_change_type":"DELETE""#, r#""_change_type":"INSERT""#),
        other => other,
    };
    match left.iter().find(|(row, count)| left.get(&turned(row)) != Some(count)) {
        Some((row, count)) => Err(format!("changelog_rows: {row} is there {count} times too often").into()),
        None => Ok(()),
    }
}

fn same_rows(what: &str, found: &[Json], expected: &[Json]) -> Result<(), Failed> {
    assert_eq!(found.len(), expected.len(), "{what}");
    encoding::same(what, &Json::Array(found.to_vec()), &sorted(expected))
}

fn sorted(rows: &[Json]) -> Json {
    Json::Array(encoding::sorted(rows.to_vec()))
}
