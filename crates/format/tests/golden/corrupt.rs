//! Damaged manifests, manifest lists, Puffin files and deletion vectors (`corrupt/corrupt.json`) give typed errors,
//! never panics.

use icefield_format::manifest::{self, ManifestFile, Metrics, ReadOptions};
use icefield_format::puffin::{self, DeletionVector, Footer};
use icefield_format::{Error, Limits, Result};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::Golden;
use crate::tables::{self, Table};

/// One trial for each damaged file of these kinds.
pub fn trials(golden: &Golden) -> Vec<Trial> {
    let Ok(text) = std::fs::read(golden.folder.join("corrupt/corrupt.json")) else { return Vec::new() };
    let cases: Vec<Json> = serde_json::from_slice(&text).unwrap();
    let ours = |case: &Json| {
        let replaces = case["replaces"].as_str().unwrap();
        let avro = replaces.starts_with("metadata/") && replaces.ends_with(".avro");
        case["with"].is_string() && (avro || replaces.ends_with(".puffin") || replaces.ends_with(".stats"))
    };
    let trial = |case: Json| {
        let golden = golden.clone();
        let (file, table) = (case["with"].as_str().unwrap_or_default(), case["table"].as_str().unwrap_or_default());
        // The manifests of the table say what a deletion vector should contain.
        let needs_table = case["replaces"].as_str().is_some_and(|replaces| replaces.ends_with(".puffin"));
        let has_table = !needs_table || tables::is_there(&golden, table);
        let is_there = golden.folder.join("corrupt").join(file).is_file() && has_table;
        let name = format!("corrupt::{}", case["name"].as_str().unwrap_or_default());
        Trial::test(name, move || check(&golden, &case)).with_ignored_flag(!is_there)
    };
    cases.into_iter().filter(ours).map(trial).collect()
}

fn check(golden: &Golden, case: &Json) -> Result<(), Failed> {
    let bytes = std::fs::read(golden.folder.join("corrupt").join(case["with"].as_str().unwrap()))?;
    let replaces = case["replaces"].as_str().unwrap();
    let outcome = if replaces.ends_with(".puffin") {
        deletion_vectors(golden, case, &bytes)
    } else if replaces.ends_with(".stats") {
        statistics(&bytes)
    } else if replaces.starts_with("metadata/snap-") {
        manifest::list::read(&bytes, &Limits::default()).map(|_| ())
    } else {
        let options = ReadOptions { metrics: Metrics::all(), ..ReadOptions::default() };
        manifest::entries::read(&bytes, &options, &Limits::default()).map(|_| ())
    };
    // A file that the reference reads, or may read, can be read here too.
    let may_pass = case["noticed_by"].as_str().is_some_and(|by| by.contains("may go on"))
        || case["reference"].as_object().is_some_and(|outcomes| outcomes.values().all(|outcome| outcome == "ok"));
    match outcome {
        Ok(()) if may_pass => Ok(()),
        Ok(()) => Err("it was read as if it were whole".into()),
        Err(Error::Corrupt(_) | Error::Unsupported(_)) => Ok(()),
        Err(error) => Err(format!("an error of another kind: {error:?}").into()),
    }
}

fn statistics(bytes: &[u8]) -> Result<()> {
    let limits = Limits::default();
    let footer = Footer::read(bytes, &limits)?;
    let mut budget = limits.budget(bytes.len());
    footer.blobs.iter().try_for_each(|blob| puffin::read_blob(bytes, blob, &limits, &mut budget).map(|_| ()))
}

/// Reads every deletion vector that is in the file according to the delete manifests of the table.
fn deletion_vectors(golden: &Golden, case: &Json, bytes: &[u8]) -> Result<()> {
    let table = Table::load(golden, case["table"].as_str().unwrap());
    let replaces = case["replaces"].as_str().unwrap();
    for (_, manifest) in crate::manifests::manifests(&table) {
        let entries = delete_entries(&table, &manifest)?;
        for row in (0..entries.len()).filter(|row| entries.file_path.value(*row).ends_with(replaces)) {
            let start = usize::try_from(entries.content_offset.value(row)).unwrap();
            let length = usize::try_from(entries.content_size_in_bytes.value(row)).unwrap();
            let blob = bytes.get(start..start + length);
            let blob = blob.ok_or_else(|| Error::corrupt("deletion vector", "the file ends before it"))?;
            let vector = DeletionVector::from_bytes(blob, &Limits::default())?;
            vector.check_cardinality(entries.record_count.value(row))?;
        }
    }
    Ok(())
}

fn delete_entries(table: &Table, manifest: &ManifestFile) -> Result<manifest::Entries> {
    let bytes = table.file(&manifest.manifest_path).unwrap();
    manifest::entries::read(
        bytes,
        &ReadOptions { inherit: Some(manifest), ..ReadOptions::default() },
        &Limits::default(),
    )
}
