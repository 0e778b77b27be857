//! Example files of Apache ORC, where they are: every row is read, and what must be refused is.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use icefield_orc::{ReadOptions, Reader};
use libtest_mimic::{Failed, Trial};

use super::{Golden, gunzip, trial};

pub fn trials(golden: &Arc<Golden>) -> Vec<Trial> {
    // They stay out of the repository's own copy of the set.
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
    match (read(bytes), refused || version) {
        (Ok(_), true) => Err("was not refused".into()),
        (Err(_), true) => Ok(()),
        (Err(error), false) => Err(error.into()),
        (Ok(rows), false) => {
            let expected = lines.map_or(rows, |lines| lines.lines().count());
            if rows == expected { Ok(()) } else { Err(format!("{expected} rows expected, {rows}").into()) }
        }
    }
}

/// Whether the postscript names a major version after those of the draft: `[19, 99]` in the examples.
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
