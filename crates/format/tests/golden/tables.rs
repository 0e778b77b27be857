//! The golden tables: their files, and the rows that the reference reads from their metadata tables.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use icefield_format::Limits;
use icefield_format::metadata::TableMetadata;
use serde_json::Value as Json;

use crate::Golden;

/// A table with all its files in memory.
#[derive(Debug)]
pub struct Table {
    pub name: String,
    /// The files by path within the table's folder.
    pub files: BTreeMap<String, Vec<u8>>,
    pub metadata: TableMetadata,
    /// Lines of `metadata_tables.jsonl.gz`: table and row.
    expected: Vec<Json>,
}

/// The names of all tables for which the set has expectations.
pub fn names(golden: &Golden) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(golden.folder.join("expected")) else { return Vec::new() };
    let mut names: Vec<_> = folder
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| golden.folder.join("expected").join(name).join("table.json").is_file())
        .collect();
    names.sort();
    names
}

/// Whether the set has the files of a table, and the expectations.
pub fn is_there(golden: &Golden, name: &str) -> bool {
    let source = golden.folder.join("tables").join(name);
    let expected = golden.folder.join("expected").join(name).join("table.json");
    expected.is_file() && (source.is_dir() || source.with_extension("tar.gz").is_file())
}

impl Table {
    pub fn load(golden: &Golden, name: &str) -> Self {
        let expected = golden.folder.join("expected").join(name);
        let description: Json = serde_json::from_slice(&std::fs::read(expected.join("table.json")).unwrap()).unwrap();
        let source = golden.folder.join("tables").join(name);
        let files = if source.is_dir() { folder(&source) } else { archive(&source.with_extension("tar.gz"), name) };
        let document = &files[description["metadata_file"].as_str().unwrap()];
        let metadata = TableMetadata::from_json(document, &Limits::default()).unwrap();
        let lines = match std::fs::read(expected.join("metadata_tables.jsonl.gz")) {
            Ok(compressed) => inflate(&compressed),
            Err(_) => Vec::new(),
        };
        let lines = String::from_utf8(lines).unwrap();
        let expected = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { name: name.to_owned(), files, metadata, expected }
    }

    /// The rows of a metadata table.
    pub fn rows(&self, table: &str) -> impl Iterator<Item = &Json> {
        self.expected.iter().filter(move |line| line["table"] == table).map(|line| &line["row"])
    }

    /// The bytes of the file at a location.
    pub fn file(&self, location: &str) -> Option<&[u8]> {
        let folder = format!("/{}/", self.name);
        let (_, path) = location.split_once(&folder)?;
        self.files.get(path).map(Vec::as_slice)
    }
}

fn inflate(compressed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(compressed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn folder(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
    }
    files
}

/// The files of a gzipped tar archive (POSIX ustar, with long names as `path` of an extended header).
fn archive(path: &Path, name: &str) -> BTreeMap<String, Vec<u8>> {
    let bytes = inflate(&std::fs::read(path).unwrap());
    let text = |field: &[u8]| String::from_utf8(field.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap();
    let mut files = BTreeMap::new();
    let mut rest = bytes.as_slice();
    let mut long_name = None;
    while rest.len() >= 512 && rest[0] != 0 {
        let (header, after) = rest.split_at(512);
        let size = usize::from_str_radix(text(&header[124..136]).trim(), 8).unwrap();
        let data = &after[..size];
        rest = &after[size.div_ceil(512) * 512..];
        match header[156] {
            b'x' => {
                let lines = String::from_utf8(data.to_vec()).unwrap();
                long_name = lines.lines().find_map(|line| Some(line.split_once(" path=")?.1.to_owned()));
            }
            b'0' | 0 => {
                let prefix = text(&header[345..500]);
                let short = text(&header[..100]);
                let plain = if prefix.is_empty() { short } else { format!("{prefix}/{short}") };
                let full = long_name.take().unwrap_or(plain);
                let inner = full.trim_start_matches("./").strip_prefix(name).unwrap().trim_start_matches('/');
                files.insert(inner.to_owned(), data.to_vec());
            }
            _ => {}
        }
    }
    files
}
