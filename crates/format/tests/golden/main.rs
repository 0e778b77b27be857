//! Runs all vector files of the golden data that this crate covers, one test per case.
//!
//! The folder is `ICEFIELD_GOLDEN`, or else the copy in `tests/data/golden`, or else `../shared/golden`. The code does
//! not depend on the contents of a set, so other sets of the same form can be tested. A file that a set lacks is
//! skipped, and cases of other files that need it are ignored.

// Clippy does not recognize a test without the harness, and a malformed set may end it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value as Json;

use documents::{metadata, updates};
use schemas::{evolution, name_mapping, types};

mod corrupt;
mod documents;
mod expressions;
mod manifests;
mod plans;
mod row_lineage;
mod schemas;
mod specs;
mod tables;
mod transforms;
mod typed;
mod values;

/// Creates trials from the cases of one vector file.
type Module = fn(&Golden, Vec<Json>) -> Vec<Trial>;

/// All vector modules: the file that each reads, and the function that creates its trials.
const MODULES: &[(&str, Module)] = &[
    ("../corrupt/corrupt.json", metadata::corrupt),
    ("bounds.json", values::truncated_bounds),
    ("evolution.json", evolution::trials),
    ("expire.json", updates::expire),
    ("expr.json", expressions::expressions),
    ("hash.json", transforms::hash),
    ("manifest_eval.json", expressions::manifest_eval),
    ("metadata_bases.json", metadata::mutated),
    ("metadata_old.json", metadata::old),
    ("metadata_patch.json", metadata::patch),
    ("metadata_upgrade.json", metadata::upgrade),
    ("metadata_valid.json", metadata::valid),
    ("metrics.json", expressions::metrics),
    ("name_mapping.json", name_mapping::trials),
    ("orders.json", specs::orders),
    ("paths.json", transforms::paths),
    ("plans.json.gz", plans::filters),
    ("promotion.json", types::promotions),
    ("properties.json", updates::property_names),
    ("requirements.json", updates::requirements),
    ("residuals.json", expressions::residuals),
    ("row_lineage.json", row_lineage::inheritance),
    ("schemas.json", schemas::trials),
    ("single_binary.json", values::single_binary),
    ("single_json.json", values::single_json),
    ("spec_updates.json", specs::spec_updates),
    ("specs.json", specs::specs),
    ("transform_meta.json", transforms::meta),
    ("transform_parse.json", transforms::parse),
    ("transforms.json", transforms::results),
    ("types.json", types::names),
    ("updates.json", updates::updates),
];

/// A set of golden data.
#[derive(Debug, Clone)]
pub struct Golden {
    folder: PathBuf,
}

impl Golden {
    fn find() -> Option<Self> {
        if let Some(folder) = std::env::var_os("ICEFIELD_GOLDEN") {
            return Some(Self { folder: folder.into() });
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        ["tests/data/golden", "../shared/golden"]
            .iter()
            .map(|place| root.join(place))
            .find(|folder| folder.is_dir())
            .map(|folder| Self { folder })
    }

    /// The cases of `vectors/NAME`; none if the set lacks the file.
    pub fn vectors(&self, name: &str) -> Vec<Json> {
        let path = self.folder.join("vectors").join(name);
        let Ok(text) = std::fs::read(&path) else { return Vec::new() };
        match serde_json::from_slice(&text) {
            Ok(cases) => cases,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                std::process::exit(1);
            }
        }
    }
}

/// A trial named by the file and the number of the case.
pub fn trial(file: &str, number: usize, check: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(format!("{file}::{number}"), check)
}

/// A case whose base is missing in the set, which is counted as ignored.
pub fn left_out(file: &str, number: usize) -> Trial {
    trial(file, number, || Ok(())).with_ignored_flag(true)
}

/// One trial per case, numbered in the order of the file.
pub fn trials<F>(file: &'static str, cases: Vec<Json>, check: F) -> Vec<Trial>
where
    F: Fn(&Json) -> Result<(), Failed> + Clone + Send + 'static,
{
    let trial_of = |(number, case)| {
        let check = check.clone();
        trial(file, number, move || check(&case))
    };
    cases.into_iter().enumerate().map(trial_of).collect()
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Print a dot per case, like `cargo test --quiet`; `-- --format pretty` names each case.
    arguments.quiet |= arguments.format.is_none();
    let Some(golden) = Golden::find() else {
        eprintln!("no golden data: set ICEFIELD_GOLDEN");
        std::process::exit(1);
    };
    let mut trials: Vec<_> = MODULES.iter().flat_map(|(file, make)| make(&golden, golden.vectors(file))).collect();
    trials.extend(manifests::trials(&golden));
    trials.extend(corrupt::trials(&golden));
    libtest_mimic::run(&arguments, trials).exit();
}
