//! The filters of `expected/*/plans.json.gz`: the SQL text of a filter means the same as its JSON.

use std::path::Path;

use icefield_format::expr::{Converted, Expr, Expression, Literal, Predicate, Test};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::{Golden, trial};

/// One trial per table.
pub fn filters(golden: &Golden, _: Vec<Json>) -> Vec<Trial> {
    let tables = std::fs::read_dir(golden.folder.join("expected")).into_iter().flatten().flatten();
    let mut files: Vec<_> =
        tables.map(|table| table.path().join("plans.json.gz")).filter(|file| file.is_file()).collect();
    files.sort();
    let check =
        |(number, file): (usize, std::path::PathBuf)| trial("plans.json.gz", number, move || check_table(&file));
    files.into_iter().enumerate().map(check).collect()
}

fn check_table(file: &Path) -> Result<(), Failed> {
    let packed = std::fs::read(file)?;
    // The last four bytes of a gzip file are the uncompressed length.
    let (_, length) = packed.split_last_chunk::<4>().ok_or("no gzip")?;
    let mut plans = vec![0; u32::from_le_bytes(*length) as usize];
    libdeflater::Decompressor::new().gzip_decompress(&packed, &mut plans)?;
    let plans: Vec<Json> = serde_json::from_slice(&plans)?;
    for plan in plans.iter().filter(|plan| plan.get("error").is_none()) {
        let Some(sql) = plan["sql"].as_str() else { continue };
        let (text, json) = (Expr::parse(sql)?.rewrite_not(), Expr::from_json(&plan["expr"])?.rewrite_not());
        if !same_expression(&text, &json) {
            return Err(format!("{sql}: got {text}, expected {json}").into());
        }
    }
    Ok(())
}

fn same_expression(text: &Expr, json: &Expr) -> bool {
    match (text, json) {
        (Expression::And(a, b), Expression::And(c, d)) | (Expression::Or(a, b), Expression::Or(c, d)) => {
            same_expression(a, c) && same_expression(b, d)
        }
        (Expression::Predicate(a), Expression::Predicate(b)) => same_predicate(a, b),
        (text, json) => text == json,
    }
}

fn same_predicate(text: &Predicate, json: &Predicate) -> bool {
    let all = |a: &[Literal], b: &[Literal]| a.iter().all(|a| b.iter().any(|b| same_literal(a, b)));
    let same_test = match (&text.test, &json.test) {
        (Test::Compare(a, x), Test::Compare(b, y)) => a == b && same_literal(x, y),
        (Test::StartsWith(x), Test::StartsWith(y)) | (Test::NotStartsWith(x), Test::NotStartsWith(y)) => {
            same_literal(x, y)
        }
        (Test::In(a), Test::In(b)) | (Test::NotIn(a), Test::NotIn(b)) => {
            all(a, b) && b.iter().all(|y| a.iter().any(|x| same_literal(x, y)))
        }
        (a, b) => a == b,
    };
    text.term == json.term && same_test
}

/// Whether a literal from JSON equals a literal from text, once it is converted to the same type.
fn same_literal(text: &Literal, json: &Literal) -> bool {
    let converted = json.convert(&text.ty().clone().into());
    text == json || matches!(converted, Ok(Converted::Value(value)) if value == *text.value())
}
