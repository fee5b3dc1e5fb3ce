//! Levels that several processes make together, each on its host, of one positive near-null vector.
//!
//! A process has the rows that it owns. Aggregates are of rows of one process; interpolation is smoothed across. The next matrix takes the
//! rows of P and of A P that belong to the halo from their owners, so that each process has all of its own rows of Pᵀ A P. The first small
//! level is gathered: from there on every process has all, and does the same.

use std::sync::Arc;

use bytemuck::Pod;
use rayon::prelude::*;

use super::aggregate::{Aggregates, NONE};
use super::cycle::Level;
use super::exchanged::{Columns, Exchanged, Gather, Halo};
use super::nodes::Modes;
use super::product::product;
use super::prolongation::Tentative;
use super::smoother::{OnProcesses, bounds, largest_eigenvalue, steps};
use super::sparse::Sparse;
use super::strength::Strength;
use super::{Amg, DENSE, Descent, FEW_ROWS, LEAST_FACTOR, MOST_LEVELS, level_factors, scale_levels, scales};
use crate::comm::Processes;
use crate::comm::processes::{exchange, gathered, largest, sum};
use crate::distributed::share::Share;
use crate::error::Result;
use crate::matrix::Csr;

/// Processes share levels of more entries than that: of fewer, to exchange halos takes longer than to have all.
pub(super) const SHARED_LEVEL: u64 = 1 << 16;

/// A process's rows of a level.
struct Shared {
    /// With its own columns, and those of the halo behind them.
    a: Sparse,
    columns: Columns,
    halo: Halo,
    /// The near-null vector, with its halo.
    b: Vec<f32>,
    /// The first row of each process, and the end of the last.
    starts: Vec<u64>,
    /// Entries of all.
    nnz: u64,
}

impl Shared {
    /// Rows of all processes.
    fn rows(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }
}

impl Amg {
    /// Of a symmetric matrix whose diagonal is positive, of which `a` is the window of this process, with the diagonal
    /// of others' rows, too. All have levels of up to `most` entries.
    /// Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn among(share: &Arc<Share>, a: &Csr, diagonal: &[f64], most: u64) -> Result<Self> {
        let mut descent = Descent::new();
        let (mut level, scale) = first(share, a, diagonal)?;
        while level.nnz > most && level.rows() > FEW_ROWS as u64 {
            descent.note(level.rows() as usize, level.nnz as usize);
            let bound = largest_eigenvalue_of(&level)?;
            let steps = steps(bound);
            let next = if descent.infos.len() == MOST_LEVELS { None } else { coarser(&level)? };
            let Some((p, restriction, next)) = next else {
                let Shared { a, halo, .. } = level;
                let coarsest = descent.last(a, steps, Exchanged::Halo(halo));
                return Ok(descent.ended(coarsest, scale, Some(share)));
            };
            let Shared { a, halo, .. } = std::mem::replace(&mut level, next);
            descent.add(Level { a, steps, p, restriction }, Exchanged::Halo(halo));
        }
        let Shared { columns, starts, .. } = &level;
        let exchanged = Exchanged::All(Gather::new(&share.processes, starts));
        if let Some(Level { p, .. }) = descent.levels.last_mut() {
            let all = starts.last().map_or(0, |all| *all as usize);
            p.renumber(all, |j| columns.global(j) as u32);
        }
        let (matrix, b) = gather(level)?;
        let coarsest = descent.descend(matrix, Modes::new(1, 1, b), exchanged);
        Ok(descent.ended(coarsest, scale, Some(share)))
    }
}

/// The first level, and d^(−½) of this process's rows.
fn first(share: &Arc<Share>, a: &Csr, diagonal: &[f64]) -> Result<(Shared, Vec<f64>)> {
    let (processes, own) = (&share.processes, share.own.clone());
    let scale = scales(diagonal);
    let highest = largest(&**processes, diagonal.par_iter().copied().reduce(|| 0.0, f64::max))?;
    // the window has others' rows before its own, too
    let place = |j: usize| {
        if j < own.start {
            own.len() + j
        } else if j < own.end {
            j - own.start
        } else {
            j
        }
    };
    let entries = a.row_ptr()[own.start]..a.row_ptr()[own.end];
    let starts: Vec<usize> = a.row_ptr()[own.start..=own.end].iter().map(|start| start - entries.start).collect();
    let columns: Vec<u32> = a.col_idx()[entries].par_iter().map(|&j| place(j as usize) as u32).collect();
    let nnz = columns.len();
    let mut matrix = Sparse::new(a.n_cols(), starts, columns, vec![0.0; nnz]);
    matrix.change(|i, _, values| {
        let (i, (columns, of_row)) = (own.start + i, a.row(own.start + i));
        for ((&j, v), value) in columns.iter().zip(of_row).zip(values) {
            let j = j as usize;
            // the same bits for (i, j) and (j, i)
            *value = if i == j { 1.0 } else { (v * (scale[i] * scale[j])) as f32 };
        }
    });
    let of_row = |d: f64| ((d / highest).sqrt() as f32).max(f32::MIN_POSITIVE);
    let in_order = || own.clone().chain(0..own.start).chain(own.end..a.n_rows());
    let b = in_order().map(|i| of_row(diagonal[i])).collect();
    let others = in_order().skip(own.len()).map(|i| share.global(i)).collect();
    let process = processes.process();
    let columns = Columns { own: share.starts[process]..share.starts[process + 1], others };
    let halo = Halo::new(processes, &share.starts, &columns)?;
    let scale = scale[own].to_vec();
    Ok((Shared { a: matrix, columns, halo, b, starts: share.starts.clone(), nnz: share.nnz }, scale))
}

/// A bound of the eigenvalues.
fn largest_eigenvalue_of(Shared { a, columns, halo, b, .. }: &Shared) -> Result<f64> {
    let mut of_all = [0f32; 2];
    for (of_all, own) in of_all.iter_mut().zip(bounds(a, b)) {
        *of_all = largest(&*halo.processes, own.into())? as f32;
    }
    largest_eigenvalue(of_all, &mut OnProcesses::new(a, columns.own.start, halo))
}

/// P, the own rows of its transpose, and those of the next level, unless that would hardly be smaller.
fn coarser(level: &Shared) -> Result<Option<(Sparse, Sparse, Shared)>> {
    let Shared { a, halo, b, .. } = level;
    let (n, processes) = (a.n_rows(), &halo.processes);
    let mut strength = Strength::of(a, b);
    halo.extend(&mut strength.largest)?;
    let own = Aggregates::of(a, &strength, &strength.graph(a));
    let starts = starts(&**processes, own.count)?;
    let all = starts.last().copied().unwrap_or(0);
    if all == 0 || all as f64 * LEAST_FACTOR > level.rows() as f64 {
        return Ok(None);
    }
    let process = processes.process();
    let owned = starts[process]..starts[process + 1];
    let tentative = Tentative::new(&own, &b[..n]);
    // those of the halo, by their numbers among all
    let number = |of: &u32| if *of == NONE { u64::MAX } else { owned.start + u64::from(*of) };
    let (mut of, mut t): (Vec<u64>, _) = (own.of.iter().map(number).collect(), tentative.values.clone());
    halo.extend(&mut of)?;
    halo.extend(&mut t)?;
    let columns = Columns::of(owned, of.iter().copied().filter(|of| *of != u64::MAX));
    let place = |of: &u64| if *of == u64::MAX { NONE } else { columns.place(*of) };
    let aggregates = Aggregates { of: of.iter().map(place).collect(), count: columns.len() };
    let tentative = tentative.among(&aggregates, t);
    let galerkin = |p: &Sparse| {
        let (p, of_p) = halo.with_rows(p.clone(), &columns)?;
        let restriction = p.transposed().first_rows(own.count);
        let (ap, of_ap) = halo.with_rows(product(a, &p, false), &of_p)?;
        let next = product(&restriction, &ap, true);
        let nnz = sum(&**processes, next.nnz() as f64)?;
        Result::Ok((restriction, next, of_ap, nnz))
    };
    let mut p = tentative.smoothed(a, &strength, b);
    let mut made = galerkin(&p)?;
    if made.3 > DENSE * level.nnz as f64 {
        p = tentative.matrix(n);
        made = galerkin(&p)?;
    }
    let (mut restriction, mut next, of_next, nnz) = made;
    // what is left of the columns
    let used = [(&p, &columns), (&next, &of_next)];
    let used = used.iter().flat_map(|(rows, columns)| rows.compressed().1.iter().map(|&j| columns.global(j)));
    let left = Columns::of(columns.own.clone(), used);
    columns.renumber(&mut p, &left);
    of_next.renumber(&mut next, &left);
    let halo = Halo::new(processes, &starts, &left)?;
    let mut factors = level_factors(&restriction, &next);
    let mut modes = Modes::new(1, 1, tentative.b);
    modes.scale(&factors);
    halo.extend(&mut factors)?;
    halo.extend(&mut modes.values)?;
    scale_levels([&mut p, &mut restriction, &mut next], &factors);
    let next = Shared { a: next, columns: left, halo, b: modes.values, starts, nnz: nnz as u64 };
    Ok(Some((p, restriction, next)))
}

/// Where each process's part begins, of which this one has so many elements, and the end of the last.
fn starts(processes: &dyn Processes, own: usize) -> Result<Vec<u64>> {
    let counts = gathered(processes, own as u64)?;
    let ends = counts.iter().scan(0, |end, count| {
        *end += count;
        Some(*end)
    });
    Ok([0].into_iter().chain(ends).collect())
}

/// All rows of a level, and its near-null vector, which all processes get.
fn gather(Shared { a, columns, halo, b, .. }: Shared) -> Result<(Sparse, Vec<f32>)> {
    let (processes, rows) = (&*halo.processes, a.rows());
    let lengths: Vec<u64> = (0..a.n_rows()).map(|i| rows.arrays(i).0.len() as u64).collect();
    // in the order of their numbers among all: that of one process
    let entries = |i: usize| {
        let mut entries: Vec<(u32, f32)> = rows.row(i).map(|(j, v)| (columns.global(j as u32) as u32, v)).collect();
        entries.sort_unstable_by_key(|(j, _)| *j);
        entries
    };
    let (numbers, values) = (0..a.n_rows()).flat_map(entries).unzip();
    let lengths = of_all(processes, lengths)?;
    let (numbers, values): (Vec<u32>, Vec<f32>) = (of_all(processes, numbers)?, of_all(processes, values)?);
    let b = of_all(processes, b[..a.n_rows()].to_vec())?;
    let mut all = Sparse::new(lengths.len(), vec![0], Vec::new(), Vec::new());
    all.append(lengths.into_iter().map(|len| len as usize), &numbers, &values);
    Ok((all, b))
}

/// What all processes have, one part behind the other.
fn of_all<T: Pod + Send + Sync>(processes: &dyn Processes, own: Vec<T>) -> Result<Vec<T>> {
    Ok(exchange(processes, vec![own; processes.count()])?.concat())
}

#[cfg(test)]
mod tests;
