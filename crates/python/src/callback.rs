//! Calls from Rust into Python, with regard to signals and the shutdown of the interpreter.
//!
//! When the interpreter shuts down, it ends the thread of every call that is still in Python. The Rust frames below
//! cannot be unwound then, and the process would abort. So no call starts after the shutdown has begun, and the
//! shutdown first waits a moment for running calls.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// How long the shutdown waits for running calls. A call that takes longer would hardly return before the process ends.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// The number of running calls in the process [`OWNER`]. A forked process must not count the calls of its parent.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
static OWNER: AtomicU32 = AtomicU32::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);

/// Prevents further calls, and waits a moment for running ones.
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

/// A running call; it holds the process id.
struct Call(u32);

impl Call {
    fn begin() -> Option<Self> {
        let process = std::process::id();
        if OWNER.swap(process, Ordering::SeqCst) != process {
            UNDER_WAY.store(0, Ordering::SeqCst);
        }
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        let call = Self(process);
        // Tested after the call is counted, so either `end_calls` sees the call, or the call sees that the program
        // ends.
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

/// Runs code that may call Python, such as a stream of another library; `None` if the program is ending.
pub(crate) fn call<T>(work: impl FnOnce() -> T) -> Option<T> {
    let _call = Call::begin()?;
    let _by_worker = (ENTERED.get() == 0).then(|| DepthGuard::begin(&BY_WORKER));
    Some(work())
}

/// Calls Python from a thread that does not hold the GIL; `None` if the program is ending.
pub(crate) fn call_python<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    call(|| {
        let _lock = Lock::beneath_python();
        Python::try_attach(|py| {
            let _inside = DepthGuard::begin(&INSIDE);
            work(py)
        })
    })
    .flatten()
}

thread_local! {
    /// The number of nested calls into Python on this thread.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
    /// The number of nested calls from Python on this thread ([`crate::entry::detached`]).
    static ENTERED: Cell<usize> = const { Cell::new(0) };
    /// The number of nested calls on this thread into Python, or into code that may call it, that were not made during
    /// a call from Python: those of worker threads.
    static BY_WORKER: Cell<usize> = const { Cell::new(0) };
}

/// Increments a counter of this thread for as long as it lives.
struct DepthGuard(&'static std::thread::LocalKey<Cell<usize>>);

impl DepthGuard {
    fn begin(count: &'static std::thread::LocalKey<Cell<usize>>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for DepthGuard {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// Runs the Rust code of a call from Python.
pub(crate) fn entered<T>(work: impl FnOnce() -> T) -> T {
    let _entered = DepthGuard::begin(&ENTERED);
    work()
}

/// Whether this thread runs Python code that was called by a worker of another call, which waits for it.
pub(crate) fn is_called_by_worker() -> bool {
    BY_WORKER.get() > 0
}

/// The GIL, acquired while Python code of this thread is on the stack.
///
/// PyO3 considers a thread attached during a whole call into Python. But a library in that call may have released the
/// GIL, as pyarrow does while it reads a stream, and this stream may be ours.
struct Lock(Option<pyo3::ffi::PyGILState_STATE>);

impl Lock {
    /// Acquires the GIL if this thread is in a call into Python; otherwise PyO3 knows whether the thread holds it.
    fn beneath_python() -> Self {
        if INSIDE.get() == 0 {
            return Self(None);
        }
        // SAFETY: the interpreter is running, since this thread runs Python code. Afterwards the thread holds the GIL,
        // whether it did before or not; `drop` restores the previous state.
        Self(Some(unsafe { pyo3::ffi::PyGILState_Ensure() }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            // SAFETY: restores the previous state on the same thread; guards are dropped in reverse order.
            unsafe { pyo3::ffi::PyGILState_Release(state) };
        }
    }
}

/// The message for a call that was not made.
pub(crate) const ENDED: &str = "the interpreter is shutting down";

thread_local! {
    /// Whether this thread is Python's main thread, which alone handles signals, and the process in which that was
    /// tested.
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

/// Marks Ctrl-C as pending again if `error` is its exception. The error is about to become a message in C, and this way
/// Python still raises the exception as soon as the C caller returns.
pub(crate) fn keep_interrupt(error: &(dyn std::error::Error + 'static)) {
    let Some(icefield_table::Error::Interrupted(raised)) = error.downcast_ref() else { return };
    let Some(raised) = raised.downcast_ref::<PyErr>() else { return };
    let _lock = Lock::beneath_python();
    Python::try_attach(|py| {
        if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            // SAFETY: it only sets a flag, and may be called at any time.
            unsafe { pyo3::ffi::PyErr_SetInterrupt() };
        }
    });
}
