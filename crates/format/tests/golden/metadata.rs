//! Table metadata documents: read, written again, refused (`metadata_*.json`).

use icefield_format::Error;
use icefield_format::metadata::{MetadataBuilder, MetadataUpdate};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::documents::{self, changed, same};
use crate::{Golden, trials};

/// The time of changes; `"now"` in the vectors.
pub const NOW_MS: i64 = 4_000_000_000_000;

/// Documents written by the library: `name`, `doc`, and `out` where it writes something else.
pub fn valid(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("metadata_valid.json", cases, |case| same_again(&case["doc"], &changed(&case["doc"], &case["out"])))
}

/// Documents of old writers: `doc`, and `out` (whole), `error` or `write_error`.
pub fn old(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("metadata_old.json", cases, |case| outcome(&case["doc"], case, || case["out"].clone()))
}

/// Patched documents: `base`, `patch`, and `out` (difference to the base), `error` or `write_error`.
pub fn patch(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let bases = documents::named(golden);
    trials("metadata_patch.json", cases, move |case| {
        let base = &bases[case["base"].as_str().unwrap()];
        let mut document = base.clone();
        for step in case["patch"].as_array().unwrap() {
            documents::patch(&mut document, step["path"].as_str().unwrap(), step.get("value"));
        }
        outcome(&document, case, || changed(base, &case["out"]))
    })
}

/// Upgrades: `name` of a document, `to`, and `out` with the number of `changes`, or `error`.
pub fn upgrade(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let bases = documents::named(golden);
    trials("metadata_upgrade.json", cases, move |case| {
        let document = &bases[case["name"].as_str().unwrap()];
        let metadata = documents::read(document)?;
        let format_version = i32::try_from(case["to"].as_i64().unwrap())?;
        let builder = MetadataBuilder::from_base(&metadata, NOW_MS);
        let upgraded = builder.apply(MetadataUpdate::UpgradeFormatVersion { format_version });
        if case.get("error").is_some() {
            return upgraded.map_or(Ok(()), |_| Err("went through, but must fail".into()));
        }
        let upgraded = upgraded?;
        if upgraded.changes().len() as u64 != case["changes"].as_u64().unwrap() {
            return Err(format!("changes: {:?}", upgraded.changes()).into());
        }
        let mut expected = changed(document, &case["out"]);
        let got = upgraded.build()?.to_json_value();
        expected["last-updated-ms"] = got["last-updated-ms"].clone();
        same(&got, &expected)
    })
}

/// What must become of a document.
fn outcome(document: &Json, case: &Json, expected: impl Fn() -> Json) -> Result<(), Failed> {
    if case.get("error").is_none() && case.get("write_error").is_none() {
        return match documents::read(document) {
            Err(error) if documents::lacks_a_default(document) => placed(&error),
            _ => same_again(document, &expected()),
        };
    }
    match documents::read(document) {
        Err(error) => placed(&error),
        Ok(metadata) if documents::has_unrecognized_type(&metadata) => Ok(()),
        Ok(_) if documents::has_source_ids_alone(document) => Ok(()),
        Ok(_) => Err("was read, but must be refused".into()),
    }
}

/// The document is written again as expected, and what was written is read as the same.
fn same_again(document: &Json, expected: &Json) -> Result<(), Failed> {
    let metadata = documents::read(document)?;
    let written = metadata.to_json_value();
    same(&written, expected)?;
    if documents::read(&written)? == metadata { Ok(()) } else { Err("is read differently when written again".into()) }
}

/// Errors say where; only the format version as a whole may be unsupported.
fn placed(error: &Error) -> Result<(), Failed> {
    match error {
        Error::Corrupt(corrupt) if corrupt.place.starts_with('/') => Ok(()),
        Error::Unsupported(_) => Ok(()),
        other => Err(format!("an error without a place: {other:?}").into()),
    }
}
