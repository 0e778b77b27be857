//! A schedule: what each writer does, when other writers interrupt it, and which faults occur.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use icefield_format::metadata::retention::ExpireSnapshots;
use icefield_format::metadata::{
    MAIN_BRANCH, MetadataUpdate, Snapshot, SnapshotRef, StringMap, TableMetadata, UpdateRequirement,
    requirements_for_update,
};
use icefield_table::commit::{Catalog, Committed, PointerCatalog, SnapshotOptions, SnapshotProducer, Transaction};
use icefield_table::maintain::expire::{Cleanup, External, expire};
use icefield_table::operation::cherry_pick::CherryPick;
use icefield_table::storage::{Existing, Fault, FaultPlan, Storage};
use icefield_table::{Error, Result, Table};

use crate::change::{Change, Row};
use crate::check::check;
use crate::client::{Client, Message, Service};
use crate::contents::{Contents, Live, Manifests, Named, WHOLE};
use crate::empty::{empty, moved};
use crate::operations::{Planned, Planner};

/// Key in a summary for the number of the change.
pub const NUMBER: &str = "simulation.number";
/// Key in a summary for the part of a change with several parts.
pub const PART: &str = "simulation.part";
/// Key in the summary of a cherry-picked snapshot.
pub const SOURCE: &str = "source-snapshot-id";
/// The other branch.
pub const SIDE: &str = "side";
/// Maximum number of changes in a schedule.
const CHANGES: usize = 7;
/// Maximum number of concurrent writers.
const WRITERS: usize = 3;
/// The time of the first change, in milliseconds since the epoch.
pub const START_MS: i64 = 1_700_000_000_000;

/// A failure: what is wrong with the table, or with the outcome that a writer got.
pub type Wrong = String;

/// The outcome of a change that its writer got.
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
    /// The change of each of its snapshots, and the rows that the writer has read for it.
    pub parts: Vec<(Change, Vec<Row>)>,
    /// `None` while the change is running, or if it had nothing to do.
    pub ended: Option<Ended>,
}

/// The expected properties of a snapshot.
#[derive(Debug, Clone)]
pub struct Expected {
    pub parent: Option<i64>,
    pub number: usize,
    pub rows: Vec<Row>,
}

/// A request to change the table.
#[derive(Debug, Clone)]
pub enum Request {
    /// Swaps the pointer from one metadata file to another.
    Swap(String, String),
    /// Applies updates if the table meets the requirements.
    Updates(Vec<UpdateRequirement>, Vec<MetadataUpdate>),
}

/// The partition specs of data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Partitioned,
    Whole,
    /// Either spec, chosen by each writer.
    Mixed,
}

/// The kinds of changes in a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Any,
    /// Deletes by keys, and changes that rewrite the affected rows.
    Keys,
    /// Deletes by positions.
    Positions,
}

/// The themes, selected by the first byte of a tape.
const THEMES: [Theme; 4] = [Theme::Any, Theme::Any, Theme::Positions, Theme::Keys];

/// The current table, and the expectations.
#[derive(Debug)]
pub struct Now {
    pub location: String,
    pub metadata: Arc<TableMetadata>,
    /// The table after each commit.
    pub all: Vec<Committed>,
    /// All snapshots that ever existed.
    pub snapshots: BTreeMap<i64, Expected>,
    pub wrong: Option<Wrong>,
}

/// Deliberate bugs, which the simulation must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// Conflicts are detected only from the time of the commit, not from the time of the read.
    ForgetsStart,
    /// The pointer is swapped whatever its current value.
    SwapsAlways,
    /// A file in use is deleted.
    DeletesUsed,
    /// A manifest in use is deleted.
    DeletesManifest,
    /// An unreferenced file is left over.
    LeavesFile,
    /// A writer gets a failure although its commit succeeded.
    TellsFailure,
    /// Equality deletes are converted by a replacement of files.
    ConvertsAsFiles,
    /// Files are removed as orphans however young they are.
    RemovesYoung,
    /// Orphans are kept.
    KeepsOrphans,
}

/// The result of a schedule.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    /// The outcomes of its changes.
    pub ended: Vec<Option<Ended>>,
    pub story: Vec<String>,
}

pub struct Schedule {
    pub storage: Storage,
    pub root: String,
    pub version: u8,
    pub layout: Layout,
    pub theme: Theme,
    pub contents: Mutex<Contents>,
    pub manifests: Manifests,
    /// Changes by number; `None` if not planned yet.
    pub made: Mutex<Vec<Option<Made>>>,
    /// Whether a writer died or got no answer, so that files may be left over.
    pub is_untidy: Mutex<bool>,
    pub now: Mutex<Now>,
    /// Requests that may still be delivered, with the times at which their writers began.
    pub late: Mutex<Vec<(Request, i64)>>,
    /// Commits that were delivered twice and have no outcome yet. A service recognizes them by their snapshots, which
    /// must not expire.
    pub repeated: AtomicUsize,
    tape: Mutex<(Vec<u8>, usize)>,
    at_work: AtomicUsize,
    /// When each writer at work began, by the clock of the store.
    pub began_ms: Mutex<BTreeMap<usize, i64>>,
    /// The deliberate bug, if any.
    pub broken: Option<Broken>,
    pub story: Mutex<Vec<String>>,
}

impl Schedule {
    /// Runs a tape and checks the result.
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
        schedule.stop_clock();
        let story = std::mem::take(&mut *schedule.story.lock().unwrap());
        result.map_err(|wrong| format!("{wrong}\n{}", story.join("\n")))?;
        let made = schedule.made.lock().unwrap();
        Ok(Ran { ended: made.iter().map(|made| made.as_ref().and_then(|made| made.ended)).collect(), story })
    }

    /// Applies the deliberate bug.
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

    /// Sets the theme of a tape.
    pub fn choose(tape: &mut [u8], theme: Theme) {
        let place = THEMES.iter().position(|other| *other == theme).unwrap() as u8;
        tape.iter_mut().take(1).for_each(|first| *first = *first % 8 + place * 8);
    }

    fn new(tape: Vec<u8>, broken: Option<Broken>) -> Self {
        static SCHEDULES: AtomicUsize = AtomicUsize::new(0);
        static EMPTY: [OnceLock<Committed>; 2] = [const { OnceLock::new() }; 2];
        let root = format!("memory://simulation/{}", SCHEDULES.fetch_add(1, Ordering::Relaxed));
        let first = tape.first().copied().unwrap_or(0);
        let version = 3 - first % 2;
        let theme = THEMES[usize::from(first / 8) % THEMES.len()];
        let layouts = match theme {
            Theme::Keys => [Layout::Partitioned, Layout::Mixed, Layout::Partitioned, Layout::Mixed],
            _ => [Layout::Partitioned, Layout::Partitioned, Layout::Whole, Layout::Mixed],
        };
        let layout = layouts[usize::from(first / 2 % 4)];
        let storage = Storage::default();
        let empty = EMPTY[usize::from(version - 2)].get_or_init(|| empty(&storage, version));
        let table = moved(&storage, empty, &root);
        let Committed { location, metadata } = table.clone();
        Self {
            storage,
            root,
            version,
            layout,
            theme,
            contents: Mutex::default(),
            manifests: Manifests::default(),
            made: Mutex::default(),
            is_untidy: Mutex::default(),
            now: Mutex::new(Now { all: vec![table], location, metadata, snapshots: BTreeMap::new(), wrong: None }),
            late: Mutex::default(),
            tape: Mutex::new((tape, 1)),
            repeated: AtomicUsize::new(0),
            at_work: AtomicUsize::new(0),
            began_ms: Mutex::default(),
            broken,
            story: Mutex::default(),
        }
    }

    /// The current table.
    pub fn committed(&self) -> Committed {
        let now = self.now.lock().unwrap();
        Committed { location: now.location.clone(), metadata: now.metadata.clone() }
    }

    pub fn tell(&self, text: String) {
        let depth = self.at_work.load(Ordering::Relaxed);
        self.story.lock().unwrap().push(format!("{}{text}", "  ".repeat(depth)));
    }

    /// The next choice among `count`; 0 is the harmless one.
    pub fn below(&self, count: usize) -> usize {
        let (tape, next) = &mut *self.tape.lock().unwrap();
        let byte = tape.get(*next).copied().unwrap_or(0);
        *next += 1;
        usize::from(byte) % count
    }

    /// The live files of a snapshot, and all files that it refers to.
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

    /// One writer reads the table, plans its change and commits it.
    fn step(self: &Arc<Self>) -> std::result::Result<(), Wrong> {
        let number = {
            let mut made = self.made.lock().unwrap();
            made.push(None);
            made.len() - 1
        };
        // The clock may jump by up to a day.
        let jump = [1_000, 86_400_000, -86_400_000, 0][self.below(8) / 5 * self.below(4)];
        icefield_table::clock::set_for_thread(Some(START_MS + jump + number as i64));
        let change = self.change();
        self.begin(number);
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
        let parts = if matches!(change, Change::Several(_)) { Vec::new() } else { vec![(change.clone(), seen)] };
        self.made.lock().unwrap()[number] = Some(Made { change: change.clone(), parts, ended: None });
        let ended = self.commit(number, &change, &base, branch, (live, start));
        self.at_work.fetch_sub(1, Ordering::Relaxed);
        self.began_ms.lock().unwrap().remove(&number);
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
        let began_ms = self.began_ms.lock().unwrap()[&number];
        let client = Client::new(self.clone(), message, plan.clone(), began_ms);
        let is_service = self.below(3) == 2;
        let catalog: Arc<dyn Catalog> = match is_service {
            true => Arc::new(Service(client)),
            false => Arc::new(PointerCatalog::new(storage.clone(), Arc::new(client))),
        };
        let table = Table::new(storage.clone(), catalog, base.clone());
        let repeats = usize::from(is_service && message == Message::Twice);
        self.repeated.fetch_add(repeats, Ordering::Relaxed);
        let result = self.make(number, change, &table, branch, (live, from));
        self.repeated.fetch_sub(repeats, Ordering::Relaxed);
        let result = result?;
        if message != Message::Sound || plan.is_some() || is_service {
            let to = if is_service { " to a service" } else { "" };
            self.tell(format!("{number}: its request{to} is {message:?}, its storage has {fault:?}"));
        }
        if let Err(error) = &result {
            self.tell(format!("{number}: {error}"));
        }
        let is_dead = plan.as_ref().is_some_and(|plan| plan.is_dead());
        let is_unknown = matches!(result, Err(Error::CommitStateUnknown { .. }));
        // If the service reports a conflict for an expiry that was delivered twice, the writer does not learn what to
        // delete.
        let forgets = repeats > 0 && !change.is_snapshot();
        // Open issue: if the reply was lost and the snapshot has expired before the writer asks, the writer learns from
        // the metadata log that it succeeded, but leaves the manifests that its attempts wrote and merged.
        let is_gone = message == Message::ReplyLost && change.is_snapshot() && {
            let now = self.now.lock().unwrap();
            let own = |expected: &Expected| expected.number == number;
            !now.metadata.snapshots().iter().any(|snapshot| now.snapshots.get(&snapshot.snapshot_id).is_some_and(own))
        };
        if is_dead || is_unknown || plan.is_some() || forgets || is_gone {
            *self.is_untidy.lock().unwrap() = true;
        }
        Some(match result {
            _ if is_dead || is_unknown => Ended::Unknown,
            Ok(()) if self.broken == Some(Broken::TellsFailure) => Ended::Failed,
            Ok(()) => Ended::Landed,
            Err(_) => Ended::Failed,
        })
    }

    /// Plans a change and commits it; `None` if there is nothing to do.
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
            Change::Expire(retain_last, cleanup) => {
                let request = ExpireSnapshots {
                    older_than_ms: Some(i64::MAX),
                    retain_last: Some(*retain_last),
                    ..ExpireSnapshots::default()
                };
                let expired = expire(table, request, *cleanup, External::default());
                *self.is_untidy.lock().unwrap() |= *cleanup == Cleanup::Nothing;
                return Some(expired.map(drop));
            }
            Change::RemoveOrphans => return Some(self.remove_orphans(table, self.oldest_ms())),
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
                    made[number].as_ref().is_some_and(|made| made.change.is_staged())
                };
                let staged = base.snapshots().iter().rev().find(is_staged).map(|snapshot| snapshot.snapshot_id);
                drop((now, made));
                return Some(table.make(&mut CherryPick::new(table.storage().clone(), staged?)).map(drop));
            }
            Change::Several(changes) => return self.make_several(number, changes, table, branch),
            _ => {}
        }
        let planned = self.plan(number, change, base, table.storage(), (live, from), &mut 0)?;
        let options = self.options(number, change, branch);
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

    /// Makes several changes in one transaction, each based on the state after those before it; `None` if there is
    /// nothing to do.
    fn make_several(
        self: &Arc<Self>,
        number: usize,
        changes: &[Change],
        table: &Table,
        branch: &str,
    ) -> Option<Result<()>> {
        let mut transaction = table.transaction();
        let mut made = 0;
        let mut staged = || {
            for change in changes {
                self.stage(number, change, table, branch, &mut transaction, &mut made)?;
            }
            Ok(!transaction.is_empty())
        };
        match staged() {
            Ok(true) => Some(table.commit(&mut transaction).map(drop)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn stage(
        self: &Arc<Self>,
        number: usize,
        change: &Change,
        table: &Table,
        branch: &str,
        transaction: &mut Transaction,
        made: &mut usize,
    ) -> Result<()> {
        let metadata = transaction.metadata()?.clone();
        let end = metadata.reference(branch).and_then(|end| metadata.snapshot(end.snapshot_id)).cloned();
        let named = self.named(&metadata, end.as_ref()).map_err(Error::Internal)?;
        let seen = named.live.all(&self.contents.lock().unwrap());
        let from = end.map(|snapshot| snapshot.snapshot_id);
        let planned = self.plan(number, change, &metadata, table.storage(), (&named.live, from), made);
        let Some(planned) = planned else { return Ok(()) };
        let mut options = self.options(number, change, branch);
        if let Some(made) = &mut self.made.lock().unwrap()[number] {
            options.properties.insert(PART.to_owned(), made.parts.len().to_string());
            made.parts.push((change.clone(), seen));
        }
        let storage = table.storage().clone();
        match planned {
            Planned::Append(content) => transaction.stage(SnapshotProducer::new(storage, content, options)),
            Planned::Delta(content) => transaction.stage(SnapshotProducer::new(storage, content, options)),
            Planned::Overwrite(content) => transaction.stage(SnapshotProducer::new(storage, content, options)),
            Planned::Rewrite(content) => transaction.stage(SnapshotProducer::new(storage, content, options)),
            Planned::Replace(content) => transaction.stage(SnapshotProducer::new(storage, content, options)),
            Planned::Drop(content) => transaction.stage(SnapshotProducer::new(storage, content, options)),
            Planned::Manifests(content) => transaction.stage(SnapshotProducer::new(storage, content, options)),
        }
    }

    fn plan(
        &self,
        number: usize,
        change: &Change,
        base: &TableMetadata,
        owner: &Storage,
        (live, from): (&Live, Option<i64>),
        made: &mut usize,
    ) -> Option<Planned> {
        let spec = match self.layout {
            Layout::Partitioned => 0,
            Layout::Whole => WHOLE,
            Layout::Mixed => self.below(2) as i32,
        };
        let mut contents = self.contents.lock().unwrap();
        let mut planner = Planner {
            version: self.version,
            number,
            live,
            contents: &mut contents,
            from,
            sequence_number: base.last_sequence_number(),
            storage: &self.storage,
            owner,
            root: &self.root,
            spec,
            made,
        };
        planner.plan(change)
    }

    fn options(&self, number: usize, change: &Change, branch: &str) -> SnapshotOptions {
        SnapshotOptions {
            branch: branch.to_owned(),
            properties: StringMap::from([(NUMBER.to_owned(), number.to_string())]),
            merge: self.below(3) < 2,
            stage_only: change.is_staged(),
        }
    }

    /// Lets others interrupt: complete changes of other writers, and delayed requests.
    pub fn others(self: &Arc<Self>) {
        if self.below(4) == 3 {
            self.deliver_late(1);
        }
        let choices = if self.theme == Theme::Any { 3 } else { 2 };
        while self.at_work.load(Ordering::Relaxed) < WRITERS
            && self.made.lock().unwrap().len() < CHANGES
            && self.below(choices) == choices - 1
        {
            if let Err(wrong) = self.step() {
                self.now.lock().unwrap().wrong.get_or_insert(wrong);
            }
        }
    }

    fn deliver_late(&self, most: usize) {
        for _ in 0..most {
            let Some((request, _)) = self.late.lock().unwrap().pop() else { return };
            let done = self.serve(&request).is_some();
            self.tell(format!("a late request is delivered: {}", if done { "it lands" } else { "it is refused" }));
        }
    }
}
