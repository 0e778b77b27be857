//! The summary of a snapshot ("Snapshots", optional summary fields in Appendix F), as the Java library writes it.

use std::collections::{BTreeMap, BTreeSet};

use icefield_format::manifest::list::ManifestFile;
use icefield_format::manifest::{DataFile, FileContent, FileFormat};
use icefield_format::metadata::{Operation, StringMap, Summary};

use crate::error::{Error, Result};

/// Each total, the count that increases it and the count that reduces it.
const TOTALS: [(&str, &str, &str); 6] = [
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
];

/// Counts of changes, for the whole snapshot or one partition.
#[derive(Debug, Clone, Default)]
struct Counts {
    known: BTreeMap<&'static str, i64>,
    /// Counts with an unknown part: some old imports have files without a row count.
    unknown: BTreeSet<&'static str>,
}

/// The order of counts in the text of a partition.
const ORDER: [&str; 18] = [
    "added-data-files",
    "deleted-data-files",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "added-delete-files",
    "removed-delete-files",
    "added-dvs",
    "removed-dvs",
    "added-records",
    "deleted-records",
    "added-files-size",
    "removed-files-size",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
];

/// The names of counts for added files, or those for removed ones.
struct Names {
    size: &'static str,
    data_files: &'static str,
    records: &'static str,
    delete_files: &'static str,
    vectors: &'static str,
    position_files: &'static str,
    positions: &'static str,
    equality_files: &'static str,
    equalities: &'static str,
}

const ADDED: Names = Names {
    size: "added-files-size",
    data_files: "added-data-files",
    records: "added-records",
    delete_files: "added-delete-files",
    vectors: "added-dvs",
    position_files: "added-position-delete-files",
    positions: "added-position-deletes",
    equality_files: "added-equality-delete-files",
    equalities: "added-equality-deletes",
};

const REMOVED: Names = Names {
    size: "removed-files-size",
    data_files: "deleted-data-files",
    records: "deleted-records",
    delete_files: "removed-delete-files",
    vectors: "removed-dvs",
    position_files: "removed-position-delete-files",
    positions: "removed-position-deletes",
    equality_files: "removed-equality-delete-files",
    equalities: "removed-equality-deletes",
};

impl Counts {
    fn add(&mut self, name: &'static str, count: i64) {
        let known = self.known.entry(name).or_default();
        *known = known.saturating_add(count);
    }

    fn add_rows(&mut self, name: &'static str, file: &DataFile) {
        match file.record_count {
            ..0 => drop(self.unknown.insert(name)),
            rows => self.add(name, rows),
        }
    }

    fn count(&mut self, file: &DataFile, names: &Names) {
        // For a deletion vector, count only its blob, not the whole Puffin file.
        self.add(names.size, file.content_size_in_bytes.unwrap_or(file.file_size_in_bytes));
        match file.content {
            FileContent::Data => {
                self.add(names.data_files, 1);
                self.add_rows(names.records, file);
            }
            FileContent::PositionDeletes => {
                let vector = file.format() == Some(FileFormat::Puffin);
                self.add(if vector { names.vectors } else { names.position_files }, 1);
                self.add(names.delete_files, 1);
                self.add_rows(names.positions, file);
            }
            FileContent::EqualityDeletes => {
                self.add(names.equality_files, 1);
                self.add(names.delete_files, 1);
                self.add_rows(names.equalities, file);
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        other.known.iter().for_each(|(name, count)| self.add(name, *count));
        self.unknown.extend(&other.unknown);
    }

    /// The counts above zero.
    fn shown(&self) -> impl Iterator<Item = (&'static str, i64)> {
        ORDER.iter().filter_map(|name| Some((*name, *self.known.get(name)?))).filter(|(_, count)| *count > 0)
    }
}

/// Collects the entries of a summary.
#[derive(Debug, Clone, Default)]
pub struct SummaryBuilder {
    counts: Counts,
    partitions: BTreeMap<String, Counts>,
    /// Entries that the operation sets.
    entries: StringMap,
    /// Number of removed entries whose file the same manifest lists more than once.
    duplicates: i64,
    /// Counts that only one operation has.
    notes: BTreeMap<&'static str, usize>,
    /// Whether files were added whose partitions are unknown.
    unknown_partitions: bool,
    /// Totals counted from all files; `None` if they follow from those of the parent.
    totals: Option<BTreeMap<&'static str, i64>>,
}

impl SummaryBuilder {
    /// Counts a file added to the partition with this path; the path is empty in an unpartitioned table.
    pub fn added(&mut self, file: &DataFile, partition: String) {
        self.counts.count(file, &ADDED);
        self.partitions.entry(partition).or_default().count(file, &ADDED);
    }

    /// Counts a file removed from the partition with this path.
    pub fn removed(&mut self, file: &DataFile, partition: String) {
        self.counts.count(file, &REMOVED);
        self.partitions.entry(partition).or_default().count(file, &REMOVED);
    }

    /// Sets an entry of the operation itself; a caller's entry of the same name takes precedence.
    pub fn set(&mut self, name: &str, value: &str) {
        self.entries.insert(name.to_owned(), value.to_owned());
    }

    /// Counts a removed file that the same manifest lists again; its size and rows are counted once.
    pub fn removed_again(&mut self) {
        self.duplicates += 1;
    }

    /// Counts an appended manifest of added data files: only the number of files and rows is known, not sizes and
    /// partitions.
    pub fn appended(&mut self, manifest: &ManifestFile) {
        self.counts.add(ADDED.data_files, manifest.added_files_count.map_or(0, i64::from));
        self.counts.add(ADDED.records, manifest.added_rows_count.unwrap_or(0));
        self.unknown_partitions = true;
    }

    /// Sets a count that only this operation has.
    pub fn note(&mut self, name: &'static str, count: usize) {
        self.notes.insert(name, count);
    }

    /// Sets the totals, counted from all files of the snapshot, instead of computing them from those of the parent. A
    /// total that is not among them is left out of the summary.
    pub(crate) fn set_totals(&mut self, totals: BTreeMap<&'static str, i64>) {
        self.totals = Some(totals);
    }

    /// Adds the counts of another summary.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for (path, counts) in &other.partitions {
            match self.partitions.get_mut(path) {
                Some(known) => known.merge(counts),
                None => drop(self.partitions.insert(path.clone(), counts.clone())),
            }
        }
        self.duplicates += other.duplicates;
        self.unknown_partitions |= other.unknown_partitions;
    }

    /// A count by its name in the summary; 0 if missing.
    pub fn count(&self, name: &str) -> i64 {
        self.counts.known.get(name).copied().unwrap_or(0)
    }

    /// Builds the summary. `previous` is the summary of the parent snapshot, if there is one. Changed partitions are
    /// listed one by one up to `partition_limit`.
    pub fn build(
        &self,
        operation: Operation,
        properties: &StringMap,
        previous: Option<&StringMap>,
        partition_limit: usize,
    ) -> Result<Summary> {
        let mut summary = Summary::new(operation);
        let entries = &mut summary.properties;
        entries.extend(self.entries.iter().map(|(name, value)| (name.clone(), value.clone())));
        entries.extend(properties.iter().map(|(name, value)| (name.clone(), value.clone())));
        entries.shift_remove("operation");
        let mut computed = StringMap::new();
        computed.extend(self.counts.shown().map(|(name, count)| (name.to_owned(), count.to_string())));
        computed.extend(self.notes.iter().map(|(name, count)| ((*name).to_owned(), count.to_string())));
        if self.duplicates > 0 {
            computed.insert("deleted-duplicate-files".to_owned(), self.duplicates.to_string());
        }
        if !self.unknown_partitions {
            self.partitions(partition_limit, &mut computed);
        }
        for (total, added, removed) in TOTALS {
            let count = match &self.totals {
                Some(totals) => totals.get(total).copied(),
                None => self.total(previous, total, added, removed),
            };
            if let Some(count) = count {
                computed.insert(total.to_owned(), count.to_string());
            }
        }
        if let Some(name) = computed.keys().find(|name| entries.contains_key(*name)) {
            return Err(Error::invalid(format!(
                "the summary entry {name} is computed from the files of the snapshot: leave it out of the properties"
            )));
        }
        entries.extend(computed);
        Ok(summary)
    }

    /// Adds the entries about partitions.
    fn partitions(&self, limit: usize, entries: &mut StringMap) {
        entries.insert("changed-partition-count".to_owned(), self.partitions.len().to_string());
        if self.partitions.len() > limit {
            return;
        }
        if !self.partitions.is_empty() {
            entries.insert("partition-summaries-included".to_owned(), "true".to_owned());
        }
        for (path, counts) in self.partitions.iter().filter(|(path, _)| !path.is_empty()) {
            let text: Vec<String> = counts.shown().map(|(name, count)| format!("{name}={count}")).collect();
            entries.insert(format!("partitions.{path}"), text.join(","));
        }
    }

    /// A total; `None` if the previous total, or the count that increases or reduces it, is unknown.
    fn total(&self, previous: Option<&StringMap>, total: &str, added: &str, removed: &str) -> Option<i64> {
        if [added, removed].iter().any(|name| self.counts.unknown.contains(name)) {
            return None;
        }
        let before = match previous {
            Some(previous) => previous.get(total)?.parse::<i64>().ok()?,
            None => 0,
        };
        let after = before.checked_add(self.count(added))?.checked_sub(self.count(removed))?;
        (after >= 0).then_some(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_follow_the_branch() {
        let mut builder = SummaryBuilder::default();
        let file = DataFile { record_count: 4, file_size_in_bytes: 1226, ..DataFile::default() };
        builder.added(&file, "cat=blue".to_owned());
        let first = builder.build(Operation::Append, &StringMap::new(), None, 1).unwrap();
        for (name, value) in [
            ("added-data-files", "1"),
            ("changed-partition-count", "1"),
            ("partitions.cat=blue", "added-data-files=1,added-records=4,added-files-size=1226"),
            ("total-records", "4"),
            ("total-delete-files", "0"),
        ] {
            assert_eq!(first.get(name), Some(value), "{name}");
        }
        let second = builder.build(Operation::Append, &StringMap::new(), Some(&first.properties), 0).unwrap();
        assert_eq!((second.get("total-files-size"), second.get("partitions.cat=blue")), (Some("2452"), None));
        let unknown = builder.build(Operation::Append, &StringMap::new(), Some(&StringMap::new()), 0).unwrap();
        assert_eq!(unknown.get("total-records"), None);
    }
}
