//! Levels of a lattice on the host, line by line: points of a line that are alike are done one after the other, by vector instructions.

use std::ops::Range;

use rayon::prelude::*;

use super::super::cycle::Vectors;
use super::super::smoother::steps;
use super::tables::{Below, TableLevel, Tables, distance};
use super::{Classes, neighbour};
use crate::kernels::cycle::Polynomial;

/// Elements that are worth a thread.
const FEW: usize = 1 << 12;

/// The lines of a vector on a lattice, which threads take by some at a time.
fn lines(v: &mut [f32], side: usize) -> impl IndexedParallelIterator<Item = (usize, &mut [f32])> {
    v.par_chunks_mut(side).enumerate().with_min_len((FEW / side).max(1))
}

/// Runs of equal elements.
fn runs(classes: &Classes) -> Vec<(Range<usize>, u32)> {
    let mut at = 0;
    let run = |of: &[u32]| {
        at += of.len();
        (at - of.len()..at, of[0])
    };
    classes.of.chunk_by(|a, b| a == b).map(run).collect()
}

/// `to += a from`.
fn add(to: &mut [f32], a: f32, from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += a * from);
}

impl TableLevel {
    /// c and d of the smoother, which adds c r + d A r.
    fn smoother(&self) -> [f32; 2] {
        Polynomial::from(&steps(self.a.largest)).of_residual()
    }

    /// Makes something of each element of `to`, for its number and that of A v.
    fn product(&self, v: &[f32], to: &mut [f32], made: impl Fn(usize, f32, &mut f32) + Sync) {
        let Self { sides, a, .. } = self;
        let [nx, ny, _] = *sides;
        let ([x, y, z], runs) = (&a.classes, runs(&a.classes[0]));
        lines(to, nx).for_each_init(Vec::new, |sums, (line, to)| {
            sums.clear();
            sums.resize(nx, 0.0);
            let of_line = (z.of[line / ny] as usize * y.count() + y.of[line % ny] as usize) * x.count();
            for (run, class) in &runs {
                let row = (of_line + *class as usize) * a.neighbours.len();
                for (place, k) in a.neighbours.iter().enumerate().filter(|(place, _)| a.entries[row + place] != 0.0) {
                    let first = (line * nx + run.start).wrapping_add_signed(distance(*k, *sides));
                    add(&mut sums[run.clone()], a.entries[row + place], &v[first..first + run.len()]);
                }
            }
            (line * nx..).zip(to).zip(sums).for_each(|((i, to), sum)| made(i, *sum, to));
        });
    }

    /// b = Pᵀ r.
    fn restrict(&self, r: &[f32], b: &mut [f32]) {
        let (above, Below { sides, steps, classes: [x, y, z], weights, neighbours, .. }) = (self.sides, &self.below);
        let used: Vec<(usize, isize)> = neighbours.iter().map(|k| (*k, distance(*k, above))).collect();
        lines(b, sides[0]).for_each(|(line, b)| {
            let [at_y, at_z] = [line % sides[1], line / sides[1]];
            let of_line = (z.of[at_z] as usize * y.count() + y.of[at_y] as usize) * x.count();
            let first = (at_z * steps[2] * above[1] + at_y * steps[1]) * above[0];
            for (at, b) in b.iter_mut().enumerate() {
                let weights = &weights[of_line + x.of[at] as usize];
                let origin = first + at * steps[0];
                let terms = used.iter().filter(|(k, _)| weights[*k] != 0.0);
                *b = terms.map(|(k, distance)| weights[*k] * r[origin.wrapping_add_signed(*distance)]).sum();
            }
        });
    }

    /// x += P e.
    fn correct(&self, e: &[f32], x: &mut [f32]) {
        let (above, Below { sides, steps, classes, weights, .. }) = (self.sides, &self.below);
        // the coordinates that one is interpolated from, and how far it is from these
        let ends = |d: usize, at: usize| {
            let behind =
                (!at.is_multiple_of(steps[d]) && at / steps[d] + 1 < sides[d]).then(|| (at / steps[d] + 1, -1));
            [Some((at / steps[d], (at % steps[d]) as i64)), behind].into_iter().flatten()
        };
        lines(x, above[0]).for_each(|(line, x)| {
            for (z, oz) in ends(2, line / above[1]) {
                for (y, oy) in ends(1, line % above[1]) {
                    let [of_x, of_y, of_z] = classes;
                    let of_line = (of_z.of[z] as usize * of_y.count() + of_y.of[y] as usize) * of_x.count();
                    let e = &e[(z * sides[1] + y) * sides[0]..][..sides[0]];
                    for ((at, e), class) in e.iter().enumerate().zip(&of_x.of) {
                        let weights = &weights[of_line + *class as usize];
                        for ox in 1 - steps[0] as i64..steps[0] as i64 {
                            if let Some(x) = x.get_mut((at * steps[0]).wrapping_add_signed(ox as isize)) {
                                *x += weights[neighbour([ox, oy, oz])] * e;
                            }
                        }
                    }
                }
            }
        });
    }
}

impl Tables {
    /// x = M⁻¹ b of the first level, with vectors for each level.
    pub(in super::super) fn cycle(&self, vectors: &mut [Vectors]) {
        self.descend(&self.levels, vectors);
    }

    fn descend(&self, levels: &[TableLevel], vectors: &mut [Vectors]) {
        let [Vectors { b, x, r, .. }, below @ ..] = vectors else { return };
        let (Some((level, rest)), [next, ..]) = (levels.split_first(), &mut *below) else {
            return self.coarsest.solve(b, x);
        };
        let [c, d] = level.smoother();
        let left = |x: &[f32], r: &mut [f32]| level.product(x, r, |i, t, r| *r = b[i] - t);
        level.product(b, x, |i, t, x| *x = c * b[i] + d * t);
        left(x, r);
        level.restrict(r, &mut next.b);
        self.descend(rest, below);
        if let [next, ..] = below {
            level.correct(&next.x, x);
        }
        left(x, r);
        level.product(r, x, |i, t, x| *x += c * r[i] + d * t);
    }
}
