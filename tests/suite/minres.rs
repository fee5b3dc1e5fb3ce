//! Symmetric matrices that are not positive definite: `minres`, and the way there from `cg`. Each test recomputes b − A x by itself.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::process::{Place, Run, array};
use crate::common::{PRECONDS, choices, relative_residual, setup, solve, solve_with, system};
use declive::device::Choice;
use declive::matrix::gallery;
use declive::solve::{Checkpoint, Checkpoints, Criterion, Indefinite, Method, Precision, Precond, Progress};
use declive::{Control, Csr, Reason, Setup, Solver, Stop};

/// The symmetric matrix with these entries of one triangle.
fn symmetric(n: usize, entries: impl IntoIterator<Item = (usize, usize, f64)>) -> Csr {
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    let mut push = |i: usize, j: usize, v: f64| {
        t.0.push(i as u32);
        t.1.push(j as u32);
        t.2.push(v);
    };
    for (i, j, v) in entries {
        push(i, j, v);
        if i != j {
            push(j, i, v);
        }
    }
    Csr::from_triplets(n, n, &t.0, &t.1, &t.2).unwrap()
}

/// The entries of one triangle of a symmetric matrix.
fn triangle(a: &Csr) -> Vec<(usize, usize, f64)> {
    let row = |i: usize| a.row(i).0.iter().zip(a.row(i).1).map(move |(&j, &v)| (i, j as usize, v));
    (0..a.n_rows()).flat_map(row).filter(|(i, j, _)| i >= j).collect()
}

/// A − σ I, for a matrix that stores its diagonal.
fn shifted(a: &Csr, sigma: f64) -> Csr {
    let rows = (0..a.n_rows()).flat_map(|i| std::iter::repeat_n(i, a.row(i).0.len()));
    let entries = rows.zip(a.col_idx()).zip(a.values());
    let values = entries.map(|((i, &j), v)| if i == j as usize { v - sigma } else { *v }).collect();
    Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap()
}

/// [A Bᵀ; B 0] with A of Poisson's equation, and in each row of B a difference of two unknowns.
fn saddle_point() -> Csr {
    let a = system("poisson2d:12x10");
    let (n, m) = (a.n_rows(), 20);
    let constraints = (0..m).flat_map(|k| [(n + k, 6 * k, 1.0), (n + k, 6 * k + 3, -1.0)]);
    symmetric(n + m, triangle(&a).into_iter().chain(constraints))
}

/// −1, 1.9, −1: the least eigenvalues of this matrix are about −0.1, and its diagonal is positive.
fn hidden(n: usize) -> Csr {
    symmetric(n, (0..n).flat_map(|i| [(i, i, 1.9), (i, i + 1, -1.0)]).filter(|(_, j, _)| *j < n))
}

/// As a file.
fn file(a: &Csr) -> String {
    let entries = triangle(a);
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{0} {0} {1}\n", a.n_rows(), entries.len());
    for (i, j, v) in entries {
        writeln!(text, "{} {} {v:e}", i + 1, j + 1).unwrap();
    }
    text
}

/// `minres` with both preconditioners on every choice of devices.
fn setups(precision: Precision) -> Vec<Setup> {
    let both = |devices: &Choice| PRECONDS.iter().map(|&p| setup(Method::Minres, p, precision, devices)).collect();
    choices().iter().flat_map(|devices| -> Vec<Setup> { both(devices) }).collect()
}

fn auto(precision: Precision, devices: &Choice) -> Setup {
    setup(Method::Auto, Precond::Jacobi, precision, devices)
}

#[test]
fn small_systems_by_hand() {
    let swap = symmetric(2, [(1, 0, 1.0)]);
    let saddle = symmetric(3, [(0, 0, 2.0), (1, 1, 3.0), (2, 0, 1.0), (2, 1, 1.0)]);
    let negative = symmetric(3, [(0, 0, -2.0), (1, 1, -3.0), (2, 2, -4.0), (1, 0, 1.0)]);
    for setup in setups(Precision::F64) {
        for (a, b, x) in [
            (&swap, &[2.0, 3.0][..], &[3.0, 2.0][..]),
            (&swap, &[1.0, 0.0], &[0.0, 1.0]), // r·A r = 0
            (&saddle, &[1.0, 5.0, 3.0], &[1.0, 2.0, -1.0]),
            (&saddle, &[0.0, 0.0, 5.0], &[3.0, 2.0, -6.0]),
            (&negative, &[0.0, -5.0, 12.0], &[1.0, 2.0, -3.0]),
        ] {
            let o = solve(a, b, &setup, 1e-13);
            assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{setup:?}, {b:?}");
            assert!(o.iterations <= a.n_rows() as u64, "{setup:?}, {b:?}: {} iterations", o.iterations);
            assert!(o.x.iter().zip(x).all(|(x, y)| (x - y).abs() <= 1e-12), "{setup:?}, {b:?}: {:?}", o.x);
        }
    }
}

#[test]
fn indefinite_systems_on_all_devices() {
    let (grid, jumps) = (system("poisson2d:13x9"), system("jumps:7,contrast=10,seed=3"));
    let middle = {
        let mut diagonal = jumps.diagonal();
        diagonal.sort_by(f64::total_cmp);
        0.3 * diagonal[diagonal.len() / 2]
    };
    for (name, a) in [
        ("a positive diagonal", shifted(&grid, 1.3)),
        ("a negative diagonal", shifted(&grid, 4.5)),
        ("a diagonal of zeros", shifted(&grid, 4.0 + 1e-300)),
        ("a varied diagonal", shifted(&jumps, middle)),
        ("a block of zeros", saddle_point()),
        ("a hidden negative eigenvalue", hidden(300)),
    ] {
        // the diagonal of zeros makes a singular matrix
        let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 11));
        for (precision, rtol) in [(Precision::F64, 1e-9), (Precision::F32, 1e-3)] {
            for setup in setups(precision) {
                let o = solve(&a, &b, &setup, rtol);
                let found = relative_residual(&a, &b, &o.x);
                let what = format!("{name}, {setup:?}: {} in {}, {found:e}", o.reason, o.iterations);
                assert!(o.reason.converged() && found <= 1.01 * rtol, "{what}");
                assert_eq!(o.history.len() as u64, o.iterations + 1, "{what}");
                assert!(
                    (o.history.last().unwrap() - found).abs() <= 0.1 * found + 1e-14,
                    "{what}: {:?}",
                    o.history.last()
                );
                // what is least is that of the scaled system, if it is scaled
                let is_scaled = setup.precond == Precond::Jacobi && a.diagonal().iter().any(|d| *d != a.diagonal()[0]);
                let falls = o.history.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-5));
                assert!(is_scaled || o.restarts > 0 || falls, "{what}: {:?}", o.history);
            }
        }
    }
}

/// A ring whose null space is not seen in its sums: vectors of 1 and −1 by turns.
#[test]
fn singular_systems() {
    let n = 60;
    let ring = symmetric(n, (0..n).flat_map(|i| [(i, i, 2.0), (i, (i + 1) % n, 1.0)]));
    let null: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let plus = |b: &[f64], factor: f64| b.iter().zip(&null).map(|(b, z)| b + factor * z).collect::<Vec<_>>();
    let random = gallery::random_vector(n, 9);
    let along = random.iter().zip(&null).map(|(b, z)| b * z).sum::<f64>() / n as f64;
    let consistent = plus(&random, -along);
    let inconsistent = plus(&consistent, 0.5);
    let norm = inconsistent.iter().map(|b| b * b).sum::<f64>().sqrt();
    let least = 0.5 * (n as f64).sqrt() / norm;
    for setup in setups(Precision::F64) {
        let mut solver = Solver::new(ring.clone(), &setup).unwrap();
        let o = solve_with(&mut solver, &consistent, 1e-9);
        let found = relative_residual(&ring, &consistent, &o.x);
        assert!(o.reason.converged() && found <= 1.01e-9, "{setup:?}: {}, {found:e}", o.reason);
        let o = solve_with(&mut solver, &inconsistent, 1e-9);
        let found = relative_residual(&ring, &inconsistent, &o.x);
        assert!(matches!(o.reason, Reason::Stagnation | Reason::MaxIters), "{setup:?}: {}, {found}", o.reason);
        assert!(found >= 0.999 * least && found <= 1.0, "{setup:?}: {}, {found}: no worse than the guess", o.reason);
        // while it is on its way, it comes as near as can be
        let stop = Stop::default().with_max_iters(n as u64 / 2);
        let o = solver.solve(&inconsistent, None, &stop, Control::default()).unwrap();
        let found = relative_residual(&ring, &inconsistent, &o.x);
        assert!(
            o.reason == Reason::MaxIters && found <= 1.001 * least,
            "{setup:?}: {}, {found}, not {least}",
            o.reason
        );
    }
}

/// A row without entries is no obstacle where b is 0; elsewhere there is no solution.
#[test]
fn rows_without_entries() {
    let a = symmetric(4, [(0, 0, 2.0), (1, 0, 3.0), (3, 3, 1.0)]);
    for devices in choices() {
        for method in [Method::Auto, Method::Minres] {
            let setup = auto(Precision::F64, &devices).with_method(method);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            assert_eq!(solver.method(), Method::Minres);
            let o = solve_with(&mut solver, &[8.0, 3.0, 0.0, 5.0], 1e-12);
            assert!(o.reason.converged(), "{setup:?}: {}", o.reason);
            assert!(o.x.iter().zip([1.0, 2.0, 0.0, 5.0]).all(|(x, y)| (x - y).abs() < 1e-10), "{setup:?}: {:?}", o.x);
            let o = solve_with(&mut solver, &[8.0, 3.0, 1e-30, 5.0], 1e-12);
            let reason = Reason::IndefiniteOperator(Indefinite::EmptyRow { row: 3 });
            assert_eq!((o.reason, o.iterations), (reason, 0), "{setup:?}");
        }
    }
}

#[test]
fn auto_begins_with_minres_where_the_diagonal_says_so() {
    let diagonal = |row, value| Some(Indefinite::Diagonal { row, value });
    let host: Choice = "host".parse().unwrap();
    for (a, method, reason) in [
        (system("poisson2d:5"), Method::Cg, None),
        (hidden(5), Method::Cg, None),
        (shifted(&system("poisson2d:5"), 4.0), Method::Minres, diagonal(1, 0.0)),
        (symmetric(2, [(0, 0, 1.0), (1, 1, -2.5)]), Method::Minres, diagonal(2, -2.5)),
        (symmetric(2, [(0, 0, 1.0)]), Method::Minres, Some(Indefinite::EmptyRow { row: 2 })),
    ] {
        let of = |method| Solver::new(a.clone(), &auto(Precision::F64, &host).with_method(method)).unwrap();
        assert_eq!((of(Method::Auto).method(), of(Method::Auto).method_reason()), (method, reason));
        assert_eq!(of(Method::Minres).method_reason(), None, "nobody chose");
    }
}

#[test]
fn minres_goes_on_where_cg_finds_a_negative_direction() {
    let a = hidden(300);
    let b = gallery::random_vector(300, 3);
    for devices in choices() {
        for (precision, rtol) in [(Precision::F64, 1e-9), (Precision::F32, 1e-3)] {
            let cg = solve(&a, &b, &auto(precision, &devices).with_method(Method::Cg), rtol);
            let Reason::IndefiniteOperator(Indefinite::Direction { iteration, curvature }) = cg.reason else {
                panic!("{devices}, {precision}: {}", cg.reason);
            };
            let mut solver = Solver::new(a.clone(), &auto(precision, &devices)).unwrap();
            let o = solve_with(&mut solver, &b, rtol);
            let found = relative_residual(&a, &b, &o.x);
            let what = format!("{devices}, {precision}: {} in {}, {found:e}", o.reason, o.iterations);
            assert!(o.reason.converged() && found <= 1.01 * rtol, "{what}");
            let switches: Vec<_> = o.switches.iter().map(|s| (s.iteration, s.from, s.to, s.why)).collect();
            assert_eq!(switches, [(iteration - 1, Method::Cg, Method::Minres, cg.reason)], "{what}: {curvature}");
            assert_eq!(solver.method(), Method::Minres, "{what}");
            assert_eq!(solver.method_reason(), None, "nothing of it was known before");
            let at = iteration as usize - 1;
            assert_eq!(o.history[..=at], cg.history, "{what}");
            assert_eq!(o.history.len() as u64, o.iterations + 1, "{what}");
            assert!(iteration > 2 && o.history[at + 1] <= 1.0001 * o.history[at], "{what}: it goes on from x");
            assert_eq!(o.split.len(), devices.to_string().split(',').count(), "{what}");
            // from now on
            let again = solve_with(&mut solver, &b, rtol);
            assert_eq!((again.reason.converged(), again.switches.len()), (true, 0), "{what}");
        }
        let o = solve(&a, &b, &auto(Precision::Mixed, &devices), 1e-9);
        assert_eq!(o.switches[0].to, Method::Minres, "in mixed precision, too");
        assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-9, "{devices}: {}", o.reason);
    }
}

/// The limits are those of the whole solve.
#[test]
fn limits_hold_over_a_switch() {
    let a = hidden(300);
    let b = gallery::random_vector(300, 3);
    for devices in choices() {
        let solver = |setup: &Setup, stop: &Stop, control: Control<'_>| {
            Solver::new(a.clone(), setup).unwrap().solve(&b, None, stop, control).unwrap()
        };
        let whole = solver(&auto(Precision::F64, &devices), &Stop::default(), Control::default());
        let before = whole.switches[0].iteration;
        for max_iters in [before - 1, before, before + 1, before + 7] {
            let stop = Stop::default().with_max_iters(max_iters);
            let o = solver(&auto(Precision::F64, &devices), &stop, Control::default());
            assert_eq!((o.reason, o.iterations), (Reason::MaxIters, max_iters), "{devices}");
            let found = relative_residual(&a, &b, &o.x);
            assert!((o.history.last().unwrap() - found).abs() < 1e-10, "{devices}, {max_iters}: {found:e}");
            assert_eq!(o.history, whole.history[..=max_iters as usize], "{devices}, {max_iters}");
        }
        let cancel = AtomicBool::new(false);
        let watch = |progress: &Progress| cancel.store(progress.iterations > before, Ordering::Relaxed);
        let control = Control::default().with_cancel(&cancel).with_progress(&watch);
        let endless = Stop::default().with_rtol(0.0).with_max_iters(u64::MAX);
        let o = solver(&auto(Precision::F64, &devices), &endless, control);
        // with rtol = 0 the precision may be exhausted before anybody looks
        assert!(
            matches!(o.reason, Reason::Interrupted | Reason::Stagnation | Reason::Rounding),
            "{devices}: {}",
            o.reason
        );
        let stop = endless.with_time_limit(Duration::from_millis(30));
        let o = solver(&auto(Precision::F64, &devices), &stop, Control::default());
        assert!(
            matches!(o.reason, Reason::TimeLimit | Reason::Stagnation | Reason::Rounding),
            "{devices}: {}",
            o.reason
        );
    }
}

#[test]
fn minres_ends_at_once_if_it_is_to() {
    let a = saddle_point();
    let b = gallery::random_vector(a.n_rows(), 3);
    for setup in setups(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        for max_iters in [1, 2, 9] {
            let stop = Stop::default().with_max_iters(max_iters);
            let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
            assert_eq!((o.reason, o.iterations), (Reason::MaxIters, max_iters), "{setup:?}");
            let found = relative_residual(&a, &b, &o.x);
            assert!((o.history.last().unwrap() - found).abs() < 1e-10, "{setup:?}, {max_iters}: {found:e}");
        }
        let cancel = AtomicBool::new(false);
        let watch = |_: &Progress| cancel.store(true, Ordering::Relaxed);
        let control = Control::default().with_cancel(&cancel).with_progress(&watch);
        let o = solver.solve(&b, None, &Stop::default(), control).unwrap();
        assert_eq!(o.reason, Reason::Interrupted, "{setup:?}");
        let none = Stop::default().with_time_limit(Duration::ZERO);
        let o = solver.solve(&b, None, &none, Control::default()).unwrap();
        assert_eq!((o.reason, o.iterations), (Reason::TimeLimit, 0), "{setup:?}");
        assert!(solve_with(&mut solver, &b, 1e-8).reason.converged(), "{setup:?}: the solver is still good");
    }
}

/// What is handed out after k iterations is x after k iterations, to the last bit, and nobody notices.
#[test]
fn checkpoints_do_not_disturb() {
    let a = saddle_point();
    let b = gallery::random_vector(a.n_rows(), 5);
    for setup in setups(Precision::F64) {
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let taken = Mutex::new(Vec::new());
        let take = |at: &Checkpoint<'_>| taken.lock().unwrap().push((at.iterations, at.rel_residual_2, at.x.to_vec()));
        let checkpoint = Checkpoints::new(Duration::ZERO, &take);
        let with = solver.solve(&b, None, &Stop::default(), Control::default().with_checkpoint(checkpoint)).unwrap();
        let without = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(with.reason.converged(), "{setup:?}: {}", with.reason);
        assert_eq!((&with.history, &with.x), (&without.history, &without.x), "{setup:?}");
        let taken = taken.into_inner().unwrap();
        assert!(taken.iter().any(|(k, ..)| *k > 0) && taken.is_sorted_by_key(|(k, ..)| *k), "{setup:?}");
        for (k, rel_residual_2, x) in taken.iter().filter(|(k, ..)| *k > 0).step_by(taken.len().div_ceil(4)) {
            assert_eq!(*rel_residual_2, with.history[*k as usize], "{setup:?}, {k}");
            let stop = Stop::default().with_max_iters(*k);
            let ended = solver.solve(&b, None, &stop, Control::default()).unwrap();
            assert_eq!((ended.iterations, &ended.x), (*k, x), "{setup:?}, {k}");
        }
    }
}

#[test]
fn a_checkpoint_before_a_switch_or_after() {
    let place = Place::new();
    let a = hidden(300);
    place.write("A.mtx", file(&a));
    let b = gallery::random_vector(300, 3);
    let solve = |args: &str| place.run(&format!("solve A.mtx --rhs random:3 --tune off --json {args}"));
    let whole = solve("--devices host").ends(0).json();
    let before = whole["switches"][0]["iteration"].as_u64().unwrap();
    for max_iters in [before - 1, before + 20] {
        for (from, to) in [("0,0", "host"), ("host", "0,0")] {
            solve(&format!("--devices {from} --max-iters {max_iters} --checkpoint x.ckpt")).ends(1);
            let report = solve(&format!("--devices {to} --resume x.ckpt -o x.mtx")).ends(0).json();
            assert_eq!(report["resumed_iterations"], max_iters);
            // whoever goes on does not know of it, and may find out once more
            let switched = report["switches"][0]["iteration"].as_u64();
            assert!(switched.is_none_or(|iteration| iteration >= max_iters), "{report}");
            assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01e-8);
        }
    }
}

#[test]
fn the_command_tells_why_it_is_not_cg() {
    let place = Place::new();
    let words = |run: Run| run.ok().split_whitespace().collect::<Vec<_>>().join(" ");
    // each block has p·A p = −2 for the second right-hand side
    let blocks =
        symmetric(8, (0..4).flat_map(|k| [(2 * k, 2 * k, 1.0), (2 * k + 1, 2 * k, 2.0), (2 * k + 1, 2 * k + 1, 1.0)]));
    place.write("blocks.mtx", file(&blocks));
    let b = [vec![1.0; 8], (0..8).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect(), gallery::random_vector(8, 5)];
    place.write("b.mtx", array(&b));
    place.write("late.mtx", file(&hidden(300)));
    place.write("zero.mtx", file(&saddle_point()));
    crate::common::require_opencl();
    for devices in ["host", "0", "0,0"] {
        let command = format!("--tune off --devices {devices} -o x.mtx");
        let args = format!("solve blocks.mtx -b b.mtx {command}");
        let report = place.run(&format!("{args} --json")).ends(0).json();
        let reason = &report["switches"][0]["reason"];
        let switches = serde_json::json!([{ "iteration": 0, "from": "cg", "to": "minres", "precond": "jacobi", "reason": reason }]);
        assert_eq!((&report["switches"], &report["solves"][1]["switches"]), (&switches, &switches));
        assert!(reason.as_str().unwrap().starts_with("IndefiniteOperator: "), "{report}");
        assert_eq!([0, 2].map(|k| &report["solves"][k]["switches"]), [&serde_json::json!([]); 2]);
        assert_eq!((&report["options"]["method"], &report["options"]["method_reason"]), (&"minres".into(), &().into()));
        for (x, b) in place.vectors("x.mtx").iter().zip(&b) {
            assert!(relative_residual(&blocks, b, x) <= 1.01e-8);
        }
        let text = words(place.run(&args));
        assert!(text.contains("method cg, then minres, preconditioner "), "{text}");
        assert!(text.contains("minres from iteration 1 of right-hand side 2 on: p·Ap = -"), "{text}");

        let args = format!("solve late.mtx --rhs random:3 {command}");
        let report = place.run(&format!("{args} --json")).ends(0).json();
        let iteration = report["switches"][0]["iteration"].as_u64().unwrap();
        assert!(0 < iteration && iteration < report["iterations"].as_u64().unwrap(), "{report}");
        assert_eq!(report["switches"], report["solves"][0]["switches"]);
        let text = words(place.run(&format!("{args} --report r.html")));
        let line = format!("minres from iteration {} on: p·Ap = -", iteration + 1);
        assert!(text.contains(&line) && text.contains("shows that the matrix is not positive definite"), "{text}");
        assert!(place.read("r.html").contains(&line), "{line}");

        let args = format!("solve zero.mtx {command}");
        let report = place.run(&format!("{args} --json")).ends(0).json();
        assert_eq!(
            (&report["switches"], &report["options"]["method_reason"]),
            (&serde_json::json!([]), &"a(121,121) = 0".into())
        );
        let text = words(place.run(&args));
        assert!(text.contains("method minres (auto: a(121,121) = 0), preconditioner jacobi"), "{text}");
        let text = words(place.run(&format!("{args} --method minres")));
        assert!(text.contains("method minres, preconditioner jacobi"), "{text}");
        let text = place.run(&format!("{args} --method cg")).ends(1).out;
        assert!(text.contains("--method minres"), "{text}");
    }
}

#[test]
fn an_empty_row_without_a_solution_on_the_command_line() {
    let place = Place::new();
    place.write("A.mtx", file(&symmetric(3, [(0, 0, 1.0), (2, 2, 2.0)])));
    for method in ["auto", "minres", "cg"] {
        let run = place.run(&format!("solve A.mtx --devices host --method {method}")).ends(1);
        let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected =
            "Not converged after 0 iterations. IndefiniteOperator: row 2 has no entries: the matrix is singular.";
        assert!(words.starts_with(expected), "{words}");
    }
}

/// By runs that begin anew from the true residual, and reach what double precision does.
#[test]
fn in_mixed_precision() {
    for (a, seed) in [(saddle_point(), 1), (system("helmholtz3d:9,wavenumber=1.5"), 2)] {
        let b = gallery::random_vector(a.n_rows(), seed);
        for devices in choices() {
            for precond in [Precond::None, Precond::Jacobi] {
                let setup = |precision| setup(Method::Minres, precond, precision, &devices);
                let [mixed, double] = [Precision::Mixed, Precision::F64].map(|of| solve(&a, &b, &setup(of), 1e-11));
                let found = relative_residual(&a, &b, &mixed.x);
                assert!(mixed.reason.converged() && found <= 1.01e-11, "{devices}, {precond}: {}", mixed.reason);
                assert!(mixed.restarts >= 2, "{devices}, {precond}: {}", mixed.restarts);
                let took = [mixed.iterations, double.iterations];
                assert!(took[0] <= 3 * took[1], "{devices}, {precond}: {took:?}");
            }
        }
    }
}

#[test]
fn equal_launches_give_equal_bits() {
    crate::common::require_opencl();
    let n = 3000;
    let a = hidden(n);
    let bits = |place: &Place| place.vectors("x.mtx")[0].iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for shape in ["cpu", "gpu"] {
        for devices in ["0", "0,0"] {
            let place = Place::new();
            place.write("A.mtx", file(&a));
            let solved = |tune: &str| {
                let args =
                    format!("solve A.mtx --method minres --rhs random:3 --rtol 1e-2 --devices {devices} --tune {tune}");
                // a timeline has iterations launched one by one: a processor may refuse launches of several at any time
                let args = format!("{args} -o x.mtx --max-iters 600 --json --history h.csv --trace t.json");
                let mut command = place.command(&args);
                command.env("DECLIVE_SHAPE", shape).env("DECLIVE_PROGRAM_CACHE", "off");
                let report = Run::of(command, "").json();
                assert!(report["iterations"].as_u64() > Some(200), "{shape}, {devices}: {}", report["iterations"]);
                (bits(&place), place.read("h.csv"))
            };
            let off = solved("off");
            for tune in ["off", "stored"] {
                assert!(solved(tune) == off, "{shape}, {devices}, {tune}");
            }
        }
    }
}
