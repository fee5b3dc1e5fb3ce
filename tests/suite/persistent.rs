//! Solves whose iterations stay on the device, as processes in the shape of GPUs. Where a system has so few rows that they are
//! one work-group's, no launch is refused; of more, either may come true, and the answer is as good.

use std::fmt::Write as _;

use crate::common::process::{Place, Run, array};
use crate::common::relative_residual;
use declive::Csr;
use declive::matrix::gallery::Spec;

/// `declive` with the kernels of GPUs, and details in its log.
fn gpu_shaped(place: &Place, args: &str) -> Run {
    let mut command = place.command(&format!("{args} --json -vv"));
    if !args.contains("--tune") {
        command.args(["--tune", "off"]);
    }
    command.env("DECLIVE_SHAPE", "gpu").env("DECLIVE_PROGRAM_CACHE", "off");
    Run::of(command, "")
}

/// Whether iterations were done several at once.
fn is_persistent(run: &Run) -> bool {
    run.err.contains("_persistent takes")
}

/// Whether the log says, once, that the device does not run all groups at once.
fn is_refused(run: &Run) -> bool {
    let count = run.err.matches("not all work-groups run at once").count();
    assert!(count <= 1, "{}", run.err);
    count == 1
}

fn iterations(run: &Run) -> u64 {
    run.json()["iterations"].as_u64().unwrap()
}

#[test]
fn all_formats_and_precisions() {
    crate::common::require_opencl();
    let place = Place::new();
    for (system, formats) in [
        ("poisson2d:18x25", &["csr", "sell", "pattern", "dictionary"][..]),
        ("jumps:7,contrast=10", &["csr", "sell"]),
        ("poisson2d:45x50", &["dictionary"]),
    ] {
        let a: Csr = system.parse::<Spec>().unwrap().build().unwrap();
        let b = vec![1.0; a.n_rows()];
        for format in formats {
            for options in [
                "--precond none",
                "--precond jacobi",
                "--precision mixed",
                "--precision f32 --precond none --rtol 1e-4",
            ] {
                let args = format!("solve --generate {system} --format {format} --devices 0 -o x.mtx {options}");
                let run = gpu_shaped(&place, &args).ends(0);
                let rtol = if options.contains("rtol") { 1e-4 } else { 1e-8 };
                assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01 * rtol, "{args}");
                // a work-group has 512 rows
                let is_one_group = *format != "csr" && a.n_rows() <= 512;
                assert!(!is_one_group || is_persistent(&run) && !is_refused(&run), "{args}: {}", run.err);
                let single = gpu_shaped(&place, &format!("{args} --trace t.json")).ends(0);
                assert!(!is_persistent(&single) && place.read("t.json").contains("cg_step"), "{args}");
                let (several, single) = (iterations(&run), iterations(&single));
                assert!(several.abs_diff(single) <= 1 + single / 50, "{args}: {several}, {single}");
            }
        }
    }
}

#[test]
fn equal_runs_give_equal_bits_from_the_first_one_on() {
    crate::common::require_opencl();
    for method in ["cg", "cg-textbook", "cg-single-reduction", "cg-pipelined", "minres"] {
        let place = Place::new();
        let of = |tune: &str| {
            let args =
                format!("solve --generate jumps:7,contrast=10 --method {method} --format sell --devices 0 -o x.mtx");
            let run = gpu_shaped(&place, &format!("{args} --tune {tune}")).ends(0);
            assert!(is_persistent(&run) && !is_refused(&run), "{method}: {}", run.err);
            (iterations(&run), place.read("x.mtx"))
        };
        let first = of("quick");
        assert!(["quick", "off", "stored"].map(of).iter().all(|other| *other == first), "{method}");
    }
}

#[test]
fn several_devices_and_the_shape_of_cpus_do_without() {
    crate::common::require_opencl();
    let place = Place::new();
    let args = "solve --generate poisson2d:18x25 --format dictionary";
    assert!(is_persistent(&gpu_shaped(&place, &format!("{args} --devices 0"))));
    for options in ["--devices 0,0", "--devices 0,host", "--devices 0 --method cg-classic"] {
        let run = gpu_shaped(&place, &format!("{args} {options}")).ends(0);
        assert!(!is_persistent(&run) && !is_refused(&run), "{options}");
    }
    let mut command = place.command(&format!("{args} --devices 0 --tune off --json -vv"));
    command.env("DECLIVE_SHAPE", "cpu");
    assert!(!is_persistent(&Run::of(command, "").ends(0)));
}

#[test]
fn limits_hold_to_the_iteration() {
    crate::common::require_opencl();
    let place = Place::new();
    let a: Csr = "poisson2d:18x25".parse::<Spec>().unwrap().build().unwrap();
    let b = vec![1.0; 450];
    let mut former = 1.0;
    for max_iters in [1, 2, 3, 7, 20, 41] {
        let args = format!(
            "solve --generate poisson2d:18x25 --format dictionary --devices 0 -o x.mtx --rtol 1e-14 --max-iters {max_iters}"
        );
        let run = gpu_shaped(&place, &args).ends(1);
        assert_eq!((iterations(&run), run.json()["reason"].as_str()), (max_iters, Some("MaxIters")));
        let residual = relative_residual(&a, &b, &place.vectors("x.mtx")[0]);
        let reported = run.json()["rel_residual_2"].as_f64().unwrap();
        assert!((residual - reported).abs() <= 1e-6 * reported && residual != former, "{max_iters}");
        assert!(is_persistent(&run));
        former = residual;
    }
}

/// −1, 1.9, −1: its least eigenvalue is about −0.1.
#[test]
fn an_indefinite_matrix_is_found_out_in_the_same_iteration() {
    crate::common::require_opencl();
    let place = Place::new();
    let n = 300;
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n", 2 * n - 1);
    for i in 1..=n {
        writeln!(text, "{i} {i} 1.9").unwrap();
        if i < n {
            writeln!(text, "{} {i} -1", i + 1).unwrap();
        }
    }
    place.write("A.mtx", text);
    let found = |options: &str| {
        let args = format!("solve A.mtx --method cg --rhs random:3 --devices 0 --format dictionary {options}");
        let run = gpu_shaped(&place, &args).ends(1);
        let report = run.json();
        assert_eq!(report["reason"], "IndefiniteOperator");
        let text = report["reason_text"].as_str().unwrap().to_owned();
        let (_, iteration) = text.split_once("in iteration ").unwrap();
        (is_persistent(&run), iteration.parse::<u64>().unwrap(), iterations(&run))
    };
    let (is_persistent, at, iterations) = found("");
    assert_eq!((is_persistent, iterations), (true, at - 1));
    assert_eq!(found("--trace t.json"), (false, at, iterations));
}

/// Of several right-hand sides on a small system each is a work-group's own; what is unusual is looked into alone.
#[test]
fn a_column_for_each_work_group() {
    crate::common::require_opencl();
    let place = Place::new();
    let by_groups = |args: &str| {
        let run = gpu_shaped(&place, args);
        assert!(run.err.contains("5 right-hand sides by a work-group each"), "{args}: {}", run.err);
        run
    };
    let solves = |run: &Run| run.json()["solves"].as_array().unwrap().clone();
    for (system, options) in [
        ("jumps:6", "--method cg"),
        ("jumps:6", "--method cg --precond none --format csr"),
        ("variable:9", "--method minres --format pattern"),
        ("poisson2d:23", "--method cg-pipelined"),
        ("tetrahedra:3", "--method cg --format sell --precision f32 --rtol 1e-4"),
        ("convection3d:6", "--method bicgstab --format csr"),
    ] {
        let a: Csr = system.parse::<Spec>().unwrap().build().unwrap();
        let n = a.n_rows();
        // the third is solved before it begins
        let b: Vec<Vec<f64>> = (1..=6)
            .map(|k| if k == 3 { vec![0.0; n] } else { declive::matrix::gallery::random_vector(n, k) })
            .collect();
        place.write("b.mtx", array(&b));
        let args = format!("solve --generate {system} -b b.mtx --devices 0 -o x.mtx {options}");
        let run = by_groups(&args).ends(0);
        let rtol = if options.contains("rtol") { 1e-4 } else { 1e-8 };
        for (k, (b, x)) in b.iter().zip(&place.vectors("x.mtx")).enumerate() {
            let solve = &solves(&run)[k];
            assert_eq!(solve["side_by_side"].as_u64(), Some(if k == 2 { 1 } else { 5 }), "{args}, {k}");
            if k == 2 {
                assert!(x.iter().all(|x| *x == 0.0), "{args}");
                continue;
            }
            assert!(relative_residual(&a, b, x) <= 1.01 * rtol, "{args}, {k}");
            assert!(solve["iterations"].as_u64().is_some_and(|count| count > 2), "{args}, {k}");
        }
    }
    // a limit of its own ends each at that iteration
    let limited = "solve --generate jumps:6 --devices 0 --method cg --max-iters 3 --rhs random:1..5";
    let run = by_groups(limited).ends(1);
    for solve in solves(&run) {
        assert_eq!((solve["reason"].as_str(), solve["iterations"].as_u64()), (Some("MaxIters"), Some(3)), "{solve}");
    }
    // indefinite: each is looked into alone
    let run = by_groups("solve --generate helmholtz3d:12 --devices 0 --method cg --rhs random:1..5").ends(1);
    for solve in solves(&run) {
        assert_eq!(solve["reason"].as_str(), Some("IndefiniteOperator"), "{solve}");
    }
}
