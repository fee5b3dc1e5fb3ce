//! Compiled programs, kept on disk between runs.
//!
//! A program is kept as the binary that the driver gives of it, in a file whose name is the hash of all that it depends on.
//! A file begins with a header, so that nothing but what was written here, for this device, driver and source, and in
//! full, reaches the driver. If the driver refuses it all the same, the source is compiled. No problem with these files
//! is an error: each is a line in the log, where also each program says whether it was compiled.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use opencl3::device::Device;
use opencl3::platform::Platform;
use opencl3::program::Program;

use super::{Context, Info};
use crate::cache::{self, Digest};
use crate::error::Result;

/// The most bytes of all files together.
const MAX_BYTES: u64 = 64 << 20;

/// The first bytes of a file.
const MAGIC: &[u8; 16] = b"declive program\x01";

/// Bytes of the header: magic, hash of the key, length and hash of the binary.
const HEADER: usize = 16 + 32 + 8 + 32;

/// What the names of files end in.
const SUFFIX: &str = "bin";

/// Where a program came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It was compiled.
    Source,
    /// It was kept.
    Binary,
}

/// A directory of compiled programs.
#[derive(Debug)]
pub(super) struct Programs {
    dir: PathBuf,
    max_bytes: u64,
}

impl Programs {
    /// The programs kept for this user, if `device` may get such: not where the source itself is looked at, by Oclgrind or
    /// (with `-cl-kernel-arg-info`) by the check of arguments in builds with debug assertions; and not in unit tests. The
    /// environment variable `DECLIVE_PROGRAM_CACHE`, if it is `off`, leaves them alone.
    pub(super) fn of_user(device: &Info, options: &str) -> Option<Self> {
        let off = std::env::var_os("DECLIVE_PROGRAM_CACHE").is_some_and(|v| v == "off");
        if off || cfg!(test) || needs_source(&device.platform, options) {
            return None;
        }
        Some(Self::at(cache::directory()?.join("programs")))
    }

    fn at(dir: PathBuf) -> Self {
        Self { dir, max_bytes: MAX_BYTES }
    }

    fn path(&self, key: Digest) -> PathBuf {
        self.dir.join(format!("{key}.{SUFFIX}"))
    }

    /// The binary kept under `key`, which counts as used now.
    fn load(&self, key: Digest) -> Option<Vec<u8>> {
        let path = self.path(key);
        match fs::read(&path) {
            Ok(file) => {
                let binary = unpack(&file, key);
                if binary.is_none() {
                    log::debug!("{}: a damaged program is not used", path.display());
                }
                let touched = File::options().append(true).open(&path).and_then(|f| f.set_modified(SystemTime::now()));
                if let Err(e) = touched {
                    log::debug!("{}: its age stays as it is: {e}", path.display());
                }
                binary
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => {
                log::debug!("{}: {e}", path.display());
                None
            }
        }
    }

    /// Keeps `binary` under `key`, and makes room for it.
    fn save(&self, key: Digest, binary: &[u8]) -> io::Result<()> {
        cache::write(&self.path(key), &pack(key, binary))?;
        self.shrink()
    }

    /// Removes files that were not used for the longest time, until the others are small enough together.
    fn shrink(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for file in fs::read_dir(&self.dir)? {
            let path = file?.path();
            if path.extension() == Some(OsStr::new(SUFFIX))
                && let Ok(meta) = fs::metadata(&path)
            {
                files.push((meta.modified()?, meta.len(), path));
            }
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, size, path) in files {
            if bytes <= self.max_bytes {
                break;
            }
            remove(&path);
            bytes -= size;
        }
        Ok(())
    }
}

/// Builds `source` for the device of `context`: from `programs` if it is kept there; otherwise it is compiled, and kept
/// there.
///
/// # Errors
/// [`Error::KernelBuild`](crate::Error::KernelBuild) with the compiler's log.
pub(super) fn build(
    context: &Context,
    source: &str,
    options: &str,
    programs: Option<&Programs>,
) -> Result<(Program, Origin)> {
    let device = &context.info().name;
    let start = Instant::now();
    let Some(programs) = programs else {
        let program = context.compile(source, options)?;
        log::debug!("{device}: program compiled in {:.1?}, not to be kept", start.elapsed());
        return Ok((program, Origin::Source));
    };
    let key = key(context, source, options);
    if let Some(binary) = programs.load(key) {
        match context.load(&binary, options) {
            Ok(program) => {
                let path = programs.path(key);
                log::debug!("{device}: program taken in {:.1?} from {}", start.elapsed(), path.display());
                return Ok((program, Origin::Binary));
            }
            Err(e) => log::debug!("{}: the driver refuses it: {e}", programs.path(key).display()),
        }
    }
    let start = Instant::now();
    let program = context.compile(source, options)?;
    let compiled = start.elapsed();
    // in a context of several devices, there is one for that which it was compiled for
    let of_device = |binaries: Vec<Vec<u8>>| binaries.into_iter().find(|binary| !binary.is_empty());
    let kept = match program.get_binaries().map(of_device) {
        Ok(Some(binary)) => programs.save(key, &binary).map_err(|e| e.to_string()),
        Ok(_) => Err("the driver gives no binary".into()),
        Err(e) => Err(format!("the driver gives no binary: {e}")),
    };
    match kept {
        Ok(()) => {
            let keeping = start.elapsed() - compiled;
            log::debug!("{device}: program compiled in {compiled:.1?}, kept in {keeping:.1?}");
        }
        Err(why) => {
            let path = programs.path(key);
            log::debug!("{device}: program compiled in {compiled:.1?}, not kept as {}: {why}", path.display());
        }
    }
    Ok((program, Origin::Source))
}

fn needs_source(platform: &str, options: &str) -> bool {
    platform.contains("Oclgrind") || options.contains("-cl-kernel-arg-info")
}

/// The hash of all that a binary depends on.
fn key(context: &Context, source: &str, options: &str) -> Digest {
    let info = context.info();
    // The compiler behind a driver may change without the driver's version: PoCL tells its compiler's here.
    let platform = Device::new(context.id()).platform().and_then(|id| Platform::new(id).version()).unwrap_or_default();
    let parts = [
        env!("CARGO_PKG_VERSION"),
        &info.name,
        &info.vendor,
        &info.platform,
        &platform,
        &info.driver,
        &info.opencl,
        options,
        source,
    ];
    Digest::of(parts.map(str::as_bytes))
}

fn pack(key: Digest, binary: &[u8]) -> Vec<u8> {
    [&MAGIC[..], &key.0, &(binary.len() as u64).to_le_bytes(), &Digest::of([binary]).0, binary].concat()
}

/// The binary in a file, if it is whole and the one of `key`.
fn unpack(file: &[u8], key: Digest) -> Option<Vec<u8>> {
    let (header, binary) = file.split_at_checked(HEADER)?;
    let expected = pack(key, binary);
    (header == &expected[..HEADER]).then(|| binary.to_vec())
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => log::debug!("{}: can't be removed: {e}", path.display()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    const SOURCE: &str = "kernel void one(global int* x) { x[get_global_id(0)] = VALUE; }";

    fn context() -> Context {
        let listing = crate::device::list();
        let device = listing.devices.first().expect("the tests need an OpenCL device: apt-get install pocl-opencl-icd");
        Context::open(device).unwrap()
    }

    fn digest(byte: u8) -> Digest {
        Digest::of([&[byte][..]])
    }

    fn programs() -> (tempfile::TempDir, Programs) {
        let dir = tempfile::tempdir().unwrap();
        let programs = Programs::at(dir.path().join("programs"));
        (dir, programs)
    }

    /// What the kernel `one` of a program writes.
    fn value(ctx: &Context, program: &Program) -> i32 {
        use crate::device::{DeviceVec, Grid};
        let x = DeviceVec::<i32>::zeros(ctx, 1, "x").unwrap();
        let kernel = ctx.kernel(program, "one", ["float"; 2]).unwrap();
        let argument = x.mem();
        // SAFETY: the kernel's one argument is a buffer of ints, of as many as there are work-items.
        unsafe {
            kernel.kernel.set_arg(0, &argument).unwrap();
            ctx.launch(&kernel, Grid { groups: 1, group_size: 1 }).unwrap();
        }
        let mut result = [0];
        x.read(ctx, 0, &mut result).unwrap();
        result[0]
    }

    #[test]
    fn a_second_build_takes_the_binary() {
        let (ctx, (_dir, programs)) = (context(), programs());
        let build = |options| {
            let (program, origin) = build(&ctx, SOURCE, options, Some(&programs)).unwrap();
            (value(&ctx, &program), origin)
        };
        assert_eq!(build("-D VALUE=5"), (5, Origin::Source));
        assert_eq!(build("-D VALUE=5"), (5, Origin::Binary));
        assert_eq!(build("-D VALUE=6"), (6, Origin::Source));
        assert_eq!(build("-D VALUE=6"), (6, Origin::Binary));
        assert_eq!(build("-D VALUE=5"), (5, Origin::Binary));
    }

    #[test]
    fn damaged_files_are_replaced() {
        let (ctx, (_dir, programs)) = (context(), programs());
        let options = "-D VALUE=5";
        let key = key(&ctx, SOURCE, options);
        build(&ctx, SOURCE, options, Some(&programs)).unwrap();
        let whole = fs::read(programs.path(key)).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let foreign = pack(digest(0), &whole[HEADER..]);
        // what the driver itself has to refuse
        let nonsense = pack(key, b"no program of any kind");
        for damaged in [&whole[..whole.len() - 1], &whole[..20], &[], &flipped, &foreign, &nonsense] {
            fs::write(programs.path(key), damaged).unwrap();
            let (program, origin) = build(&ctx, SOURCE, options, Some(&programs)).unwrap();
            assert_eq!((value(&ctx, &program), origin), (5, Origin::Source), "{} bytes", damaged.len());
            let (_, origin) = build(&ctx, SOURCE, options, Some(&programs)).unwrap();
            assert_eq!(origin, Origin::Binary);
        }
    }

    #[test]
    fn without_a_directory_programs_are_compiled() {
        let (ctx, file) = (context(), tempfile::NamedTempFile::new().unwrap());
        let programs = Programs::at(file.path().into());
        for _ in 0..2 {
            let (program, origin) = build(&ctx, SOURCE, "-D VALUE=5", Some(&programs)).unwrap();
            assert_eq!((value(&ctx, &program), origin), (5, Origin::Source));
        }
    }

    #[test]
    fn what_does_not_compile_is_an_error_and_not_kept() {
        let (ctx, (_dir, programs)) = (context(), programs());
        let failed = build(&ctx, "kernel void one(", "", Some(&programs)).err();
        assert!(matches!(failed, Some(Error::KernelBuild { .. })));
        assert!(!programs.dir.exists());
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes() {
        let (_dir, mut programs) = programs();
        programs.max_bytes = 3 * (HEADER as u64 + 100);
        let there = |programs: &Programs| [1, 2, 3, 4].map(|k| programs.path(digest(k)).exists());
        for k in 1..=3 {
            programs.save(digest(k), &[k; 100]).unwrap();
            let file = File::options().append(true).open(programs.path(digest(k))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(100 - u64::from(k))).unwrap();
        }
        assert_eq!(there(&programs), [true, true, true, false]);
        assert_eq!(programs.load(digest(1)), Some(vec![1; 100]));
        programs.save(digest(4), &[4; 100]).unwrap();
        assert_eq!(there(&programs), [true, false, true, true]);
        assert_eq!(programs.load(digest(2)), None);
    }

    #[test]
    fn those_who_look_at_the_source_get_it() {
        for (platform, options, expected) in [
            ("Oclgrind", "", true),
            ("Portable Computing Language", "-D A -cl-kernel-arg-info -D B", true),
            ("NVIDIA CUDA", "-D A", false),
        ] {
            assert_eq!(needs_source(platform, options), expected, "{platform} {options}");
        }
    }

    proptest! {
        #[test]
        fn a_file_with_any_damage_gives_nothing(
            binary in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u32,
        ) {
            let file = pack(digest(1), &binary);
            prop_assert_eq!(unpack(&file, digest(1)), Some(binary.clone()));
            prop_assert_eq!(unpack(&file, digest(2)), None);
            prop_assert_eq!(unpack(&file[..at.index(file.len())], digest(1)), None);
            let mut changed = file.clone();
            changed[at.index(file.len())] ^= 1_u8 << bit;
            prop_assert_eq!(unpack(&changed, digest(1)), None);
            changed = file;
            changed.push(0);
            prop_assert_eq!(unpack(&changed, digest(1)), None);
        }
    }
}
