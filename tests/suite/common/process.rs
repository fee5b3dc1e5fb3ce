//! `declive` as a process: where it works, and what it leaves.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use declive::Csr;
use declive::matrix_market::{read_matrix, read_vectors};
use serde_json::Value;
use tempfile::TempDir;

/// A working directory, and one for what is kept between runs.
pub(crate) struct Place {
    work: TempDir,
    cache: TempDir,
}

impl Place {
    /// Compiled programs, which depend on nothing but their sources, are those of all tests.
    pub(crate) fn new() -> Self {
        let cache = tempfile::tempdir().unwrap();
        let programs = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs");
        fs::create_dir_all(&programs).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&programs, cache.path().join("programs")).unwrap();
        Self { work: tempfile::tempdir().unwrap(), cache }
    }

    /// Where commands keep what they find.
    pub(crate) fn cache(&self) -> &Path {
        self.cache.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn matrix(&self, name: &str) -> Csr {
        read_matrix(&self.path(name)).unwrap().a
    }

    pub(crate) fn vectors(&self, name: &str) -> Vec<Vec<f64>> {
        read_vectors(&self.path(name)).unwrap()
    }

    /// The files of the working directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = fs::read_dir(self.work.path()).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// `declive` with arguments that have no blanks within.
    pub(crate) fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_declive"));
        command
            .args(args.split_whitespace())
            .current_dir(self.work.path())
            .env("DECLIVE_CACHE_DIR", self.cache())
            .env_remove("RUST_LOG");
        command
    }

    /// The same where no OpenCL platform can be found.
    pub(crate) fn command_without_opencl(&self, args: &str) -> Command {
        let mut command = self.command(args);
        command.env("OCL_ICD_VENDORS", "/nonexistent").env_remove("OCL_ICD_FILENAMES");
        command
    }

    pub(crate) fn run(&self, args: &str) -> Run {
        Run::of(self.command(args), "")
    }

    /// With an address space of so many KiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn run_within(&self, kib: u64, args: &str) -> Run {
        let mut command = Command::new("sh");
        let line = format!("ulimit -v {kib}; exec {} {args}", env!("CARGO_BIN_EXE_declive"));
        command.args(["-c", &line]).current_dir(self.work.path()).env("DECLIVE_CACHE_DIR", self.cache());
        command.env_remove("RUST_LOG").env("OCL_ICD_VENDORS", "/nonexistent");
        Run::of(command, "")
    }

    pub(crate) fn run_with(&self, args: &str, stdin: impl AsRef<[u8]>) -> Run {
        Run::of(self.command(args), stdin)
    }

    pub(crate) fn run_without_opencl(&self, args: &str) -> Run {
        Run::of(self.command_without_opencl(args), "")
    }
}

/// What a process left.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Runs to the end.
    pub(crate) fn of(command: Command, stdin: impl AsRef<[u8]>) -> Self {
        let output = assert_cmd::Command::from_std(command).write_stdin(stdin.as_ref()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// The same, but not longer than a minute: then the process is killed, and has no code.
    pub(crate) fn in_time(command: Command) -> Self {
        let output = assert_cmd::Command::from_std(command).timeout(Duration::from_secs(60)).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Ended with `code`.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// Did what was asked for: standard output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        self.ends(0).out
    }

    /// Ended with `code` and a single line `error: …` that has all of `parts`, and nothing on standard output.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, parts: &[&str]) {
        let run = self.ends(code);
        assert!(run.err.starts_with("error: ") && run.err.lines().count() == 1, "{}", run.err);
        run.complains(parts);
    }

    /// Ended with wrong usage, found by the parser of arguments.
    #[track_caller]
    pub(crate) fn misused(self, parts: &[&str]) {
        self.ends(2).complains(parts);
    }

    #[track_caller]
    fn complains(&self, parts: &[&str]) {
        assert_eq!(self.out, "");
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in {:?}", self.err);
        }
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err));
        assert_eq!(value["version"], 1);
        value
    }
}

/// A file with the columns of a matrix.
pub(crate) fn array(columns: &[Vec<f64>]) -> String {
    let mut text = format!("%%MatrixMarket matrix array real general\n{} {}\n", columns[0].len(), columns.len());
    for value in columns.iter().flatten() {
        text += &format!("{value:e}\n");
    }
    text
}

/// Starts with pipes, and waits until standard error has a line with `sign`.
pub(crate) fn started(mut command: Command, sign: &str) -> (Child, BufReader<ChildStderr>) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains(sign) {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "ended without {sign:?}");
    }
    (child, err)
}

/// Three devices where PoCL is: two that are the same but for their number, and another one.
pub(crate) fn on_three_devices(mut command: Command, fault: &str) -> Command {
    command.env("POCL_DEVICES", "pthread pthread basic").env("DECLIVE_FAULT", fault);
    command
}

/// Does what Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    // the shell's own: small systems have no such program
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// This program once more, for one of its tests alone: `module::name`.
pub(crate) fn alone(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--include-ignored", "--nocapture"]);
    command
}
