//! What the writers of a schedule want: each change as rows see it.

use std::collections::BTreeSet;

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
    /// Deletes the rows of keys, by delete files or by files in their place.
    Delete(BTreeSet<i64>, Mode, Isolation),
    /// Writes the rows of keys anew.
    Update(BTreeSet<i64>, Mode, Isolation),
    /// Deletes the rows of keys, whatever they are by then.
    Erase(BTreeSet<i64>, Equality),
    /// Likewise, and adds a row for each.
    Upsert(BTreeSet<i64>, Equality),
    /// Removes the files of a partition, by filter.
    Drop(i32),
    /// Writes all rows of a partition anew, made of those that were read, in place of whatever is there.
    Rebuild(i32, By),
    /// Replaces a partition by a row.
    Replace(i64),
    /// Puts the rows of one partition into new files.
    Compact(i32, Numbers),
    /// Puts the position deletes of a data file into one file.
    CompactDeletes,
    /// Writes the manifests anew.
    Manifests,
    /// Lets all but so many snapshots expire, and deletes their files.
    Expire(i32),
    /// Begins a branch at the end of the main one.
    Branch,
    /// Moves the main branch to the end of the other one.
    Forward,
    /// Appends in a snapshot that is in no branch.
    Stage(BTreeSet<i64>),
    /// Writes all rows of a partition anew in such a snapshot.
    StageRebuild(i32),
    /// Several changes in one commit.
    Several(Vec<Change>),
    /// Picks the newest of these into the main branch.
    Pick,
    /// Deletes the rows of keys by delete files, and gets something wrong: the commit refuses it, or it does no harm.
    Careless(BTreeSet<i64>, Slip),
}

/// How keys are deleted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equality {
    /// Whether manifests have the bounds of the keys.
    pub bounds: bool,
    /// Whether the deletes are for all partitions, and not for those of the keys.
    pub everywhere: bool,
}

/// The data sequence number of compacted files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Numbers {
    /// That of the table as it was read.
    OfRead,
    /// That of the commit.
    New,
}

/// What a careless writer gets wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Slip {
    /// The deletion vector that the new one replaces is not removed.
    KeepsVector,
    /// Data files whose rows are all deleted are removed, and get delete files as well.
    RemovesReferenced,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    CopyOnWrite,
    MergeOnRead,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Isolation {
    /// As if one change were made after the other.
    Serializable,
    /// Rows that the writer has not seen are not touched.
    Snapshot,
}

/// How the rows of a partition are replaced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum By {
    Filter,
    Partition,
}

impl Change {
    /// What the change with this number makes of rows; `seen` are those that its writer has read.
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
            | Self::Manifests
            | Self::Expire(_)
            | Self::Branch
            | Self::Forward
            | Self::Pick => {}
        }
        rows.sort_unstable();
    }

    /// Whether it is a snapshot of its own, with the number of the change.
    pub fn is_snapshot(&self) -> bool {
        !matches!(self, Self::Expire(_) | Self::Branch | Self::Forward | Self::Pick)
    }

    /// Whether it can be made on a branch other than the main one.
    pub fn is_of_any_branch(&self) -> bool {
        self.is_snapshot() && !self.is_staged()
    }

    /// Whether its snapshot is in no branch.
    pub fn is_staged(&self) -> bool {
        matches!(self, Self::Stage(_) | Self::StageRebuild(_))
    }
}
