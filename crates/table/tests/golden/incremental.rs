//! `expected/NAME/incremental.json.gz`: appended and changed files and rows that Java reads between two snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use icefield_format::metadata::Snapshot;
use icefield_table::Error;
use icefield_table::plan::incremental::{Point, Range};
use icefield_table::plan::tasks::split::SplitOptions;
use icefield_table::plan::{At, Plan, Scan};
use icefield_table::read::changelog::{Comparison, Updates, rows as compared_rows};
use icefield_table::read::{scan as rows_of, task, wire};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::tables::Table;
use crate::{encoding, refused};

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
    // The range from the next snapshot, inclusive, is the same.
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
                "deletes": manifest.deletes(row).iter().collect::<Vec<_>>(),
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
    // If the reference refuses (delete files), the laws of `changes` apply.
    let Some(expected) = case["changelog_tasks"].as_array() else { return Ok(()) };
    let plan = scan.plan()?;
    let encoded = |found| encoding::same("changelog_tasks", &Json::Array(found), &sorted(expected));
    encoded(encoding::sorted(changes(table, &plan)?))?;
    if !case["changelog_rows"].is_array() {
        return Ok(());
    }
    let wanted = scan.wanted(None)?;
    let batches = rows_of::rows(scan, &plan, &wanted, None)?.collect::<Result<Vec<_>, _>>()?;
    let rows = encoding::rows(&batches);
    assert_eq!(rows_of::count(scan, None)?, i64::try_from(rows.len())?);
    compared(scan, case)?;
    let rows = &rows;
    // Another worker reads the same from serialized tasks.
    let mut batches = Vec::new();
    for one in scan.tasks(&plan, &wanted, &SplitOptions::default())? {
        let one = wire::from_bytes(&wire::to_bytes(&one)?)?;
        batches.extend(task::rows(one, &table.storage, None)?.collect::<Result<Vec<_>, _>>()?);
    }
    same_rows("changelog_rows of tasks", &encoding::rows(&batches), rows)?;
    // The columns of the change can be read without the columns of the rows.
    let named = ["_change_type".to_owned(), "_change_ordinal".to_owned()];
    let wanted = scan.wanted(Some(&named))?;
    let batches = rows_of::rows(scan, &plan, &wanted, None)?.collect::<Result<Vec<_>, _>>()?;
    let picked: Vec<Json> = rows.iter().map(|row| encoding::pick(row, &["_change_type", "_change_ordinal"])).collect();
    same_rows("columns of the change", &encoding::rows(&batches), &picked)
}

fn changes(table: &Table, plan: &Plan) -> Result<Vec<Json>, Failed> {
    let mut found = Vec::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let change = manifest.change(row)?;
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

/// Compares rows with those of the changelog view of the reference.
fn compared(scan: &Scan, case: &Json) -> Result<(), Failed> {
    let by_id = Updates { identifier_columns: Some(vec!["id".to_owned()]) };
    for (name, net_changes, updates) in
        [("changelog_rows", false, None), ("changelog_net", true, None), ("changelog_updates", false, Some(by_id))]
    {
        let Some(expected) = case[name].as_array() else { continue };
        let comparison = Comparison { net_changes, updates };
        let batches = compared_rows(scan, &comparison, &*scan.wanted(None)?, None)?;
        let found = encoding::rows(&batches.collect::<Result<Vec<_>, _>>()?);
        same_rows(name, &found, &without_carried_over(expected, net_changes))?;
    }
    Ok(())
}

/// Removes carried-over rows. The reference never considers rows with bytes equal, because it compares Java arrays, so
/// it keeps those that a snapshot deletes and inserts again (docs/differences.md). If it has already removed all such
/// rows, this changes nothing.
fn without_carried_over(rows: &[Json], net_changes: bool) -> Vec<Json> {
    let is_before = |row: &Json| matches!(row["_change_type"].as_str(), Some("DELETE" | "UPDATE_BEFORE"));
    let mut ordered: Vec<&Json> = rows.iter().collect();
    ordered.sort_by_key(|row| (row["_change_ordinal"].as_i64(), !is_before(row)));
    let mut left: BTreeMap<(String, Option<i64>), Vec<&Json>> = BTreeMap::new();
    for row in ordered {
        let ordinal = if net_changes { None } else { row["_change_ordinal"].as_i64() };
        let of_value = left.entry((without_change(row).to_string(), ordinal)).or_default();
        match of_value.last() {
            Some(last) if is_before(last) != is_before(row) => drop(of_value.pop()),
            Some(first) if net_changes => {
                let first = *first;
                of_value.push(first);
            }
            _ => of_value.push(row),
        }
    }
    left.into_values().flatten().cloned().collect()
}

fn without_change(row: &Json) -> Json {
    let mut row = row.clone();
    if let Some(members) = row.as_object_mut() {
        members.retain(|name, _| !["_change_type", "_change_ordinal", "_commit_snapshot_id"].contains(&name.as_str()));
    }
    row
}

/// Laws that hold without the reference: the rows before a snapshot plus its changes are the rows after it, and its net
/// changes are the difference of the two.
pub fn laws(table: &Table) -> Vec<Trial> {
    let snapshots =
        table.metadata.snapshots().iter().filter(|snapshot| {
            snapshot.parent_snapshot_id.is_none_or(|parent| table.metadata.snapshot(parent).is_some())
        });
    let trial = |snapshot: &Arc<Snapshot>| {
        let (table, snapshot) = (table.clone(), snapshot.clone());
        let name = format!("changes::{}::{}", table.name, snapshot.snapshot_id);
        Trial::test(name, move || law(&table, &snapshot))
    };
    snapshots.map(trial).collect()
}

fn law(table: &Table, snapshot: &Snapshot) -> Result<(), Failed> {
    let (before, after) = (snapshot.parent_snapshot_id, Some(snapshot.snapshot_id));
    let range = Range { from: before.map(Point::Id), to: after.map(Point::Id), ..Range::default() };
    let scan = Scan::changelog(table.storage.clone(), table.metadata.clone(), &range)?;
    let mut state = BTreeMap::new();
    for (id, sign) in [(before, 1), (after, -1)] {
        let Some(id) = id else { continue };
        let at = At { snapshot_id: Some(id), ..At::default() };
        let of_state = Scan::new(table.storage.clone(), table.metadata.clone(), &at)?;
        let of_state = Scan { schema: table.metadata.current_schema().clone(), ..of_state };
        let plan = of_state.plan()?;
        let read = rows_of::rows(&of_state, &plan, &of_state.wanted(None)?, None)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let batches = match read {
            Err(Error::Unsupported(_)) if refused::may_refuse(&plan, &of_state.schema) => return Ok(()),
            other => other?,
        };
        encoding::rows(&batches).iter().for_each(|row| *state.entry(row.to_string()).or_insert(0i64) += sign);
    }
    let plan = scan.plan()?;
    let wanted = scan.wanted(None)?;
    let all = rows_of::rows(&scan, &plan, &wanted, None)?.collect::<Result<Vec<_>, _>>()?;
    let net = Comparison { net_changes: true, updates: None };
    let net = compared_rows(&scan, &net, &wanted, None)?.collect::<Result<Vec<_>, _>>()?;
    for (what, batches, is_net) in [("changes", all, false), ("net changes", net, true)] {
        let mut left = state.clone();
        let rows = encoding::rows(&batches);
        for row in &rows {
            let step = if row["_change_type"] == "INSERT" { 1 } else { -1 };
            *left.entry(without_change(row).to_string()).or_default() += step;
        }
        if let Some((row, count)) = left.iter().find(|(_, count)| **count != 0) {
            return Err(format!("{what}: {row} is left {count} times").into());
        }
        let least: u64 = state.values().map(|count| count.unsigned_abs()).sum();
        if is_net && rows.len() as u64 != least {
            return Err(format!("{what}: {} rows, and {least} differ", rows.len()).into());
        }
    }
    Ok(())
}

fn same_rows(what: &str, found: &[Json], expected: &[Json]) -> Result<(), Failed> {
    assert_eq!(found.len(), expected.len(), "{what}");
    encoding::same(what, &Json::Array(found.to_vec()), &sorted(expected))
}

fn sorted(rows: &[Json]) -> Json {
    Json::Array(encoding::sorted(rows.to_vec()))
}
