//! `declive bench` as a process: tables, JSON and page, what is left out, and how it ends.

use crate::common::process::{Place, Run, interrupt, started};
use serde_json::Value;

/// The text without its line ends, which come where a line is full.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_device_alone_and_as_three_ranks() {
    let place = Place::new();
    let args = "bench --order 8000 --devices 0,0,0 --iterations 20 --repeat 2 --json --report r.html";
    let report = place.run(args).ends(0).json();
    assert_eq!((&report["matrix"]["rows"], &report["matrix"]["source"]), (&8000.into(), &"poisson3d:20".into()));
    let experiments = report["experiments"].as_array().unwrap();
    let labels: Vec<&str> = experiments.iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["[0]", "all", "[0]", "all"]);
    assert_eq!(report["notes"], Value::Array(Vec::new()));
    for (one, method) in experiments.iter().zip(["cg-classic", "cg-classic", "cg", "cg"]) {
        let number = |field: &str| one[field].as_f64().unwrap_or_else(|| panic!("{field} of {one}"));
        assert_eq!(
            (&one["method"], &one["iterations"], &one["notes"]),
            (&method.into(), &20.into(), &Value::Array(vec![]))
        );
        let kernels = one["kernels"].as_array().unwrap();
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel["kernel"].as_str().unwrap()).collect();
        let is_alone = one["label"] == "[0]";
        let expected: &[&str] = match method {
            "cg" if is_alone => &["spmv_dot_dictionary", "cg_step"],
            "cg" => &["spmv_dot_dictionary", "cg_step_given", "cg_halo"],
            _ => &["spmv_csr", "dot_partial", "next_iterate", "next_residual", "next_direction"],
        };
        assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
        assert!(!names.contains(&"halo_pack"), "halos of a grid are runs of rows: {names:?}");
        for kernel in kernels {
            let calls = kernel["calls"].as_u64().unwrap();
            let least = match kernel["kernel"].as_str() {
                Some("cg_halo") => 19, // the first direction is sent
                _ => 20,
            };
            assert!(
                calls >= least && calls.is_multiple_of(least) && kernel["seconds"].as_f64().unwrap() > 0.0,
                "{kernel}"
            );
        }
        let sum: f64 = kernels.iter().map(|kernel| kernel["seconds"].as_f64().unwrap()).sum();
        assert!((sum - number("kernel_seconds")).abs() < 1e-12);
        assert!((sum + number("overhead_seconds") - number("total_seconds")).abs() < 1e-12);
        assert!(
            number("least_seconds") <= number("total_seconds") && number("total_seconds") <= number("most_seconds")
        );
        let micros = number("microseconds_per_iteration");
        assert!((micros * 20.0 - 1e6 * number("total_seconds")).abs() < 1e-6 * micros);
        assert_eq!(one["speedup"].is_null(), one["label"] == "[0]");
        assert!(number("part_of_copy") > 0.0);
        let nnz = report["matrix"]["nnz"].as_u64().unwrap();
        // 66 bytes a row, and some row patterns; or 124, and 12 an entry
        let (bytes, more) = if method == "cg" { (66 * 8000, 12_288) } else { (124 * 8000 + 12 * nnz, 64) };
        let found = one["bytes_per_iteration"].as_u64().unwrap();
        assert!((bytes..=bytes + more).contains(&found), "{found} and {bytes}");
    }
    assert_eq!(experiments[1]["devices"].as_array().unwrap().len(), 3);

    let page = place.read("r.html");
    assert!(page.contains("Where the time of 20 iterations goes"), "{page}");
}

#[test]
fn the_text() {
    let place = Place::new();
    let text = place.run("bench --order 1000 --devices 0 --iterations 10 --repeat 1 --precision f32").ok();
    for part in ["poisson3d:10, 1,000 rows, 6,400 entries", "[0]"] {
        assert!(words(&text).contains(part), "{part} is not in\n{text}");
    }
    let kernels = |name: &str| text.lines().filter(|line| line.trim_start().starts_with(name)).count();
    assert_eq!(["spmv_csr", "cg_step", "overhead", "total"].map(kernels), [1, 1, 2, 2]);
    let text =
        place.run("bench --order 1000 --devices host --iterations 10 --repeat 1 --methods cg,cg --tune off").ok();
    assert!(!text.contains("speed-up") && text.contains("off: Usual"), "{text}");
    assert_eq!(text.matches("\ncg\n").count(), 1);
}

#[test]
fn without_opencl_the_host_works() {
    let place = Place::new();
    let report = place.run_without_opencl("bench --order 1000 --iterations 5 --repeat 1 --json").ends(0).json();
    assert!(report["notes"][0].as_str().unwrap().contains("host"), "{}", report["notes"]);
    assert_eq!((&report["kinds"][0]["label"], &report["kinds"][0]["kind"]), (&"host".into(), &"host".into()));
    assert_eq!(report["experiments"].as_array().unwrap().len(), 2);
}

#[test]
fn an_iteration_that_ends_early_says_so() {
    let place = Place::new();
    let args = "bench --generate tridiagonal:5 --devices 0 --methods cg --iterations 90 --repeat 1";
    let text = place.run(args).ok();
    assert!(
        words(&text).contains("Note: cg on [0]: ended after ") && words(&text).contains(" of 90 iterations; "),
        "{text}"
    );
    assert!(!text.contains("7-point"), "{text}");
}

/// With buffers of 100 KB the device has no room for a vector of 125 KB; the host has, and so have both together.
#[test]
fn a_device_that_is_too_small_is_left_out() {
    let place = Place::new();
    let args = "bench --generate poisson3d:25 --iterations 1 --repeat 1 --methods cg --json --devices";
    let on = |devices: &str| {
        let mut command = place.command(&format!("{args} {devices}"));
        command.env("DECLIVE_MAX_BUFFER", "100000");
        Run::of(command, "")
    };
    let report = on("0,host").ends(0).json();
    let note = report["notes"][0].as_str().unwrap();
    assert!(note.starts_with("cg on [0] is left out: ") && note.contains("bytes, but its largest buffer is"), "{note}");
    let labels: Vec<&Value> = report["experiments"].as_array().unwrap().iter().map(|one| &one["label"]).collect();
    assert_eq!(labels, ["host", "all"]);
    on("0").fails(3, &["its largest buffer is"]);
}

#[test]
fn what_is_refused() {
    let place = Place::new();
    for (args, part) in [
        ("bench --methods qmr", "qmr"),
        ("bench --methods cg,auto", "name those to be timed: cg, cg-classic, cg-single-reduction, cg-pipelined"),
        ("bench --iterations 0", "--iterations"),
        ("bench --repeat 0", "--repeat"),
        ("bench --order 0", "--order"),
        ("bench A.mtx --order 5", "--order"),
        ("bench --order 27 --devices tpu", "unknown device"),
    ] {
        place.run(args).misused(&[part]);
    }
    place.run("bench missing.mtx").fails(2, &["missing.mtx"]);
    place.run("bench --report -").fails(2, &["--report needs a file"]);
    let file = |name: &str, text: &str| place.write(name, text);
    file("a.mtx", "%%MatrixMarket matrix coordinate real general\n1 2 1\n1 2 1\n");
    place.run("bench a.mtx --devices 0").fails(2, &["square"]);
    file("b.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n2 2 1\n1 2 1\n");
    place.run("bench b.mtx --devices 0").fails(2, &["b.mtx: the matrix is not symmetric"]);
    file("c.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 -1\n");
    place.run("bench c.mtx --devices 0").fails(2, &["c.mtx: no iteration can be timed; IndefiniteOperator"]);
    place.run("bench c.mtx --report c.mtx").fails(2, &["would overwrite c.mtx"]);
    place.run("bench --order 27 --devices gpu,99").fails(3, &["--devices gpu,99"]);
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_nothing_behind() {
    let place = Place::new();
    let args = "bench --order 100000 --devices host --repeat 1000 --report r.html -v";
    let (mut child, _err) = started(place.command(args), "cg-classic on host");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(place.names(), [""; 0]);
}

#[test]
fn pages_of_tuning_and_of_benchmarks() {
    let place = Place::new();
    place.run("tune --order 1000 --search first-minimum --dry-run --devices 0,0 --report one.html").ok();
    let page = place.read("one.html");
    assert!(page.contains("Launch parameters found by measurement") && !page.contains("Rates, "), "{page}");
    place.run("bench --order 1000 --iterations 10 --repeat 1 --devices 0,0 --report two.html").ok();
    let page = place.read("two.html");
    for part in ["Where the time of 10 iterations goes", "Rates, cg-classic", "Rates, cg\"", "2 × "] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn exchanges_by_every_model() {
    let place = Place::new();
    let args = "bench exchange --devices 0,0,host --counts 3,1,2 --sizes 1,50 --order 1000 --iterations 5 --repeat 2";
    let report = place.run(&format!("{args} --json")).ends(0).json();
    assert_eq!(
        (&report["matrix"]["rows"], &report["iterations"], &report["repeat"]),
        (&1000.into(), &5.into(), &2.into())
    );
    let entries = report["entries"].as_array().unwrap();
    let of = |entry: &Value| (entry["model"].as_str().unwrap().to_owned(), entry["ranks"].as_u64().unwrap());
    let of_all = ["live", "host-staged", "host-copied"].into_iter().flat_map(|model| [(model, 2), (model, 3)]);
    let expected = [("live", 1)].into_iter().chain(of_all).chain([("shared-context", 2)]);
    let expected = expected.map(|(model, ranks)| (model.to_owned(), ranks));
    assert_eq!(entries.iter().map(of).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    // the host shares no context
    let is_of_running = |note: &&Value| note.as_str().unwrap().starts_with("sums over running kernels of ");
    let (of_running, notes): (Vec<_>, Vec<_>) = report["notes"].as_array().unwrap().iter().partition(is_of_running);
    let note = notes[0].as_str().unwrap();
    assert!(
        notes.len() == 1 && note.starts_with("shared-context on 3 is left out: ") && note.contains("host"),
        "{note}"
    );
    let is_time = |time: &Value| time["median"].as_f64().is_some_and(|seconds| seconds > 0.0);
    let answers = report["answers"].as_array().unwrap();
    assert!(answers.len() == 1 && is_time(&answers[0]["time"]), "{answers:?}");
    // where a runtime does not run all kernels at once, it is said
    let running = report["running"].as_array().unwrap();
    assert_eq!(running.len() + of_running.len(), 2, "{running:?} {of_running:?}");
    assert!(running.iter().flat_map(|of| of["sums"].as_array().unwrap()).all(|sum| is_time(&sum["time"])));
    for entry in entries {
        let is_alone = entry["ranks"] == 1;
        let has_none = is_alone || entry["model"] == "live";
        let [sums, halos] = ["sums", "halos"].map(|kind| entry[kind].as_array().unwrap());
        let values: Vec<_> = sums.iter().map(|sum| sum["values"].as_u64().unwrap()).collect();
        assert_eq!(values, if has_none { vec![] } else { vec![1, 2, 4] });
        let sizes = |scattered| {
            let those = halos.iter().filter(move |halo| halo["scattered"] == scattered);
            those.map(|halo| halo["elements"].as_u64().unwrap()).collect::<Vec<_>>()
        };
        assert!([false, true].iter().all(|&scattered| sizes(scattered) == if has_none { vec![] } else { vec![1, 50] }));
        assert!(sums.iter().chain(halos).all(|one| is_time(&one["time"])));
        let stages = &entry["stages"];
        assert!(is_time(&stages["product"]) && is_time(&stages["iteration"]));
        assert_eq!(is_time(&stages["boundary"]), !is_alone);
        assert!(["preparation", "input", "solver"].iter().all(|stage| stages[*stage].as_f64().unwrap() > 0.0));
    }
    let text = words(&place.run(args).ok());
    for part in [
        "Sums over the ranks",
        "elements side by side",
        "every other element",
        "Stages of a solve of 5 iterations",
        "Answers of a running kernel",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

/// The five stages of products by elements, beside those of a solve with the assembled matrix.
#[test]
fn exchanges_of_a_capacitor() {
    let place = Place::new();
    let args =
        "bench exchange --capacitor 1 --devices 0,0 --models live,host-staged --sizes 1 --iterations 5 --repeat 1";
    let report = place.run(&format!("{args} --json")).ends(0).json();
    assert_eq!(report["matrix"]["rows"], 594);
    let entries = report["entries"].as_array().unwrap();
    let has_stages: Vec<bool> = entries.iter().map(|entry| !entry["elements"].is_null()).collect();
    assert_eq!(has_stages, [true, false, true]); // alone, live, host-staged
    for stages in entries.iter().map(|entry| &entry["elements"]).filter(|stages| !stages.is_null()) {
        assert_eq!((&stages["way"], &stages["iterations"]), (&"by-node".into(), &5.into()));
        assert!(
            ["input", "adjacency", "boundary", "iteration"].iter().all(|stage| stages[*stage].as_f64().unwrap() > 0.0)
        );
    }
    assert!(entries[2]["elements"]["halo"].as_u64().unwrap() > 0);
    let text = words(&place.run(args).ok());
    assert!(text.contains("Stages by elements, 5 iterations") && text.contains("capacitor of 1 cells"), "{text}");
    assert_eq!(place.run("bench exchange --capacitor 1 --order 1000").code, Some(2));
}

#[test]
fn threads_add_up_as_running_kernels_do() {
    let args = "bench exchange --devices host,host,host --counts 2,3 --models host-staged --sizes 1 --order 1000";
    let report = Place::new().run(&format!("{args} --iterations 5 --repeat 2 --json")).ends(0).json();
    assert_eq!((&report["answers"], &report["notes"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    let running = report["running"].as_array().unwrap();
    assert_eq!(running.iter().map(|of| of["ranks"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 3]);
    for of in running {
        let values: Vec<_> = of["sums"].as_array().unwrap().iter().map(|sum| sum["values"].as_u64().unwrap()).collect();
        assert_eq!(values, [1, 2, 4]);
    }
}

#[test]
fn what_an_exchange_is_not_timed_with() {
    let place = Place::new();
    let fails = |args: &str, parts: &[&str]| place.run(&format!("bench exchange --devices 0,0 {args}")).fails(2, parts);
    fails("--precision mixed", &["--precision is f64 or f32"]);
    fails("--tune quick", &["--tune is off or stored"]);
    fails("--counts 1,3", &["--counts 3", "are 2"]);
    fails("nothing.mtx", &["nothing.mtx"]);
    let alone = place.run("bench exchange --devices 0 --order 1000 --iterations 5 --repeat 1").ok();
    assert!(words(&alone).contains("a device alone has nothing to exchange") && !alone.contains("Halos"), "{alone}");
    for args in ["--sizes 0", "--models pigeon", "--report r.html"] {
        assert_eq!(place.run(&format!("bench exchange {args}")).code, Some(2), "{args}");
    }
}

#[test]
fn primitives_on_a_device_and_on_the_host() {
    let place = Place::new();
    let run = |args: &str, shape: &str| {
        let mut command = place.command(&format!("bench primitives --devices 0 --repeat 2 {args}"));
        command.env("DECLIVE_SHAPE", shape);
        Run::of(command, "")
    };
    let report = run("--rows 3000,40,3000 --json", "cpu").ends(0).json();
    assert_eq!((&report["repeat"], &report["notes"]), (&2.into(), &Value::Array(vec![])));
    let device = &report["devices"][0];
    assert!(device["copy_gigabytes_per_second"].as_f64().unwrap() > 0.0, "{device}");
    let entries = report["entries"].as_array().unwrap();
    // each size once, in order; the host, then the device
    let tasks = entries.len() / 4;
    assert!(entries.len() == 4 * tasks && tasks >= 10);
    assert!(entries.iter().enumerate().all(|(k, entry)| entry["rows"] == if k < 2 * tasks { 40 } else { 3000 }));
    for pair in entries.chunks_exact(2) {
        let [host, on_device] = pair else { unreachable!() };
        let number = |field: &str| on_device[field].as_f64().unwrap_or_else(|| panic!("{field} of {on_device}"));
        assert_eq!((&host["task"], &host["device"]), (&on_device["task"], &Value::Null));
        assert_eq!((&on_device["device"], &on_device["same_as_host"]), (&device["label"], &true.into()));
        let [rows, host, own] =
            [&host["rows"], &host["time"]["median"], &on_device["time"]["median"]].map(|v| v.as_f64().unwrap());
        assert!((number("speedup") * own / host - 1.0).abs() < 1e-9);
        assert!((number("elements_per_second") * own / rows - 1.0).abs() < 1e-9);
        assert!(number("bytes") >= 2.0 * rows && number("space_bytes") > 0.0 && number("part_of_copy") > 0.0);
    }
    let names: Vec<&str> = entries.iter().map(|entry| entry["task"].as_str().unwrap()).collect();
    for name in ["scan to u32", "indices of flags", "sort u32 pairs, 8 bits", "sort u64 pairs, 64 bits"] {
        assert_eq!(names.iter().filter(|task| **task == name).count(), 4, "{name}");
    }

    let as_on_cpus = run("--rows 300 --all-launches", "cpu").ok();
    let as_on_gpus = run("--rows 300", "gpu").ok();
    for text in [&as_on_cpus, &as_on_gpus] {
        for part in ["(CPU), copies", "order of u32, 32 bits", "× host", "The host"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("WRONG") && !text.contains("Notes"), "{text}");
    }
    assert!(as_on_cpus.contains("launch") && !as_on_gpus.contains("launch"));
    assert!([4, 5, 6, 7, 8].iter().all(|bits| as_on_cpus.contains(&format!("16 × 64, {bits} bits"))), "{as_on_cpus}");
}

#[test]
fn primitives_that_there_is_no_room_or_no_device_for() {
    let place = Place::new();
    let mut command = place.command("bench primitives --devices 0 --repeat 1 --rows 1000 30000 --json");
    command.env("DECLIVE_MAX_BUFFER", "100000");
    let report = Run::of(command, "").ends(0).json();
    let notes = report["notes"].as_array().unwrap();
    let is_expected = |note: &Value| {
        let note = note.as_str().unwrap();
        note.contains(", 30000 elements, on ") && note.contains(" is left out: ") && note.contains("its largest buffer")
    };
    assert!(notes.len() >= 10 && notes.iter().all(is_expected), "{notes:?}");
    let sizes = |rows: u64| report["entries"].as_array().unwrap().iter().filter(|one| one["rows"] == rows).count();
    assert_eq!(sizes(1000), 2 * sizes(30_000), "the host has room");

    for run in [
        place.run("bench primitives --devices host --repeat 1 --rows 100 --json"),
        place.run_without_opencl("bench primitives --repeat 1 --rows 100 --json"),
    ] {
        let report = run.ends(0).json();
        assert_eq!(report["devices"], Value::Array(vec![]));
        assert!(report["entries"].as_array().unwrap().iter().all(|one| one["device"].is_null()));
    }
    for (args, part) in [("--rows 0", "--rows"), ("--rows 4294967296", "--rows"), ("--repeat 0", "--repeat")] {
        place.run(&format!("bench primitives {args}")).misused(&[part]);
    }
    assert_eq!(place.run("bench primitives --order 5").code, Some(2));
}

/// Each preconditioner that a matrix can have, with its set-up, an application and a solve.
#[test]
fn preconditioners() {
    let place = Place::new();
    let run = |rest: &str| place.run(&format!("bench precond {rest}"));
    let report = run("--generate circuit:60 --devices host --repeat 2 --json").ends(0).json();
    assert_eq!((&report["matrix"]["source"], &report["repeat"]), (&"circuit:60".into(), &2.into()));
    let entries = report["entries"].as_array().unwrap();
    let of = |precond: &str| entries.iter().find(|entry| entry["precond"] == precond).unwrap();
    let names: Vec<&str> = entries.iter().map(|entry| entry["precond"].as_str().unwrap()).collect();
    assert_eq!(names, ["none", "jacobi", "amg", "block-jacobi", "fsai", "chebyshev"]);
    for entry in entries {
        let number = |field: &str| entry[field].as_f64().unwrap_or_else(|| panic!("{field} of {entry}"));
        assert_eq!(
            (&entry["label"], &entry["method"], &entry["converged"]),
            (&"host".into(), &"cg".into(), &true.into())
        );
        assert!(number("rel_residual_2") <= 1e-8 && number("solve_seconds") > 0.0);
        let each = number("solve_seconds") / number("iterations");
        assert!((number("iteration_seconds") - each).abs() < 1e-12);
        assert_eq!(entry["application_seconds"].is_null(), entry["precond"] == "none");
        assert_eq!(entry["hierarchy"].is_null(), entry["precond"] != "amg");
    }
    let iterations = |precond: &str| of(precond)["iterations"].as_u64().unwrap();
    assert!(3 * iterations("amg") < iterations("jacobi") && iterations("fsai") < iterations("jacobi"));
    let levels = of("amg")["hierarchy"]["levels"].as_array().unwrap();
    assert!(
        levels.len() > 1 && levels[0]["rows"] == report["matrix"]["rows"] && levels[1]["seconds"].as_f64().is_some()
    );
    assert!(
        of("amg")["set_up_seconds"].as_f64().unwrap() > 0.0 && of("fsai")["entries"].as_array().unwrap().len() == 2
    );
    // in words, for a matrix that has other ones, on two devices
    let text = words(&run("--generate convection3d:8 --devices 0,host --repeat 1 --preconds jacobi,ilu0").ok());
    for part in ["idr on [0]", "idr on host", "idr on all", "precond set-up ms each µs apply µs", "jacobi", "ilu0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // what is not for the matrix is left out; a solve that does not converge is told
    let left = run("--generate stokes2d:8 --devices host --repeat 1 --preconds jacobi,amg --method gmres").ok();
    assert!(words(&left).contains("gmres by amg on host is left out: "), "{left}");
    let few = words(&run("--generate circuit:60 --devices host --repeat 1 --preconds jacobi --max-iters 5").ok());
    assert!(few.contains(" 5 MaxIters "), "{few}");
    run("--generate convection3d:8 --devices host --preconds amg").fails(2, &["amg", "idr"]);
    run("--method direct").fails(2, &["direct"]);
    run("--generate convection3d:8 --preconds magic").misused(&["magic"]);
}
