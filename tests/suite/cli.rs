//! The command as a process: exit codes, standard output, standard error, files.
//!
//! Solves run on the host, which needs no OpenCL and gives the same on every machine.

use std::io::{BufRead, Read};
use std::process::Stdio;

use crate::common::process::{Place, array, interrupt, started};
use declive::Csr;
use declive::matrix::AnyCsr;
use declive::matrix_market::{Symmetry, read_matrix, read_matrix_from, read_vectors_from};
use serde_json::Value;

const SMALL: &str = "%%MatrixMarket matrix coordinate real symmetric\n3 3 5\n1 1 4\n2 1 -1\n2 2 4\n3 2 -1\n3 3 4\n";

/// ‖b − A x‖₂ / ‖b‖₂, by the plainest loops.
fn relative_residual(a: &Csr, b: &[f64], x: &[f64]) -> f64 {
    let (mut rr, mut bb) = (0.0, 0.0);
    for (i, bi) in b.iter().enumerate() {
        let (cols, values) = a.row(i);
        let mut r = *bi;
        for (&j, v) in cols.iter().zip(values) {
            r -= v * x[j as usize];
        }
        rr += r * r;
        bb += bi * bi;
    }
    f64::sqrt(rr / bb)
}

/// The words of a list written `one | two`.
fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split('|').map(str::trim)
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs())
}

// ---- usage

#[test]
fn help_mentions_every_option() {
    let place = Place::new();
    let help = place.run("solve --help").ends(0).out;
    for option in words(
        "-b <b.mtx> | -x, | --x0 | -o, | --output | --method | --precond | --rtol | --atol | --max-iters | \
         --time-limit | --on-failure | --checkpoint | --checkpoint-every | --resume | --precision | --devices | --reorder | --json | --history | --report | --trace | --rhs | --generate | \
         --assume-symmetric | -q, | --quiet | -v, | --verbose | cg-classic | jacobi | f32 | Exit codes | \
         Examples | [default: 1e-8, or 0 | --backward-error | [default: auto]",
    ) {
        assert!(help.contains(option), "{option} is not in the help");
    }
    for command in ["solve", "info", "convert"] {
        let help = place.run(&format!("{command} --help")).ends(0).out;
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for word in ["Matrix Market", "compressed", "SuiteSparse", "SciPy's .npz", "standard input"] {
            assert!(help.contains(word), "{word} is not in the help of {command}");
        }
    }
    let help = place.run("convert --help").ends(0).out;
    for option in words(
        "<INPUT> <OUTPUT> | --generate | --format | --symmetric | --general | --precision | --drop-zeros | --reorder | \
         --permutation | --rhs | --json | -q, | --quiet | .mtx.gz | x(p) = y | Examples",
    ) {
        assert!(help.contains(option), "{option} is not in the help");
    }
    let help = place.run("devices --help").ends(0).out;
    assert!(help.contains("--measure") && help.contains("--json"));
    let help = place.run("generate --help").ends(0).out;
    for word in ["--size", "--seed", "--output", "poisson3d", "jumps", "elasticity3d"] {
        assert!(help.contains(word), "{word} is not in the help");
    }
    let tour = place.run("--help").ends(0).out;
    for word in ["solve", "info", "convert", "devices", "generate", "tour", "Exit codes"] {
        assert!(tour.contains(word), "{word} is not in the tour");
    }
}

#[test]
fn version() {
    let out = Place::new().run("--version").ends(0).out;
    assert_eq!(out, format!("declive {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn unknown_words_list_the_choices() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    place.run("solve A.mtx --method qmr").misused(&["qmr", "cg, cg-classic"]);
    place.run("solve A.mtx --precond ilu").misused(&["ilu", "none, jacobi"]);
    place.run("solve A.mtx --precision f16").misused(&["f16", "f64, f32"]);
    place.run("solve A.mtx --devices tpu").misused(&["tpu", "auto", "gpu", "host"]);
    place.run("solve A.mtx --rhs zeros").misused(&["zeros", "ones", "A*ones", "random:SEED"]);
    place.run("solve --generate cube:3").misused(&["cube", "poisson3d", "jumps"]);
    place.run("generate cube:3").fails(2, &["cube", "poisson3d", "jumps"]);
    place.run("slove").misused(&["slove", "solve"]);
}

#[test]
fn wrong_usage() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    place.write("b.mtx", array(&[vec![1.0; 3]]));
    place.run("").misused(&["Usage"]);
    place.run("solve").misused(&["A.mtx", "--generate"]);
    place.run("solve A.mtx --generate poisson2d:3").misused(&["--generate"]);
    place.run("solve A.mtx -b b.mtx --rhs ones").misused(&["--rhs"]);
    place.run("solve A.mtx --rtol=-1").misused(&["-1", "tolerance"]);
    place.run("solve A.mtx --rtol nan").misused(&["nan", "tolerance"]);
    place.run("solve A.mtx --time-limit soon").misused(&["soon", "1.5m"]);
    place.run("solve A.mtx --max-iters many").misused(&["many"]);
    place.run("solve A.mtx -o - --json").fails(2, &["-o -", "--json"]);
    place.run("solve A.mtx --history -").fails(2, &["--history"]);
    place.run("solve - -b -").fails(2, &["standard input"]);
    place.run("solve A.mtx -o A.mtx").fails(2, &["overwrite", "A.mtx"]);
    place.run("solve A.mtx -b b.mtx -o ./b.mtx").fails(2, &["overwrite", "b.mtx"]);
    place.run("solve A.mtx -o r --history ./r").fails(2, &["-o", "--history"]);
    place.run("generate poisson3d:5 --size 6").fails(2, &["--size"]);
    place.run("generate poisson3d").fails(2, &["size", "poisson3d:"]);
    assert_eq!(place.names(), ["A.mtx", "b.mtx"]);
}

// ---- input

#[test]
fn missing_and_malformed_files() {
    let place = Place::new();
    place.run("solve no.mtx").fails(2, &["no.mtx"]);
    place.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 two 1\n");
    place.run("solve bad.mtx").fails(2, &["bad.mtx:4", "two"]);
    place.run_with("solve -", "nonsense\n").fails(2, &["<stdin>:1"]);
    place.write("A.mtx", SMALL);
    place.run("solve A.mtx -b no.mtx").fails(2, &["no.mtx"]);
    place.run("solve A.mtx -b bad.mtx").fails(2, &["bad.mtx:4"]);
    place.run("solve .").fails(2, &[".: "]);
}

#[test]
fn sizes_that_do_not_fit() {
    let place = Place::new();
    place.write("R.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 1\n2 2 1\n");
    place.run("solve R.mtx --method cg").fails(2, &["R.mtx", "2 rows", "3 columns", "square"]);
    place.write("A.mtx", SMALL);
    place.write("b.mtx", array(&[vec![1.0; 10]]));
    place.run("solve A.mtx -b b.mtx").fails(2, &["b.mtx has 10 rows, but the matrix has 3"]);
    place.run("solve A.mtx -x b.mtx").fails(2, &["b.mtx has 10 rows, but the matrix has 3"]);
    place.write("x0.mtx", array(&[vec![0.0; 3], vec![0.0; 3]]));
    place.run("solve A.mtx -x x0.mtx").fails(2, &["x0.mtx has 2 columns"]);
}

#[test]
fn unsymmetric() {
    let place = Place::new();
    place.write("U.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n1 2 0.001\n2 2 2\n");
    let refusal = ["U.mtx", "not symmetric", "a(1,2)", "minres needs", "--method auto", "--assume-symmetric"];
    place.run("solve U.mtx --devices host --method minres").fails(2, &refusal);
    let run = place.run("solve U.mtx --devices host --json").ends(0);
    assert_eq!(run.json()["options"]["method"], "idr");
    let run = place.run("solve U.mtx --devices host --assume-symmetric --json --rtol 1e-2").ends(0);
    assert_eq!(run.json()["matrix"]["symmetric"], false);
}

#[test]
fn outputs_are_probed_before_the_work() {
    let place = Place::new();
    let run = |args: &str| {
        let run = place.run(&format!("solve -v --generate poisson3d:40 --devices host {args}")).ends(2);
        assert!(run.err.starts_with("error: ") && run.err.lines().count() == 1, "nothing was begun: {}", run.err);
        run.err
    };
    assert!(run("-o no/x.mtx").contains("no/x.mtx"));
    assert!(run("--history no/h.csv").contains("no/h.csv"));
    assert!(run("-o .").contains("error: .: "));
    place.run("generate poisson2d:4 -o no/A.mtx").fails(2, &["no/A.mtx"]);
    assert!(place.names().is_empty());
}

#[test]
fn an_existing_file_stays_until_the_result_is_there() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    place.write("x.mtx", "old");
    place.run("solve A.mtx -b no.mtx -o x.mtx").fails(2, &["no.mtx"]);
    assert_eq!(place.read("x.mtx"), "old");
    place.run("solve A.mtx -o x.mtx --devices host").ends(0);
    assert_eq!(place.vectors("x.mtx")[0].len(), 3);
    assert_eq!(place.names(), ["A.mtx", "x.mtx"]);
}

// ---- devices

#[test]
fn devices_without_opencl() {
    let place = Place::new();
    let run = place.run_without_opencl("devices").ends(0);
    for word in ["No OpenCL", "host", "threads", "uses it"] {
        assert!(run.out.contains(word), "{word} is not in {}", run.out);
    }
    let json = place.run_without_opencl("devices --json").ends(0).json();
    assert_eq!(json["devices"].as_array().unwrap().len(), 0);
    assert_eq!(json["host"]["auto"], true);
    assert!(json["host"]["threads"].as_u64().unwrap() > 0);
    assert!(json["note"].is_string());
}

#[test]
fn devices_as_they_are() {
    let place = Place::new();
    place.run("devices").ends(0);
    let json = place.run("devices --json").ends(0).json();
    for device in json["devices"].as_array().unwrap() {
        for field in ["index", "name", "kind", "platform", "driver", "compute_units", "memory_bytes", "f64"] {
            assert!(!device[field].is_null(), "{field} of {device}");
        }
        assert!(device["auto"] == true || device["auto_reason"].is_string(), "{device}");
        assert!(device["copy_gigabytes_per_second"].is_null());
    }
}

#[test]
fn measured_bandwidths() {
    let json = Place::new().run_without_opencl("devices --measure --json").ends(0).json();
    assert!(json["host"]["copy_gigabytes_per_second"].as_f64().unwrap() > 0.1);
}

#[test]
fn no_gpu() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    place.run_without_opencl("solve A.mtx --devices gpu").fails(3, &["--devices gpu"]);
    place.run_without_opencl("solve A.mtx --devices 0").fails(3, &["--devices 0"]);
}

#[test]
fn the_default_falls_back_to_the_host() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    let run = place.run_without_opencl("solve A.mtx --method cg").ends(0);
    assert!(run.err.starts_with("note: ") && run.err.contains("host"), "{}", run.err);
    assert!(run.out.contains("note"), "{}", run.out);
    let run = place.run_without_opencl("solve A.mtx --method cg --json").ends(0);
    assert!(run.json()["note"].is_string());
    assert_eq!(run.json()["ranks"][0]["kind"], "host");
}

// ---- generate

#[test]
fn generated_files_can_be_read() {
    let place = Place::new();
    place.run("generate poisson3d --size 5 -o A.mtx").ends(0);
    place.run("generate poisson3d:5 -o B.mtx").ends(0);
    assert_eq!(place.read("A.mtx"), place.read("B.mtx"));
    let matrix = read_matrix(&place.path("A.mtx")).unwrap();
    assert_eq!((matrix.a.n_rows(), matrix.a.nnz()), (125, 7 * 125 - 6 * 25));
    assert_eq!(matrix.header.symmetry, Symmetry::Symmetric);
    assert_eq!(matrix.header.entries, ((matrix.a.nnz() + 125) / 2) as u64);
}

#[test]
fn generated_files_are_what_their_names_say() {
    let place = Place::new();
    place.run("generate poisson3d:5 -o A.mtx").ends(0);
    let a = read_matrix(&place.path("A.mtx")).unwrap().a;
    place.run("generate poisson3d:5 -o B.npz").ends(0);
    assert_eq!(declive::npz::read(&place.path("B.npz")).unwrap(), AnyCsr::Real(a.clone()));
    for (name, magic) in [("C.mtx.gz", &[0x1f, 0x8b][..]), ("D.mtx.zst", &[0x28, 0xb5, 0x2f, 0xfd])] {
        place.run(&format!("generate poisson3d:5 -o {name}")).ends(0);
        assert!(std::fs::read(place.path(name)).unwrap().starts_with(magic), "{name}");
        assert_eq!(read_matrix(&place.path(name)).unwrap().a, a, "{name}");
    }
    place.run("generate poisson3d:5 -o E").ends(0);
    assert_eq!(place.read("E"), place.read("A.mtx"));
    let refused = place.run("generate poisson3d:5 -o F.npz.gz").ends(2);
    assert!(refused.err.contains(".npz file is not compressed again"), "{}", refused.err);
}

#[test]
fn the_seed_is_an_option_too() {
    let place = Place::new();
    let [a, b, c] = ["jumps:6,seed=7", "jumps --size 6 --seed 7", "jumps:6 --seed 8"]
        .map(|args| place.run(&format!("generate {args}")).ends(0).out);
    assert_eq!(a, b);
    assert_ne!(a, c);
    assert!(read_matrix_from(a.as_bytes(), "a").is_ok());
}

#[test]
fn generated_matrices_can_be_piped() {
    let place = Place::new();
    let matrix = place.run("generate poisson2d:20x10").ends(0).out;
    let run = place.run_with("solve - --devices host --json", &matrix).ends(0);
    assert_eq!(run.json()["matrix"]["rows"], 200);
    assert_eq!(run.json()["matrix"]["source"], "<stdin>");
}

// ---- solve

#[test]
fn the_report_for_people() {
    let place = Place::new();
    place.run("generate poisson2d:30 -o A.mtx").ends(0);
    let run = place.run("solve A.mtx --devices host --precond jacobi -o x.mtx").ends(0);
    assert_eq!(run.err, "");
    assert!(run.out.starts_with("Converged in "), "{}", run.out);
    for part in words(
        "A.mtx | 900 rows | 4,380 entries | symmetric | bandwidth 30 | ones (none given) | host | jacobi | \
         f64 | rtol 1e-8 | Converged: | backward error | kernels | verify | GB/s | x.mtx",
    ) {
        assert!(run.out.contains(part), "{part} is not in {}", run.out);
    }
    assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
}

#[test]
fn the_report_for_machines() {
    let place = Place::new();
    place.run("generate poisson3d:8 -o A.mtx").ends(0);
    let run = place.run("solve A.mtx --rhs random:3 --devices host --json -o x.mtx").ends(0);
    let json = run.json();
    assert_eq!(json["declive"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&json["converged"], &json["reason"]), (&Value::Bool(true), &Value::from("Converged")));
    assert!(json["reason_text"].as_str().unwrap().starts_with("Converged: "));
    assert!(json["iterations"].as_u64().unwrap() > 3);
    assert_eq!(json["restarts"].as_u64().map(|n| n < 10), Some(true));
    for field in ["read", "prepare", "reorder", "compile", "upload", "tune", "solve", "gather", "verify"] {
        assert!(json["seconds"][field].as_f64().unwrap() >= 0.0, "{field}");
    }
    for field in words(
        "rel_residual_2 | recurrence_rel_residual_2 | backward_error | microseconds_per_iteration | \
         gigabytes_per_second",
    ) {
        assert!(json[field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert_eq!((&json["matrix"]["rows"], &json["matrix"]["nnz"]), (&512.into(), &3200.into()));
    assert_eq!((&json["rhs"]["source"], &json["rhs"]["default"]), (&"random:3".into(), &false.into()));
    let memory = |name: &str| json["host_memory"][name].as_u64();
    assert_eq!(memory("matrix"), Some(513 * 8 + 3200 * 12));
    if cfg!(target_os = "linux") {
        assert!(memory("peak") > memory("matrix"));
    }
    assert_eq!(json["options"]["rtol"], 1e-8);
    assert_eq!(json["options"]["max_iters"], 5120);
    assert_eq!(json["ranks"].as_array().unwrap().len(), 1);
    assert!(json["ranks"][0]["split"]["kernels"].is_number());
    assert_eq!(json["ranks"][0]["rows"], 512);
    assert!(json["rejected"].is_array());
    assert_eq!(json["solves"].as_array().unwrap().len(), 1);

    let b = declive::matrix::gallery::random_vector(512, 3);
    let residual = relative_residual(&place.matrix("A.mtx"), &b, &place.vectors("x.mtx")[0]);
    let said = json["rel_residual_2"].as_f64().unwrap();
    assert!(said <= 1e-8 && close(residual, said, 1e-3), "{residual} and {said}");
}

#[test]
fn a_known_solution() {
    let place = Place::new();
    place.run("solve --generate jumps:8 --rhs A*ones --rtol 1e-12 --precond jacobi --devices host -o x.mtx").ends(0);
    assert!(place.vectors("x.mtx")[0].iter().all(|x| (x - 1.0).abs() < 1e-6));
}

#[test]
fn several_right_hand_sides() {
    let place = Place::new();
    place.run("generate poisson2d:15 -o A.mtx").ends(0);
    let b: Vec<Vec<f64>> = (1..=3).map(|k| (0..225).map(|i| f64::from(i * k % 7 + 1)).collect()).collect();
    place.write("b.mtx", array(&b));
    let run = place.run("solve A.mtx -b b.mtx --devices host --json -o x.mtx --history h.csv").ends(0);
    let json = run.json();
    let (a, x, solves) = (place.matrix("A.mtx"), place.vectors("x.mtx"), json["solves"].as_array().unwrap());
    assert_eq!((x.len(), solves.len()), (3, 3));
    for (k, solve) in solves.iter().enumerate() {
        let residual = relative_residual(&a, &b[k], &x[k]);
        assert!(close(residual, solve["rel_residual_2"].as_f64().unwrap(), 1e-3));
        assert_eq!(solve["rhs"], k + 1);
    }
    let sum: u64 = solves.iter().map(|s| s["iterations"].as_u64().unwrap()).sum();
    assert_eq!(json["iterations"], sum);
    let largest = solves.iter().map(|s| s["rel_residual_2"].as_f64().unwrap()).fold(0.0, f64::max);
    assert_eq!(json["rel_residual_2"], largest);

    let history = place.read("h.csv");
    let lines: Vec<_> = history.lines().collect();
    assert_eq!(lines[0], "rhs,iteration,rel_residual_2");
    for k in 1..=3 {
        let own: Vec<_> = lines.iter().filter_map(|l| l.strip_prefix(&format!("{k},"))).collect();
        for (i, line) in own.iter().enumerate() {
            let (iteration, residual) = line.split_once(',').unwrap();
            assert_eq!(iteration.parse::<usize>().unwrap(), i);
            assert!(residual.parse::<f64>().unwrap().is_finite());
        }
        assert_eq!(own.len() as u64, solves[k - 1]["iterations"].as_u64().unwrap() + 1);
    }

    let text = place.run("solve A.mtx -b b.mtx --devices host").ends(0).out;
    assert!(text.starts_with("All 3 right-hand sides converged"), "{text}");
    assert_eq!(text.matches("  Converged\n").count(), 3, "{text}");

    let run = place.run("solve A.mtx -b b.mtx -x x.mtx --devices host --json --rtol 1e-6").ends(0);
    assert_eq!(run.json()["iterations"], 0, "x0 is the solution");
    assert_eq!(run.json()["x0"], "x.mtx");
}

#[test]
fn the_right_hand_side_from_standard_input() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    let run = place.run_with("solve A.mtx -b - --devices host -o -", array(&[vec![3.0, 2.0, 3.0]])).ends(0);
    let x = &read_vectors_from(run.out.as_bytes(), "x").unwrap()[0];
    assert!(x.iter().all(|x| (x - 1.0).abs() < 1e-7), "{x:?}");
    assert!(run.err.starts_with("Converged"), "the report moves to standard error: {}", run.err);
}

#[test]
fn not_converged() {
    let place = Place::new();
    place.run("generate poisson2d:30 -o A.mtx").ends(0);
    let run = place.run("solve A.mtx --devices host --max-iters 3 -o x.mtx --json").ends(1);
    let json = run.json();
    assert_eq!((&json["reason"], &json["converged"]), (&"MaxIters".into(), &false.into()));
    assert_eq!(json["iterations"], 3);
    let residual = relative_residual(&place.matrix("A.mtx"), &vec![1.0; 900], &place.vectors("x.mtx")[0]);
    assert!(close(residual, json["rel_residual_2"].as_f64().unwrap(), 1e-3));
    let text = place.run("solve A.mtx --devices host --max-iters 3").ends(1).out;
    assert!(text.starts_with("Not converged after 3 iterations. MaxIters: "), "{text}");
}

#[test]
fn out_of_time() {
    let run = Place::new().run("solve --generate tridiagonal:20000 --devices host --time-limit 0s --json").ends(1);
    assert_eq!(run.json()["reason"], "TimeLimit");
    assert_eq!(run.json()["options"]["time_limit"], 0.0);
}

#[test]
fn indefinite() {
    let place = Place::new();
    place.write("I.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 1\n2 2 -1\n3 3 1\n");
    let run = place.run("solve I.mtx --method cg --devices host -o x.mtx").ends(1);
    assert!(run.out.contains("IndefiniteOperator") && run.out.contains("a(2,2) = -1"), "{}", run.out);
    assert_eq!(place.vectors("x.mtx")[0].len(), 3);
    let run = place.run("solve I.mtx --devices host -o x.mtx --json").ends(0);
    assert_eq!(run.json()["options"]["method"], "minres");
    for (x, expected) in place.vectors("x.mtx")[0].iter().zip([1.0, -1.0, 1.0]) {
        assert!((x - expected).abs() <= 1e-7, "{x} is not {expected}");
    }
}

#[test]
fn quiet_and_verbose() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    let run = place.run_without_opencl("solve A.mtx -q").ends(0);
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    let run = place.run("solve A.mtx -q -o - --devices host").ends(0);
    assert!(run.out.starts_with("%%MatrixMarket") && run.err.is_empty());
    place.run("solve A.mtx -q --json --devices host").ends(0).json();
    let run = place.run("solve A.mtx -v --devices host").ends(0);
    assert!(run.err.contains("INFO") && run.err.contains("solving"), "{}", run.err);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let place = Place::new();
    place.write("A.mtx", SMALL);
    let run = place.run("solve A.mtx --devices host -o /dev/full").ends(3);
    assert!(run.err.starts_with("error: /dev/full: "), "{}", run.err);
    assert!(run.out.starts_with("Converged"), "the report is there all the same: {}", run.out);
    place.run("generate poisson2d:50 -o /dev/full").fails(3, &["/dev/full"]);
}

// ---- signals

#[cfg(unix)]
#[test]
fn interrupted() {
    let place = Place::new();
    // would take minutes, and has a limit in case that the signal does nothing
    let args = "solve --generate tridiagonal:300000 --devices host --time-limit 60s -v -o x.mtx";
    let (mut child, mut err) = started(place.command(args), "solving");
    interrupt(&child);
    let (mut out, mut rest) = (String::new(), String::new());
    err.read_to_string(&mut rest).unwrap();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{out}\n{rest}");
    assert!(out.starts_with("Not converged") && out.contains("Interrupted"), "{out}");
    assert_eq!(place.vectors("x.mtx")[0].len(), 300_000);
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_kills() {
    let place = Place::new();
    // standard input stays open, so that reading doesn't end
    let (mut child, mut err) = started(place.command("solve - -v -o x.mtx --devices host"), "reading");
    let _open = child.stdin.take(); // waiting for the child would close it
    let mut line = String::new();
    interrupt(&child);
    err.read_line(&mut line).unwrap();
    assert!(line.contains("interrupted"), "{line}");
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(place.names().is_empty());
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away() {
    let place = Place::new();
    for args in ["generate poisson2d:100", "solve --generate poisson2d:10 --devices host", "devices"] {
        let mut child =
            place.command(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{args}: {err}");
        assert!(!err.contains("error") && !err.contains("panicked"), "{args}: {err}");
    }
}

// ---- manual pages and completions

#[test]
fn manual_pages_have_the_options() {
    let place = Place::new();
    place.run("man no/such/directory").fails(2, &["no/such/directory"]);
    std::fs::create_dir(place.path("man1")).unwrap();
    assert_eq!(place.run("man man1").ok(), "");
    let page = |name: &str| std::fs::read_to_string(place.path("man1").join(name)).unwrap();
    assert!(page("declive.1").contains("declive\\-solve"));
    let solve = page("declive-solve.1");
    for word in ["\\-\\-precond", "chebyshev", "Exit codes"] {
        assert!(solve.contains(word), "{word}");
    }
    assert!(page("declive-bench-exchange.1").contains("\\-\\-models"));
}

#[test]
fn completions_have_the_options() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = place.run(&format!("completions {shell}")).ok();
        for word in ["on-failure", "block-jacobi", "tridiagonal"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    place.run("completions tcsh").misused(&["tcsh"]);
    let script = place.run("completions bash").ok();
    let check = std::process::Command::new("bash").args(["-n", "-c", &script]).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}
