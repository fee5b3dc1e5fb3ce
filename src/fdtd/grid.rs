//! Grids of cells, the components of the fields on them, and which component is updated from which.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::named::named;

named! {
    /// Which components of the fields there are.
    Mode, "mode":
    Te = "te", "Two dimensions: Hz, Ex and Ey.";
    Tm = "tm", "Two dimensions: Ez, Hx and Hy.";
    Full = "3d", "Three dimensions: all six components.";
}

named! {
    /// A component of the electric or the magnetic field.
    Component, "component":
    Ex = "ex", "Electric, along x.";
    Ey = "ey", "Electric, along y.";
    Ez = "ez", "Electric, along z.";
    Hx = "hx", "Magnetic, along x.";
    Hy = "hy", "Magnetic, along y.";
    Hz = "hz", "Magnetic, along z.";
}

/// The two halves of a step: the fields are known half a step apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// The magnetic field.
    H,
    /// The electric field.
    E,
}

impl Component {
    /// The component of a half along an axis.
    pub(crate) fn of(half: Half, axis: usize) -> Self {
        match half {
            Half::E => [Self::Ex, Self::Ey, Self::Ez][axis],
            Half::H => [Self::Hx, Self::Hy, Self::Hz][axis],
        }
    }

    /// Which half of a step updates it.
    pub(crate) fn half(self) -> Half {
        if self.is_electric() { Half::E } else { Half::H }
    }

    /// Whether it is of the electric field.
    #[must_use]
    pub fn is_electric(self) -> bool {
        matches!(self, Self::Ex | Self::Ey | Self::Ez)
    }

    /// Its axis: 0, 1 or 2.
    #[must_use]
    pub fn axis(self) -> usize {
        match self {
            Self::Ex | Self::Hx => 0,
            Self::Ey | Self::Hy => 1,
            Self::Ez | Self::Hz => 2,
        }
    }
}

impl Mode {
    /// Dimensions of the grid: 2 or 3.
    #[must_use]
    pub fn dimensions(self) -> usize {
        if self == Self::Full { 3 } else { 2 }
    }

    /// The components that there are.
    #[must_use]
    pub fn components(self) -> &'static [Component] {
        match self {
            Self::Te => &[Component::Ex, Component::Ey, Component::Hz],
            Self::Tm => &[Component::Ez, Component::Hx, Component::Hy],
            Self::Full => Component::ALL,
        }
    }

    /// Bytes that a step moves for each cell, where an element has `real` of them and each array is counted once in each half: three
    /// components are updated from three others, and what is updated is read and written.
    #[must_use]
    pub fn bytes_per_cell(self, real: u64) -> u64 {
        real * if self == Self::Full { 18 } else { 9 }
    }

    /// What becomes of the components of a half.
    pub(crate) fn updates(self, half: Half) -> impl Iterator<Item = Update> {
        let there = move |component: Component| self.components().contains(&component);
        let axes = self.dimensions();
        (0..3).map(move |axis| Update::of(half, axis, axes, there)).filter(move |update| there(update.target))
    }
}

/// A component, and the two derivatives of its curl as far as they are there:
/// `target ← a target + b (∂plus − ∂minus)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Update {
    pub(crate) target: Component,
    pub(crate) plus: Option<Term>,
    pub(crate) minus: Option<Term>,
}

/// The derivative of a component along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) source: Component,
    pub(crate) axis: usize,
}

impl Update {
    /// ε ∂E/∂t = ∇ × H, and μ ∂H/∂t = −∇ × E.
    fn of(half: Half, axis: usize, axes: usize, there: impl Fn(Component) -> bool) -> Self {
        let (p, q) = ((axis + 1) % 3, (axis + 2) % 3);
        let term = |half, along, axis| {
            let source = Component::of(half, along);
            (there(source) && axis < axes).then_some(Term { source, axis })
        };
        let (plus, minus) = match half {
            Half::E => (term(Half::H, q, p), term(Half::H, p, q)),
            Half::H => (term(Half::E, p, q), term(Half::E, q, p)),
        };
        Self { target: Component::of(half, axis), plus, minus }
    }

    /// The terms, each with whether it is added.
    pub(crate) fn terms(self) -> impl Iterator<Item = (Term, bool)> {
        self.plus.map(|term| (term, true)).into_iter().chain(self.minus.map(|term| (term, false)))
    }
}

/// Cells in a box, with perfect conductors as walls.
///
/// A component is known at a place of its own in each cell. Of cell (i, j, k), in units of its sides:
///
/// | | x | y | z |
/// |---|---|---|---|
/// | Ex | i + ½ | j | k |
/// | Ey | i | j + ½ | k |
/// | Ez | i | j | k + ½ |
/// | Hx | i | j + ½ | k + ½ |
/// | Hy | i + ½ | j | k + ½ |
/// | Hz | i + ½ | j + ½ | k |
///
/// In two dimensions there is no z. What lies on the walls beyond the last cells is 0 and not stored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Grid {
    pub(crate) mode: Mode,
    /// 1 along an axis that is not there.
    pub(crate) cells: [usize; 3],
    /// The same.
    pub(crate) step: [f64; 3],
}

impl Grid {
    /// A grid of so many cells along each axis, with sides of `step` metres.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are not as many numbers as dimensions, or they are not positive.
    pub fn new(mode: Mode, cells: &[usize], step: &[f64]) -> Result<Self> {
        let axes = mode.dimensions();
        if cells.len() != axes || step.len() != axes {
            return Err(Error::Usage(format!(
                "cells has {} numbers and step {}; mode {mode} has {axes} dimensions, and takes one number for each",
                cells.len(),
                step.len()
            )));
        }
        if let Some(axis) = cells.iter().position(|&n| n == 0) {
            return Err(Error::Usage(format!(
                "there are 0 cells along {}; there must be one, at least",
                "xyz".chars().nth(axis).unwrap_or('?')
            )));
        }
        if let Some(bad) = step.iter().find(|step| !(step.is_finite() && **step > 0.0)) {
            return Err(Error::Usage(format!("a side of a cell is {bad}; it must be a length above 0, in metres")));
        }
        let all = cells.iter().try_fold(1_usize, |all, &n| all.checked_mul(n)).filter(|&n| n <= 1 << 48);
        if all.is_none() {
            return Err(Error::Usage(format!("a grid of {cells:?} cells is beyond what any machine holds")));
        }
        let (mut all_cells, mut all_steps) = ([1; 3], [1.0; 3]);
        all_cells[..axes].copy_from_slice(cells);
        all_steps[..axes].copy_from_slice(step);
        Ok(Self { mode, cells: all_cells, step: all_steps })
    }

    /// Its mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Cells along each axis.
    #[must_use]
    pub fn cells(&self) -> &[usize] {
        &self.cells[..self.mode.dimensions()]
    }

    /// Sides of a cell, in metres.
    #[must_use]
    pub fn step(&self) -> &[f64] {
        &self.step[..self.mode.dimensions()]
    }

    /// All cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cells.iter().product()
    }

    /// A grid is never empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// How far neighbours along an axis are apart in arrays: x runs fastest.
    pub(crate) fn stride(&self, axis: usize) -> usize {
        self.cells[..axis].iter().product()
    }

    /// The axis that is divided among ranks: the last one.
    pub(crate) fn slab_axis(&self) -> usize {
        self.mode.dimensions() - 1
    }

    /// Cells of a plane across it, which lie side by side.
    pub(crate) fn plane(&self) -> usize {
        self.stride(self.slab_axis())
    }

    /// The planes.
    pub(crate) fn planes(&self) -> usize {
        self.cells[self.slab_axis()]
    }

    /// Where a cell is in an array.
    ///
    /// # Errors
    /// [`Error::Usage`] with `what` if it is not in the grid.
    pub fn place(&self, cell: &[usize], what: &str) -> Result<usize> {
        let own = self.cells();
        if cell.len() != own.len() || cell.iter().zip(own).any(|(at, n)| at >= n) {
            let last: Vec<usize> = own.iter().map(|n| n - 1).collect();
            return Err(Error::Usage(format!(
                "{what} is at cell {cell:?}, outside the grid, whose cells go from {:?} to {last:?}",
                vec![0; own.len()]
            )));
        }
        Ok(cell.iter().enumerate().map(|(axis, at)| at * self.stride(axis)).sum())
    }

    /// The walls at the lower ends of axes on which a component is 0: that the electric field is tangential to.
    pub(crate) fn walls(&self, component: Component) -> [bool; 3] {
        let is_wall =
            |axis: usize| component.is_electric() && axis != component.axis() && axis < self.mode.dimensions();
        [0, 1, 2].map(is_wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curls() {
        let of = |mode: Mode, half| -> Vec<String> {
            let name = |term: Option<Term>| {
                term.map_or("-".into(), |term| format!("{}/{}", term.source, ["x", "y", "z"][term.axis]))
            };
            mode.updates(half).map(|u| format!("{} {} {}", u.target, name(u.plus), name(u.minus))).collect()
        };
        assert_eq!(of(Mode::Te, Half::H), ["hz ex/y ey/x"]);
        assert_eq!(of(Mode::Te, Half::E), ["ex hz/y -", "ey - hz/x"]);
        assert_eq!(of(Mode::Tm, Half::H), ["hx - ez/y", "hy ez/x -"]);
        assert_eq!(of(Mode::Tm, Half::E), ["ez hy/x hx/y"]);
        assert_eq!(of(Mode::Full, Half::H), ["hx ey/z ez/y", "hy ez/x ex/z", "hz ex/y ey/x"]);
        assert_eq!(of(Mode::Full, Half::E), ["ex hz/y hy/z", "ey hx/z hz/x", "ez hy/x hx/y"]);
    }

    #[test]
    fn grids_that_are_none() {
        let of = |mode, cells: &[usize], step: &[f64]| Grid::new(mode, cells, step).unwrap_err().to_string();
        assert!(of(Mode::Te, &[3, 3, 3], &[1.0; 2]).contains("2 dimensions"));
        assert!(of(Mode::Te, &[3, 0], &[1.0; 2]).contains("0 cells along y"));
        assert!(of(Mode::Full, &[3, 3, 3], &[1.0, f64::NAN, 1.0]).contains("NaN"));
        assert!(of(Mode::Full, &[1 << 30; 3], &[1.0; 3]).contains("any machine"));
        let grid = Grid::new(Mode::Full, &[3, 4, 5], &[1.0; 3]).unwrap();
        assert_eq!(grid.place(&[2, 1, 3], "it").unwrap(), 2 + 3 + 36);
        assert!(
            grid.place(&[2, 4, 3], "the probe 'a'")
                .unwrap_err()
                .to_string()
                .contains("the probe 'a' is at cell [2, 4, 3]")
        );
    }
}
