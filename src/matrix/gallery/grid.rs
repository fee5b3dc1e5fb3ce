//! Boxes of points, numbered with x fastest.

use std::ops::{Range, RangeInclusive};

use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::assemble::too_large;

/// An nx × ny × nz box; point (x, y, z) has the number `x + nx (y + ny z)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) sides: [usize; 3],
    /// The number of points, at most [`Csr::MAX_DIM`] / `unknowns`.
    pub(super) points: usize,
}

impl Grid {
    /// A box with no empty side whose points, at `unknowns` each, 32-bit indices can address.
    pub(super) fn new(sides: [usize; 3], unknowns: usize) -> Result<Self> {
        let [nx, ny, nz] = sides;
        if sides.contains(&0) {
            return Err(Error::Usage(format!("a grid of {nx} × {ny} × {nz} points is empty")));
        }
        let points = nx.checked_mul(ny).and_then(|p| p.checked_mul(nz));
        match points.filter(|p| p.checked_mul(unknowns).is_some_and(|n| n <= Csr::MAX_DIM)) {
            Some(points) => Ok(Self { sides, points }),
            None => Err(too_large(format_args!("{nx} × {ny} × {nz} points with {unknowns} unknowns each"))),
        }
    }

    /// The numbers of all points.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.points
    }

    /// The coordinates of point `i`.
    pub(super) fn place(&self, i: usize) -> [usize; 3] {
        // processors divide numbers of 32 bits in a fraction of the time
        let ([nx, ny, _], i) = (self.sides.map(|side| side as u32), i as u32);
        let line = i / nx;
        [i - line * nx, line % ny, line / ny].map(|c| c as usize)
    }

    /// The number of the point at `place`.
    pub(super) fn number(&self, [x, y, z]: [usize; 3]) -> usize {
        x + self.sides[0] * (y + self.sides[1] * z)
    }

    /// By how much a point's number grows from one point to the next along each axis.
    pub(super) fn strides(&self) -> [usize; 3] {
        [1, self.sides[0], self.sides[0] * self.sides[1]]
    }

    /// The coordinates on each axis of a point and its neighbours within the box.
    pub(super) fn around(&self, place: [usize; 3]) -> [RangeInclusive<usize>; 3] {
        std::array::from_fn(|axis| {
            let c = place[axis];
            c.saturating_sub(1)..=(c + 1).min(self.sides[axis] - 1)
        })
    }

    /// How many points [`around`](Self::around) spans, the point itself included.
    pub(super) fn count_around(&self, place: [usize; 3]) -> usize {
        self.around(place).into_iter().map(|r| r.end() - r.start() + 1).product()
    }
}
