//! Systems on the host with exchanges of rows, and residuals.

use rayon::prelude::*;

use super::host::{gathered, scatter};
use super::systems::{Layout, Systems};
use crate::banded::{Band, BandFactor, Work, eliminate};
use crate::error::{Error, Result};
use crate::real::Real;

/// Solves all systems.
pub(super) fn solve<T: Real>(systems: &Systems<'_, T>, d: &[T], x: &mut [T]) -> Result<()> {
    let shape = systems.shape;
    if shape.is_empty() {
        return Ok(());
    }
    if shape.layout == Layout::Contiguous {
        let solve = |work: &mut Work<T>, (system, x): (usize, &mut [T])| {
            x.copy_from_slice(&d[system * shape.size..(system + 1) * shape.size]);
            one(systems, system, x, work).err().map(|row| (system, row))
        };
        let failed = x.par_chunks_mut(shape.size).enumerate().map_init(Work::default, solve).filter_map(|f| f).min();
        return failed.map_or(Ok(()), |(system, row)| Err(Error::SingularSystem { system, row }));
    }
    let all: Vec<usize> = (0..shape.systems).collect();
    some(systems, &all, d, x)
}

/// Solves some of them.
pub(super) fn some<T: Real>(systems: &Systems<'_, T>, which: &[usize], d: &[T], x: &mut [T]) -> Result<()> {
    const AT_ONCE: usize = 256;
    for which in which.chunks(AT_ONCE) {
        let solve = |work: &mut Work<T>, &system: &usize| {
            let mut own = gathered(systems, d, system);
            one(systems, system, &mut own, work).map_err(|row| Error::SingularSystem { system, row })?;
            Ok((system, own))
        };
        let solved: Vec<_> = which.par_iter().map_init(Work::default, solve).collect::<Result<_>>()?;
        solved.iter().for_each(|(system, own)| scatter(systems, own, *system, x));
    }
    Ok(())
}

/// One from and to `x`. A periodic one is folded in the middle, row 0, n − 1, 1, n − 2 …, so that it has five diagonals.
fn one<T: Real>(
    systems: &Systems<'_, T>,
    system: usize,
    x: &mut [T],
    work: &mut Work<T>,
) -> std::result::Result<(), usize> {
    let n = x.len();
    if !systems.shape.periodic {
        return eliminate(|row| systems.row(system, row), x, work);
    }
    let place = |row: usize| if 2 * row < n { 2 * row } else { 2 * (n - 1 - row) + 1 };
    let (mut band, mut folded) = (Band::zeros(n, 2, 2), vec![T::default(); n]);
    for row in 0..n {
        let neighbours = [(row + n - 1) % n, row, (row + 1) % n];
        for (column, value) in neighbours.into_iter().zip(systems.row(system, row)) {
            let (i, j) = (place(row), place(column));
            band.set(i, j, band.get(i, j) + value);
        }
        folded[place(row)] = x[row];
    }
    let unplaced = |k: usize| if k.is_multiple_of(2) { k / 2 } else { n - 1 - k / 2 };
    BandFactor::new(&band, None).map_err(unplaced)?.solve(&mut folded);
    (0..n).for_each(|row| x[row] = folded[place(row)]);
    Ok(())
}

/// The normwise backward error of each system: the largest |d − A x| of a row, over the largest sum of the absolute values that it is made of;
/// infinite, if x has what is no number. Reads 5 elements a row.
pub(super) fn backward_errors<T: Real>(systems: &Systems<'_, T>, d: &[T], x: &[T]) -> Vec<f64> {
    let shape = systems.shape;
    let n = shape.size;
    let of_rows = |system: usize, rows: std::ops::Range<usize>| {
        let (mut residual, mut scale) = (0.0_f64, 0.0_f64);
        for row in rows {
            let [a, b, c] = systems.row(system, row);
            let x = |row: usize| x[shape.at(system, row)];
            let terms = [a * x((row + n - 1) % n), b * x(row), c * x((row + 1) % n)];
            let d = d[shape.at(system, row)];
            let r = (d - terms[0] - terms[1] - terms[2]).to_f64().abs();
            residual = residual.max(if r.is_nan() { f64::INFINITY } else { r });
            scale = scale.max(terms.iter().chain([&d]).map(|v| v.to_f64().abs()).sum());
        }
        (residual, scale)
    };
    const ROWS: usize = 1 << 14;
    let of_system = |system: usize| {
        let parts = (0..n.div_ceil(ROWS)).into_par_iter().map(|k| of_rows(system, k * ROWS..n.min((k + 1) * ROWS)));
        let (residual, scale) = parts.reduce(|| (0.0, 0.0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
        backward_error(residual, scale)
    };
    (0..shape.systems).into_par_iter().with_min_len((1 << 12) / n.max(1) + 1).map(of_system).collect()
}

/// The backward error for such a residual beside numbers of such a size.
pub(super) fn backward_error(residual: f64, scale: f64) -> f64 {
    if residual == 0.0 {
        0.0
    } else if scale.is_finite() {
        residual / scale
    } else {
        f64::INFINITY
    }
}
