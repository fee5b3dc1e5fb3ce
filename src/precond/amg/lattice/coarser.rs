//! The level below one of a lattice.

use rayon::prelude::*;

use super::{Classes, Lattice, NEIGHBOURS, Point, SELF, Stencil, kind_of, moved, neighbour, offset};

/// A direction in which rows are coupled by less than this part of the strongest coupling waits.
const WEAK: f64 = 0.2;

/// Of less than that, interpolation would be wrong,
const TOO_WEAK: f64 = 0.05;
/// which it may be for this part of the points.
const UNLIKE: f64 = 0.1;

/// The most that weights of a point add up to: more is no interpolation.
const MOST_WEIGHT: f64 = 2.0;

/// Rows that are worth a thread.
const FEW: usize = 16;

/// Corners of the box that a point lies in, whose ends are points of the next level: the bit of a direction tells its upper end.
const CORNERS: usize = 8;

/// Weights of a point for the corners around it.
type Weights = [f64; CORNERS];

/// The farthest that a point is from the origin of one of the next level whose row depends on its interpolation.
const WINDOW: i64 = 2;

/// How points are interpolated from those of the next level.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Transfer {
    /// Every how many points of a direction there is one of the next level: 1 or 2.
    pub(in super::super) steps: [usize; 3],
    /// By kind of row of the next level: the weights that it has for the neighbours of its point.
    pub(super) weights: Vec<Stencil>,
}

/// How each point is interpolated.
struct Interpolation {
    steps: [usize; 3],
    /// Of coordinates that are interpolated alike,
    classes: [Classes; 3],
    /// and by kind of point.
    weights: Vec<Weights>,
}

impl Interpolation {
    /// How a point is interpolated; `None` beyond the lattice.
    fn of(&self, p: Point) -> Option<&Weights> {
        kind_of(&self.classes, p).map(|kind| &self.weights[kind])
    }

    /// Whether a coordinate is between two of the next level.
    fn is_between(&self, d: usize, at: i64) -> bool {
        self.steps[d] == 2 && at % 2 != 0
    }

    /// What a point that is between in some directions is interpolated as.
    ///
    /// A point between two, or four, or eight is what its row makes of them, where all entries count as if they lay in these directions: of points
    /// that are between in fewer directions, which are known.
    fn between(&self, p: Point, stencil: &Stencil) -> Option<Weights> {
        let is_between = [0, 1, 2].map(|d| self.is_between(d, p[d]));
        let mut collapsed = [0.0; NEIGHBOURS];
        for (k, v) in stencil.iter().enumerate() {
            let along = offset(k);
            collapsed[neighbour([0, 1, 2].map(|d| if is_between[d] { along[d] } else { 0 }))] += v;
        }
        let own = collapsed[SELF];
        let mut weights = [0.0; CORNERS];
        for (k, v) in collapsed.into_iter().enumerate().filter(|(k, v)| *k != SELF && *v != 0.0) {
            let o = offset(k);
            // a neighbour at an upper end has this as its lower one
            let upper: usize = (0..3).filter(|d| o[*d] > 0).map(|d| 1 << d).sum();
            let from = self.of(moved(p, o))?;
            (0..CORNERS).filter(|c| from[*c] != 0.0).for_each(|c| weights[c | upper] -= v / own * from[c]);
        }
        let is_some = own > 0.0 && weights.iter().map(|w: &f64| w.abs()).sum::<f64>() <= MOST_WEIGHT;
        is_some.then_some(weights)
    }
}

impl Lattice {
    /// The level below, and how this one is interpolated; `None` if interpolation suits no direction, or not the same ones everywhere.
    pub(in super::super) fn coarser(&self) -> Option<(Transfer, Self)> {
        let interpolation = self.interpolation(self.steps()?)?;
        let steps = interpolation.steps;
        let classes = [0, 1, 2].map(|d| {
            let reach = steps[d] as i64;
            self.classes[d].seen(steps[d], |_| -reach..=reach)
        });
        let points: Vec<Point> = Self::kinds(&classes)?.collect();
        let made = points.par_iter().with_min_len(FEW).map(|p| self.galerkin(*p, &interpolation));
        let (weights, stencils) = made.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some((Transfer { steps, weights }, Self { classes, stencils }))
    }

    /// How strongly a row couples its point in each direction.
    fn couplings(stencil: &Stencil) -> [f64; 3] {
        let along = |d: usize| -> f64 { (0..NEIGHBOURS).filter(|k| offset(*k)[d] != 0).map(|k| -stencil[k]).sum() };
        [0, 1, 2].map(along)
    }

    /// In which directions every second point is left out: where most rows have strong couplings.
    fn steps(&self) -> Option<[usize; 3]> {
        let has = |stencil: &Stencil, d: usize, part: f64| {
            let couplings = Self::couplings(stencil);
            couplings[d] > part * couplings.iter().copied().fold(0.0, f64::max)
        };
        let sides = self.sides();
        let usual = self.stencil(sides.map(|side| side as i64 / 2))?;
        let steps = [0, 1, 2].map(|d| 1 + usize::from(sides[d] > 1 && has(usual, d, WEAK)));
        // of all rows that are coupled at all
        let is_unlike = |stencil: &Stencil| {
            let is_coupled = Self::couplings(stencil).iter().any(|coupling| *coupling > 0.0);
            is_coupled && (0..3).any(|d| steps[d] == 2 && !has(stencil, d, TOO_WEAK))
        };
        let unlike = self.rows_where(is_unlike) as f64;
        (steps != [1; 3] && unlike <= UNLIKE * self.rows() as f64).then_some(steps)
    }

    /// How all points are interpolated.
    fn interpolation(&self, steps: [usize; 3]) -> Option<Interpolation> {
        // those between see both their neighbours
        let classes = [0, 1, 2].map(|d| {
            self.classes[d].seen(1, |at| {
                let reach = (at % steps[d]) as i64;
                -reach..=reach
            })
        });
        let points: Vec<Point> = Self::kinds(&classes)?.collect();
        let mut all = Interpolation { steps, classes, weights: vec![[0.0; CORNERS]; points.len()] };
        for directions in 0..=3 {
            for (kind, p) in points.iter().enumerate() {
                if (0..3).filter(|d| all.is_between(*d, p[*d])).count() == directions {
                    all.weights[kind] = match directions {
                        0 => std::array::from_fn(|corner| if corner == 0 { 1.0 } else { 0.0 }),
                        _ => all.between(*p, self.stencil(*p)?)?,
                    };
                }
            }
        }
        Some(all)
    }

    /// The weights and the row of a point of the next level.
    fn galerkin(&self, p: Point, interpolation: &Interpolation) -> Option<(Stencil, Stencil)> {
        let steps = interpolation.steps.map(|step| step as i64);
        let origin = [0, 1, 2].map(|d| p[d] * steps[d]);
        // how points around are interpolated, and how far their lower corners are from this point
        let side = 2 * WINDOW + 1;
        let number = |o: Point| ((o[2] + WINDOW) * side * side + (o[1] + WINDOW) * side + o[0] + WINDOW) as usize;
        let around = |k: i64| {
            let o = [k % side, k / side % side, k / (side * side)].map(|o| o - WINDOW);
            let reaches = (0..3).all(|d| o[d].abs() <= steps[d]);
            let weights = interpolation.of(moved(origin, o)).filter(|_| reaches)?;
            Some((weights, [0, 1, 2].map(|d| o[d].div_euclid(steps[d]))))
        };
        let all: Vec<_> = (0..side * side * side).map(around).collect();
        // the next level's points that one depends on, with their weights
        let terms = |o: Point| {
            let (weights, lower) = all[number(o)]?;
            let at = move |corner: usize| moved(lower, [0, 1, 2].map(|d| (corner >> d & 1) as i64));
            Some((0..CORNERS).filter(|c| weights[*c] != 0.0).map(move |c| (neighbour(at(c)), weights[c])))
        };
        let (mut weights, mut row) = ([0.0; NEIGHBOURS], [0.0; NEIGHBOURS]);
        for (k, to) in weights.iter_mut().enumerate() {
            let o = offset(k);
            let own = terms(o).and_then(|mut terms| terms.find(|(to, _)| *to == SELF));
            let (Some((_, weight)), Some(stencil)) = (own, self.stencil(moved(origin, o))) else { continue };
            *to = weight;
            for (j, v) in stencil.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                terms(moved(o, offset(j)))?.for_each(|(to, from)| row[to] += weight * v * from);
            }
        }
        (row[SELF] > 0.0).then_some((weights, row))
    }

    /// The weights in single precision by kind of row of the next level, for matrices whose diagonals are 1, as [`Transfer::weights`].
    pub(super) fn weights(&self, next: &Self, transfer: &Transfer) -> Option<Vec<[f32; NEIGHBOURS]>> {
        let of_kind = |(p, weights): (Point, &Stencil)| {
            let (origin, scale) = ([0, 1, 2].map(|d| p[d] * transfer.steps[d] as i64), next.diagonal(p));
            let weight = |k: usize| (weights[k] * (self.diagonal(moved(origin, offset(k))) / scale).sqrt()) as f32;
            std::array::from_fn(weight)
        };
        Some(Self::kinds(&next.classes)?.zip(&transfer.weights).map(of_kind).collect())
    }
}
