//! Calls from Rust back into Python: signals, and the end of the interpreter.
//!
//! An interpreter that ends takes the thread of every call that is still in Python, and Rust's frames beneath it cannot be
//! unwound: the process would abort. So no call begins once the program is ending, and the ones under way are awaited for a
//! moment, before the interpreter ends.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// How long the end of a program waits for calls. One that takes longer would hardly return before the process is gone.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Calls under way in the process [`OWNER`]; what a fork copied of them does not count.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
static OWNER: AtomicU32 = AtomicU32::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);

/// Lets no further call begin, and waits a moment for the ones under way.
pub(crate) fn end_calls() {
    ENDING.store(true, Ordering::SeqCst);
    let end = Instant::now() + LAST_CALLS;
    while OWNER.load(Ordering::SeqCst) == std::process::id()
        && UNDER_WAY.load(Ordering::SeqCst) > 0
        && Instant::now() < end
    {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A call under way.
struct Call(u32);

impl Call {
    fn begin() -> Option<Self> {
        let process = std::process::id();
        if OWNER.swap(process, Ordering::SeqCst) != process {
            UNDER_WAY.store(0, Ordering::SeqCst);
        }
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        let call = Self(process);
        // Asked after the call is counted: `end_calls` sees it, or it sees that the program is ending.
        (!ENDING.load(Ordering::SeqCst)).then_some(call)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.0 == std::process::id() {
            let _ = UNDER_WAY.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |calls| calls.checked_sub(1));
        }
    }
}

/// Runs what may call Python, such as a stream of another library; `None` if the program is ending.
pub(crate) fn call<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _call = Call::begin()?;
    let _by_worker = (ENTERED.get() == 0).then(|| Counted::begin(&BY_WORKER));
    Some(work())
}

/// Calls Python from a thread that does not hold its lock; `None` if the program is ending.
pub(crate) fn call_python<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    call(|| {
        let _lock = Lock::beneath_python();
        Python::try_attach(|py| {
            let _inside = Counted::begin(&INSIDE);
            work(py)
        })
    })
    .flatten()
}

thread_local! {
    /// How many calls into Python this thread is in.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
    /// How many calls from Python this thread is in ([`crate::entry::detached`]).
    static ENTERED: Cell<usize> = const { Cell::new(0) };
    /// How many calls into Python, or into what may call it, this thread is in that no call from Python is beneath.
    static BY_WORKER: Cell<usize> = const { Cell::new(0) };
}

/// Adds one to a count of this thread as long as it lives.
struct Counted(&'static std::thread::LocalKey<Cell<usize>>);

impl Counted {
    fn begin(count: &'static std::thread::LocalKey<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Runs the work of a call from Python.
pub(crate) fn entered<T>(work: impl FnOnce() -> T) -> T {
    let _entered = Counted::begin(&ENTERED);
    work()
}

/// Whether Python code runs on this thread that a worker of some other call has called: that one waits for it.
pub(crate) fn is_called_by_worker() -> bool {
    BY_WORKER.get() > 0
}

/// The interpreter's lock, taken beneath Python code of this thread.
///
/// PyO3 holds a thread for attached as long as a call into Python lasts. A library that the call has reached may have
/// released the lock since, as pyarrow does while it reads a stream, and the stream may be ours.
struct Lock(Option<pyo3::ffi::PyGILState_STATE>);

impl Lock {
    /// The lock, if this thread is in a call into Python: else PyO3 knows whether the thread has it.
    fn beneath_python() -> Self {
        if INSIDE.get() == 0 {
            return Self(None);
        }
        // SAFETY: the interpreter runs, for code of it is under way on this thread. Whether the thread has the lock or has
        // released it, it has it afterwards; `drop` brings back what was.
        Self(Some(unsafe { pyo3::ffi::PyGILState_Ensure() }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            // SAFETY: the state that was before, on the same thread; guards are dropped in the reverse order.
            unsafe { pyo3::ffi::PyGILState_Release(state) };
        }
    }
}

/// Why a call was not made.
pub(crate) const ENDED: &str = "the interpreter is shutting down";

thread_local! {
    /// The process in which this thread was found to be Python's main thread, or not: only that one handles signals.
    static MAIN: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
}

/// The exception that a signal handler raised since the last call, if any ([`icefield_table::interrupt`]).
pub(crate) fn signalled() -> Option<icefield_table::Error> {
    let process = std::process::id();
    let known = MAIN.get().filter(|(of, _)| *of == process).map(|(_, main)| main);
    if known == Some(false) {
        return None;
    }
    let _lock = Lock::beneath_python();
    let raised = Python::try_attach(|py| {
        if known.is_none() {
            MAIN.set(Some((process, is_main(py).unwrap_or(false))));
        }
        py.check_signals().err()
    });
    raised.flatten().map(|error| icefield_table::Error::Interrupted(Box::new(error)))
}

fn is_main(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    threading.call_method0("main_thread")?.getattr("ident")?.eq(threading.call_method0("get_ident")?)
}

/// Sets Ctrl-C as pending again where `error` is its exception and is about to become a message in C, so that Python
/// still raises it as soon as the caller in C has returned.
pub(crate) fn keep_interrupt(error: &(dyn std::error::Error + 'static)) {
    let Some(icefield_table::Error::Interrupted(raised)) = error.downcast_ref() else { return };
    let Some(raised) = raised.downcast_ref::<PyErr>() else { return };
    let _lock = Lock::beneath_python();
    Python::try_attach(|py| {
        if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            // SAFETY: it sets a flag, and may be called at any time.
            unsafe { pyo3::ffi::PyErr_SetInterrupt() };
        }
    });
}
