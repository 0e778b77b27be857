//! Unpacks and opens golden tables.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::GzDecoder;
use icefield_format::Limits;
use icefield_format::metadata::TableMetadata;
use icefield_table::storage::Storage;
use serde_json::Value as Json;

/// The folder in which the tables were created.
const BASE: &str = "/tmp/icefield-golden";

/// A set of golden data.
pub struct Golden {
    folder: PathBuf,
    scratch: PathBuf,
}

/// A table of the set.
#[derive(Clone)]
pub struct Table {
    pub name: String,
    pub expected: PathBuf,
    /// The contents of `table.json`.
    pub facts: Json,
    /// The location of the metadata, without a scheme.
    pub metadata_file: String,
    pub storage: Storage,
    pub metadata: Arc<TableMetadata>,
}

impl Golden {
    pub fn find() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let places = ["tests/data/golden", "../shared/golden"].map(|place| root.join(place));
        let folder = match std::env::var_os("ICEFIELD_GOLDEN") {
            Some(folder) => PathBuf::from(folder),
            None => places.into_iter().find(|folder| folder.is_dir())?,
        };
        // Concurrent runs, perhaps with other sets, need different folders.
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("golden-{}", std::process::id()));
        Some(Self { folder, scratch })
    }

    /// Removes the unpacked files.
    pub fn clean(&self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }

    /// The cases of `vectors/NAME`; none if the set lacks the file.
    pub fn vectors(&self, name: &str) -> Vec<Json> {
        let Ok(text) = fs::read(self.folder.join("vectors").join(name)) else { return Vec::new() };
        serde_json::from_slice(&text).unwrap()
    }

    /// The tables for which the set has expectations, and the names of those whose files it lacks. A table that cannot
    /// be opened fails the whole run.
    pub fn tables(&self) -> (Vec<Table>, Vec<String>) {
        let Ok(expected) = fs::read_dir(self.folder.join("expected")) else { return Default::default() };
        let mut folders: Vec<PathBuf> = expected.map(|entry| entry.unwrap().path()).collect();
        folders.retain(|folder| folder.join("table.json").is_file());
        folders.sort();
        let (mut tables, mut left_out) = (Vec::new(), Vec::new());
        for folder in folders {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let source = self.folder.join("tables").join(&name);
            if source.is_dir() || source.with_extension("tar.gz").is_file() {
                tables.extend(self.table(folder));
            } else {
                left_out.push(name);
            }
        }
        (tables, left_out)
    }

    fn table(&self, expected: PathBuf) -> Option<Table> {
        let facts: Json = serde_json::from_slice(&fs::read(expected.join("table.json")).ok()?).unwrap();
        let name = expected.file_name()?.to_str()?.to_owned();
        self.unpack(&name);
        let storage = Storage::default()
            .relocated(
                ["", "file:", "file://"].map(|scheme| (format!("{scheme}{BASE}"), self.scratch.display().to_string())),
            )
            .unwrap();
        let file = format!("{BASE}/{name}/{}", facts["metadata_file"].as_str()?);
        let bytes = storage.read(&file).unwrap();
        let metadata =
            TableMetadata::from_json(&bytes, &Limits::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        Some(Table { name, expected, facts, metadata_file: file, storage, metadata: Arc::new(metadata) })
    }

    fn unpack(&self, name: &str) {
        let target = self.scratch.join(name);
        let _ = fs::remove_dir_all(&target);
        let folder = self.folder.join("tables").join(name);
        if folder.is_dir() {
            copy(&folder, &target);
        } else {
            let packed = fs::File::open(folder.with_extension("tar.gz")).unwrap();
            fs::create_dir_all(&self.scratch).unwrap();
            tar::Archive::new(GzDecoder::new(packed)).unpack(&self.scratch).unwrap();
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { fs::copy(&path, &target).map(|_| ()).unwrap() }
    }
}

impl Table {
    /// A gzipped JSON document with expectations, if the set has it. For `plans`, it is the file named by `plans_file`,
    /// or else `plans.json.gz`.
    pub fn expectation(&self, what: &str) -> Option<Json> {
        let named = self.facts[format!("{what}_file")].as_str().map(str::to_owned);
        let packed = fs::File::open(self.expected.join(named.unwrap_or_else(|| format!("{what}.json.gz")))).ok()?;
        Some(serde_json::from_reader(GzDecoder::new(packed)).unwrap())
    }

    /// A location in the table, in the form of the expectations.
    pub fn relative<'a>(&self, location: &'a str) -> &'a str {
        match location.split_once(&format!("{BASE}/{}/", self.name)) {
            Some((_, rest)) => rest,
            None => location,
        }
    }
}
