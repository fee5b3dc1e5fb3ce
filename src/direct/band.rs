//! L U factors of a matrix with a narrow band, in the order given.

use crate::banded::{Band, BandFactor};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::memory::zeros;

/// The most diagonals on either side of the main one.
pub(crate) const NARROW: usize = 8;

/// How much longer than wide a band is that is worth being looked at as one.
const LONGER: usize = 32;

/// The largest distances of an entry to the left and to the right of the diagonal.
///
/// # Errors
/// [`Error::NotBanded`] where one is more than [`NARROW`].
pub(crate) fn widths(a: &Csr) -> Result<(usize, usize)> {
    let (mut lower, mut upper) = (0, 0);
    for i in 0..a.n_rows() {
        let columns = a.row(i).0;
        for j in columns.first().into_iter().chain(columns.last()).map(|&j| j as usize) {
            if i.abs_diff(j) > NARROW {
                return Err(Error::NotBanded { row: i + 1, col: j + 1, most: NARROW });
            }
            (lower, upper) = (lower.max(i.saturating_sub(j)), upper.max(j.saturating_sub(i)));
        }
    }
    Ok((lower, upper))
}

/// Whether a matrix has a narrow band, and is not small beside it.
pub(crate) fn is_narrow(a: &Csr) -> bool {
    a.n_rows() == a.n_cols() && widths(a).is_ok_and(|(lower, upper)| a.n_rows() >= LONGER * (lower + upper + 1))
}

/// What the factors take.
#[derive(Debug)]
pub(super) struct Analysis {
    n: u64,
    lower: u64,
    upper: u64,
}

impl Analysis {
    /// Of a matrix with a [narrow](NARROW) band.
    pub(super) fn new((lower, upper): (usize, usize), n: usize) -> Self {
        Self { n: n as u64, lower: lower as u64, upper: upper as u64 }
    }

    pub(super) fn elements(&self) -> u64 {
        self.n * (2 * self.lower + self.upper + 2)
    }

    pub(super) fn flops(&self) -> f64 {
        2.0 * (self.n * self.lower * (self.lower + self.upper + 1)) as f64
    }

    /// The factors, the band, exchanges and scales.
    pub(super) fn bytes(&self) -> u64 {
        8 * (self.elements() + self.n * (self.lower + self.upper + 1)) + 12 * self.n
    }
}

/// The factors of the matrix whose rows are scaled by powers of 2.
#[derive(Debug)]
pub(super) struct Factor {
    factor: BandFactor<f64>,
    scales: Vec<f64>,
}

impl Factor {
    /// Factorises. Pivots that are nothing but rounding errors beside the largest entry of their row are replaced.
    pub(super) fn new(analysis: &Analysis, a: &Csr) -> Result<Self> {
        let n = a.n_rows();
        let mut scales: Vec<f64> = zeros(n).map_err(|e| e.into_error("the scales of rows"))?;
        let mut band = Band::zeros(n, analysis.lower as usize, analysis.upper as usize);
        for (i, scale) in scales.iter_mut().enumerate() {
            let (columns, values) = a.row(i);
            let largest = values.iter().fold(0.0_f64, |most, v| most.max(v.abs()));
            *scale = if largest.is_normal() { (-largest.log2().floor()).clamp(-1000.0, 1000.0).exp2() } else { 1.0 };
            columns.iter().zip(values).for_each(|(&j, &v)| band.set(i, j as usize, v * *scale));
        }
        match BandFactor::new(&band, Some(f64::EPSILON)) {
            Ok(factor) => Ok(Self { factor, scales }),
            Err(_) => unreachable!("pivots are replaced"),
        }
    }

    pub(super) fn perturbed(&self) -> &[u32] {
        self.factor.replaced()
    }

    pub(super) fn solve(&self, b: &[f64], x: &mut [f64]) {
        x.iter_mut().zip(b.iter().zip(&self.scales)).for_each(|(x, (b, scale))| *x = b * scale);
        self.factor.solve(x);
    }
}
