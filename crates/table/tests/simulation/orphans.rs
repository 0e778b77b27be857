//! Removal of orphan files beside writers: what is younger than the oldest writer at work stays, what is older and not
//! referenced goes.

use std::collections::BTreeSet;

use icefield_table::commit::Committed;
use icefield_table::maintain::orphans::{OrphanSearch, remove_orphans};
use icefield_table::storage::Existing;
use icefield_table::{Result, Table};

use crate::schedule::{Broken, Schedule, Wrong};

impl Schedule {
    /// The folder of a file that is written to read the clock of the store.
    fn clock(&self) -> String {
        self.root.replace("simulation", "clock")
    }

    /// The time by the clock of the store, which gives no two files the same time.
    pub fn store_time(&self) -> i64 {
        let folder = self.clock();
        self.storage.put(&format!("{folder}/now"), &b"x"[..], Existing::Replace).unwrap();
        self.storage.list(&folder).unwrap()[0].modified_ms.unwrap()
    }

    /// Deletes the file of [`Schedule::store_time`].
    pub fn stop_clock(&self) {
        self.storage.delete(&format!("{}/now", self.clock())).unwrap();
    }

    /// Notes when a writer begins: no file of it may be removed as an orphan.
    pub fn begin(&self, number: usize) {
        let began_ms = self.store_time();
        self.began_ms.lock().unwrap().insert(number, began_ms);
    }

    /// When the oldest writer began that is at work, or whose request may still be delivered.
    pub fn oldest_ms(&self) -> i64 {
        let began = self.began_ms.lock().unwrap();
        let late = self.late.lock().unwrap();
        began.values().copied().chain(late.iter().map(|(_, began_ms)| *began_ms)).min().unwrap()
    }

    /// Removes orphans that are older than a time, and checks that none is left.
    pub fn remove_orphans(&self, table: &Table, older_than_ms: i64) -> Result<()> {
        let first = self.now.lock().unwrap().all.len() - 1;
        let used_ms = match self.broken {
            Some(Broken::RemovesYoung) => i64::MAX,
            Some(Broken::KeepsOrphans) => 0,
            _ => older_than_ms,
        };
        let search = OrphanSearch { older_than_ms: used_ms, ..OrphanSearch::default() };
        let removed = remove_orphans(table, &search)?;
        self.tell(format!("{} orphans are deleted", removed.files.len() - removed.leftover.failures));
        if removed.leftover.failures == 0
            && let Err(wrong) = self.check_orphans(first, older_than_ms)
        {
            self.now.lock().unwrap().wrong.get_or_insert(wrong);
        }
        Ok(())
    }

    /// Each file older than a time is referenced by one of the table's versions from this one on.
    fn check_orphans(&self, first: usize, older_than_ms: i64) -> std::result::Result<(), Wrong> {
        let all = self.now.lock().unwrap().all.clone();
        let mut named: BTreeSet<String> = all.iter().map(|version| version.location.clone()).collect();
        for Committed { metadata, .. } in &all[first..] {
            for snapshot in metadata.snapshots() {
                // Files of a snapshot that has expired meanwhile may be gone.
                let Ok(here) = self.named(metadata, Some(snapshot)) else { return Ok(()) };
                named.extend(here.metadata.iter().chain(&here.removed).cloned());
                named.extend(here.live.data.iter().chain(&here.live.deletes).map(|(file, _)| file.file_path.clone()));
            }
        }
        let files = self.storage.list(&self.root).map_err(|error| error.to_string())?;
        let is_old = |modified_ms: Option<i64>| modified_ms.is_some_and(|time| time < older_than_ms);
        let old = files.into_iter().filter(|entry| is_old(entry.modified_ms)).map(|entry| entry.path);
        let left: Vec<String> = old.filter(|path| !named.contains(path)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("orphans are left: {left:?}")) }
    }
}
