//! Levels that several processes make together, each on its host.
//!
//! A process has the rows that it owns, of whole nodes. Aggregates are of nodes of one process; interpolation is smoothed across. The next matrix takes the
//! rows of P and of A P that belong to the halo from their owners, so that each process has all of its own rows of Pᵀ A P. The first small
//! level is gathered: from there on every process has all, and does the same.

use std::sync::Arc;

use bytemuck::Pod;
use rayon::prelude::*;

use super::aggregate::{Aggregates, NONE};
use super::cycle::Level;
use super::exchanged::{Columns, Exchanged, Gather, Halo};
use super::nodes::{Bases, Modes, condensed};
use super::product::{product, product_of_blocks};
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
    /// What is near the null space, in the own rows.
    modes: Modes,
    /// Its length at each node, with the halo: of one vector, this itself.
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
    /// Of a symmetric matrix whose diagonal is positive, of which `a` is the window of this process, with the diagonal of others' rows, too; of
    /// nodes with so many unknowns, none of which is cut. All have levels of up to `most` entries. Collective.
    ///
    /// # Errors
    /// A failed process.
    pub(super) fn among(share: &Arc<Share>, (a, diagonal): (&Csr, &[f64]), unknowns: usize, most: u64) -> Result<Self> {
        let mut descent = Descent::new();
        let (mut level, scale) = first(share, (a, diagonal), unknowns)?;
        while level.nnz > most && level.rows() > FEW_ROWS as u64 {
            descent.note(level.rows() as usize, level.nnz as usize);
            let bound = largest_eigenvalue_of(&level)?;
            let steps = steps(bound);
            let next = if descent.infos.len() == MOST_LEVELS { None } else { coarser(&level, bound)? };
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
        let (matrix, modes) = gather(level)?;
        let coarsest = descent.descend(matrix, modes, exchanged);
        Ok(descent.ended(coarsest, scale, Some(share)))
    }
}

/// The first level, and d^(−½) of this process's rows.
fn first(share: &Arc<Share>, (a, diagonal): (&Csr, &[f64]), unknowns: usize) -> Result<(Shared, Vec<f64>)> {
    let (processes, own) = (&share.processes, share.own.clone());
    let scale = scales(diagonal);
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
    let in_order = || own.clone().chain(0..own.start).chain(own.end..a.n_rows());
    let others = in_order().skip(own.len()).map(|i| share.global(i)).collect();
    let process = processes.process();
    let columns = Columns { own: share.starts[process]..share.starts[process + 1], others };
    let halo = Halo::new(processes, &share.starts, &columns)?;
    let modes = first_modes(&**processes, &diagonal[own.clone()], unknowns)?;
    let b = at_nodes(&modes, &halo)?;
    let scale = scale[own].to_vec();
    Ok((Shared { a: matrix, columns, halo, modes, b, starts: share.starts.clone(), nnz: share.nnz }, scale))
}

/// √d for each unknown of a node, where d is the diagonal of the own rows, such that the largest element of all processes is 1.
fn first_modes(processes: &dyn Processes, diagonal: &[f64], unknowns: usize) -> Result<Modes> {
    let mut values = vec![0f32; diagonal.len() * unknowns];
    for k in 0..unknowns {
        let highest = diagonal.par_iter().skip(k).step_by(unknowns).copied().reduce(|| 0.0, f64::max);
        let highest = largest(processes, highest)?;
        let of_row = |d: f64| ((d / highest).sqrt() as f32).max(f32::MIN_POSITIVE);
        (k..diagonal.len()).step_by(unknowns).for_each(|i| values[i * unknowns + k] = of_row(diagonal[i]));
    }
    Ok(Modes::new(unknowns, unknowns, values))
}

/// The length of what is near the null space at each node, with the halo.
fn at_nodes(modes: &Modes, halo: &Halo) -> Result<Vec<f32>> {
    let mut b = if modes.is_positive { modes.values.clone() } else { modes.at_nodes() };
    halo.extend_nodes(&mut b, modes.unknowns)?;
    Ok(b)
}

/// A bound of the eigenvalues.
fn largest_eigenvalue_of(Shared { a, columns, halo, modes, b, .. }: &Shared) -> Result<f64> {
    let mut of_all = if modes.is_positive { bounds(a, b) } else { [f32::INFINITY; 2] };
    for bound in &mut of_all {
        *bound = largest(&*halo.processes, (*bound).into())? as f32;
    }
    largest_eigenvalue(of_all, &mut OnProcesses::new(a, columns.own.start, halo))
}

/// P, the own rows of its transpose, and those of the next level, unless that would hardly be smaller; `bound` is of the eigenvalues.
fn coarser(level: &Shared, bound: f64) -> Result<Option<(Sparse, Sparse, Shared)>> {
    let Shared { a, halo, modes, b, .. } = level;
    let &Modes { unknowns, width, is_positive, .. } = modes;
    let (n, processes) = (a.n_rows(), &*halo.processes);
    let of_nodes = (!is_positive).then(|| condensed(a, unknowns));
    let of_nodes = of_nodes.as_ref().unwrap_or(a);
    let mut strength = Strength::of(of_nodes, b);
    halo.extend_nodes(&mut strength.largest, unknowns)?;
    let own = Aggregates::of(of_nodes, &strength, &strength.graph(of_nodes));
    let starts = starts(processes, own.count * width)?;
    let all = starts.last().copied().unwrap_or(0);
    if all == 0 || all as f64 * LEAST_FACTOR > level.rows() as f64 {
        return Ok(None);
    }
    let owned = starts[processes.process()]..starts[processes.process() + 1];
    // those of the halo, by their first rows among all
    let number = |of: &u32| if *of == NONE { u64::MAX } else { owned.start + u64::from(*of) * width as u64 };
    let mut of: Vec<u64> = own.of.iter().map(number).collect();
    halo.extend_nodes(&mut of, unknowns)?;
    let rows = of.iter().filter(|of| **of != u64::MAX).flat_map(|first| *first..first + width as u64);
    let columns = Columns::of(owned, rows);
    let place = |of: &u64| if *of == u64::MAX { NONE } else { columns.place(*of) / width as u32 };
    let aggregates = Aggregates { of: of.iter().map(place).collect(), count: columns.len() / width };
    let next = |modes| Next { level, starts: &starts, columns: &columns, modes };
    if is_positive {
        let tentative = Tentative::new(&own, &b[..n]);
        let mut t = tentative.values.clone();
        halo.extend(&mut t)?;
        let tentative = tentative.among(&aggregates, t);
        let p = tentative.smoothed(a, &strength, b);
        let modes = Modes::new(1, 1, tentative.b.clone());
        return next(modes).made(p, || tentative.matrix(n), product).map(Some);
    }
    let bases = Bases::new(&own, modes);
    let mut t = bases.values.clone();
    halo.extend_rows(&mut t, width)?;
    let bases = bases.among(&aggregates, t);
    let p = bases.smoothed(a, bound);
    // rows of a node of the one, columns of a node of the other
    let in_blocks = |left: &Sparse, right: &Sparse, of_next: bool| {
        product_of_blocks(left, right, [if of_next { width } else { unknowns }, unknowns, width])
    };
    next(bases.next.clone()).made(p, || bases.matrix().first_rows(n), in_blocks).map(Some)
}

/// What the next level is made of.
struct Next<'a> {
    level: &'a Shared,
    /// Where its rows begin on each process, and what columns P has.
    starts: &'a [u64],
    columns: &'a Columns,
    modes: Modes,
}

impl Next<'_> {
    /// P, the own rows of its transpose, and the next level, by `product(left, right, whether that is the last one)`; of P as it is without
    /// smoothing, if that of a smoothed one would have too many entries.
    fn made(
        self,
        mut p: Sparse,
        plain: impl FnOnce() -> Sparse,
        product: impl Fn(&Sparse, &Sparse, bool) -> Sparse,
    ) -> Result<(Sparse, Sparse, Shared)> {
        let Self { level: Shared { a, halo, nnz, .. }, starts, columns, mut modes } = self;
        let processes = &halo.processes;
        let galerkin = |p: &Sparse| {
            let (p, of_p) = halo.with_rows(p.clone(), columns)?;
            let restriction = p.transposed().first_rows(columns.n_own());
            let (ap, of_ap) = halo.with_rows(product(a, &p, false), &of_p)?;
            let next = product(&restriction, &ap, true);
            let nnz = sum(&**processes, next.nnz() as f64)?;
            Result::Ok((restriction, next, of_ap, nnz))
        };
        let mut made = galerkin(&p)?;
        if made.3 > DENSE * *nnz as f64 {
            p = plain();
            made = galerkin(&p)?;
        }
        let (mut restriction, mut next, of_next, nnz) = made;
        // what is left of the columns
        let used = [(&p, columns), (&next, &of_next)];
        let used = used.iter().flat_map(|(rows, columns)| rows.compressed().1.iter().map(|&j| columns.global(j)));
        let left = Columns::of(columns.own.clone(), used);
        columns.renumber(&mut p, &left);
        of_next.renumber(&mut next, &left);
        let halo = Halo::new(processes, starts, &left)?;
        let mut factors = level_factors(&restriction, &next);
        modes.scale(&factors);
        halo.extend(&mut factors)?;
        scale_levels([&mut p, &mut restriction, &mut next], &factors);
        let (b, starts) = (at_nodes(&modes, &halo)?, starts.to_vec());
        let next = Shared { a: next, columns: left, halo, modes, b, starts, nnz: nnz as u64 };
        Ok((p, restriction, next))
    }
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

/// All rows of a level, and what is near its null space, which all processes get.
fn gather(Shared { a, columns, halo, modes, .. }: Shared) -> Result<(Sparse, Modes)> {
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
    let modes = Modes::new(modes.unknowns, modes.width, of_all(processes, modes.values)?);
    let mut all = Sparse::new(lengths.len(), vec![0], Vec::new(), Vec::new());
    all.append(lengths.into_iter().map(|len| len as usize), &numbers, &values);
    Ok((all, modes))
}

/// What all processes have, one part behind the other.
fn of_all<T: Pod + Send + Sync>(processes: &dyn Processes, own: Vec<T>) -> Result<Vec<T>> {
    Ok(exchange(processes, vec![own; processes.count()])?.concat())
}

#[cfg(test)]
mod tests;
