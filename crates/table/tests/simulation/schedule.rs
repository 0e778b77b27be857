//! A schedule: which writer does what, when others come between, and what goes wrong.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use icefield_format::metadata::{StringMap, TableDefinition, TableMetadata};
use icefield_format::spec::{PartitionSpec, SortOrder};
use icefield_format::types::{Field, PrimitiveType, Schema};
use icefield_table::commit::{Pointer, PointerCatalog, SnapshotOptions, read_metadata};
use icefield_table::operation::create::create;
use icefield_table::storage::{Fault, FaultPlan, Storage};
use icefield_table::{Error, Result, Table};

use crate::check::check;
use crate::contents::{Contents, Live};
use crate::operations::{Change, Mode, Planned, Planner};

/// Entry of a summary with the number of the change.
pub const NUMBER: &str = "simulation.number";
/// Changes of a schedule, at the most.
const CHANGES: usize = 7;
/// Writers that are at work at once, at the most.
const WRITERS: usize = 3;

/// A check that is left out, to see that the simulation misses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    NewData,
    NewDeletes,
    DataFilesExist,
    /// Conflicts are looked for from the moment of the commit on, not from that of the reading.
    From,
}

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
    pub ended: Ended,
}

/// What becomes of a request to swap the pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Message {
    Sound,
    /// It takes effect, and the reply is lost.
    ReplyLost,
    /// It is lost.
    Lost,
    /// It may take effect later.
    Late,
    /// It is delivered twice, and the second reply is what arrives.
    Twice,
}

pub struct Schedule {
    pub storage: Storage,
    pub root: String,
    pub version: u8,
    pub contents: Mutex<Contents>,
    /// By number; none where the change is still at work, or had nothing to do.
    pub made: Mutex<Vec<Option<Made>>>,
    /// Whether a writer died or was left without an answer: then files may be left over.
    pub is_untidy: Mutex<bool>,
    pointer: Mutex<String>,
    late: Mutex<Vec<(String, String)>>,
    tape: Mutex<(Vec<u8>, usize)>,
    at_work: AtomicUsize,
    left_out: Option<Left>,
    story: Mutex<Vec<String>>,
}

impl Schedule {
    /// Runs a tape and checks what came of it.
    ///
    /// # Errors
    /// The story, and what is wrong with its end.
    pub fn run(tape: Vec<u8>, left_out: Option<Left>) -> std::result::Result<(), String> {
        let schedule = Arc::new(Self::new(tape, left_out));
        let tell = |wrong: String| format!("{wrong}\n{}", schedule.story.lock().unwrap().join("\n"));
        while schedule.made.lock().unwrap().len() < CHANGES {
            schedule.step().map_err(tell)?;
        }
        schedule.deliver_late(usize::MAX);
        check(&schedule).map_err(tell)
    }

    fn new(tape: Vec<u8>, left_out: Option<Left>) -> Self {
        static SCHEDULES: AtomicUsize = AtomicUsize::new(0);
        let root = format!("memory://simulation/{}", SCHEDULES.fetch_add(1, Ordering::Relaxed));
        let version = 3 - tape.first().copied().unwrap_or(0) % 2;
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
            location: root.clone(),
            properties: properties.into_iter().collect(),
        };
        let storage = Storage::default();
        let pointer = Mutex::new(create(&storage, &definition).unwrap().location);
        Self {
            storage,
            root,
            version,
            contents: Mutex::default(),
            made: Mutex::default(),
            is_untidy: Mutex::default(),
            pointer,
            late: Mutex::default(),
            tape: Mutex::new((tape, 1)),
            at_work: AtomicUsize::new(0),
            left_out,
            story: Mutex::default(),
        }
    }

    /// The table as it is now.
    pub fn metadata(&self) -> TableMetadata {
        let location = self.pointer.lock().unwrap().clone();
        read_metadata(&self.storage, &location).unwrap()
    }

    fn tell(&self, text: String) {
        let depth = self.at_work.load(Ordering::Relaxed);
        self.story.lock().unwrap().push(format!("{}{text}", "  ".repeat(depth)));
    }

    /// The next choice among some; the first is the harmless one.
    fn below(&self, count: usize) -> usize {
        let (tape, next) = &mut *self.tape.lock().unwrap();
        let byte = tape.get(*next).copied().unwrap_or(0);
        *next += 1;
        usize::from(byte) % count
    }

    fn keys(&self) -> BTreeSet<i64> {
        (0..=self.below(3)).map(|_| self.below(6) as i64).collect()
    }

    fn change(&self) -> Change {
        let mode = |choice| if choice == 0 { Mode::MergeOnRead } else { Mode::CopyOnWrite };
        match self.below(9) {
            0 | 1 => Change::Append(self.keys()),
            2 | 3 => Change::Delete(self.keys(), mode(self.below(2))),
            4 | 5 => Change::Update(self.keys(), mode(self.below(2))),
            6 => Change::Upsert(self.keys()),
            7 => Change::Compact(self.below(2) as i32),
            _ => Change::Replace(self.below(6) as i64),
        }
    }

    /// One writer reads the table, makes its change and commits it.
    fn step(self: &Arc<Self>) -> std::result::Result<(), String> {
        let number = {
            let mut made = self.made.lock().unwrap();
            made.push(None);
            made.len() - 1
        };
        let change = self.change();
        let base = self.metadata();
        let snapshot = base.current_snapshot();
        let live = Live::of(&self.storage, &base, snapshot)?;
        let from = snapshot.map(|snapshot| snapshot.snapshot_id);
        self.tell(format!("{number}: reads snapshot {} for {change:?}", base.snapshots().len()));
        self.at_work.fetch_add(1, Ordering::Relaxed);
        self.others();
        let from = match self.left_out {
            Some(Left::From) => self.metadata().current_snapshot().map(|snapshot| snapshot.snapshot_id),
            _ => from,
        };
        let planned = {
            let mut contents = self.contents.lock().unwrap();
            let sequence_number = base.last_sequence_number();
            let mut planner =
                Planner::new(self.version, number, &live, &mut contents, (from, sequence_number), self.left_out);
            planner.plan(&change)
        };
        let ended = planned.map(|planned| self.commit(number, planned));
        self.at_work.fetch_sub(1, Ordering::Relaxed);
        self.tell(format!("{number}: {ended:?}"));
        self.made.lock().unwrap()[number] = ended.map(|ended| Made { change, ended });
        Ok(())
    }

    fn commit(self: &Arc<Self>, number: usize, planned: Planned) -> Ended {
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
            _ => None,
        };
        let plan = fault.map(|fault| (FaultPlan::new(self.below(8), fault), fault));
        let storage = match &plan {
            Some((plan, _)) => self.storage.with_faults(plan.clone()),
            None => self.storage.clone(),
        };
        if message != Message::Sound || plan.is_some() {
            self.tell(format!("{number}: its swap is {message:?}, its storage has {fault:?}"));
        }
        let dead = plan.clone().filter(|(_, fault)| *fault == Fault::Killed).map(|(plan, _)| plan);
        let client = Client { schedule: self.clone(), message: Mutex::new(message), dead: dead.clone() };
        let catalog = PointerCatalog::new(storage.clone(), Arc::new(client));
        let options = SnapshotOptions {
            properties: StringMap::from([(NUMBER.to_owned(), number.to_string())]),
            merge: self.below(3) < 2,
            ..SnapshotOptions::default()
        };
        let result = Table::load(storage, Arc::new(catalog)).and_then(|table| {
            match planned {
                Planned::Append(content) => table.change(content, options),
                Planned::Delta(content) => table.change(content, options),
                Planned::Overwrite(content) => table.change(content, options),
                Planned::Rewrite(content) => table.change(content, options),
                Planned::Replace(content) => table.change(content, options),
            }
            .map(drop)
        });
        if let Err(error) = &result {
            self.tell(format!("{number}: {error}"));
        }
        let is_dead = dead.is_some_and(|plan| plan.is_dead());
        let is_unknown = matches!(result, Err(Error::CommitStateUnknown { .. }));
        if is_dead || is_unknown || plan.is_some() {
            *self.is_untidy.lock().unwrap() = true;
        }
        match result {
            _ if is_dead || is_unknown => Ended::Unknown,
            Ok(()) => Ended::Landed,
            Err(_) => Ended::Failed,
        }
    }

    /// Others may come between: whole changes of other writers, and requests that were late.
    fn others(self: &Arc<Self>) {
        if self.below(4) == 3 {
            self.deliver_late(1);
        }
        while self.at_work.load(Ordering::Relaxed) < WRITERS
            && self.made.lock().unwrap().len() < CHANGES
            && self.below(3) == 2
        {
            if let Err(wrong) = self.step() {
                panic!("{wrong}\n{}", self.story.lock().unwrap().join("\n"));
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

    fn swap(&self, base: &str, new: &str) -> bool {
        let mut pointer = self.pointer.lock().unwrap();
        let same = *pointer == base;
        if same {
            new.clone_into(&mut pointer);
        }
        same
    }
}

/// The pointer of the table as one writer reaches it.
struct Client {
    schedule: Arc<Schedule>,
    /// What becomes of its next request.
    message: Mutex<Message>,
    /// Where the writer may be dead.
    dead: Option<Arc<FaultPlan>>,
}

impl Client {
    fn check_alive(&self) -> Result<()> {
        match self.dead.as_ref().is_some_and(|plan| plan.is_dead()) {
            true => Err(Error::Callback("the writer is dead".into())),
            false => Ok(()),
        }
    }
}

impl Pointer for Client {
    fn load(&self) -> Result<String> {
        self.check_alive()?;
        self.schedule.others();
        Ok(self.schedule.pointer.lock().unwrap().clone())
    }

    fn swap(&self, base: &str, new: &str) -> Result<()> {
        self.check_alive()?;
        self.schedule.others();
        let message = std::mem::replace(&mut *self.message.lock().unwrap(), Message::Sound);
        let refused = || Error::CommitFailed("the table has changed".into());
        match message {
            Message::Sound => self.schedule.swap(base, new).then_some(()).ok_or_else(refused),
            Message::ReplyLost => {
                self.schedule.swap(base, new);
                Err(Error::Callback("the reply was lost".into()))
            }
            Message::Lost => Err(Error::Callback("the request was lost".into())),
            Message::Late => {
                self.schedule.late.lock().unwrap().push((base.to_owned(), new.to_owned()));
                Err(Error::Callback("no reply in time".into()))
            }
            Message::Twice => {
                self.schedule.swap(base, new);
                self.schedule.swap(base, new).then_some(()).ok_or_else(refused)
            }
        }
    }
}
