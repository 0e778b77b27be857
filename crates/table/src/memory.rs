//! Large buffers that are about to be filled.

/// Minimum size of a buffer for huge pages.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// An empty vector with capacity for `count` values, in huge pages where the system provides them on request.
///
/// Filling a new buffer of many megabytes causes a page fault for every 4 KiB, about every thousand values, which
/// takes longer than a transform. NumPy does the same for its arrays.
pub(crate) fn reserved<T>(count: usize) -> Vec<T> {
    let made = Vec::with_capacity(count);
    #[cfg(target_os = "linux")]
    if size_of::<T>() * count >= LARGE {
        advise(&made);
    }
    made
}

#[cfg(target_os = "linux")]
fn advise<T>(buffer: &Vec<T>) {
    const PAGE: usize = 4096;
    let start = buffer.as_ptr().addr().next_multiple_of(PAGE);
    let end = buffer.as_ptr().addr() + buffer.capacity() * size_of::<T>();
    if let Some(length) = end.checked_sub(start) {
        // SAFETY: the pages belong to the buffer or to its neighbours on the heap, for which huge pages are fine too.
        // Their contents do not change, and a system that rejects the request changes nothing.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(start), length, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_of_all_sizes_can_be_filled() {
        for count in [0, 1, 1000, 1 << 20, (5 << 20) + 3] {
            let mut room = reserved::<u64>(count);
            assert!(room.is_empty() && room.capacity() >= count);
            room.resize(count, 7);
            assert!(room.iter().all(|value| *value == 7));
        }
    }
}
