//! Several processes that MPI starts: the same answers as of one, told once.

mod failures;
mod files;

use std::process::Command;
use std::time::Instant;

use declive::verify::residual;

use crate::common::process::{Place, Run, array};
use crate::common::system;
use declive::matrix::gallery::random_vector;

/// `mpirun` with arguments that have no blanks within, more processes than processors among them.
fn mpirun(place: &Place, args: &str) -> Command {
    let mut command = Command::new(std::env::var_os("MPIRUN").unwrap_or("mpirun".into()));
    for name in ["ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"] {
        command.env(format!("OMPI_{name}"), "1");
    }
    command.args(args.split_whitespace().map(|arg| arg.replace("PROGRAM", env!("CARGO_BIN_EXE_declive"))));
    command.current_dir(place.path("")).env("DECLIVE_CACHE_DIR", place.cache()).env_remove("RUST_LOG");
    command
}

/// `declive` in so many processes.
fn run(place: &Place, count: usize, args: &str) -> Run {
    Run::in_time(mpirun(place, &format!("-n {count} PROGRAM {args}")))
}

/// What `declive` itself has said of errors: launchers have more to say.
fn errors(run: &Run) -> Vec<&str> {
    run.err.lines().filter(|line| line.starts_with("error: ")).collect()
}

#[test]
fn the_same_answers_as_of_one() {
    let place = Place::new();
    let systems = [
        ("jumps:12", "--method cg --precond jacobi"),
        ("jumps:12", "--method cg --precond block-jacobi"),
        ("jumps:12", "--method cg-pipelined"),
        ("jumps:12", "--method minres --precision mixed"),
        ("poisson2d:40", "--method cg --precond chebyshev"),
        ("jumps:12", "--method cg --precond fsai"),
        ("variable:32,sigma=2", "--method cg --precond amg"),
        ("convection3d:10", "--method idr"),
        ("convection3d:10", "--method gmres --precond ilu0"),
    ];
    for (k, (spec, options)) in systems.into_iter().enumerate() {
        let a = system(spec);
        let b = random_vector(a.n_rows(), 4);
        place.write("b.mtx", array(std::slice::from_ref(&b)));
        let devices = ["host", "0", "0,host"][k % 3];
        let args = format!("solve --generate {spec} -b b.mtx {options} --devices {devices} --tune off -o x.mtx --json");
        let alone = place.run(&args).ends(0).json();
        for count in [2, 3, 4] {
            let what = format!("{spec} {options} on {devices} by {count}");
            let report = run(&place, count, &args).ends(0).json();
            let [found, expected] = [&report, &alone].map(|report| report["iterations"].as_u64().unwrap());
            // incomplete factors, and blocks at the ends of a process, are others
            let more =
                if options.contains("ilu0") || options.contains("fsai") { 2 * expected } else { 1 + expected / 10 };
            assert!(found.abs_diff(expected) <= more, "{what}: {found} iterations, alone {expected}");
            assert_eq!(report["processes"].as_array().unwrap().len(), count, "{what}");
            let residual = residual(&a, &b, &place.vectors("x.mtx")[0]);
            assert!(residual.relative_2 <= 1e-8, "{what}: {:e}", residual.relative_2);
            assert_eq!(report["matrix"]["nnz"], a.nnz(), "{what}");
        }
    }
}

/// Multigrid with the kernels that GPUs get, which devices of processes set up together; PoCL takes its time for binaries of them.
#[test]
fn multigrid_on_devices() {
    let place = Place::new();
    let a = system("variable:24,sigma=2");
    let b = random_vector(a.n_rows(), 4);
    place.write("b.mtx", array(std::slice::from_ref(&b)));
    let solve = "solve --generate variable:24,sigma=2 -b b.mtx --method cg --precond amg --tune off -o x.mtx --json";
    let alone = place.run(&format!("{solve} --devices 0")).ends(0).json();
    let mut of_gpus = mpirun(&place, &format!("-n 1 PROGRAM {solve} --devices 0 : -n 1 PROGRAM {solve} --devices 0,0"));
    of_gpus.env("DECLIVE_SHAPE", "gpu").env("DECLIVE_PROGRAM_CACHE", "off");
    let report = Run::in_time(of_gpus).ends(0).json();
    let [found, expected] = [&report, &alone].map(|report| report["iterations"].as_u64().unwrap());
    assert!(found.abs_diff(expected) <= 3, "{found} iterations, alone {expected}");
    assert!(report["hierarchy"]["levels"].as_array().is_some_and(|levels| levels.len() > 1), "{report}");
    let residual = residual(&a, &b, &place.vectors("x.mtx")[0]);
    assert!(residual.relative_2 <= 1e-8, "{:e}", residual.relative_2);
}

#[test]
fn files_in_any_form_and_equal_bits() {
    let place = Place::new();
    place.run("generate jumps:9 -o A.mtx").ok();
    place.run("convert A.mtx A.npz").ok();
    place.run("convert A.mtx A.mtx.gz").ok();
    for file in ["A.mtx", "A.npz", "A.mtx.gz"] {
        let solve = || {
            let run = run(&place, 3, &format!("solve {file} --devices host --rhs random:3 -o x.mtx"));
            let text = run.ok();
            assert!(text.contains("Converged") && text.matches("Converged in").count() == 1, "{text}");
            assert!(text.contains("process"), "{text}");
            place.read("x.mtx")
        };
        assert!(solve() == solve(), "{file}");
    }
    // more processes than rows
    place.run("generate tridiagonal:3 -o few.mtx").ok();
    run(&place, 5, "solve few.mtx --method cg --devices host").ends(0);
    // one is none of several
    run(&place, 1, "solve few.mtx --devices host").ends(0);
}

/// Which tell of the ranks of the first process, the page of all processes, too.
#[test]
fn a_page_and_a_trace() {
    let place = Place::new();
    let args = "solve --generate poisson2d:30 --method cg --devices host --report p.html --trace t.json --json";
    let report = run(&place, 3, args).ends(0).json();
    assert_eq!([&report["report"], &report["trace"]], ["p.html", "t.json"]);
    let page = place.read("p.html");
    let processes = report["processes"].as_array().unwrap();
    assert!(page.contains("Processes") && page.contains(processes[2]["host"].as_str().unwrap()), "{page}");
    let trace: serde_json::Value = serde_json::from_str(&place.read("t.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |key: &str, is: &str| events.iter().filter(|event| event[key] == is).count();
    assert_eq!(count("name", "process_name"), 2, "the command and one rank");
    let iterations = report["iterations"].as_u64().unwrap() as usize;
    assert!(count("name", "sum over ranks") >= iterations, "{iterations} iterations");
    assert_eq!(count("name", "right-hand side 1"), 1);
}

#[test]
fn what_is_wrong_is_said_once() {
    let place = Place::new();
    place.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 4\n2 2 x\n");
    place.write("skew.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 4\n2 1 3\n");
    for (args, said) in [
        ("solve bad.mtx", "bad.mtx:4:5"),
        ("solve nothing.mtx", "nothing.mtx"),
        ("solve skew.mtx --method cg", "not symmetric"),
        ("solve --generate poisson2d:9 --condition", "--condition"),
        ("solve --generate poisson2d:9 --report nowhere/c", "nowhere/c"),
        ("solve --generate poisson2d:9 --resume nothing.ckpt", "nothing.ckpt"),
        ("solve --generate poisson2d:9 --checkpoint nowhere/c", "nowhere/c"),
        ("solve --generate poisson2d:9 --precond transversal --method idr", "transversal"),
        ("solve --generate poisson2d:9 -b bad.mtx", "bad.mtx"),
        ("info skew.mtx", "run this command without MPI"),
    ] {
        let run = run(&place, 3, args);
        assert_eq!(run.code, Some(2), "{args}: {}", run.err);
        let errors = errors(&run);
        assert!(errors.len() == 1 && errors[0].contains(said), "{args}: {}", run.err);
        assert_eq!(run.out, "", "{args}");
    }
    // of one alone
    let solve = "solve --generate poisson2d:9 --devices host";
    let one = Run::in_time(mpirun(&place, &format!("-n 1 PROGRAM {solve} : -n 1 PROGRAM {solve} -o nowhere/x.mtx")));
    assert_eq!((one.code, errors(&one).len()), (Some(2), 1), "{}", one.err);
    assert!(errors(&one)[0].contains("process 1 failed") && one.err.contains("nowhere"), "{}", one.err);
    // not converging is no failure
    let run = run(&place, 2, "solve --generate poisson2d:40 --max-iters 3 --devices host --method cg");
    assert_eq!((run.code, errors(&run).len()), (Some(1), 0), "{}", run.err);
    assert!(run.out.contains("Not converged"), "{}", run.out);
}

#[test]
fn a_failing_process_ends_all() {
    let place = Place::new();
    let solve = "solve --generate poisson2d:300 --rtol 1e-13 --method cg --precond none";
    // a device of the second one
    for call in ["launch:3", "launch:20"] {
        let args =
            format!("-n 1 PROGRAM {solve} --devices 0 : -n 1 env DECLIVE_FAULT=0:{call} PROGRAM {solve} --devices 0");
        let start = Instant::now();
        let run = Run::in_time(mpirun(&place, &args));
        assert!(run.code.is_some_and(|code| code != 0) && run.out.is_empty(), "{call}: {:?} {}", run.code, run.err);
        assert!(start.elapsed().as_secs() < 40, "{call}");
        assert!(errors(&run).iter().any(|line| line.contains("process 1 failed")), "{call}: {}", run.err);
        assert!(run.err.contains("error: process 1: "), "{call}: {}", run.err);
    }
    // one that is killed
    let killed = "if [ \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" = 1 ]; then (sleep 2; kill -9 $$) & fi; exec \"$@\"";
    let mut command = mpirun(&place, "-n 3 sh -c");
    command.arg(killed).arg("sh").arg(env!("CARGO_BIN_EXE_declive"));
    command.args("solve --generate poisson3d:100 --rtol 1e-14 --max-iters 1000000 --devices host".split(' '));
    let start = Instant::now();
    let run = Run::in_time(command);
    assert!(run.code.is_some_and(|code| code != 0) && start.elapsed().as_secs() < 40, "{:?} {}", run.code, run.err);
    assert_eq!(run.out, "");
}
