use std::sync::Arc;

use proptest::prelude::*;

use super::levels::Levels;
use super::on_device::{DeviceCycle, OfRanks};
use super::*;
use crate::backend::opencl::OpenClBackend;
use crate::device::{Context, DeviceVec, list};
use crate::kernels::{Shape, Tuning};
use crate::matrix::gallery::{self, Spec};
use crate::matrix::stats::Stats;
use crate::operator::Format;
use crate::operator::opencl::DeviceBlock;
use crate::partition::{Part, split};
use crate::precond::OnRank;
use crate::precond::scaling::Scaling;

/// The first level of a matrix.
pub(super) fn first(a: &Csr, near_null: &NearNull) -> (Sparse, Modes) {
    let diagonal = a.diagonal();
    (scaled(a, &scales(&diagonal)), first_modes(near_null, &diagonal))
}

/// A bound for the eigenvalues of a level.
pub(super) fn largest(a: &Sparse, modes: &Modes) -> f64 {
    let bounds = if modes.is_positive { bounds(a, &modes.values) } else { [f32::INFINITY; 2] };
    let Ok(largest) = largest_eigenvalue(bounds, &mut OnHost::new(a));
    largest
}

pub(super) fn constant() -> NearNull {
    NearNull::default()
}

/// Motions of a rigid body.
pub(super) fn rigid(elements: [usize; 3]) -> NearNull {
    let nodes = gallery::elasticity3d_coordinates(elements).unwrap();
    let axes = [0, 1, 2].map(|axis| nodes.iter().map(|node| node[axis]).collect::<Vec<_>>());
    NearNull::of_coordinates(3, &axes).unwrap()
}

fn multigrid(a: &Csr) -> Amg {
    Amg::of(a, &constant(), true)
}

fn aggregates(a: &Csr) -> Aggregates {
    let (a, modes) = first(a, &constant());
    let strength = Strength::of(&a, &modes.values);
    Aggregates::of(&a, &strength, &strength.graph(&a))
}

/// The Laplacian of a graph with these edges, and 0.1 on the diagonal besides.
pub(super) fn laplacian(n: usize, edges: &[(u32, u32)]) -> Csr {
    let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |i, j, v| {
        rows.push(i);
        cols.push(j);
        values.push(v);
    };
    (0..n as u32).for_each(|i| add(i, i, 0.1));
    for &(i, j) in edges {
        [(i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)].into_iter().for_each(|(i, j, v)| add(i, j, v));
    }
    Csr::from_triplets(n, n, &rows, &cols, &values).unwrap()
}

pub(super) fn dense(a: &Sparse) -> Vec<Vec<f64>> {
    let row = |i| {
        let mut row = vec![0.0; a.n_cols];
        a.rows().row(i).for_each(|(j, v)| row[j] += f64::from(v));
        row
    };
    (0..a.n_rows()).map(row).collect()
}

pub(super) fn system(spec: &str) -> Csr {
    spec.parse::<Spec>().unwrap().build().unwrap()
}

fn applied(m: &Amg, r: &[f64]) -> Vec<f64> {
    let mut z = vec![f64::NAN; r.len()];
    m.apply(r, &mut z).unwrap();
    z
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[test]
fn aggregates_of_small_graphs() {
    let star: Vec<(u32, u32)> = (1..9).map(|j| (0, j)).collect();
    let complete: Vec<(u32, u32)> = (0..7).flat_map(|i| (0..i).map(move |j| (i, j))).collect();
    for edges in [&star, &complete] {
        let n = edges.iter().map(|(i, j)| i.max(j) + 1).max().unwrap() as usize;
        assert_eq!(aggregates(&laplacian(n, edges)), Aggregates { of: vec![0; n], count: 1 }, "{edges:?}");
    }
    // two components, and a row without any
    let two = [(0, 1), (1, 2), (0, 2), (4, 5), (5, 6), (4, 6)];
    let expected = Aggregates { of: vec![0, 0, 0, aggregate::NONE, 1, 1, 1], count: 2 };
    assert_eq!(aggregates(&laplacian(7, &two)), expected);
    assert_eq!(aggregates(&laplacian(1, &[])), Aggregates { of: vec![aggregate::NONE], count: 0 });
}

/// Roots are at least three steps apart, so that each has its neighbours; all rows between are joined.
#[test]
fn aggregates_of_a_path() {
    let found = aggregates(&gallery::tridiagonal(200).unwrap());
    assert!((200 / 5..=200 / 3).contains(&found.count), "{}", found.count);
    let is_next = |w: &[u32]| w[1] == w[0] || w[1] == w[0] + 1;
    assert!(found.of.windows(2).all(is_next), "in the order of their roots, each in one piece");
}

#[test]
fn the_same_for_any_number_of_threads() {
    let a = system("jumps:20,seed=3");
    let with = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let of = |threads| with(threads).install(|| (aggregates(&a), applied(&multigrid(&a), &vec![1.0; a.n_rows()])));
    let one = of(1);
    for threads in [2, 3, 5] {
        assert_eq!(of(threads), one, "{threads} threads");
    }
}

/// Where A b = 0, P b_c = b.
#[test]
fn the_near_null_vector_is_interpolated() {
    let a = system("neumann2d:30x20");
    let (mut matrix, mut modes) = first(&a, &constant());
    for _ in 0..2 {
        let (p, restriction, next, coarse) = coarser(&matrix, &modes, Some(largest(&matrix, &modes))).unwrap();
        let (rows, b) = (p.rows(), &modes.values);
        assert!((0..b.len()).all(|i| (rows.times(i, &coarse.values) - b[i]).abs() < 1e-5 * b[i]));
        assert_eq!(dense(&restriction.transposed()), dense(&p));
        (matrix, modes) = (next, coarse);
    }
}

#[test]
fn products_beside_dense_ones() {
    for (spec, near_null) in [("variable:6,seed=2", constant()), ("elasticity3d:4x3x2", rigid([4, 3, 2]))] {
        let (matrix, modes) = first(&system(spec), &near_null);
        let (p, _, next, _) = coarser(&matrix, &modes, Some(largest(&matrix, &modes))).unwrap();
        let (matrix, p, next) = (dense(&matrix), dense(&p), dense(&next));
        for i in 0..next.len() {
            for j in 0..next.len() {
                let ap = |k: usize| (0..matrix.len()).map(|l| matrix[k][l] * p[l][j]).sum::<f64>();
                let expected: f64 = (0..matrix.len()).map(|k| p[k][i] * ap(k)).sum();
                assert!((next[i][j] - expected).abs() < 2e-6, "{spec} ({i}, {j}): {}, {expected}", next[i][j]);
            }
            assert_eq!(next[i][i], 1.0);
        }
    }
}

#[test]
fn few_rows_are_solved_exactly() {
    for spec in ["poisson2d:15", "variable:6", "tridiagonal:1", "tetrahedra:3"] {
        let a = system(spec);
        let x = gallery::random_vector(a.n_rows(), 1);
        let found = applied(&multigrid(&a), &a.mul_vec(&x));
        let error: Vec<f64> = x.iter().zip(&found).map(|(x, y)| x - y).collect();
        assert!(dot(&error, &error) < 1e-6 * dot(&x, &x), "{spec}");
    }
}

/// Rows that are coupled to nothing: z = D⁻¹ r.
#[test]
fn a_diagonal() {
    let n = 1000u32;
    let d: Vec<f64> = (0..n).map(|i| 10f64.powi(i as i32 % 9 - 4)).collect();
    let all: Vec<u32> = (0..n).collect();
    let a = Csr::from_triplets(1000, 1000, &all, &all, &d).unwrap();
    let m = multigrid(&a);
    assert_eq!(m.hierarchy().levels.len(), 1);
    let z = applied(&m, &d);
    assert!(z.iter().all(|z| *z > 0.5 && *z < 1.5));
}

#[test]
fn empty_systems_and_tiny_residuals() {
    let none = Csr::from_triplets(0, 0, &[], &[], &[]).unwrap();
    assert!(applied(&multigrid(&none), &[]).is_empty());
    let a = system("poisson2d:30");
    let m = multigrid(&a);
    let r = gallery::random_vector(900, 4);
    let z = applied(&m, &r);
    // powers of two change nothing but the exponents
    for unit in [2f64.powi(-300), 2f64.powi(200)] {
        let of_scaled = applied(&m, &r.iter().map(|r| unit * r).collect::<Vec<_>>());
        assert!(of_scaled.iter().zip(&z).all(|(y, z)| *y == unit * z));
    }
    assert_eq!(applied(&m, &vec![0.0; 900]), vec![0.0; 900]);
}

#[test]
fn a_singular_matrix_of_two_parts() {
    let a = system("neumann2d:40x32");
    let (n, mut t) = (a.n_rows() as u32, a.to_triplets());
    for k in 0..a.nnz() {
        t.0.push(t.0[k] + n);
        t.1.push(t.1[k] + n);
        t.2.push(3.0 * t.2[k]);
    }
    let both = Csr::from_triplets(2 * n as usize, 2 * n as usize, &t.0, &t.1, &t.2).unwrap();
    let z = applied(&multigrid(&both), &both.mul_vec(&gallery::random_vector(2 * n as usize, 5)));
    assert!(z.iter().all(|z| z.is_finite() && z.abs() < 1e3));
}

#[test]
fn polynomials() {
    // 1 − λ Σ weights: what a vector of eigenvalue λ is multiplied by
    let [one, two] = smoother::steps(2.0);
    for lambda in [0.5f32, 1.0, 1.5, 2.0] {
        let d1 = one.add;
        let d2 = two.keep * d1 + two.add * (1.0 - lambda * d1);
        let left = 1.0 - lambda * (one.weight * d1 + two.weight * d2);
        assert!(left.abs() < 0.4, "{lambda}: {left}");
    }
    let (matrix, modes) = first(&system("tetrahedra:4"), &constant());
    let bound = largest(&matrix, &modes);
    let (mut x, mut found) = (vec![1f32; matrix.n_rows()], 0.0);
    for k in 0..200 {
        x = (0..x.len()).map(|i| matrix.rows().times(i, &x) + if k == 0 { (i % 3) as f32 } else { 0.0 }).collect();
        found = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        x.iter_mut().for_each(|x| *x /= found as f32);
    }
    assert!(found < 1.02 * bound && bound < 1.3 * found, "{found}, {bound}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn symmetric_and_positive(
        k in 0usize..7,
        seed in 0u64..1000,
    ) {
        let spec = ["variable:11,sigma=2", "jumps:11", "graph-laplacian:900", "random-spd:700", "tetrahedra:7", "dense-rows:800", "elasticity3d-jumps:5"][k];
        let a = system(&if spec.starts_with("dense") { spec.into() } else { format!("{spec},seed={seed}") });
        let m = Amg::of(&a, &NearNull::of_matrix(&a), true);
        let [x, y] = [1, 2].map(|k| gallery::random_vector(a.n_rows(), 2 * seed + k));
        let (mx, my) = (applied(&m, &x), applied(&m, &y));
        let size = (dot(&x, &mx) * dot(&y, &my)).sqrt();
        prop_assert!(dot(&x, &mx) > 0.0 && dot(&y, &my) > 0.0, "{spec}");
        prop_assert!((dot(&x, &my) - dot(&y, &mx)).abs() < 1e-4 * size, "{spec}: {}, {}", dot(&x, &my), dot(&y, &mx));
    }
}

/// What a device makes of a residual is what the host makes of it, but for rounding.
#[test]
fn devices_do_the_same() {
    let device = list().devices.remove(0);
    let ctx = Arc::new(Context::open(&device).unwrap());
    // several levels, one that is singular, the coarsest alone, and rows that nothing couples, so that there is nothing coarser
    let specs = [
        "poisson3d:16",
        "variable:14",
        "neumann2d:40",
        "poisson2d:12",
        "elasticity3d-jumps:8",
        "elasticity3d:8",
        "convection3d:14,peclet=20",
        "diagonal",
        "nothing",
    ];
    for (spec, shape) in specs.into_iter().flat_map(|spec| [Shape::Cpu, Shape::Gpu].map(|shape| (spec, shape))) {
        let diagonal = |n: usize| Csr::new(n, n, (0..=n).collect(), (0..n as u32).collect(), vec![3.0; n]).unwrap();
        let a = match spec {
            "diagonal" => diagonal(500),
            "nothing" => diagonal(0),
            spec => system(spec),
        };
        let near_null = if spec.starts_with("elasticity") { rigid([8; 3]) } else { constant() };
        let is_symmetric = Stats::of(&a).asymmetry.is_none();
        let (levels, r) =
            (Levels::new(a.clone(), near_null, is_symmetric).unwrap(), gallery::random_vector(a.n_rows(), 5));
        let mut expected = vec![0.0; r.len()];
        levels.on_host().unwrap().apply(&r, &mut expected).unwrap();
        let tuning = Tuning::default_for(&device, shape);
        // of 4 A, with rows by their patterns or without; and of rows that are scaled by the diagonal
        let part = split(&a, std::slice::from_ref(&(0..a.n_rows()))).remove(0);
        let block = DeviceBlock::<f64>::upload(&ctx, &tuning, &part, 4.0, Format::Auto).unwrap();
        let scaling = Scaling::by(&a.diagonal(), 4.0, None);
        let values = scaling.values(&a, 0..a.n_rows()).unwrap().into();
        let part = Part { values, of: None, ..part };
        let scaled = DeviceBlock::<f64>::upload(&ctx, &tuning, &part, 4.0, Format::Auto).unwrap();
        let weights: Vec<f64> = scaling.roots().iter().map(|root| root * root).collect();
        let weights = DeviceVec::from_slice(&ctx, &weights, "the diagonal").unwrap();
        let scaled = [None, Some(scaled.rows())].map(|rows| (rows, Some(&weights)));
        let as_they_are = [None, Some(block.rows())].map(|rows| (rows, None));
        for (rows, scaled_by) in as_they_are.into_iter().chain(scaled) {
            let of = OfRanks { factor: 4.0, rows, scaled_by };
            let made = DeviceCycle::<f64>::new::<f64>(&ctx, &tuning, &levels, of, None).unwrap();
            let (mut cycle, hierarchy) = made.unwrap();
            assert_eq!(hierarchy.is_some(), shape == Shape::Gpu);
            let s: Vec<f64> = scaling.roots().iter().map(|root| scaled_by.map_or(1.0, |_| root.recip())).collect();
            let scaled_r: Vec<f64> = r.iter().zip(&s).map(|(r, s)| r * s).collect();
            let from = DeviceVec::from_slice(&ctx, &scaled_r, "r").unwrap();
            let mut to = DeviceVec::from_slice(&ctx, &vec![7.0; r.len()], "z").unwrap();
            for _ in 0..2 {
                OnRank::<OpenClBackend<f64, f64>>::apply(&mut cycle, &from, &mut to).unwrap();
                let mut z = vec![0.0; r.len()];
                to.read(&ctx, 0, &mut z).unwrap();
                let each = z.iter().zip(&s).zip(&expected);
                let far = each.fold(0.0, |far: f64, ((z, s), e)| far.max((4.0 * z * s - e).abs()));
                let largest = expected.iter().fold(0.0, |m: f64, e| m.max(e.abs()));
                assert!(far <= 1e-4 * largest, "{spec}: {far} of {largest}, scaled: {}", scaled_by.is_some());
            }
        }
    }
}

/// A near-null vector with zeros and both signs takes the way of several ones.
#[test]
fn any_vector_is_interpolated() {
    let a = system("poisson2d:24x20");
    let v: Vec<f64> = (0..a.n_rows()).map(|i| (i % 24) as f64 - 7.0).collect();
    let near_null = NearNull::of_vectors(1, &[v]).unwrap();
    let (matrix, modes) = first(&a, &near_null);
    assert!(!modes.is_positive && modes.width == 1);
    let aggregates = nodes::aggregates(&matrix, &modes);
    let bases = Bases::new(&aggregates, &modes);
    let t = bases.matrix();
    assert!((0..matrix.n_rows()).all(|i| (t.rows().times(i, &bases.next.values) - modes.values[i]).abs() < 1e-6));
}

/// T R = B, and the columns of T are orthonormal, but for those that depend on others.
#[test]
fn bases_of_rigid_motions() {
    let (matrix, modes) = first(&system("elasticity3d-jumps:5x4x3"), &rigid([5, 4, 3]));
    let aggregates = nodes::aggregates(&matrix, &modes);
    let bases = Bases::new(&aggregates, &modes);
    let (t, r) = (dense(&bases.matrix()), &bases.next);
    assert_eq!((r.unknowns, r.width, r.values.len()), (6, 6, 36 * aggregates.count));
    for (i, row) in t.iter().enumerate() {
        for k in 0..6 {
            let found: f64 = row.iter().zip(r.values.chunks(6)).map(|(t, r)| t * f64::from(r[k])).sum();
            assert!((found - f64::from(modes.values[6 * i + k])).abs() < 1e-6);
        }
    }
    for c in 0..t[0].len() {
        for d in 0..=c {
            let product: f64 = t.iter().map(|row| row[c] * row[d]).sum();
            let is_there = t.iter().any(|row| row[c] != 0.0);
            assert!((product - f64::from(u8::from(c == d && is_there))).abs() < 1e-6, "({c}, {d}): {product}");
        }
    }
    // all six, where nodes don't lie on a line
    assert!((0..aggregates.count).any(|k| (6 * k..6 * k + 6).all(|c| t.iter().any(|row| row[c] != 0.0))));
}

/// Three vectors on a single node of two unknowns: the third is none of its own.
#[test]
fn dependent_vectors_have_no_column() {
    let n = 320;
    let v: Vec<Vec<f64>> =
        (0..3).map(|k| (0..n).map(|i| [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]][k][i % 2]).collect()).collect();
    let near_null = NearNull::of_vectors(2, &v).unwrap();
    // chains of both unknowns, which are coupled to each other
    let (mut rows, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n as u32 / 2 {
        for j in i.saturating_sub(1)..(i + 2).min(n as u32 / 2) {
            for (p, q) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                rows.push(2 * i + p);
                columns.push(2 * j + q);
                values.push(match (i == j, p == q) {
                    (true, true) => 2.2,
                    (false, true) => -1.0,
                    _ => 0.05,
                });
            }
        }
    }
    let a = Csr::from_triplets(n, n, &rows, &columns, &values).unwrap();
    let (matrix, modes) = first(&a, &near_null);
    let (p, _, next, coarse) = coarser(&matrix, &modes, Some(largest(&matrix, &modes))).unwrap();
    let (p, next) = (dense(&p), dense(&next));
    for c in (2..next.len()).step_by(3) {
        assert!(p.iter().all(|row| row[c] == 0.0) && coarse.values[3 * c..][..3] == [0.0; 3]);
        assert!((0..next.len()).all(|d| next[c][d] == f64::from(u8::from(c == d))));
    }
    let m = Amg::of(&a, &near_null, true);
    let r = gallery::random_vector(n, 3);
    let z = applied(&m, &r);
    assert!(z.iter().all(|z| z.is_finite()) && dot(&r, &z) > 0.0);
}

#[test]
fn products_by_blocks() {
    let (matrix, modes) = first(&system("elasticity3d-jumps:4"), &rigid([4; 3]));
    let aggregates = nodes::aggregates(&matrix, &modes);
    let t = Bases::new(&aggregates, &modes).matrix();
    let r = t.transposed();
    let at = product::product_of_blocks(&matrix, &t, [3, 3, 6]);
    assert!(at.compressed() == product::product(&matrix, &t, true).compressed());
    let rat = product::product_of_blocks(&r, &at, [6, 3, 6]);
    assert!(rat.compressed() == product::product(&r, &at, true).compressed());
    let squared = product::product_of_blocks(&matrix, &matrix, [1, 1, 1]);
    assert!(squared.compressed() == product::product(&matrix, &matrix, true).compressed());
}

/// What is missing of blocks counts as zeros.
#[test]
fn zeros_that_are_not_stored() {
    let a = system("elasticity3d:4");
    let (rows, columns, values) = a.to_triplets();
    let kept: Vec<usize> = (0..values.len()).filter(|&k| values[k] != 0.0).collect();
    assert!(kept.len() < values.len());
    let of = |all: &[u32]| kept.iter().map(|&k| all[k]).collect::<Vec<_>>();
    let sparse = Csr::from_triplets(
        a.n_rows(),
        a.n_rows(),
        &of(&rows),
        &of(&columns),
        &kept.iter().map(|&k| values[k]).collect::<Vec<_>>(),
    )
    .unwrap();
    let r = gallery::random_vector(a.n_rows(), 2);
    let of = |a: &Csr| {
        let mut z = vec![0.0; r.len()];
        Levels::new(a.clone(), rigid([4; 3]), true).unwrap().apply(&r, &mut z).unwrap();
        z
    };
    assert_eq!(of(&sparse), of(&a));
}
