//! The changes that the writers of a schedule make, and their effects on rows.

use std::collections::BTreeSet;

use icefield_table::maintain::expire::Cleanup;

/// A row: its key, and the number of the change that wrote it.
pub type Row = (i64, usize);

/// The partition of a key.
pub fn partition_of(key: i64) -> i32 {
    (key % 2) as i32
}

/// A change of the table.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Adds a row for each key.
    Append(BTreeSet<i64>),
    /// Deletes the rows of keys, by delete files or by rewriting files.
    Delete(BTreeSet<i64>, Mode, Isolation),
    /// Updates the rows of keys.
    Update(BTreeSet<i64>, Mode, Isolation),
    /// Deletes the rows that the keys have at the time of the commit.
    Erase(BTreeSet<i64>, Equality),
    /// Likewise, and adds a row for each key.
    Upsert(BTreeSet<i64>, Equality),
    /// Removes the files of a partition, by a filter.
    Drop(i32),
    /// Rewrites all rows of a partition from those that were read, replacing the current ones.
    Rebuild(i32, By),
    /// Replaces a partition by a row.
    Replace(i64),
    /// Rewrites the rows of one partition to new files.
    Compact(i32, Numbers),
    /// Rewrites the position deletes of a data file to one file.
    CompactDeletes,
    /// Deletes the rows that equality deletes have deleted by position, and removes the equality deletes.
    Convert(Replacing),
    /// Removes the delete files that are older than all data files of their partition.
    RemoveDangling,
    /// Rewrites the manifests.
    Manifests,
    /// Expires all snapshots except the last ones.
    Expire(i32, Cleanup),
    /// Removes the files that are older than any writer at work and that nothing references.
    RemoveOrphans,
    /// Creates a branch at the head of the main branch.
    Branch,
    /// Fast-forwards the main branch to the head of the other branch.
    Forward,
    /// Appends in a staged snapshot, which is in no branch.
    Stage(BTreeSet<i64>),
    /// Rewrites all rows of a partition in a staged snapshot.
    StageRebuild(i32),
    /// Several changes in one commit.
    Several(Vec<Change>),
    /// Cherry-picks the newest staged snapshot into the main branch.
    Pick,
    /// Deletes the rows of keys by delete files, with a mistake: the commit rejects it, or it does no harm.
    Careless(BTreeSet<i64>, Slip),
}

/// How keys are deleted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equality {
    /// Whether manifests contain the bounds of the keys.
    pub bounds: bool,
    /// Whether the deletes apply to all partitions, not only those of the keys.
    pub everywhere: bool,
}

/// The data sequence number of compacted files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numbers {
    /// The number of the table when it was read.
    OfRead,
    /// The number of the commit.
    New,
}

/// How a conversion of deletes is committed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Replacing {
    /// As new deletes of data files that must be there.
    AsDeletes,
    /// As a replacement of files, like a compaction: a deliberate bug, since compactions of the same files that began
    /// earlier do not see it.
    AsFiles,
}

/// The mistake of a careless writer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Slip {
    /// It does not remove the deletion vector that the new one replaces.
    KeepsVector,
    /// It removes data files whose rows are all deleted, but also adds delete files for them.
    RemovesReferenced,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    CopyOnWrite,
    MergeOnRead,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Isolation {
    /// As if the changes were made one after the other.
    Serializable,
    /// Rows that the writer has not read are not changed.
    Snapshot,
}

/// How the rows of a partition are replaced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum By {
    Filter,
    Partition,
}

impl Change {
    /// Applies the change with this number to rows; `seen` are those that its writer has read.
    pub fn apply(&self, number: usize, seen: &[Row], rows: &mut Vec<Row>) {
        let touches = |keys: &BTreeSet<i64>, isolation: &Isolation, row: &Row| {
            keys.contains(&row.0) && (*isolation == Isolation::Serializable || seen.contains(row))
        };
        match self {
            Self::Append(keys) | Self::Stage(keys) => rows.extend(keys.iter().map(|key| (*key, number))),
            Self::Careless(keys, _) | Self::Erase(keys, _) => rows.retain(|(key, _)| !keys.contains(key)),
            Self::Delete(keys, _, isolation) => rows.retain(|row| !touches(keys, isolation, row)),
            Self::Update(keys, _, isolation) => {
                rows.iter_mut().filter(|row| touches(keys, isolation, row)).for_each(|row| row.1 = number);
            }
            Self::Upsert(keys, _) => {
                rows.retain(|(key, _)| !keys.contains(key));
                rows.extend(keys.iter().map(|key| (*key, number)));
            }
            Self::Drop(partition) => rows.retain(|(key, _)| partition_of(*key) != *partition),
            Self::Rebuild(partition, _) | Self::StageRebuild(partition) => {
                let own = |row: &&mut Row| partition_of(row.0) == *partition;
                rows.iter_mut().filter(own).for_each(|row| row.1 = number);
            }
            Self::Replace(key) => {
                rows.retain(|(other, _)| partition_of(*other) != partition_of(*key));
                rows.push((*key, number));
            }
            Self::Several(_) => panic!("each is applied by itself"),
            Self::Compact(..)
            | Self::CompactDeletes
            | Self::Convert(_)
            | Self::RemoveDangling
            | Self::Manifests
            | Self::Expire(..)
            | Self::RemoveOrphans
            | Self::Branch
            | Self::Forward
            | Self::Pick => {}
        }
        rows.sort_unstable();
    }

    /// Whether the change creates its own snapshot, with the number of the change.
    pub fn is_snapshot(&self) -> bool {
        !matches!(self, Self::Expire(..) | Self::RemoveOrphans | Self::Branch | Self::Forward | Self::Pick)
    }

    /// Whether the change can be made on a branch other than the main branch.
    pub fn is_of_any_branch(&self) -> bool {
        self.is_snapshot() && !self.is_staged()
    }

    /// Whether its snapshot is in no branch.
    pub fn is_staged(&self) -> bool {
        matches!(self, Self::Stage(_) | Self::StageRebuild(_))
    }
}
