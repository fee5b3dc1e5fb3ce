//! Memory for a program that solves large systems.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, Ordering};

/// The system's allocator, which asks for huge pages for what is large: `#[global_allocator]` of the command. An array that is written
/// once costs more to get in pages of 4 KiB than to fill: see `docs/measurements.md`, "Memory pages".
#[derive(Debug, Clone, Copy, Default)]
pub struct HugePages;

// SAFETY: all memory is the system allocator's, by the same layouts; the advice changes no byte of it.
unsafe impl GlobalAlloc for HugePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        advised(unsafe { System.realloc(ptr, layout, new_size) }, new_size)
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

fn advised(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        if EXITS.load(Ordering::Relaxed) {
            exit_if_aborted();
        }
    } else if size >= LARGE {
        prefer_huge_pages(block, size);
    }
    block
}

/// Whether the process ends where there is no memory.
static EXITS: AtomicBool = AtomicBool::new(false);

/// From here on, a process whose allocator is [`HugePages`] ends with status 3 where it would be aborted for lack of memory.
pub fn exit_when_short() {
    EXITS.store(true, Ordering::Relaxed);
}

/// If a block that could not be had aborts the process, it says so and exits. Installed only then: drivers install handlers of their own.
#[cfg(unix)]
fn exit_if_aborted() {
    extern "C" fn on_abort(_: libc::c_int) {
        const WORDS: &[u8] =
            b"error: the host has no memory left for this system; a machine with more takes it, or a larger limit \
            (ulimit -v, control group)\n";
        // SAFETY: both may be called in handlers of signals; the words are there for ever.
        unsafe {
            libc::write(2, WORDS.as_ptr().cast(), WORDS.len());
            libc::_exit(3);
        }
    }
    // SAFETY: the handler calls nothing that a handler may not.
    unsafe { libc::signal(libc::SIGABRT, on_abort as *const () as libc::sighandler_t) };
}

#[cfg(not(unix))]
fn exit_if_aborted() {}

/// A page of the large kind, in bytes.
const HUGE: usize = 2 << 20;

/// Blocks below are not worth a system call.
const LARGE: usize = 2 * HUGE;

/// Asks for huge pages wherever a live block covers whole ones. It is only a hint: failures are of no consequence.
#[cfg(target_os = "linux")]
fn prefer_huge_pages(block: *const u8, size: usize) {
    let start = (block as usize).next_multiple_of(HUGE);
    let end = (block as usize + size) / HUGE * HUGE;
    if start < end {
        // SAFETY: the range lies within the block, and this advice changes no byte of it.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn prefer_huge_pages(_: *const u8, _: usize) {}

/// The same of an array.
pub(super) fn prefer_huge_pages_of<T>(array: &[T]) {
    prefer_huge_pages(array.as_ptr().cast(), size_of_val(array));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_bytes() {
        for size in [1, LARGE - 1, LARGE, 5 * HUGE + 3] {
            let layout = Layout::from_size_align(size, 8).unwrap();
            // SAFETY: the layout is not empty, and each block is used within its size until it is given back.
            unsafe {
                let block = HugePages.alloc_zeroed(layout);
                assert!(!block.is_null() && (0..size).all(|k| *block.add(k) == 0));
                *block.add(size - 1) = 7;
                let longer = HugePages.realloc(block, layout, size + LARGE);
                assert_eq!(*longer.add(size - 1), 7);
                HugePages.dealloc(longer, Layout::from_size_align(size + LARGE, 8).unwrap());
                let block = HugePages.alloc(layout);
                assert!(!block.is_null());
                HugePages.dealloc(block, layout);
            }
        }
    }
}
