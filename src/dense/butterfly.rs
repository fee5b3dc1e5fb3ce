//! Random butterflies: what makes exchanges of rows superfluous in most symmetric matrices.

use rayon::prelude::*;

use super::element::Element;
use crate::matrix::gallery::random_vector;

/// Columns that are turned into rows together: as many as a cache keeps whose rows are at the same distance.
const SIDE: usize = 8;

/// U = D₁ H₁ D₂ H₂ of order n, by which A becomes Uᵀ A U. H₁ takes sums and differences of rows q apart, H₂ of rows 2 q apart, q = ⌈n / 4⌉, each
/// over √2: row i has the sum, row i + q the difference. A row whose partner would be beyond the last one stays as it is, so that n may be
/// anything. D₁ and D₂ are diagonals of numbers ±[½, 1), from a fixed seed, in two arrays of n numbers.
///
/// D. S. Parker, "Random butterfly transformations with applications in computational linear algebra", UCLA CSD-950023, 1995; of depth 2 as in
/// M. Baboulin, D. Becker, G. Bosilca, A. Danalis, J. Dongarra, Parallel Computing 40 (2014), doi 10.1016/j.parco.2013.12.003. There the
/// outermost diagonal is behind H₂, where it only scales the rows of Uᵀ A U; before H₁ it keeps equal numbers of opposite sign from cancelling
/// each other, as those of diag(1, −1, 1, −1 …) else do.
#[derive(Debug, Clone)]
pub(super) struct Butterflies<T> {
    diagonals: [Vec<T>; 2],
}

impl<T: Element> Butterflies<T> {
    pub(super) fn new(n: usize) -> Self {
        let number = |v: f64| T::from_f64(f64::midpoint(v, f64::signum(v)));
        Self { diagonals: [1, 2].map(|seed| random_vector(n, seed).into_iter().map(number).collect()) }
    }

    fn quarter(&self) -> usize {
        self.diagonals[0].len().div_ceil(4)
    }

    /// Uᵀ A U in place of A by columns, of which the lower triangle alone is looked at; gives the largest absolute value. Some 20 n² flops, by all
    /// threads.
    pub(super) fn around(&self, a: &mut [T]) -> f64 {
        let (n, q) = (self.diagonals[0].len(), self.quarter());
        mirror(a, n, 0);
        let mut quads: Vec<[&mut [T]; 4]> = Vec::new();
        quads.resize_with(q, Default::default);
        a.chunks_exact_mut(n.max(1)).enumerate().for_each(|(j, column)| quads[j % q][j / q] = column);
        let of_quad = |(k, mut columns): (usize, [&mut [T]; 4])| {
            let factor = |diagonal: &Vec<T>, part: usize| diagonal.get(k + part * q).copied().unwrap_or_default();
            for (diagonal, pairs) in self.diagonals.iter().zip(PAIRS) {
                for [one, other] in pairs {
                    let factors = [one, other].map(|part| factor(diagonal, part));
                    let [one, other] = two(&mut columns, [one, other]);
                    columns_apart(one, other, factors);
                }
            }
            columns.iter_mut().filter(|column| !column.is_empty()).for_each(|column| self.down(column));
            columns.iter().flat_map(|column| column.iter()).fold(0.0, |most: f64, v| most.max(v.to_f64().abs()))
        };
        quads.into_par_iter().enumerate().map(of_quad).reduce(|| 0.0, f64::max)
    }

    /// Uᵀ x in place.
    pub(super) fn down(&self, x: &mut [T]) {
        let (q, root) = (self.quarter(), T::from_f64(ROOT));
        let mut x = parts(x, q);
        for (diagonal, pairs) in self.diagonals.iter().zip(PAIRS) {
            let factors = shares(diagonal, q);
            for [k, l] in pairs {
                let [one, other] = two(&mut x, [k, l]);
                rows_apart(one, other, [factors[k], factors[l]], |[one, other], [f, g]| {
                    let (one, other) = (one * f, other * g);
                    ((one + other) * root, (one - other) * root)
                });
            }
        }
    }

    /// U x in place.
    pub(super) fn up(&self, x: &mut [T]) {
        let (q, root) = (self.quarter(), T::from_f64(ROOT));
        let mut x = parts(x, q);
        for (diagonal, pairs) in self.diagonals.iter().zip(PAIRS).rev() {
            let factors = shares(diagonal, q);
            for [k, l] in pairs {
                let [one, other] = two(&mut x, [k, l]);
                rows_apart(one, other, [factors[k], factors[l]], |[one, other], [f, g]| {
                    ((one + other) * root * f, (one - other) * root * g)
                });
            }
        }
    }
}

/// Which quarters H₁ and H₂ mix.
const PAIRS: [[[usize; 2]; 2]; 2] = [[[0, 1], [2, 3]], [[0, 2], [1, 3]]];

/// 1 / √2
const ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Quarters of a vector, of which the last ones may be shorter, or empty.
fn parts<T>(x: &mut [T], q: usize) -> [&mut [T]; 4] {
    let mut rest = x;
    [0; 4].map(|_| {
        let len = q.min(rest.len());
        let (part, others) = std::mem::take(&mut rest).split_at_mut(len);
        rest = others;
        part
    })
}

fn shares<T>(x: &[T], q: usize) -> [&[T]; 4] {
    [0, 1, 2, 3].map(|part| &x[x.len().min(part * q)..x.len().min((part + 1) * q)])
}

/// Two of four, the first one before the other.
fn two<'a, T>(all: &'a mut [&mut [T]; 4], [one, other]: [usize; 2]) -> [&'a mut [T]; 2] {
    let (before, behind) = all.split_at_mut(other);
    [&mut *before[one], &mut *behind[0]]
}

/// Columns become their sum and difference, each multiplied before; one whose partner is not there is multiplied.
fn columns_apart<T: Element>(one: &mut [T], other: &mut [T], [f, g]: [T; 2]) {
    if other.is_empty() {
        one.iter_mut().for_each(|v| *v *= f);
        return;
    }
    let root = T::from_f64(ROOT);
    for (one, other) in one.iter_mut().zip(other) {
        let (v, w) = (*one * f, *other * g);
        (*one, *other) = ((v + w) * root, (v - w) * root);
    }
}

/// The same of rows, each with factors of its own: those whose partner is not there are the last.
fn rows_apart<T: Element>(one: &mut [T], other: &mut [T], [f, g]: [&[T]; 2], mixed: impl Fn([T; 2], [T; 2]) -> (T, T)) {
    let (one, alone) = one.split_at_mut(other.len());
    for ((one, other), (&f, &g)) in one.iter_mut().zip(other.iter_mut()).zip(f.iter().zip(g)) {
        (*one, *other) = mixed([*one, *other], [f, g]);
    }
    alone.iter_mut().zip(&f[one.len()..]).for_each(|(v, &f)| *v *= f);
}

/// Lets the upper triangle be the lower one, in these columns from number `first` on, and their rows.
fn mirror<T: Element>(columns: &mut [T], n: usize, first: usize) {
    let count = columns.len() / n.max(1);
    if count <= SIDE {
        for j in 1..count {
            (0..j).for_each(|i| columns[first + i + n * j] = columns[first + j + n * i]);
        }
        return;
    }
    let half = count / 2;
    let (left, right) = columns.split_at_mut(half * n);
    right.par_chunks_mut(SIDE * n).enumerate().for_each(|(chunk, columns)| {
        let row = first + half + chunk * SIDE;
        for i0 in (0..half).step_by(SIDE) {
            for (j, column) in columns.chunks_exact_mut(n).enumerate() {
                (i0..half.min(i0 + SIDE)).for_each(|i| column[first + i] = left[row + j + n * i]);
            }
        }
    });
    rayon::join(|| mirror(left, n, first), || mirror(right, n, first + half));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(n: usize, element: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        (0..n * n).map(|k| element(k % n, k / n)).collect()
    }

    /// U by its columns.
    fn dense(butterflies: &Butterflies<f64>, n: usize) -> Vec<f64> {
        let mut u = columns(n, |i, j| f64::from(u8::from(i == j)));
        u.chunks_exact_mut(n).for_each(|column| butterflies.up(column));
        u
    }

    #[test]
    fn by_hand() {
        let butterflies = Butterflies { diagonals: [vec![2.0, 4.0, 6.0], vec![1.0, 3.0, 5.0]] };
        let (mut x, r) = ([1.0, 0.0, 0.0], std::f64::consts::FRAC_1_SQRT_2);
        // row 1 has no partner for H₂, row 2 none for H₁
        butterflies.up(&mut x);
        assert!(x.iter().zip([1.0, 2.0, 30.0 * r]).all(|(x, expected)| (x - expected).abs() < 1e-14), "{x:?}");
    }

    #[test]
    fn both_sides_of_any_order() {
        for n in [1, 2, 3, 4, 5, 6, 7, 8, 31, 97] {
            let butterflies = Butterflies::<f64>::new(n);
            let numbers = &butterflies.diagonals;
            assert!(numbers.iter().flatten().all(|v| (0.5..=1.0).contains(&v.abs())));
            let u = dense(&butterflies, n);
            let symmetric = |i: usize, j: usize| f64::from((3 * i.max(j) as u32 + 7 * i.min(j) as u32) % 11) - 5.0;
            // what is above the diagonal does not matter
            let mut a = columns(n, |i, j| if i < j { f64::NAN } else { symmetric(i, j) });
            let largest = butterflies.around(&mut a);
            let au = columns(n, |i, j| (0..n).map(|k| symmetric(i, k) * u[k + n * j]).sum());
            let expected = columns(n, |i, j| (0..n).map(|k| u[k + n * i] * au[k + n * j]).sum());
            assert!(a.iter().zip(&expected).all(|(a, e)| (a - e).abs() < 1e-13), "of order {n}");
            assert_eq!(largest, a.iter().fold(0.0, |most: f64, v| most.max(v.abs())));
            // Uᵀ is the transpose of U
            let mut transposed = columns(n, |i, j| f64::from(u8::from(i == j)));
            transposed.chunks_exact_mut(n).for_each(|column| butterflies.down(column));
            assert!((0..n * n).all(|k| (transposed[k] - u[k / n + n * (k % n)]).abs() < 1e-15), "of order {n}");
        }
    }

    #[test]
    fn no_row_stays_alone() {
        for n in 2..40 {
            let u = dense(&Butterflies::new(n), n);
            assert!((0..n).all(|i| (0..n).filter(|j| u[i + n * j] != 0.0).count() > 1), "of order {n}");
        }
    }
}
