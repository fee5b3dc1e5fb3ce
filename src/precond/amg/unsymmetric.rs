//! Matrices that are not symmetric: Petrov–Galerkin smoothed aggregation (Sala and Tuminaro 2008, doi 10.1137/060659545).
//!
//! Aggregates are those of the mean of A and Aᵀ. P is smoothed by A, and the restriction R, in place of Pᵀ, by Aᵀ: so the next level has R A P, in
//! which what flows in on one side of an aggregate flows out on the other. It suits M-matrices and what is near them, as convection and diffusion by upwind
//! differences, or networks whose edges have a direction. Eigenvalues are not real, so that the smoother is a damped diagonal.

use rayon::prelude::*;

use super::product::Accumulator;
use super::sparse::Sparse;
use crate::matrix::Csr;

/// Positive entries beside the diagonal may add up to this part of it,
const MOST_POSITIVE: f64 = 0.1;
/// and all entries to less than 0 by this part of it.
const MOST_NEGATIVE: f64 = 1e-3;

/// Rows that a task looks through.
const FEW: usize = 1 << 12;

/// Whether a matrix is near an M-matrix, in the mean of its rows and columns: its diagonal is positive, hardly anything beside that is, and that is
/// not outweighed by what is negative. Reads all entries; the same for any number of threads.
pub(crate) fn is_near_m(a: &Csr) -> bool {
    // the diagonal, what is positive beside it and what is negative
    let of_rows = |block: usize| {
        let mut sums = [0f64; 3];
        for i in block * FEW..a.n_rows().min((block + 1) * FEW) {
            let (columns, values) = a.row(i);
            let before = sums[0];
            for (&j, &v) in columns.iter().zip(values) {
                sums[if j as usize == i { 0 } else { 1 + usize::from(v < 0.0) }] += v;
            }
            if sums[0] <= before {
                return [f64::NAN; 3];
            }
        }
        sums
    };
    let sums: Vec<[f64; 3]> = (0..a.n_rows().div_ceil(FEW)).into_par_iter().map(of_rows).collect();
    let [diagonal, positive, negative] = sums.iter().fold([0.0; 3], |all, one| [0, 1, 2].map(|k| all[k] + one[k]));
    positive <= MOST_POSITIVE * diagonal && diagonal + positive + negative >= -MOST_NEGATIVE * diagonal
}

/// (A + Aᵀ) / 2, whose rows are sorted; an entry of it has the same bits as that across the diagonal.
pub(super) fn mean(a: &Sparse, transpose: &Sparse) -> Sparse {
    let (rows, transposed) = (a.rows(), transpose.rows());
    Sparse::by_blocks(
        (a.n_rows(), a.n_cols),
        || Accumulator::new(a.n_cols),
        |range, sums, block| {
            for i in range {
                for (j, v) in rows.row(i).chain(transposed.row(i)) {
                    sums.add(j as u32, v);
                }
                sums.scale(0.5);
                sums.give_sorted(block);
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{constant, dense, first, system};
    use super::super::{Amg, coarser, dense::Dense};
    use super::*;
    use crate::matrix::gallery;

    /// Edges that are passed one way more easily than the other, some of them one way alone; rows of which nothing but the ends leaves anything.
    fn one_way(n: u32) -> Csr {
        let (mut rows, mut cols, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut out = vec![0.01; n as usize];
        for i in 0..n {
            for (j, v) in [(i + 1, 3.0), (i + 7, 0.5), (i * 5 % n, 1.0), (i.wrapping_sub(1), 1.0)] {
                if j < n && j != i {
                    rows.push(i);
                    cols.push(j);
                    values.push(-v);
                    out[i as usize] += v;
                }
            }
        }
        (0..n).for_each(|i| {
            rows.push(i);
            cols.push(i);
            values.push(out[i as usize]);
        });
        Csr::from_triplets(n as usize, n as usize, &rows, &cols, &values).unwrap()
    }

    #[test]
    fn the_mean_by_hand() {
        // rows (1 2 0) (4 3 0) (5 0 6)
        let a = Sparse::new(3, vec![0, 2, 4, 6], vec![0, 1, 0, 1, 0, 2], vec![1.0, 2.0, 4.0, 3.0, 5.0, 6.0]);
        let found = mean(&a, &a.transposed());
        assert_eq!(found.compressed().0, [0, 3, 5, 7]);
        assert_eq!(dense(&found), [[1.0, 3.0, 2.5], [3.0, 3.0, 0.0], [2.5, 0.0, 6.0]]);
        assert_eq!(dense(&found), dense(&found.transposed()));
    }

    #[test]
    fn near_m_matrices() {
        for (spec, expected) in [
            ("convection3d:6,peclet=30", true),
            ("poisson2d:9", true),
            ("markov:8", true),
            ("helmholtz3d:8,wavenumber=2", false),
            ("stokes2d:6", false),
            ("random-spd:90", false),
        ] {
            assert_eq!(is_near_m(&system(spec)), expected, "{spec}");
        }
        assert!(is_near_m(&one_way(40)) && is_near_m(&one_way(40).transposed().unwrap()));
        // a row without a diagonal, however large the others are
        let a = Csr::from_triplets(2, 2, &[0, 1], &[0, 0], &[9.0, -1.0]).unwrap();
        assert!(!is_near_m(&a));
    }

    #[test]
    fn products_beside_dense_ones() {
        let (matrix, modes) = first(&system("convection3d:9x10x8,peclet=8"), &constant());
        let (p, restriction, next, _) = coarser(&matrix, &modes, None).unwrap();
        let [matrix, p, restriction, next, transpose] = [&matrix, &p, &restriction, &next, &p.transposed()].map(dense);
        assert!(restriction != transpose, "R is smoothed by the transpose");
        let times = |a: &Vec<Vec<f64>>, b: &Vec<Vec<f64>>| -> Vec<Vec<f64>> {
            let row = |row: &Vec<f64>| {
                let mut to = vec![0.0; b[0].len()];
                for (v, from) in row.iter().zip(b).filter(|(v, _)| **v != 0.0) {
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += v * from);
                }
                to
            };
            a.iter().map(row).collect()
        };
        let expected = times(&restriction, &times(&matrix, &p));
        for (found, expected) in next.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 4e-6, "{found}, {expected}");
        }
    }

    /// A symmetric matrix has the same levels either way.
    #[test]
    fn of_symmetric_matrices() {
        let (matrix, modes) = first(&system("jumps:7"), &constant());
        let [one, other] = [Some(2.0), None].map(|largest| coarser(&matrix, &modes, largest).unwrap());
        assert!(one.0.compressed() == other.0.compressed() && one.1.compressed() == other.1.compressed());
        assert!(one.2.compressed() == other.2.compressed());
    }

    #[test]
    fn inverses() {
        let (matrix, _) = first(&one_way(60), &constant());
        let all = dense(&matrix);
        let solved = Dense::inverted(&matrix);
        let b: Vec<f32> = (0..60).map(|i| (i % 7) as f32 - 3.0).collect();
        let mut x = vec![0f32; 60];
        solved.solve(&b, &mut x);
        for (row, b) in all.iter().zip(&b) {
            let sum: f64 = row.iter().zip(&x).map(|(v, x)| v * f64::from(*x)).sum();
            assert!((sum - f64::from(*b)).abs() < 1e-4, "{sum}, {b}");
        }
        // what is singular is left out: the second of two equal rows
        let twice = Sparse::new(2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0; 4]);
        assert_eq!(Dense::inverted(&twice).inverse(), [1.0, 0.0, 0.0, 0.0]);
    }

    /// Cycles alone, one after the other, solve systems; of the diagonal alone they would need thousands.
    #[test]
    fn cycles_contract() {
        for a in [system("convection3d:14,peclet=0.5"), system("convection3d:14,peclet=100"), one_way(3000)] {
            let m = Amg::of(&a, &constant(), false);
            assert!(m.hierarchy().levels.len() > 1 && m.hierarchy().operator_complexity < 2.5);
            let b = a.mul_vec(&gallery::random_vector(a.n_rows(), 3));
            let (mut x, mut z) = (vec![0.0; b.len()], vec![0.0; b.len()]);
            let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let mut r = b.clone();
            for _ in 0..40 {
                m.apply(&r, &mut z).unwrap();
                x.iter_mut().zip(&z).for_each(|(x, z)| *x += z);
                r = b.iter().zip(a.mul_vec(&x)).map(|(b, ax)| b - ax).collect();
            }
            assert!(norm(&r) < 1e-4 * norm(&b), "{}", norm(&r) / norm(&b));
        }
    }
}
