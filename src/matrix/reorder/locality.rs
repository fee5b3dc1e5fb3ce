//! How near to each other the elements of x are that neighbouring rows of a product need.

use rayon::prelude::*;

use super::Permutation;
use crate::matrix::Csr;

/// Windows of the sample.
const WINDOWS: usize = 64;

/// Elements of a longer row are all over x in any order; such rows are left out.
const LONG: usize = 1 << 10;

/// Double-precision elements of x in a cache line of 64 bytes.
const LINE: u32 = 8;

/// A node's neighbourhoods are looked at up to so many nodes.
const BALL: usize = 1 << 14;

/// What a sample of windows of [`Locality::ROWS`] neighbouring rows says about a product with a matrix.
///
/// Rows that run at the same time, or shortly after each other, share the cache lines of x that they have in common. On
/// a grid in its natural order a window touches about as many lines as it has rows, or fewer; with unknowns numbered at
/// random, one for each entry.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Locality {
    /// Different cache lines of x, 64 bytes each, that a window touches, on average.
    pub lines: f64,
    /// Other ranks that need an element of x, on average, if each rank has as many rows: elements of halos for each
    /// row. Found from the columns of the element's own row, which for a symmetric pattern are the rows that need it.
    pub sent: f64,
}

impl Locality {
    /// Rows of a window: about what a group of a GPU, or a processor within its first cache, works on at a time.
    pub const ROWS: usize = 64;

    /// Of a square matrix on `ranks` ranks: 64 windows at equal distances, which is less than a millisecond of a thread
    /// for some ten entries a row, whatever the size of the matrix. Rows of more than 1024 entries are left out.
    #[must_use]
    pub fn of(a: &Csr, ranks: usize) -> Self {
        Self::sample(a, ranks, |k| k, |k| k)
    }

    /// That of P A Pᵀ, without making it: 4 bytes a row of memory, and what the inverse of `p` takes.
    ///
    /// # Panics
    /// If `p` has another size.
    #[must_use]
    pub fn reordered(a: &Csr, ranks: usize, p: &Permutation) -> Self {
        assert_eq!(p.len(), a.n_rows(), "one place a row");
        let places = p.inverse();
        Self::sample(a, ranks, |k| p.order()[k] as usize, |k| places.order()[k as usize])
    }

    /// With row `row(k)` at place `k`, and column `j` at place `place(j)`.
    fn sample(a: &Csr, ranks: usize, row: impl Fn(usize) -> usize + Sync, place: impl Fn(u32) -> u32 + Sync) -> Self {
        let n = a.n_rows();
        let windows = WINDOWS.min(n.div_ceil(Self::ROWS));
        let of_window = |k: usize| {
            let first = if windows > 1 { (n - Self::ROWS) * k / (windows - 1) } else { 0 };
            let mut sum = Sum::default();
            let (mut lines, mut others) = (Vec::new(), Vec::new());
            for k in first..n.min(first + Self::ROWS) {
                let (cols, _) = a.row(row(k));
                if cols.len() > LONG {
                    continue;
                }
                sum.rows += 1;
                let rank_of = |row: usize| row * ranks / n;
                let places = cols.iter().map(|&j| place(j));
                others.clear();
                others.extend(places.clone().map(|j| rank_of(j as usize)).filter(|&rank| rank != rank_of(k)));
                others.sort_unstable();
                others.dedup();
                sum.sent += others.len();
                lines.extend(places.map(|j| j / LINE));
            }
            lines.sort_unstable();
            lines.dedup();
            sum.lines = lines.len();
            sum
        };
        let sum = (0..windows).into_par_iter().map(of_window).reduce(Sum::default, Sum::and);
        let a_row = |count: usize| count as f64 / sum.rows.max(1) as f64;
        Self { lines: a_row(sum.lines) * Self::ROWS as f64, sent: a_row(sum.sent) }
    }
}

/// What windows have together.
#[derive(Default)]
struct Sum {
    rows: usize,
    lines: usize,
    sent: usize,
}

impl Sum {
    fn and(self, other: Self) -> Self {
        let Self { rows, lines, sent } = other;
        Self { rows: self.rows + rows, lines: self.lines + lines, sent: self.sent + sent }
    }
}

/// How many times as many nodes are within r + 1 steps of a node as within r, for the largest r + 1 at which there are
/// at most 16,384: the median of three nodes. About 2 or less in two or three dimensions, where neighbourhoods grow
/// like r² or r³; in a random graph near the mean degree, and no order brings the neighbours of neighbours together.
///
/// Looks at no more than the rows of that many nodes.
#[must_use]
pub(crate) fn growth(a: &Csr) -> f64 {
    let n = a.n_rows();
    if n == 0 {
        return 1.0;
    }
    let mut met = vec![false; n];
    let mut all = [1, 3, 5].map(|k| growth_around(a, n * k / 6, &mut met));
    all.sort_by(f64::total_cmp);
    all[1]
}

/// That of one node; `met` is false everywhere, before and after.
fn growth_around(a: &Csr, node: usize, met: &mut [bool]) -> f64 {
    let mut ball = vec![node as u32];
    met[node] = true;
    let (mut inner, mut growth) = (0, f64::INFINITY);
    'steps: loop {
        let whole = ball.len();
        for at in inner..whole {
            for &j in a.row(ball[at] as usize).0 {
                if !std::mem::replace(&mut met[j as usize], true) {
                    ball.push(j);
                }
                if ball.len() > BALL {
                    break 'steps;
                }
            }
        }
        growth = ball.len() as f64 / whole as f64;
        inner = whole;
        if ball.len() == whole {
            break;
        }
    }
    ball.iter().for_each(|&j| met[j as usize] = false);
    growth
}

#[cfg(test)]
mod tests {
    use super::super::{permuted, rcm};
    use super::*;
    use crate::matrix::gallery;

    #[test]
    fn by_hand() {
        // rows 0..63 need the lines of columns 0..64, the last ones those of 63..128
        let a = gallery::tridiagonal(128).unwrap();
        assert_eq!(Locality::of(&a, 1), Locality { lines: 9.0, sent: 0.0 });
        // rows 63 and 64 need each other
        assert_eq!(Locality::of(&a, 2).sent, 2.0 / 128.0);
        let one = gallery::tridiagonal(1).unwrap();
        assert_eq!(Locality::of(&one, 3), Locality { lines: 64.0, sent: 0.0 });
        let none = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        assert_eq!(Locality::of(&none, 2), Locality::default());
        let empty = Csr::new(200, 200, vec![0; 201], vec![], vec![]).unwrap();
        assert_eq!(Locality::of(&empty, 2), Locality::default());
    }

    #[test]
    fn long_rows_are_left_out() {
        let a = gallery::dense_rows(5000, 1).unwrap();
        assert!(a.row_ptr().windows(2).any(|w| w[1] - w[0] == 5000));
        // a line, and the element of the full column
        assert!(Locality::of(&a, 1).lines <= 11.0, "{:?}", Locality::of(&a, 1));
    }

    #[test]
    fn orders_are_told_apart() {
        let a = gallery::poisson3d([30, 30, 30]).unwrap();
        let p = gallery::random_permutation(27_000, 2);
        let b = permuted(&a, &p).unwrap();
        for ranks in [1, 3] {
            let (given, scrambled) = (Locality::of(&a, ranks), Locality::of(&b, ranks));
            assert_eq!(Locality::reordered(&a, ranks, &p), scrambled);
            let found = Locality::reordered(&b, ranks, &rcm(&b).unwrap());
            assert!(given.lines < 64.0 && found.lines < 64.0 && scrambled.lines > 300.0, "{given:?}, {found:?}");
            // some six entries beside the diagonal, each on one of the two other ranks or on neither
            let expected = if ranks == 1 { 0.0 } else { 2.0 * (1.0 - (2.0f64 / 3.0).powf(5.8)) };
            assert!((scrambled.sent - expected).abs() < 0.1 && found.sent < 0.5, "{scrambled:?}, {found:?}");
        }
    }

    #[test]
    fn neighbourhoods_grow() {
        let of = |a: crate::Result<Csr>| growth(&a.unwrap());
        assert!(of(gallery::tridiagonal(100_000)) < 1.01);
        assert!(of(gallery::poisson2d([300, 300])) < 1.1);
        assert!(of(gallery::poisson3d([60, 60, 60])) < 1.3);
        assert!(of(gallery::tetrahedra([20, 20, 20], 8, 1)) < 2.5);
        // all of it is a small ball
        assert_eq!(of(gallery::poisson2d([20, 20])), 1.0);
        assert!(of(gallery::random_spd(100_000, 8, 1)) > 5.0);
        assert!(of(gallery::graph_laplacian(100_000, 4, 2, 1e-2, 1)) > 5.0);
        assert_eq!(growth(&Csr::new(0, 0, vec![0], vec![], vec![]).unwrap()), 1.0);
    }
}
