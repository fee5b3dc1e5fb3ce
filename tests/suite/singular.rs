//! Singular systems whose null space is known from sums of rows or columns. Each test recomputes b − A x by itself.

use crate::common::process::{Place, array};
use crate::common::{PRECONDS, choice, choices, relative_residual, setup, solve, solve_with, system};
use declive::matrix::gallery;
use declive::solve::{Method, Precision, Precond, Singularity};
use declive::{Control, Csr, Outcome, Reason, Setup, Solver, Stop};

/// Laplacians of two paths of 30 and 41 points, with weights from 1 to 5: two null vectors.
fn two_parts() -> Csr {
    let mut t = (Vec::new(), Vec::new(), Vec::new());
    for i in (0..70u32).filter(|i| *i != 29) {
        let w = f64::from(i * i % 5 + 1);
        for (row, col, v) in [(i, i, w), (i + 1, i + 1, w), (i, i + 1, -w), (i + 1, i, -w)] {
            t.0.push(row);
            t.1.push(col);
            t.2.push(v);
        }
    }
    Csr::from_triplets(71, 71, &t.0, &t.1, &t.2).unwrap()
}

fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}

fn norm(v: &[f64]) -> f64 {
    v.iter().map(|v| v * v).sum::<f64>().sqrt()
}

/// v less the means of its parts, which begin at `starts`.
fn without_means(v: &[f64], starts: &[usize]) -> Vec<f64> {
    let ends = starts[1..].iter().copied().chain([v.len()]);
    let parts = starts.iter().zip(ends).map(|(&start, end)| &v[start..end]);
    parts.flat_map(|part| part.iter().map(|v| v - mean(part))).collect()
}

/// Whether the solve said so: the parts, and the least residual.
fn told(outcome: &Outcome) -> (usize, f64) {
    match outcome.reason {
        Reason::Singular(Singularity::Inconsistent { parts, least }) => (parts, least),
        reason => panic!("{reason}"),
    }
}

/// A b that no x reaches: x is the one with the least residual and of least norm, soon, and the reason has that residual.
#[test]
fn the_least_residual() {
    for (a, starts) in [(two_parts(), &[0, 30][..]), (system("neumann2d:13x7"), &[0])] {
        let n = a.n_rows();
        let b: Vec<f64> = (0..n).map(|i| f64::from((i * 7 % 11) as u32)).collect();
        let rest = without_means(&b, starts);
        let least = norm(&b.iter().zip(&rest).map(|(b, rest)| b - rest).collect::<Vec<_>>()) / norm(&b);
        for method in [Method::Cg, Method::CgPipelined, Method::CgClassic, Method::Minres, Method::Auto] {
            for (k, devices) in choices().iter().enumerate() {
                let (precision, rtol) = [(Precision::F64, 1e-9), (Precision::F32, 1e-4)][k % 2];
                let precond = PRECONDS[k % PRECONDS.len()];
                let o = solve(&a, &b, &setup(method, precond, precision, devices), rtol);
                let case = format!("{method} {precond} {precision} {devices}");
                let (parts, found) = told(&o);
                assert_eq!(parts, starts.len(), "{case}");
                assert!((found / least - 1.0).abs() < 1e-12, "{case}: {found:e} in place of {least:e}");
                assert!((relative_residual(&a, &b, &o.x) / least - 1.0).abs() < 1e-7, "{case}");
                assert!((o.residual.relative_2 / least - 1.0).abs() < 1e-7, "{case}");
                let of_rest = relative_residual(&a, &rest, &o.x) * norm(&rest) / norm(&b);
                assert!(of_rest <= rtol, "{case}: {of_rest:e}");
                assert!(o.iterations <= 2 * n as u64 && o.switches.is_empty(), "{case}: {}", o.iterations);
                assert!(norm(&without_means(&o.x, starts)) / norm(&o.x) > 1.0 - 1e-12, "{case}");
            }
        }
    }
}

/// b = A·random has solutions; x has what the first guess has along the null space.
#[test]
fn a_solution_near_the_guess() {
    let a = two_parts();
    let random = gallery::random_vector(71, 4);
    let b = a.mul_vec(&random);
    for method in [Method::Cg, Method::Minres, Method::Direct] {
        let devices = if method == Method::Direct { choice("host") } else { choice("D,host,D") };
        let mut solver = Solver::new(a.clone(), &setup(method, Precond::Jacobi, Precision::F64, &devices)).unwrap();
        let mut solve = |guess: &[f64]| {
            let o = solver.solve(&b, Some(guess), &Stop::default().with_rtol(1e-12), Control::default()).unwrap();
            assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1e-11, "{method}: {}", o.reason);
            o.x
        };
        let x = solve(&[0.0; 71]);
        assert!(mean(&x[..30]).abs() < 1e-13 && mean(&x[30..]).abs() < 1e-13, "{method}");
        let guess: Vec<f64> = (0..71).map(|i| if i < 30 { 3.0 } else { -8.0 } + f64::from(i % 2)).collect();
        let x = solve(&guess);
        assert!((mean(&x[..30]) - 3.5).abs() < 1e-12 && (mean(&x[30..]) - mean(&guess[30..])).abs() < 1e-12);
    }
}

/// b nearly in the range, so that x can meet the test, or fails it by little; and a backward error, which a large x meets.
#[test]
fn between_consistent_and_not() {
    let a = system("neumann2d:13x7");
    let exact = a.mul_vec(&gallery::random_vector(91, 5));
    let added = norm(&exact) / 91f64.sqrt() * 1e-6; // the least residual is 10⁻⁶ ‖b‖
    let b: Vec<f64> = exact.iter().map(|v| v + added).collect();
    let setup = setup(Method::Cg, Precond::Jacobi, Precision::F64, &choice("D,D"));
    for (rtol, is_met) in [(2e-6, true), (1.0001e-6, true), (0.9999e-6, false), (1e-9, false)] {
        let o = solve(&a, &b, &setup, rtol);
        let found = relative_residual(&a, &b, &o.x);
        assert_eq!(o.reason.converged(), is_met, "{rtol:e}: {}", o.reason);
        assert!(found <= if is_met { rtol } else { 1.5e-6 }, "{rtol:e}: {found:e}");
    }
    let stop = Stop::default().with_rtol(0.0).with_backward_error(1e-3);
    let o = Solver::new(a.clone(), &setup).unwrap().solve(&b, None, &stop, Control::default()).unwrap();
    assert!(o.reason.converged(), "{}", o.reason);
}

/// Columns of a matrix that is not symmetric sum to 0.
#[test]
fn of_a_markov_chain() {
    let a = system("markov:20");
    let n = a.n_rows();
    for method in [Method::Idr, Method::Bicgstab, Method::Bicgstab2, Method::Auto, Method::Direct] {
        let mut solver =
            Solver::new(a.clone(), &setup(method, Precond::Jacobi, Precision::F64, &choice("host"))).unwrap();
        let b = gallery::random_vector(n, 3);
        let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        let (parts, least) = told(&o);
        assert!(parts == 1 && (least / (mean(&b).abs() * (n as f64).sqrt() / norm(&b)) - 1.0).abs() < 1e-9, "{method}");
        assert!((relative_residual(&a, &b, &o.x) / least - 1.0).abs() < 1e-6, "{method}");
        let b = a.mul_vec(&b);
        let o = solver.solve(&b, None, &Stop::default(), Control::default()).unwrap();
        assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1e-8, "{method}: {}", o.reason);
    }
}

#[test]
fn the_command_says_why() {
    let place = Place::new();
    place.write("b.mtx", array(&[vec![1.0; 81]]));
    let run = place.run("solve --generate neumann2d:9 --devices host -b b.mtx -o x.mtx").ends(1);
    let text = "the matrix is singular as its columns sum to 0, and no x has a relative residual below 1.000e0";
    let words: Vec<&str> = run.out.split_whitespace().collect();
    assert!(words.join(" ").contains(text), "{words:?}");
    assert_eq!(place.vectors("x.mtx"), [vec![0.0; 81]]);
}

/// A matrix whose first two rows have entries in one column alone, and the rest of it no order that helps: factors tell that it is singular,
/// and `lsmr` finds a solution if there is one, or tells the least residual of what has none.
#[test]
fn a_solution_of_what_is_singular_by_its_pattern() {
    let n = 60;
    let far = (2..n).flat_map(|i| [(i, (i + 31) % n, 10f64.powi((i % 3) as i32)), (i, (i * 7 + 5) % n, 1.0)]);
    let all: Vec<(usize, usize, f64)> = [(0, 3, 2.0), (1, 3, 1.0)].into_iter().chain(far).collect();
    let column = |f: fn(&(usize, usize, f64)) -> usize| all.iter().map(|e| f(e) as u32).collect::<Vec<_>>();
    let values: Vec<f64> = all.iter().map(|e| e.2).collect();
    let a = Csr::from_triplets(n, n, &column(|e| e.0), &column(|e| e.1), &values).unwrap();
    let consistent = a.mul_vec(&gallery::random_vector(n, 1));
    let mut inconsistent = consistent.clone();
    inconsistent[1] += 1.0;
    let setup = Setup::default().with_devices("host".parse().unwrap());
    let o = solve(&a, &consistent, &setup, 1e-8);
    let found = relative_residual(&a, &consistent, &o.x);
    assert!(o.reason.converged() && found <= 1.01e-8, "{}, {found:e}", o.reason);
    let to: Vec<Method> = o.switches.iter().map(|switch| switch.to).collect();
    assert_eq!(to, [Method::Direct, Method::Lsmr], "no other general method is tried");
    let mut solver = Solver::new(a.clone(), &setup).unwrap();
    let first = solve_with(&mut solver, &inconsistent, 1e-8);
    assert!(matches!(first.reason, Reason::Singular(_)), "{}", first.reason);
    // the method stays, and what is said, too
    let o = solve_with(&mut solver, &inconsistent, 1e-8);
    assert!(o.switches.is_empty() && solver.method() == Method::Lsmr);
    let Reason::Singular(Singularity::Structural(shortage)) = o.reason else { panic!("{}", o.reason) };
    assert_eq!(&shortage.named[..2], [1, 2]);
    let least = solve(&a, &inconsistent, &setup.with_method(Method::Lsmr), 1e-8);
    assert_eq!(least.reason, Reason::LeastSquares);
    assert!((o.residual.norm_2 / least.residual.norm_2 - 1.0).abs() < 1e-6, "{}", o.residual.norm_2);
}
