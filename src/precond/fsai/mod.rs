//! The factorised sparse approximate inverse (Kolotilina and Yeremin 1993, doi 10.1137/0614004): M⁻¹ = Gᵀ G with a sparse lower triangular
//! G, symmetric and positive definite whatever its entries are, and applied by two products.
//!
//! With A scaled to a diagonal of ones, a row of G is g / √ψ, where g has a 1 on the diagonal and the least ψ = g A gᵀ that its pattern S
//! allows: A[S, S] y = −A[S, i]. So G A Gᵀ has a diagonal of ones; with the whole lower triangle it is the identity. The pattern grows
//! (Janna and Ferronato 2011, doi 10.1137/100810368): of the columns where the gradient A gᵀ of ψ is largest, some at a time come in, as long
//! as each of them lowers ψ by a part that counts. Rows are independent of each other.

mod on_device;

use rayon::prelude::*;

use crate::device::Info;
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

/// G and Gᵀ of `factor` A, made on one of these devices if it is a GPU, else on the host. Where what a row needs of A is not positive definite,
/// the row is that of the diagonal: the method will see that A is not.
///
/// # Errors
/// Not enough memory.
pub(super) fn factors<'a>(
    a: &Csr,
    factor: f64,
    limits: Limits,
    devices: impl IntoIterator<Item = &'a Info>,
) -> Result<[Csr; 2]> {
    let n = a.n_rows();
    let system = System::of(a, factor);
    let g = match on_device::factor(devices, &system, limits) {
        Some(pieces) => joined(n, pieces),
        None => joined(n, rows_by_pieces(&system, limits, n, |k| k)),
    };
    let transpose = g.transposed()?;
    Ok([g, transpose])
}

/// These rows, one behind the other.
fn rows(system: &System<'_>, limits: Limits, rows: &[usize]) -> Piece {
    let mut all = Piece::default();
    for (lengths, columns, values) in rows_by_pieces(system, limits, rows.len(), |k| rows[k]) {
        all.0.extend(lengths);
        all.1.extend(columns);
        all.2.extend(values);
    }
    all
}

/// `count` rows, of which the k-th is row `row`(k).
fn rows_by_pieces(
    system: &System<'_>,
    limits: Limits,
    count: usize,
    row: impl Fn(usize) -> usize + Sync,
) -> Vec<Piece> {
    pieces(
        count,
        PIECE,
        || Row::new(system.a.n_rows()),
        |of_row, first| {
            let (mut lengths, mut columns, mut values) = Piece::default();
            for k in first..count.min(first + PIECE) {
                let before = columns.len();
                of_row.make(system, row(k), limits, |column, value| {
                    columns.push(column);
                    values.push(value);
                });
                lengths.push(columns.len() - before);
            }
            (lengths, columns, values)
        },
    )
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
    joined(n, pieces(n, piece, scratch, make))
}

/// These pieces one by one.
fn pieces<S>(
    n: usize,
    piece: usize,
    scratch: impl Fn() -> S + Sync + Send,
    make: impl Fn(&mut S, usize) -> Piece + Sync + Send,
) -> Vec<Piece> {
    let firsts: Vec<usize> = (0..n).step_by(piece).collect();
    firsts.into_par_iter().map_init(scratch, make).collect()
}

/// Pieces one after the other.
fn joined(n: usize, pieces: Vec<Piece>) -> Csr {
    let mut row_ptr = Vec::with_capacity(n + 1);
    row_ptr.push(0);
    let mut end = 0;
    row_ptr.extend(pieces.iter().flat_map(|(lengths, ..)| lengths).map(|len| {
        end += len;
        end
    }));
    let (mut col_idx, mut values) = (vec![0; end], vec![0.0; end]);
    let (mut columns_left, mut values_left) = (col_idx.as_mut_slice(), values.as_mut_slice());
    let mut places = Vec::with_capacity(pieces.len());
    for (_, columns, _) in &pieces {
        let (own_columns, own_values);
        (own_columns, columns_left) = columns_left.split_at_mut(columns.len());
        (own_values, values_left) = values_left.split_at_mut(columns.len());
        places.push((own_columns, own_values));
    }
    places.into_par_iter().zip(pieces).for_each(|((to_columns, to_values), (_, columns, values))| {
        to_columns.copy_from_slice(&columns);
        to_values.copy_from_slice(&values);
    });
    Csr::assembled(n, n, row_ptr, col_idx, values)
}

/// The matrix, scaled to a diagonal of ones.
struct System<'a> {
    a: &'a Csr,
    factor: f64,
    /// 1 / √|a_ii|.
    scale: Vec<f64>,
}

impl<'a> System<'a> {
    fn of(a: &'a Csr, factor: f64) -> Self {
        let size = |d: f64| if d == 0.0 { 1.0 } else { d.abs() };
        let scale = a.diagonal().par_iter().map(|d| 1.0 / (size(*d).sqrt() * factor.sqrt())).collect();
        Self { a, factor, scale }
    }

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
            new[k] = row[..k].iter().zip(&*new).fold(new[k], |left, (l, v)| left - l * v) / row[k];
        }
        let left = new.iter().fold(pivot, |left, v| left - v * v);
        if left <= TINY || !left.is_finite() {
            return;
        }
        let root = left.sqrt();
        f.push(new.iter().zip(&*f).fold(rhs, |left, (v, f)| left - v * f) / root);
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
        let [g, transpose] = factors(&a, 1.0, USUAL, None).unwrap();
        assert_eq!((g.row_ptr(), g.col_idx()), (&[0, 1, 3][..], &[0, 0, 1][..]));
        let close = |found: &[f64], expected: [f64; 3]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15);
        assert!(close(g.values(), [0.5, -0.25, 0.5]), "{:?}", g.values());
        assert_eq!(transpose, g.transposed().unwrap());
        // (4 A)⁻¹ = ¼ Gᵀ G
        assert!(close(factors(&a, 4.0, USUAL, None).unwrap()[0].values(), [0.25, -0.125, 0.25]));
    }

    /// [2 −1 0; −1 2 −1; 0 −1 2]: the last row of L⁻¹ has an entry where A has none.
    #[test]
    fn three_rows_by_hand() {
        let a = gallery::tridiagonal(3).unwrap();
        let [g, _] = factors(&a, 1.0, ALL, None).unwrap();
        let expected = [0.5f64.sqrt(), (1.0f64 / 6.0).sqrt(), (2.0f64 / 3.0).sqrt(), 1.0, 2.0, 3.0];
        let found: Vec<f64> =
            g.values().iter().enumerate().map(|(k, v)| if k < 3 { *v } else { v * 12f64.sqrt() }).collect();
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14), "{found:?}");
        // with one entry, the row has the least ψ that a pattern of one column allows
        let [g, _] = factors(&a, 1.0, Limits { entries: 1, ..ALL }, None).unwrap();
        assert_eq!(g.row(2).0, [1, 2]);
        assert!((g.row(2).1[1] - (2.0f64 / 3.0).sqrt()).abs() < 1e-15);
    }

    #[test]
    fn not_definite() {
        let a = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 2.0, -4.0]).unwrap();
        assert_eq!(factors(&a, 1.0, USUAL, None).unwrap()[0].values(), [1.0, 0.5]);
        let none = Csr::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
        assert_eq!(factors(&none, 1.0, USUAL, None).unwrap()[0].values(), [1.0, 1.0]);
    }

    /// The bits of the host's, rounded.
    #[test]
    fn rows_of_a_device() {
        let device = crate::device::list().devices.remove(0);
        // the last rows are longer than any table, and as long as they may be to tell which columns come next
        let mut arrow: Vec<(u32, u32, f64)> = (0..2600).map(|i| (i, i, 4.0)).collect();
        arrow.extend((0..2500).flat_map(|i| [(2599, i, -0.05), (i, 2599, -0.05)]));
        arrow.extend((0..2500).step_by(3).flat_map(|i| [(2550, i, 0.1), (i, 2550, 0.1)]));
        let [rows, columns] =
            [|e: &(u32, u32, f64)| e.0, |e: &(u32, u32, f64)| e.1].map(|of| arrow.iter().map(of).collect::<Vec<_>>());
        let values: Vec<f64> = arrow.iter().map(|e| e.2).collect();
        let arrow = Csr::from_triplets(2600, 2600, &rows, &columns, &values).unwrap();
        let none = Csr::new(3, 3, vec![0; 4], vec![], vec![]).unwrap();
        let turned = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 2.0, 2.0, -4.0]).unwrap();
        let mut all = vec![gallery::poisson2d([17, 13]).unwrap(), turned, gallery::tridiagonal(1).unwrap()];
        all.extend([2, 31, 400].map(|n| gallery::random_spd(n, 7, n as u64).unwrap()));
        let check = |a: &Csr, limits: Limits| {
            let system = System::of(a, 3.0);
            let made = joined(a.n_rows(), on_device::made(&device, &system, limits).unwrap().unwrap());
            let expected = joined(a.n_rows(), rows_by_pieces(&system, limits, a.n_rows(), |k| k));
            assert_eq!((made.row_ptr(), made.col_idx()), (expected.row_ptr(), expected.col_idx()), "{limits:?}");
            let rounded = expected.values().iter().map(|v| f64::from(*v as f32));
            assert!(made.values().iter().copied().eq(rounded), "{} rows, {limits:?}", a.n_rows());
        };
        check(&arrow, USUAL);
        for a in &all {
            check(a, USUAL);
            check(a, Limits { at_once: 1, ..USUAL });
            check(a, Limits { entries: 3, at_once: 2, gain: 0.0 });
        }
        assert!(on_device::factor(&[device], &System::of(&none, 1.0), USUAL).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn the_diagonal_is_one(seed in 0u64..1000, n in 2usize..40, degree in 1usize..6, entries in 0usize..12) {
            let a = gallery::random_spd(n, degree, seed).unwrap();
            let [g, _] = factors(&a, 1.0, Limits { entries, at_once: 2, gain: 1e-4 }, None).unwrap();
            for (i, row) in applied(&a, &g).iter().enumerate() {
                prop_assert!((row[i] - 1.0).abs() < 1e-12);
            }
            prop_assert!((0..n).all(|i| g.row(i).0.len() <= entries + 1));
        }

        #[test]
        fn the_whole_triangle_gives_the_identity(seed in 0u64..1000, n in 2usize..30) {
            let a = gallery::random_spd(n, 3, seed).unwrap();
            let [g, _] = factors(&a, 1.0, ALL, None).unwrap();
            for (i, row) in applied(&a, &g).iter().enumerate() {
                for (j, v) in row.iter().enumerate() {
                    prop_assert!((v - f64::from(i == j)).abs() < 1e-10, "{i}, {j}: {v}");
                }
            }
        }
    }
}
