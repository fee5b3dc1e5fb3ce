//! How much memory was taken.

/// The most memory that this process had at one time, in bytes: pages of files that it has mapped among them, and what drivers have taken
/// on the host. `None` where the system doesn't tell: Linux does.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    of_status(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn of_status(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark() {
        assert_eq!(of_status("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t    12 kB\n"), Some(12 << 10));
        assert_eq!(of_status("VmHWM:\t12 pages\n"), None);
        assert_eq!(of_status(""), None);
        if cfg!(target_os = "linux") {
            let held = std::hint::black_box(vec![1u8; 1 << 24]);
            assert!(peak_bytes().unwrap() >= held.len() as u64);
        }
    }
}
