//! A schedule: which writer does what, when others come between, and what goes wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use icefield_format::metadata::retention::ExpireSnapshots;
use icefield_format::metadata::{
    MAIN_BRANCH, Snapshot, SnapshotRef, StringMap, TableDefinition, TableMetadata, requirements_for_update,
};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::commit::{Committed, PointerCatalog, SnapshotOptions, read_metadata};
use icefield_table::maintain::expire::{Cleanup, External, expire};
use icefield_table::operation::cherry_pick::CherryPick;
use icefield_table::operation::create::create;
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};
use icefield_table::{Error, Result, Table};

use crate::change::{By, Change, Isolation, Mode, Row, Slip};
use crate::check::check;
use crate::client::{Client, Message};
use crate::contents::{Contents, Live, Manifests, Named};
use crate::operations::{Planned, Planner};

/// Entry of a summary with the number of the change.
pub const NUMBER: &str = "simulation.number";
/// Entry of the summary of a picked snapshot.
const SOURCE: &str = "source-snapshot-id";
/// The other branch.
pub const SIDE: &str = "side";
/// Changes of a schedule, at the most.
const CHANGES: usize = 7;
/// Writers that are at work at once, at the most.
const WRITERS: usize = 3;
/// When the first change is made, in milliseconds from the epoch.
const START_MS: i64 = 1_700_000_000_000;

/// What is wrong with a table or with what a writer was told.
pub type Wrong = String;

/// How a change ended, as its writer was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Landed,
    Failed,
    /// The writer does not know, or is dead.
    Unknown,
}

/// A change of a schedule.
#[derive(Debug, Clone)]
pub struct Made {
    pub change: Change,
    /// The rows that its writer has read.
    pub seen: Vec<Row>,
    /// None while the change is at work, or had nothing to do.
    pub ended: Option<Ended>,
}

/// What a snapshot must be.
#[derive(Debug, Clone)]
pub struct Expected {
    pub parent: Option<i64>,
    pub number: usize,
    pub rows: Vec<Row>,
}

/// The table, and what it must be.
#[derive(Debug)]
pub struct Now {
    pub location: String,
    pub metadata: Arc<TableMetadata>,
    /// All snapshots that there ever were.
    pub snapshots: BTreeMap<i64, Expected>,
    pub wrong: Option<Wrong>,
}

/// What a schedule can be made to do wrong, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Conflicts are looked for from the moment of the commit on, not from that of the reading.
    ForgetsStart,
    /// The pointer is swapped wherever it points to.
    SwapsAlways,
    /// A file that the table has is deleted.
    DeletesUsed,
    /// A manifest that the table has is deleted.
    DeletesManifest,
    /// A file that nothing names stays.
    LeavesFile,
    /// A writer whose commit has landed is told that it failed.
    TellsFailure,
}

/// What came of a schedule.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    /// How its changes ended.
    pub ended: Vec<Option<Ended>>,
    pub story: Vec<String>,
}

pub struct Schedule {
    pub storage: Storage,
    pub root: String,
    pub version: u8,
    pub contents: Mutex<Contents>,
    pub manifests: Manifests,
    /// By number; none where the change is not planned yet.
    pub made: Mutex<Vec<Option<Made>>>,
    /// Whether a writer died or was left without an answer: then files may be left over.
    pub is_untidy: Mutex<bool>,
    pub now: Mutex<Now>,
    pub late: Mutex<Vec<(String, String)>>,
    tape: Mutex<(Vec<u8>, usize)>,
    at_work: AtomicUsize,
    /// What does not work as it must.
    broken: Option<Broken>,
    pub story: Mutex<Vec<String>>,
}

impl Schedule {
    /// Runs a tape and checks what came of it.
    ///
    /// # Errors
    /// The story, and what is wrong with its end.
    pub fn run(tape: Vec<u8>, broken: Option<Broken>) -> std::result::Result<Ran, Wrong> {
        let schedule = Arc::new(Self::new(tape, broken));
        let changes = 3 + schedule.below(CHANGES - 2);
        let run = || {
            while schedule.made.lock().unwrap().len() < changes {
                schedule.step()?;
            }
            schedule.deliver_late(usize::MAX);
            schedule.go_wrong();
            check(&schedule)
        };
        let result = run();
        let all = schedule.storage.list(&schedule.root).unwrap();
        let all: Vec<String> = all.into_iter().map(|entry| entry.path).collect();
        all.iter().for_each(|path| schedule.storage.delete(path).unwrap());
        let story = std::mem::take(&mut *schedule.story.lock().unwrap());
        result.map_err(|wrong| format!("{wrong}\n{}", story.join("\n")))?;
        let made = schedule.made.lock().unwrap();
        Ok(Ran { ended: made.iter().map(|made| made.as_ref().and_then(|made| made.ended)).collect(), story })
    }

    /// Breaks what a test wants to be found.
    fn go_wrong(&self) {
        match self.broken {
            Some(Broken::DeletesUsed) => {
                let now = self.now.lock().unwrap();
                let named = self.named(&now.metadata, now.metadata.current_snapshot()).unwrap();
                named.live.data.iter().take(1).for_each(|(file, _)| self.storage.delete(&file.file_path).unwrap());
            }
            Some(Broken::DeletesManifest) => {
                let now = self.now.lock().unwrap();
                let named = self.named(&now.metadata, now.metadata.current_snapshot()).unwrap();
                named.metadata.iter().skip(1).take(1).for_each(|path| self.storage.delete(path).unwrap());
            }
            Some(Broken::LeavesFile) => {
                self.storage.put(&format!("{}/data/left", self.root), &b"x"[..], Existing::Refuse).unwrap();
            }
            _ => {}
        }
    }

    fn new(tape: Vec<u8>, broken: Option<Broken>) -> Self {
        static SCHEDULES: AtomicUsize = AtomicUsize::new(0);
        static EMPTY: [OnceLock<Committed>; 2] = [const { OnceLock::new() }; 2];
        let root = format!("memory://simulation/{}", SCHEDULES.fetch_add(1, Ordering::Relaxed));
        let version = 3 - tape.first().copied().unwrap_or(0) % 2;
        let storage = Storage::default();
        let empty = EMPTY[usize::from(version - 2)].get_or_init(|| Self::empty(&storage, version));
        let Committed { location, metadata } = moved(&storage, empty, &root);
        Self {
            storage,
            root,
            version,
            contents: Mutex::default(),
            manifests: Manifests::default(),
            made: Mutex::default(),
            is_untidy: Mutex::default(),
            now: Mutex::new(Now { location, metadata, snapshots: BTreeMap::new(), wrong: None }),
            late: Mutex::default(),
            tape: Mutex::new((tape, 1)),
            at_work: AtomicUsize::new(0),
            broken,
            story: Mutex::default(),
        }
    }

    /// A table without snapshots.
    fn empty(storage: &Storage, version: u8) -> Committed {
        let fields = vec![Field::required(1, "key", PrimitiveType::Long), Field::required(2, "p", PrimitiveType::Int)];
        let schema = Schema::new(0, fields).unwrap();
        let properties = [
            ("format-version", version.to_string().as_str()),
            ("commit.retry.num-retries", "3"),
            ("commit.retry.min-wait-ms", "0"),
            ("commit.retry.max-wait-ms", "0"),
            ("commit.status-check.num-retries", "0"),
            ("commit.status-check.min-wait-ms", "0"),
            ("commit.manifest.min-count-to-merge", "3"),
            ("write.manifest.compression-codec", "uncompressed"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let definition = TableDefinition {
            partition_spec: PartitionSpec::from_text(0, &["p"], &schema).unwrap(),
            schema,
            sort_order: SortOrder::unsorted(),
            location: format!("memory://simulation/empty-{version}"),
            properties: properties.into_iter().collect(),
        };
        create(storage, &definition).unwrap()
    }

    /// The table as it is now.
    pub fn committed(&self) -> Committed {
        let now = self.now.lock().unwrap();
        Committed { location: now.location.clone(), metadata: now.metadata.clone() }
    }

    pub fn tell(&self, text: String) {
        let depth = self.at_work.load(Ordering::Relaxed);
        self.story.lock().unwrap().push(format!("{}{text}", "  ".repeat(depth)));
    }

    /// The next choice among some; the first is the harmless one.
    pub fn below(&self, count: usize) -> usize {
        let (tape, next) = &mut *self.tape.lock().unwrap();
        let byte = tape.get(*next).copied().unwrap_or(0);
        *next += 1;
        usize::from(byte) % count
    }

    fn keys(&self) -> BTreeSet<i64> {
        (0..=self.below(3)).map(|_| self.below(6) as i64).collect()
    }

    fn change(&self) -> Change {
        let mode = || if self.below(2) == 0 { Mode::MergeOnRead } else { Mode::CopyOnWrite };
        let isolation = || if self.below(4) == 3 { Isolation::Snapshot } else { Isolation::Serializable };
        match self.below(25) {
            0..4 => Change::Append(self.keys()),
            4..8 => Change::Delete(self.keys(), mode(), isolation()),
            8..12 => Change::Update(self.keys(), mode(), isolation()),
            12 | 13 => Change::Upsert(self.keys()),
            14 => Change::Compact(self.below(2) as i32),
            15 => Change::Replace(self.below(6) as i64),
            16 => Change::Rebuild(self.below(2) as i32, By::Filter),
            17 => Change::Rebuild(self.below(2) as i32, By::Partition),
            18 => Change::Drop(self.below(2) as i32),
            19 => Change::CompactDeletes,
            20 => Change::Manifests,
            21 => Change::Expire(1 + self.below(2) as i32),
            22 => [Change::Branch, Change::Forward][self.below(2)].clone(),
            23 => Change::Careless(self.keys(), [Slip::KeepsVector, Slip::RemovesReferenced][self.below(2)]),
            _ if self.below(2) == 0 => Change::Stage(self.keys()),
            _ => Change::Pick,
        }
    }

    /// The live files of a snapshot, and all files that it names.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn named(
        &self,
        metadata: &TableMetadata,
        snapshot: Option<&Arc<Snapshot>>,
    ) -> std::result::Result<Arc<Named>, Wrong> {
        self.manifests.of(&self.storage, metadata, snapshot)
    }

    /// One writer reads the table, makes its change and commits it.
    fn step(self: &Arc<Self>) -> std::result::Result<(), Wrong> {
        let number = {
            let mut made = self.made.lock().unwrap();
            made.push(None);
            made.len() - 1
        };
        // A clock that jumps, by up to a day.
        let jump = [1_000, 86_400_000, -86_400_000, 0][self.below(8) / 5 * self.below(4)];
        icefield_table::clock::set_for_thread(Some(START_MS + jump + number as i64));
        let change = self.change();
        let base = self.committed();
        let has_side = base.metadata.reference(SIDE).is_some();
        let branch = if has_side && change.is_of_any_branch() && self.below(3) == 2 { SIDE } else { MAIN_BRANCH };
        let end = base.metadata.reference(branch).and_then(|end| base.metadata.snapshot(end.snapshot_id)).cloned();
        let named = self.named(&base.metadata, end.as_ref())?;
        let live = &named.live;
        let from = end.map(|snapshot| snapshot.snapshot_id);
        let seen = live.all(&self.contents.lock().unwrap());
        self.tell(format!("{number}: reads {branch} of {} snapshots for {change:?}", base.metadata.snapshots().len()));
        self.at_work.fetch_add(1, Ordering::Relaxed);
        self.others();
        let start = if self.broken == Some(Broken::ForgetsStart) {
            self.committed().metadata.current_snapshot_id()
        } else {
            from
        };
        self.made.lock().unwrap()[number] = Some(Made { change: change.clone(), seen, ended: None });
        let ended = self.commit(number, &change, &base, branch, (live, start));
        self.at_work.fetch_sub(1, Ordering::Relaxed);
        self.tell(format!("{number}: {ended:?}"));
        if let Some(made) = &mut self.made.lock().unwrap()[number] {
            made.ended = ended;
        }
        self.now.lock().unwrap().wrong.take().map_or(Ok(()), Err)
    }

    fn commit(
        self: &Arc<Self>,
        number: usize,
        change: &Change,
        base: &Committed,
        branch: &str,
        (live, from): (&Live, Option<i64>),
    ) -> Option<Ended> {
        let message = match self.below(16) {
            1 => Message::ReplyLost,
            2 => Message::Lost,
            3 => Message::Late,
            4 => Message::Twice,
            _ => Message::Sound,
        };
        let fault = match self.below(16) {
            1 => Some(Fault::Error),
            2 => Some(Fault::LostReply),
            3 => Some(Fault::Killed),
            4 => Some(Fault::Torn),
            _ => None,
        };
        let plan = fault.map(|fault| FaultPlan::new(self.below(10), fault));
        let storage = plan.as_ref().map_or_else(|| self.storage.clone(), |plan| self.storage.with_faults(plan.clone()));
        let catalog = PointerCatalog::new(storage.clone(), Arc::new(Client::new(self.clone(), message, plan.clone())));
        let table = Table::new(storage.clone(), Arc::new(catalog), base.clone());
        let result = self.make(number, change, &table, branch, (live, from))?;
        if message != Message::Sound || plan.is_some() {
            self.tell(format!("{number}: its swap is {message:?}, its storage has {fault:?}"));
        }
        if let Err(error) = &result {
            self.tell(format!("{number}: {error}"));
        }
        let is_dead = plan.as_ref().is_some_and(|plan| plan.is_dead());
        let is_unknown = matches!(result, Err(Error::CommitStateUnknown { .. }));
        if is_dead || is_unknown || plan.is_some() {
            *self.is_untidy.lock().unwrap() = true;
        }
        Some(match result {
            _ if is_dead || is_unknown => Ended::Unknown,
            Ok(()) if self.broken == Some(Broken::TellsFailure) => Ended::Failed,
            Ok(()) => Ended::Landed,
            Err(_) => Ended::Failed,
        })
    }

    /// Makes a change and commits it; none where there is nothing to do.
    fn make(
        self: &Arc<Self>,
        number: usize,
        change: &Change,
        table: &Table,
        branch: &str,
        (live, from): (&Live, Option<i64>),
    ) -> Option<Result<()>> {
        let base = table.metadata();
        match change {
            Change::Expire(retain_last) => {
                let request = ExpireSnapshots {
                    older_than_ms: Some(i64::MAX),
                    retain_last: Some(*retain_last),
                    ..ExpireSnapshots::default()
                };
                return Some(expire(table, request, Cleanup::All, External::default()).map(drop));
            }
            Change::Branch | Change::Forward => {
                let update = match (change, base.current_snapshot_id()) {
                    (Change::Branch, Some(id)) => base.create_ref(SIDE, SnapshotRef::branch(id)),
                    (Change::Forward, Some(_)) => base.replace_branch(MAIN_BRANCH, SIDE, true),
                    _ => return None,
                };
                let updates = vec![update.ok()?];
                return Some(table.update(requirements_for_update(base, &updates), updates).map(drop));
            }
            Change::Pick => {
                let now = self.now.lock().unwrap();
                let made = self.made.lock().unwrap();
                let is_staged = |snapshot: &&Arc<Snapshot>| {
                    let number = now.snapshots[&snapshot.snapshot_id].number;
                    made[number].as_ref().is_some_and(|made| matches!(made.change, Change::Stage(_)))
                };
                let staged = base.snapshots().iter().rev().find(is_staged).map(|snapshot| snapshot.snapshot_id);
                drop((now, made));
                return Some(table.make(&mut CherryPick::new(table.storage().clone(), staged?)).map(drop));
            }
            _ => {}
        }
        let planned = {
            let mut contents = self.contents.lock().unwrap();
            let mut planner = Planner {
                version: self.version,
                number,
                live,
                contents: &mut contents,
                from,
                sequence_number: base.last_sequence_number(),
                storage: &self.storage,
                owner: table.storage(),
                root: &self.root,
                made: 0,
            };
            planner.plan(change)?
        };
        let options = SnapshotOptions {
            branch: branch.to_owned(),
            properties: StringMap::from([(NUMBER.to_owned(), number.to_string())]),
            merge: self.below(3) < 2,
            stage_only: matches!(change, Change::Stage(_)),
        };
        let changed = match planned {
            Planned::Append(content) => table.change(content, options),
            Planned::Delta(content) => table.change(content, options),
            Planned::Overwrite(content) => table.change(content, options),
            Planned::Rewrite(content) => table.change(content, options),
            Planned::Replace(content) => table.change(content, options),
            Planned::Drop(content) => table.change(content, options),
            Planned::Manifests(content) => table.change(content, options),
        };
        Some(changed.map(drop))
    }

    /// Others may come between: whole changes of other writers, and requests that were late.
    pub fn others(self: &Arc<Self>) {
        if self.below(4) == 3 {
            self.deliver_late(1);
        }
        while self.at_work.load(Ordering::Relaxed) < WRITERS
            && self.made.lock().unwrap().len() < CHANGES
            && self.below(3) == 2
        {
            if let Err(wrong) = self.step() {
                self.now.lock().unwrap().wrong.get_or_insert(wrong);
            }
        }
    }

    fn deliver_late(&self, most: usize) {
        for _ in 0..most {
            let Some((base, new)) = self.late.lock().unwrap().pop() else { return };
            let done = self.swap(&base, &new);
            self.tell(format!("a late swap is delivered: {}", if done { "it lands" } else { "it is refused" }));
        }
    }

    /// Points from a metadata file to another one, and notes what its snapshots must be.
    pub fn swap(&self, base: &str, new: &str) -> bool {
        let mut now = self.now.lock().unwrap();
        if now.location != base && self.broken != Some(Broken::SwapsAlways) {
            return false;
        }
        let metadata = match read_metadata(&self.storage, new) {
            Ok(metadata) => metadata,
            Err(error) => {
                now.wrong = Some(format!("the table would be at {new}: {error}"));
                return false;
            }
        };
        if let Err(wrong) = self.expect(&mut now, &metadata) {
            now.wrong.get_or_insert(wrong);
        }
        new.clone_into(&mut now.location);
        now.metadata = Arc::new(metadata);
        true
    }

    /// New snapshots follow their parents, and branches only move forward.
    fn expect(&self, now: &mut Now, new: &TableMetadata) -> std::result::Result<(), Wrong> {
        let made = self.made.lock().unwrap();
        for snapshot in new.snapshots() {
            let id = snapshot.snapshot_id;
            if now.snapshots.contains_key(&id) {
                continue;
            }
            let entry = |name| snapshot.summary.as_ref().and_then(|summary| summary.get(name));
            let picked = entry(SOURCE).map(|id| now.snapshots[&id.parse::<i64>().unwrap()].number);
            let number = picked.or_else(|| entry(NUMBER)?.parse().ok()).ok_or("a snapshot of no change")?;
            let parent = snapshot.parent_snapshot_id;
            let ends: Vec<_> = now.metadata.refs().values().map(|end| end.snapshot_id).collect();
            if parent.map_or(!ends.is_empty(), |parent| !ends.contains(&parent)) {
                return Err(format!("{number} follows {parent:?}, which is the end of no branch"));
            }
            let mut rows = parent.map_or_else(Vec::new, |parent| now.snapshots[&parent].rows.clone());
            let Some(Made { change, seen, .. }) = &made[number] else {
                return Err(format!("{number} has committed and had nothing to do"));
            };
            change.apply(number, seen, &mut rows);
            now.snapshots.insert(id, Expected { parent, number, rows });
        }
        for (name, end) in now.metadata.refs() {
            let Some(to) = new.reference(name) else { return Err(format!("the branch {name} has gone")) };
            let mut at = Some(to.snapshot_id);
            while at.is_some_and(|at| at != end.snapshot_id) {
                at = at.and_then(|at| now.snapshots[&at].parent);
            }
            at.ok_or_else(|| format!("the branch {name} has lost snapshots"))?;
        }
        Ok(())
    }
}

/// The same table at another place: making one checks each property, which takes longer than a whole change.
fn moved(storage: &Storage, table: &Committed, root: &str) -> Committed {
    let text = table.metadata.to_json().replace(table.metadata.location(), root);
    let location = table.location.replace(table.metadata.location(), root);
    storage.put(&location, text.into_bytes(), Existing::Refuse).unwrap();
    let metadata = Arc::new(read_metadata(storage, &location).unwrap());
    Committed { location, metadata }
}
