//! Smoothed aggregation multigrid for symmetric positive definite matrices (Vaněk, Mandel and Brezina 1996, doi 10.1007/BF02238511), and for
//! [others](unsymmetric) that are near M-matrices, on the host, by all threads. Several processes [share](among) large levels. A GPU makes [the same levels](on_device) and applies them; several share
//! large ones, too.
//!
//! Each level has a matrix whose diagonal is 1, and a near-null vector b; the first is D^(−½) A D^(−½), with b = √d. Strong couplings
//! ([`strength`]) join rows to aggregates ([`aggregate`]), which are interpolated from smoothly ([`prolongation`]); the next level has the Galerkin
//! [product](mod@product) Pᵀ A P, scaled again. Where [`nodes`] have several unknowns, or there are several near-null vectors, nodes join to
//! aggregates, and all is done in blocks. Rows that follow from few classes of coordinates have [levels of a lattice](lattice) instead. A [cycle](mod@cycle) smooths by polynomials ([`smoother`]), and ends with a factor of a [`dense`] matrix.
//! Matrices and vectors are in single precision. All is the same for any number of threads.

mod aggregate;
mod among;
mod cycle;
mod dense;
mod exchanged;
mod independent;
mod lattice;
pub(crate) mod levels;
mod nodes;
pub(crate) mod on_device;
mod product;
mod prolongation;
mod smoother;
mod sparse;
mod strength;
#[cfg(test)]
mod tests;
pub(crate) mod unsymmetric;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde::Serialize;

use self::aggregate::Aggregates;
use self::cycle::{Coarsest, Level, Vectors, cycle};
use self::dense::Dense;
use self::exchanged::Exchanged;
use self::lattice::Lattice;
use self::lattice::tables::Tables;
use self::nodes::{Bases, Modes};
use self::product::{product, product_of_blocks};
use self::prolongation::Tentative;
use self::smoother::{OnHost, Step, bounds, damped, largest_eigenvalue, steps};
use self::sparse::{BLOCK, Sparse};
use self::strength::{Strength, par_rows};
use self::unsymmetric::mean;
use super::near_null::NearNull;
use crate::comm::{Processes, processes};
use crate::distributed::share::Share;
use crate::error::Result;
use crate::matrix::Csr;
use crate::timing::in_seconds;

/// A level of so many rows or fewer is the coarsest.
const FEW_ROWS: usize = 300;

/// The most levels.
const MOST_LEVELS: usize = 12;

/// A level is not made if the one above has not so many times its rows.
const LEAST_FACTOR: f64 = 1.25;

/// P is not smoothed where the next matrix would have more than this part of the entries: neighbourhoods in its graph grow too fast.
const DENSE: f64 = 0.8;

/// A column of P on which A is less than this part of its length squared is in the null space.
const NULL: f32 = 1e-6;

/// A level, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LevelInfo {
    /// Rows of its matrix.
    pub rows: usize,
    /// Entries of its matrix.
    pub nnz: usize,
    /// Time to make it.
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub time: Duration,
}

/// The multigrid hierarchy of a matrix, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Hierarchy {
    /// The levels, the first of them that of the matrix itself.
    pub levels: Vec<LevelInfo>,
    /// Entries of all levels over those of the first.
    pub operator_complexity: f64,
    /// Rows of all levels over those of the first.
    pub grid_complexity: f64,
    /// Time to make it.
    #[serde(rename = "seconds", serialize_with = "in_seconds")]
    pub time: Duration,
}

impl Hierarchy {
    fn of(levels: Vec<LevelInfo>, time: Duration) -> Self {
        let over_first = |size: fn(&LevelInfo) -> usize| {
            levels.iter().map(size).sum::<usize>() as f64 / size(&levels[0]).max(1) as f64
        };
        let (operator_complexity, grid_complexity) = (over_first(|level| level.nnz), over_first(|level| level.rows));
        Self { levels, operator_complexity, grid_complexity, time }
    }
}

/// Whether a matrix has rows of a [lattice] that its levels are made of.
pub(crate) fn is_on_lattice(a: &Csr) -> bool {
    a.n_rows() > FEW_ROWS && a.patterns().is_some_and(|patterns| Lattice::of(patterns).is_some())
}

/// M⁻¹ is a cycle.
pub(crate) struct Amg {
    /// d^(−½) of A's diagonal d, of this process's rows,
    scale: Vec<f64>,
    /// and where these begin in vectors of the system.
    first: usize,
    /// The processes that have made it together, if there are several.
    processes: Option<Arc<dyn Processes>>,
    levels: Vec<Level>,
    coarsest: Coarsest,
    vectors: Mutex<Vec<Vectors>>,
    hierarchy: Hierarchy,
}

impl Amg {
    /// Of a matrix whose diagonal is positive, symmetric or not, and which is made of full blocks where nodes have several unknowns.
    pub(crate) fn of(a: &Csr, near_null: &NearNull, is_symmetric: bool) -> Self {
        let mut descent = Descent { is_symmetric, ..Descent::new() };
        let diagonal = a.diagonal();
        let scale = scales(&diagonal);
        let (matrix, modes) = (scaled(a, &scale), first_modes(near_null, &diagonal));
        let coarsest = descent.descend(matrix, modes, Exchanged::Nothing);
        descent.ended(coarsest, scale, None)
    }

    /// Of a matrix whose rows are those of a lattice.
    fn of_lattice(a: &Csr, tables: &Arc<Tables>) -> Self {
        let below = tables.levels.iter().map(|level| level.below.sides.iter().product());
        let sizes = std::iter::once(a.n_rows()).chain(below);
        Self {
            scale: scales(&a.diagonal()),
            first: 0,
            processes: None,
            levels: Vec::new(),
            coarsest: Coarsest::Lattice(Arc::clone(tables)),
            vectors: Mutex::new(sizes.map(|n| Vectors::new(n, Exchanged::Nothing)).collect()),
            hierarchy: tables.hierarchy.clone(),
        }
    }

    /// Its numbers.
    pub(crate) fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// z = M⁻¹ r of the whole system, or the own rows of these vectors. Collective if several processes have made it.
    ///
    /// # Errors
    /// A failed process.
    pub(crate) fn apply(&self, r: &[f64], z: &mut [f64]) -> Result<()> {
        let Self { scale, first, processes, levels, coarsest, vectors, .. } = self;
        let mut vectors = vectors.lock().unwrap_or_else(PoisonError::into_inner);
        let own = *first..*first + scale.len();
        let (r, z) = (&r[own.clone()], &mut z[own]);
        // a power of two keeps all in the range of single precision
        let element = |i: usize| r[i] * scale[i];
        let largest =
            (0..r.len()).into_par_iter().with_min_len(BLOCK).map(|i| element(i).abs()).reduce(|| 0.0, f64::max);
        let largest = processes.as_ref().map_or(Ok(largest), |processes| processes::largest(&**processes, largest))?;
        let unit = if largest.is_normal() { largest.log2().floor().exp2() } else { 1.0 };
        let of_unit = unit.recip();
        vectors[0].set_b(|i| (of_unit * element(i)) as f32)?;
        cycle(levels, coarsest, &mut vectors)?;
        let x = vectors[0].own_x();
        z.par_iter_mut().with_min_len(BLOCK).enumerate().for_each(|(i, z)| *z = unit * f64::from(x[i]) * scale[i]);
        Ok(())
    }
}

/// The way down.
struct Descent {
    infos: Vec<LevelInfo>,
    levels: Vec<Level>,
    vectors: Vec<Vectors>,
    is_symmetric: bool,
    start: Instant,
    /// When the level that comes next was begun.
    began: Instant,
}

impl Descent {
    fn new() -> Self {
        let start = Instant::now();
        Self { infos: Vec::new(), levels: Vec::new(), vectors: Vec::new(), is_symmetric: true, start, began: start }
    }

    /// Takes note of a level.
    fn note(&mut self, rows: usize, nnz: usize) {
        let time = self.began.elapsed();
        self.infos.push(LevelInfo { rows, nnz, time });
        log::info!("level {} of multigrid: {rows} rows, {nnz} entries, {time:?}", self.infos.len());
        self.began = Instant::now();
    }

    /// Has a level that has one below it.
    fn add(&mut self, level: Level, exchanged: Exchanged) {
        self.vectors.push(Vectors::new(level.a.n_rows(), exchanged));
        self.levels.push(level);
    }

    /// The last level, which the smoother ends.
    fn last(&mut self, a: Sparse, steps: [Step; 2], exchanged: Exchanged) -> Coarsest {
        self.vectors.push(Vectors::new(a.n_rows(), exchanged));
        Coarsest::Smoothed(a, steps)
    }

    /// Goes down from a level that this process has all of to the last.
    fn descend(&mut self, mut matrix: Sparse, mut modes: Modes, mut exchanged: Exchanged) -> Coarsest {
        loop {
            self.note(matrix.n_rows(), matrix.nnz());
            if matrix.n_rows() <= FEW_ROWS {
                self.vectors.push(Vectors::new(matrix.n_rows(), exchanged));
                return Coarsest::Exact(if self.is_symmetric { Dense::of(&matrix) } else { Dense::inverted(&matrix) });
            }
            let largest = self.is_symmetric.then(|| {
                let bounds = if modes.is_positive { bounds(&matrix, &modes.values) } else { [f32::INFINITY; 2] };
                let Ok(largest) = largest_eigenvalue(bounds, &mut OnHost::new(&matrix));
                largest
            });
            let steps = largest.map_or_else(damped, steps);
            let next = if self.infos.len() == MOST_LEVELS { None } else { coarser(&matrix, &modes, largest) };
            let Some((p, restriction, next, next_modes)) = next else { return self.last(matrix, steps, exchanged) };
            let a = std::mem::replace(&mut matrix, next);
            self.add(Level { a, steps, p, restriction }, exchanged);
            (modes, exchanged) = (next_modes, Exchanged::Nothing);
        }
    }

    /// The cycle, of these processes or of one.
    fn ended(self, coarsest: Coarsest, scale: Vec<f64>, share: Option<&Share>) -> Amg {
        let Self { infos, levels, vectors, start, .. } = self;
        let (first, processes) = share.map_or((0, None), |share| (share.own.start, Some(Arc::clone(&share.processes))));
        let hierarchy = Hierarchy::of(infos, start.elapsed());
        Amg { scale, first, processes, levels, coarsest, vectors: Mutex::new(vectors), hierarchy }
    }
}

/// d^(−½).
fn scales(diagonal: &[f64]) -> Vec<f64> {
    diagonal.par_iter().with_min_len(BLOCK).map(|d| d.sqrt().recip()).collect()
}

/// √d v for each near-null vector v, whose largest element is 1; of a constant positive.
fn first_modes(near_null: &NearNull, diagonal: &[f64]) -> Modes {
    let (unknowns, width, n) = (near_null.unknowns(), near_null.width(), diagonal.len());
    let most = |mut largest: Vec<f64>, i: usize| {
        let root = diagonal[i].sqrt();
        largest.iter_mut().enumerate().for_each(|(k, l)| *l = l.max((root * near_null.at(i, k)).abs()));
        largest
    };
    let of_both = |one: Vec<f64>, other: Vec<f64>| one.iter().zip(&other).map(|(v, w)| v.max(*w)).collect();
    let values = if near_null.is_constant() {
        let largest = diagonal.par_iter().copied().reduce(|| 0.0, f64::max);
        par_rows(n, |i| ((diagonal[i] / largest).sqrt() as f32).max(f32::MIN_POSITIVE))
    } else {
        let none = || vec![0.0; width];
        let largest = (0..n).into_par_iter().with_min_len(BLOCK).fold(none, most).reduce(none, of_both);
        let units: Vec<f64> = largest.iter().map(|l| if *l > 0.0 { l.recip() } else { 1.0 }).collect();
        let mut values = vec![0f32; n * width];
        values.par_chunks_mut(width).with_min_len(BLOCK).enumerate().for_each(|(i, row)| {
            let root = diagonal[i].sqrt();
            let elements = row.iter_mut().zip(&units).enumerate();
            elements.for_each(|(k, (v, unit))| *v = (unit * (root * near_null.at(i, k))) as f32);
        });
        values
    };
    Modes::new(unknowns, width, values)
}

/// D^(−½) A D^(−½), whose diagonal is 1.
fn scaled(a: &Csr, scale: &[f64]) -> Sparse {
    let (starts, columns) = a.pattern();
    let mut matrix = Sparse::new(a.n_cols(), starts, columns, vec![0.0; a.nnz()]);
    matrix.change(|i, columns, values| {
        for (k, (&j, value)) in columns.iter().zip(values).enumerate() {
            let j = j as usize;
            // the same bits for (i, j) and (j, i)
            *value = if i == j { 1.0 } else { (a.row(i).1[k] * (scale[i] * scale[j])) as f32 };
        }
    });
    matrix
}

/// P, the restriction, the matrix of the next level and its near-null vectors, unless it would hardly be smaller; `largest` bounds the eigenvalues
/// of a symmetric matrix, for which the restriction is Pᵀ, and is none of another.
fn coarser(a: &Sparse, modes: &Modes, largest: Option<f64>) -> Option<(Sparse, Sparse, Sparse, Modes)> {
    let &Modes { unknowns, width, is_positive, .. } = modes;
    let galerkin = |p: Sparse, restriction: Sparse| {
        let next = product(&restriction, &product(a, &p, false), true);
        (p, restriction, next)
    };
    let galerkin_of_blocks = |p: Sparse| {
        let restriction = p.transposed();
        let ap = product_of_blocks(a, &p, [unknowns, unknowns, width]);
        let next = product_of_blocks(&restriction, &ap, [width, unknowns, width]);
        (p, restriction, next)
    };
    let is_worth = |next_rows: usize| next_rows > 0 && next_rows as f64 * LEAST_FACTOR <= a.n_rows() as f64;
    let is_dense = |next: &Sparse| next.nnz() as f64 > DENSE * a.nnz() as f64;
    let (mut levels, mut next_modes);
    if is_positive {
        let b = &modes.values;
        let transpose = largest.is_none().then(|| a.transposed());
        let mean = transpose.as_ref().map(|transpose| mean(a, transpose));
        let symmetric = mean.as_ref().unwrap_or(a);
        let strength = Strength::of(symmetric, b);
        let aggregates = Aggregates::of(symmetric, &strength, &strength.graph(symmetric));
        if !is_worth(aggregates.count) {
            return None;
        }
        let tentative = Tentative::new(&aggregates, b);
        let p = tentative.smoothed(a, &strength, b);
        let restriction =
            transpose.map_or_else(|| p.transposed(), |t| tentative.smoothed(&t, &strength, b).transposed());
        levels = galerkin(p, restriction);
        if is_dense(&levels.2) {
            let p = tentative.matrix(a.n_rows());
            let restriction = p.transposed();
            levels = galerkin(p, restriction);
        }
        next_modes = Modes::new(1, 1, tentative.b);
    } else {
        let aggregates = nodes::aggregates(a, modes);
        if !is_worth(aggregates.count * width) {
            return None;
        }
        let bases = Bases::new(&aggregates, modes);
        levels = galerkin_of_blocks(bases.smoothed(a, largest?));
        if is_dense(&levels.2) {
            levels = galerkin_of_blocks(bases.matrix());
        }
        next_modes = bases.next;
    }
    let (mut p, mut restriction, mut next) = levels;
    let factors = level_factors(&restriction, &next);
    scale_levels([&mut p, &mut restriction, &mut next], &factors);
    next_modes.scale(&factors);
    Some((p, restriction, next, next_modes))
}

/// What the rows of the next level are multiplied by, and its columns, so that its diagonal is 1. What the null space has is left out.
fn level_factors(restriction: &Sparse, next: &Sparse) -> Vec<f32> {
    let (rows, columns) = (next.rows(), restriction.rows());
    par_rows(next.n_rows(), |i| {
        let diagonal = rows.row(i).find(|&(j, _)| j == i).map_or(0.0, |(_, v)| v);
        let length = columns.row(i).map(|(_, v)| v * v).sum::<f32>();
        if diagonal > NULL * length { diagonal.sqrt().recip() } else { 0.0 }
    })
}

/// Multiplies the columns of P, the rows of its transpose, and both of the next matrix.
fn scale_levels([p, restriction, next]: [&mut Sparse; 3], factors: &[f32]) {
    let factor = |j: u32| factors[j as usize];
    p.change(|_, columns, values| values.iter_mut().zip(columns).for_each(|(v, &j)| *v *= factor(j)));
    restriction.change(|i, _, values| values.iter_mut().for_each(|v| *v *= factors[i]));
    next.change(|i, columns, values| {
        for (value, &j) in values.iter_mut().zip(columns) {
            *value = if i == j as usize { 1.0 } else { *value * (factors[i] * factor(j)) };
        }
    });
}
