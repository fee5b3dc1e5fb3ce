//! Threads in the place of processes: the same answers as alone.

use std::sync::Arc;

use super::*;
use crate::comm::processes::simulated::processes;
use crate::distributed::rows::tests::{divided, shifted};
use crate::krylov::{Method, Singularity};
use crate::matrix::gallery::{self, Spec};
use crate::real::Precision;
use crate::runtime::{Checkpoint, Checkpoints};
use crate::verify;

/// Even parts of `n` rows.
fn even(n: usize, count: usize) -> Vec<usize> {
    (0..=count).map(|k| n * k / count).collect()
}

/// What each process has, its part of x in the place of x.
fn solve(a: &Csr, b: &[f64], starts: &[usize], setup: &Setup, stop: &Stop) -> Vec<Result<Outcome>> {
    solve_behind(0, a, b, starts, setup, stop)
}

/// The same with so many empty rows before the first one, which nobody has.
fn solve_behind(before: u64, a: &Csr, b: &[f64], starts: &[usize], setup: &Setup, stop: &Stop) -> Vec<Result<Outcome>> {
    processes(starts.len() - 1, |all| {
        let process = all.process();
        let own = starts[process]..starts[process + 1];
        let of_64_bits: Vec<u64> = starts.iter().map(|start| *start as u64).collect();
        let rows = shifted(divided(a, &of_64_bits).swap_remove(process), before);
        let mut solver = SharedSolver::new(all, rows, setup)?;
        assert_eq!(solver.rows(), own.start as u64 + before..own.end as u64 + before);
        solver.solve(&b[own], None, stop, Control::default())
    })
}

/// The x of all.
fn whole(outcomes: &[Result<Outcome>]) -> Vec<f64> {
    outcomes.iter().flat_map(|outcome| outcome.as_ref().unwrap().x.iter().copied()).collect()
}

#[test]
fn the_same_iterations_as_alone() {
    for (name, method) in
        [("jumps:12", Method::Cg), ("jumps:12", Method::CgPipelined), ("convection3d:12", Method::Idr)]
    {
        let a = Arc::new(name.parse::<Spec>().unwrap().build().unwrap());
        let b = gallery::random_vector(a.n_rows(), 3);
        for (devices, precision) in [("host", Precision::F64), ("0", Precision::F64), ("0,host", Precision::Mixed)] {
            let setup = Setup { method, devices: devices.parse().unwrap(), precision, ..Setup::default() };
            let stop = Stop { rtol: 1e-9, ..Stop::default() };
            let alone =
                Solver::new(Arc::clone(&a), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap();
            for count in [1, 2, 3] {
                let outcomes = solve(&a, &b, &even(a.n_rows(), count), &setup, &stop);
                let x = whole(&outcomes);
                let found = verify::residual(&a, &b, &x);
                let first = outcomes[0].as_ref().unwrap();
                let what = format!("{name}, {method}, {devices}, {count} processes: {}", first.reason);
                assert!(first.reason.converged() && found.relative_2 <= 1e-9, "{what}: {:e}", found.relative_2);
                assert!(first.iterations.abs_diff(alone.iterations) <= 1 + alone.iterations / 20, "{what}");
                for other in outcomes.iter().flatten() {
                    assert_eq!((other.iterations, other.reason), (first.iterations, first.reason), "{what}");
                    assert!((other.residual.norm_2 - found.norm_2).abs() <= 1e-9 * found.norm_2, "{what}");
                }
            }
        }
    }
}

/// Small levels are the same as alone; of larger ones, aggregates end where a process does.
#[test]
fn multigrid_of_processes() {
    for (name, more) in [("jumps:12", 0), ("variable:34,sigma=2", 3)] {
        let a = Arc::new(name.parse::<Spec>().unwrap().build().unwrap());
        let b = gallery::random_vector(a.n_rows(), 3);
        for (devices, precision) in [("host", Precision::F64), ("0", Precision::Mixed), ("0,host", Precision::F64)] {
            let (method, precond) = (Method::Cg, Precond::Amg);
            let setup = Setup { method, precond, devices: devices.parse().unwrap(), precision, ..Setup::default() };
            let stop = Stop { rtol: 1e-9, ..Stop::default() };
            let alone =
                Solver::new(Arc::clone(&a), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap();
            for count in [1, 2, 3] {
                let outcomes = solve(&a, &b, &even(a.n_rows(), count), &setup, &stop);
                let (found, first) = (verify::residual(&a, &b, &whole(&outcomes)), outcomes[0].as_ref().unwrap());
                let what = format!("{name}, {devices}, {count} processes: {}", first.reason);
                assert!(first.reason.converged() && found.relative_2 <= 1e-9, "{what}: {:e}", found.relative_2);
                let of_each: Vec<u64> = outcomes.iter().flatten().map(|outcome| outcome.iterations).collect();
                assert!(of_each.iter().all(|k| k.abs_diff(alone.iterations) <= more), "{what}: {of_each:?}, {alone:?}");
            }
        }
    }
}

/// By [`Method::Auto`], multigrid goes on where the diagonal is slow, on all processes after the same iteration.
#[test]
fn multigrid_goes_on_among_processes() {
    let a = "reservoir:20x20x20".parse::<Spec>().unwrap().build().unwrap();
    let b = gallery::random_vector(a.n_rows(), 3);
    let setup = Setup { devices: "host".parse().unwrap(), may_change: true, ..Setup::default() };
    let outcomes = solve(&a, &b, &even(a.n_rows(), 3), &setup, &Stop::default());
    let (found, first) = (verify::residual(&a, &b, &whole(&outcomes)), outcomes[0].as_ref().unwrap());
    assert!(first.reason.converged() && found.relative_2 <= 1e-8, "{}: {:e}", first.reason, found.relative_2);
    assert_eq!(first.switches.first().map(|switch| switch.precond), Some(Precond::Amg));
    for other in outcomes.iter().flatten() {
        assert_eq!((other.iterations, other.switches.len()), (first.iterations, first.switches.len()));
    }
}

/// Where rows are among all changes no bit, and errors have their numbers.
#[test]
fn rows_beyond_32_bits() {
    const BASE: u64 = 5_000_000_000;
    let starts = [0, 500, 500, 1200, 1728];
    let stop = Stop { rtol: 1e-9, max_iters: Some(2000), ..Stop::default() };
    let b = gallery::random_vector(1728, 3);
    for (name, method, precond) in [
        ("jumps:12", Method::Cg, Precond::Jacobi),
        ("jumps:12", Method::CgPipelined, Precond::Jacobi),
        ("jumps:12", Method::Cg, Precond::Fsai),
        ("jumps:12", Method::Minres, Precond::Jacobi),
        ("convection3d:12", Method::Idr, Precond::Ilu0),
        ("convection3d:12", Method::Bicgstab, Precond::BlockJacobi),
        ("convection3d:12", Method::Gmres, Precond::Jacobi),
    ] {
        let a = name.parse::<Spec>().unwrap().build().unwrap();
        let setup = Setup { method, precond, devices: "host,host".parse().unwrap(), ..Setup::default() };
        let [near, far] = [0, BASE].map(|before| solve_behind(before, &a, &b, &starts, &setup, &stop));
        let bits = |x: Vec<f64>| x.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let what = format!("{name}, {method}, {precond}");
        assert!(near[0].as_ref().unwrap().reason.converged(), "{what}");
        assert_eq!(bits(whole(&near)), bits(whole(&far)), "{what}");
    }
}

#[test]
fn errors_of_rows_beyond_32_bits_have_their_numbers() {
    const BASE: u64 = 5_000_000_000;
    let setup = Setup { method: Method::Cg, devices: "host".parse().unwrap(), ..Setup::default() };
    let starts = even(400, 3);
    let with = |diagonal: &dyn Fn(usize) -> f64, b: &[f64]| {
        let values = (0..400).map(diagonal).collect();
        let a = Csr::new(400, 400, (0..=400).collect(), (0..400).collect(), values).unwrap();
        solve_behind(BASE, &a, b, &starts, &setup, &Stop::default())
    };
    let row = BASE as usize + 391;
    for found in with(&|i| if i == 390 { -4.0 } else { 4.0 }, &[1.0; 400]) {
        let expected = Reason::IndefiniteOperator(Indefinite::Diagonal { row, value: -4.0 });
        assert_eq!(found.unwrap().reason, expected);
    }
    let mut b = vec![1.0; 400];
    b[390] = f64::NAN;
    let errors: Vec<String> = with(&|_| 4.0, &b).into_iter().map(|found| found.unwrap_err().to_string()).collect();
    assert!(errors.iter().all(|error| error.contains("5000000391") || error.contains("5000000390")), "{errors:?}");
}

#[test]
fn what_ends_a_solve_ends_all() {
    let a = "poisson2d:20".parse::<Spec>().unwrap().build().unwrap();
    let setup = Setup { method: Method::Cg, devices: "host".parse().unwrap(), ..Setup::default() };
    let starts = even(400, 3);
    let reasons = |a: &Csr, b: &[f64], stop: &Stop| {
        let outcomes = solve(a, b, &starts, &setup, stop);
        let reasons: Vec<Reason> = outcomes.iter().map(|outcome| outcome.as_ref().unwrap().reason).collect();
        assert!(reasons.iter().all(|reason| *reason == reasons[0]), "{reasons:?}");
        reasons[0]
    };
    let b = gallery::random_vector(400, 3);
    // nothing in the rows of two of them
    let sparse: Vec<f64> = (0..400).map(|i| if i < 100 { 1.0 } else { 0.0 }).collect();
    assert!(reasons(&a, &sparse, &Stop::default()).converged());
    assert_eq!(reasons(&a, &[0.0; 400], &Stop::default()), Reason::Converged(Criterion::ZeroRhs));
    assert_eq!(reasons(&a, &b, &Stop { max_iters: Some(2), ..Stop::default() }), Reason::MaxIters);
    let no_time = Stop { time_limit: Some(Duration::ZERO), ..Stop::default() };
    assert_eq!(reasons(&a, &b, &no_time), Reason::TimeLimit);
    // a diagonal entry of the last one
    let values = (0..400).map(|i| if i == 390 { -4.0 } else { 4.0 }).collect();
    let negative = Csr::new(400, 400, (0..=400).collect(), (0..400).collect(), values).unwrap();
    let found = reasons(&negative, &b, &Stop::default());
    assert_eq!(found, Reason::IndefiniteOperator(Indefinite::Diagonal { row: 391, value: -4.0 }));
}

#[test]
fn what_is_wrong_is_everybodys() {
    let a = "convection3d:4".parse::<Spec>().unwrap().build().unwrap();
    let b = gallery::random_vector(64, 3);
    let with = |change: &dyn Fn(&mut Setup)| {
        let mut setup = Setup { devices: "host".parse().unwrap(), ..Setup::default() };
        change(&mut setup);
        solve(&a, &b, &even(64, 3), &setup, &Stop::default())
            .into_iter()
            .map(|one| one.unwrap_err())
            .collect::<Vec<_>>()
    };
    for error in with(&|setup| setup.method = Method::Cg) {
        assert!(matches!(error, Error::NotSymmetric { .. }), "{error}");
    }
    for error in with(&|setup| setup.method = Method::Direct) {
        assert!(error.to_string().contains("several processes"), "{error}");
    }
    for error in with(&|setup| setup.devices = "99".parse().unwrap()) {
        assert!(error.to_string().contains("99"), "{error}");
    }
    // a number of one part
    let errors = processes(3, |all| {
        let process = all.process();
        let setup = Setup { devices: "host".parse().unwrap(), ..Setup::default() };
        let rows = divided(&a, &[0, 20, 40, 64]).swap_remove(process);
        let own = [20, 20, 24][process];
        let mut b = vec![1.0; own];
        if process == 1 {
            b[3] = f64::NAN;
        }
        let mut solver = SharedSolver::new(all, rows, &setup).unwrap();
        solver.solve(&b, None, &Stop::default(), Control::default()).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.contains("24")), "{errors:?}");
}

#[test]
fn a_device_that_fails_ends_all() {
    let a = "poisson2d:60".parse::<Spec>().unwrap().build().unwrap();
    // one process has a device of its own, which is none: so that it fails when ranks are opened
    let errors = processes(2, |all| {
        let process = all.process();
        let rows = divided(&a, &[0, 1800, 3600]).swap_remove(process);
        let devices = if process == 1 { "0,0,0" } else { "host" };
        let setup = Setup { method: Method::Cg, devices: devices.parse().unwrap(), ..Setup::default() };
        let setup = if process == 1 { setup.with_shares("1:1".parse().unwrap()) } else { setup };
        SharedSolver::new(all, rows, &setup).unwrap_err().to_string()
    });
    assert!(errors[0].starts_with("process 1 failed: shares") && errors[1].starts_with("shares"), "{errors:?}");
}

/// Laplacians: constants can't be reached, and x is as near to the guess as it can be.
#[test]
fn singular_systems_as_alone() {
    let stop = Stop { rtol: 1e-9, ..Stop::default() };
    for (name, method) in [
        ("neumann2d:13x7", Method::Cg),
        ("neumann2d:13x7", Method::Minres),
        ("graph-laplacian:90", Method::Auto),
        ("markov:12", Method::Idr),
    ] {
        let a = Arc::new(name.parse::<Spec>().unwrap().build().unwrap());
        let n = a.n_rows();
        let random = gallery::random_vector(n, 3);
        let setup = Setup { method, devices: "host".parse().unwrap(), ..Setup::default() };
        for b in [random.clone(), a.mul_vec(&random)] {
            let alone =
                Solver::new(Arc::clone(&a), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap();
            for starts in [even(n, 2), even(n, 5), vec![0, 0, 1, n - 1, n, n]] {
                let outcomes = solve(&a, &b, &starts, &setup, &stop);
                let (x, first) = (whole(&outcomes), outcomes[0].as_ref().unwrap());
                let found = verify::residual(&a, &b, &x).relative_2;
                let what = format!("{name}, {method}, {starts:?}: {} after {}", first.reason, first.iterations);
                assert!(first.iterations.abs_diff(alone.iterations) <= 1 + alone.iterations / 10, "{what}");
                assert!((first.residual.relative_2 - found).abs() <= 1e-9 * found.max(1e-9), "{what}");
                assert!((found - alone.residual.relative_2).abs() <= 2e-9, "{what}");
                match (first.reason, alone.reason) {
                    (
                        Reason::Singular(Singularity::Inconsistent { parts, least }),
                        Reason::Singular(Singularity::Inconsistent { parts: expected, least: of_alone }),
                    ) => assert!(parts == expected && (least / of_alone - 1.0).abs() < 1e-12, "{what}"),
                    (found, expected) => assert!(found.converged() && expected.converged(), "{what}, {expected}"),
                }
                if name.starts_with("neumann") {
                    assert!(x.iter().sum::<f64>().abs() < 1e-10, "{what}");
                }
                assert!(outcomes.iter().flatten().all(|other| other.reason == first.reason), "{what}");
            }
        }
    }
}

/// Parts of one iterate, of the same iterations on all, from which others go on.
#[test]
fn iterates_on_the_way() {
    let a = "jumps:12".parse::<Spec>().unwrap().build().unwrap();
    let (n, b) = (a.n_rows(), gallery::random_vector(a.n_rows(), 3));
    let stop = Stop { rtol: 1e-9, ..Stop::default() };
    let starts_of = |count: usize| even(n, count).into_iter().map(|start| start as u64).collect::<Vec<_>>();
    let setup = |devices: &str| Setup { method: Method::Cg, devices: devices.parse().unwrap(), ..Setup::default() };
    for (count, devices) in [(1, "host"), (2, "0,host"), (3, "host"), (5, "host")] {
        let starts = starts_of(count);
        let taken = processes(count, |all| {
            let process = all.process();
            let own = starts[process] as usize..starts[process + 1] as usize;
            let taken = std::sync::Mutex::new(Vec::new());
            let take = |at: &Checkpoint<'_>| {
                taken.lock().unwrap().push((at.iterations, at.rel_residual_2, at.x.to_vec()));
            };
            let control = Control::default().with_checkpoint(Checkpoints::new(Duration::ZERO, &take));
            let rows = divided(&a, &starts).swap_remove(process);
            let mut solver = SharedSolver::new(all, rows, &setup(devices)).unwrap();
            assert!(solver.solve(&b[own], None, &stop, control).unwrap().reason.converged());
            taken.into_inner().unwrap()
        });
        let which: Vec<Vec<u64>> = taken.iter().map(|taken| taken.iter().map(|one| one.0).collect()).collect();
        assert!(which.iter().all(|which| *which == which_of(&taken)) && !which[0].is_empty(), "{which:?}");
        for k in (0..which[0].len()).step_by(which[0].len().div_ceil(4)) {
            let (iterations, rel_residual_2, _) = taken[0][k];
            let x: Vec<f64> = taken.iter().flat_map(|taken| taken[k].2.iter().copied()).collect();
            let found = verify::residual(&a, &b, &x).relative_2;
            assert!((found - rel_residual_2).abs() <= 1e-3 * found + 1e-9, "{count}, {iterations}: {found:e}");
            // others go on from there
            let others = starts_of(4 - count.min(3));
            let outcomes = processes(others.len() - 1, |all| {
                let own = others[all.process()] as usize..others[all.process() + 1] as usize;
                let rows = divided(&a, &others).swap_remove(all.process());
                let mut solver = SharedSolver::new(all, rows, &setup("host")).unwrap();
                let control = Control::default().with_done(iterations);
                solver.solve(&b[own.clone()], Some(&x[own]), &stop, control)
            });
            let found = verify::residual(&a, &b, &whole(&outcomes)).relative_2;
            let done = outcomes[0].as_ref().unwrap().iterations;
            assert!(found <= 1e-9 && done >= iterations, "{count}: {found:e} after {done}");
        }
    }
}

fn which_of(taken: &[Vec<(u64, f64, Vec<f64>)>]) -> Vec<u64> {
    taken[0].iter().map(|one| one.0).collect()
}
