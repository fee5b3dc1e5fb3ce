//! A Krylov basis on the host's threads: chunk by chunk of the rows, so that all columns of a chunk stay in a cache.

use std::ops::Range;

use rayon::prelude::*;

use super::HostBackend;
use super::lanes::dot;
use super::passes::turn;
use crate::backend::basis::BasisBackend;
use crate::error::Result;
use crate::memory::NoMemory;
use crate::real::Real;

/// Rows of a chunk: with 30 columns 240 KiB in double precision.
const CHUNK: usize = 1024;

/// Columns of `n` elements, one behind the other.
pub(crate) struct HostBasis<T> {
    elements: Vec<T>,
    n: usize,
}

impl<T: Real> HostBasis<T> {
    /// Column `c` in a chunk of the rows.
    fn part(&self, c: usize, rows: &Range<usize>) -> &[T] {
        &self.elements[c * self.n..][rows.clone()]
    }
}

/// w = w + factor V f on a chunk, column by column.
fn add<T: Real>(sign: f64, f: &[f64], part: impl Fn(usize) -> usize, elements: &[T], w: &mut [T]) {
    for (c, f) in f.iter().enumerate() {
        let (f, first) = (T::from_f64(sign * f), part(c));
        let column = &elements[first..first + w.len()];
        w.iter_mut().zip(column).for_each(|(w, v)| *w += f * *v);
    }
}

/// The sums of chunks, added in order.
fn total(of_chunks: Vec<Vec<f64>>, len: usize) -> Vec<f64> {
    of_chunks.into_iter().fold(vec![0.0; len], |mut all, part| {
        all.iter_mut().zip(part).for_each(|(all, part)| *all += part);
        all
    })
}

impl<T: Real> BasisBackend for HostBackend<T> {
    type Basis = HostBasis<T>;

    fn basis(&self, columns: usize) -> Result<HostBasis<T>> {
        let (mut elements, len) = (Vec::new(), self.n * columns);
        let no_memory = |_| NoMemory((len * size_of::<T>()) as u64).into_error("the Krylov basis");
        elements.try_reserve_exact(len).map_err(no_memory)?;
        elements.resize(len, T::default());
        Ok(HostBasis { elements, n: self.n })
    }

    fn column_dots(&self, v: &mut HostBasis<T>, (columns, newest): (usize, usize), w: &Vec<T>) -> Result<Vec<f64>> {
        let _running = self.running("basis_dots");
        let of_chunk = |(k, w): (usize, &[T])| {
            let rows = k * CHUNK..k * CHUNK + w.len();
            let of_w = (0..columns).map(|c| dot(v.part(c, &rows), w));
            let of_newest = (0..columns).map(|c| dot(v.part(c, &rows), v.part(newest, &rows)));
            of_w.chain(of_newest).chain([dot(w, w)]).collect()
        };
        Ok(total(w[..self.n].par_chunks(CHUNK).enumerate().map(of_chunk).collect(), 2 * columns + 1))
    }

    fn next_column(
        &self,
        v: &mut HostBasis<T>,
        f: &[f64],
        (scale, w): (f64, &Vec<T>),
        (column, is_pair): (usize, bool),
        to: &mut Vec<T>,
    ) -> Result<f64> {
        let _running = self.running("basis_next");
        let (n, scale) = (v.n, T::from_f64(scale));
        let (former, rest) = v.elements.split_at_mut(column * n);
        let (new, turned) = rest.split_at_mut(n);
        let chunks = to[..n].par_chunks_mut(CHUNK).zip(new.par_chunks_mut(CHUNK)).zip(w[..n].par_chunks(CHUNK));
        let squares = chunks.enumerate().map(|(k, ((to, column), w))| {
            column.copy_from_slice(w);
            add(-1.0, f, |c| c * n + k * CHUNK, former, column);
            column.iter_mut().for_each(|v| *v = scale * *v);
            to.copy_from_slice(column);
            vec![dot(column, column)]
        });
        let squares = total(squares.collect(), 1);
        if is_pair {
            turned[..n].par_chunks_mut(CHUNK).zip(new.par_chunks(CHUNK)).for_each(|(turned, v)| turn(v, turned));
        }
        Ok(squares[0])
    }

    fn add_columns(&self, v: &mut HostBasis<T>, f: &[f64], x: &mut Vec<T>) -> Result<()> {
        let _running = self.running("basis_add");
        let chunks = x[..self.n].par_chunks_mut(CHUNK).enumerate();
        chunks.for_each(|(k, x)| add(1.0, f, |c| c * v.n + k * CHUNK, &v.elements, x));
        Ok(())
    }

    fn sum(&self, values: &mut [f64]) -> Result<()> {
        self.sum_values(values)
    }
}
