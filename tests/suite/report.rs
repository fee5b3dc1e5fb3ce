//! `declive solve --report` and `--trace` as a process: what the page and the trace say, beside the report for
//! machines.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::process::{Place, array};
use scraper::{ElementRef, Html, Selector};
use serde_json::{Map, Value};

/// A page that is well formed and needs nothing else.
fn page(place: &Place, name: &str) -> Html {
    let text = place.read(name);
    let html = Html::parse_document(&text);
    assert!(html.errors.is_empty(), "{:?}", html.errors);
    for word in ["http", "<script", "<link", "<img", "NaN", "inf "] {
        assert!(!text.contains(word), "{word}");
    }
    html
}

fn all<'a>(html: &'a Html, selector: &str) -> Vec<ElementRef<'a>> {
    html.select(&Selector::parse(selector).unwrap()).collect()
}

fn words(element: ElementRef<'_>) -> String {
    element.text().collect::<String>().trim().into()
}

/// The rows of the table with this label, heads included.
fn rows(html: &Html, label: &str) -> Vec<Vec<String>> {
    let cells = Selector::parse("th, td").unwrap();
    let rows = all(html, &format!("div[aria-label=\"{label}\"] tbody tr"));
    rows.into_iter().map(|row| row.select(&cells).map(words).collect()).collect()
}

/// The number at the beginning of a cell.
fn number(cell: &str) -> f64 {
    let end = cell.find([' ', '\u{2007}', '\u{2008}']).unwrap_or(cell.len());
    cell[..end].replace(',', "").parse().unwrap_or_else(|_| panic!("'{cell}' is no number"))
}

/// Whether three figures, or `step`, tell `value`.
#[track_caller]
fn same(cell: &str, value: &Value, factor: f64, step: f64) {
    let value = factor * value.as_f64().unwrap();
    let off = (number(cell) - value).abs();
    assert!(off <= (0.0051 * value.abs()).max(0.51 * step), "{cell} is not {value}");
}

// ---- the page

#[test]
fn the_page_says_what_the_json_says() {
    crate::common::require_opencl();
    let place = Place::new();
    let b: Vec<Vec<f64>> = (1..=3).map(|k| (0..400).map(|i| f64::from(i * k % 7 + 1)).collect()).collect();
    place.write("b.mtx", array(&b));
    for (devices, method) in [("0", "cg"), ("host", "cg"), ("0,host,0", "cg-classic")] {
        let args = format!(
            "solve --generate poisson2d:20 -b b.mtx --devices {devices} --method {method} --precond jacobi \
             --report out.html --json"
        );
        let run = place.run(&args).ends(0);
        let (json, html) = (run.json(), page(&place, "out.html"));
        assert_eq!((&json["report"], &json["trace"]), (&"out.html".into(), &Value::Null));
        assert!(words(all(&html, ".summary b")[0]).starts_with("All 3 right-hand sides converged"));

        let results = rows(&html, "Results");
        assert_eq!(results.len(), 3);
        for (row, solve) in results.iter().zip(json["solves"].as_array().unwrap()) {
            assert_eq!(number(&row[0]), solve["rhs"].as_f64().unwrap());
            same(&row[1], &solve["iterations"], 1.0, 0.0);
            same(&row[2], &solve["restarts"], 1.0, 0.0);
            same(&row[3], &solve["rel_residual_2"], 1.0, 0.0);
            same(&row[4], &solve["recurrence_rel_residual_2"], 1.0, 0.0);
            same(&row[5], &solve["backward_error"], 1.0, 0.0);
            same(&row[6], &solve["residual_inf"], 1.0, 0.0);
            same(&row[7], &solve["seconds"]["solve"], 1.0, 0.0);
            same(&row[8], &solve["microseconds_per_iteration"], 1.0, 0.0);
            same(&row[9], &solve["gigabytes_per_second"], 1.0, 1e-6);
            assert_eq!(row[10], "Converged");
        }
        for row in rows(&html, "Time of the command") {
            if row[0] != "other" {
                same(&row[1], &json["seconds"][&row[0]], 1.0, 1e-4);
            }
        }
        let ranks = json["ranks"].as_array().unwrap();
        for (row, rank) in rows(&html, "Ranks").iter().zip(ranks) {
            assert!(row[0].contains(rank["device"].as_str().unwrap()));
            for (cell, key) in [(1, "rows"), (3, "nnz"), (7, "halo")] {
                assert_eq!(number(&row[cell]), rank[key].as_f64().unwrap());
            }
            same(&row[2], &rank["row_share"], 100.0, 1.0);
            same(&row[4], &rank["nnz_share"], 100.0, 1.0);
            same(&row[5], &rank["share"], 100.0, 1.0);
            assert_eq!(row[6], rank["share_source"]);
        }
        let label = "Time in the iteration, by rank";
        let head = words(all(&html, &format!("div[aria-label=\"{label}\"] thead"))[0]);
        let units = [("kernels, s", 1.0), ("kernels, ms", 1e3), ("kernels, µs", 1e6)];
        let (_, factor) = units.into_iter().find(|(unit, _)| head.contains(unit)).unwrap();
        for (row, rank) in rows(&html, label).iter().zip(ranks) {
            let split = &rank["split"];
            same(&row[1], &split["kernels"], factor, 1e-6);
            same(&row[3], &split["sums"], factor, 1e-6);
            same(&row[4], &split["halos"], factor, 1e-6);
            assert_eq!(row[5] == "–", rank["index"].is_null());
        }
        let options = rows(&html, "Options");
        assert!(options.contains(&vec!["--method".into(), method.into()]), "{options:?}");
        assert!(options.contains(&vec!["--devices".into(), devices.into()]), "{options:?}");
        assert_eq!(all(&html, "#convergence path.solid").len(), 3);
        assert_eq!(all(&html, "#timeline svg").len(), 1);
        let rows_of_ranks = ranks.len() + usize::from(devices != "host") * ranks.len();
        assert_eq!(all(&html, "#timeline text.name").len(), rows_of_ranks);
        let kernels: Vec<String> = rows(&html, "Kernels").into_iter().map(|row| row[0].clone()).collect();
        let products: Vec<&String> = kernels.iter().filter(|name| name.starts_with("spmv_")).collect();
        assert!(!products.is_empty(), "{kernels:?}");
        assert!(products.iter().all(|name| name.starts_with("spmv_dot_") == (method == "cg")), "{kernels:?}");
        assert_eq!(all(&html, "#kernels b.imbalance").len(), usize::from(ranks.len() > 1));
        // the platform's name, where there is one
        assert_eq!(rows(&html, "Drivers").is_empty(), devices == "host");
    }
}

#[test]
fn solves_that_end_early_have_a_page_too() {
    let place = Place::new();
    let text = place.run("solve --generate poisson2d:20 --max-iters 2 --devices host --report out.html").ends(1).out;
    assert!(text.contains("  report          out.html\n"), "{text}");
    let html = page(&place, "out.html");
    assert!(words(all(&html, ".summary b")[0]).starts_with("Not converged after 2 iterations."));
    assert!(words(all(&html, "#timeline figcaption b")[0]).starts_with("Iterations 1 to 2, "));

    place.write("b.mtx", array(&[vec![0.0; 400]]));
    place.run("solve --generate poisson2d:20 -b b.mtx --devices host --report out.html --trace t.json").ends(0);
    let html = page(&place, "out.html");
    assert!(words(all(&html, "#convergence p")[0]).starts_with("No iteration was made."));
    assert!(all(&html, "#timeline, #kernels").is_empty());
    let trace = read_trace(&place.read("t.json"));
    assert!(trace.lanes.keys().all(|(pid, _)| trace.processes[pid] == "declive"), "{:?}", trace.lanes.keys());
}

#[test]
fn restarts_are_where_the_recurrence_ended() {
    let place = Place::new();
    let run = place.run(
        "solve --generate jumps:12,contrast=1e8 --rtol 1e-12 --devices host --json --report out.html --history h.csv",
    );
    let json = run.json();
    let restarts = json["restarts"].as_u64().unwrap();
    assert!(restarts > 0);
    let html = page(&place, "out.html");
    let discs = all(&html, "#convergence circle.chosen").len() as u64;
    assert!(discs > 0 && discs <= restarts, "{discs} of {restarts}");
}

// ---- the stages

/// The stages of the report: name, lane, begin and end in seconds.
fn stages(json: &Value) -> Vec<(&str, &str, [f64; 2])> {
    let stage = |stage: &'_ Value| {
        let [start, seconds] = ["start", "seconds"].map(|key| stage[key].as_f64().unwrap());
        [start, start + seconds]
    };
    let all = json["timeline"].as_array().unwrap();
    all.iter().map(|one| (one["stage"].as_str().unwrap(), one["lane"].as_str().unwrap(), stage(one))).collect()
}

#[test]
fn stages_of_the_command() {
    crate::common::require_opencl();
    let place = Place::new();
    for (devices, lanes) in [("0", "rank 0"), ("0,host,0", "rank 2"), ("host", "rank 0")] {
        let args = format!("solve --generate poisson2d:300 --devices {devices} -o x.npy --report out.html --json");
        let json = place.run(&args).ends(0).json();
        let (stages, total) = (stages(&json), json["seconds"]["total"].as_f64().unwrap());
        let mut ends: BTreeMap<&str, f64> = BTreeMap::new();
        assert!(stages.is_sorted_by(|(.., a), (.., b)| a[0] <= b[0]));
        for (stage, lane, [start, end]) in &stages {
            assert!(
                0.0 <= *start && start <= end && *end <= total + 1e-9,
                "{stage} of {lane}: {start} to {end} of {total}"
            );
            // those of a thread follow each other
            let before = ends.insert(lane, *end).unwrap_or(0.0);
            assert!(before <= start + 1e-9, "{stage} of {lane} begins at {start}, before {before}");
        }
        let of = |name: &str, lane: &str| {
            stages.iter().find(|(stage, of, _)| (*stage, *of) == (name, lane)).map(|(.., at)| *at)
        };
        let reading = of("read", "main").unwrap();
        // the driver is asked for before anything is read
        let driver = of("list", "driver");
        assert_eq!(driver.is_some_and(|driver| driver[0] < reading[1]), devices != "host", "{stages:?}");
        let order =
            [of("read", "main"), of("check", "main"), of("prepare", "main"), of("solve", lanes), of("verify", "main")];
        assert!(order.map(|at| at.unwrap()[0]).is_sorted(), "{stages:?}");
        assert!(of("write", "main").is_some() && of("upload", lanes).is_some());
        assert_eq!(of("open", lanes).is_some(), devices != "host");
        // and the page shows them
        let html = page(&place, "out.html");
        let names = all(&html, "div[aria-label=\"Stages of the command\"] text.name");
        assert_eq!(names.len(), ends.len());
    }
}

#[test]
fn x_is_written_while_it_is_verified() {
    let place = Place::new();
    place.write("x.npy", "old");
    let solve = |options: &str, code| {
        let run = place.run(&format!("solve --generate poisson2d:60 --devices host --json {options}"));
        run.ends(code).json()
    };
    let is_beside = |json: &Value| stages(json).iter().any(|(stage, lane, _)| (*stage, *lane) == ("write", "beside"));
    let read = |name: &str| match name.ends_with("npy") {
        true => declive::npz::read_vectors(&place.path(name)).unwrap(),
        false => declive::matrix_market::read_any_vectors(&place.path(name)).unwrap(),
    };
    // a text begins with what was verified
    for (options, code, expected) in [("", 0, true), ("--max-iters 2", 1, false)] {
        let early = solve(&format!("-o x.npy {options}"), code);
        assert_eq!((is_beside(&early), &early["output"]), (expected, &"x.npy".into()));
        assert!(!is_beside(&solve(&format!("-o x.mtx {options}"), code)));
        assert_eq!(read("x.npy"), read("x.mtx"));
        assert_eq!(place.names(), ["x.mtx", "x.npy"]);
    }
}

// ---- the trace

/// A complete event: name, begin and end in microseconds, arguments.
type Event = (String, [f64; 2], Map<String, Value>);

/// A trace, read by the letter of the format.
struct Trace {
    /// Names by number.
    processes: BTreeMap<u64, String>,
    threads: BTreeMap<(u64, u64), String>,
    /// Of a thread, in the order of the file.
    lanes: BTreeMap<(u64, u64), Vec<Event>>,
    other: Value,
}

/// Times are whole nanoseconds.
const NANO: f64 = 1e-3;

fn read_trace(text: &str) -> Trace {
    let json: Value = serde_json::from_str(text).unwrap();
    let top: BTreeSet<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(top, BTreeSet::from(["displayTimeUnit", "otherData", "traceEvents"]));
    assert!(["ms", "ns"].contains(&json["displayTimeUnit"].as_str().unwrap()));
    let mut trace = Trace {
        processes: BTreeMap::new(),
        threads: BTreeMap::new(),
        lanes: BTreeMap::new(),
        other: json["otherData"].clone(),
    };
    for event in json["traceEvents"].as_array().unwrap() {
        let name = event["name"].as_str().unwrap().to_owned();
        let [pid, tid] = ["pid", "tid"].map(|key| event[key].as_u64().unwrap());
        assert!(pid > 0 && tid > 0 && !name.is_empty(), "{event}");
        let ts = event["ts"].as_f64().unwrap();
        let args = event["args"].as_object().unwrap().clone();
        match event["ph"].as_str().unwrap() {
            "M" => {
                let text = || args["name"].as_str().unwrap().to_owned();
                let former = match &*name {
                    "process_name" => trace.processes.insert(pid, text()),
                    "thread_name" => trace.threads.insert((pid, tid), text()),
                    "process_sort_index" | "thread_sort_index" => {
                        assert!(args["sort_index"].is_u64());
                        None
                    }
                    other => panic!("unknown metadata {other}"),
                };
                assert_eq!(former, None, "named twice: {event}");
            }
            "X" => {
                let dur = event["dur"].as_f64().unwrap();
                assert!(ts >= 0.0 && dur >= 0.0 && event["cat"].is_string(), "{event}");
                trace.lanes.entry((pid, tid)).or_default().push((name, [ts, ts + dur], args));
            }
            other => panic!("unknown phase {other}"),
        }
    }
    for (lane, events) in &trace.lanes {
        assert!(trace.processes.contains_key(&lane.0) && trace.threads.contains_key(lane), "{lane:?} has no name");
        // events of a thread nest, or follow each other
        let mut open: Vec<[f64; 2]> = Vec::new();
        for (name, [start, end], _) in events {
            while open.last().is_some_and(|outer| outer[1] <= start + 0.5 * NANO) {
                open.pop();
            }
            if let Some([from, to]) = open.last() {
                assert!(
                    from - 0.5 * NANO <= *start && *end <= to + 0.5 * NANO,
                    "{name} at {start} leaves {from} to {to}"
                );
                assert_ne!(trace.threads[lane], "kernels", "{name} overlaps another kernel");
            }
            open.push([*start, *end]);
        }
    }
    trace
}

#[test]
fn a_trace_by_the_letter() {
    crate::common::require_opencl();
    let place = Place::new();
    let b: Vec<Vec<f64>> = (1..=2).map(|k| (0..400).map(|i| f64::from(i * k % 7 + 1)).collect()).collect();
    place.write("b.mtx", array(&b));
    for devices in ["0", "host", "0,0,0", "0,host"] {
        let args = format!("solve --generate poisson2d:20 -b b.mtx --devices {devices} --trace t.json --json");
        let json = place.run(&args).ends(0).json();
        assert_eq!((&json["report"], &json["trace"]), (&Value::Null, &"t.json".into()));
        let trace = read_trace(&place.read("t.json"));
        assert_eq!(trace.other["declive"], env!("CARGO_PKG_VERSION"));
        assert_eq!(trace.other["options"], json["options"]);

        let ranks = json["ranks"].as_array().unwrap();
        let named: Vec<&str> = trace.processes.values().map(String::as_str).collect();
        assert_eq!(named[0], "declive");
        assert_eq!(named.len(), 1 + ranks.len());
        for (k, (name, rank)) in named[1..].iter().zip(ranks).enumerate() {
            assert!(name.starts_with(&format!("rank {k}: {}", rank["device"].as_str().unwrap())), "{name}");
        }

        // each phase once, the parts of a solve within it
        let command: Vec<&str> = trace.lanes[&(1, 1)].iter().map(|(name, ..)| &**name).collect();
        for phase in ["read", "set up", "right-hand side 1", "right-hand side 2", "write"] {
            assert_eq!(command.iter().filter(|name| **name == phase).count(), 1, "{command:?}");
        }
        assert_eq!(command.iter().filter(|name| **name == "verify").count(), 2, "{command:?}");
        assert!(command.contains(&"prepare"), "{command:?}");
        let solves: Vec<[f64; 2]> =
            trace.lanes[&(1, 1)].iter().filter(|(name, ..)| name.starts_with("right")).map(|(_, at, _)| *at).collect();
        let (_, _, parts) = trace.lanes[&(1, 1)].iter().find(|(name, ..)| name == "right-hand side 2").unwrap();
        assert_eq!(parts["solve_seconds"], json["solves"][1]["seconds"]["solve"]);

        for k in 0..ranks.len() as u64 {
            let kernels = &trace.lanes[&(2 + k, 1)];
            assert_eq!(trace.threads[&(2 + k, 1)], "kernels");
            for (name, [start, end], args) in kernels {
                let column = args["rhs"].as_u64().unwrap() as usize;
                let iterations = json["solves"][column - 1]["iterations"].as_u64().unwrap();
                let iteration = args.get("iteration").map(|i| i.as_u64().unwrap());
                assert!(iteration.is_none_or(|i| (1..=iterations).contains(&i)), "{name} in {iteration:?}");
                // some doubt about the device's clock, more on a loaded machine
                let [from, to] = solves[column - 1];
                assert!(
                    from - 2e4 <= *start && *end <= to + 2e4,
                    "{name} at {start} to {end} is not in {from} to {to}"
                );
            }
            for rhs in 1..=2u64 {
                let products = |i: u64| {
                    let is = |args: &Map<String, Value>| args["rhs"] == rhs && args.get("iteration") == Some(&i.into());
                    kernels.iter().filter(|(name, _, args)| name.starts_with("spmv_dot_") && is(args)).count()
                };
                assert!((1..=10).all(|i| products(i) > 0), "rank {k}, right-hand side {rhs}");
            }
        }
        let sums = |lane: &(u64, u64)| trace.lanes.get(lane).is_some_and(|l| l.iter().any(|e| e.0 == "sum over ranks"));
        assert!((0..ranks.len() as u64).all(|k| sums(&(2 + k, 2)) == (ranks.len() > 1)));
    }
}

// ---- the files

#[test]
fn files_are_probed_before_the_work() {
    let place = Place::new();
    let run = |args: &str| place.run(&format!("solve -v --generate poisson3d:40 --devices host {args}"));
    run("--report no/out.html").fails(2, &["no/out.html"]);
    run("--trace no/t.json").fails(2, &["no/t.json"]);
    run("--report -").fails(2, &["--report", "file"]);
    run("--trace -").fails(2, &["--trace", "file"]);
    run("--report r --trace ./r").fails(2, &["--report", "--trace", "./r"]);
    run("-o r --trace r").fails(2, &["-o", "--trace"]);
    run("--history h --report h").fails(2, &["--history", "--report"]);
    assert_eq!(place.names(), [""; 0]);
    place.run("generate poisson2d:5 -o A.mtx").ends(0);
    place.run("solve A.mtx --devices host --report A.mtx").fails(2, &["--report", "overwrite", "A.mtx"]);
}

#[test]
fn without_the_options_there_is_neither() {
    let place = Place::new();
    let run = place.run("solve --generate poisson2d:9 --devices host --json").ends(0);
    let json = run.json();
    assert!(json["report"].is_null() && json["trace"].is_null() && json.get("report").is_some());
    assert!(!place.path("out.html").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_costs_no_report() {
    let place = Place::new();
    for option in ["--report", "--trace"] {
        let run = place.run(&format!("solve --generate poisson2d:9 --devices host {option} /dev/full -o x.mtx --json"));
        let run = run.ends(3);
        assert!(run.err.starts_with("error: /dev/full: "), "{}", run.err);
        let json = run.json();
        assert!(json["report"].is_null() && json["trace"].is_null());
        assert_eq!((&json["converged"], &json["output"]), (&true.into(), &"x.mtx".into()));
        assert!(place.path("x.mtx").exists());
    }
}
