//! Random graphs and the matrices on them.

use rayon::prelude::*;

use super::random::Stream;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::{assemble, too_large, zeroed};

/// The shifted Laplacian of a random graph with a power law of degrees: rows from very short to very long.
///
/// Node i is tied to `degree` earlier nodes ⌊i uˢ⌋ with u uniform in [0, 1) and s = `skew`, ties that coincide counting
/// once: node j expects about degree (n/j)^(1 − 1/s) / (s − 1) ties beside those that it adds, the share of nodes with
/// k ties falls as k^−(2s − 1)/(s − 1), and the first has about degree n^(1 − 1/s) s / (s − 1). s = 2 is as in
/// preferential attachment: k⁻³ and 2 degree √n. s = 3 is steeper, k^−2.5: of 4 · 10⁶ nodes with degree 4 the first has
/// some 1.5 · 10⁵ ties. With s = 1 all earlier nodes are equally likely. Entries: −1 for a tie, the number of ties plus
/// `shift` on the diagonal. n rows and at most n (2 degree + 1) entries. Symmetric positive definite, smallest
/// eigenvalue `shift`; the condition number is at most 1 + 2 (longest row) / shift. Takes 8 bytes an entry while it
/// sorts the ties, in O(nnz log nnz).
///
/// A.-L. Barabási, R. Albert, "Emergence of scaling in random networks", Science 286 (1999),
/// doi 10.1126/science.286.5439.509; the rate of ties by age is their equation for k_i(t).
///
/// # Errors
/// [`Error::Usage`] if n or `degree` is 0 or too large; [`Error::OutOfMemory`] if the ties don't fit.
pub fn graph_laplacian(n: usize, degree: usize, skew: u32, shift: f64, seed: u64) -> Result<Csr> {
    // products one by one, as `powi` may round otherwise elsewhere
    let ties = Ties::new(n, degree, seed, |i, u| (0..skew).fold(i as f64, |place, _| place * u) as usize)?;
    ties.assemble(|_, _| -1.0, |neighbours, _| neighbours as f64 + shift)
}

/// A random sparse symmetric matrix with a strictly dominant diagonal.
///
/// Every row draws `degree` other columns, all equally likely, entries that coincide counting once, and the pattern is
/// made symmetric; values are uniform in [−1, 1) and a_ii = 1 + Σ |a_ij|. n rows and at most n (2 degree + 1) entries,
/// without any locality. Symmetric positive definite: by Gershgorin's theorem all eigenvalues lie between 1 and
/// 1 + 2 max Σ |a_ij|, so that the condition number is a small multiple of `degree` and hardly grows with n. Takes
/// 8 bytes an entry while it sorts the places, in O(nnz log nnz).
///
/// # Errors
/// [`Error::Usage`] if n or `degree` is 0 or too large; [`Error::OutOfMemory`] if the places don't fit.
pub fn random_spd(n: usize, degree: usize, seed: u64) -> Result<Csr> {
    let others = n.saturating_sub(1);
    let ties = Ties::new(n, degree, seed, |i, u| {
        let skip = 1 + ((others as f64 * u) as usize).min(others.saturating_sub(1));
        (i + skip) % n
    })?;
    let values = Stream::new(seed).fork(u64::MAX);
    let value = |i: usize, j: usize| values.fork(i.min(j) as u64).signed(i.max(j) as u64);
    ties.assemble(value, |_, sum| 1.0 + sum)
}

/// An undirected graph without loops: both directions of every tie as `from · 2³² + to`, sorted.
struct Ties {
    n: usize,
    keys: Vec<u64>,
    /// Where each node's ties begin in `keys`.
    begins: Vec<usize>,
}

impl Ties {
    /// Ties each of `n` nodes to `degree` others `pick(node, u)`, with u uniform in [0, 1); one that is the node itself
    /// is no tie.
    fn new(n: usize, degree: usize, seed: u64, pick: impl Fn(usize, f64) -> usize + Sync) -> Result<Self> {
        /// No tie: sorts last.
        const NONE: u64 = u64::MAX;
        if n == 0 || degree == 0 {
            return Err(Error::Usage(format!("a graph of {n} nodes with {degree} ties each is empty")));
        }
        let size = degree.checked_mul(2).and_then(|d| d.checked_mul(n)).filter(|_| n <= Csr::MAX_DIM);
        let size = size.ok_or_else(|| too_large(format_args!("{n} nodes with {degree} ties each")))?;
        let mut keys: Vec<u64> = zeroed(size, "the ties of the graph")?;
        let stream = Stream::new(seed);
        keys.par_chunks_mut(2 * degree).enumerate().for_each(|(i, keys)| {
            let stream = stream.fork(i as u64);
            for (k, pair) in keys.chunks_exact_mut(2).enumerate() {
                let j = pick(i, stream.unit(k as u64));
                let (from, to) = (i as u64, j as u64);
                pair.copy_from_slice(&if i == j { [NONE; 2] } else { [from << 32 | to, to << 32 | from] });
            }
        });
        keys.par_sort_unstable();
        keys.truncate(keys.partition_point(|k| *k < NONE));
        keys.dedup();
        let mut begins: Vec<usize> = zeroed(n + 1, "the nodes of the graph")?;
        begins.par_iter_mut().enumerate().for_each(|(i, begin)| *begin = keys.partition_point(|k| k >> 32 < i as u64));
        Ok(Self { n, keys, begins })
    }

    /// The matrix with `value(i, j)`, the same for (j, i), for every tie, and `diagonal(k, s)` for a node with k ties
    /// whose absolute values add up to s.
    fn assemble(
        &self,
        value: impl Fn(usize, usize) -> f64 + Sync,
        diagonal: impl Fn(usize, f64) -> f64 + Sync,
    ) -> Result<Csr> {
        let of = |i: usize| &self.keys[self.begins[i]..self.begins[i + 1]];
        assemble(
            self.n,
            |i| of(i).len() + 1,
            |i, row| {
                let column = |key: &u64| (key & u64::from(u32::MAX)) as usize;
                let (before, after) = of(i).split_at(of(i).partition_point(|key| column(key) < i));
                let mut sum = 0.0;
                for j in of(i).iter().map(column) {
                    sum += value(i, j).abs();
                }
                before.iter().map(column).for_each(|j| row.push(j, value(i, j)));
                row.push(i, diagonal(of(i).len(), sum));
                after.iter().map(column).for_each(|j| row.push(j, value(i, j)));
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degrees_follow_a_power_law() {
        let (n, degree) = (40_000, 4);
        let a = graph_laplacian(n, degree, 2, 0.01, 1).unwrap();
        let length = |i: usize| a.row(i).0.len() - 1;
        // about 2 degree √n = 1600 ties for node 0, degree √(n/j) + degree for others
        assert!((1200..1700).contains(&length(0)), "{}", length(0));
        let late = (n - 1000..n).map(length).sum::<usize>() as f64 / 1000.0;
        assert!((3.5..5.0).contains(&late), "{late}");
        let share = |k: usize| (0..n).filter(|i| length(*i) >= k).count() as f64;
        let exponent = (share(10) / share(80)).log2() / 3.0; // of the tail, one less than that of the share itself
        assert!((1.6..2.4).contains(&exponent), "{exponent}");
    }

    #[test]
    fn skew_makes_the_first_rows_longer() {
        let (n, degree) = (40_000, 4);
        let first = |skew| graph_laplacian(n, degree, skew, 0.01, 1).unwrap().row(0).0.len() as f64;
        // node 0 by the formula; fewer as ties coincide
        let expected = |s: f64| degree as f64 * (n as f64).powf(1.0 - 1.0 / s) * s / (s - 1.0);
        for (skew, s) in [(2, 2.0), (3, 3.0), (4, 4.0)] {
            assert!((0.6..1.05).contains(&(first(skew) / expected(s))), "{skew} {} {}", first(skew), expected(s));
        }
        assert!(first(1) < 100.0);
    }

    #[test]
    fn rows_of_the_laplacian_add_up_to_the_shift() {
        let a = graph_laplacian(500, 3, 2, 0.25, 9).unwrap();
        assert!(a.mul_vec(&vec![1.0; 500]).into_iter().all(|s| s == 0.25));
    }

    #[test]
    fn random_rows_dominate_strictly() {
        let a = random_spd(300, 5, 2).unwrap();
        for i in 0..300 {
            let (cols, values) = a.row(i);
            let off: f64 = cols.iter().zip(values).filter(|(j, _)| **j as usize != i).map(|(_, v)| v.abs()).sum();
            let margin = a.get(i, i).unwrap() - off;
            assert!((margin - 1.0).abs() < 1e-12 && cols.len() > 5 - 2);
        }
    }

    #[test]
    fn one_node_has_no_ties() {
        assert_eq!(random_spd(1, 3, 1).unwrap().values(), [1.0]);
        assert_eq!(graph_laplacian(1, 3, 2, 0.5, 1).unwrap().values(), [0.5]);
    }
}
