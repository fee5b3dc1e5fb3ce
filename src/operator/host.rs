//! The host's block of rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::dictionary::Dictionary;
use super::plan::refused;
use super::{Exchange, Format};
use crate::backend::Backend;
use crate::backend::host::HostBackend;
use crate::backend::host::lanes::dot;
use crate::backend::{Arriving, LinearOperator, pair};
use crate::comm::{Message, WritableMemory};
use crate::error::Result;
use crate::kernels::Shape;
use crate::matrix::Csr;
use crate::partition::{HaloPlan, NewValues, Part};
use crate::real::Real;
use crate::timeline::Lane;

/// Entries that are worth a thread's while.
const CHUNK_NNZ: usize = 1 << 14;

/// Rows of a pattern that are summed together: their sums stay in registers.
const BLOCK: usize = 8;

/// A block of rows of a matrix that is shared with the caller; only what differs is held here: renumbered columns where
/// there is a halo, values that are scaled or in single precision. Of rows of a few patterns, with the same values in rows of a
/// pattern, nothing is read but the patterns.
pub struct HostBlock<T> {
    a: Arc<Csr>,
    rows: Range<usize>,
    col_idx: Option<Arc<Vec<u32>>>,
    values: Option<Arc<Vec<T>>>,
    dictionary: Option<Arc<ByDictionary<T>>>,
    halo: HaloPlan,
    /// Whether halos are exchanged while kernels of other ranks run, if these can do it.
    is_live: bool,
    chunk_rows: usize,
    /// Of vectors.
    columns: usize,
}

/// Rows by their entries.
struct Rows<'a, T> {
    row_ptr: &'a [usize],
    col_idx: &'a [u32],
    values: &'a [T],
}

impl<T: Real> Rows<'_, T> {
    /// The same for vectors of K columns.
    fn multiply_columns<const K: usize>(&self, first: usize, x: &[T], y: &mut [T]) {
        let (base, x) = (self.row_ptr[0], x.as_chunks::<K>().0);
        for (y, ends) in y.as_chunks_mut::<K>().0.iter_mut().zip(self.row_ptr[first..].windows(2)) {
            let row = ends[0] - base..ends[1] - base;
            let mut sums = [T::default(); K];
            for (&v, &j) in self.values[row.clone()].iter().zip(&self.col_idx[row]) {
                let x = &x[j as usize];
                (0..K).for_each(|c| sums[c] += v * x[c]);
            }
            *y = sums;
        }
    }

    /// y = A x in the rows of `y`, of which the first is row `first`.
    fn multiply(&self, first: usize, x: &[T], y: &mut [T]) {
        let base = self.row_ptr[0];
        for (y, ends) in y.iter_mut().zip(self.row_ptr[first..].windows(2)) {
            let row = ends[0] - base..ends[1] - base;
            let entries = self.values[row.clone()].iter().zip(&self.col_idx[row]);
            *y = entries.fold(T::default(), |sum, (&v, &j)| sum + v * x[j as usize]);
        }
    }
}

/// Rows by patterns.
struct ByDictionary<T> {
    dictionary: Dictionary,
    values: Vec<T>,
}

impl<T> ByDictionary<T> {
    /// The patterns of the rows and their tables.
    fn bytes(&self) -> usize {
        let Self { dictionary, values } = self;
        2 * dictionary.of_row.len()
            + 4 * (dictionary.starts.len() + dictionary.distances.len())
            + values.len() * size_of::<T>()
    }
}

impl<T: Real> ByDictionary<T> {
    /// The same for vectors of K columns.
    fn multiply_columns<const K: usize>(&self, first: usize, x: &[T], y: &mut [T]) {
        let x = x.as_chunks::<K>().0;
        for (i, y) in (first..).zip(y.as_chunks_mut::<K>().0) {
            let entries = self.dictionary.entries(self.dictionary.of_row[i]);
            let mut sums = [T::default(); K];
            for (&distance, &v) in self.dictionary.distances[entries.clone()].iter().zip(&self.values[entries]) {
                let [x] = elements(x, i, distance);
                (0..K).for_each(|c| sums[c] += v * x[c]);
            }
            *y = sums;
        }
    }

    /// y = A x in the rows of `y`, of which the first is row `first`. Rows of one pattern are summed together, entry by entry, in
    /// the order of row by row.
    fn multiply(&self, first: usize, x: &[T], mut y: &mut [T]) {
        let of_row = &self.dictionary.of_row[first..first + y.len()];
        let mut i = first;
        for run in of_row.chunk_by(|a, b| a == b) {
            let entries = self.dictionary.entries(run[0]);
            let entries = self.dictionary.distances[entries.clone()].iter().zip(&self.values[entries]);
            let (of_run, rest) = y.split_at_mut(run.len());
            let (blocks, single) = of_run.as_chunks_mut::<BLOCK>();
            for y in blocks {
                *y = entries.clone().fold([T::default(); BLOCK], |sums, (&distance, &value)| {
                    let x = elements::<_, BLOCK>(x, i, distance);
                    std::array::from_fn(|k| sums[k] + value * x[k])
                });
                i += BLOCK;
            }
            for y in single {
                *y = entries.clone().fold(T::default(), |sum, (&distance, &value)| {
                    let [x] = elements(x, i, distance);
                    sum + value * *x
                });
                i += 1;
            }
            y = rest;
        }
    }
}

/// Elements of x from `distance` behind row i on.
fn elements<T, const N: usize>(x: &[T], i: usize, distance: i32) -> &[T; N] {
    let x = x[(i as i64 + i64::from(distance)) as usize..].first_chunk();
    x.unwrap_or_else(|| unreachable!("columns of patterns are checked"))
}

impl<T: Real> HostBlock<T> {
    /// The rows of `part`, which was split off from `a`, times `factor`.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if the rows do not fit `format`.
    pub fn new(a: &Arc<Csr>, part: Part<'_>, factor: f64, format: Format) -> Result<Self> {
        let dictionary = dictionary(&part, factor, format)?;
        let values = if dictionary.is_some() { &[] } else { &*part.values };
        let values = own_values(values, matches!(part.values, Cow::Borrowed(_)), factor);
        let mean_nnz = (part.nnz() / part.n_owned().max(1)).max(1);
        Ok(Self {
            a: Arc::clone(a),
            rows: part.rows,
            col_idx: if dictionary.is_none() { part.col_idx.into_own().map(Arc::new) } else { None },
            values,
            dictionary: dictionary.map(Arc::new),
            halo: part.halo,
            is_live: false,
            chunk_rows: (CHUNK_NNZ / mean_nnz).max(1),
            columns: 1,
        })
    }

    /// The same rows, with halos exchanged by this model.
    pub(crate) fn exchanged_by(self, model: Exchange) -> Self {
        Self { is_live: model == Exchange::Live, ..self }
    }

    /// The same rows, for vectors of 2, 4, 8 or 16 columns.
    pub(crate) fn of_columns(&self, columns: usize) -> Self {
        let Self { a, rows, col_idx, values, dictionary, .. } = self;
        Self {
            a: Arc::clone(a),
            rows: rows.clone(),
            col_idx: col_idx.clone(),
            values: values.clone(),
            dictionary: dictionary.clone(),
            halo: self.halo.of_columns(columns),
            is_live: false,
            chunk_rows: (self.chunk_rows / columns).max(1),
            columns,
        }
    }

    /// How rows are stored.
    #[must_use]
    pub fn format(&self) -> Format {
        if self.dictionary.is_some() { Format::Dictionary } else { Format::Csr }
    }

    /// Memory that the rows take beside the matrix that is shared, in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let columns = 4 * self.col_idx.as_ref().map_or(0, |columns| columns.len());
        let values = size_of::<T>() * self.values.as_ref().map_or(0, |values| values.len());
        let dictionary = self.dictionary.as_ref().map_or(0, |dictionary| dictionary.bytes());
        (columns + values + dictionary) as u64
    }

    /// The name of a kernel, as devices call it.
    fn kernel(&self, csr: &'static str, dictionary: &'static str) -> &'static str {
        if self.dictionary.is_some() { dictionary } else { csr }
    }

    /// y = A x in parallel over chunks of `y`; gives each to `finish` with the place of its first element while it is in the cache, and
    /// adds what comes of that in order.
    fn for_chunks(&self, x: &[T], y: &mut [T], finish: impl Fn(usize, &mut [T]) -> Vec<f64> + Sync) -> Vec<f64> {
        let entries = self.a.row_ptr()[self.rows.start]..self.a.row_ptr()[self.rows.end];
        let shared_values = T::scaled(if self.values.is_some() { &[] } else { &self.a.values()[entries.clone()] }, 1.0);
        let rows = Rows {
            row_ptr: &self.a.row_ptr()[self.rows.start..=self.rows.end],
            col_idx: self.col_idx.as_ref().map_or(&self.a.col_idx()[entries.clone()], |columns| columns),
            values: self.values.as_ref().map_or(&shared_values, |values| values),
        };
        let chunk = |(k, y): (usize, &mut [T])| {
            let first = k * self.chunk_rows;
            match (self.columns, &self.dictionary) {
                (1, Some(dictionary)) => dictionary.multiply(first, x, y),
                (1, None) => rows.multiply(first, x, y),
                (2, Some(dictionary)) => dictionary.multiply_columns::<2>(first, x, y),
                (2, None) => rows.multiply_columns::<2>(first, x, y),
                (4, Some(dictionary)) => dictionary.multiply_columns::<4>(first, x, y),
                (4, None) => rows.multiply_columns::<4>(first, x, y),
                (8, Some(dictionary)) => dictionary.multiply_columns::<8>(first, x, y),
                (8, None) => rows.multiply_columns::<8>(first, x, y),
                (_, Some(dictionary)) => dictionary.multiply_columns::<16>(first, x, y),
                (_, None) => rows.multiply_columns::<16>(first, x, y),
            }
            finish(first * self.columns, y)
        };
        let len = self.chunk_rows * self.columns;
        if y.len() <= len {
            return chunk((0, y));
        }
        let parts: Vec<_> = y.par_chunks_mut(len).enumerate().map(chunk).collect();
        let add = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a + b).collect();
        parts.into_iter().reduce(add).unwrap_or_default()
    }

    /// The rank's owned elements of a vector.
    fn owned(&self) -> usize {
        self.rows.len() * self.columns
    }

    /// x·y and y·y of some elements, for each column.
    fn dots(&self, x: &[T], y: &[T]) -> Vec<f64> {
        if self.columns == 1 {
            return vec![dot(x, y), dot(y, y)];
        }
        let mut sums = vec![0.0; 2 * self.columns];
        let (xy, yy) = sums.split_at_mut(self.columns);
        for (x, y) in x.chunks_exact(self.columns).zip(y.chunks_exact(self.columns)) {
            for (c, (x, y)) in x.iter().zip(y).enumerate() {
                let y = y.to_f64();
                xy[c] += x.to_f64() * y;
                yy[c] += y * y;
            }
        }
        sums
    }

    fn exchange(&self, backend: &HostBackend<T>, x: &mut [T]) -> Result<()> {
        exchange(backend, &self.halo, self.owned(), x)
    }
}

/// Fills the halo of x, behind `owned` elements.
pub(super) fn exchange<T: Real>(backend: &HostBackend<T>, halo: &HaloPlan, owned: usize, x: &mut [T]) -> Result<()> {
    let start = Instant::now();
    let comm = backend.comm();
    let (owned, arriving) = x.split_at_mut(owned);
    let message: Vec<T> = halo.send.iter().map(|&i| owned[i as usize]).collect();
    comm.post(Message::Host(Arc::new(message)), &halo.receivers)?;
    let of_this_host = |len| -> Result<Arc<dyn WritableMemory<T>>> { Ok(Arc::new(vec![T::default(); len])) };
    for receive in &halo.receive {
        let (Message::Host(message), segment) = comm.fetch(receive.from, &receive.segment, &of_this_host)? else {
            unreachable!("the host shares no context")
        };
        arriving[receive.halo.clone()].copy_from_slice(&message[segment]);
    }
    backend.halos.set(backend.halos.get() + start.elapsed());
    if backend.comm().size() > 1 {
        backend.recorder.span(Lane::Host, "halo", start);
    }
    Ok(())
}

/// Values times `factor`, unless these are those of the matrix.
fn own_values<T: Real>(values: &[f64], are_of_matrix: bool, factor: f64) -> Option<Arc<Vec<T>>> {
    match T::scaled(values, factor) {
        Cow::Borrowed(_) if are_of_matrix => None,
        values => Some(Arc::new(values.into_owned())),
    }
}

/// The rows by patterns, if a pattern has the values, too: otherwise the host, which has the matrix anyway, gains little.
fn dictionary<T: Real>(part: &Part<'_>, factor: f64, format: Format) -> Result<Option<ByDictionary<T>>> {
    let dictionary = match format {
        Format::Dictionary => Some(Dictionary::with_values(part).map_err(|why| refused(format, &why))?),
        Format::Auto => Dictionary::with_values(part).ok().filter(|dictionary| dictionary.suit(Shape::Cpu)),
        Format::Csr | Format::Pattern | Format::Sell => None,
    };
    Ok(dictionary.and_then(|dictionary| {
        let values = T::scaled(dictionary.values.as_ref()?, factor).into_owned();
        dictionary.check_columns(part.n_owned() + part.halo.len);
        Some(ByDictionary { dictionary, values })
    }))
}

impl<T: Real> LinearOperator<HostBackend<T>> for HostBlock<T> {
    fn apply(&self, backend: &HostBackend<T>, x: &mut Vec<T>, y: &mut Vec<T>) -> Result<()> {
        self.exchange(backend, x)?;
        let _running = backend.running(self.kernel("spmv_csr", "spmv_dictionary"));
        self.for_chunks(x, &mut y[..self.owned()], |_, _| Vec::new());
        Ok(())
    }

    fn fill_halo(&self, backend: &HostBackend<T>, x: &mut Vec<T>) -> Result<()> {
        self.exchange(backend, x)
    }

    fn multiply(
        &self,
        backend: &HostBackend<T>,
        v: &mut [Vec<T>],
        of: [usize; 2],
        arriving: Option<Arriving<'_, Vec<T>>>,
        dots: &mut Vec<f64>,
    ) -> Result<()> {
        if backend.is_over() {
            return Ok(());
        }
        if let Some(arriving) = arriving {
            self.receive_halo(backend, v, arriving)?;
        }
        let [x, y] = pair(v, of);
        let _running = backend.running(self.kernel("spmv_dot_csr", "spmv_dot_dictionary"));
        *dots = self.for_chunks(x, &mut y[..self.owned()], |first, y| self.dots(&x[first..first + y.len()], y));
        Ok(())
    }

    fn receive_halo(
        &self,
        backend: &HostBackend<T>,
        v: &mut [Vec<T>],
        Arriving { of, then }: Arriving<'_, Vec<T>>,
    ) -> Result<()> {
        self.exchange(backend, &mut v[of])?;
        then(v)
    }

    fn take_values(&mut self, _: &HostBackend<T>, new: &NewValues<'_>) -> Result<bool> {
        (self.a, self.values) = (Arc::clone(new.a), own_values(new.values()?, new.are_of_matrix(), new.factor));
        Ok(self.dictionary.is_none())
    }

    fn takes_columns(&self) -> bool {
        true
    }

    fn of_columns(&self, _: &HostBackend<T>, columns: usize) -> Result<Self> {
        Ok(HostBlock::of_columns(self, columns))
    }

    /// The message is made when it is sent.
    fn pack_halo(&self, _: &HostBackend<T>, _: &Vec<T>, _: bool) -> Result<()> {
        Ok(())
    }

    fn residual(&self, backend: &HostBackend<T>, b: &Vec<T>, x: &mut Vec<T>, r: &mut Vec<T>) -> Result<()> {
        self.exchange(backend, x)?;
        let _running = backend.running(self.kernel("residual_csr", "residual_dictionary"));
        self.for_chunks(x, &mut r[..self.owned()], |first, r| {
            r.iter_mut().zip(&b[first..]).for_each(|(r, &b)| *r = b - *r);
            Vec::new()
        });
        Ok(())
    }

    fn live_halo(&self) -> Option<&HaloPlan> {
        Some(&self.halo).filter(|_| self.is_live)
    }

    fn halo(&self) -> usize {
        self.halo.len
    }

    fn bytes(&self) -> u64 {
        let entries = self.a.row_ptr()[self.rows.end] - self.a.row_ptr()[self.rows.start];
        let vectors = 2 * self.owned() * size_of::<T>();
        if let Some(dictionary) = &self.dictionary {
            return (dictionary.bytes() + vectors) as u64;
        }
        // the host keeps 8-byte row pointers
        (entries * (4 + size_of::<T>()) + 8 * (self.rows.len() + 1) + vectors) as u64
    }
}
