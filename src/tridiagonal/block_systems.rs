//! A batch of block tridiagonal systems, checked.

use std::borrow::Cow;

use rayon::prelude::*;
use serde::Serialize;

use super::systems::Layout;
use crate::banded::{Band, LARGEST_BLOCK};
use crate::error::{Error, Result};
use crate::real::Real;
use crate::setters::setters;

/// How many block tridiagonal systems there are, and of what form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlockShape {
    /// Systems.
    pub systems: usize,
    /// Rows of blocks of each.
    pub blocks: usize,
    /// Rows of a block, 1 to 8.
    pub order: usize,
    /// How they lie in an array: number k of a system's s array, of which a block has order² side by side, row by row, is element
    /// s · (numbers of a system) + k, or, interleaved, k · systems + s.
    pub layout: Layout,
}

setters! {
    BlockShape:
    with_layout = layout: Layout;
}

impl BlockShape {
    /// So many systems of so many rows of blocks of this order, one after the other.
    #[must_use]
    pub fn new(systems: usize, blocks: usize, order: usize) -> Self {
        Self { systems, blocks, order, layout: Layout::Contiguous }
    }

    /// Rows of a system.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.blocks * self.order
    }

    /// Elements of each array of coefficients, and of one of right-hand sides.
    #[must_use]
    pub fn lens(&self) -> [usize; 2] {
        let rows = self.systems * self.rows();
        [rows * self.order, rows]
    }

    /// Where a number of a system is in an array that has `each` of them.
    pub(crate) fn at(&self, system: usize, number: usize, each: usize) -> usize {
        match self.layout {
            Layout::Contiguous => system * each + number,
            Layout::Interleaved => number * self.systems + system,
        }
    }
}

/// The coefficients of systems `A(i) x_{i−1} + B(i) x_i + C(i) x_{i+1} = d(i)`, i = 0 … blocks − 1, whose blocks are dense, of order 1 to 8, and
/// whose unknowns are vectors of as many elements. Three arrays of systems · blocks · order² elements.
#[derive(Debug, Clone)]
pub struct BlockSystems<'a, T: Real> {
    pub(super) shape: BlockShape,
    /// Rows of a system that are the caller's; others behind them are those of x = 0.
    pub(super) rows: usize,
    pub(super) coefficients: [Cow<'a, [T]>; 3],
}

impl<'a, T: Real> BlockSystems<'a, T> {
    /// Takes the arrays A, B and C, after a look at each element.
    ///
    /// # Errors
    /// [`Error::Usage`] for blocks of no rows or more than 8, arrays of other lengths, and what is not 0 in A(0) or the last C;
    /// [`Error::NotFinite`].
    pub fn new(shape: BlockShape, coefficients: [&'a [T]; 3]) -> Result<Self> {
        let BlockShape { systems, blocks, order, .. } = shape;
        if !(1..=LARGEST_BLOCK).contains(&order) {
            return Err(Error::Usage(format!(
                "blocks of order {order} are not possible: from 1 to {LARGEST_BLOCK} are"
            )));
        }
        let [len, _] = shape.lens();
        let (square, each) = (order * order, blocks * order * order);
        for (name, array, outside) in [("A", 0, Some(0)), ("B", 1, None), ("C", 2, blocks.checked_sub(1))]
            .map(|(name, k, outside)| (name, coefficients[k], outside))
        {
            if array.len() != len {
                return Err(Error::Usage(format!(
                    "{name} has {} elements; {systems} systems of {blocks} blocks of order {order} have {len}",
                    array.len()
                )));
            }
            if let Some(at) = array.par_iter().position_first(|v| !v.to_f64().is_finite()) {
                let (system, number) = match shape.layout {
                    Layout::Contiguous => (at / each, at % each),
                    Layout::Interleaved => (at % systems, at / systems),
                };
                let what = format!("block {} of {name} of system {system}", number / square);
                return Err(Error::NotFinite { what, index: number % square + 1, value: array[at].to_f64() });
            }
            let Some(block) = outside.filter(|_| blocks > 0) else { continue };
            let is_zero = |system: &usize| {
                (0..square).all(|k| array[shape.at(*system, block * square + k, each)] == T::default())
            };
            if let Some(system) = (0..systems).find(|system| !is_zero(system)) {
                return Err(Error::Usage(format!(
                    "system {system}: block {block} of {name} is not 0, but there are no unknowns beyond it"
                )));
            }
        }
        Ok(Self { shape, rows: shape.rows(), coefficients: coefficients.map(Cow::Borrowed) })
    }

    /// Bands of one order, with at most 8 diagonals on either side, as systems of blocks of as many rows as the widest side has diagonals: of
    /// five diagonals, of order 2. Right-hand sides and solutions lie one after the other, without what fills the last blocks up.
    ///
    /// # Errors
    /// [`Error::Usage`] for bands of several orders, or of more than 8 diagonals on a side; [`Error::NotFinite`].
    pub fn of_bands(bands: &[Band<T>]) -> Result<BlockSystems<'static, T>> {
        let n = bands.first().map_or(0, Band::order);
        if let Some(k) = bands.iter().position(|band| band.order() != n) {
            return Err(Error::Usage(format!(
                "band {k} has {} rows, but band 0 has {n}: systems of a batch have as many",
                bands[k].order()
            )));
        }
        let side = |band: &Band<T>| band.widths().0.max(band.widths().1);
        let order = bands.iter().map(side).max().unwrap_or(0).max(1);
        if order > LARGEST_BLOCK {
            return Err(Error::Usage(format!(
                "bands with {order} diagonals on a side are not possible: up to {LARGEST_BLOCK} are; use Band::factorise"
            )));
        }
        let shape = BlockShape::new(bands.len(), n.div_ceil(order), order);
        let (square, each) = (order * order, shape.rows() * order);
        let mut coefficients = [0; 3].map(|_| vec![T::default(); shape.lens()[0]]);
        for (system, band) in bands.iter().enumerate() {
            let (lower, upper) = band.widths();
            for i in 0..shape.rows() {
                let filled = (i, i + 1);
                let (from, to) = if i < n { (i.saturating_sub(lower), n.min(i + upper + 1)) } else { filled };
                for j in from..to {
                    let value = if i < n { band.get(i, j) } else { T::from_f64(1.0) };
                    // A is left of the diagonal block, C right of it
                    let which = 1 + j / order - i / order;
                    let number = i / order * square + i % order * order + j % order;
                    coefficients[which][system * each + number] = value;
                }
            }
        }
        let [a, b, c] = &coefficients;
        BlockSystems::new(shape, [a, b, c])?;
        Ok(BlockSystems { shape, rows: n, coefficients: coefficients.map(Cow::Owned) })
    }

    /// Their shape.
    #[must_use]
    pub fn shape(&self) -> BlockShape {
        self.shape
    }

    /// Elements of right-hand sides, and of solutions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.systems * self.rows
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The normwise backward error of each system, ‖d − A x‖ / (‖A‖ ‖x‖ + ‖d‖) by the largest rows; infinite, if x has what is no number. On the
    /// host, 6 order² flops a block.
    ///
    /// # Panics
    /// If an array has not [`len`](Self::len) elements.
    #[must_use]
    pub fn backward_errors(&self, d: &[T], x: &[T]) -> Vec<f64> {
        assert_eq!([d.len(), x.len()], [self.len(); 2], "an element a row");
        let BlockShape { systems, blocks, order, .. } = self.shape;
        let each = self.shape.rows() * order;
        let of_system = |system: usize| {
            let at = |row: usize| self.shape.at(system, row, self.rows);
            let (mut residual, mut scale) = (0.0_f64, 0.0_f64);
            for row in 0..self.rows {
                let (i, of_d) = (row / order, d[at(row)].to_f64());
                let (mut r, mut sum) = (of_d, of_d.abs());
                // A(0) and the last C are zeros, of unknowns that there are not
                let neighbours = [i.wrapping_sub(1), i, i + 1].into_iter().zip(&self.coefficients);
                for (j, block) in neighbours.filter(|(j, _)| *j < blocks) {
                    for k in (0..order).filter(|k| j * order + k < self.rows) {
                        let number = i * order * order + row % order * order + k;
                        let term = block[self.shape.at(system, number, each)].to_f64() * x[at(j * order + k)].to_f64();
                        r -= term;
                        sum += term.abs();
                    }
                }
                residual = residual.max(if r.is_nan() { f64::INFINITY } else { r.abs() });
                scale = scale.max(sum);
            }
            super::pivoting::backward_error(residual, scale)
        };
        (0..systems).into_par_iter().map(of_system).collect()
    }
}
