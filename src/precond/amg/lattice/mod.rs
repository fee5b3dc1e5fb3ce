//! Multigrid for rows that are alike along the lines of a lattice, as those of difference and element methods with constant coefficients on a box.
//!
//! *Classes.* Coordinates of a direction that can't be told apart are of one class: most of them are, and the ends are others. The row of a point follows
//! from the classes of its three coordinates, so that a matrix of any size is a small table, and so are all levels below it: they are made on the
//! host in no time that depends on the number of rows.
//!
//! *Levels* are those of black box multigrid (Dendy 1982, doi 10.1016/0021-9991(82)90057-2): every second point of a direction is one of the
//! next level, those between are interpolated as their rows say, and the next matrix is the Galerkin product Pᵀ A P. Directions that are
//! coupled weakly wait until the others have caught up.

mod coarser;
mod find;
mod on_host;
pub(super) mod slabs;
pub(super) mod tables;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::RangeInclusive;

use super::smoother::SAFETY;
use super::sparse::Sparse;

/// Neighbours of a point and itself: offsets −1, 0 and 1 in each direction, those of the first direction next to each other.
pub(super) const NEIGHBOURS: usize = 27;

/// The point itself.
const SELF: usize = NEIGHBOURS / 2;

/// Entries of a row by neighbour.
type Stencil = [f64; NEIGHBOURS];

/// Coordinates, which may be beyond the lattice.
type Point = [i64; 3];

/// More rows than that are no table.
const MOST_KINDS: usize = 1 << 14;

/// The offset of a neighbour.
pub(super) fn offset(k: usize) -> Point {
    [k % 3, k / 3 % 3, k / 9].map(|o| o as i64 - 1)
}

/// The neighbour at an offset.
fn neighbour(offset: Point) -> usize {
    let [x, y, z] = offset.map(|o| (o + 1) as usize);
    (z * 3 + y) * 3 + x
}

/// The number of a point among the [`kinds`](Lattice::kinds) that these classes make; `None` beyond the lattice.
fn kind_of(classes: &[Classes; 3], p: Point) -> Option<usize> {
    (0..3).rev().try_fold(0, |kind, d| {
        let class = classes[d].of.get(usize::try_from(p[d]).ok()?)?;
        Some(kind * classes[d].count() + *class as usize)
    })
}

fn moved(p: Point, o: Point) -> Point {
    [0, 1, 2].map(|d| p[d] + o[d])
}

/// Which coordinates of a direction are alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Classes {
    /// The class of each coordinate.
    pub(super) of: Vec<u32>,
    /// The first coordinate of each class.
    firsts: Vec<usize>,
}

impl Classes {
    /// Those of coordinates with equal keys.
    fn by<K: Eq + Hash>(keys: &[K]) -> Self {
        let (mut known, mut firsts, mut of) = (HashMap::new(), Vec::new(), Vec::<u32>::with_capacity(keys.len()));
        for (coordinate, key) in keys.iter().enumerate() {
            let class = match of.last() {
                // most are as the one before
                Some(last) if *key == keys[coordinate - 1] => *last,
                _ => *known.entry(key).or_insert_with(|| {
                    firsts.push(coordinate);
                    firsts.len() as u32 - 1
                }),
            };
            of.push(class);
        }
        Self { of, firsts }
    }

    /// Those of every `step`-th coordinate, by what classes it and those so far from it have, of which it sees up to two at each side.
    fn seen(&self, step: usize, reach: impl Fn(usize) -> RangeInclusive<i64>) -> Self {
        let class = |at: i64| usize::try_from(at).ok().and_then(|at| self.of.get(at).copied());
        let key =
            |at: usize| [-2, -1, 0, 1, 2].map(|o| if reach(at).contains(&o) { class(at as i64 + o) } else { None });
        Self::by(&(0..self.of.len()).step_by(step).map(key).collect::<Vec<_>>())
    }

    pub(super) fn count(&self) -> usize {
        self.firsts.len()
    }

    /// How many coordinates are of each.
    fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.count()];
        self.of.iter().for_each(|class| counts[*class as usize] += 1);
        counts
    }
}

/// A symmetric matrix of rows that follow from classes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lattice {
    pub(super) classes: [Classes; 3],
    /// By class of the third coordinate, then the second, then the first.
    stencils: Vec<Stencil>,
}

/// What is made of a level for a device: tables in single precision by classes, as of the matrix D^(−½) A D^(−½).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) classes: [Classes; 3],
    /// The neighbours that some row has entries for,
    pub(super) neighbours: Vec<usize>,
    /// and by kind of row the entries of these.
    pub(super) entries: Vec<f32>,
    /// What hardly any eigenvalue is above.
    pub(super) largest: f64,
}

impl Lattice {
    pub(super) fn sides(&self) -> [usize; 3] {
        self.classes.each_ref().map(|classes| classes.of.len())
    }

    pub(super) fn rows(&self) -> usize {
        self.sides().iter().product()
    }

    /// The number of a point's row among [`kinds`](Self::kinds); `None` beyond the lattice.
    fn kind(&self, p: Point) -> Option<usize> {
        kind_of(&self.classes, p)
    }

    /// The row of a point; `None` beyond the lattice.
    fn stencil(&self, p: Point) -> Option<&Stencil> {
        self.kind(p).map(|kind| &self.stencils[kind])
    }

    /// The diagonal entry of a point's row, or 1 beyond the lattice.
    fn diagonal(&self, p: Point) -> f64 {
        self.stencil(p).map_or(1.0, |stencil| stencil[SELF])
    }

    /// Rows of which something holds.
    fn rows_where(&self, is: impl Fn(&Stencil) -> bool) -> usize {
        self.sum(|stencil| usize::from(is(stencil)))
    }

    /// Entries of all rows.
    pub(super) fn nnz(&self) -> usize {
        self.sum(|stencil| stencil.iter().filter(|v| **v != 0.0).count())
    }

    /// The sum of a number over all rows.
    fn sum(&self, of: impl Fn(&Stencil) -> usize) -> usize {
        let [x, y, z] = self.classes.each_ref().map(Classes::counts);
        let rows = |kind: usize| x[kind % x.len()] * y[kind / x.len() % y.len()] * z[kind / x.len() / y.len()];
        self.stencils.iter().enumerate().map(|(kind, stencil)| rows(kind) * of(stencil)).sum()
    }

    /// One after the other a point of each kind that these classes make; `None` if these are many.
    fn kinds(classes: &[Classes; 3]) -> Option<impl Iterator<Item = Point>> {
        let count: usize = classes.iter().map(Classes::count).product();
        (count <= MOST_KINDS).then(|| Self::all_kinds(classes))
    }

    fn all_kinds(classes: &[Classes; 3]) -> impl Iterator<Item = Point> {
        let [x, y, z] = classes.each_ref().map(|classes| classes.firsts.iter().map(|first| *first as i64));
        z.flat_map(move |z| {
            let x = x.clone();
            y.clone().flat_map(move |y| x.clone().map(move |x| [x, y, z]))
        })
    }

    /// The matrix with a diagonal of ones.
    fn scaled(&self, p: Point) -> Stencil {
        let (stencil, own) = (self.stencil(p).copied().unwrap_or([0.0; NEIGHBOURS]), self.diagonal(p));
        let entry = |k: usize| match k {
            SELF => 1.0,
            _ if stencil[k] == 0.0 => 0.0,
            _ => stencil[k] / (own * self.diagonal(moved(p, offset(k)))).sqrt(),
        };
        std::array::from_fn(entry)
    }

    /// The table of that; `None` if it would be large.
    pub(super) fn table(&self) -> Option<Table> {
        // entries are scaled by the rows of their neighbours, too
        let classes = self.classes.each_ref().map(|classes| classes.seen(1, |_| -1..=1));
        let points: Vec<Point> = Self::kinds(&classes)?.collect();
        let stencils: Vec<Stencil> = points.iter().map(|p| self.scaled(*p)).collect();
        let is_used = |k: &usize| stencils.iter().any(|stencil| stencil[*k] != 0.0);
        let neighbours: Vec<usize> = (0..NEIGHBOURS).filter(is_used).collect();
        let entries = stencils.iter().flat_map(|stencil| neighbours.iter().map(|k| stencil[*k] as f32)).collect();
        // Gershgorin's, not weighted and weighted by √d, and that of waves on an endless lattice of such rows
        let (waves, mut plain, mut weighted, mut of_waves) = (waves(), 0.0f64, 0.0f64, 0.0f64);
        let sum = |stencil: &Stencil| stencil.iter().map(|v| v.abs()).sum::<f64>();
        for (p, stencil) in points.iter().zip(&stencils) {
            plain = plain.max(sum(stencil));
            weighted = weighted.max(self.stencil(*p).map_or(0.0, sum) / self.diagonal(*p));
            // no wave has more than that sum
            if of_waves < sum(stencil) {
                let factor = |wave: &Stencil| stencil.iter().zip(wave).map(|(v, w)| v * w).sum::<f64>();
                of_waves = waves.iter().map(factor).fold(of_waves, f64::max);
            }
        }
        Some(Table { classes, neighbours, entries, largest: plain.min(weighted).min(SAFETY * of_waves) })
    }

    /// All rows, with a diagonal of ones.
    pub(super) fn assembled(&self) -> Sparse {
        let sides = self.sides().map(|side| side as i64);
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in 0..self.rows() as i64 {
            let p = [row % sides[0], row / sides[0] % sides[1], row / sides[0] / sides[1]];
            for (k, v) in self.scaled(p).into_iter().enumerate().filter(|(_, v)| *v != 0.0) {
                let [x, y, z] = moved(p, offset(k));
                columns.push(((z * sides[1] + y) * sides[0] + x) as u32);
                values.push(v as f32);
            }
            starts.push(columns.len());
        }
        Sparse::new(self.rows(), starts, columns, values)
    }
}

/// Waves of a whole number of eighths of a turn in each direction.
const WAVES: usize = 125;

/// By wave and neighbour, what a symmetric row multiplies the wave by for an entry of 1.
fn waves() -> Vec<Stencil> {
    let steps = |wave: usize| [wave % 5, wave / 5 % 5, wave / 25];
    let factor = |wave: usize, k: usize| {
        let eighths: i64 = steps(wave).into_iter().zip(offset(k)).map(|(steps, o)| steps as i64 * o).sum();
        (eighths as f64 * std::f64::consts::FRAC_PI_4).cos()
    };
    (0..WAVES).map(|wave| std::array::from_fn(|k| factor(wave, k))).collect()
}
