//! `expected/NAME/plans.json.gz`: the files, deletes, residuals and splits of Java's planner.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use icefield_format::expr::{BoundExpr, Expr, Expression};
use icefield_format::manifest::FileContent;
use icefield_format::types::{PrimitiveType, Schema};
use icefield_table::Error;
use icefield_table::plan::tasks::ReadTask;
use icefield_table::plan::tasks::part::FilePart;
use icefield_table::plan::tasks::split::{Piece, SplitOptions};
use icefield_table::plan::{At, Plan, Scan};
use icefield_table::read::task;
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use crate::tables::Table;

pub fn trials(table: &Table) -> Vec<Trial> {
    let Some(Json::Array(cases)) = table.expectation("plans") else { return Vec::new() };
    let table = Arc::new(table.clone());
    let trial = |(number, case): (usize, Json)| {
        let table = table.clone();
        Trial::test(format!("plans::{}::{number}", table.name), move || check(&table, &case))
    };
    cases.into_iter().enumerate().map(trial).collect()
}

fn check(table: &Table, case: &Json) -> Result<(), Failed> {
    if let (Some(error), Json::Object(_)) = (case.get("error"), &case["expr"])
        && !defect(error)
        && Expr::from_json_typed(&case["expr"], table.metadata.current_schema()).is_err()
    {
        return Ok(());
    }
    match (plan(table, case), case.get("error")) {
        (Err(_), Some(error)) if !defect(error) => Ok(()),
        (Err(error), _) => Err(format!("{}: {error}", case["expr"]).into()),
        (Ok(_), Some(error)) if defect(error) => Ok(()),
        (Ok(_), Some(error)) => Err(format!("{}: should fail: {error}", case["expr"]).into()),
        (Ok((plan, scan)), None) => {
            same_files(table, case, &plan, &scan)?;
            same_count(case, &plan)?;
            same_tasks(table, case, &plan)
        }
    }
}

fn plan(table: &Table, case: &Json) -> Result<(Plan, Scan), icefield_table::Error> {
    let at = At { snapshot_id: case["snapshot_id"].as_i64(), ..At::default() };
    let mut scan = Scan::new(table.storage.clone(), table.metadata.clone(), &at)?;
    scan.case_sensitive = case["case_sensitive"].as_bool().unwrap_or(true);
    if !case["expr"].is_null() {
        scan.filter = expression(&case["expr"], &scan.schema)?;
    }
    Ok((scan.plan()?, scan))
}

/// Literals are written as single values of the column's type, or as plain numbers that binding converts.
fn expression(json: &Json, schema: &Schema) -> Result<Expr, icefield_table::Error> {
    Ok(Expr::from_json_typed(json, schema).or_else(|_| Expr::from_json(json))?)
}

/// Whether the reference failed because of a bug (docs/differences.md): it does not find the column of an equality
/// delete if the column was dropped later, and it dereferences null if a partition value is null.
fn defect(error: &Json) -> bool {
    let text = error.as_str().unwrap_or_default();
    text.contains("Cannot find required field for ID") || text.starts_with("NullPointerException")
}

/// The parts of a planned file that are compared.
#[derive(Debug, PartialEq)]
struct File {
    spec_id: i64,
    record_count: i64,
    data_sequence_number: Option<i64>,
    first_row_id: Option<i64>,
    deletes: Vec<String>,
}

fn same_files(table: &Table, case: &Json, plan: &Plan, scan: &Scan) -> Result<(), Failed> {
    let mut ours = files(table, plan);
    let mut residuals = residuals(table, plan);
    let null_partitions = null_partitions(table, plan);
    let mut listed = BTreeSet::new();
    for wanted in case["files"].as_array().into_iter().flatten() {
        let path = wanted["file"].as_str().unwrap_or_default();
        if !listed.insert(path) {
            return Err(format!("{}: {path} is expected twice", case["expr"]).into());
        }
        let Some(found) = ours.remove(path) else {
            // The reference keeps some files without a matching row; the set says which rows match.
            if holds_no_match(table, case, scan, path, plan)? {
                continue;
            }
            return Err(format!("{}: {path} is missing", case["expr"]).into());
        };
        let expected = expected(wanted);
        let found = without_uuid_deletes(found, &expected, plan, table, scan);
        if found != expected {
            return Err(format!("{}: {path}:\n ours {found:?}\n theirs {expected:?}", case["expr"]).into());
        }
        let theirs = expression(&wanted["residual"], &scan.schema)?.bind(&scan.schema, scan.case_sensitive)?;
        let residual = residuals.remove(path).unwrap_or(Expression::True);
        let odd = case.get("reference_defect").is_some() || null_under_not(case, &null_partitions, path);
        if canonical(&residual) != canonical(&theirs) && !odd {
            return Err(format!(
                "{}: {path}: residual {} but {}",
                case["expr"],
                residual.to_json()?,
                wanted["residual"]
            )
            .into());
        }
    }
    match ours.keys().next() {
        Some(extra) if case.get("reference_defect").is_none() && !loses_rows(case) => {
            Err(format!("{}: {extra} is too much", case["expr"]).into())
        }
        _ => Ok(()),
    }
}

/// Checks that a row count from metadata is the number of matching rows.
fn same_count(case: &Json, plan: &Plan) -> Result<(), Failed> {
    match (case["row_count"].as_i64(), plan.exact_row_count()?) {
        (Some(wanted), Some(found)) if wanted != found => {
            Err(format!("{}: {found} rows by metadata, {wanted} by reading", case["expr"]).into())
        }
        _ => Ok(()),
    }
}

/// Whether the plan may lack a file: it belongs to the table, and none of its rows matches, judging by all of its rows.
/// For a file that cannot be read yet, and for one with deleted rows, the counts must suffice.
fn holds_no_match(table: &Table, case: &Json, scan: &Scan, path: &str, plan: &Plan) -> Result<bool, Failed> {
    let everything = Scan { filter: Expr::True, ..scan.clone() };
    let all = everything.plan()?;
    let place = all.manifests.iter().enumerate().find_map(|(manifest, planned)| {
        let paths = planned.entries.file_path.iter().flatten();
        let row = paths.enumerate().find(|(_, found)| table.relative(found) == path)?.0;
        Some((manifest, row))
    });
    let Some((manifest, row)) = place else { return Ok(false) };
    let planned = &all.manifests[manifest];
    let length = planned.entries.file_size_in_bytes.value(row);
    let part = everything.parts(&all, &[Piece { manifest, row, start: 0, length }])?.remove(0);
    let deleted = !part.deletes.is_empty();
    let whole = ReadTask { wanted: scan.wanted(None)?, parts: vec![FilePart { deletes: Default::default(), ..part }] };
    let filter = scan.filter.bind(&scan.schema, scan.case_sensitive)?.rewrite_not();
    let mut matching = 0;
    for batch in task::rows(whole, &scan.storage, None)? {
        match batch {
            Ok(batch) => matching += filter.evaluate(&batch)?.true_count(),
            Err(Error::Unsupported(_)) => return Ok(leaves_out_nothing(case, plan)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(matching == 0 || deleted && leaves_out_nothing(case, plan))
}

/// Whether the files of a plan have at least as many rows as match.
fn leaves_out_nothing(case: &Json, plan: &Plan) -> bool {
    let rows: i64 = plan.manifests.iter().flat_map(|manifest| manifest.entries.record_count.values()).sum();
    case["row_count"].as_i64().is_some_and(|wanted| wanted <= rows)
}

/// Whether the reader of the reference finds fewer rows than match, according to the set (ORC metrics of nested
/// columns).
fn loses_rows(case: &Json) -> bool {
    let read = case["generic_reader_row_count"].as_i64();
    case["row_count"].as_i64().zip(read).is_some_and(|(matching, read)| read < matching)
}

/// The reference treats null partition values as the smallest ones. So it keeps them below a NOT, although no row with
/// null matches (docs/differences.md).
fn null_under_not(case: &Json, null_partitions: &BTreeSet<String>, path: &str) -> bool {
    case["expr"].to_string().contains("\"not\"") && null_partitions.contains(path)
}

fn null_partitions(table: &Table, plan: &Plan) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let file = manifest.entries.file(row, manifest.spec_id()).unwrap();
            if file.partition.iter().any(Option::is_none) {
                found.insert(table.relative(&file.file_path).to_owned());
            }
        }
    }
    found
}

/// Removes deletes that the reference does not link to a file because it orders UUIDs as two signed numbers, and
/// therefore considers overlapping bounds disjoint. Our additional links are right if the equality delete has a column
/// of that type (docs/differences.md).
fn without_uuid_deletes(mut found: File, expected: &File, plan: &Plan, table: &Table, scan: &Scan) -> File {
    let uuid = |id: &i32| {
        let field = scan.schema.find_field(*id);
        field.is_some_and(|field| field.ty.as_primitive() == Some(&PrimitiveType::Uuid))
    };
    for (place, delete) in (0u32..).zip(plan.deletes.iter()) {
        let (text, delete) = (our_delete(table, plan, place), delete.unwrap());
        if delete.file.equality_ids.iter().flatten().any(uuid) && !expected.deletes.contains(&text) {
            found.deletes.retain(|link| *link != text);
        }
    }
    found
}

/// Sorts the operands of each operator, as their order has no meaning.
fn canonical(expr: &BoundExpr) -> String {
    fn visit(json: &Json) -> Json {
        let kind = json["type"].as_str().unwrap_or_default();
        if kind == "and" || kind == "or" {
            let mut sides = [visit(&json["left"]), visit(&json["right"])];
            sides.sort_by_key(ToString::to_string);
            return json!({"type": kind, "sides": sides});
        }
        if let Some(values) = json["values"].as_array() {
            let mut sorted = json.clone();
            let mut values = values.clone();
            values.sort_by_key(ToString::to_string);
            sorted["values"] = Json::Array(values);
            return sorted;
        }
        json.clone()
    }
    expr.to_json().map(|json| visit(&json).to_string()).unwrap_or_default()
}

fn expected(file: &Json) -> File {
    let mut deletes: Vec<String> = file["deletes"].as_array().into_iter().flatten().map(delete_text).collect();
    deletes.sort();
    File {
        spec_id: file["spec_id"].as_i64().unwrap_or_default(),
        record_count: file["record_count"].as_i64().unwrap_or_default(),
        data_sequence_number: file["data_sequence_number"].as_i64(),
        first_row_id: file["first_row_id"].as_i64(),
        deletes,
    }
}

fn delete_text(delete: &Json) -> String {
    let names = [
        "file",
        "content",
        "format",
        "content_offset",
        "content_size_in_bytes",
        "referenced_data_file",
        "data_sequence_number",
        "record_count",
        "equality_ids",
    ];
    names.map(|name| delete[name].to_string()).join(" ")
}

fn files(table: &Table, plan: &Plan) -> BTreeMap<String, File> {
    let mut found = BTreeMap::new();
    for manifest in &plan.manifests {
        for row in 0..manifest.entries.len() {
            let entry = manifest.entries.entry(row, manifest.spec_id()).unwrap();
            let places = manifest.deletes.as_ref().map(|links| links.of(row)).unwrap_or_default();
            let mut deletes: Vec<String> = places.iter().map(|place| our_delete(table, plan, *place)).collect();
            deletes.sort();
            let file = File {
                spec_id: manifest.spec_id().into(),
                record_count: entry.file.record_count,
                data_sequence_number: entry.sequence_number,
                first_row_id: entry.file.first_row_id,
                deletes,
            };
            found.insert(table.relative(&entry.file.file_path).to_owned(), file);
        }
    }
    found
}

fn our_delete(table: &Table, plan: &Plan, place: u32) -> String {
    let delete = plan.deletes.get(place).unwrap();
    let content = match delete.file.content {
        FileContent::Data => "data",
        FileContent::PositionDeletes => "position_deletes",
        FileContent::EqualityDeletes => "equality_deletes",
    };
    delete_text(&json!({
        "file": table.relative(&delete.file.file_path),
        "content": content,
        "format": delete.file.file_format.to_lowercase(),
        "referenced_data_file": delete.file.referenced_data_file.as_deref().map(|file| table.relative(file)),
        "equality_ids": delete.file.equality_ids,
        "content_offset": delete.file.content_offset,
        "content_size_in_bytes": delete.file.content_size_in_bytes,
        "data_sequence_number": delete.sequence_number,
        "record_count": delete.file.record_count,
    }))
}

fn residuals(table: &Table, plan: &Plan) -> BTreeMap<String, BoundExpr> {
    let mut found = BTreeMap::new();
    for manifest in &plan.manifests {
        for (row, place) in manifest.residual_places.iter().enumerate() {
            let path = table.relative(manifest.entries.file_path.value(row)).to_owned();
            found.insert(path, manifest.residuals[*place as usize].clone());
        }
    }
    found
}

fn same_tasks(table: &Table, case: &Json, plan: &Plan) -> Result<(), Failed> {
    let (Some(split_size), Some(theirs)) = (case["split_size"].as_i64(), case["split"]["combined_tasks"].as_array())
    else {
        return Ok(());
    };
    let options = SplitOptions { split_size, lookback: 10, open_file_cost: 1, ..SplitOptions::default() };
    let text = |task: &Vec<_>| {
        let mut pieces: Vec<String> = task
            .iter()
            .map(|piece: &icefield_table::plan::tasks::split::Piece| {
                let path = plan.manifests[piece.manifest].entries.file_path.value(piece.row);
                json!([table.relative(path), piece.start, piece.length]).to_string()
            })
            .collect();
        pieces.sort();
        pieces
    };
    let mut ours: Vec<Vec<String>> = plan.tasks(&options)?.iter().map(text).collect();
    let sorted = |task: &Json| {
        let mut pieces: Vec<String> = task.as_array().into_iter().flatten().map(ToString::to_string).collect();
        pieces.sort();
        pieces
    };
    let mut theirs: Vec<Vec<String>> = theirs.iter().map(sorted).collect();
    ours.sort();
    theirs.sort();
    // Which pieces share a task depends on the order in which the reference read the manifests.
    let pieces = |tasks: &[Vec<String>]| {
        let mut all: Vec<String> = tasks.concat();
        all.sort();
        all
    };
    if ours != theirs && pieces(&ours) != pieces(&theirs) {
        return Err(format!("{}: tasks\n ours {ours:?}\n theirs {theirs:?}", case["expr"]).into());
    }
    Ok(())
}
