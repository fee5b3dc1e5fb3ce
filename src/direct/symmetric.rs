//! The fronts of L D Lᵀ: dense elimination of the columns of a supernode, and solving by what came of it.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::front::{Elimination, Front, Size};
use super::lu::TINY;
use super::multifrontal::Multifrontal;
use super::square::Square;
use super::trapezoid::Trapezoid;

/// Columns that are eliminated before the others are updated by a product of matrices.
const PANEL: usize = 32;

/// Columns of L D that are there at one time when the rest is updated.
const CHUNK: usize = 256;

/// Products of fewer operations are computed column by column.
const FEW: usize = 256;

/// An element of the diagonal is a pivot if it is so much of the largest one of its column: (1 + √17) / 8.
const ALPHA: f64 = 0.640_388_203_202_208;

/// A pivot is replaced where it is less than this of an entry of its column below the supernode, where no pivot can be: √ε.
const SMALL: f64 = 1e-8;

/// Numbers above this are nothing but the growth of errors.
const HUGE: f64 = 1e150;

/// Elimination of a symmetric matrix, with pivots of order 1 and 2 that there are within supernodes.
#[derive(Debug)]
pub(super) struct Symmetric {
    work: Vec<f64>,
}

/// A pivot, or half of one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pivot {
    /// The row that changed places with this one.
    from: u32,
    /// Whether this row and the next one are a pivot together.
    is_first: bool,
}

impl Symmetric {
    /// Elimination with a workspace of so many numbers.
    pub(super) fn new(work: Vec<f64>) -> Self {
        Self { work }
    }

    /// How large the workspace has to be for a front of this size.
    pub(super) fn work(size: Size) -> usize {
        (size.order() * (PANEL + 1)).max(size.below * size.own.min(CHUNK))
    }
}

/// What of a front becomes a part of the factor.
fn panel(size: Size) -> Trapezoid {
    Trapezoid { rows: size.order(), cols: size.own }
}

/// What is left of it.
fn rest(size: Size) -> Trapezoid {
    Trapezoid { rows: size.below, cols: size.below }
}

impl Elimination for Symmetric {
    type Pivot = Pivot;

    fn elements(size: Size) -> usize {
        panel(size).len()
    }

    fn rest(size: Size) -> usize {
        rest(size).len()
    }

    fn flops(size: Size) -> f64 {
        // half of those of L U
        0.5 * Square::flops(size)
    }

    fn at<'f>(front: &'f mut Front<'_>, i: usize, j: usize) -> &'f mut f64 {
        let own = front.size.own;
        if j < own {
            &mut front.values[panel(front.size).at(i, j)]
        } else {
            &mut front.rest[rest(front.size).at(i - own, j - own)]
        }
    }

    fn add(front: &mut Front<'_>, from: &[f64], places: &[u32]) {
        let own = front.size.own;
        let shape = Trapezoid { rows: places.len(), cols: places.len() };
        for (c, &j) in places.iter().enumerate() {
            let j = j as usize;
            let to = if j < own {
                &mut front.values[panel(front.size).column(j)]
            } else {
                &mut front.rest[rest(front.size).column(j - own)]
            };
            for (&i, v) in places[c..].iter().zip(&from[shape.column(c)]) {
                to[i as usize - j] += v;
            }
        }
    }

    /// Pivots are chosen as by Bunch and Kaufman, from the own rows and columns. One that is too small, or too small for the rows
    /// below, is replaced. So the pattern stays what it is, however bad the pivots are.
    ///
    /// J. R. Bunch, L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems", Math. Comp. 31
    /// (1977), doi 10.1090/S0025-5718-1977-0428694-0; O. Schenk, K. Gärtner, "On fast factorization pivoting methods for sparse
    /// symmetric indefinite systems", ETNA 23 (2006).
    fn eliminate(&mut self, front: &mut Front<'_>, pivots: &mut [Pivot], mut perturbed: impl FnMut(usize)) {
        let own = front.size.own;
        let mut columns = Columns { shape: panel(front.size), values: front.values, work: &mut self.work };
        let mut start = 0;
        while start < own {
            let end = columns.eliminate(start, pivots, &mut perturbed);
            columns.update(start..end);
            start = end;
        }
        for start in (0..own).step_by(CHUNK) {
            update_rest(front, start..own.min(start + CHUNK), pivots, &mut self.work);
        }
    }

    fn row_of(pivot: Pivot) -> usize {
        pivot.from as usize
    }
}

/// The own columns of a front.
struct Columns<'a> {
    shape: Trapezoid,
    values: &'a mut [f64],
    /// Columns of L D that others have to be updated by, and after them those that may be the next pivot. Rows are those of the front.
    work: &'a mut [f64],
}

/// A candidate for a pivot.
#[derive(Clone, Copy)]
struct Candidate {
    /// Its element of the diagonal, in size.
    on: f64,
    /// The largest other element in the own rows that are left, and where.
    off: f64,
    at: usize,
    /// The least that a pivot of this column may be.
    least: f64,
    /// Whether some numbers had to be replaced.
    is_broken: bool,
}

impl Columns<'_> {
    /// Eliminates some columns from `start` on, without the update of those that come later. Returns the first of these.
    fn eliminate(&mut self, start: usize, pivots: &mut [Pivot], perturbed: &mut impl FnMut(usize)) -> usize {
        let own = self.shape.cols;
        let mut j = start;
        while j < own && j - start < PANEL {
            let done = j - start;
            let first = self.candidate(start..j, j, done);
            let Candidate { on, off, mut least, mut is_broken, .. } = first;
            let mut row = j;
            let mut is_pair = false;
            if on.max(off) >= least && on < ALPHA * off {
                let second = self.candidate(start..j, first.at, done + 1);
                is_broken |= second.is_broken;
                if on * second.off < ALPHA * off * off {
                    (row, least) = (first.at, second.least);
                    is_pair = second.on < ALPHA * second.off;
                }
            }
            if is_pair {
                self.swap(j + 1, row, done + 2);
                self.take_pair(j, done);
                pivots[j] = Pivot { from: j as u32, is_first: true };
                pivots[j + 1] = Pivot { from: row as u32, is_first: false };
            } else {
                if row != j {
                    let order = self.shape.rows;
                    self.work.copy_within(order * (done + 1)..order * (done + 2), order * done);
                    self.swap(j, row, done + 1);
                }
                is_broken |= self.take_one(j, done, least);
                pivots[j] = Pivot { from: row as u32, is_first: false };
            }
            if is_broken {
                perturbed(j);
            }
            j += if is_pair { 2 } else { 1 };
        }
        j
    }

    /// Puts column `col` of what is left, with the update by the columns `done`, into column `to` of the workspace.
    fn candidate(&mut self, done: Range<usize>, col: usize, to: usize) -> Candidate {
        let Trapezoid { rows, cols: own } = self.shape;
        let first = done.end;
        let (before, x) = self.work.split_at_mut(rows * to);
        let x = &mut x[..rows];
        for (i, x) in x.iter_mut().enumerate().take(col).skip(first) {
            *x = self.values[self.shape.at(col, i)];
        }
        x[col..].copy_from_slice(&self.values[self.shape.column(col)]);
        let has_many = done.len() * (rows - first) >= FEW;
        for part in Trapezoid::parts(done.clone()) {
            let factors = before[rows * (part.start - done.start)..].chunks_exact(rows.max(1));
            if has_many {
                let l = self.shape.view(self.values, part.clone(), first);
                let of_row = &before[rows * (part.start - done.start)..rows * (part.end - done.start)];
                let of_row = MatRef::from_column_major_slice(of_row, rows, part.len()).subrows(col, 1);
                let x = MatMut::from_column_major_slice_mut(&mut x[first..], rows - first, 1);
                matmul(x, Accum::Add, l, of_row.transpose(), -1.0, Par::Seq);
            } else {
                for (c, factors) in part.zip(factors) {
                    let factor = factors[col];
                    let l = &self.values[self.shape.column(c)][first - c..];
                    x[first..].iter_mut().zip(l).for_each(|(x, l)| *x -= factor * l);
                }
            }
        }
        let is_broken = !x[first..].iter().all(|v| v.abs() <= HUGE);
        if is_broken {
            x[first..].iter_mut().filter(|v| v.is_nan() || v.abs() > HUGE).for_each(|v| *v = 0.0);
        }
        let (mut off, mut at) = (0.0, first);
        for (i, v) in x[..own].iter().enumerate().skip(first).filter(|(i, _)| *i != col) {
            if v.abs() > off {
                (off, at) = (v.abs(), i);
            }
        }
        let below = x[own..].iter().fold(0.0f64, |most, v| most.max(v.abs()));
        Candidate { on: x[col].abs(), off, at, least: TINY.max(SMALL * below), is_broken }
    }

    /// Swaps two rows and columns of what is left, and the rows in the columns before and in so many of the workspace.
    fn swap(&mut self, p: usize, q: usize, of_work: usize) {
        if p == q {
            return;
        }
        let (shape, rows) = (self.shape, self.shape.rows);
        self.work.chunks_exact_mut(rows).take(of_work).for_each(|column| column.swap(p, q));
        for c in 0..p {
            self.values.swap(shape.at(p, c), shape.at(q, c));
        }
        self.values.swap(shape.at(p, p), shape.at(q, q));
        for i in p + 1..q {
            self.values.swap(shape.at(i, p), shape.at(q, i));
        }
        for i in q + 1..rows {
            self.values.swap(shape.at(i, p), shape.at(i, q));
        }
    }

    /// Makes column `j` one of L, with its pivot on the diagonal, which is `least` at least. Whether that had to be replaced.
    fn take_one(&mut self, j: usize, done: usize, least: f64) -> bool {
        let rows = self.shape.rows;
        let x = &mut self.work[rows * done..rows * (done + 1)];
        let is_small = x[j].abs() < least;
        if is_small {
            x[j] = least.copysign(x[j]);
        }
        let pivot = x[j];
        let to = &mut self.values[self.shape.column(j)];
        to.iter_mut().zip(&x[j..]).for_each(|(l, x)| *l = x / pivot);
        to[0] = pivot;
        is_small
    }

    /// Makes columns `j` and `j` + 1 two of L, with their pivot on the diagonal.
    fn take_pair(&mut self, j: usize, done: usize) {
        let rows = self.shape.rows;
        let (x, y) = self.work[rows * done..rows * (done + 2)].split_at_mut(rows);
        let between = x[j + 1];
        let (p, q) = (y[j + 1] / between, x[j] / between);
        let scale = 1.0 / (p * q - 1.0) / between;
        let (first, second) = (self.shape.column(j), self.shape.column(j + 1));
        let (head, tail) = self.values.split_at_mut(second.start);
        let (first, second) = (&mut head[first], &mut tail[..second.len()]);
        (first[0], first[1], second[0]) = (x[j], between, y[j + 1]);
        let to = first[2..].iter_mut().zip(&mut second[1..]);
        for ((l, m), (x, y)) in to.zip(x[j + 2..].iter().zip(&y[j + 2..])) {
            *l = (p * x - y) * scale;
            *m = (q * y - x) * scale;
        }
    }

    /// Updates the own columns after these by them.
    fn update(&mut self, done: Range<usize>) {
        let Self { shape, values, work } = self;
        let (before, after) = values.split_at_mut(shape.begin(done.end));
        for part in Trapezoid::parts(done.clone()) {
            let of_l_d = &work[shape.rows * (part.start - done.start)..shape.rows * (part.end - done.start)];
            let l_d = MatRef::from_column_major_slice(of_l_d, shape.rows, part.len());
            for columns in Trapezoid::parts(done.end..shape.cols) {
                let l = shape.view(before, part.clone(), columns.start);
                let l_d = l_d.subrows(columns.start, columns.len());
                shape.subtract((after, done.end), columns, l, l_d);
            }
        }
    }
}

/// Updates the rest by these columns.
fn update_rest(front: &mut Front<'_>, columns: Range<usize>, pivots: &[Pivot], work: &mut [f64]) {
    let Size { own, below } = front.size;
    if below == 0 {
        return;
    }
    let (shape, of_rest, values) = (panel(front.size), rest(front.size), &*front.values);
    let l = |j: usize| &values[shape.column(j)][own - j..];
    let d = |i: usize, j: usize| values[shape.at(i, j)];
    for (j, to) in columns.clone().zip(work.chunks_exact_mut(below)) {
        let other = if pivots[j].is_first {
            Some((j + 1, d(j + 1, j)))
        } else {
            let is_second = j > 0 && pivots[j - 1].is_first;
            is_second.then(|| (j - 1, d(j, j - 1)))
        };
        let on = d(j, j);
        match other {
            None => to.iter_mut().zip(l(j)).for_each(|(to, l)| *to = on * l),
            Some((other, between)) => {
                let both = l(j).iter().zip(l(other));
                to.iter_mut().zip(both).for_each(|(to, (l, m))| *to = on * l + between * m);
            }
        }
    }
    if columns.len() * below <= FEW {
        for c in 0..below {
            let to = &mut front.rest[of_rest.column(c)];
            for (j, l_d) in columns.clone().zip(work.chunks_exact(below)) {
                to.iter_mut().zip(&l(j)[c..]).for_each(|(to, l)| *to -= l_d[c] * l);
            }
        }
        return;
    }
    for to in Trapezoid::parts(0..below) {
        for part in Trapezoid::parts(columns.clone()) {
            let of_l_d = &work[below * (part.start - columns.start)..below * (part.end - columns.start)];
            let l_d = MatRef::from_column_major_slice(of_l_d, below, part.len()).subrows(to.start, to.len());
            let l = shape.view(values, part, own + to.start);
            of_rest.subtract((front.rest, 0), to.clone(), l, l_d);
        }
    }
}

/// The sum of products, in four sums.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (a.chunks_exact(4), b.chunks_exact(4));
    let mut sum: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 4];
    for (a, b) in a.zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sum += sums.iter().sum::<f64>();
    sum
}

impl Multifrontal<Symmetric> {
    /// A supernode: its size and first place, its columns of L and D, and its pivots.
    fn node(&self, s: usize) -> (Size, usize, &[f64], &[Pivot]) {
        let (size, first) = (self.tree.size(s), self.tree.begin[s]);
        (size, first, self.values_of(s), &self.pivots[first..first + size.own])
    }

    /// y = (L D Lᵀ)⁻¹ y.
    pub(super) fn solve(&self, y: &mut [f64]) {
        for s in 0..self.tree.len() {
            let (size, first, values, pivots) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            for (j, pivot) in pivots.iter().enumerate() {
                own.swap(j, pivot.from as usize);
            }
            for (j, pivot) in pivots.iter().enumerate() {
                let v = own[j];
                if v == 0.0 {
                    continue;
                }
                let (of_own, of_below) = values[panel(size).column(j)].split_at(size.own - j);
                let skip = if pivot.is_first { 2 } else { 1 };
                own[j + skip..].iter_mut().zip(&of_own[skip..]).for_each(|(y, l)| *y -= l * v);
                for (&place, l) in self.tree.pattern(s).iter().zip(of_below) {
                    below[place as usize - first - size.own] -= l * v;
                }
            }
            divide(size, values, pivots, own);
        }
        let mut gathered = Vec::new();
        for s in (0..self.tree.len()).rev() {
            let (size, first, values, pivots) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            gathered.clear();
            gathered.extend(self.tree.pattern(s).iter().map(|&place| below[place as usize - first - size.own]));
            for (j, pivot) in pivots.iter().enumerate().rev() {
                let (of_own, of_below) = values[panel(size).column(j)].split_at(size.own - j);
                let skip = if pivot.is_first { 2 } else { 1 };
                own[j] -= dot(&of_own[skip..], &own[j + skip..]) + dot(of_below, &gathered);
            }
            for (j, pivot) in pivots.iter().enumerate().rev() {
                own.swap(j, pivot.from as usize);
            }
        }
    }
}

/// y = D⁻¹ y.
fn divide(size: Size, values: &[f64], pivots: &[Pivot], y: &mut [f64]) {
    let d = |i: usize, j: usize| values[panel(size).at(i, j)];
    let mut j = 0;
    while j < y.len() {
        if pivots[j].is_first {
            let between = d(j + 1, j);
            let (p, q) = (d(j + 1, j + 1) / between, d(j, j) / between);
            let scale = 1.0 / (p * q - 1.0) / between;
            (y[j], y[j + 1]) = ((p * y[j] - y[j + 1]) * scale, (q * y[j + 1] - y[j]) * scale);
            j += 2;
        } else {
            y[j] /= d(j, j);
            j += 1;
        }
    }
}
