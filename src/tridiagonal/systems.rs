//! A batch of systems, checked.

use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::kernels::tridiagonal::Places;
use crate::named::named;
use crate::real::Real;
use crate::setters::setters;

named! {
    /// How the systems of a batch lie in an array.
    Layout, "layout":
    Contiguous = "contiguous", "One system after the other: row i of system s is element s n + i.";
    Interleaved = "interleaved", "Row after row of all systems: row i of system s is element i · systems + s.";
}

/// How many systems there are, and of what form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shape {
    /// Systems.
    pub systems: usize,
    /// Rows of each.
    pub size: usize,
    /// How they lie in an array.
    pub layout: Layout,
    /// Whether a of the first row is for the last unknown, and c of the last row for the first.
    pub periodic: bool,
}

setters! {
    Shape:
    with_layout = layout: Layout;
    with_periodic = periodic: bool;
}

impl Shape {
    /// So many systems of so many rows, one after the other, not periodic.
    #[must_use]
    pub fn new(systems: usize, size: usize) -> Self {
        Self { systems, size, layout: Layout::Contiguous, periodic: false }
    }

    /// Elements of an array.
    #[must_use]
    pub fn len(&self) -> usize {
        self.systems * self.size
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn places(&self) -> Places {
        match self.layout {
            Layout::Contiguous => Places::contiguous(self.systems, self.size),
            Layout::Interleaved => Places { systems: self.systems, size: self.size, across: 1, along: self.systems },
        }
    }

    /// Where a row is.
    pub(crate) fn at(&self, system: usize, row: usize) -> usize {
        let Places { across, along, .. } = self.places();
        system * across + row * along
    }
}

/// The coefficients of systems `a(i) x_{i−1} + b(i) x_i + c(i) x_{i+1} = d(i)`, i = 0 … n − 1.
#[derive(Debug, Clone, Copy)]
pub struct Systems<'a, T> {
    pub(crate) shape: Shape,
    pub(crate) coefficients: [&'a [T]; 3],
    pub(crate) is_dominant: bool,
}

/// What is known of a system.
struct Looked {
    is_dominant: bool,
    error: Option<Error>,
}

impl<'a, T: Real> Systems<'a, T> {
    /// Takes the arrays a, b and c, after a look at each element.
    ///
    /// # Errors
    /// [`Error::Usage`] for arrays of other lengths, and, unless the systems are [periodic](Shape::periodic), for `a(0)` or `c(n − 1)` that are
    /// not 0, as there is nothing to multiply; [`Error::NotFinite`].
    pub fn new(shape: Shape, coefficients: [&'a [T]; 3]) -> Result<Self> {
        let all = Self { shape, coefficients, is_dominant: true };
        for (name, array) in ["a", "b", "c"].into_iter().zip(coefficients) {
            shape.check(name, array.len())?;
        }
        let looked: Vec<Looked> = (0..shape.systems)
            .into_par_iter()
            .with_min_len((1 << 14) / shape.size.max(1) + 1)
            .map(|system| all.look_at(system))
            .collect();
        let is_dominant = looked.iter().all(|one| one.is_dominant);
        match looked.into_iter().find_map(|one| one.error) {
            Some(error) => Err(error),
            None => Ok(Self { is_dominant, ..all }),
        }
    }

    /// Their shape.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Whether each row has |b| ≥ |a| + |c|, and each part of a system that does not depend on others a row where it is more. Elimination
    /// and reduction then need no exchange of rows, and their rounding errors stay small (Higham 2002, section 9.6).
    #[must_use]
    pub fn is_dominant(&self) -> bool {
        self.is_dominant
    }

    /// a, b and c of a row.
    pub(crate) fn row(&self, system: usize, row: usize) -> [T; 3] {
        let at = self.shape.at(system, row);
        self.coefficients.map(|array| array[at])
    }

    fn look_at(&self, system: usize) -> Looked {
        let Shape { size, periodic, .. } = self.shape;
        let zero = T::default();
        let fail = |error| Looked { is_dominant: false, error: Some(error) };
        if !periodic && size > 0 {
            for (name, row, value) in [("a", 0, self.row(system, 0)[0]), ("c", size - 1, self.row(system, size - 1)[2])]
            {
                if value != zero {
                    return fail(Error::Usage(format!(
                        "system {system}: {name}[{row}] = {:e} has no unknown to multiply; set it to 0, or make the \
                         systems periodic",
                        value.to_f64()
                    )));
                }
            }
        }
        let (mut is_dominant, mut is_strict) = (true, false);
        // c of the row before, and whether all rows of the part so far have only just as much on the diagonal
        let mut before = zero;
        for i in 0..size {
            let row = self.row(system, i);
            let [a, b, c] = row.map(|v| v.to_f64().abs());
            if let Some(k) = row.iter().position(|v| !v.to_f64().is_finite()) {
                let what = format!("{} of system {system}", ["a", "b", "c"][k]);
                return fail(Error::NotFinite { what, index: i + 1, value: row[k].to_f64() });
            }
            if i > 0 && (before == zero || row[0] == zero) {
                // another part begins; what couples it to the former one is not within either
                is_dominant &= is_strict || before != zero;
                is_strict = row[0] != zero;
            }
            is_dominant &= b >= a + c && b > 0.0;
            is_strict |= b > a + c;
            before = row[2];
        }
        Looked { is_dominant: is_dominant && (is_strict || size == 0), error: None }
    }
}

impl Shape {
    /// Checks the length of an array.
    pub(crate) fn check(&self, name: &str, len: usize) -> Result<()> {
        if len == self.len() {
            return Ok(());
        }
        let Self { systems, size, .. } = self;
        Err(Error::Usage(format!("{name} has {len} elements; {systems} systems of {size} rows have {}", self.len())))
    }
}
