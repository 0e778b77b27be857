//! The allocator of the extension.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_get, mi_option_set_default, mi_option_t};

/// Columns are large and short-lived: the C library's allocator gives their pages back to the system at once, and most of
/// the time of a kernel that only copies would then be the system's, clearing pages for it again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay`, which the bindings do not name, and its default.
const PURGE_DELAY: (mi_option_t, c_long) = (15, 1_000);

/// Milliseconds for which freed memory is kept for reuse, as in jemalloc.
const KEPT_FOR: c_long = 10_000;

/// Keeps freed memory for ten seconds, unless `MIMALLOC_PURGE_DELAY` says for how long.
///
/// Who reads a table, works on it and reads the next one lets seconds pass in between: with the allocator's own second
/// all pages of a result had been given back by then, and a quarter to two fifths of the processor's time of a read was
/// the system's, clearing them again. It costs that a process holds for nine seconds more what it has held at most; a
/// stream uses its memory again within milliseconds, and its peak is the same.
pub(crate) fn keep_freed_memory() {
    let (option, default) = PURGE_DELAY;
    // SAFETY: both calls take any number of an option, and ignore those that there are not. Whatever else might have this
    // number in another version of the allocator has another default.
    unsafe {
        if mi_option_get(option) == default {
            mi_option_set_default(option, KEPT_FOR);
        }
    }
}
