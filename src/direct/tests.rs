use proptest::prelude::*;

use super::multifrontal::Multifrontal;
use super::pairs::Groups;
use super::pivoting::Pivoting;
use super::square::Square;
use super::trapezoid::Trapezoid;
use super::{Analysis, Factor, Kind, Singular, refine};
use crate::Error;
use crate::matrix::{Csr, Transversal, gallery};
use crate::memory::available_bytes;
use crate::verify::residual;

/// A matrix of small size by its rows; 0 where there is no entry.
fn rows(rows: &[&[f64]]) -> Csr {
    let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
    for (i, row) in rows.iter().enumerate() {
        for (j, &value) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            r.push(i as u32);
            c.push(j as u32);
            v.push(value);
        }
    }
    Csr::from_triplets(rows.len(), rows[0].len(), &r, &c, &v).unwrap()
}

fn factor(a: &Csr, kind: Kind) -> Factor {
    Factor::new(Analysis::new(a, kind).unwrap().unwrap(), a).unwrap().unwrap()
}

fn why_not(a: &Csr, kind: Kind) -> Singular {
    match Analysis::new(a, kind).unwrap() {
        Ok(analysis) => Factor::new(analysis, a).unwrap().unwrap_err(),
        Err(singular) => singular,
    }
}

fn solved(a: &Csr, kind: Kind, b: &[f64]) -> Vec<f64> {
    let mut x = vec![f64::NAN; b.len()];
    factor(a, kind).solve(b, &mut x);
    x
}

fn transposed(a: &Csr) -> Csr {
    let (r, c, v) = a.to_triplets();
    Csr::from_triplets(a.n_cols(), a.n_rows(), &c, &r, &v).unwrap()
}

/// The backward error after refinement, with the solution.
fn refined(a: &Csr, kind: Kind, b: &[f64]) -> (f64, Vec<f64>) {
    let mut x = vec![0.0; b.len()];
    let found = refine(a, &factor(a, kind), b, &mut x);
    let measured = residual(a, b, &x);
    assert_eq!(found.residual, measured.norm_2);
    (measured.backward_error, x)
}

#[test]
fn by_hand() {
    let a = rows(&[&[4.0, 2.0], &[2.0, 5.0]]);
    assert_eq!(solved(&a, Kind::Cholesky, &[8.0, 12.0]), [1.0, 2.0]);
    assert_eq!(solved(&a, Kind::Lu, &[8.0, 12.0]), [1.0, 2.0]);
    let a = rows(&[&[0.0, 2.0, 0.0], &[0.0, 1.0, 4.0], &[8.0, 0.0, 1.0]]);
    assert_eq!(solved(&a, Kind::Lu, &[4.0, 14.0, 11.0]), [1.0, 2.0, 3.0]);
    let none = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
    assert_eq!(solved(&none, Kind::Lu, &[]), [0.0; 0]);
    assert_eq!(solved(&none, Kind::Cholesky, &[]), [0.0; 0]);
    assert_eq!(solved(&none, Kind::Ldlt, &[]), [0.0; 0]);
}

#[test]
fn symmetric_by_hand() {
    for (a, x) in [
        (rows(&[&[-3.0]]), vec![2.0]),
        (rows(&[&[4.0, 2.0], &[2.0, 5.0]]), vec![1.0, 2.0]),
        (rows(&[&[0.0, 1.0], &[1.0, 0.0]]), vec![1.0, 2.0]),
        // a saddle point, and one with more constraints
        (rows(&[&[2.0, 0.0, 1.0], &[0.0, 2.0, 1.0], &[1.0, 1.0, 0.0]]), vec![1.0, 2.0, 3.0]),
        (
            rows(&[&[0.0, 0.0, 1.0, 2.0], &[0.0, 0.0, 0.0, 4.0], &[1.0, 0.0, 2.0, 0.0], &[2.0, 4.0, 0.0, 1.0]]),
            vec![1.0, 2.0, 3.0, 4.0],
        ),
        // pivots of order 2 in a cycle of three rows, and of four
        (rows(&[&[0.0, 1.0, 2.0], &[1.0, 0.0, 2.0], &[2.0, 2.0, 0.0]]), vec![1.0, 2.0, 3.0]),
        (
            rows(&[&[0.0, 1.0, 0.0, 1.0], &[1.0, 0.0, 2.0, 0.0], &[0.0, 2.0, 0.0, 1.0], &[1.0, 0.0, 1.0, 0.0]]),
            vec![4.0, 3.0, 2.0, 1.0],
        ),
        // an element of the diagonal that is no pivot
        (rows(&[&[1e-20, 1.0], &[1.0, 1.0]]), vec![1.0, 2.0]),
        (rows(&[&[1.0, 8.0], &[8.0, 1.0]]), vec![1.0, 2.0]),
    ] {
        let b = a.mul_vec(&x);
        let ldlt = factor(&a, Kind::Ldlt);
        assert_eq!((ldlt.kind(), ldlt.perturbed().len()), (Kind::Ldlt, 0));
        let found = solved(&a, Kind::Ldlt, &b);
        assert!(found.iter().zip(&x).all(|(found, x)| (found - x).abs() < 1e-14), "{found:?}");
    }
}

/// Dense matrices of orders on both sides of those of blocks, with zeros and without on the diagonal.
#[test]
fn one_symmetric_front() {
    for n in [2usize, 5, 24, 31, 33, 63, 64, 65, 96, 129, 200] {
        for diagonal in [0.0, 1e-3, 1.0] {
            let v = gallery::random_vector(n * n, n as u64);
            let entry = |i: usize, j: usize| if i == j { diagonal * v[i] } else { v[i.max(j) * n + i.min(j)] };
            let all: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect();
            let a = rows(&all.iter().map(|row| &row[..]).collect::<Vec<_>>());
            let b = a.mul_vec(&gallery::random_vector(n, 7));
            let x = solved(&a, Kind::Ldlt, &b);
            assert!(factor(&a, Kind::Ldlt).perturbed().is_empty());
            let r = residual(&a, &b, &x);
            assert!(r.backward_error < 1e-13, "{n}, {diagonal}: {r:?}");
        }
    }
}

/// Large fronts with rows below, of saddle points on grids.
#[test]
fn saddle_points() {
    for spec in ["stokes2d:6", "stokes2d:40", "helmholtz3d:14", "helmholtz3d:9,wavenumber=1.5"] {
        let a = spec.parse::<gallery::Spec>().unwrap().build().unwrap();
        let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 1));
        let (error, _) = refined(&a, Kind::Ldlt, &b);
        assert!(error < 1e-16, "{spec}: {error:e}");
        let [ldlt, lu] = [Kind::Ldlt, Kind::Lu].map(|kind| Analysis::new(&a, kind).unwrap().unwrap());
        assert!(ldlt.flops() < 0.7 * lu.flops() && ldlt.bytes() < lu.bytes());
    }
}

#[test]
fn rows_that_are_pivots_together() {
    let groups = |a: &Csr| {
        let transversal = Transversal::maximum_product(a).unwrap().unwrap();
        Groups::of(a, &transversal, &vec![0; a.n_rows()])
    };
    let identity = groups(&rows(&[&[1.0, 0.1], &[0.1, -1.0]]));
    assert_eq!((identity.of_row, identity.sizes), (vec![0, 1], vec![1, 1]));
    let pair = groups(&rows(&[&[0.0, 0.1, 1.0], &[0.1, 1.0, 0.0], &[1.0, 0.0, 0.2]]));
    assert_eq!(pair.sizes.iter().map(|&size| u32::from(size)).sum::<u32>(), 3);
    assert!(pair.of_row[0] == pair.of_row[2] && pair.of_row[0] != pair.of_row[1]);
    assert_eq!(pair.first_places(&[1, 0]), [0, 1, 3]);
    assert_eq!(pair.places(&[1, 0]), [1, 0, 2]);
    // a cycle of three: together, and where a row has an element on the diagonal, this is alone
    let cycle = groups(&rows(&[&[0.0, 1.0, 1.0], &[1.0, 0.0, 1.0], &[1.0, 1.0, 0.0]]));
    assert_eq!(cycle.sizes, [3]);
    let cycle = groups(&rows(&[&[0.0, 1.0, 1.0], &[1.0, 0.3, 1.0], &[1.0, 1.0, 0.0]]));
    assert!(cycle.of_row[0] == cycle.of_row[2] && cycle.of_row[0] != cycle.of_row[1], "{cycle:?}");
}

#[test]
fn trapezoids() {
    for (rows, cols) in [(0, 0), (1, 1), (5, 3), (64, 64), (70, 65), (200, 130)] {
        let shape = Trapezoid { rows, cols };
        let mut is_there = vec![false; shape.len()];
        for j in 0..cols {
            assert_eq!(shape.column(j).len(), rows - j);
            for i in j..rows {
                assert!(shape.column(j).contains(&shape.at(i, j)));
                assert!(!std::mem::replace(&mut is_there[shape.at(i, j)], true));
            }
        }
        assert!(shape.len() <= cols * rows && shape.len() >= cols * rows - cols * cols / 2);
        let parts: Vec<_> = Trapezoid::parts(0..cols).collect();
        assert_eq!(parts.iter().map(ExactSizeIterator::len).sum::<usize>(), cols);
    }
}

/// A matrix that is all but singular, whose L U happens to have the better pivots.
#[test]
fn what_is_left_to_lu() {
    let (small, one, other) = (1e-16, -0.01 + 1e-6 - 1.0, -0.01 + 1e-7 - 1e-8);
    let a = rows(&[&[small, one, 0.0], &[one, 0.0, other], &[0.0, other, 0.0]]);
    let b = a.mul_vec(&gallery::random_vector(3, 3));
    assert!(refined(&a, Kind::Ldlt, &b).0 > 1e-12);
    assert!(refined(&a, Kind::Lu, &b).0 < 1e-15);
}

/// Whatever the pivots, numbers are finite.
#[test]
fn symmetric_and_singular() {
    let ones = rows(&[&[1.0, 1.0], &[1.0, 1.0]]);
    let zero_block =
        rows(&[&[1.0, 0.0, 1.0, 2.0], &[0.0, 0.0, 1.0, 2.0], &[1.0, 1.0, 0.0, 0.0], &[2.0, 2.0, 0.0, 0.0]]);
    for a in [ones, zero_block] {
        let ldlt = factor(&a, Kind::Ldlt);
        assert_eq!(ldlt.perturbed().len(), 1);
        let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 1));
        let (error, x) = refined(&a, Kind::Ldlt, &b);
        assert!(error < 1e-14 && x.iter().all(|x| x.abs() < 1e6), "{error:e} {x:?}");
    }
    assert!(matches!(
        why_not(&rows(&[&[1.0, 1.0], &[1.0, 0.0]]), Kind::Cholesky),
        Singular::NotPositiveDefinite { .. }
    ));
    let empty = Csr::from_triplets(2, 2, &[0], &[0], &[1.0]).unwrap();
    assert!(matches!(why_not(&empty, Kind::Ldlt), Singular::Structurally(_)));
}

#[test]
fn what_has_no_factor() {
    assert!(matches!(Analysis::new(&rows(&[&[1.0, 2.0]]), Kind::Lu), Err(Error::NotSquare { .. })));
    let indefinite = rows(&[&[1.0, 2.0], &[2.0, 1.0]]);
    let why = why_not(&indefinite, Kind::Cholesky);
    assert!(matches!(why, Singular::NotPositiveDefinite { .. }));
    assert_eq!(
        why_not(&rows(&[&[1.0, 0.0], &[0.0, -1.0]]), Kind::Cholesky).to_string(),
        "the matrix is not positive definite in double precision: no positive pivot for row 2"
    );
    assert_eq!(
        why_not(&rows(&[&[1.0, 1.0, 1.0], &[0.0, 0.0, 2.0], &[0.0, 0.0, 3.0]]), Kind::Lu).to_string(),
        "the matrix is structurally singular: structural rank 2 of 3: 2 rows (2, 3) have entries in 1 column only"
    );
    assert_eq!([Kind::Cholesky, Kind::Ldlt, Kind::Lu].map(|kind| kind.to_string()), ["Cholesky", "LDLᵀ", "LU"]);
}

#[test]
fn sizes_are_those_of_a_dense_matrix() {
    let n = 50;
    let all: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| if i == j { 100.0 } else { 1.0 }).collect()).collect();
    let a = rows(&all.iter().map(|row| &row[..]).collect::<Vec<_>>());
    let lu = Analysis::new(&a, Kind::Lu).unwrap().unwrap();
    assert_eq!(lu.elements(), 2500);
    assert!((lu.flops() / (2.0 / 3.0 * 125_000.0) - 1.0).abs() < 1e-12);
    assert!(lu.bytes() >= 8 * 2500 && lu.bytes() < 100_000, "{}", lu.bytes());
    let cholesky = Analysis::new(&a, Kind::Cholesky).unwrap().unwrap();
    assert_eq!(cholesky.flops(), lu.flops() / 2.0);
    assert!(cholesky.bytes() >= 8 * 2500 && cholesky.bytes() < 150_000, "{}", cholesky.bytes());
    let ldlt = Analysis::new(&a, Kind::Ldlt).unwrap().unwrap();
    assert_eq!((ldlt.elements(), ldlt.flops()), (5000, lu.flops() / 2.0));
    assert!(ldlt.bytes() >= 8 * 2500 && ldlt.bytes() < lu.bytes(), "{}", ldlt.bytes());
}

#[test]
fn grids() {
    for a in [gallery::poisson2d([37, 23]).unwrap(), gallery::poisson3d([9, 8, 7]).unwrap()] {
        let exact = gallery::random_vector(a.n_rows(), 1);
        let b = a.mul_vec(&exact);
        for kind in [Kind::Cholesky, Kind::Ldlt, Kind::Lu] {
            let (error, x) = refined(&a, kind, &b);
            assert!(error < 1e-16, "{error:e}");
            assert!(x.iter().zip(&exact).all(|(x, e)| (x - e).abs() < 1e-12));
            assert!(factor(&a, kind).perturbed().is_empty());
        }
    }
}

#[test]
fn rows_and_columns_of_all_sizes() {
    let a = gallery::poisson2d([15, 14]).unwrap();
    let n = a.n_rows();
    let size = |i: usize| 2f64.powi((i as i32 * 97) % 900 - 450);
    let scaled = |by_row: &dyn Fn(usize) -> f64, by_col: &dyn Fn(usize) -> f64| {
        let (r, c, mut v) = a.to_triplets();
        for ((i, j), v) in r.iter().zip(&c).zip(&mut v) {
            *v *= by_row(*i as usize) * by_col(*j as usize);
        }
        Csr::from_triplets(n, n, &r, &c, &v).unwrap()
    };
    let exact = gallery::random_vector(n, 2);
    let b = a.mul_vec(&exact);
    let of_rows: Vec<f64> = (0..n).map(|i| b[i] * size(i)).collect();
    for (kind, a) in [
        (Kind::Cholesky, scaled(&size, &size)),
        (Kind::Ldlt, scaled(&size, &size)),
        (Kind::Lu, scaled(&size, &size)),
        (Kind::Lu, scaled(&size, &|j| size(7 * j))),
    ] {
        let is_symmetric = a.get(0, 1).unwrap() == a.get(1, 0).unwrap();
        let x = solved(&a, kind, &of_rows);
        for (j, (x, e)) in x.iter().zip(&exact).enumerate() {
            let expected = e / if is_symmetric { size(j) } else { size(7 * j) };
            assert!((x / expected - 1.0).abs() < 1e-6, "{kind} {j}: {x:e} {expected:e}");
        }
    }
}

#[test]
fn singular_but_consistent() {
    // a ring of springs: the rows add up to 0
    let n = 40u32;
    let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
    for i in 0..n {
        for (j, value) in [(i, 2.0), ((i + 1) % n, -1.0), ((i + n - 1) % n, -1.0)] {
            r.push(i);
            c.push(j);
            v.push(value);
        }
    }
    let a = Csr::from_triplets(n as usize, n as usize, &r, &c, &v).unwrap();
    assert!(matches!(why_not(&a, Kind::Cholesky), Singular::NotPositiveDefinite { .. }));
    let b = a.mul_vec(&gallery::random_vector(n as usize, 3));
    for kind in [Kind::Ldlt, Kind::Lu] {
        assert_eq!(factor(&a, kind).perturbed().len(), 1);
        let (error, x) = refined(&a, kind, &b);
        assert!(error < 1e-12 && x.iter().all(|x| x.abs() < 1e6), "{kind}: {error:e} {x:?}");
        // b outside the range
        let (error, _) = refined(&a, kind, &vec![1.0; n as usize]);
        assert!(error > 1e-12, "{kind}: {error:e}");
    }
}

#[test]
fn a_pivot_from_another_supernode() {
    // an arrow, whose tip is eliminated last: no pivot of the first columns is large enough, but after one step all are
    let n = 30usize;
    let small = 1e-15;
    let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
    for i in 0..n as u32 {
        let last = n as u32 - 1;
        let mut entry = |i, j, value| {
            r.push(i);
            c.push(j);
            v.push(value);
        };
        if i < last {
            entry(i, i, if i % 3 == 0 { small } else { 1.0 });
            entry(i, last, 1.0);
            entry(last, i, 1.0);
            entry(i, (i + 1) % last, 0.5);
        } else {
            entry(i, i, 1.0);
        }
    }
    let a = Csr::from_triplets(n, n, &r, &c, &v).unwrap();
    let exact = gallery::random_vector(n, 4);
    let (error, x) = refined(&a, Kind::Lu, &a.mul_vec(&exact));
    assert!(error < 1e-16, "{error:e}");
    assert!(x.iter().zip(&exact).all(|(x, e)| (x - e).abs() < 1e-10));
}

#[test]
fn both_ways_to_the_numbers_agree() {
    let a = gallery::poisson3d([5, 4, 6]).unwrap();
    let n = a.n_rows();
    let super::lu::Analysis { tree, arranged, .. } = super::lu::Analysis::new(&a).unwrap().unwrap();
    let y = gallery::random_vector(n, 5);
    let (mut first, mut second) = (y.clone(), y.clone());
    let (factor, perturbed) = Multifrontal::new(Square, &arranged.eliminated(&a), tree).unwrap();
    assert!(perturbed.is_empty());
    factor.solve(&mut first);
    let (factor, perturbed) = Pivoting::new(&arranged, &a, n * n).unwrap().unwrap();
    assert!(perturbed.is_empty());
    factor.solve(&mut second);
    assert!(first.iter().zip(&second).all(|(a, b)| (a - b).abs() < 1e-13), "{first:?} {second:?}");
}

#[test]
fn memory_that_there_is_not() {
    let a = gallery::poisson3d([4, 4, 4]).unwrap();
    let analysis = Analysis::new(&a, Kind::Lu).unwrap().unwrap();
    assert!(available_bytes().is_none_or(|free| analysis.bytes() < free));
}

/// Diagonals at random, in any order of rows, with some entries beside them; half of them saddle points.
fn matrix() -> impl Strategy<Value = Csr> {
    (1..80usize).prop_flat_map(|n| {
        let entries = prop::collection::vec((0..n as u32, 0..n as u32, -1.0..1.0f64), 0..4 * n);
        let order = Just((0..n as u32).collect::<Vec<u32>>()).prop_shuffle();
        let sizes = prop::collection::vec((1.0..4.0f64, -20i32..20, -20i32..20), n);
        (entries, order, sizes).prop_map(move |(entries, order, sizes)| {
            let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
            for (i, (&j, &(d, e, _))) in order.iter().zip(&sizes).enumerate() {
                r.push(i as u32);
                c.push(j);
                v.push(d * 2f64.powi(e + sizes[j as usize].2));
            }
            for (i, j, value) in entries {
                r.push(i);
                c.push(j);
                v.push(value * 2f64.powi(sizes[i as usize].1 + sizes[j as usize].2));
            }
            Csr::from_triplets(n, n, &r, &c, &v).unwrap()
        })
    })
}

/// Symmetric matrices of all sizes in any order, half of them saddle points: with pairs of rows, whose diagonal may be 0, and some entries
/// beside them.
fn symmetric_matrix() -> impl Strategy<Value = Csr> {
    (1..80usize, any::<bool>()).prop_flat_map(|(n, has_zeros)| {
        let entries = prop::collection::vec((0..n as u32, 0..n as u32, -1.0..1.0f64), 0..3 * n);
        let order = Just((0..n as u32).collect::<Vec<u32>>()).prop_shuffle();
        let sizes = prop::collection::vec((1.0..4.0f64, -20i32..20, any::<bool>()), n);
        (entries, order, sizes).prop_map(move |(entries, order, sizes)| {
            let (mut r, mut c, mut v) = (vec![], vec![], vec![]);
            let mut entry = |i: u32, j: u32, value: f64| {
                let value = value * 2f64.powi(sizes[i as usize].1 + sizes[j as usize].1);
                r.push(i);
                c.push(j);
                v.push(value);
                if i != j {
                    r.push(j);
                    c.push(i);
                    v.push(value);
                }
            };
            // the second row of a pair has a diagonal of 0, of a saddle point
            let is_constraint = |at: usize| has_zeros && at % 2 == 1;
            let mut place = vec![0; n];
            for (at, &i) in order.iter().enumerate() {
                place[i as usize] = at;
                let (d, _, is_negative) = sizes[i as usize];
                if is_constraint(at) {
                    entry(order[at - 1], i, d);
                } else {
                    entry(i, i, if is_negative { -d } else { d });
                }
            }
            for (i, j, value) in entries {
                if !is_constraint(place[i as usize]) || !is_constraint(place[j as usize]) {
                    entry(i, j, value);
                }
            }
            Csr::from_triplets(n, n, &r, &c, &v).unwrap()
        })
    })
}

proptest! {
    #[test]
    fn any_symmetric_matrix(a in symmetric_matrix(), seed in 0..100u64) {
        let n = a.n_rows();
        let b = a.mul_vec(&gallery::random_vector(n, seed));
        let Ok(analysis) = Analysis::new(&a, Kind::Ldlt).unwrap() else { return Ok(()) };
        let ldlt = Factor::new(analysis, &a).unwrap().unwrap();
        let mut x = vec![f64::NAN; n];
        ldlt.solve(&b, &mut x);
        prop_assert!(x.iter().all(|v| v.is_finite()));
        x.fill(0.0);
        refine(&a, &ldlt, &b, &mut x);
        prop_assert!(residual(&a, &b, &x).backward_error < 1e-12, "{:?}", residual(&a, &b, &x));
    }

    #[test]
    fn any_matrix(a in matrix(), seed in 0..100u64) {
        let n = a.n_rows();
        let b = a.mul_vec(&gallery::random_vector(n, seed));
        let Ok(analysis) = Analysis::new(&a, Kind::Lu).unwrap() else { return Ok(()) };
        let lu = Factor::new(analysis, &a).unwrap().unwrap();
        let mut x = vec![0.0; n];
        refine(&a, &lu, &b, &mut x);
        prop_assert!(residual(&a, &b, &x).backward_error < 1e-12, "{:?}", residual(&a, &b, &x));
    }

    #[test]
    fn pivots_from_all_rows(a in matrix(), seed in 0..100u64) {
        let n = a.n_rows();
        let Ok(super::lu::Analysis { arranged, .. }) = super::lu::Analysis::new(&a).unwrap() else { return Ok(()) };
        // the matrix as it is eliminated
        let (rows, cols) = (&arranged.rows, &arranged.cols);
        let (r, c, mut v) = a.to_triplets();
        for ((i, j), v) in r.iter().zip(&c).zip(&mut v) {
            *v = crate::matrix::power::scaled(*v, rows.exponent[*i as usize] + cols.exponent[*j as usize]);
        }
        let r: Vec<u32> = r.iter().map(|&i| rows.place[i as usize]).collect();
        let c: Vec<u32> = c.iter().map(|&j| cols.place[j as usize]).collect();
        let b = Csr::from_triplets(n, n, &r, &c, &v).unwrap();
        let (factor, perturbed) = Pivoting::new(&arranged, &a, n * n + n).unwrap().unwrap();
        if perturbed.is_empty() {
            let exact = gallery::random_vector(n, seed);
            let rhs = b.mul_vec(&exact);
            let mut y = rhs.clone();
            factor.solve(&mut y);
            let error = residual(&b, &rhs, &y).backward_error;
            prop_assert!(error < 1e-11, "{error:e}");
        }
        // every row takes at least its pivot
        prop_assert!(Pivoting::new(&arranged, &a, n - 1).unwrap().is_none());
    }

    #[test]
    fn any_definite_matrix(a in matrix(), seed in 0..100u64) {
        // B with its diagonal made dominant
        let n = a.n_rows();
        let (mut r, mut c, mut v) = a.to_triplets();
        let mut sums = vec![1e-3; n];
        for ((i, j), v) in r.iter().zip(&c).zip(&v) {
            sums[*i as usize] += 1.1 * v.abs();
            sums[*j as usize] += 1.1 * v.abs();
        }
        (r, c, v) = (
            r.iter().chain(&c).copied().chain(0..n as u32).collect(),
            c.iter().chain(&r).copied().chain(0..n as u32).collect(),
            v.iter().chain(&v).copied().chain(sums).collect(),
        );
        let a = Csr::from_triplets(n, n, &r, &c, &v).unwrap();
        let b = a.mul_vec(&gallery::random_vector(n, seed));
        for kind in [Kind::Cholesky, Kind::Ldlt, Kind::Lu] {
            prop_assert!(refined(&a, kind, &b).0 < 1e-15);
        }
    }
}

/// Matrices in a folder that the environment variable `DECLIVE_MATRICES` names, with what came of each.
#[test]
fn published_matrices() {
    let Some(folder) = std::env::var_os("DECLIVE_MATRICES") else {
        eprintln!("DECLIVE_MATRICES is not set: no published matrices were tried");
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(matrix) = crate::matrix_market::read_matrix(&file) else { continue };
        let a = matrix.a;
        if a.n_rows() != a.n_cols() {
            continue;
        }
        let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 1));
        for kind in [Kind::Cholesky, Kind::Ldlt, Kind::Lu] {
            if kind != Kind::Lu && transposed(&a) != a {
                continue;
            }
            let found = Analysis::new(&a, kind).unwrap().and_then(|analysis| {
                let facts = (analysis.bytes(), analysis.flops());
                Factor::new(analysis, &a).unwrap().map(|factor| (factor, facts))
            });
            let (factor, (bytes, flops)) = match found {
                Ok(found) => found,
                Err(why) => {
                    eprintln!("{name} {kind}: {why}");
                    continue;
                }
            };
            let mut x = vec![0.0; b.len()];
            let refined = refine(&a, &factor, &b, &mut x);
            let r = residual(&a, &b, &x);
            eprintln!(
                "{name} {kind}: {bytes} bytes, {flops:.1e} flops, {} perturbed, {} steps, relative {:.1e}, backward error {:.1e}",
                factor.perturbed().len(),
                refined.steps,
                r.relative_2,
                r.backward_error
            );
            assert!(r.backward_error < 1e-13, "{name} {kind}: {r:?}");
        }
    }
}
