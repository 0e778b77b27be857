//! Draws the changes of a schedule from its tape.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use icefield_table::maintain::expire::Cleanup;

use crate::change::{By, Change, Equality, Isolation, Mode, Numbers, Replacing, Slip};
use crate::schedule::{Broken, Layout, Schedule, Theme};

impl Schedule {
    fn keys(&self) -> BTreeSet<i64> {
        let most = if self.theme == Theme::Keys { 2 } else { 3 };
        (0..=self.below(most)).map(|_| self.below(6) as i64).collect()
    }

    /// The next change.
    pub fn change(&self) -> Change {
        let mode = || match self.theme {
            Theme::Keys => Mode::CopyOnWrite,
            Theme::Positions | Theme::Any if self.below(2) == 0 => Mode::MergeOnRead,
            _ => Mode::CopyOnWrite,
        };
        let isolation = || if self.below(4) == 3 { Isolation::Snapshot } else { Isolation::Serializable };
        let by_partition = self.layout == Layout::Partitioned;
        let is_first = self.made.lock().unwrap().len() == 1;
        let kind = match self.theme {
            Theme::Keys | Theme::Positions if is_first => 0,
            Theme::Any => self.below(32),
            Theme::Keys if self.broken == Some(Broken::ConvertsAsFiles) => {
                [0, 12, 14, 12, 4, 12, 17, 28, 8, 12, 14, 28, 15, 12, 17, 29][self.below(16)]
            }
            // Conversions are drawn by another theme: they remove what the rules about equality deletes are found by.
            Theme::Keys => [0, 12, 14, 12, 4, 12, 17, 12, 8, 12, 14, 12, 15, 12, 17, 12][self.below(16)],
            Theme::Positions => [0, 4, 8, 4, 8, 4, 19, 23][self.below(8)],
        };
        match kind {
            0..4 => Change::Append(self.keys()),
            4..8 => Change::Delete(self.keys(), mode(), isolation()),
            8..12 => Change::Update(self.keys(), mode(), isolation()),
            12 | 13 => {
                let (bounds, everywhere) = (self.below(2) == 1, self.below(3) == 2);
                let (keys, how) = (self.keys(), Equality { bounds, everywhere });
                if self.below(2) == 0 { Change::Upsert(keys, how) } else { Change::Erase(keys, how) }
            }
            14 => {
                let numbers = if self.below(3) == 2 { Numbers::New } else { Numbers::OfRead };
                Change::Compact(self.below(2) as i32, numbers)
            }
            15 if by_partition => Change::Replace(self.below(6) as i64),
            17 if by_partition => Change::Rebuild(self.below(2) as i32, By::Partition),
            15..18 => Change::Rebuild(self.below(2) as i32, By::Filter),
            18 => Change::Drop(self.below(2) as i32),
            19 => Change::CompactDeletes,
            20 => Change::Manifests,
            21 if self.repeated.load(Ordering::Relaxed) == 0 => {
                let cleanup = if self.below(4) == 3 { Cleanup::Nothing } else { Cleanup::All };
                Change::Expire(1 + self.below(2) as i32, cleanup)
            }
            21 => Change::Manifests,
            22 => [Change::Branch, Change::Forward][self.below(2)].clone(),
            23 => Change::Careless(self.keys(), [Slip::KeepsVector, Slip::RemovesReferenced][self.below(2)]),
            24 => match self.below(4) {
                0 => Change::Stage(self.keys()),
                1 if by_partition => Change::StageRebuild(self.below(2) as i32),
                _ => Change::Pick,
            },
            28 if self.broken == Some(Broken::ConvertsAsFiles) => Change::Convert(Replacing::AsFiles),
            28 => Change::Convert(Replacing::AsDeletes),
            29 => Change::RemoveDangling,
            30 | 31 => Change::RemoveOrphans,
            _ => {
                let one = || match self.change() {
                    Change::Several(changes) => changes[0].clone(),
                    change if change.is_of_any_branch() => change,
                    _ => Change::Append(self.keys()),
                };
                Change::Several((0..2 + self.below(2)).map(|_| one()).collect())
            }
        }
    }
}
