//! The factorised sparse approximate inverse (Kolotilina and Yeremin 1993, doi 10.1137/0614004): M⁻¹ = Gᵀ G with a sparse lower triangular
//! G, symmetric and positive definite whatever its entries are, and applied by two products.
//!
//! With A scaled to a diagonal of ones, a row of G is g / √ψ, where g has a 1 on the diagonal and the least ψ = g A gᵀ that its pattern S
//! allows: A[S, S] y = −A[S, i]. So G A Gᵀ has a diagonal of ones; with the whole lower triangle it is the identity. The pattern grows
//! (Janna and Ferronato 2011, doi 10.1137/100810368): of the columns where the gradient A gᵀ of ψ is largest, some at a time come in, as long
//! as each of them lowers ψ by a part that counts. Rows are independent of each other.

use rayon::prelude::*;

use crate::error::Result;
use crate::matrix::Csr;

/// How far a row grows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most entries beside the diagonal.
    pub(super) entries: usize,
    /// Of these, so many come in at a time.
    pub(super) at_once: usize,
    /// An entry comes in if it alone lowers ψ by this part.
    pub(super) gain: f64,
}

/// What pays on most systems (`docs/measurements.md`).
pub(super) const USUAL: Limits = Limits { entries: 32, at_once: 4, gain: 2e-3 };

/// A pivot of a matrix with a diagonal of ones below this is one of rounding.
const TINY: f64 = 1e-13;

/// Rows of A that are longer don't tell which columns come next, as they name too many.
const LONG: usize = 1024;

/// Rows that a thread makes at a time.
const PIECE: usize = 256;

/// G and Gᵀ of `factor` A. Where what a row needs of A is not positive definite, the row is that of the diagonal: the method will see that A
/// is not.
///
/// # Errors
/// Not enough memory.
pub(super) fn factors(a: &Csr, factor: f64, limits: Limits) -> Result<[Csr; 2]> {
    let n = a.n_rows();
    let size = |d: f64| if d == 0.0 { 1.0 } else { d.abs() };
    let scale: Vec<f64> = a.diagonal().par_iter().map(|d| 1.0 / (size(*d).sqrt() * factor.sqrt())).collect();
    let system = System { a, factor, scale };
    let rows_of = |row: &mut Row, first: usize| {
        let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for i in first..n.min(first + PIECE) {
            let before = columns.len();
            row.make(&system, i, limits, |column, value| {
                columns.push(column);
                values.push(value);
            });
            lengths.push(columns.len() - before);
        }
        (lengths, columns, values)
    };
    let g = by_pieces(n, PIECE, || Row::new(n), rows_of);
    let transpose = g.transposed()?;
    Ok([g, transpose])
}

/// Lengths of rows, columns and values.
pub(super) type Piece = (Vec<usize>, Vec<u32>, Vec<f64>);

/// A matrix whose rows are made piece by piece, from each first one on; a thread has some of what `scratch` gives.
pub(super) fn by_pieces<S>(
    n: usize,
    piece: usize,
    scratch: impl Fn() -> S + Sync + Send,
    make: impl Fn(&mut S, usize) -> Piece + Sync + Send,
) -> Csr {
    let firsts: Vec<usize> = (0..n).step_by(piece).collect();
    joined(n, firsts.into_par_iter().map_init(scratch, make).collect())
}

/// Pieces one after the other.
fn joined(n: usize, pieces: Vec<Piece>) -> Csr {
    let entries = pieces.iter().map(|(_, columns, _)| columns.len()).sum();
    let (mut row_ptr, mut col_idx, mut values) = (vec![0], Vec::with_capacity(entries), Vec::with_capacity(entries));
    for (lengths, columns, of_piece) in pieces {
        let mut end = col_idx.len();
        row_ptr.extend(lengths.into_iter().map(|len| {
            end += len;
            end
        }));
        col_idx.extend(columns);
        values.extend(of_piece);
    }
    Csr::assembled(n, n, row_ptr, col_idx, values)
}

/// The matrix, scaled to a diagonal of ones.
struct System<'a> {
    a: &'a Csr,
    factor: f64,
    /// 1 / √|a_ii|.
    scale: Vec<f64>,
}

impl System<'_> {
    fn is_long(&self, i: usize) -> bool {
        self.a.row(i).0.len() > LONG
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        self.a.get(i, j).map_or(0.0, |v| v * self.factor * self.scale[i] * self.scale[j])
    }

    /// The entries of a row.
    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let (columns, values) = self.a.row(i);
        let scale = self.factor * self.scale[i];
        columns.iter().zip(values).map(move |(j, v)| (*j as usize, v * scale * self.scale[*j as usize]))
    }
}

/// Not in the pattern.
const NOWHERE: u32 = u32::MAX;

/// A row of G that is being made.
struct Row {
    /// The pattern, in the order in which columns came in, and the place of each column in it.
    pattern: Vec<u32>,
    place: Vec<u32>,
    /// The Cholesky factor L of A[S, S], row by row without the upper triangle.
    l: Vec<f64>,
    /// L⁻¹ A[S, i].
    f: Vec<f64>,
    /// The entries of g in the pattern.
    y: Vec<f64>,
    /// The gradient of ψ, and the columns where it was set.
    gradient: Vec<f64>,
    touched: Vec<u32>,
    /// A row of L.
    new: Vec<f64>,
}

impl Row {
    fn new(n: usize) -> Self {
        let [l, f, y, new] = [const { Vec::new() }; 4];
        let [pattern, touched] = [const { Vec::new() }; 2];
        Self { pattern, place: vec![NOWHERE; n], l, f, y, gradient: vec![0.0; n], touched, new }
    }

    /// Makes row i; its columns rise.
    fn make(&mut self, system: &System<'_>, i: usize, limits: Limits, mut entry: impl FnMut(u32, f64)) {
        let mut psi = self.grow(system, i, limits);
        self.pattern.iter().for_each(|column| self.place[*column as usize] = NOWHERE);
        if psi <= TINY || !psi.is_finite() {
            self.pattern.clear();
            psi = 1.0;
        }
        let root = psi.sqrt();
        let mut row: Vec<(u32, f64)> = self.pattern.iter().copied().zip(self.y.iter().copied()).collect();
        row.push((i as u32, 1.0));
        row.sort_unstable_by_key(|(column, _)| *column);
        row.into_iter().for_each(|(column, g)| entry(column, g / root * system.scale[column as usize]));
        for of_row in [&mut self.l, &mut self.f, &mut self.y] {
            of_row.clear();
        }
        self.pattern.clear();
    }

    /// Lets the pattern grow, and finds g; gives ψ.
    fn grow(&mut self, system: &System<'_>, i: usize, limits: Limits) -> f64 {
        let mut psi = 1.0;
        while self.pattern.len() < limits.entries && psi > TINY {
            let columns = self.steepest(system, i, limits.gain * psi, limits.at_once);
            let room = limits.entries - self.pattern.len();
            let before = self.pattern.len();
            columns.into_iter().take(room).for_each(|column| self.add(system, i, column as usize));
            if self.pattern.len() == before {
                break;
            }
            psi = 1.0 - self.f.iter().map(|f| f * f).sum::<f64>();
            self.solve();
        }
        psi
    }

    /// The columns outside the pattern, before i, where the square of the gradient is above `least`: the largest first, at most `count`.
    fn steepest(&mut self, system: &System<'_>, i: usize, least: f64, count: usize) -> Vec<u32> {
        let Self { pattern, place, y, gradient, touched, .. } = self;
        for (row, g) in [(i, 1.0)].into_iter().chain(pattern.iter().map(|j| *j as usize).zip(y.iter().copied())) {
            if row != i && system.is_long(row) {
                continue;
            }
            for (column, value) in system.row(row).take_while(|(column, _)| *column < i) {
                if place[column] == NOWHERE {
                    if gradient[column] == 0.0 {
                        touched.push(column as u32);
                    }
                    gradient[column] += value * g;
                }
            }
        }
        let mut found: Vec<(f64, u32)> = Vec::new();
        for column in touched.drain(..) {
            let slope = std::mem::take(&mut gradient[column as usize]).abs();
            if slope * slope > least {
                found.push((slope, column));
            }
        }
        let steeper = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
        if found.len() > count {
            found.select_nth_unstable_by(count, steeper);
            found.truncate(count);
        }
        found.sort_unstable_by(steeper);
        found.into_iter().map(|(_, column)| column).collect()
    }

    /// Takes a column into the pattern, unless what is left of its pivot is rounding.
    fn add(&mut self, system: &System<'_>, i: usize, column: usize) {
        let Self { pattern, place, l, f, new, .. } = self;
        let size = pattern.len();
        new.clear();
        new.resize(size, 0.0);
        let (mut pivot, mut rhs) = (0.0, 0.0);
        if system.is_long(column) {
            pattern.iter().zip(&mut *new).for_each(|(other, new)| *new = system.get(column, *other as usize));
            (pivot, rhs) = (system.get(column, column), system.get(column, i));
        } else {
            for (other, value) in system.row(column) {
                match place[other] {
                    NOWHERE if other == column => pivot = value,
                    NOWHERE if other == i => rhs = value,
                    NOWHERE => {}
                    k => new[k as usize] = value,
                }
            }
        }
        for k in 0..size {
            let row = &l[k * (k + 1) / 2..(k + 1) * (k + 2) / 2];
            let known: f64 = row[..k].iter().zip(&*new).map(|(l, v)| l * v).sum();
            new[k] = (new[k] - known) / row[k];
        }
        let left = pivot - new.iter().map(|v| v * v).sum::<f64>();
        if left <= TINY || !left.is_finite() {
            return;
        }
        let root = left.sqrt();
        f.push((rhs - new.iter().zip(&*f).map(|(v, f)| v * f).sum::<f64>()) / root);
        l.extend(&*new);
        l.push(root);
        place[column] = size as u32;
        pattern.push(column as u32);
    }

    /// y = −L⁻ᵀ f.
    fn solve(&mut self) {
        let Self { l, f, y, .. } = self;
        y.clear();
        y.extend(f.iter().map(|f| -f));
        for k in (0..y.len()).rev() {
            let row = &l[k * (k + 1) / 2..(k + 1) * (k + 2) / 2];
            y[k] /= row[k];
            let (before, value) = y.split_at_mut(k);
            before.iter_mut().zip(row).for_each(|(y, l)| *y -= l * value[0]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::matrix::gallery;

    /// Grows as far as there is anything.
    const ALL: Limits = Limits { entries: usize::MAX, at_once: 3, gain: 0.0 };

    /// G A Gᵀ, row by row.
    fn applied(a: &Csr, g: &Csr) -> Vec<Vec<f64>> {
        let n = a.n_rows();
        let dense = |row: usize| -> Vec<f64> { (0..n).map(|j| g.get(row, j).unwrap_or(0.0)).collect() };
        (0..n)
            .map(|i| {
                let ag = a.mul_vec(&dense(i));
                (0..n).map(|j| dense(j).iter().zip(&ag).map(|(x, y)| x * y).sum()).collect()
            })
            .collect()
    }

    /// [4 2; 2 5] has L⁻¹ = [1/2 0; −1/4 1/2].
    #[test]
    fn two_rows_by_hand() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 2.0, 2.0, 5.0]).unwrap();
        let [g, transpose] = factors(&a, 1.0, USUAL).unwrap();
        assert_eq!((g.row_ptr(), g.col_idx()), (&[0, 1, 3][..], &[0, 0, 1][..]));
        let close = |found: &[f64], expected: [f64; 3]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15);
        assert!(close(g.values(), [0.5, -0.25, 0.5]), "{:?}", g.values());
        assert_eq!(transpose, g.transposed().unwrap());
        // (4 A)⁻¹ = ¼ Gᵀ G
        assert!(close(factors(&a, 4.0, USUAL).unwrap()[0].values(), [0.25, -0.125, 0.25]));
    }

    /// [2 −1 0; −1 2 −1; 0 −1 2]: the last row of L⁻¹ has an entry where A has none.
    #[test]
    fn three_rows_by_hand() {
        let a = gallery::tridiagonal(3).unwrap();
        let [g, _] = factors(&a, 1.0, ALL).unwrap();
        let expected = [0.5f64.sqrt(), (1.0f64 / 6.0).sqrt(), (2.0f64 / 3.0).sqrt(), 1.0, 2.0, 3.0];
        let found: Vec<f64> =
            g.values().iter().enumerate().map(|(k, v)| if k < 3 { *v } else { v * 12f64.sqrt() }).collect();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?}");
        // with one entry, the row has the least ψ that a pattern of one column allows
        let [g, _] = factors(&a, 1.0, Limits { entries: 1, ..ALL }).unwrap();
        assert_eq!(g.row(2).0, [1, 2]);
        assert!((g.row(2).1[1] - (2.0f64 / 3.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn not_definite() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 2.0, -4.0]).unwrap();
        assert_eq!(factors(&a, 1.0, USUAL).unwrap()[0].values(), [1.0, 0.5]);
        let none = Csr::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
        assert_eq!(factors(&none, 1.0, USUAL).unwrap()[0].values(), [1.0, 1.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_diagonal_is_one(seed in 0u64..1000, n in 2usize..40, degree in 1usize..6, entries in 0usize..12) {
            let a = gallery::random_spd(n, degree, seed).unwrap();
            let [g, _] = factors(&a, 1.0, Limits { entries, at_once: 2, gain: 1e-4 }).unwrap();
            for (i, row) in applied(&a, &g).iter().enumerate() {
                prop_assert!((row[i] - 1.0).abs() < 1e-12);
            }
            prop_assert!((0..n).all(|i| g.row(i).0.len() <= entries + 1));
        }

        #[test]
        fn the_whole_triangle_gives_the_identity(seed in 0u64..1000, n in 2usize..30) {
            let a = gallery::random_spd(n, 3, seed).unwrap();
            let [g, _] = factors(&a, 1.0, ALL).unwrap();
            for (i, row) in applied(&a, &g).iter().enumerate() {
                for (j, v) in row.iter().enumerate() {
                    prop_assert!((v - f64::from(i == j)).abs() < 1e-10, "{i}, {j}: {v}");
                }
            }
        }
    }
}
