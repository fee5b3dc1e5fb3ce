//! How much memory reading needs at its peak.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Anonymous memory of this process in bytes: what is allocated and touched, without mapped files. Linux only.
fn anonymous() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|e| format!("/proc/self/status: {e}"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("RssAnon:")).ok_or("no RssAnon in /proc/self/status")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().map_err(|e| format!("RssAnon: {e}"))?;
    Ok(kib << 10)
}

/// Bytes before, at the peak, and with the result still there.
pub struct Memory {
    pub before: u64,
    pub peak: u64,
    pub after: u64,
}

/// Calls `read` and looks at the process's memory once a millisecond.
pub fn watch<T>(read: impl FnOnce() -> T) -> Result<(Memory, T), String> {
    let before = anonymous()?;
    let done = AtomicBool::new(false);
    let (result, peak) = thread::scope(|scope| {
        let watcher = scope.spawn(|| -> Result<u64, String> {
            let mut peak = before;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(anonymous()?);
                thread::sleep(Duration::from_millis(1));
            }
            Ok(peak)
        });
        let result = read();
        done.store(true, Ordering::Relaxed);
        (result, watcher.join())
    });
    let after = anonymous()?;
    let peak = peak.map_err(|_| "the watcher panicked")??.max(after);
    Ok((Memory { before, peak, after }, result))
}
