//! Table metadata documents that are read and written again, or rejected (`metadata_*.json`).

use icefield_format::metadata::{MetadataBuilder, MetadataUpdate, TableMetadata};
use icefield_format::{Error, Limits};
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;

use crate::documents::{self, changed, same};
use crate::{Golden, left_out, trial, trials};

/// The time of changes; `"now"` in the vectors.
pub const NOW_MS: i64 = 4_000_000_000_000;

/// Documents written by the library: `name`, `doc`, and `out` if it writes something else.
pub fn valid(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("metadata_valid.json", cases, |case| same_again(&case["doc"], &changed(&case["doc"], &case["out"])))
}

/// Documents of old writers: `doc`, and `out` (whole), `error` or `write_error`.
pub fn old(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("metadata_old.json", cases, |case| outcome(&case["doc"], case, || case["out"].clone()))
}

/// Patched documents: `base`, `patch`, and `out` (difference to the base), `error` or `write_error`.
pub fn patch(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    documents::trials_on(golden, "metadata_patch.json", cases, "base", |base, case| {
        let base = base.ok_or("no base")?;
        let mut document = base.clone();
        for step in case["patch"].as_array().unwrap() {
            documents::patch(&mut document, step["path"].as_str().unwrap(), step.get("value"));
        }
        if counts_from_below_zero(&document) {
            return match documents::read(&document) {
                Err(error) if error.to_string().contains("must not be negative") => Ok(()),
                other => Err(format!("numbers below zero: {other:?}").into()),
            };
        }
        outcome(&document, case, || changed(base, &case["out"]))
    })
}

/// Whether a document has a negative number that can only grow from 0, which the library loads (docs/differences.md,
/// "Numbers below zero").
fn counts_from_below_zero(document: &Json) -> bool {
    ["last-sequence-number", "last-updated-ms", "last-column-id", "last-partition-id", "next-row-id"]
        .iter()
        .any(|name| document[name].as_i64().is_some_and(|number| number < 0))
}

/// Upgrades: `name` of a document, `to`, and `out` with the number of `changes`, or `error`.
pub fn upgrade(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    documents::trials_on(golden, "metadata_upgrade.json", cases, "name", |document, case| {
        let document = document.ok_or("no document")?;
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

/// Checks the outcome of a document: the expected document or error.
fn outcome(document: &Json, case: &Json, expected: impl Fn() -> Json) -> Result<(), Failed> {
    if case.get("error").is_none() && case.get("write_error").is_none() {
        return match documents::read(document) {
            Err(error) if documents::lacks_a_default(document) => placed(&error),
            _ => same_again(document, &expected()),
        };
    }
    let without_nulls = documents::without_nulls(document);
    match documents::read(document) {
        Err(error) => placed(&error),
        Ok(metadata) if without_nulls != *document && documents::read(&without_nulls)? == metadata => Ok(()),
        Ok(metadata) if documents::has_unrecognized_type(&metadata) => Ok(()),
        Ok(_) if documents::has_source_ids_alone(document) => Ok(()),
        Ok(_) => Err("was read, but must be refused".into()),
    }
}

/// Checks that the document is written as expected, and that the result is read as the same metadata.
fn same_again(document: &Json, expected: &Json) -> Result<(), Failed> {
    let metadata = documents::read(document)?;
    let written = metadata.to_json_value();
    same(&written, &documents::raised(expected))?;
    if documents::read(&written)? == metadata { Ok(()) } else { Err("is read differently when written again".into()) }
}

/// Checks that an error names its place; only an unsupported format version need not.
fn placed(error: &Error) -> Result<(), Failed> {
    match error {
        Error::Corrupt(corrupt) if corrupt.place.starts_with('/') => Ok(()),
        Error::Unsupported(_) => Ok(()),
        other => Err(format!("an error without a place: {other:?}").into()),
    }
}

/// `corrupt/corrupt.json`: metadata files that must not load.
pub fn corrupt(golden: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    let is_metadata = |case: &Json| case["replaces"] == case["metadata_file"] && case["noticed_by"] == "load";
    let folder = golden.folder.join("corrupt");
    let trial_of = |(number, case): (usize, Json)| {
        let file = folder.join(case["with"].as_str().unwrap_or_default());
        if !file.is_file() {
            return left_out("corrupt.json", number);
        }
        trial("corrupt.json", number, move || {
            match TableMetadata::from_json(&std::fs::read(file)?, &Limits::default()) {
                Err(_) => Ok(()),
                Ok(metadata) if documents::has_unrecognized_type(&metadata) => Ok(()),
                Ok(_) => Err(format!("loads, although {}", case["what"]).into()),
            }
        })
    };
    cases.into_iter().filter(is_metadata).enumerate().map(trial_of).collect()
}

/// `metadata_bases.json`: documents written by the library. With bytes removed, flipped and replaced they are read or
/// rejected, and everything that is read can be written and read again.
pub fn mutated(_: &Golden, cases: Vec<Json>) -> Vec<Trial> {
    trials("metadata_bases.json", cases, |case| {
        same_again(&case["doc"], &case["doc"])?;
        let text = case["doc"].to_string().into_bytes();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for round in 0..3000 {
            let mutant = random.mutate(&text);
            let Ok(metadata) = TableMetadata::from_json(&mutant, &Limits::default()) else { continue };
            let again = TableMetadata::from_json(metadata.to_json().as_bytes(), &Limits::default());
            if again.as_ref() != Ok(&metadata) {
                let mutant = String::from_utf8_lossy(&mutant);
                return Err(format!("round {round}: read again as {again:?}: {mutant}").into());
            }
        }
        Ok(())
    })
}

/// A small random number generator (xorshift), so that every run tests the same mutants.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn mutate(&mut self, text: &[u8]) -> Vec<u8> {
        let mut mutant = text.to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(mutant.len());
            match self.below(6) {
                0 => mutant.truncate(at.max(1)),
                1 => mutant[at] ^= 1 << self.below(8),
                // Replace digits by digits: the document is still JSON, but with other ids.
                2 | 3 => {
                    if let Some(digit) = mutant[at..].iter_mut().find(|byte| byte.is_ascii_digit()) {
                        *digit = b'0' + self.below(10) as u8;
                    }
                }
                4 => drop(mutant.splice(at..at, b"null".iter().copied())),
                _ => {
                    let end = mutant.len().min(at + self.below(40));
                    mutant.drain(at..end);
                    if mutant.is_empty() {
                        mutant.push(b'{');
                    }
                }
            }
        }
        mutant
    }
}
