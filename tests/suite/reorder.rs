//! Solves whose ranks have the rows in another order: the answer, and all that is said, is in the order given. Each
//! test recomputes b − A x by itself.

use crate::common::process::{Place, array};
use crate::common::{choices, relative_residual, setup, system};
use declive::device::Choice;
use declive::matrix::gallery;
use declive::matrix::reorder::permuted;
use declive::solve::{Cause, Criterion, Indefinite, Method, Precision, Precond, Reorder};
use declive::{Control, Csr, Error, Reason, Setup, Solver, Stop};

fn rcm(precond: Precond, precision: Precision, devices: &Choice) -> Setup {
    setup(Method::Cg, precond, precision, devices).with_reorder(Reorder::Rcm)
}

fn host() -> Setup {
    rcm(Precond::None, Precision::F64, &"host".parse().unwrap())
}

fn by_rtol(rtol: f64) -> Stop {
    Stop::default().with_rtol(rtol)
}

/// Two grids and twenty rows that are tied to nothing, all mixed up.
fn disconnected() -> Csr {
    let (mut rows, mut cols, mut values) = system("jumps:7,contrast=100").to_triplets();
    let (more_rows, more_cols, more_values) = system("poisson2d:12x9").to_triplets();
    rows.extend(more_rows.iter().map(|i| 343 + i));
    cols.extend(more_cols.iter().map(|j| 343 + j));
    values.extend(more_values);
    for k in 451..471 {
        rows.push(k);
        cols.push(k);
        values.push(f64::from(k));
    }
    let a = Csr::from_triplets(471, 471, &rows, &cols, &values).unwrap();
    permuted(&a, &gallery::random_permutation(471, 6)).unwrap()
}

#[test]
fn the_answer_is_that_of_the_system_as_given() {
    let systems = [system("jumps:9,contrast=100,scramble=3"), disconnected(), system("random-spd:700,scramble=1")];
    for a in systems {
        let right = [gallery::random_vector(a.n_rows(), 11), gallery::random_vector(a.n_rows(), 12)];
        let guess = gallery::random_vector(a.n_rows(), 13);
        for devices in choices() {
            for (precond, precision) in [
                (Precond::None, Precision::F64),
                (Precond::Jacobi, Precision::F64),
                (Precond::None, Precision::Mixed),
                (Precond::Jacobi, Precision::Mixed),
            ] {
                let mut solver = Solver::new(a.clone(), &rcm(precond, precision, &devices)).unwrap();
                assert_eq!(solver.reordering().cause, Cause::RcmAsked);
                assert_eq!(solver.ranks().iter().map(|r| r.rows).sum::<usize>(), a.n_rows());
                for (b, x0) in [(&right[0], None), (&right[1], None), (&right[0], Some(guess.as_slice()))] {
                    let o = solver.solve(b, x0, &by_rtol(1e-9), Control::default()).unwrap();
                    let found = relative_residual(&a, b, &o.x);
                    let what = format!("{devices}, {precond}, {precision}: {} in {}", o.reason, o.iterations);
                    assert_eq!(o.reason, Reason::Converged(Criterion::Rtol), "{what}");
                    assert!(found <= 1.01e-9 && (o.residual.relative_2 - found).abs() <= 1e-2 * found, "{what}");
                }
            }
        }
    }
}

#[test]
fn the_baseline_and_single_precision() {
    let a = system("jumps:9,contrast=100,scramble=3");
    let b = gallery::random_vector(a.n_rows(), 11);
    for devices in choices() {
        for (precision, rtol) in [(Precision::F64, 1e-9), (Precision::F32, 1e-4)] {
            let setup = rcm(Precond::Jacobi, precision, &devices).with_method(Method::CgClassic);
            let mut solver = Solver::new(a.clone(), &setup).unwrap();
            let o = solver.solve(&b, None, &by_rtol(rtol), Control::default()).unwrap();
            assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01 * rtol, "{setup:?}: {}", o.reason);
        }
    }
}

#[test]
fn a_solution_as_first_guess_comes_back_as_it_is() {
    let a = system("poisson2d:13x9,scramble=2");
    let x = gallery::random_vector(117, 4);
    let b = a.mul_vec(&x);
    for devices in choices() {
        let mut solver = Solver::new(a.clone(), &rcm(Precond::None, Precision::F64, &devices)).unwrap();
        let o = solver.solve(&b, Some(&x), &Stop::default(), Control::default()).unwrap();
        assert_eq!((o.reason.converged(), o.iterations, &o.x), (true, 0, &x), "{devices}");
    }
}

#[test]
fn no_rows_and_a_single_one() {
    for devices in choices() {
        let setup = rcm(Precond::Jacobi, Precision::F64, &devices);
        let empty = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        let o = Solver::new(empty, &setup).unwrap().solve(&[], None, &Stop::default(), Control::default()).unwrap();
        assert!(o.reason.converged() && o.x.is_empty());
        let one = Csr::new(1, 1, vec![0, 1], vec![0], vec![4.0]).unwrap();
        let o = Solver::new(one, &setup).unwrap().solve(&[2.0], None, &Stop::default(), Control::default()).unwrap();
        assert!(o.reason.converged() && o.x == [0.5], "{:?}", o.x);
    }
}

/// What is wrong with a matrix is said by the rows as given.
#[test]
fn rows_in_messages() {
    let a = system("poisson2d:300,scramble=1");
    let (n, _, row_ptr, cols, values) = a.into_raw_parts();
    let row = 12_345;
    let diagonal = (row_ptr[row]..row_ptr[row + 1]).find(|&k| cols[k] as usize == row).unwrap();
    let off = (row_ptr[row]..row_ptr[row + 1]).find(|&k| cols[k] as usize > row).unwrap();
    let with = |at: usize, value: f64| {
        let mut values = values.clone();
        values[at] = value;
        Csr::new(n, n, row_ptr.clone(), cols.clone(), values).unwrap()
    };
    let (indefinite, unsymmetric) = (with(diagonal, -1.0), with(off, 2.0));
    for reorder in [Reorder::Rcm, Reorder::Auto, Reorder::None] {
        let setup = host().with_reorder(reorder);
        let mut solver = Solver::new(indefinite.clone(), &setup).unwrap();
        assert_eq!(solver.reordering().is_rcm(), reorder != Reorder::None);
        let o = solver.solve(&vec![1.0; n], None, &Stop::default(), Control::default()).unwrap();
        let expected = Indefinite::Diagonal { row: row + 1, value: -1.0 };
        assert_eq!(o.reason, Reason::IndefiniteOperator(expected), "{reorder}");
        match Solver::new(unsymmetric.clone(), &setup.with_method(Method::Cg)) {
            Err(Error::NotSymmetric { row: i, col, upper: 2.0, lower: -1.0, .. }) => {
                assert_eq!((i, col), (row + 1, cols[off] as usize + 1), "{reorder}");
            }
            other => panic!("{reorder}: {other:?}"),
        }
    }
}

/// The facts about the matrix are those of the order given, too.
#[test]
fn facts_are_those_of_the_order_given() {
    let a = system("poisson2d:300,scramble=1");
    let solver = |reorder| Solver::new(a.clone(), &host().with_reorder(reorder)).unwrap();
    let (given, found) = (solver(Reorder::None), solver(Reorder::Auto));
    assert_eq!(found.reordering().cause, Cause::Gain);
    assert_eq!(given.stats(), found.stats());
    assert!(found.times().reorder == found.reordering().time && found.times().prepare > found.times().reorder);
    assert_eq!(given.reordering().cause, Cause::KeepAsked);
}

#[test]
fn patterns_that_are_not_symmetric_are_reordered_all_the_same() {
    let (n, _, row_ptr, cols, mut values) = system("poisson2d:300,scramble=1").into_raw_parts();
    // upper triangle and diagonal, with stored zeros below: then without them
    let below = |i: usize, j: u32| (j as usize) < i;
    let (mut kept_cols, mut kept_values, mut kept_ptr) = (Vec::new(), Vec::new(), vec![0]);
    for i in 0..n {
        for k in row_ptr[i]..row_ptr[i + 1] {
            if below(i, cols[k]) {
                values[k] = 0.0;
            } else {
                kept_cols.push(cols[k]);
                kept_values.push(values[k]);
            }
        }
        kept_ptr.push(kept_cols.len());
    }
    let a = Csr::new(n, n, kept_ptr, kept_cols, kept_values).unwrap();
    for reorder in [Reorder::Rcm, Reorder::Auto] {
        let setup = host().with_assume_symmetric(true).with_reorder(reorder);
        let mut solver = Solver::new(a.clone(), &setup).unwrap();
        let b = gallery::random_vector(n, 5);
        let stop = Stop::default().with_max_iters(3);
        let o = solver.solve(&b, None, &stop, Control::default()).unwrap();
        // not a system for this method; but what is said of x is true
        let found = relative_residual(&a, &b, &o.x);
        assert!((o.residual.relative_2 - found).abs() <= 1e-9 * found, "{reorder}: {found:e}, {:?}", o.residual);
    }
}

#[test]
fn several_ranks_receive_less() {
    let a = system("poisson2d:200,scramble=1");
    for devices in ["host,host", "host,host,host,host,host"] {
        let halo = |reorder| {
            let setup = host().with_reorder(reorder).with_devices(devices.parse().unwrap());
            let solver = Solver::new(a.clone(), &setup).unwrap();
            solver.ranks().iter().map(|rank| rank.halo).max().unwrap()
        };
        assert!(halo(Reorder::Auto) <= 1000 && halo(Reorder::None) > 15_000, "{}", halo(Reorder::Auto));
        assert_eq!(halo(Reorder::Auto), halo(Reorder::Rcm));
    }
}

#[test]
fn the_command_writes_x_in_the_order_given() {
    let place = Place::new();
    place.run("generate jumps:8,scramble=5 -o A.mtx").ends(0);
    let a = place.matrix("A.mtx");
    let b: Vec<_> = (1..=2).map(|seed| gallery::random_vector(512, seed)).collect();
    place.write("b.mtx", array(&b));
    place.write("x0.mtx", array(&[gallery::random_vector(512, 9)]));
    for devices in ["host", "host,host,host"] {
        let args = format!("solve A.mtx -b b.mtx -x x0.mtx --precond jacobi --devices {devices} -o x.mtx --json");
        for (reorder, cause) in [("rcm", "rcm-asked"), ("none", "keep-asked"), ("auto", "small")] {
            let report = place.run(&format!("{args} --reorder {reorder}")).ends(0).json();
            assert_eq!(report["options"]["reorder"], reorder);
            assert_eq!(
                (&report["order"]["rcm"], &report["order"]["cause"]),
                (&(reorder == "rcm").into(), &cause.into())
            );
            for (x, b) in place.vectors("x.mtx").iter().zip(&b) {
                assert!(relative_residual(&a, b, x) <= 1.01e-8, "{devices}, {reorder}");
            }
        }
    }
}

#[test]
fn the_command_tells_what_it_did() {
    let place = Place::new();
    let args = "solve --generate poisson2d:200,scramble=1 --devices host --rtol 1e-3 --report out.html";
    let run = place.run(&format!("{args} --json -v")).ends(0);
    let report = run.json();
    let order = &report["order"];
    assert_eq!((&order["rcm"], &order["cause"]), (&true.into(), &"gain".into()));
    let (given, rcm) = (order["lines_given"].as_f64().unwrap(), order["lines_rcm"].as_f64().unwrap());
    assert!(given > 4.0 * rcm && rcm > 8.0, "{order}");
    let told = format!("rcm: {rcm:.0} lines of x a window in place of {given:.0}, ");
    assert!(order["text"].as_str().unwrap().starts_with(&told), "{order}");
    assert!(run.err.contains(&format!("order of the rows {told}")), "{}", run.err);
    let seconds = |name: &str| report["seconds"][name].as_f64().unwrap();
    assert!(0.0 < seconds("reorder") && seconds("reorder") < seconds("prepare"));
    let page = place.read("out.html");
    assert!(page.contains(&told) && page.contains("--reorder"));

    let text = place.run(args).ok();
    let line = text.lines().find(|line| line.starts_with("  order ")).unwrap();
    assert!(line.contains("rcm: ") && text.contains("\n    reorder "), "{text}");
    let text = place.run("solve --generate poisson2d:200 --devices host --rtol 1e-3").ok();
    assert!(text.contains("  order           as given: ") && text.contains("lines of x a window"), "{text}");
    place.run(&format!("{args} --reorder amd")).misused(&["amd", "auto, none, rcm"]);
}
