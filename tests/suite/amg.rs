//! Multigrid as a preconditioner. Each test recomputes b − A x by itself.

use crate::common::process::{Place, Run, array};
use crate::common::{choice, choices, general, relative_residual, setup, solve_with, system};
use declive::Reason;
use declive::matrix::gallery::{self, Spec};
use declive::solve::{Method, NearNull, Precision, Precond, Reorder, Tune};
use declive::{Control, Csr, Error, HostOperator, OperatorSolver, Outcome, Setup, Solver, Stop};

fn amg(method: Method, precision: Precision, devices: &str) -> Setup {
    setup(method, Precond::Amg, precision, &choice(devices))
}

fn solve(a: &Csr, setup: &Setup, rtol: f64) -> Outcome {
    let b = gallery::random_vector(a.n_rows(), 3);
    let outcome = solve_with(&mut Solver::new(a.clone(), setup).unwrap(), &b, rtol);
    assert!(outcome.reason.converged(), "{setup:?}: {}", outcome.reason);
    let found = relative_residual(a, &b, &outcome.x);
    assert!(found <= 1.01 * rtol, "{setup:?}: {found:e}");
    outcome
}

/// M is that of the whole system on all devices, in any order of its rows.
#[test]
fn on_all_devices() {
    let a = system("jumps:12,seed=3");
    for devices in choices() {
        for (method, precision, reorder) in [
            (Method::Cg, Precision::F64, Reorder::None),
            (Method::Cg, Precision::Mixed, Reorder::Rcm),
            (Method::Gmres, Precision::F64, Reorder::None),
        ] {
            let setup = setup(method, Precond::Amg, precision, &devices).with_reorder(reorder);
            let outcome = solve(&a, &setup, 1e-9);
            assert!(outcome.iterations < 40, "{setup:?}: {}", outcome.iterations);
        }
    }
    solve(&a, &amg(Method::Cg, Precision::F32, "host"), 1e-5);
}

/// A finer grid takes hardly more iterations.
#[test]
fn iterations_are_bounded() {
    let iterations = |spec| solve(&system(spec), &amg(Method::Cg, Precision::F64, "host"), 1e-8).iterations;
    let [coarse, fine] = ["poisson3d:16", "poisson3d:40"].map(iterations);
    assert!(fine < 20 && 2 * fine < 3 * coarse, "{coarse}, {fine}");
    for spec in ["variable:24,sigma=2", "anisotropic:24", "poisson3d27:20", "poisson2d:120"] {
        assert!(iterations(spec) < 30, "{spec}");
    }
}

#[test]
fn levels_are_told() {
    let solver = Solver::new(system("poisson3d:20"), &amg(Method::Cg, Precision::F64, "host")).unwrap();
    let hierarchy = solver.hierarchy().unwrap();
    let levels = &hierarchy.levels;
    assert_eq!((levels[0].rows, levels[0].nnz), (8000, 53_600));
    assert!(levels.windows(2).all(|w| 2 * w[1].rows < w[0].rows) && levels.last().unwrap().rows <= 300);
    assert!((1.1..2.0).contains(&hierarchy.operator_complexity) && (1.05..1.5).contains(&hierarchy.grid_complexity));
    assert!(Solver::new(system("poisson3d:4"), &Setup::default()).unwrap().hierarchy().is_none());
}

/// Pure Neumann boundaries: constants are the null space.
#[test]
fn a_singular_system() {
    let a = system("neumann2d:60x50");
    let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 3));
    let mut solver = Solver::new(a.clone(), &amg(Method::Cg, Precision::F64, "host")).unwrap();
    let outcome = solve_with(&mut solver, &b, 1e-8);
    assert!(outcome.reason.converged() && outcome.iterations < 30, "{}: {}", outcome.reason, outcome.iterations);
    assert!(relative_residual(&a, &b, &outcome.x) < 1.01e-8);
}

#[test]
fn other_values_have_other_levels() {
    let a = system("variable:12,seed=1");
    let other = system("variable:12,seed=2");
    let mut solver = Solver::new(a, &amg(Method::Cg, Precision::F64, "host")).unwrap();
    solver.update_values(other.values().to_vec()).unwrap();
    let b = gallery::random_vector(other.n_rows(), 3);
    let outcome = solve_with(&mut solver, &b, 1e-9);
    assert!(outcome.reason.converged() && outcome.iterations < 20, "{}", outcome.iterations);
    assert!(relative_residual(&other, &b, &outcome.x) < 1.01e-9);
}

#[test]
fn auto_takes_it_where_it_can() {
    let auto = amg(Method::Auto, Precision::F64, "host");
    let definite = Solver::new(system("poisson2d:30"), &auto).unwrap();
    assert_eq!((definite.method(), definite.precond()), (Method::Cg, Precond::Amg));
    let upwind = Solver::new(system("convection3d:6"), &auto).unwrap();
    assert_eq!((upwind.method(), upwind.precond()), (Method::Gmres, Precond::Amg));
    // pressures have no levels
    let mut other = Solver::new(system("stokes2d:8"), &auto).unwrap();
    assert_eq!(other.precond(), Precond::Jacobi);
    let b = vec![1.0; other.stats().n_rows];
    assert!(other.solve(&b, None, &Stop::default(), Control::default()).unwrap().reason.converged());
}

#[test]
fn who_can_have_it() {
    let error = |a: Csr, method| match Solver::new(a, &amg(method, Precision::F64, "host")) {
        Err(Error::Usage(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(error(system("poisson2d:9"), Method::Minres).contains("which is for cg and gmres"));
    assert!(error(system("stokes2d:6"), Method::Gmres).contains("symmetric positive definite"));
    // the real form of i A
    let turned = |i: usize| {
        [(2 * i, 2 * i + 1, -3.0), (2 * i + 1, 2 * i, 3.0), (2 * i, 2 * i, 1.0), (2 * i + 1, 2 * i + 1, 1.0)]
    };
    assert!(error(general(8, (0..4).flat_map(turned)), Method::Gmres).contains("complex"));
    let without = general(3, [(0, 0, 2.0), (0, 1, -1.0), (1, 2, 1.0), (2, 2, 1.0)]);
    assert!(error(without, Method::Gmres).contains("none in row 2"));
    let of_nodes = amg(Method::Gmres, Precision::F64, "host").with_near_null(NearNull::of_unknowns(2).unwrap());
    let refused = Solver::new(system("convection3d:4"), &of_nodes);
    assert!(matches!(refused, Err(Error::Usage(text)) if text.contains("interpolates a constant")));
    let f = |x: &[f64], y: &mut [f64]| y.copy_from_slice(x);
    let function = OperatorSolver::new(HostOperator::new(5, f), &amg(Method::Cg, Precision::F64, "host"));
    assert!(matches!(function, Err(Error::Usage(text)) if text.contains("no entries for precond = amg")));
}

/// Where what flows hardly spreads any more, too; on all devices, in any order of the rows.
#[test]
fn matrices_that_are_not_symmetric() {
    for (spec, most) in [("convection3d:14,peclet=1", 14), ("convection3d:14,peclet=1000", 30)] {
        let a = system(spec);
        for devices in choices() {
            for (precision, reorder) in [(Precision::F64, Reorder::None), (Precision::Mixed, Reorder::Rcm)] {
                let setup = setup(Method::Gmres, Precond::Amg, precision, &devices).with_reorder(reorder);
                let outcome = solve(&a, &setup, 1e-9);
                assert!(outcome.iterations <= most, "{spec}, {setup:?}: {}", outcome.iterations);
            }
        }
    }
    // a pattern that is not symmetric, and one of several values that change
    let one_way = |shift: f64| {
        let of = |i: usize| [(i, i, 3.02 + shift), (i, (i + 1) % 900, -2.0), (i, (i * 7 + 3) % 900, -1.0)];
        general(900, (0..900).flat_map(of).filter(|(i, j, v)| i != j || *v > 0.0))
    };
    let setup = amg(Method::Gmres, Precision::F64, "host");
    let mut solver = Solver::new(one_way(0.0), &setup).unwrap();
    let b = gallery::random_vector(900, 5);
    for shift in [0.0, 0.5] {
        let a = one_way(shift);
        solver.update_values(a.values()).unwrap();
        let outcome = solve_with(&mut solver, &b, 1e-9);
        assert!(outcome.reason.converged() && relative_residual(&a, &b, &outcome.x) <= 1.01e-9);
        assert!(outcome.iterations < 60, "{}", outcome.iterations);
    }
}

#[test]
fn by_the_command() {
    let place = Place::new();
    let run = place.run("solve --generate poisson3d:16 --precond amg --method cg --devices host --json").ends(0);
    let json = run.json();
    assert!(json["iterations"].as_u64().unwrap() < 15);
    assert_eq!(json["hierarchy"]["levels"][0]["rows"], 4096);
    assert!(json["hierarchy"]["operator_complexity"].as_f64().unwrap() > 1.0);
    assert!(json["seconds"]["precond"].as_f64().unwrap() > 0.0);
    let text = place.run("solve --generate poisson3d:16 --precond amg --method cg --devices host").ok();
    assert!(text.contains("preconditioner amg") && text.contains("levels of 4,096; "), "{text}");
    place.run("solve --generate poisson3d:6 --precond amg --method minres").fails(2, &["amg", "cg and gmres"]);
}

/// Kernels of GPUs make the levels on each of several devices: those of one, and x that is checked here.
#[test]
fn several_gpus_by_the_command() {
    let place = Place::new();
    place.run("generate elasticity3d-jumps:6x4x3 -o nodes.mtx --coordinates c.mtx").ok();
    place.run("generate jumps:12,seed=3 -o jumps.mtx").ok();
    place.run("generate poisson3d:3 -o small.mtx").ok();
    for (name, rest, precision) in [
        ("jumps.mtx", "", "f64"),
        ("jumps.mtx", "--reorder rcm", "mixed"),
        ("nodes.mtx", "--coordinates c.mtx", "f64"),
        ("small.mtx", "", "f64"),
    ] {
        let a = place.matrix(name);
        let b = gallery::random_vector(a.n_rows(), 3);
        place.write("b.mtx", array(std::slice::from_ref(&b)));
        let solve = |devices: &str| {
            let args = format!("solve {name} -b b.mtx {rest} --method cg --precond amg --precision {precision}");
            let mut command = place.command(&format!("{args} --rtol 1e-9 --devices {devices} --json -o x.mtx"));
            command.env("DECLIVE_SHAPE", "gpu");
            let json = Run::of(command, "").ends(0).json();
            assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01e-9, "{name}, {devices}");
            let levels = json["hierarchy"]["levels"].as_array().unwrap().clone();
            let rows: Vec<u64> = levels.iter().map(|level| level["rows"].as_u64().unwrap()).collect();
            (json["iterations"].as_u64().unwrap(), rows)
        };
        let (iterations, levels) = solve("0");
        for devices in ["0,0", "0,0,0,0,0"] {
            let (on_several, same) = solve(devices);
            assert!(on_several.abs_diff(iterations) <= 1, "{name}, {devices}: {on_several}, alone {iterations}");
            assert_eq!(same, levels, "{name}, {devices}");
        }
    }
}

/// By itself, `auto` begins with the diagonal and goes on with multigrid where that takes less.
#[test]
fn auto_leaves_what_is_slow() {
    let a = system("circuit:100");
    let rtol = 1e-10;
    for devices in ["host", "0", "0,0,0", "0,host"] {
        let auto = Setup::default().with_devices(choice(devices)).with_tune(Tune::Off);
        let by_diagonal = solve(&a, &auto.clone().with_precond(Precond::Jacobi), rtol);
        assert!(by_diagonal.switches.is_empty());
        let b = gallery::random_vector(a.n_rows(), 3);
        let mut solver = Solver::new(a.clone(), &auto).unwrap();
        assert!(solver.hierarchy().is_none());
        let outcome = solve_with(&mut solver, &b, rtol);
        assert!(outcome.reason.converged() && relative_residual(&a, &b, &outcome.x) <= 1.01 * rtol, "{devices}");
        let [switch] = &outcome.switches[..] else { panic!("{devices}: {:?}", outcome.switches) };
        assert_eq!((switch.to, switch.precond, switch.why), (Method::Cg, Precond::Amg, Reason::Slow));
        assert!(switch.iteration < outcome.iterations && 2 * outcome.iterations < by_diagonal.iterations);
        assert!(solver.hierarchy().is_some());
        // it stays for later right-hand sides
        let later = solve_with(&mut solver, &gallery::random_vector(a.n_rows(), 4), rtol);
        assert!(later.switches.is_empty() && later.iterations < 60, "{devices}: {}", later.iterations);
        // and others decide alike
        let again = solve_with(&mut Solver::new(a.clone(), &auto).unwrap(), &b, rtol);
        assert_eq!(again.switches, outcome.switches, "{devices}");
    }
}

/// Devices go on with the rows that they have, scaled by the diagonal or not.
#[test]
fn rows_stay_where_they_are() {
    let place = Place::new();
    for (spec, is_scaled) in [("circuit:100", true), ("poisson2d:300", false)] {
        let a = system(spec);
        let b = gallery::random_vector(a.n_rows(), 3);
        // of several processors, the host makes the levels: they get their rows again
        for (devices, ranks, shapes) in [("0", 1, &["cpu", "gpu"][..]), ("0,0,0", 3, &["gpu"])] {
            for (shape, precision) in
                shapes.iter().flat_map(|shape| ["f64", "mixed"].map(|precision| (shape, precision)))
            {
                let rest =
                    format!("--devices {devices} --precision {precision} --tune off --rtol 1e-10 --json -o x.mtx");
                let mut command = place.command(&format!("solve --generate {spec} --rhs random:3 {rest}"));
                command.env("DECLIVE_SHAPE", shape).env("RUST_LOG", "declive=debug");
                let run = Run::of(command, "").ends(0);
                let (json, case) = (run.json(), format!("{spec} {devices} {shape} {precision}"));
                assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01e-10, "{case}");
                assert_eq!(json["switches"].as_array().map(Vec::len), Some(1), "{case}: {}", json["switches"]);
                let of_each = if precision == "mixed" { 2 } else { 1 };
                assert_eq!(run.err.matches("rows are there").count(), of_each * ranks, "{case}");
                assert_eq!(run.err.contains("rows are scaled"), is_scaled, "{case}");
                // the levels are an account of their own
                assert!(json["seconds"]["precond"].as_f64().unwrap() > 0.0, "{case}");
            }
        }
    }
}

fn columns(nodes: &[[f64; 3]]) -> [Vec<f64>; 3] {
    [0, 1, 2].map(|axis| nodes.iter().map(|node| node[axis]).collect())
}

/// Nodes are found by the blocks that the matrix is made of; where they are makes rigid bodies known.
#[test]
fn elasticity() {
    let spec: Spec = "elasticity3d-jumps:10x8x8".parse().unwrap();
    let a = spec.build().unwrap();
    let bodies = NearNull::of_coordinates(3, &columns(&spec.coordinates().unwrap())).unwrap();
    let constants = NearNull::of_unknowns(1).unwrap();
    for devices in choices() {
        let setup = setup(Method::Cg, Precond::Amg, Precision::F64, &devices);
        let iterations = |setup: &Setup| solve(&a, setup, 1e-8).iterations;
        let told = iterations(&setup.clone().with_near_null(bodies.clone()));
        let [found, unaware] = [iterations(&setup), iterations(&setup.clone().with_near_null(constants.clone()))];
        assert!(told < 30 && 3 * told < 2 * found && 3 * found < 2 * unaware, "{setup:?}: {told}, {found}, {unaware}");
    }
    // nodes stay together in another order of the rows
    let setup = amg(Method::Cg, Precision::F64, "host").with_reorder(Reorder::Rcm);
    assert!(solve(&a, &setup.clone().with_near_null(bodies), 1e-8).iterations < 30);
    let spec: Spec = "tetrahedra:9,shuffle=4".parse().unwrap();
    let bodies = NearNull::of_coordinates(3, &columns(&spec.coordinates().unwrap())).unwrap();
    let iterations = solve(&spec.build().unwrap(), &setup.with_near_null(bodies), 1e-8).iterations;
    assert!(iterations < 25, "{iterations}");
}

/// What near-null vectors may be: any, of each matrix.
#[test]
fn vectors_of_ones_own() {
    let a = system("variable:18");
    let ones = vec![1.0; a.n_rows()];
    let setup = amg(Method::Cg, Precision::F64, "0");
    let of = |near_null| solve(&a, &setup.clone().with_near_null(near_null), 1e-8);
    let usual = solve(&a, &setup, 1e-8);
    assert_eq!(of(NearNull::of_vectors(1, &[&ones]).unwrap()).x, usual.x);
    // of one sign that is not theirs, and two of them
    let others: Vec<f64> = (0..a.n_rows()).map(|i| (i % 18) as f64 - 8.0).collect();
    assert!(of(NearNull::of_vectors(1, &[ones.clone(), others]).unwrap()).iterations < usual.iterations + 8);
    let error = |near_null| Solver::new(a.clone(), &setup.clone().with_near_null(near_null)).unwrap_err().to_string();
    assert!(error(NearNull::of_vectors(1, &[&ones[1..]]).unwrap()).contains("near-null vectors"));
    assert!(
        error(NearNull::of_unknowns(5).unwrap()).contains("5832 rows are no whole number of nodes with 5 unknowns")
    );
}

#[test]
fn coordinates_by_the_command() {
    let place = Place::new();
    place.run("generate elasticity3d:6x5x4 -o a.mtx --coordinates c.npy").ok();
    place.run("generate elasticity3d:6x5x4 -o b.npz --coordinates c.mtx").ok();
    let solve = |rest: &str| {
        let run = place.run(&format!("solve {rest} --precond amg --method cg --devices host --json")).ends(0);
        run.json()["iterations"].as_u64().unwrap()
    };
    let told = solve("a.mtx --coordinates c.npy");
    assert!(told == solve("b.npz --coordinates c.mtx") && told == solve("a.mtx --coordinates c.mtx --block-size 3"));
    let [found, unaware] = ["a.mtx", "a.mtx --block-size 1"].map(solve);
    assert!(told < found && found < unaware, "{told}, {found}, {unaware}");
    // six near-null vectors of no meaning, but none the less
    place.run("solve a.mtx --rhs random:1..6 --devices host -o v.npy").ok();
    assert!(solve("a.mtx --near-null v.npy") < 200);
    let fails = |line: &str, words: &[&str]| place.run(line).fails(2, words);
    place.run("solve a.mtx --coordinates c.npy --near-null v.npy").misused(&["cannot be used with"]);
    fails("solve --generate poisson3d:5 --coordinates c.npy --precond amg", &["180 nodes", "125 rows"]);
    fails("solve --generate poisson2d:18x10 --coordinates c.npy --precond amg", &["no 1 unknowns"]);
    fails("solve a.mtx --near-null c.npy --precond amg", &["c.npy", "540", "180"]);
    fails("solve a.mtx --block-size 7 --precond amg", &["540 rows", "7 unknowns"]);
    fails("solve --generate gauge2d:6 --block-size 2", &["real matrices"]);
    fails("generate poisson3d:4 --coordinates c2.npy", &["poisson3d has no coordinates"]);
    fails("generate tetrahedra:4,scramble=1 --coordinates c2.npy", &["random order"]);
    fails("generate tetrahedra:4 -o t.mtx --coordinates t.mtx", &["both name t.mtx"]);
    fails("generate tetrahedra:4 --coordinates c.txt", &["--coordinates", ".mtx"]);
}

/// Where multigrid takes long, too, the diagonal goes on.
#[test]
fn auto_comes_back() {
    let a = system("elasticity3d-jumps:10x6x6,scramble=1"); // whose nodes are not told
    let b = gallery::random_vector(a.n_rows(), 3);
    let setup = Setup::default().with_devices(choice("host")).with_tune(Tune::Off);
    let by_diagonal = solve(&a, &setup.clone().with_precond(Precond::Jacobi), 1e-11);
    let outcome = solve_with(&mut Solver::new(a.clone(), &setup).unwrap(), &b, 1e-11);
    assert!(outcome.reason.converged() && relative_residual(&a, &b, &outcome.x) <= 1.01e-11);
    assert!(outcome.iterations < 3 * by_diagonal.iterations, "{}, {}", outcome.iterations, by_diagonal.iterations);
}

/// What took the least for a system is remembered, and begun with; without the store all is as the first time.
#[test]
fn auto_remembers() {
    let place = Place::new();
    for devices in ["host", "0"] {
        let solve = |more: &str| {
            let line = format!("solve --generate circuit:100 --rhs random:1 --rtol 1e-10 --devices {devices} {more}");
            place.run(&line).ends(0)
        };
        let json = |more: &str| solve(&format!("{more} --json")).json();
        let first = json("-o first.mtx");
        assert!(first["remembered"].is_null() && first["switches"][0]["precond"] == "amg", "{devices}");
        let second = json("-o second.mtx");
        assert_eq!(second["switches"], serde_json::json!([]), "{devices}");
        let remembered = &second["remembered"];
        assert_eq!(
            [&remembered["method"], &remembered["precond"], &second["options"]["precond"]],
            ["cg", "amg", "amg"]
        );
        assert!(remembered["seconds"].as_f64().unwrap() > 0.0 && remembered["others"] == serde_json::json!([]));
        let iterations = |json: &serde_json::Value| json["iterations"].as_u64().unwrap();
        assert!(2 * iterations(&second) < iterations(&first), "{devices}");
        // equal runs decide alike
        let third = json("-o third.mtx");
        assert_eq!((iterations(&third), &third["switches"]), (iterations(&second), &second["switches"]));
        assert_eq!(place.vectors("third.mtx"), place.vectors("second.mtx"), "{devices}");
        let without = json("--tune off -o without.mtx");
        assert_eq!((&without["switches"], &without["remembered"]), (&first["switches"], &first["remembered"]));
        assert_eq!(place.vectors("without.mtx"), place.vectors("first.mtx"), "{devices}");
        // what is named is done, and compared with the rest from then on
        let named = json("--precond jacobi");
        assert!(named["remembered"].is_null() && named["switches"] == serde_json::json!([]));
        let both = json("");
        let others = both["remembered"]["others"].as_array().unwrap();
        assert_eq!(others.len(), 1, "{both}");
        let text = solve("").out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("auto began with cg by ") && text.contains("last time (cg by "), "{text}");
        assert!(place.run("tune --show").ok().contains("A solve took cg by "));
    }
}

/// What comes to nothing, though it was remembered, is forgotten, and all comes as usual.
#[test]
fn auto_forgets() {
    let place = Place::new();
    let solve = || {
        let line =
            "solve --generate elasticity3d-jumps:30x6x6,scramble=1 --rhs random:3 --rtol 1e-11 --devices host --json";
        place.run(line).ends(0).json()
    };
    let name = |json: &serde_json::Value| format!("{} {}", json["method"], json["precond"]).replace('"', "");
    let first = solve();
    assert_eq!(first["switches"].as_array().unwrap().len(), 2, "{}", first["switches"]);
    let second = solve();
    assert_eq!((name(&second["remembered"]), &second["switches"]), ("cg fsai".into(), &serde_json::json!([])));
    // as if multigrid had been the best
    let mut files = std::fs::read_dir(place.cache().join("tuning")).unwrap().map(|file| file.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|ending| ending == "json")).unwrap();
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, known.replace("fsai", "amg")).unwrap();
    let failing = solve();
    assert_eq!(name(&failing["remembered"]), "cg amg");
    let switch = &failing["switches"][0];
    assert_eq!([&switch["from"], &switch["to"], &switch["precond"]], ["cg", "cg", "fsai"]);
    let again = solve();
    assert_eq!(
        (name(&again["remembered"]), &again["remembered"]["others"]),
        ("cg fsai".into(), &serde_json::json!([]))
    );
}

/// Entries of very different sizes make a residual one of rounding long before the test is met: what is slow goes on all the same.
#[test]
fn a_small_backward_error_is_no_end() {
    let a = system("jumps:14,contrast=1e9");
    let b = gallery::random_vector(a.n_rows(), 3);
    let auto = Setup::default().with_devices(choice("host")).with_tune(Tune::Off);
    let outcome = solve_with(&mut Solver::new(a.clone(), &auto).unwrap(), &b, 1e-11);
    assert!(outcome.reason.converged() || outcome.reason == Reason::Rounding, "{}", outcome.reason);
    assert!(!outcome.switches.is_empty() && outcome.residual.backward_error <= 1e-15);
}
