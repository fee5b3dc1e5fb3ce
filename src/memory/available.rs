//! How much memory there is.

use std::path::Path;

/// Bytes that this process can still take without driving others, or itself, out of memory: what the system has free or can free,
/// what its control groups let it have, and what it may map. `None` where the system doesn't tell.
///
/// Reads some small files of Linux. Others may take memory meanwhile.
pub(crate) fn available_bytes() -> Option<u64> {
    of(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
}

fn of(proc: &Path, groups: &Path) -> Option<u64> {
    let free = std::fs::read_to_string(proc.join("meminfo")).ok().and_then(|text| of_system(&text));
    let limit = std::fs::read_to_string(proc.join("self/cgroup")).ok().and_then(|text| of_groups(&text, groups));
    let read = |name: &str| std::fs::read_to_string(proc.join(name)).ok();
    let unmapped =
        read("self/limits").zip(read("self/statm")).and_then(|(limits, sizes)| of_addresses(&limits, &sizes));
    free.into_iter().chain(limit).chain(unmapped).min()
}

/// What is left of the limit on the address space (`ulimit -v`), if there is one: `statm` counts pages.
fn of_addresses(limits: &str, sizes: &str) -> Option<u64> {
    const PAGE: u64 = 4096;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let pages: u64 = sizes.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages * PAGE))
}

/// `MemAvailable`, in bytes.
fn of_system(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1 << 10)
}

/// The least that a control group of the process, or one above it, has left.
fn of_groups(memberships: &str, root: &Path) -> Option<u64> {
    let mut least: Option<u64> = None;
    for line in memberships.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        // version 2 has one tree without a name, version 1 one for each controller
        let (base, limit, usage, cache) = if controllers.is_empty() {
            (root.to_path_buf(), "memory.max", "memory.current", "inactive_file")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        } else {
            continue;
        };
        let number = |folder: &Path, name: &str| -> Option<u64> {
            std::fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
        };
        // within a container the tree may begin at the group itself, so that the path leads nowhere, but the base has the files
        for group in Path::new(group).ancestors() {
            let folder = base.join(group.strip_prefix("/").unwrap_or(group));
            let (Some(limit), Some(usage)) = (number(&folder, limit), number(&folder, usage)) else { continue };
            let left = limit.saturating_sub(usage.saturating_sub(reclaimable(&folder, cache)));
            least = Some(least.map_or(left, |least| least.min(left)));
        }
    }
    least
}

/// Bytes of files that are kept in memory as long as nobody needs it.
fn reclaimable(folder: &Path, name: &str) -> u64 {
    let text = std::fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files below a new folder.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn the_least_of_system_and_groups() {
        let meminfo = ("proc/meminfo", "MemTotal:  100 kB\nMemAvailable:     64 kB\n");
        let left = |files: &[(&str, &str)]| {
            let at = folder(files);
            of(&at.path().join("proc"), &at.path().join("sys"))
        };
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[meminfo]), Some(65536));
        let limited = [
            meminfo,
            (
                "proc/self/limits",
                "Limit  Soft Limit  Hard Limit  Units\nMax address space   50000   unlimited  bytes\n",
            ),
            ("proc/self/statm", "3 2 1 1 0 1 0\n"),
        ];
        assert_eq!(left(&limited), Some(50000 - 3 * 4096));
        let second = [
            meminfo,
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/a/b/memory.max", "max\n"),
            ("sys/a/b/memory.current", "5000\n"),
            ("sys/a/memory.max", "9000\n"),
            ("sys/a/memory.current", "7000\n"),
            ("sys/a/memory.stat", "anon 6000\ninactive_file 1000\n"),
        ];
        assert_eq!(left(&second), Some(3000));
        let first = [
            meminfo,
            ("proc/self/cgroup", "4:cpu:/x\n3:memory:/x\n0::/\n"),
            ("sys/memory/x/memory.limit_in_bytes", "2000\n"),
            ("sys/memory/x/memory.usage_in_bytes", "2500\n"),
            ("sys/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/memory/memory.usage_in_bytes", "2500\n"),
        ];
        assert_eq!(left(&first), Some(0));
    }

    #[test]
    fn of_this_machine() {
        if cfg!(target_os = "linux") {
            assert!(available_bytes().unwrap() > 1 << 20);
        }
    }
}
