//! Example files of Apache ORC, if they are available: every row is read, and invalid files are rejected.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use icefield_orc::proto::{Type, TypeKind};
use icefield_orc::{Kind, ReadOptions, Reader, TypeDescription};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value as Json, json};

use super::expected::{SEVEN_DIGITS, timestamp};
use super::rows::{check_rows, parse};
use super::{Golden, gunzip, hex, trial};

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    // They are not in the repository's copy of the golden set.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = ["../../../shared", "../../../../shared"].map(|up| root.join(up).join("orc/apache-examples"));
    let folders = std::iter::once(golden.folder.join("apache-examples")).chain(shared);
    let Some(folder) = folders.into_iter().find(|folder| folder.is_dir()) else { return Vec::new() };
    let mut trials = Vec::new();
    for (part, refused) in [("", false), ("encrypted", false), ("corrupt", true)] {
        let Ok(entries) = std::fs::read_dir(folder.join(part)) else { continue };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "orc"));
        paths.sort();
        for path in paths {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let lines = gunzip(&folder.join(format!("expected/{name}.jsn.gz")));
            trials.push(trial(format!("examples::{name}"), move || check(&path, lines, refused)));
        }
    }
    trials
}

fn check(path: &Path, lines: Option<String>, refused: bool) -> Result<(), Failed> {
    let bytes = Bytes::from(std::fs::read(path)?);
    let version = future_version(&bytes);
    match (read(bytes.clone()), refused || version) {
        (Ok(_), true) => Err("was not refused".into()),
        (Err(_), true) => Ok(()),
        (Err(error), false) => Err(error.into()),
        (Ok(_), false) => lines.map_or(Ok(()), |lines| check_values(&bytes, &lines)),
    }
}

/// Compares a file with the rows of the Java reader in the time zone of Los Angeles.
fn check_values(bytes: &Bytes, lines: &str) -> Result<(), Failed> {
    let reader = Reader::open(bytes.clone())?;
    let (file, schema) = (reader.metadata(), &reader.metadata().schema);
    SEVEN_DIGITS.set(true);
    // Decimals of Hive 0.11 have no scale in their type; the expected rows are from a reader that truncates them to six
    // digits.
    let typeless = |node: &Type| node.kind == Some(TypeKind::Decimal) && node.precision.is_none();
    if file.footer.types.iter().any(typeless) {
        return Ok(());
    }
    let rows: Vec<Json> = parse(lines)?.iter().map(|row| adapt(row, schema)).collect();
    check_rows(bytes, &rows, None, Some("America/Los_Angeles"))
}

/// Converts a value from the form of Apache's files to that of the fixtures: bytes are lists of signed numbers,
/// decimals numbers, maps lists of objects, dates text.
fn adapt(value: &Json, node: &TypeDescription) -> Json {
    let child = |value: &Json, index: usize| node.children.get(index).map_or(Json::Null, |node| adapt(value, node));
    match (&node.kind, value) {
        (_, Json::Null) => Json::Null,
        (Kind::Binary, Json::Array(list)) => {
            json!(hex(&list.iter().map(|byte| byte.as_i64().unwrap_or_default() as u8).collect::<Vec<u8>>()))
        }
        (Kind::Decimal { scale, .. }, Json::Number(number)) => {
            // The shortest text of the number has the written digits; pad them with zeros to the scale of the type.
            let text = number.to_string();
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let point = if *scale > 0 { "." } else { "" };
            json!(format!("{whole}{point}{fraction:0<scale$}", scale = usize::from(*scale)))
        }
        (Kind::Date, Json::String(day)) => {
            json!(timestamp(&format!("{day} 00:00:00")).map(|(seconds, _)| seconds / 86_400))
        }
        (Kind::List, Json::Array(list)) => list.iter().map(|item| child(item, 0)).collect(),
        (Kind::Map, Json::Array(list)) => {
            list.iter().map(|pair| json!([child(&pair["key"], 0), child(&pair["value"], 1)])).collect()
        }
        (Kind::Struct, Json::Object(fields)) => {
            let names = node.names.iter().enumerate();
            names.map(|(index, name)| (name.clone(), child(fields.get(name).unwrap_or(&Json::Null), index))).collect()
        }
        (_, other) => other.clone(),
    }
}

/// Whether the major version in the postscript is later than that of the draft: `[19, 99]` in the examples.
fn future_version(bytes: &[u8]) -> bool {
    use icefield_orc::proto::{Message, PostScript};
    let Some((length, rest)) = bytes.split_last() else { return false };
    let start = rest.len().saturating_sub(usize::from(*length));
    PostScript::decode(&rest[start..])
        .is_ok_and(|postscript| postscript.version.first().is_some_and(|major| *major > 1))
}

fn read(bytes: Bytes) -> icefield_orc::Result<usize> {
    let reader = Reader::open(bytes)?;
    let mut rows = 0;
    for batch in reader.batches(ReadOptions::default())? {
        rows += batch?.num_rows();
    }
    Ok(rows)
}
