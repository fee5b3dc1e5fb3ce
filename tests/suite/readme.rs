//! What the README and the pages in `docs/` say about the command and the library is so.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use declive::solve::{Criterion, Indefinite, Method, Reason};

const README: &str = include_str!("../../README.md");
/// The reference of the command.
const COMMAND: &str = include_str!("../../docs/command.md");

const ARCHITECTURE: &str = include_str!("../../docs/architecture.md");

/// All pages, by their paths.
const PAGES: &[(&str, &str)] = &[
    ("README.md", README),
    ("CHANGELOG.md", include_str!("../../CHANGELOG.md")),
    ("CONTRIBUTING.md", include_str!("../../CONTRIBUTING.md")),
    ("SECURITY.md", include_str!("../../SECURITY.md")),
    ("docs/command.md", COMMAND),
    ("docs/quick-start.md", include_str!("../../docs/quick-start.md")),
    ("docs/choosing.md", include_str!("../../docs/choosing.md")),
    ("docs/reading-reports.md", include_str!("../../docs/reading-reports.md")),
    ("docs/tuning.md", include_str!("../../docs/tuning.md")),
    ("docs/several-devices.md", include_str!("../../docs/several-devices.md")),
    ("docs/mpi.md", include_str!("../../docs/mpi.md")),
    ("docs/faults.md", include_str!("../../docs/faults.md")),
    ("docs/from-others.md", include_str!("../../docs/from-others.md")),
    ("docs/library.md", include_str!("../../docs/library.md")),
    ("docs/python.md", include_str!("../../docs/python.md")),
    ("docs/c.md", include_str!("../../docs/c.md")),
    ("docs/fem.md", include_str!("../../docs/fem.md")),
    ("docs/fdtd.md", include_str!("../../docs/fdtd.md")),
    ("docs/tridiagonal.md", include_str!("../../docs/tridiagonal.md")),
    ("docs/dense.md", include_str!("../../docs/dense.md")),
    ("docs/architecture.md", ARCHITECTURE),
    ("docs/contributing.md", include_str!("../../docs/contributing.md")),
    ("docs/measurements.md", include_str!("../../docs/measurements.md")),
    ("docs/scaling.md", include_str!("../../docs/scaling.md")),
    ("docs/studies.md", include_str!("../../docs/studies.md")),
    ("docs/SUMMARY.md", include_str!("../../docs/SUMMARY.md")),
    ("data/README.md", include_str!("../../data/README.md")),
    ("data/bad/README.md", include_str!("../../data/bad/README.md")),
    ("data/npz/README.md", include_str!("../../data/npz/README.md")),
];

/// Runs `declive` in the repository, without OpenCL.
fn declive(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_declive"))
        .args(args.split_whitespace())
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("OCL_ICD_VENDORS", "/nonexistent")
        .env_remove("OCL_ICD_FILENAMES")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

fn stdout(args: &str) -> String {
    String::from_utf8(declive(args).stdout).unwrap()
}

/// The options in a text: `--` and a word, unless they belong to cargo.
fn options(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let mut found = Vec::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        while let Some(start) = line.find("cargo ") {
            // up to what cargo hands on, or to the end of the quoted command
            let end = [" -- ", "`"].iter().filter_map(|s| line[start..].find(s)).min();
            line.replace_range(start..end.map_or(line.len(), |e| start + e), "");
        }
        for (at, _) in line.match_indices("--") {
            let word: String = line[at + 2..].chars().take_while(|&c| is_word(c)).collect();
            let begins = !line[..at].ends_with(|c: char| is_word(c) || c == '!');
            if begins && word.starts_with(|c: char| c.is_ascii_lowercase()) {
                found.push(format!("--{word}"));
            }
        }
    }
    found
}

/// The cells of the row of the reference whose first cell is `first`.
fn row(first: &str) -> Vec<&'static str> {
    let start = format!("| {first} |");
    let line = COMMAND.lines().find(|line| line.starts_with(&start));
    let line = line.unwrap_or_else(|| panic!("docs/command.md has no row {start}"));
    line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect()
}

#[test]
fn every_option_exists() {
    let bench = [
        "bench",
        "bench exchange",
        "bench precond",
        "bench primitives",
        "bench scaling",
        "bench tridiagonal",
        "bench blas",
        "bench fem",
    ]
    .into_iter()
    .chain(["bench study tridiagonal", "bench study lu", "bench study fdtd"]);
    let commands =
        ["", "solve", "info", "convert", "devices", "tune", "generate", "fdtd", "fem"].into_iter().chain(bench);
    let help = commands.map(|command| stdout(&format!("{command} --help"))).collect::<String>();
    // and those of the benches, by their texts
    let benches = [include_str!("../../benches/iteration.rs"), include_str!("../../benches/peers/compare.py")].concat();
    let known = options(&(help + &benches));
    for (page, text) in PAGES {
        let named = options(text);
        assert!(*page != "docs/command.md" || named.len() > 20, "{named:?}");
        for option in named {
            assert!(known.contains(&option) || is_of_others(&option), "{page} speaks of {option}");
        }
    }
}

/// Options of other programs: pkg-config, those that cargo makes of tests, scripts, `mpirun`, AMGCL.
fn is_of_others(option: &str) -> bool {
    ["--cflags", "--features", "--host", "--ignored", "--libs", "--map-by", "--mca", "--single-level"].contains(&option)
}

#[test]
fn every_option_of_a_solve_is_named() {
    let named = options(COMMAND);
    for option in options(&stdout("solve --help")).iter().filter(|o| *o != "--help") {
        assert!(named.contains(option), "docs/command.md says nothing of {option}");
    }
}

#[test]
fn the_methods_are_those_of_the_library() {
    let known: BTreeSet<_> = Method::ALL.iter().map(|method| method.name()).collect();
    let (_, table) = COMMAND.split_once("| method | for A").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let named: BTreeSet<_> = table.lines().filter_map(|line| line.strip_prefix("| `")).map(first_word).collect();
    assert_eq!(named, known);
    let meaning = row("`--method`")[1];
    let (_, list) = meaning.split_once(": ").unwrap();
    assert_eq!(list.split(", ").map(|name| name.trim_matches('`')).collect::<BTreeSet<_>>(), known);
}

#[test]
fn the_environment_is_that_of_the_help() {
    let help = stdout("solve --help");
    let (_, list) = help.split_once("Environment:\n").unwrap();
    let is_name =
        |word: &&str| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
    let known: BTreeSet<_> = list.lines().map(first_word).filter(is_name).collect();
    assert!(known.len() >= 5, "{known:?}");
    let (_, table) = COMMAND.split_once("| variable | meaning |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let named: BTreeSet<_> = table.lines().filter_map(|line| line.strip_prefix("| `")).map(first_word).collect();
    assert_eq!(named, known);
}

#[test]
fn the_options_of_info_and_convert_are_those_of_their_help() {
    let (_, table) = COMMAND.split_once("| option | of | meaning |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for command in ["info", "convert"] {
        let of = [format!("`{command}`"), "both".into()];
        let rows = table.lines().map(|line| line.split(" | ").collect::<Vec<_>>());
        let named: BTreeSet<_> = rows
            .filter(|cells| cells.len() == 3 && of.iter().any(|of| of == cells[1]))
            .flat_map(|cells| options(cells[0]))
            .collect();
        let mut known: BTreeSet<_> = options(&stdout(&format!("{command} --help"))).into_iter().collect();
        known.remove("--help");
        assert!(known.len() >= 4, "{known:?}");
        assert_eq!(named, known, "{command}");
    }
}

#[test]
fn the_options_of_bench_are_those_of_its_help() {
    let (_, table) = COMMAND.split_once("The options of `declive bench`:").unwrap();
    let (table, _) = table.split_once("\n\nIt exits").unwrap();
    let heads = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let named: BTreeSet<_> = heads.flat_map(options).collect();
    let mut known: BTreeSet<_> = options(&stdout("bench --help")).into_iter().collect();
    known.retain(|option| option != "--help" && option != "--verbose");
    assert_eq!(named, known);
}

#[test]
fn the_commands_are_those_of_the_help() {
    let (_, list) = COMMAND.split_once("| command | what it does |").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let named: BTreeSet<_> = list.lines().filter_map(|line| line.strip_prefix("| `declive ")).map(first_word).collect();
    let help = stdout("--help");
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let known: BTreeSet<_> = list.lines().map(first_word).filter(|&word| word != "help").collect();
    assert!(known.len() >= 5, "{known:?}");
    assert_eq!(named, known);
}

fn first_word(line: &str) -> &str {
    line.split([' ', '`']).find(|word| !word.is_empty()).unwrap()
}

#[test]
fn options_are_found() {
    let text =
        "`--rtol R`, -q|--quiet; <!-- note --> |---|---| a--b\n`cargo run --release -- solve --json` `cargo x --y` --z";
    assert_eq!(options(text), ["--rtol", "--quiet", "--json", "--z"]);
}

#[test]
fn the_example_is_the_example() {
    let example = include_str!("../../examples/solve.rs");
    let (_, code) = example.split_once("\n\n").unwrap();
    assert!(README.contains(&format!("```rust\n{code}```\n")), "examples/solve.rs and the README differ");
}

#[test]
fn exit_codes() {
    let help = stdout("solve --help");
    let runs = [
        (0, "solve data/jumps.mtx -q"),
        (1, "solve data/jumps.mtx -q --method cg --max-iters 1"),
        (2, "solve data/no-such-file.mtx"),
        (3, "solve data/jumps.mtx --devices gpu"),
    ];
    for (code, args) in runs {
        assert_eq!(declive(args).status.code(), Some(code), "{args}");
        let meaning = row(&code.to_string())[1];
        assert!(
            help.contains(&format!("  {code}  {meaning}\n")),
            "the help and docs/command.md differ on exit code {code}"
        );
    }
}

#[test]
fn the_method_that_is_shown_is_the_one_in_the_source() {
    let shown = ARCHITECTURE.split("```rust\n").nth(1).unwrap().split("```").next().unwrap();
    let source = include_str!("../../src/krylov/cg_textbook.rs");
    let source: String = source.lines().flat_map(|line| [line.strip_prefix("    ").unwrap_or(line), "\n"]).collect();
    assert!(source.contains(shown), "{shown}");
}

#[test]
fn reasons() {
    let table = COMMAND.split("| reason |").nth(1).unwrap();
    let reasons = [
        Reason::Converged(Criterion::Rtol),
        Reason::MaxIters,
        Reason::TimeLimit,
        Reason::Stagnation,
        Reason::Divergence,
        Reason::IndefiniteOperator(Indefinite::Diagonal { row: 1, value: 0.0 }),
        Reason::NonFinite(""),
        Reason::Interrupted,
    ];
    for reason in reasons {
        assert!(table.contains(&format!("`{}`", reason.name())), "{}", reason.name());
    }
}

/// Commands in a page's consoles, each with the exit code that it says, in the order given: a page's commands may need each other's files.
fn sessions(text: &str) -> Vec<(&str, i32)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("$ "));
    lines
        .map(|line| line.split_once("# exit code ").map_or((line, 0), |(line, code)| (line, code.parse().unwrap())))
        .collect()
}

/// Runs what a page shows, in a folder of its own that has `data/`: without OpenCL, but for what launches kernels.
#[cfg(unix)]
fn run_sessions(page: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root.join("data"), folder.path().join("data")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_declive")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let sessions = sessions(&text);
    assert!(!sessions.is_empty(), "{page}");
    for (line, code) in sessions {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(folder.path()).env("PATH", &path);
        command.env("DECLIVE_CACHE_DIR", folder.path().join("cache"));
        if page != "docs/tuning.md" {
            command.env("OCL_ICD_VENDORS", "/nonexistent").env_remove("OCL_ICD_FILENAMES");
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{page}: {line}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

macro_rules! pages_run {
    ($($name:ident: $page:literal;)+) => { $(#[test] #[cfg(unix)] fn $name() { run_sessions($page); })+ };
}

pages_run! {
    the_readme_runs: "README.md";
    the_reference_runs: "docs/command.md";
    quick_start_runs: "docs/quick-start.md";
    choosing_runs: "docs/choosing.md";
    reading_reports_runs: "docs/reading-reports.md";
    tuning_runs: "docs/tuning.md";
    several_devices_runs: "docs/several-devices.md";
    faults_run: "docs/faults.md";
}

#[test]
fn quick_start() {
    let args = README.lines().find_map(|line| line.strip_prefix("cargo run --release -- ")).unwrap();
    assert!(declive(args).status.success(), "{args}");
    for file in ["scripts/test", "docs/command.md", "docs/architecture.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(README.contains(file) && Path::new(env!("CARGO_MANIFEST_DIR")).join(file).exists(), "{file}");
    }
}

#[test]
fn the_book_has_every_page() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let pages: BTreeSet<_> = std::fs::read_dir(&docs)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".md") && name != "SUMMARY.md")
        .collect();
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    assert_eq!(links(&summary).into_iter().map(String::from).collect::<BTreeSet<_>>(), pages);
    let checked = PAGES.iter().filter_map(|(page, _)| page.strip_prefix("docs/"));
    assert_eq!(checked.filter(|page| *page != "SUMMARY.md").map(String::from).collect::<BTreeSet<_>>(), pages);
}

/// What a page's headings are called in links, outside of code.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if let Some((marks, heading)) = line.split_once(' ')
            && !is_code
            && !marks.is_empty()
            && marks.chars().all(|c| c == '#')
        {
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
            anchors.insert(kept.collect::<String>().to_lowercase().replace(' ', "-"));
        }
    }
    anchors
}

/// The targets of links in a text that are in this repository.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).collect()
}

#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut count = 0;
    for (page, text) in PAGES {
        for link in links(text) {
            count += 1;
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let file = if file.is_empty() { root.join(page) } else { root.join(page).parent().unwrap().join(file) };
            assert!(file.exists(), "{page} links to {link}");
            if let Some(anchor) = anchor {
                let there = anchors(&std::fs::read_to_string(file).unwrap());
                assert!(there.contains(anchor), "{page} links to {link}, but there is only {there:?}");
            }
        }
    }
    assert!(count > 40, "{count} links");
}

#[test]
fn anchors_and_links_are_found() {
    let text = "# What \"it\" is, now\n```sh\n# no heading\n```\n### A p\n[a](b.md#c) [d](https://e.f) [g](#h)";
    assert_eq!(anchors(text), ["what-it-is-now", "a-p"].map(String::from).into());
    assert_eq!(links(text), ["b.md#c", "#h"]);
}
