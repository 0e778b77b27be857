//! What a compaction would do: the numbers of a dry run.

use super::super::deletes::{AfterRewrite, dangling_after};
use super::groups::{Group, Tuple};
use super::outcome::Compacted;
use super::plan::CompactionPlan;
use super::task::Share;
use crate::error::Result;
use crate::operation::matching::MEMORY_LIMIT;
use crate::plan::deletes::partition_key;

impl CompactionPlan {
    /// What the compaction would do. Rows are read only of groups with files of other partition specs: their columns that
    /// the new partitions follow from.
    ///
    /// # Errors
    /// Errors of the files of such groups.
    pub(super) fn preview(&self, mut done: Compacted) -> Result<Compacted> {
        let share = Share::new(1, self.request.memory.unwrap_or(MEMORY_LIMIT));
        let (last, spec_id) = (self.metadata().last_sequence_number(), self.settings.spec.spec_id);
        let mut after = AfterRewrite { last, ..AfterRewrite::default() };
        // Groups are committed with this number, or each with one of its own.
        let number = match &self.scan.snapshot {
            Some(start) if self.settings.rules.starting_number => start.sequence_number,
            _ => last + 1,
        };
        for (place, group) in self.groups.iter().enumerate() {
            let partitions = self.partitions_of(place, group, &share)?;
            let files = partitions.iter().map(|(_, files)| *files).fold(0, i64::saturating_add);
            done.add(group, usize::try_from(files).unwrap_or(usize::MAX));
            let keys = partitions.into_iter().map(|(tuple, _)| (partition_key(spec_id, &tuple), number));
            after.added.extend(keys);
            after.removed.extend(group.inputs.iter().map(|input| input.file.file_path.as_str()));
        }
        if self.settings.rules.dangling {
            done.removed_delete_files += dangling_after(self.metadata(), &self.plan, &after)?;
        }
        Ok(done)
    }

    /// The partitions of the new files of a group, with the number of files of each.
    fn partitions_of(&self, place: usize, group: &Group, share: &Share) -> Result<Vec<(Tuple, i64)>> {
        if group.inputs.iter().all(|input| input.is_empty) {
            return Ok(Vec::new());
        }
        match &group.partition {
            Some(tuple) => Ok(vec![(tuple.clone(), group.outputs)]),
            None if self.settings.spec.is_unpartitioned() => Ok(vec![(Vec::new(), group.outputs)]),
            None => self.task(place)?.partitions(&self.scan.storage, share, group.bytes),
        }
    }
}
