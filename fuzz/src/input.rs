//! The same bytes as a file and as a stream, on one thread and on several.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use rayon::ThreadPool;

fn pool(threads: usize) -> ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started")
}

/// A single thread.
pub static ONE: LazyLock<ThreadPool> = LazyLock::new(|| pool(1));

/// Three threads: no power of two.
pub static THREE: LazyLock<ThreadPool> = LazyLock::new(|| pool(3));

static SCRATCH: LazyLock<Mutex<File>> = LazyLock::new(|| {
    let file = tempfile::tempfile_in("/dev/shm").or_else(|_| tempfile::tempfile());
    Mutex::new(file.expect("a temporary file can be made"))
});

/// Calls `read` with the path of a file that holds `bytes`: without a name, and so gone with the process.
pub fn with_file<T>(bytes: &[u8], read: impl FnOnce(&std::path::Path) -> T) -> T {
    let mut file = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(bytes)).expect("the file can be written");
    read(&PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
}

/// Gives 1, 2, … up to `most` bytes at a time, then 1 again, with interruptions.
pub struct Drip<'a> {
    rest: &'a [u8],
    most: usize,
    calls: usize,
}

impl<'a> Drip<'a> {
    /// Sizes follow from the bytes themselves, so that a failure can be repeated.
    pub fn new(bytes: &'a [u8]) -> Self {
        let most = 1 + bytes.iter().fold(0usize, |sum, &b| sum.wrapping_mul(31).wrapping_add(b.into())) % 97;
        Self { rest: bytes, most, calls: 0 }
    }
}

impl Read for Drip<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.rest.by_ref().take((1 + self.calls % self.most) as u64).read(to)
    }
}
