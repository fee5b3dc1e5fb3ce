//! The fronts of L U: dense elimination of the columns of a supernode, and solving by what came of it.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::{Accum, MatMut, MatRef, Par};

use super::front::{Elimination, Front, Size};
use super::lu::TINY;
use super::multifrontal::Multifrontal;

/// Columns that are eliminated one by one before the rest is updated by a product of matrices.
const PANEL: usize = 32;

/// Elimination with the pivots that there are within supernodes.
#[derive(Debug)]
pub(super) struct Square;

impl Elimination for Square {
    type Pivot = u32;

    fn elements(size: Size) -> usize {
        size.own * (size.own + 2 * size.below)
    }

    fn rest(size: Size) -> usize {
        size.below * size.below
    }

    fn flops(size: Size) -> f64 {
        let (k, m) = (size.own as f64, size.below as f64);
        k * k * (2.0 / 3.0 * k + 2.0 * m) + 2.0 * k * m * m
    }

    fn at<'f>(front: &'f mut Front<'_>, i: usize, j: usize) -> &'f mut f64 {
        let Parts { size, panel, upper, rest } = Parts::of(front);
        let (k, order) = (size.own, size.order());
        if j < k {
            &mut panel[i + order * j]
        } else if i < k {
            &mut upper[i + k * (j - k)]
        } else {
            &mut rest[i - k + size.below * (j - k)]
        }
    }

    fn add(front: &mut Front<'_>, from: &[f64], places: &[u32]) {
        let Parts { size, panel, upper, rest } = Parts::of(front);
        let (k, order, below) = (size.own, size.order(), size.below);
        // own places come before the others
        let of_own = places.partition_point(|&place| (place as usize) < k);
        for (from, &j) in from.chunks_exact(places.len().max(1)).zip(places) {
            let j = j as usize;
            let add = |to: &mut [f64], range: std::ops::Range<usize>, first: usize| {
                for (&i, v) in places[range.clone()].iter().zip(&from[range]) {
                    to[i as usize - first] += v;
                }
            };
            if j < k {
                add(&mut panel[order * j..order * (j + 1)], 0..places.len(), 0);
            } else {
                let column = j - k;
                add(&mut upper[k * column..k * (column + 1)], 0..of_own, 0);
                add(&mut rest[below * column..below * (column + 1)], of_own..places.len(), k);
            }
        }
    }

    fn eliminate(&mut self, front: &mut Front<'_>, pivots: &mut [u32], perturbed: impl FnMut(usize)) {
        Parts::of(front).eliminate(TINY, pivots, perturbed);
    }

    fn row_of(pivot: u32) -> usize {
        pivot as usize
    }
}

/// The parts of a front, each by columns.
///
/// ```text
/// ┌       ┬       ┐
/// │       │ upper │  own rows
/// │ panel ├       ┤
/// │       │ rest  │  rows below
/// └       ┴       ┘
/// ```
struct Parts<'a> {
    size: Size,
    /// The own columns.
    panel: &'a mut [f64],
    /// The own rows in the other columns.
    upper: &'a mut [f64],
    /// The others.
    rest: &'a mut [f64],
}

impl<'a> Parts<'a> {
    fn of(front: &'a mut Front<'_>) -> Self {
        let size = front.size;
        let (panel, upper) = front.values.split_at_mut(size.own * size.order());
        Self { size, panel, upper, rest: front.rest }
    }

    /// Eliminates the own columns: `panel` becomes L with U of the own rows on and above its diagonal, `upper` the rest of U, and
    /// `rest` the Schur complement.
    ///
    /// Pivots are the largest elements of their columns in the own rows; `swaps` is told, for each column, the row that changed
    /// places with it. A pivot smaller than `tiny` becomes `tiny`, with its sign; `perturbed` is told its column. So the pattern
    /// stays what it is, however bad the pivots are.
    ///
    /// O. Schenk, K. Gärtner, "On fast factorization pivoting methods for sparse symmetric indefinite systems", ETNA 23 (2006);
    /// X. S. Li, J. W. Demmel, "SuperLU_DIST", ACM TOMS 29 (2003), doi 10.1145/779359.779361.
    fn eliminate(&mut self, tiny: f64, swaps: &mut [u32], mut perturbed: impl FnMut(usize)) {
        let Size { own: k, below: m } = self.size;
        let order = self.size.order();
        for start in (0..k).step_by(PANEL) {
            let end = k.min(start + PANEL);
            self.eliminate_columns(start, end, tiny, swaps, &mut perturbed);
            swap_rows(&mut self.panel[..order * start], order, start, &swaps[start..end]);
            swap_rows(&mut self.panel[order * end..], order, start, &swaps[start..end]);
            let (done, others) = MatMut::from_column_major_slice_mut(self.panel, order, k).split_at_col_mut(end);
            if others.ncols() == 0 {
                continue;
            }
            let done = done.as_ref().subcols(start, end - start);
            let (mut u, below) = others.subrows_mut(start, order - start).split_at_row_mut(end - start);
            let (l, l_below) = done.subrows(start, order - start).split_at_row(end - start);
            solve_unit_lower_triangular_in_place(l, u.as_mut(), Par::Seq);
            matmul(below, Accum::Add, l_below, u.as_ref(), -1.0, Par::Seq);
        }
        if m == 0 {
            return;
        }
        swap_rows(self.upper, k, 0, swaps);
        let (l, l_below) = MatRef::from_column_major_slice(self.panel, order, k).split_at_row(k);
        let mut u = MatMut::from_column_major_slice_mut(self.upper, k, m);
        solve_unit_lower_triangular_in_place(l, u.as_mut(), Par::Seq);
        let rest = MatMut::from_column_major_slice_mut(self.rest, m, m);
        matmul(rest, Accum::Add, l_below, u.as_ref(), -1.0, Par::Seq);
    }

    /// Eliminates columns one by one, within these columns only.
    fn eliminate_columns(
        &mut self,
        start: usize,
        end: usize,
        tiny: f64,
        swaps: &mut [u32],
        perturbed: &mut impl FnMut(usize),
    ) {
        let (k, order) = (self.size.own, self.size.order());
        let columns = &mut self.panel[order * start..order * end];
        for j in start..end {
            let (left, right) = columns.split_at_mut(order * (j - start + 1));
            let column = &mut left[order * (j - start)..];
            let mut at = j;
            for i in j + 1..k {
                if column[i].abs() > column[at].abs() {
                    at = i;
                }
            }
            swaps[j] = at as u32;
            column.swap(j, at);
            if column[j].abs() < tiny {
                column[j] = tiny.copysign(column[j]);
                perturbed(j);
            }
            let pivot = column[j];
            column[j + 1..].iter_mut().for_each(|v| *v /= pivot);
            for other in right.chunks_exact_mut(order) {
                other.swap(j, at);
                let factor = other[j];
                if factor != 0.0 {
                    for (o, l) in other[j + 1..].iter_mut().zip(&column[j + 1..]) {
                        *o -= factor * l;
                    }
                }
            }
            let before = left.len() - order;
            for other in left[..before].chunks_exact_mut(order) {
                other.swap(j, at);
            }
        }
    }
}

/// Swaps rows `first`, `first` + 1, … of all columns with those that `swaps` tells, in this order.
fn swap_rows(columns: &mut [f64], order: usize, first: usize, swaps: &[u32]) {
    if (first..).zip(swaps).all(|(j, &at)| j == at as usize) {
        return;
    }
    for column in columns.chunks_exact_mut(order.max(1)) {
        for (j, &at) in (first..).zip(swaps) {
            column.swap(j, at as usize);
        }
    }
}

impl Multifrontal<Square> {
    /// The panel and the other columns of U of a supernode, with its size and its first place.
    fn node(&self, s: usize) -> (Size, usize, &[f64], &[f64]) {
        let size = self.tree.size(s);
        let (panel, upper) = self.values_of(s).split_at(size.own * size.order());
        (size, self.tree.begin[s], panel, upper)
    }

    /// y = (L U)⁻¹ y.
    pub(super) fn solve(&self, y: &mut [f64]) {
        for s in 0..self.tree.len() {
            let (size, first, panel, _) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            for (j, &at) in self.pivots[first..first + size.own].iter().enumerate() {
                own.swap(j, at as usize);
            }
            for (j, column) in panel.chunks_exact(size.order()).enumerate() {
                let v = own[j];
                if v == 0.0 {
                    continue;
                }
                own[j + 1..].iter_mut().zip(&column[j + 1..size.own]).for_each(|(y, l)| *y -= l * v);
                for (&place, l) in self.tree.pattern(s).iter().zip(&column[size.own..]) {
                    below[place as usize - first - size.own] -= l * v;
                }
            }
        }
        for s in (0..self.tree.len()).rev() {
            let (size, first, panel, upper) = self.node(s);
            let (own, below) = y[first..].split_at_mut(size.own);
            for (&place, column) in self.tree.pattern(s).iter().zip(upper.chunks_exact(size.own)) {
                let v = below[place as usize - first - size.own];
                own.iter_mut().zip(column).for_each(|(y, u)| *y -= u * v);
            }
            for (j, column) in panel.chunks_exact(size.order()).enumerate().rev() {
                let v = own[j] / column[j];
                own[j] = v;
                own[..j].iter_mut().zip(column).for_each(|(y, u)| *y -= u * v);
            }
        }
    }
}
