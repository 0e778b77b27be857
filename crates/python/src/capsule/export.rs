//! Streams handed to consumers in other languages, through the C stream interface.
//!
//! The interface leaves it open whether several threads may pull; pyarrow's readers let them, without the interpreter's
//! lock. So each pull takes a lock: a batch goes to exactly one thread, and the end reaches all of them.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use icefield_table::interrupt::interruptible;

use crate::callback::signalled;

const IO_ERROR: c_int = 5; // EIO
const INVALID: c_int = 22; // EINVAL

type Reader = Box<dyn RecordBatchReader + Send>;

thread_local! {
    /// Whether this thread is inside a pull: a producer whose code reads its own stream would wait for itself.
    static PULLING: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// A reader that several threads may pull from.
struct Shared {
    schema: SchemaRef,
    /// `None` after the end, the first error, or the release.
    reader: Mutex<Option<Reader>>,
    released: AtomicBool,
    /// The process that pulled first, 0 before: the threads that read ahead exist in no other.
    process: AtomicU32,
    /// Set once, so that the text stays where it is until the release.
    error: OnceLock<CString>,
}

/// The stream over a reader.
pub(super) fn stream(reader: Reader) -> FFI_ArrowArrayStream {
    let shared = Arc::new(Shared {
        schema: reader.schema(),
        reader: Mutex::new(Some(reader)),
        released: AtomicBool::new(false),
        process: AtomicU32::new(0),
        error: OnceLock::new(),
    });
    // SAFETY: the callbacks below take `private_data` for the box that it is, until `release` frees it, once.
    unsafe {
        FFI_ArrowArrayStream::new_unchecked(
            Some(schema_of),
            Some(next_of),
            Some(last_error_of),
            Some(release),
            Box::into_raw(Box::new(shared)).cast(),
        )
    }
}

impl Shared {
    /// Whether the threads of this stream belong to the process that calls.
    fn is_ours(&self) -> bool {
        let here = process::id();
        match self.process.compare_exchange(0, here, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(first) => first == here,
        }
    }

    fn next(&self) -> Result<Option<RecordBatch>, String> {
        if !self.is_ours() {
            // Before any lock: a thread that the fork left behind may hold it for ever.
            return Err("this reader was begun in the parent process: scan again in the child".to_owned());
        }
        if PULLING.get() == ptr::from_ref(self) {
            return Err("this reader is read by its own source".to_owned());
        }
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if self.released.load(Ordering::Acquire) {
            *reader = None;
        }
        let Some(open) = reader.as_mut() else { return Ok(None) };
        let outer = PULLING.replace(ptr::from_ref(self));
        // Unwinding into C would end the process: a panic becomes an error of the stream.
        let next = catch_unwind(AssertUnwindSafe(|| open.next()));
        PULLING.set(outer);
        match next {
            Ok(Some(Ok(batch))) => return Ok(Some(batch)),
            Ok(None) => *reader = None,
            Ok(Some(Err(error))) => {
                *reader = None;
                return Err(message(error));
            }
            Err(_) => {
                *reader = None;
                return Err("internal error while reading".to_owned());
            }
        }
        Ok(None)
    }

    /// Ends the stream. A thread inside a pull drops the reader when it is done.
    fn close(self: Arc<Self>) {
        self.released.store(true, Ordering::Release);
        let first = self.process.load(Ordering::Acquire);
        if first != 0 && first != process::id() {
            // The reader's threads stayed behind in the parent, perhaps with locks that a drop would wait for.
            std::mem::forget(self);
            return;
        }
        if let Ok(mut reader) = self.reader.try_lock() {
            drop(reader.take());
        }
    }
}

/// An error's own words, without those of the wrappers that carry it.
fn message(error: ArrowError) -> String {
    match error {
        ArrowError::ExternalError(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// # Safety
///
/// `stream` is null or one that [`stream`] made.
unsafe fn shared(stream: *mut FFI_ArrowArrayStream) -> Option<Arc<Shared>> {
    // SAFETY: its private data are the box, or null after the release.
    unsafe { stream.as_ref().and_then(|stream| stream.private_data().cast::<Arc<Shared>>().as_ref()) }.cloned()
}

unsafe extern "C" fn schema_of(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: called with the stream that these callbacks belong to.
    let Some(shared) = (unsafe { shared(stream) }) else { return INVALID };
    match FFI_ArrowSchema::try_from(shared.schema.as_ref()) {
        Ok(schema) => {
            // SAFETY: by the interface `out` is room for a schema, without one.
            unsafe { out.write(schema) };
            0
        }
        Err(error) => {
            shared.fail(&error.to_string());
            INVALID
        }
    }
}

impl Shared {
    fn fail(&self, message: &str) {
        // A message is a C string there, which ends at a zero byte.
        let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
        let _ = self.error.set(message);
    }
}

unsafe extern "C" fn next_of(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: as above.
    let Some(shared) = (unsafe { shared(stream) }) else { return INVALID };
    // pyarrow reads a whole stream without returning to Python, which would have seen to signals.
    let array = match interruptible(signalled, || shared.next()) {
        Ok(Some(batch)) => FFI_ArrowArray::new(&StructArray::from(batch).to_data()),
        Ok(None) => FFI_ArrowArray::empty(),
        Err(message) => {
            shared.fail(&message);
            return IO_ERROR;
        }
    };
    // SAFETY: by the interface `out` is room for an array, without one.
    unsafe { out.write(array) };
    0
}

unsafe extern "C" fn last_error_of(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: as above; the text lives as long as the stream, which the consumer still holds.
    unsafe { shared(stream) }.and_then(|shared| shared.error.get().map(|text| text.as_ptr())).unwrap_or(ptr::null())
}

/// The callbacks stay: pyarrow asks for the last error of a stream that another thread has closed meanwhile.
unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: as above; both are taken away, so that no second call finds them.
    unsafe {
        let Some(stream) = stream.as_mut() else { return };
        let shared = stream.set_private_data(ptr::null_mut()).cast::<Arc<Shared>>();
        stream.set_release(None);
        if !shared.is_null() {
            Box::from_raw(shared).close();
        }
    }
}
