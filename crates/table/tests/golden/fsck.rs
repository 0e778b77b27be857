//! A check of all rows finds nothing in golden tables, except that the set lacks their earlier metadata files.

use icefield_table::commit::Committed;
use icefield_table::maintain::fsck::{FsckOptions, Level, fsck};
use libtest_mimic::Trial;

use super::tables::Table;

/// One trial per table.
pub fn trials(table: &Table) -> Vec<Trial> {
    let table = table.clone();
    let name = format!("fsck::{}", table.name);
    let check = move || {
        let committed = Committed { location: table.metadata_file.clone(), metadata: table.metadata.clone() };
        let options = FsckOptions { level: Level::Rows, ..FsckOptions::default() };
        let report = fsck(&table.storage, &committed, options)?;
        let is_left_out = |check: &str| check == "metadata-log-missing";
        let unexpected: Vec<_> = report.findings.iter().filter(|finding| !is_left_out(finding.check)).collect();
        if unexpected.is_empty() { Ok(()) } else { Err(format!("{unexpected:#?}").into()) }
    };
    vec![Trial::test(name, check)]
}
