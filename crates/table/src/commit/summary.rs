//! The summary of a snapshot ("Snapshots", optional summary fields in Appendix F), as the Java library writes it.

use std::collections::BTreeMap;

use icefield_format::manifest::{DataFile, FileContent, FileFormat};
use icefield_format::metadata::{Operation, StringMap, Summary};

/// Total, and what adds to it and takes from it.
const TOTALS: [(&str, &str, &str); 6] = [
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
];

/// Counts of one kind of change, of the whole snapshot or of a partition.
#[derive(Debug, Clone, Default)]
struct Counts(BTreeMap<&'static str, i64>);

/// The order in which counts stand in the text of a partition.
const ORDER: [&str; 16] = [
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
    "added-equality-deletes",
];

impl Counts {
    fn add(&mut self, name: &'static str, count: i64) {
        let known = self.0.entry(name).or_default();
        *known = known.saturating_add(count);
    }

    fn added(&mut self, file: &DataFile) {
        // A deletion vector is a part of its file.
        let size = file.content_size_in_bytes.unwrap_or(file.file_size_in_bytes);
        self.add("added-files-size", size);
        match file.content {
            FileContent::Data => {
                self.add("added-data-files", 1);
                self.add("added-records", file.record_count);
            }
            FileContent::PositionDeletes => {
                let vector = file.format() == Some(FileFormat::Puffin);
                self.add(if vector { "added-dvs" } else { "added-position-delete-files" }, 1);
                self.add("added-delete-files", 1);
                self.add("added-position-deletes", file.record_count);
            }
            FileContent::EqualityDeletes => {
                self.add("added-equality-delete-files", 1);
                self.add("added-delete-files", 1);
                self.add("added-equality-deletes", file.record_count);
            }
        }
    }

    /// The counts that are not zero.
    fn shown(&self) -> impl Iterator<Item = (&'static str, i64)> {
        ORDER.iter().filter_map(|name| Some((*name, *self.0.get(name)?))).filter(|(_, count)| *count > 0)
    }
}

/// A summary in the making.
#[derive(Debug, Clone, Default)]
pub struct SummaryBuilder {
    counts: Counts,
    partitions: BTreeMap<String, Counts>,
}

impl SummaryBuilder {
    /// A file was added to the partition of this path, which is empty in an unpartitioned table.
    pub fn added(&mut self, file: &DataFile, partition: String) {
        self.counts.added(file);
        self.partitions.entry(partition).or_default().added(file);
    }

    /// The summary. `previous` is that of the branch's snapshot before, where the branch has one; `partition_limit` is
    /// the number of changed partitions up to which each is listed.
    pub fn build(
        &self,
        operation: Operation,
        properties: &StringMap,
        previous: Option<&StringMap>,
        partition_limit: usize,
    ) -> Summary {
        let mut summary = Summary::new(operation);
        let entries = &mut summary.properties;
        entries.extend(properties.iter().map(|(name, value)| (name.clone(), value.clone())));
        entries.shift_remove("operation");
        entries.extend(self.counts.shown().map(|(name, count)| (name.to_owned(), count.to_string())));
        entries.insert("changed-partition-count".to_owned(), self.partitions.len().to_string());
        if self.partitions.len() <= partition_limit {
            if !self.partitions.is_empty() {
                entries.insert("partition-summaries-included".to_owned(), "true".to_owned());
            }
            for (path, counts) in self.partitions.iter().filter(|(path, _)| !path.is_empty()) {
                let text: Vec<String> = counts.shown().map(|(name, count)| format!("{name}={count}")).collect();
                entries.insert(format!("partitions.{path}"), text.join(","));
            }
        }
        for (total, added, removed) in TOTALS {
            if let Some(count) = self.total(previous, total, added, removed) {
                entries.insert(total.to_owned(), count.to_string());
            }
        }
        summary
    }

    /// A total; none where the one before is not known.
    fn total(&self, previous: Option<&StringMap>, total: &str, added: &str, removed: &str) -> Option<i64> {
        let before = match previous {
            Some(previous) => previous.get(total)?.parse::<i64>().ok()?,
            None => 0,
        };
        let count = |name: &str| self.counts.0.get(name).copied().unwrap_or(0);
        let after = before.checked_add(count(added))?.checked_sub(count(removed))?;
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
        let first = builder.build(Operation::Append, &StringMap::new(), None, 1);
        for (name, value) in [
            ("added-data-files", "1"),
            ("changed-partition-count", "1"),
            ("partitions.cat=blue", "added-data-files=1,added-records=4,added-files-size=1226"),
            ("total-records", "4"),
            ("total-delete-files", "0"),
        ] {
            assert_eq!(first.get(name), Some(value), "{name}");
        }
        let second = builder.build(Operation::Append, &StringMap::new(), Some(&first.properties), 0);
        assert_eq!((second.get("total-files-size"), second.get("partitions.cat=blue")), (Some("2452"), None));
        let unknown = builder.build(Operation::Append, &StringMap::new(), Some(&StringMap::new()), 0);
        assert_eq!(unknown.get("total-records"), None);
    }
}
