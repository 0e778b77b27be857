//! Tells a caller how far a compaction is.

use icefield_format::manifest::DataFile;

use super::groups::Group;
use crate::error::Result;

/// A group that was rewritten, and is not committed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupDone {
    /// Its number, from 0.
    pub number: usize,
    /// Number of its data files.
    pub files: usize,
    /// Bytes of these.
    pub bytes: i64,
    /// Number of new files.
    pub added_files: usize,
    /// Bytes of these.
    pub added_bytes: i64,
}

/// Calls about the progress of a compaction, from any of its threads.
#[derive(Default)]
pub struct Progress<'a> {
    /// Called once with the number of groups and of their bytes.
    pub planned: Option<&'a (dyn Fn(usize, i64) + Sync)>,
    /// Called for each group that was rewritten. An error ends the compaction.
    pub group: Option<&'a (dyn Fn(GroupDone) -> Result<()> + Sync)>,
}

impl Progress<'_> {
    pub(super) fn expect(&self, groups: &[Group]) {
        if let Some(planned) = self.planned {
            planned(groups.len(), groups.iter().map(|group| group.bytes).fold(0, i64::saturating_add));
        }
    }

    pub(super) fn group(&self, number: usize, group: &Group, files: &[DataFile]) -> Result<()> {
        let Some(report) = self.group else { return Ok(()) };
        report(GroupDone {
            number,
            files: group.inputs.len(),
            bytes: group.bytes,
            added_files: files.len(),
            added_bytes: files.iter().map(|file| file.file_size_in_bytes).fold(0, i64::saturating_add),
        })
    }
}
