//! Matrices that are not symmetric, in values or in pattern. Each test recomputes b − A x by itself.

use proptest::prelude::*;

use crate::common::process::{Place, array};
use crate::common::{choices, general, relative_residual, setup, solve, system};
use declive::matrix::gallery;
use declive::solve::{Indefinite, Method, Precision, Precond};
use declive::{Csr, Reason, Setup, Solver};

/// The methods for any square matrix.
const METHODS: [Method; 4] = [Method::Bicgstab, Method::Bicgstab2, Method::Idr, Method::Gmres];

/// Convection and diffusion along a line, upwind: dominated by its diagonal, in a pattern that is symmetric.
fn convection(n: usize) -> Csr {
    let along = |i: usize| [(i, i.wrapping_sub(1), -1.75), (i, i, 3.0), (i, i + 1, -0.25)];
    general(n, (0..n).flat_map(along).filter(|(_, j, _)| *j < n))
}

/// A ring in which each needs its follower, and the first ones one far away: nobody needs those that need them.
fn one_way(n: usize) -> Csr {
    let of =
        |i: usize| [(i, i, 4.0 + (i % 3) as f64), (i, (i + 1) % n, -2.0), (i, (i + n / 2) % n, (i % 5) as f64 / 4.0)];
    general(n, (0..n).flat_map(of).filter(|(i, j, v)| i == j || *v != 0.0))
}

#[test]
fn every_rank_and_precision() {
    for (a, n) in
        [(convection(1), 1), (convection(2), 2), (one_way(3), 3), (convection(257), 257), (one_way(1000), 1000)]
    {
        let b = gallery::random_vector(n, 7);
        for (l, method) in METHODS.into_iter().enumerate() {
            for (k, devices) in choices().into_iter().enumerate() {
                let limits = [(Precision::F64, 1e-10), (Precision::F32, 1e-4), (Precision::Mixed, 1e-10)];
                for (p, (precision, rtol)) in limits.into_iter().enumerate() {
                    let precond = [Precond::None, Precond::Jacobi][(k + l + p + n) % 2]; // in turns
                    let setup = setup(method, precond, precision, &devices);
                    let o = solve(&a, &b, &setup, rtol);
                    let found = relative_residual(&a, &b, &o.x);
                    let what = format!("{n} rows, {method}, {precond}, {precision}, {devices}: {}", o.reason);
                    assert!(o.reason.converged() && found <= 1.01 * rtol, "{what}, {found:e}");
                }
            }
        }
    }
}

/// Rows times −1 change nothing: with the diagonal as preconditioner, the same numbers are iterated.
#[test]
fn signs_of_rows_do_not_matter() {
    let a = one_way(1000);
    let b = gallery::random_vector(1000, 3);
    let sign = |i: usize| if i % 3 == 1 { -1.0 } else { 1.0 };
    let rows = (0..1000).flat_map(|i| std::iter::repeat_n(i, a.row(i).0.len()));
    let values = a.values().iter().zip(rows).map(|(v, i)| v * sign(i)).collect();
    let turned = Csr::new(1000, 1000, a.row_ptr().to_vec(), a.col_idx().to_vec(), values).unwrap();
    let turned_b: Vec<f64> = b.iter().enumerate().map(|(i, v)| v * sign(i)).collect();
    for method in METHODS {
        for devices in choices() {
            let setup = setup(method, Precond::Jacobi, Precision::F64, &devices);
            let [plain, other] = [(&a, &b), (&turned, &turned_b)].map(|(a, b)| solve(a, b, &setup, 1e-10));
            assert!(plain.reason.converged() && relative_residual(&turned, &turned_b, &other.x) <= 1.01e-10);
            assert_eq!((plain.x, plain.history), (other.x, other.history), "{method}, {devices}");
        }
    }
}

#[test]
fn auto_takes_the_same_method_in_every_precision() {
    let place = Place::new();
    for precision in Precision::ALL {
        let args = format!("solve --generate convection3d:5 --precision {precision} --rtol 1e-5 --devices host --json");
        assert_eq!(place.run(&args).ends(0).json()["options"]["method"], "idr", "{precision}");
    }
}

#[test]
fn as_many_iterations_on_several_ranks() {
    let a = one_way(1000);
    let b = gallery::random_vector(1000, 3);
    for method in METHODS {
        let of = |devices: &str| {
            let devices = crate::common::choice(devices);
            solve(&a, &b, &setup(method, Precond::Jacobi, Precision::F64, &devices), 1e-10).iterations
        };
        let alone = of("D");
        for devices in ["host", "D,D", "D,D,D", "D,host,D", "D,D,D,D,D"] {
            let several = of(devices);
            assert!(several.abs_diff(alone) <= 1 + alone / 10, "{method}, {devices}: {several} and {alone}");
        }
    }
}

#[test]
fn auto_takes_what_is_for_it() {
    let a = convection(50);
    let solver = Solver::new(a.clone(), &Setup::default().with_devices("host".parse().unwrap())).unwrap();
    let reason = Indefinite::Asymmetry { row: 1, col: 2, upper: -0.25, lower: -1.75 };
    assert_eq!((solver.method(), solver.method_reason()), (Method::Idr, Some(reason)));
    let assumed = Setup::default().with_devices("host".parse().unwrap()).with_assume_symmetric(true);
    assert_eq!(Solver::new(a, &assumed).unwrap().method(), Method::Cg);
}

/// Of A v and v at right angles nothing follows: that is said, and nothing is called solved that is not.
#[test]
fn breakdowns_are_told() {
    let turn = general(2, [(0, 1, 1.0), (1, 0, -1.0)]);
    for devices in choices() {
        let o = solve(&turn, &[1.0, 0.0], &setup(Method::Bicgstab, Precond::None, Precision::F64, &devices), 1e-8);
        assert_eq!(o.reason, Reason::Breakdown, "{devices}");
        assert!(o.x.iter().all(|v| v.is_finite()));
    }
    // what breaks down in its first iteration from 0 need not from elsewhere
    let a = general(3, [(0, 1, 1.0), (1, 0, 1.0), (2, 2, 1.0), (0, 2, 0.5)]);
    for devices in choices() {
        let o = solve(&a, &[1.0, 2.0, 3.0], &setup(Method::Bicgstab, Precond::None, Precision::F64, &devices), 1e-10);
        let found = relative_residual(&a, &[1.0, 2.0, 3.0], &o.x);
        assert_eq!(o.reason.converged(), found <= 1e-10, "{devices}: {}, {found:e}", o.reason);
    }
}

/// Convection across a square by central differences, with this cell Péclet number: beyond 1, eigenvalues lie along a line that is
/// parallel to the imaginary axis.
fn swept(n: usize, peclet: f64) -> Csr {
    let of = |k: usize| {
        let (i, j) = (k / n, k % n);
        let (up, down) = (-1.0 - peclet, peclet - 1.0);
        let neighbours = [(i > 0, k.wrapping_sub(n), up), (j > 0, k.wrapping_sub(1), up)];
        let others = [(true, k, 4.0), (j + 1 < n, k + 1, down), (i + 1 < n, k + n, down)];
        neighbours.into_iter().chain(others).filter(|(is_there, ..)| *is_there).map(move |(_, to, v)| (k, to, v))
    };
    general(n * n, (0..n * n).flat_map(of))
}

#[test]
fn eigenvalues_far_from_the_real_axis() {
    let a = swept(24, 20.0);
    let b = gallery::random_vector(576, 4);
    for devices in choices() {
        let of = |method| solve(&a, &b, &setup(method, Precond::Jacobi, Precision::F64, &devices), 1e-9);
        let [one, two] = [Method::Bicgstab, Method::Bicgstab2].map(of);
        let found = relative_residual(&a, &b, &two.x);
        assert!(two.reason.converged() && found <= 1.01e-9, "{devices}: {}, {found:e}", two.reason);
        let products = [2 * one.iterations, 4 * two.iterations];
        assert!(!one.reason.converged() || products[0] > 2 * products[1], "{devices}: {}, {products:?}", one.reason);
    }
}

/// r and A r are at right angles, whatever r is; r̂ and A r are not.
#[test]
fn skew_symmetric_ones() {
    for n in [2, 4, 60] {
        let along = |i: usize| [(i, i + 1, 1.0 + (i % 3) as f64), (i + 1, i, -1.0 - (i % 3) as f64)];
        let a = general(n, (0..n - 1).flat_map(along));
        let b = gallery::random_vector(n, 6);
        for devices in choices() {
            let of = |method| solve(&a, &b, &setup(method, Precond::None, Precision::F64, &devices), 1e-9);
            assert_eq!(of(Method::Bicgstab).reason, Reason::Breakdown, "{n} rows, {devices}");
            let o = of(Method::Bicgstab2);
            let found = relative_residual(&a, &b, &o.x);
            assert!(o.reason.converged() && found <= 1.01e-9, "{n} rows, {devices}: {}, {found:e}", o.reason);
        }
    }
}

/// Two dimensions an iteration.
#[test]
fn bicgstab2_ends_after_half_as_many_iterations_as_rows() {
    for n in 1..=8 {
        let (a, b) = (one_way(n), gallery::random_vector(n, 8));
        for devices in choices() {
            let o = solve(&a, &b, &setup(Method::Bicgstab2, Precond::None, Precision::F64, &devices), 1e-10);
            let found = relative_residual(&a, &b, &o.x);
            assert!(o.reason.converged() && found <= 1.01e-10, "{n} rows, {devices}: {}, {found:e}", o.reason);
            assert!(o.iterations <= n.div_ceil(2) as u64, "{n} rows, {devices}: {} iterations", o.iterations);
        }
    }
}

#[test]
fn the_command_solves_and_tells_why() {
    let place = Place::new();
    let a = convection(300);
    let entries: Vec<String> = (0..300)
        .flat_map(|i| a.row(i).0.iter().zip(a.row(i).1).map(move |(j, v)| format!("{} {} {v}", i + 1, j + 1)))
        .collect();
    let head = format!("%%MatrixMarket matrix coordinate real general\n300 300 {}\n", entries.len());
    place.write("A.mtx", head + &entries.join("\n") + "\n");
    let b = gallery::random_vector(300, 9);
    place.write("b.mtx", array(std::slice::from_ref(&b)));
    for devices in ["host", "0", "0,0"] {
        let args = format!("solve A.mtx -b b.mtx --devices {devices} --tune off -o x.mtx");
        let report = place.run(&format!("{args} --json")).ends(0).json();
        assert_eq!((&report["options"]["method"], &report["matrix"]["symmetric"]), (&"idr".into(), &false.into()));
        assert!(relative_residual(&a, &b, &place.vectors("x.mtx")[0]) <= 1.01e-8);
        let text = place.run(&args).ok().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("method idr (auto: a(1,2) = -2.5e-1 but a(2,1) = -1.75e0)"), "{text}");
    }
}

/// Rows in another order have another halo.
#[test]
fn scrambled_rows() {
    let n = 400;
    let order = gallery::random_permutation(n, 3);
    let a = one_way(n);
    let scrambled = declive::matrix::reorder::permuted(&a, &order).unwrap();
    let b = gallery::random_vector(n, 5);
    for devices in choices() {
        for reorder in [declive::solve::Reorder::None, declive::solve::Reorder::Rcm] {
            let setup = setup(Method::Bicgstab, Precond::Jacobi, Precision::F64, &devices).with_reorder(reorder);
            let o = solve(&scrambled, &b, &setup, 1e-10);
            let found = relative_residual(&scrambled, &b, &o.x);
            assert!(o.reason.converged() && found <= 1.01e-10, "{devices}, {reorder}: {}", o.reason);
        }
    }
}

/// The identity and one entry beside it: two steps leave nothing but rounding, which may be orthogonal to its product.
#[test]
fn what_two_steps_leave_is_no_direction() {
    for n in [2, 5, 37] {
        for (i, j) in [(0, n - 1), (n - 1, 0), (n * 4 / 5, n * 7 / 8)] {
            let entry = (i != j).then_some((i, j, -0.396));
            let a = general(n, (0..n).map(|i| (i, i, 1.0)).chain(entry));
            for seed in 1..6 {
                let b = gallery::random_vector(n, seed);
                for devices in choices() {
                    let o = solve(&a, &b, &setup(Method::Bicgstab2, Precond::None, Precision::F64, &devices), 1e-9);
                    let found = relative_residual(&a, &b, &o.x);
                    assert!(o.reason.converged() && found <= 1.01e-9, "{n} rows, a({i},{j}), {devices}: {}", o.reason);
                }
            }
        }
    }
}

/// A diagonal matrix that is scaled by its diagonal is 1, but for rounding: what the first step leaves is no direction.
#[test]
fn diagonal_matrices_take_an_iteration_or_two() {
    let values = [0.5, 0.7959463677, 0.5, 3.0, 0.1, 7.7, -0.3];
    for n in [1, 3, 7] {
        let a = general(n, (0..n).map(|i| (i, i, values[i])));
        let b = gallery::random_vector(n, 5);
        for method in METHODS {
            for devices in ["host", "D,D"] {
                let setup = setup(method, Precond::Jacobi, Precision::F64, &crate::common::choice(devices));
                let o = solve(&a, &b, &setup, 1e-9);
                let found = relative_residual(&a, &b, &o.x);
                let what = format!("{n} rows, {method}, {devices}: {}", o.reason);
                assert!(o.reason.converged() && o.iterations <= 2 && found <= 1.01e-9, "{what}, {found:e}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Matrices dominated by their diagonal, on any ranks.
    #[test]
    fn random_matrices(
        n in 1usize..40,
        entries in prop::collection::vec((0usize..40, 0usize..40, -1.0..1.0f64), 0..120),
        case in 0usize..7,
    ) {
        let mut of = std::collections::BTreeMap::new();
        for (i, j, v) in entries {
            of.insert((i % n, j % n), v);
        }
        for i in 0..n {
            let sum: f64 = (0..n).filter_map(|j| of.get(&(i, j))).map(|v: &f64| v.abs()).sum();
            of.insert((i, i), sum + 0.5);
        }
        let a = general(n, of.into_iter().map(|((i, j), v)| (i, j, v)));
        let b = gallery::random_vector(n, 5);
        for method in METHODS {
            let o = solve(&a, &b, &setup(method, Precond::Jacobi, Precision::F64, &choices()[case]), 1e-9);
            let found = relative_residual(&a, &b, &o.x);
            prop_assert!(o.reason.converged() && found <= 1.01e-9, "{}, {}: {found:e}", method, o.reason);
        }
    }
}

/// A system that the command generates, and its symmetric part: the same rows, another method.
#[test]
fn symmetric_systems_too() {
    let a = system("jumps:8");
    let b = gallery::random_vector(512, 2);
    for method in METHODS {
        let o = solve(&a, &b, &setup(method, Precond::Jacobi, Precision::F64, &choices()[2]), 1e-9);
        assert!(o.reason.converged() && relative_residual(&a, &b, &o.x) <= 1.01e-9, "{method}: {}", o.reason);
    }
}
