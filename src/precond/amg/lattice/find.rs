//! The lattice of a matrix, if it has one.

use rayon::prelude::*;

use super::{Classes, Lattice, NEIGHBOURS, Point, SELF, Stencil, neighbour, offset};
use crate::matrix::patterns::Patterns;

/// Coordinates of a direction that are looked at to tell those of the others apart.
const SAMPLES: usize = 8;

/// Coordinates at each end that are among them.
const ENDS: usize = 3;

impl Lattice {
    /// Of the rows of a symmetric matrix whose diagonal is positive; `None` if points of no lattice with at most three directions have these rows, each
    /// with entries for next neighbours, or if there are too many classes. O(n), by all threads, for 2 bytes a row.
    pub(in super::super) fn of(patterns: &Patterns) -> Option<Self> {
        let n = patterns.of_row.len();
        let longest = (0..patterns.count() as u16).max_by_key(|k| patterns.entries(*k).len())?;
        let mut distances: Vec<usize> = patterns.distances[patterns.entries(longest)]
            .iter()
            .filter_map(|d| usize::try_from(*d).ok().filter(|d| *d > 0))
            .collect();
        distances.sort_unstable();
        sides(n, &distances).into_iter().find_map(|sides| Self::with_sides(patterns, sides))
    }

    fn with_sides(patterns: &Patterns, sides: [usize; 3]) -> Option<Self> {
        let stencils = (0..patterns.count() as u16).map(|k| stencil(patterns, k, sides));
        let stencils: Vec<Stencil> = stencils.collect::<Option<_>>()?;
        if stencils.iter().any(|stencil| !(stencil[SELF] > 0.0 && stencil[SELF].is_finite())) {
            return None;
        }
        let [nx, ny, nz] = sides;
        let of_point = |[x, y, z]: [usize; 3]| patterns.of_row[(z * ny + y) * nx + x];
        let samples = sides.map(samples);
        // by the rows along some lines
        let classes = [0, 1, 2].map(|d| {
            let [e, f] = [(d + 1) % 3, (d + 2) % 3];
            let key = |at: usize| {
                let mut key = Vec::with_capacity(samples[e].len() * samples[f].len());
                for &other in &samples[e] {
                    for &third in &samples[f] {
                        let mut p = [at; 3];
                        (p[e], p[f]) = (other, third);
                        key.push(of_point(p));
                    }
                }
                key
            };
            Classes::by(&(0..sides[d]).into_par_iter().map(key).collect::<Vec<_>>())
        });
        let kinds: Vec<u16> = Self::kinds(&classes)?.map(|p| of_point(p.map(|at| at as usize))).collect();
        // and whether all rows are as those tell
        let [x, y, z] = &classes;
        let lines: Vec<Vec<u16>> =
            kinds.chunks(x.count()).map(|of| x.of.iter().map(|class| of[*class as usize]).collect()).collect();
        let is_as_told = |(line, of_row): (usize, &[u16])| {
            of_row == lines[z.of[line / ny] as usize * y.count() + y.of[line % ny] as usize]
        };
        if !patterns.of_row.par_chunks(nx).enumerate().with_min_len(1 << 6).all(is_as_told) || nx * ny * nz == 0 {
            return None;
        }
        let stencils: Vec<Stencil> = kinds.iter().map(|kind| stencils[*kind as usize]).collect();
        let this = Self { classes, stencils };
        this.is_closed().then_some(this)
    }

    /// Whether no row has an entry beyond the ends.
    fn is_closed(&self) -> bool {
        let [x, y, _] = self.classes.each_ref().map(Classes::count);
        self.stencils.iter().enumerate().all(|(kind, stencil)| {
            let of_kind = [kind % x, kind / x % y, kind / x / y];
            let is_inside = |k: usize| {
                let o = offset(k);
                (0..3).all(|d| {
                    let (of, class) = (&self.classes[d].of, of_kind[d] as u32);
                    !(o[d] < 0 && of.first() == Some(&class) || o[d] > 0 && of.last() == Some(&class))
                })
            };
            (0..NEIGHBOURS).all(|k| stencil[k] == 0.0 || is_inside(k))
        })
    }
}

/// What sides a lattice of `n` points may have, in rows of which neighbours have these distances, as many at the other side.
fn sides(n: usize, distances: &[usize]) -> Vec<[usize; 3]> {
    let has = |distance: usize| distances.binary_search(&distance).is_ok();
    if !has(1) {
        return Vec::new();
    }
    let Some(&next) = distances.get(1) else { return vec![[n, 1, 1]] };
    // the neighbour in the second direction, or the one before it
    let lines = [next, next + 1].into_iter().filter(|&x| x >= 3 && has(x) && n.is_multiple_of(x));
    let of_line = |x: usize| {
        let Some(&next) = distances.iter().find(|d| **d > x + 1) else { return vec![[x, n / x, 1]] };
        let planes = [next, next + 1, next + x, next + x + 1].into_iter();
        let planes = planes.filter(|&plane| plane >= 3 * x && has(plane) && plane % x == 0 && n.is_multiple_of(plane));
        planes.map(|plane| [x, plane / x, n / plane]).collect()
    };
    lines.flat_map(of_line).collect()
}

/// Coordinates of a direction: the first, the last, and some between.
fn samples(side: usize) -> Vec<usize> {
    let ends = (0..ENDS.min(side)).flat_map(|k| [k, side - 1 - k]);
    let mut all: Vec<usize> = (0..SAMPLES).map(|k| k * side / SAMPLES).chain(ends).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The entries of a pattern by neighbour; `None` if it has others.
fn stencil(patterns: &Patterns, pattern: u16, [nx, ny, nz]: [usize; 3]) -> Option<Stencil> {
    let mut stencil = [0.0; NEIGHBOURS];
    let (entries, values) = (patterns.entries(pattern), patterns.values(pattern));
    for (&distance, &v) in patterns.distances[entries].iter().zip(values) {
        let mut left = i64::from(distance);
        // the nearest multiple, where there is such a direction
        let mut steps = |side: usize, unit: usize| {
            let unit = unit as i64;
            let steps = if side > 1 { (2 * left + unit).div_euclid(2 * unit) } else { 0 };
            left -= steps * unit;
            steps
        };
        let (z, y) = (steps(nz, nx * ny), steps(ny, nx));
        let o: Point = [left, y, z];
        if o.iter().any(|o| o.abs() > 1) {
            return None;
        }
        stencil[neighbour(o)] += v;
    }
    Some(stencil)
}
