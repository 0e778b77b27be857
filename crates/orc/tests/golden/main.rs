//! Runs all fixtures of ORC golden data: rows, metadata, predicates, probes, vectors, corrupt files.
//!
//! The folder is `ICEFIELD_ORC_GOLDEN`, or else the copy in `tests/data/orc`, or else `../shared/orc`. The code does
//! not depend on the contents of a set, so other sets of the same form can be tested, and missing parts are skipped.

#![allow(clippy::unwrap_used)] // the harness is a test of its own, which clippy does not see

mod corrupt;
mod encode;
mod encrypted;
mod examples;
mod expected;
mod merge;
mod metadata;
mod predicates;
mod rewrite;
mod rows;
mod vectors;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use icefield_orc::proto::EncryptionAlgorithm;
use icefield_orc::{KeyName, KeyProvider, MemoryKeys};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value as Json;

#[global_allocator]
static ALLOCATOR: corrupt::Counting = corrupt::Counting;

/// Creates the trials of a module from a set.
type Module = fn(&Arc<Golden>) -> Vec<Trial>;

/// All modules.
const MODULES: &[Module] = &[
    vectors::trials,
    encode::trials,
    rows::trials,
    metadata::trials,
    predicates::trials,
    rewrite::trials,
    encrypted::trials,
    merge::trials,
    corrupt::trials,
    examples::trials,
];

/// A set of golden data.
#[derive(Debug)]
pub struct Golden {
    pub folder: PathBuf,
    /// One entry per file.
    pub index: Vec<Json>,
}

impl Golden {
    fn find() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let places = ["tests/data/orc", "../shared/orc", "../../shared/orc"].map(|place| root.join(place));
        let folder = match std::env::var_os("ICEFIELD_ORC_GOLDEN") {
            Some(folder) => folder.into(),
            None => places.into_iter().find(|folder| folder.is_dir())?,
        };
        let index = json(&folder.join("expected/index.json")).unwrap_or_default();
        Some(Self { index: index.as_array().cloned().unwrap_or_default(), folder })
    }

    /// The names of all existing files, without their extension.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let names = self.listed().filter(|name| self.has(name));
        names.map(str::to_owned)
    }

    /// The names of listed files that the set lacks.
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        self.listed().filter(|name| !self.has(name))
    }

    fn listed(&self) -> impl Iterator<Item = &str> {
        self.index.iter().filter_map(|entry| entry["file"].as_str()?.strip_suffix(".orc"))
    }

    fn has(&self, name: &str) -> bool {
        self.folder.join("files").join(format!("{name}.orc")).is_file()
    }

    pub fn file(&self, name: &str) -> Result<Vec<u8>, Failed> {
        Ok(std::fs::read(self.folder.join("files").join(format!("{name}.orc")))?)
    }

    /// The expectations for a file, if the set has them: `rows.jsonl`, `meta.json`.
    pub fn expected(&self, name: &str, what: &str) -> Option<String> {
        gunzip(&self.folder.join("expected").join(format!("{name}.{what}.gz")))
    }

    /// All keys, or only the first by name; the set has expected rows for both.
    pub fn keys(&self, first_only: bool) -> Option<Arc<dyn KeyProvider>> {
        Some(Arc::new(self.master_keys(first_only)?))
    }

    /// The same keys, for a writer.
    pub fn master_keys(&self, first_only: bool) -> Option<MemoryKeys> {
        let listed = json(&self.folder.join("expected/keys.json"))?;
        let mut listed = listed.as_array()?.clone();
        listed.sort_by_key(|key| key["name"].as_str().unwrap_or_default().to_owned());
        listed.truncate(if first_only { 1 } else { listed.len() });
        let mut keys = MemoryKeys::default();
        for key in listed {
            let algorithm = (1..3).map(EncryptionAlgorithm::from_number);
            let algorithm = algorithm.into_iter().find(|known| Some(known.name()) == key["algorithm"].as_str())?;
            let (name, version) = (key["name"].as_str()?.to_owned(), key["version"].as_u64()? as u32);
            keys.add(KeyName { name, version, algorithm }, &unhex(key["material"].as_str()?)).ok()?;
        }
        Some(keys)
    }
}

pub fn json(path: &Path) -> Option<Json> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

pub fn gunzip(path: &Path) -> Option<String> {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path).ok()?).read_to_string(&mut text).ok()?;
    Some(text)
}

pub fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A trial named by the module and the case.
pub fn trial(name: String, check: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, check)
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Print a dot per case, like `cargo test --quiet`; `-- --format pretty` names each case.
    arguments.quiet |= arguments.format.is_none();
    let Some(golden) = Golden::find().map(Arc::new) else {
        eprintln!("no ORC golden data: set ICEFIELD_ORC_GOLDEN");
        std::process::exit(1);
    };
    let ignored = golden.left_out().map(|name| trial(format!("files::{name}"), || Ok(())).with_ignored_flag(true));
    let trials = MODULES.iter().flat_map(|make| make(&golden)).chain(ignored).collect();
    libtest_mimic::run(&arguments, trials).exit();
}
