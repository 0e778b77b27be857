//! The memory allocator of the extension.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_get, mi_option_set_default, mi_option_t};

/// Columns are large and short-lived. The allocator of the C library returns their pages to the system at once; a
/// kernel that only copies would then spend most of its time waiting for the system to zero pages again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The option `mi_option_purge_delay`, which the bindings lack, and its default.
const PURGE_DELAY: (mi_option_t, c_long) = (15, 1_000);

/// Milliseconds for which freed memory is kept for reuse, the same as in jemalloc.
const KEPT_FOR: c_long = 10_000;

/// Keeps freed memory for ten seconds, unless `MIMALLOC_PURGE_DELAY` sets another time.
///
/// Programs often read a table, work on it for some seconds and then read the next one. With the allocator's default of
/// one second, all pages of the first result have been returned to the system by then, and zeroing them again took a
/// quarter to two fifths of the processor time of a read. The price is that a process holds its peak memory for nine
/// seconds longer. Streams reuse their memory within milliseconds, so their peak stays the same.
pub(crate) fn keep_freed_memory() {
    let (option, default) = PURGE_DELAY;
    // SAFETY: both calls accept any option number and ignore unknown ones. If another version of the allocator used the
    // number for another option, its default would differ.
    unsafe {
        if mi_option_get(option) == default {
            mi_option_set_default(option, KEPT_FOR);
        }
    }
}
