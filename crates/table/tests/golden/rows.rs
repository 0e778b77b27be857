//! `expected/NAME/rows-K.jsonl.gz`: the rows of tables with types that the Arrow files of the set cannot represent.

use std::io::{BufRead as _, BufReader};

use flate2::read::GzDecoder;
use icefield_table::Error;
use icefield_table::plan::{At, Scan};
use icefield_table::read::scan as rows;
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::encoding;
use crate::refused;
use crate::tables::Table;

/// One trial per snapshot, and one for the current table.
pub fn trials(table: &Table) -> Vec<Trial> {
    let snapshots = table.facts["snapshots"].as_array().into_iter().flatten();
    let states = snapshots.map(|item| (item["snapshot_id"].as_i64(), item)).chain([(None, &table.facts["current"])]);
    let mut trials = Vec::new();
    for (snapshot_id, item) in states {
        let Some(file) = item["rows_file"].as_str().filter(|file| file.ends_with(".jsonl.gz")) else { continue };
        if !table.expected.join(file).is_file() {
            continue;
        }
        let name = snapshot_id.map_or("current".to_owned(), |id| id.to_string());
        let (of, item) = (table.clone(), item.clone());
        trials.push(Trial::test(format!("rows::{}::{name}", table.name), move || check(&of, snapshot_id, &item)));
    }
    trials
}

fn check(table: &Table, snapshot_id: Option<i64>, item: &Json) -> Result<(), Failed> {
    let mut expected = expected(table, item)?;
    if let Some(count) = item["row_count"].as_u64() {
        assert_eq!(expected.len() as u64, count, "row_count");
    }
    let at = At { snapshot_id, ..At::default() };
    let scan = Scan::new(table.storage.clone(), table.metadata.clone(), &at)?;
    let plan = scan.plan()?;
    let read = rows::rows(&scan, &plan, &scan.wanted(None)?, None).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let batches = match read {
        Err(Error::Unsupported(message)) => {
            return refused::note(&table.name, refused::may_refuse(&plan, &scan.schema), &message);
        }
        other => other?,
    };
    let found = encoding::rows(&batches);
    if table.name == "del_eq_types" && !plan.deletes.is_empty() {
        // The library skips an equality delete because of its UUID bounds (docs/differences.md).
        expected.retain(|row| row["id"] != 23);
    }
    assert_eq!(found.len(), expected.len(), "rows");
    let expected = encoding::sorted(expected.into_iter().map(without_text).collect());
    let expected = found.iter().zip(&expected).map(|(found, expected)| as_orc_has_it(found, expected)).collect();
    encoding::same("rows", &Json::Array(found), &expected)
}

/// Removes the text of variants, which is for people.
fn without_text(json: Json) -> Json {
    match json {
        Json::Object(mut members) => {
            if ["metadata", "value", "text"].iter().all(|name| members.contains_key(*name)) {
                members.shift_remove("text");
            }
            Json::Object(members.into_iter().map(|(name, value)| (name, without_text(value))).collect())
        }
        Json::Array(items) => items.into_iter().map(without_text).collect(),
        other => other,
    }
}

/// Accounts for the last second before 1970, which ORC stores as the second after it, and the library writes so
/// (docs/differences.md).
fn as_orc_has_it(found: &Json, expected: &Json) -> Json {
    const SECOND: i64 = 1_000_000;
    match (found, expected) {
        (Json::Object(found), Json::Object(expected)) => {
            let member = |(name, value): (&String, &Json)| {
                (name.clone(), found.get(name).map_or(value.clone(), |found| as_orc_has_it(found, value)))
            };
            Json::Object(expected.iter().map(member).collect())
        }
        (Json::Number(held), Json::Number(moment)) => match (held.as_i64(), moment.as_i64()) {
            (Some(held), Some(moment)) if (-SECOND..0).contains(&moment) && held == moment + SECOND => found.clone(),
            _ => expected.clone(),
        },
        _ => expected.clone(),
    }
}

fn expected(table: &Table, item: &Json) -> Result<Vec<Json>, Failed> {
    let file = std::fs::File::open(table.expected.join(item["rows_file"].as_str().unwrap_or_default()))?;
    let mut rows = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let mut line: Json = serde_json::from_str(&line?)?;
        if line["batch"] == item["rows_batch"] {
            rows.push(line["row"].take());
        }
    }
    Ok(rows)
}
