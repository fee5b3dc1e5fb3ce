//! The store of launch parameters: threads and processes that insert at once, killed ones, files and directories in any
//! state.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, Once};
use std::time::{Duration, SystemTime};

use crate::common::process::alone;
use declive::tune::store::{
    Device, Entry, FormatEntry, FormatKey, FormatTime, IterationTimeEntry, IterationTimeKey, Key, Known, LatencyEntry,
    LatencyKey, Size, SolveEntry, SolveKey, SolveTime, Store, source_hash,
};
use declive::tune::{Launch, Timing};
use proptest::prelude::*;

// --------------------------------------------------------------------------------------------- what is stored

fn device(name: &str) -> Device {
    Device { name: name.into(), vendor: "maker".into(), platform: "OpenCL".into(), compute_units: 4 }
}

/// The key of this number.
fn key(number: u64) -> Key {
    Key {
        kernel: format!("kernel_{number}"),
        element: "double".into(),
        sum: "double".into(),
        size: Size::of_matrix(1000, 5000),
        driver: "1.0".into(),
        sources: source_hash(["source"]),
        options: "-cl-std=CL1.2".into(),
    }
}

/// An entry that shows `mark` as its time.
fn entry(key: Key, mark: f64) -> Entry {
    let launch = Launch { group_size: 64, groups_per_unit: 8, block_nnz: 2048, items_per_row: 2 };
    Entry::new(key, launch, Timing { median: mark, low: mark, high: mark, runs: 9 })
}

fn numbered(number: u64) -> Entry {
    entry(key(number), 1e-6)
}

/// What the entries show, by kernel.
fn marks(known: &Known) -> BTreeMap<String, f64> {
    known.entries.iter().map(|entry| (entry.key.kernel.clone(), entry.timing.median)).collect()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

// ------------------------------------------------------------------------------------------------- the log

static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Log;

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.level() <= log::Level::Warn {
            LOG.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// The warnings that name `path`.
fn warnings(path: &Path) -> Vec<String> {
    let path = path.display().to_string();
    LOG.lock().unwrap().iter().filter(|line| line.contains(&path)).cloned().collect()
}

/// A directory for a store, whose warnings are kept.
fn place() -> tempfile::TempDir {
    static FIRST: Once = Once::new();
    FIRST.call_once(|| {
        log::set_logger(&Log).unwrap();
        log::set_max_level(log::LevelFilter::Warn);
    });
    tempfile::tempdir().unwrap()
}

// ------------------------------------------------------------------------------------------- entries and keys

#[test]
fn what_is_inserted_is_found_by_another_store() {
    let dir = place();
    let path = Store::at(dir.path()).insert(&device("Intel(R) Xeon™ CPU"), [numbered(1), numbered(2)]).unwrap();
    let file = path.file_name().unwrap().to_str().unwrap();
    assert!(file.starts_with("intel-r-xeon-cpu-") && file.ends_with(".json"), "{file}");
    let store = Store::at(dir.path());
    let known = store.load(&device("Intel(R) Xeon™ CPU"));
    assert_eq!(known.entries.len(), 2);
    assert_eq!(known.lookup(&key(2)).unwrap().entry.launch, numbered(2).launch);
    assert!(known.lookup(&key(3)).is_none());
    assert_eq!(store.list(), [known]);
}

#[test]
fn every_part_of_a_key_and_of_a_device_matters() {
    let dir = place();
    let store = Store::at(dir.path());
    store.insert(&device("d"), [numbered(1)]).unwrap();
    let known = store.load(&device("d"));
    assert!(known.lookup(&key(1)).unwrap().exact);
    let other = || "other".to_string();
    for key in [
        Key { kernel: other(), ..key(1) },
        Key { element: other(), ..key(1) },
        Key { sum: other(), ..key(1) },
        Key { driver: other(), ..key(1) },
        Key { sources: other(), ..key(1) },
        Key { options: other(), ..key(1) },
        Key { size: Size::of_vector(1000), ..key(1) },
    ] {
        assert!(known.lookup(&key).is_none(), "{key:?}");
    }
    for device in [
        device("e"),
        Device { vendor: other(), ..device("d") },
        Device { platform: other(), ..device("d") },
        Device { compute_units: 5, ..device("d") },
    ] {
        assert!(store.load(&device).entries.is_empty(), "{device:?}");
    }
}

#[test]
fn sizes_are_classes_of_a_factor_of_two() {
    let class = |n| Size::of_vector(n).rows_log2;
    assert_eq!([0, 1, 2, 3, 4, 1023, 1024, usize::MAX].map(class), [0, 0, 1, 1, 2, 9, 10, usize::BITS - 1]);
    assert_eq!(Size::of_matrix(8, 63), Size { rows_log2: 3, entries_log2: Some(5) });
    assert_eq!(Size::of_matrix(0, 0), Size { rows_log2: 0, entries_log2: Some(0) });
}

#[test]
fn the_nearest_size_within_a_step_is_found() {
    let dir = place();
    let store = Store::at(dir.path());
    let sized = |rows_log2, entries_log2| Key { size: Size { rows_log2, entries_log2 }, ..key(1) };
    store.insert(&device("d"), [entry(sized(10, Some(12)), 1.0), entry(sized(11, Some(13)), 2.0)]).unwrap();
    store.insert(&device("d"), [entry(sized(10, None), 3.0), entry(sized(14, None), 4.0)]).unwrap();
    let known = store.load(&device("d"));
    let found = |rows, entries| known.lookup(&sized(rows, entries)).map(|hit| (hit.entry.timing.median, hit.exact));
    assert_eq!(found(10, Some(12)), Some((1.0, true)));
    assert_eq!(found(11, Some(13)), Some((2.0, true)));
    assert_eq!(found(9, Some(11)), Some((1.0, false)));
    assert_eq!(found(12, Some(13)), Some((2.0, false)));
    assert_eq!(found(11, Some(12)), Some((1.0, false)), "of two alike, the smaller");
    assert_eq!(found(12, Some(15)), None);
    assert_eq!(found(8, Some(12)), None);
    assert_eq!(found(10, None), Some((3.0, true)));
    assert_eq!(found(13, None), Some((4.0, false)));
    assert_eq!(found(12, None), None);
}

/// A file from before there was this parameter.
#[test]
fn what_an_old_file_does_not_know_is_one() {
    let dir = place();
    let store = Store::at(dir.path());
    let path = store.insert(&device("d"), [numbered(1), numbered(2)]).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let is_new = |line: &&str| line.contains("\"items_per_row\"");
    assert_eq!(text.lines().filter(is_new).count(), 2);
    let old: String = text.lines().filter(|line| !is_new(line)).collect::<Vec<_>>().join("\n");
    fs::write(&path, old.replace("\"block_nnz\": 2048,", "\"block_nnz\": 2048")).unwrap();
    let known = store.load(&device("d"));
    let expected = Launch { items_per_row: 1, ..numbered(1).launch };
    assert_eq!(known.entries.iter().map(|entry| entry.launch).collect::<Vec<_>>(), [expected; 2]);
    // and an insert brings it up to date
    store.insert(&device("d"), [numbered(3)]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().matches("\"items_per_row\": 1").count(), 2);
}

#[test]
fn what_makes_no_sense_is_left_out() {
    let dir = place();
    let store = Store::at(dir.path());
    let with = |group_size, groups_per_unit, time| {
        let entry = entry(key(1), time);
        Entry { launch: Launch { group_size, groups_per_unit, ..entry.launch }, ..entry }
    };
    let shaped = |items_per_row| {
        let entry = entry(key(1), 1.0);
        Entry { launch: Launch { items_per_row, ..entry.launch }, ..entry }
    };
    store.insert(&device("d"), [shaped(0), shaped(3)]).unwrap();
    assert!(store.load(&device("d")).entries.is_empty());
    let none = [with(0, 1, 1.0), with(3, 1, 1.0), with(4, 0, 1.0), with(4, 1, f64::NAN), with(4, 1, f64::INFINITY)];
    store.insert(&device("d"), none).unwrap();
    assert!(store.load(&device("d")).entries.is_empty());
    store.insert(&device("d"), [with(4, 1, 0.0)]).unwrap();
    assert_eq!(store.load(&device("d")).entries.len(), 1);
}

#[test]
fn beyond_512_entries_the_oldest_go_and_first_those_out_of_use() {
    let dir = place();
    let store = Store::at(dir.path());
    let former = |number| entry(Key { driver: "0.9".into(), ..key(number) }, 1.0);
    let count = |driver: &str| {
        let known = store.load(&device("d"));
        assert!(known.entries.is_sorted_by(|one, other| one.key < other.key));
        known.entries.iter().filter(|entry| entry.key.driver == driver).count()
    };
    let path = store.insert(&device("d"), (0..300).map(numbered)).unwrap();
    store.insert(&device("d"), (0..212).map(former)).unwrap();
    assert_eq!((count("1.0"), count("0.9")), (300, 212));

    // Those of another driver go first, although they are newer.
    age(&path, "\"driver\": \"1.0\"");
    store.insert(&device("d"), (300..400).map(numbered)).unwrap();
    assert_eq!((count("1.0"), count("0.9")), (400, 112));
    store.insert(&device("d"), (400..600).map(numbered)).unwrap();
    assert_eq!((count("1.0"), count("0.9")), (512, 0));
    let kept = marks(&store.load(&device("d")));
    assert_eq!((300..600).filter(|k| kept.contains_key(&format!("kernel_{k}"))).count(), 300, "the newest are there");
}

/// Makes the entries of a file that have this line an hour older.
fn age(path: &Path, line: &str) {
    let mut content: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for entry in content["entries"].as_array_mut().unwrap() {
        if serde_json::to_string_pretty(entry).unwrap().contains(line) {
            entry["inserted"] = (entry["inserted"].as_u64().unwrap() - 3600).into();
        }
    }
    fs::write(path, serde_json::to_string(&content).unwrap()).unwrap();
}

#[test]
fn a_clock_that_was_set_back_makes_no_entry_older_than_former_ones() {
    let dir = place();
    let store = Store::at(dir.path());
    let path = store.insert(&device("d"), [numbered(1)]).unwrap();
    let mut content: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    content["entries"][0]["inserted"] = 99_000_000_000_u64.into();
    fs::write(&path, content.to_string()).unwrap();
    store.insert(&device("d"), [numbered(2)]).unwrap();
    assert_eq!(store.load(&device("d")).entries[1].inserted, 99_000_000_000);
}

#[test]
fn the_file_is_for_people_too() {
    let dir = place();
    let store = Store::at(dir.path());
    let path = store.insert(&device("d"), [Entry { inserted: 0, ..numbered(1) }]).unwrap();
    let text = fs::read_to_string(path).unwrap();
    let inserted = store.load(&device("d")).entries[0].inserted;
    let expected = format!(
        r#"{{
  "version": 1,
  "device": {{
    "name": "d",
    "vendor": "maker",
    "platform": "OpenCL",
    "compute_units": 4
  }},
  "entries": [
    {{
      "kernel": "kernel_1",
      "element": "double",
      "sum": "double",
      "rows_log2": 9,
      "entries_log2": 12,
      "driver": "1.0",
      "sources": "{}",
      "options": "-cl-std=CL1.2",
      "launch": {{
        "group_size": 64,
        "groups_per_unit": 8,
        "block_nnz": 2048,
        "items_per_row": 2
      }},
      "timing": {{
        "median": 1e-6,
        "low": 1e-6,
        "high": 1e-6,
        "runs": 9
      }},
      "inserted": {inserted}
    }}
  ]
}}
"#,
        source_hash(["source"])
    );
    assert_eq!(text, expected);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    assert!(now - inserted < 600);
}

#[test]
fn clear_removes_the_files_of_all_devices_and_nothing_else() {
    let dir = place();
    let store = Store::at(dir.path().join("tuning"));
    assert_eq!((store.clear(), store.list().len()), (0, 0));
    assert!(!dir.path().join("tuning").exists());
    for name in ["one", "two", "two"] {
        store.insert(&device(name), [numbered(1)]).unwrap();
    }
    fs::write(store.path(&device("three")).unwrap(), "damaged").unwrap();
    fs::write(dir.path().join("tuning/notes.txt"), "mine").unwrap();
    assert_eq!(store.list().iter().map(|known| known.device.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(store.clear(), 3);
    assert_eq!(names(&dir.path().join("tuning")), ["lock", "notes.txt"]);
    assert!(store.load(&device("one")).entries.is_empty());
    assert_eq!(store.clear(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any inserts by two stores on one directory: what is there in the end is their union, the last one of each key.
    #[test]
    fn two_stores_keep_the_union(
        inserts in prop::collection::vec((any::<bool>(), 0..3_u8, prop::collection::vec((0..6_u64, 1e-9..1e3), 0..5)), 0..12)
    ) {
        let dir = tempfile::tempdir().unwrap();
        let stores = [Store::at(dir.path()), Store::at(dir.path())];
        let mut expected: [BTreeMap<String, f64>; 3] = Default::default();
        for (which, of, entries) in inserts {
            let new = entries.iter().map(|&(number, mark)| entry(key(number), mark));
            prop_assert!(stores[usize::from(which)].insert(&device(&of.to_string()), new).is_some());
            expected[usize::from(of)].extend(entries.iter().map(|(n, mark)| (key(*n).kernel, *mark)));
            for (of, expected) in expected.iter().enumerate() {
                for store in &stores {
                    prop_assert_eq!(&marks(&store.load(&device(&of.to_string()))), expected);
                }
            }
        }
    }

    /// Whatever happens to a file, it gives nothing or what was in it, and the next insert makes it good.
    #[test]
    fn a_cut_or_changed_file_does_no_harm(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let dir = place();
        let store = Store::at(dir.path());
        let path = store.insert(&device("d"), [numbered(1), numbered(2)]).unwrap();
        let mut text = fs::read(&path).unwrap();
        let at = at.index(text.len());
        if cut { text.truncate(at) } else { text[at] = byte }
        fs::write(&path, &text).unwrap();
        prop_assert!(store.load(&device("d")).entries.len() <= 2);
        let newer = serde_json::from_slice::<serde_json::Value>(&text).is_ok_and(|c| c["version"].as_u64() > Some(1));
        prop_assert_eq!(store.insert(&device("d"), [numbered(3)]).is_none(), newer);
        prop_assert_eq!(store.load(&device("d")).lookup(&key(3)).is_none(), newer);
    }
}

// ------------------------------------------------------------------------------------- files in any state

#[test]
fn a_damaged_file_is_warned_of_once_and_replaced() {
    let dir = place();
    let store = Store::at(dir.path());
    let path = store.insert(&device("d"), [numbered(1)]).unwrap();
    let whole = fs::read_to_string(&path).unwrap();
    let elsewhere = whole.replace("\"name\": \"d\"", "\"name\": \"e\"");
    let senseless = whole.replace("\"group_size\": 64", "\"group_size\": 63");
    for damaged in
        ["", "{", &whole[..whole.len() / 2], "[1]", "{\"version\": 1}", "{\"version\": 0}", &elsewhere, &senseless]
    {
        fs::write(&path, damaged).unwrap();
        assert!(store.load(&device("d")).entries.is_empty(), "{damaged}");
    }
    store.insert(&device("d"), [numbered(2)]).unwrap();
    assert_eq!(marks(&store.load(&device("d"))).into_keys().collect::<Vec<_>>(), ["kernel_2"]);
    let [warning] = &warnings(&path)[..] else { panic!("{:?}", warnings(&path)) };
    assert!(warning.contains("damaged") && warning.contains("tune again"), "{warning}");
}

#[test]
fn a_file_of_a_later_version_stays() {
    let dir = place();
    let store = Store::at(dir.path());
    let path = store.path(&device("d")).unwrap();
    let later = r#"{"version": 2, "what": "nobody knows yet"}"#;
    fs::write(&path, later).unwrap();
    for _ in 0..2 {
        assert!(store.load(&device("d")).entries.is_empty() && store.list().is_empty());
        assert_eq!(store.insert(&device("d"), [numbered(1)]), None);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), later);
    let [warning] = &warnings(&path)[..] else { panic!("{:?}", warnings(&path)) };
    assert!(warning.contains("version 2") && warning.contains("update declive"), "{warning}");
    assert_eq!(store.clear(), 1);
}

#[test]
fn a_file_in_the_place_of_the_directory_is_warned_of_once() {
    let dir = place();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let store = Store::at(file.join("tuning"));
    for _ in 0..3 {
        assert_eq!(store.insert(&device("d"), [numbered(1)]), None);
        assert_eq!((store.load(&device("d")).entries.len(), store.list().len(), store.clear()), (0, 0, 0));
    }
    let [warning] = &warnings(&file)[..] else { panic!("{:?}", warnings(&file)) };
    assert!(warning.contains("mend") && warning.contains("DECLIVE_CACHE_DIR"), "{warning}");
}

#[cfg(unix)]
#[test]
fn a_directory_that_can_only_be_read_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = place();
    let store = Store::at(dir.path().join("tuning"));
    store.insert(&device("d"), [numbered(1)]).unwrap();
    let protect = |mode| fs::set_permissions(dir.path().join("tuning"), fs::Permissions::from_mode(mode)).unwrap();
    protect(0o555);
    if fs::write(dir.path().join("tuning/probe"), "").is_ok() {
        eprintln!("skipped: this user may write everywhere");
        return;
    }
    for _ in 0..2 {
        assert_eq!(store.insert(&device("d"), [numbered(2)]), None);
        assert_eq!(store.load(&device("d")).entries.len(), 1);
    }
    assert_eq!(warnings(dir.path()).len(), 1, "{:?}", warnings(dir.path()));
    protect(0o755);
}

// --------------------------------------------------------------------------------------- where it lies

/// The child process: says where the user's store has a device's file.
#[test]
#[ignore = "a part of the other tests, which run it in a process of its own"]
fn place_of_user() {
    println!("\n= {:?}", Store::open().path(&device("d")));
    assert_eq!(Store::open().load(&device("d")).entries.len(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn the_environment_says_where_it_lies() {
    let file = Store::at("/").path(&device("d")).unwrap();
    let file = file.file_name().unwrap().to_str().unwrap();
    let (home, xdg, own) = ("HOME", "XDG_CACHE_HOME", "DECLIVE_CACHE_DIR");
    for (variables, expected) in [
        (vec![(home, "/h")], Some("/h/.cache/declive/tuning")),
        (vec![(home, "/h"), (xdg, "/x")], Some("/x/declive/tuning")),
        (vec![(home, "/h"), (xdg, "relative")], Some("/h/.cache/declive/tuning")),
        (vec![(home, "/h"), (xdg, "/x"), (own, "/d")], Some("/d/tuning")),
        (vec![(home, "/h"), (own, "")], None),
    ] {
        let mut command = alone("store::place_of_user");
        command.env_remove(xdg).env_remove(own);
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let expected = format!("= {:?}\n", expected.map(|dir| Path::new(dir).join(file)));
        assert!(output.status.success() && text.contains(&expected), "{variables:?}: {text}");
    }
}

// --------------------------------------------------------------------------------------- several at once

#[test]
fn threads_lose_nothing() {
    let dir = place();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = Store::at(dir.path());
            scope.spawn(move || {
                for k in 0..10 {
                    store.insert(&device("d"), [numbered(100 * thread + k)]).unwrap();
                }
            });
        }
    });
    assert_eq!(Store::at(dir.path()).load(&device("d")).entries.len(), 80);
    assert_eq!(names(dir.path()).len(), 2, "the file and the lock");
}

/// The directory that a child process inserts to, and its first number.
const DIR: &str = "DECLIVE_TEST_STORE_DIR";
const FIRST: &str = "DECLIVE_TEST_STORE_FIRST";

/// From this first number on, a child goes on until it is killed.
const KILLED: u64 = 1000;

/// The child process: inserts twenty entries, one by one, once or until it is killed. Says when all are there.
#[test]
#[ignore = "a part of the other tests, which run it in a process of its own"]
fn child() {
    let store = Store::at(std::env::var_os(DIR).unwrap());
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    for turn in 0_u64.. {
        for k in first..first + 20 {
            store.insert(&device("d"), [numbered(k)]).unwrap();
        }
        if turn == 0 {
            println!("\n= all there");
        }
        if first < KILLED {
            return;
        }
    }
}

fn spawn(dir: &Path, first: u64) -> Child {
    let mut command = alone("store::child");
    command.env(DIR, dir).env(FIRST, first.to_string());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn processes_lose_nothing() {
    let dir = place();
    let children: Vec<_> = (0..4).map(|k| spawn(dir.path(), 100 * k)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(Store::at(dir.path()).load(&device("d")).entries.len(), 80);
}

#[test]
fn a_killed_process_leaves_a_whole_file_and_no_lock() {
    let dir = place();
    let store = Store::at(dir.path());
    let path: PathBuf = store.path(&device("d")).unwrap();
    for round in 1..=8 {
        let mut child = spawn(dir.path(), KILLED * round);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap() == "= all there"));
        // somewhere in one of its writes
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let there = marks(&store.load(&device("d")));
        assert_eq!(there.len() as u64, 21 * round - 1, "round {round}");
        // would wait for ever if there were a lock
        store.insert(&device("d"), [numbered(round)]).unwrap();
    }
    assert!(warnings(&path).is_empty());
    assert_eq!(store.load(&device("d")).entries.len(), 21 * 8);
}

// ---------------------------------------------------------------------------------------- the formats of blocks

fn format_key(number: u64) -> FormatKey {
    FormatKey {
        element: "double".into(),
        sum: "double".into(),
        rows: number,
        entries: 5 * number,
        block: "0123456789abcdef".into(),
        driver: "1.0".into(),
        sources: source_hash(["source"]),
        options: "-cl-std=CL1.2".into(),
    }
}

/// An entry that shows `mark` as the time of what was taken.
fn format_entry(number: u64, mark: f64) -> FormatEntry {
    let timing = Timing { median: mark, low: mark, high: mark, runs: 9 };
    let time = |format: &str, timing| FormatTime { format: format.into(), bytes: 1000, timing };
    FormatEntry::new(format_key(number), "sell", vec![time("sell", Some(timing)), time("csr", None)])
}

#[test]
fn formats_and_launches_are_kept_beside_each_other() {
    let dir = place();
    let store = Store::at(dir.path());
    let d = device("d");
    let path = store.insert(&d, [numbered(1)]).unwrap();
    // a file without the list is as before
    assert!(!fs::read_to_string(&path).unwrap().contains("formats"));
    assert_eq!(store.load(&d).formats, []);
    store.insert_formats(&d, [format_entry(2, 1e-6), format_entry(1, 1e-6)]).unwrap();
    store.insert(&d, [numbered(2)]).unwrap();
    store.insert_formats(&d, [format_entry(2, 2e-6)]).unwrap();
    let known = Store::at(dir.path()).load(&d);
    assert_eq!((known.entries.len(), known.formats.len()), (2, 2));
    let median =
        |number| known.format(&format_key(number)).and_then(|found| found.candidates[0].timing).map(|t| t.median);
    assert_eq!([1, 2, 3].map(median), [Some(1e-6), Some(2e-6), None]);
    assert_eq!(store.list(), [known]);
    // every part of a key matters
    let known = store.load(&d);
    let other = || "other".to_string();
    for key in [
        FormatKey { element: other(), ..format_key(1) },
        FormatKey { sum: other(), ..format_key(1) },
        FormatKey { rows: 9, ..format_key(1) },
        FormatKey { entries: 9, ..format_key(1) },
        FormatKey { block: other(), ..format_key(1) },
        FormatKey { driver: other(), ..format_key(1) },
        FormatKey { sources: other(), ..format_key(1) },
        FormatKey { options: other(), ..format_key(1) },
    ] {
        assert_eq!(known.format(&key), None);
    }
    assert_eq!((store.clear(), store.load(&d).formats.len()), (1, 0));
}

#[test]
fn formats_that_make_no_sense_are_left_out() {
    let dir = place();
    let store = Store::at(dir.path());
    let d = device("d");
    store.insert(&d, [numbered(1)]).unwrap();
    let unknown = FormatEntry { format: "none of them".into(), ..format_entry(1, 1e-6) };
    let path = store.insert_formats(&d, [unknown, format_entry(2, f64::NAN), format_entry(3, 1e-6)]).unwrap();
    assert_eq!(
        store.load(&d).formats,
        [FormatEntry { inserted: store.load(&d).formats[0].inserted, ..format_entry(3, 1e-6) }]
    );
    // a list of another kind, of other entries
    let text = fs::read_to_string(&path).unwrap();
    let mut content: serde_json::Value = serde_json::from_str(&text).unwrap();
    for formats in [serde_json::json!("something"), serde_json::json!([1, { "format": "sell" }])] {
        content["formats"] = formats;
        fs::write(&path, content.to_string()).unwrap();
        let known = store.load(&d);
        assert_eq!((known.entries.len(), known.formats.len()), (1, 0));
    }
    assert_eq!(warnings(&path), [""; 0]);
    store.insert_formats(&d, [format_entry(4, 1e-6)]).unwrap();
    assert_eq!((store.load(&d).entries.len(), store.load(&d).formats.len()), (1, 1));
}

#[test]
fn the_oldest_formats_go() {
    let dir = place();
    let store = Store::at(dir.path());
    let d = device("d");
    let path = store.insert_formats(&d, (0..256).map(|number| format_entry(number, 1e-6))).unwrap();
    // two that are older than the others
    let mut content: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for number in [17, 200] {
        content["formats"][number]["inserted"] = 1.into();
    }
    fs::write(&path, content.to_string()).unwrap();
    store.insert_formats(&d, [format_entry(1000, 1e-6), format_entry(1001, 1e-6)]).unwrap();
    let known = store.load(&d);
    assert_eq!(known.formats.len(), 256);
    let has = |number| known.format(&format_key(number)).is_some();
    assert_eq!([16, 17, 200, 255, 1000, 1001].map(has), [true, false, false, true, true, true]);
}

#[test]
fn formats_of_several_threads_are_all_kept() {
    let dir = place();
    let d = device("d");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (dir, d) = (dir.path(), &d);
            scope.spawn(move || {
                for number in 0..4 {
                    Store::at(dir).insert_formats(d, [format_entry(10 * thread + number, 1e-6)]).unwrap();
                }
            });
        }
    });
    assert_eq!(Store::at(dir.path()).load(&d).formats.len(), 32);
}

// ------------------------------------------------------------------------------------- devices together

fn latency(number: u64, seconds: f64) -> LatencyEntry {
    let devices = vec![format!("GPU {number}"), "GPU".into()];
    LatencyEntry::new(LatencyKey { devices, method: "cg".into(), declive: "1.0".into() }, seconds)
}

fn iteration_time(number: u64, whole: f64) -> IterationTimeEntry {
    let key = IterationTimeKey {
        system: format!("{number:032x}"),
        rows: 1000,
        entries: 5000,
        method: "cg".into(),
        devices: vec!["GPU".into(), "host".into()],
        declive: "1.0".into(),
    };
    IterationTimeEntry::new(key, vec![0.75, 0.25], vec![1e-4, 0.9e-4], whole)
}

/// Older files do not tell what method a latency was measured with: `cg`, as there was no other.
#[test]
fn latencies_are_of_a_method() {
    let place = place();
    let (store, device) = (Store::at(place.path()), device("GPU"));
    let path = store.insert_latency(&device, latency(1, 8e-5)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let older = text.replace("\"method\": \"cg\",", "");
    assert_ne!(older, text);
    fs::write(&path, older).unwrap();
    let single = LatencyKey { method: "cg-single-reduction".into(), ..latency(1, 0.0).key };
    let known = store.load(&device);
    let seconds = |known: &Known, key: &LatencyKey| known.latency(key).map(|entry| entry.seconds);
    assert_eq!((seconds(&known, &latency(1, 0.0).key), seconds(&known, &single)), (Some(8e-5), None));
    store.insert_latency(&device, LatencyEntry::new(single.clone(), 6e-5)).unwrap();
    let known = store.load(&device);
    assert_eq!((seconds(&known, &latency(1, 0.0).key), seconds(&known, &single)), (Some(8e-5), Some(6e-5)));
}

#[test]
fn devices_together_are_kept_beside_the_rest() {
    let place = place();
    let (store, device) = (Store::at(place.path()), device("GPU"));
    store.insert(&device, [numbered(1)]).unwrap();
    store.insert_formats(&device, [format_entry(1, 1e-6)]).unwrap();
    store.insert_latency(&device, latency(2, 9e-5)).unwrap();
    store.insert_latency(&device, latency(1, 8e-5)).unwrap();
    store.insert_iteration_time(&device, iteration_time(7, 2e-4)).unwrap();
    store.insert_latency(&device, latency(2, 7e-5)).unwrap();
    let known = Store::at(place.path()).load(&device);
    assert_eq!(
        (known.entries.len(), known.formats.len(), known.latencies.len(), known.iteration_times.len()),
        (1, 1, 2, 1)
    );
    assert_eq!(known.latency(&latency(2, 0.0).key).unwrap().seconds, 7e-5);
    assert_eq!(known.latency(&latency(3, 0.0).key), None);
    let found = known.iteration_time(&iteration_time(7, 0.0).key).unwrap();
    assert_eq!(
        (found.whole, found.shares.as_slice(), found.kernels.as_slice()),
        (2e-4, [0.75, 0.25].as_slice(), [1e-4, 0.9e-4].as_slice())
    );
    let speeds = found.speeds().unwrap();
    assert!((speeds[0] - 7500.0).abs() < 1e-9 && (speeds[1] - 0.25 / 0.9e-4).abs() < 1e-9, "{speeds:?}");
    // of a rank that worked, nothing is known; one that did not has no speed
    let mut unknown = iteration_time(1, 1.0);
    unknown.kernels[1] = 0.0;
    assert_eq!(unknown.speeds(), None);
    (unknown.shares[0], unknown.shares[1]) = (1.0, 0.0);
    assert_eq!(unknown.speeds(), Some(vec![1e4, 0.0]));
}

#[test]
fn devices_together_that_make_no_sense_are_left_out() {
    let place = place();
    let (store, device) = (Store::at(place.path()), device("GPU"));
    store.insert_latency(&device, latency(1, f64::NAN)).unwrap();
    let mut bad = iteration_time(1, 1.0);
    bad.shares.pop();
    store.insert_iteration_time(&device, bad).unwrap();
    store
        .insert_iteration_time(&device, IterationTimeEntry { shares: vec![0.0, 0.0], ..iteration_time(2, 1.0) })
        .unwrap();
    store
        .insert_iteration_time(&device, IterationTimeEntry { kernels: vec![-1.0, 1.0], ..iteration_time(3, 1.0) })
        .unwrap();
    store.insert_iteration_time(&device, iteration_time(4, f64::INFINITY)).unwrap();
    store.insert_iteration_time(&device, iteration_time(5, 1.0)).unwrap();
    let path = store.path(&device).unwrap();
    let known = store.load(&device);
    assert_eq!((known.latencies.len(), known.iteration_times.len()), (0, 1));
    // entries of another kind in their place, and a file cut short
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("\"iteration_times\": [", "\"latencies\": 7, \"iteration_times\": [{\"strange\": true}, 3,"),
    )
    .unwrap();
    let known = store.load(&device);
    assert_eq!((known.latencies.len(), known.iteration_times.len()), (0, 1));
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert_eq!(store.load(&device).iteration_times, []);
    store.insert_iteration_time(&device, iteration_time(6, 1.0)).unwrap();
    assert_eq!(store.load(&device).iteration_times.len(), 1);
}

#[test]
fn beyond_256_paces_the_oldest_go() {
    let place = place();
    let (store, device) = (Store::at(place.path()), device("GPU"));
    for number in 0..260 {
        store.insert_iteration_time(&device, iteration_time(number, 1.0)).unwrap();
        store.insert_latency(&device, latency(number, 1.0)).unwrap();
    }
    let known = store.load(&device);
    assert_eq!((known.iteration_times.len(), known.latencies.len()), (256, 64));
}

#[test]
fn threads_that_keep_devices_together_lose_nothing() {
    let place = place();
    let device = device("GPU");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (device, store) = (&device, Store::at(place.path()));
            scope.spawn(move || {
                for k in 0..5 {
                    store.insert_latency(device, latency(10 * thread + k, 1e-6)).unwrap();
                    store.insert_iteration_time(device, iteration_time(10 * thread + k, 1e-6)).unwrap();
                }
            });
        }
    });
    let known = Store::at(place.path()).load(&device);
    assert_eq!((known.latencies.len(), known.iteration_times.len()), (20, 20));
}

fn solve(number: u64, seconds: f64) -> SolveEntry {
    let key = SolveKey {
        system: format!("{number:032x}"),
        rows: 1000,
        entries: 5000,
        options: "f64, auto, auto".into(),
        devices: vec!["GPU".into()],
        declive: "1.0".into(),
    };
    let (method, precond) = ("cg".into(), "amg".into());
    let time =
        SolveTime { method, precond, set_up: 0.5, solve: seconds, iterations: 30, decades: 8.0, is_forecast: false };
    SolveEntry::new(key, 8.0, vec![time])
}

#[test]
fn solves_are_kept_beside_the_rest() {
    let place = place();
    let (store, device) = (Store::at(place.path()), device("GPU"));
    store.insert(&device, [numbered(1)]).unwrap();
    store.insert_solve(&device, solve(2, 1.0)).unwrap();
    store.insert_latency(&device, latency(1, 8e-5)).unwrap();
    store.insert_solve(&device, solve(1, 2.0)).unwrap();
    let path = store.insert_solve(&device, solve(2, 0.25)).unwrap();
    let known = Store::at(place.path()).load(&device);
    assert_eq!((known.entries.len(), known.latencies.len(), known.solves.len()), (1, 1, 2));
    let found = known.solve(&solve(2, 0.0).key).unwrap();
    assert_eq!((found.decades, &found.times), (8.0, &solve(2, 0.25).times));
    assert_eq!((found.times[0].scaled_to(8.0), found.times[0].scaled_to(4.0)), ((30, 0.75), (15, 0.625)));
    assert_eq!(known.solve(&solve(3, 0.0).key), None);
    let other = SolveKey { options: "f32".into(), ..solve(2, 0.0).key };
    assert_eq!(known.solve(&other), None);
    // files of a former version have none; those of a later one are left alone
    let text = fs::read_to_string(&path).unwrap();
    let without = &text[..text.find("\"solves\"").unwrap()];
    fs::write(&path, format!("{}}}", without.trim_end().trim_end_matches(','))).unwrap();
    let older = store.load(&device);
    assert_eq!((older.latencies.len(), older.solves.len()), (1, 0));
    fs::write(&path, text.replacen("\"version\": 1", "\"version\": 2", 1)).unwrap();
    assert_eq!(store.load(&device).solves, []);
    assert_eq!(store.insert_solve(&device, solve(5, 1.0)), None);
    // damaged ones are replaced
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    assert_eq!(store.load(&device).solves, []);
    store.insert_solve(&device, solve(5, 1.0)).unwrap();
    assert_eq!(store.load(&device).solves.len(), 1);
}

#[test]
fn solves_that_make_no_sense_are_left_out() {
    let place = place();
    let (store, device) = (Store::at(place.path()), device("GPU"));
    let bad = |change: fn(&mut SolveEntry)| {
        let mut entry = solve(1, 1.0);
        change(&mut entry);
        store.insert_solve(&device, entry).unwrap();
    };
    bad(|entry| entry.decades = 0.0);
    bad(|entry| entry.times[0].solve = f64::NAN);
    bad(|entry| entry.times[0].set_up = -1.0);
    bad(|entry| entry.times[0].decades = f64::INFINITY);
    bad(|entry| entry.times = vec![entry.times[0].clone(); 17]);
    assert_eq!(store.load(&device).solves, []);
    for number in 0..260 {
        store.insert_solve(&device, solve(number, 1.0)).unwrap();
    }
    assert_eq!(store.load(&device).solves.len(), 256);
}
