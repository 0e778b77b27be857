//! Exports streams to consumers in other languages through the C stream interface.
//!
//! The interface does not say whether several threads may pull. With pyarrow's readers they can, without the GIL. So
//! each pull takes a lock: exactly one thread gets each batch, and all of them see the end.

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
    /// The stream that this thread is pulling from. A producer that reads its own stream would wait for itself.
    static PULLING: Cell<*const SharedReader> = const { Cell::new(ptr::null()) };
}

/// A reader that several threads can pull from.
struct SharedReader {
    schema: SchemaRef,
    /// `None` after the end, the first error, or the release.
    reader: Mutex<Option<Reader>>,
    released: AtomicBool,
    /// The process of the first pull, or 0. The threads that read ahead do not exist in other processes.
    process: AtomicU32,
    /// Set only once, so that its address is valid until the release.
    error: OnceLock<CString>,
}

/// The stream over a reader.
pub(super) fn stream(reader: Reader) -> FFI_ArrowArrayStream {
    let shared = Arc::new(SharedReader {
        schema: reader.schema(),
        reader: Mutex::new(Some(reader)),
        released: AtomicBool::new(false),
        process: AtomicU32::new(0),
        error: OnceLock::new(),
    });
    // SAFETY: the callbacks below use `private_data` as the box that it is, until `release` frees it once.
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

impl SharedReader {
    /// Whether the threads of this stream belong to the calling process.
    fn is_ours(&self) -> bool {
        let here = process::id();
        match self.process.compare_exchange(0, here, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => true,
            Err(first) => first == here,
        }
    }

    fn next(&self) -> Result<Option<RecordBatch>, String> {
        if !self.is_ours() {
            // Tested before any lock is taken, because a thread that does not exist after a fork may hold it forever.
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
        // Unwinding into C would abort the process, so a panic becomes an error of the stream.
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

    /// Ends the stream. If a thread is pulling, it drops the reader when it is done.
    fn close(self: Arc<Self>) {
        self.released.store(true, Ordering::Release);
        let first = self.process.load(Ordering::Acquire);
        if first != 0 && first != process::id() {
            // The threads of the reader exist only in the parent process, and may hold locks that a drop would wait
            // for.
            std::mem::forget(self);
            return;
        }
        if let Ok(mut reader) = self.reader.try_lock() {
            drop(reader.take());
        }
    }
}

/// The message of an error, without those of its wrappers.
fn message(error: ArrowError) -> String {
    match error {
        ArrowError::ExternalError(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// # Safety
///
/// `stream` is null or was created by [`stream`].
unsafe fn shared(stream: *mut FFI_ArrowArrayStream) -> Option<Arc<SharedReader>> {
    // SAFETY: its private data is the box, or null after the release.
    unsafe { stream.as_ref().and_then(|stream| stream.private_data().cast::<Arc<SharedReader>>().as_ref()) }.cloned()
}

unsafe extern "C" fn schema_of(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the stream is the one that these callbacks belong to.
    let Some(shared) = (unsafe { shared(stream) }) else { return INVALID };
    match FFI_ArrowSchema::try_from(shared.schema.as_ref()) {
        Ok(schema) => {
            // SAFETY: by the interface, `out` points to memory for a schema that need not be dropped.
            unsafe { out.write(schema) };
            0
        }
        Err(error) => {
            shared.fail(&error.to_string());
            INVALID
        }
    }
}

impl SharedReader {
    fn fail(&self, message: &str) {
        // The message becomes a C string, which ends at a zero byte.
        let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
        let _ = self.error.set(message);
    }
}

unsafe extern "C" fn next_of(stream: *mut FFI_ArrowArrayStream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: as above.
    let Some(shared) = (unsafe { shared(stream) }) else { return INVALID };
    // pyarrow reads a whole stream without returning to Python, which would handle signals.
    let array = match interruptible(signalled, || shared.next()) {
        Ok(Some(batch)) => FFI_ArrowArray::new(&StructArray::from(batch).to_data()),
        Ok(None) => FFI_ArrowArray::empty(),
        Err(message) => {
            shared.fail(&message);
            return IO_ERROR;
        }
    };
    // SAFETY: by the interface, `out` points to memory for an array that need not be dropped.
    unsafe { out.write(array) };
    0
}

unsafe extern "C" fn last_error_of(stream: *mut FFI_ArrowArrayStream) -> *const c_char {
    // SAFETY: as above; the text lives as long as the stream, which the consumer still holds.
    unsafe { shared(stream) }.and_then(|shared| shared.error.get().map(|text| text.as_ptr())).unwrap_or(ptr::null())
}

/// Releases the stream. The callbacks stay set, because pyarrow asks for the last error even if another thread has
/// closed the stream meanwhile.
unsafe extern "C" fn release(stream: *mut FFI_ArrowArrayStream) {
    // SAFETY: as above; both are removed, so that a second call does not find them.
    unsafe {
        let Some(stream) = stream.as_mut() else { return };
        let shared = stream.set_private_data(ptr::null_mut()).cast::<Arc<SharedReader>>();
        stream.set_release(None);
        if !shared.is_null() {
            Box::from_raw(shared).close();
        }
    }
}
