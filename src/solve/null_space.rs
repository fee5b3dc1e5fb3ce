//! Null vectors that a pattern shows: the indicators of connected parts in which every column sums to 0.
//!
//! So are the constants of a Laplacian whose boundary is closed, of a graph, and of a Markov chain.

mod among;
mod connected;
mod sets;

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;

use self::among::Spans;
use self::connected::{OfPatterns, Rows, are_all_out, connected};
use crate::matrix::Csr;
use crate::verify::{self, two_sum};

/// Of no part.
const NONE: u32 = u32::MAX;

/// Rows that one task looks at.
const CHUNK: usize = 1 << 12;

/// Orthogonal vectors z with zᵀ A = 0, each constant on a connected part of the rows and 0 elsewhere. Not all such vectors: only
/// those. No row is in two of them. 4 bytes a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NullSpace {
    /// The part of each row, or `NONE`.
    part: Vec<u32>,
    /// The rows of each part.
    sizes: Vec<usize>,
    /// Whether A z = 0, too.
    is_symmetric: bool,
    /// If the rows are those of one of several processes, what others have of its parts, whose sizes are those of all processes.
    spans: Option<Spans>,
}

impl NullSpace {
    /// Of a square matrix, which is symmetric up to rounding or not; None if there is none. What rounding may leave of a sum that
    /// would be 0 counts as 0. Of a matrix that is not symmetric, only the vector of ones is looked for.
    ///
    /// O(n) for most symmetric matrices, and O(nnz) at most.
    pub(crate) fn of(a: &Csr, is_symmetric: bool) -> Option<Self> {
        let found = match a.patterns() {
            _ if !is_symmetric => of_general(a),
            Some(patterns) => Some(of_rows(&OfPatterns::new(patterns))),
            None => Some(of_rows(a)),
        };
        found.filter(|found| !found.sizes.is_empty())
    }

    /// How many vectors there are.
    pub(crate) fn dimension(&self) -> usize {
        self.spans.as_ref().map_or(self.sizes.len(), Spans::dimension)
    }

    /// Whether these are null vectors of A, not of its transpose alone.
    pub(crate) fn is_symmetric(&self) -> bool {
        self.is_symmetric
    }

    /// The mean of `v` over each part. O(n), summed in twice the working precision.
    pub(crate) fn means(&self, v: &[f64]) -> Vec<f64> {
        self.sums(v).into_iter().map(|[sum, low]| sum + low).collect()
    }

    /// The sums whose values these are, each of two numbers.
    fn sums(&self, v: &[f64]) -> Vec<[f64; 2]> {
        let mut sums = vec![[0.0; 2]; self.sizes.len()];
        for (part, v) in self.part.iter().zip(v) {
            if let Some([sum, low]) = sums.get_mut(*part as usize) {
                // a part of each element, so that no sum is out of range
                let (next, error) = two_sum(*sum, v / self.sizes[*part as usize] as f64);
                *sum = next;
                *low += error;
            }
        }
        sums
    }

    /// Subtracts `means` from the parts of `v`: with its own means, v − Z Zᵀ v.
    pub(crate) fn subtract(&self, means: &[f64], v: &mut [f64]) {
        v.par_iter_mut().with_min_len(CHUNK).zip(&self.part).for_each(|(v, part)| {
            *v -= means.get(*part as usize).copied().unwrap_or(0.0);
        });
    }

    /// ‖Z Zᵀ v‖₂ of a vector with these means.
    pub(crate) fn norm(&self, means: &[f64]) -> f64 {
        verify::norm_2(&self.lengths(means))
    }

    /// The length of Z Zᵀ v in each part.
    fn lengths(&self, means: &[f64]) -> Vec<f64> {
        means.iter().zip(&self.sizes).map(|(mean, size)| mean * (*size as f64).sqrt()).collect()
    }
}

/// A sum in twice the working precision, with what it takes to tell it from 0.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    sum: f64,
    low: f64,
    /// Σ |v|.
    whole: f64,
    count: u32,
}

impl Sum {
    fn and(self, v: f64) -> Self {
        let (sum, error) = two_sum(self.sum, v);
        Self { sum, low: self.low + error, whole: self.whole + v.abs(), count: self.count + 1 }
    }

    /// Whether it is 0, or what is left where one of the numbers is the sum of the others, rounded.
    fn is_zero(self) -> bool {
        (self.sum + self.low).abs() <= f64::from(self.count) * (f64::EPSILON / 2.0) * self.whole
    }
}

fn sum(values: &[f64]) -> Sum {
    values.iter().fold(Sum::default(), |sum, v| sum.and(*v))
}

/// Connected parts of the rows of a symmetric matrix that all sum to 0.
fn of_rows(rows: &impl Rows) -> NullSpace {
    let none = NullSpace { part: Vec::new(), sizes: Vec::new(), is_symmetric: true, spans: None };
    if are_all_out(rows) {
        return none;
    }
    let (n, sets) = (rows.count(), connected(rows));
    let least = |row: usize| sets.least(row as u32 + 1) as usize;
    let firsts = (0..n).into_par_iter().with_min_len(CHUNK).filter(|row| least(*row) == row + 1);
    let firsts: Vec<usize> = firsts.collect();
    if firsts.is_empty() {
        return none;
    }
    let sizes: Vec<AtomicUsize> = firsts.iter().map(|_| AtomicUsize::new(0)).collect();
    let mut part = vec![NONE; n];
    part.par_chunks_mut(CHUNK).enumerate().for_each(|(chunk, part)| {
        for (row, part) in (chunk * CHUNK..).zip(&mut *part) {
            *part = firsts.binary_search(&least(row).wrapping_sub(1)).map_or(NONE, |number| number as u32);
        }
        // neighbours are mostly of one part
        for run in part.chunk_by(|a, b| a == b) {
            if let Some(size) = sizes.get(run[0] as usize) {
                size.fetch_add(run.len(), Relaxed);
            }
        }
    });
    let sizes = sizes.into_iter().map(AtomicUsize::into_inner).collect();
    NullSpace { part, sizes, is_symmetric: true, spans: None }
}

/// The vector of ones, if all columns sum to 0; not where a row is empty.
fn of_general(a: &Csr) -> Option<NullSpace> {
    let n = a.n_rows();
    // then all entries do, which is seen sooner
    let add = |sum: Sum, v: &f64| sum.and(*v);
    let totals: Vec<f64> = a.values().par_chunks(CHUNK).map(|v| v.iter().fold(Sum::default(), add).sum).collect();
    let whole: f64 = a.values().par_iter().map(|v| v.abs()).sum();
    if n == 0 || totals.iter().sum::<f64>().abs() > a.nnz() as f64 * f64::EPSILON * whole {
        return None;
    }
    let mut sums = vec![Sum::default(); n];
    for (&j, &v) in a.col_idx().iter().zip(a.values()) {
        sums[j as usize] = sums[j as usize].and(v);
    }
    let is_null = sums.iter().all(|sum| sum.count > 0 && sum.is_zero());
    is_null.then(|| NullSpace { part: vec![0; n], sizes: vec![n], is_symmetric: false, spans: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::gallery::{self, Spec};

    fn triplets(n: usize, entries: &[(u32, u32, f64)]) -> Csr {
        let column = |f: fn(&(u32, u32, f64)) -> u32| entries.iter().map(f).collect::<Vec<_>>();
        let values: Vec<f64> = entries.iter().map(|entry| entry.2).collect();
        Csr::from_triplets(n, n, &column(|e| e.0), &column(|e| e.1), &values).unwrap()
    }

    /// Edges of a graph with weights, as its Laplacian; and what is added to the diagonal.
    fn laplacian(n: usize, edges: &[(u32, u32, f64)], added: &[(u32, f64)]) -> Csr {
        let mut entries: Vec<_> = added.iter().map(|&(i, v)| (i, i, v)).collect();
        for &(i, j, w) in edges {
            entries.extend([(i, j, -w), (j, i, -w), (i, i, w), (j, j, w)]);
        }
        triplets(n, &entries)
    }

    /// Three parts, the second of which has 1 more on its diagonal, and a row without entries.
    #[test]
    fn parts_of_a_graph() {
        let edges = [(0, 3, 2.0), (3, 5, 1.0), (1, 4, 5.0), (2, 7, 4.0)];
        let a = laplacian(8, &edges, &[(4, 1.0)]);
        let found = NullSpace::of(&a, true).unwrap();
        assert_eq!(
            found,
            NullSpace {
                part: vec![0, NONE, 1, 0, NONE, 0, NONE, 1],
                sizes: vec![3, 2],
                is_symmetric: true,
                spans: None
            }
        );
        let mut v = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 9.0];
        let means = found.means(&v);
        assert_eq!((found.dimension(), &means[..]), (2, &[4.0, 6.0][..]));
        assert_eq!(found.norm(&means), (3.0f64 * 16.0 + 2.0 * 36.0).sqrt());
        found.subtract(&means, &mut v);
        assert_eq!(v, [-3.0, 2.0, -3.0, 0.0, 5.0, 3.0, 8.0, 3.0]);
        assert_eq!(a.mul_vec(&[1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 0.0, 2.0]), [0.0; 8]);
    }

    /// Beyond what one task looks at, in any order, and with weights whose sums are rounded.
    #[test]
    fn large_parts() {
        // of rows enough for all threads, open and closed: a star of two rings, and what ties one of them to the ground at its far end
        let n = 40_000;
        let star = || (1..n).map(|i| (0, i, 1.0)).chain((1..n - 1).map(|i| (i, i + 1, 2.0)));
        let both: Vec<_> = star().chain(star().map(|(i, j, w)| (i + n, j + n, w))).collect();
        let found = |added: &[(u32, f64)]| NullSpace::of(&laplacian(2 * n as usize, &both, added), true).unwrap();
        assert_eq!(found(&[]).sizes, [n as usize; 2]);
        let one = found(&[(n - 1, 1.0)]);
        assert!(one.sizes == [n as usize] && one.part[..n as usize].iter().all(|part| *part == NONE));
        assert!(one.part[n as usize..].iter().all(|part| *part == 0));
        for scramble in ["", ",scramble=3"] {
            let a = format!("neumann2d:90x70{scramble}").parse::<Spec>().unwrap().build().unwrap();
            assert_eq!(NullSpace::of(&a, true).unwrap().sizes, [6300]);
            let a = format!("poisson2d:90x70{scramble}").parse::<Spec>().unwrap().build().unwrap();
            assert_eq!(NullSpace::of(&a, true), None);
        }
        let w = gallery::random_vector(19_998, 7);
        let edges = |first: u32| (0..9_999).map(move |k| (first + k, first + k + 1));
        let weighted: Vec<_> = edges(0).chain(edges(10_000)).zip(&w).map(|((i, j), w)| (i, j, w.abs() + 0.1)).collect();
        let a = laplacian(20_000, &weighted, &[]);
        assert_eq!(NullSpace::of(&a, true).unwrap().sizes, [10_000, 10_000]);
        // the last row of the second part ties it to the ground
        let a = laplacian(20_000, &weighted, &[(19_999, 1e-14)]);
        assert_eq!(NullSpace::of(&a, true).unwrap().sizes, [10_000]);
    }

    #[test]
    fn patterns_tell_the_same() {
        let grids = ["neumann2d:50", "poisson2d:40x20", "poisson3d27:10", "elasticity3d:8", "band:2000,width=1"];
        for spec in grids {
            let a = spec.parse::<Spec>().unwrap().build().unwrap();
            assert_eq!(of_rows(&OfPatterns::new(a.patterns().unwrap())), of_rows(&a), "{spec}");
        }
        // two lines, of which one is closed at both ends, and rows without entries
        let edges: Vec<_> = (0..999).chain(1000..1999).map(|i| (i, i + 1, 2.0)).collect();
        let a = laplacian(2500, &edges, &[(1999, 1.0)]);
        let found = of_rows(&OfPatterns::new(a.patterns().unwrap()));
        assert_eq!((&found.sizes[..], &found), (&[1000][..], &of_rows(&a)));
    }

    #[test]
    fn of_the_transpose() {
        let a = "markov:30".parse::<Spec>().unwrap().build().unwrap();
        let found = NullSpace::of(&a, false).unwrap();
        assert_eq!((found.sizes.clone(), found.is_symmetric()), (vec![496], false));
        let b = a.mul_vec(&gallery::random_vector(496, 1));
        assert!(found.norm(&found.means(&b)) < 1e-15 * verify::norm_2(&b) * 4.0);
        // all entries sum to 0, and no column does
        assert_eq!(NullSpace::of(&triplets(2, &[(0, 0, 1.0), (1, 1, -1.0)]), false), None);
        assert_eq!(NullSpace::of(&"convection3d:5".parse::<Spec>().unwrap().build().unwrap(), false), None);
        let none = Csr::new(0, 0, vec![0], vec![], vec![]).unwrap();
        assert_eq!([true, false].map(|is_symmetric| NullSpace::of(&none, is_symmetric)), [None, None]);
    }

    /// Means of numbers near the end of the range.
    #[test]
    fn nothing_overflows() {
        let a = laplacian(3, &[(0, 1, 1.0), (1, 2, 1.0)], &[]);
        let found = NullSpace::of(&a, true).unwrap();
        let means = found.means(&[1.5e308; 3]);
        assert!((means[0] / 1.5e308 - 1.0).abs() < 1e-15);
    }
}
