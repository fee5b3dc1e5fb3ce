//! The host's block of rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::Format;
use super::dictionary::Dictionary;
use super::plan::refused;
use crate::backend::Backend;
use crate::backend::host::HostBackend;
use crate::backend::{Arriving, LinearOperator, pair};
use crate::comm::Message;
use crate::error::Result;
use crate::kernels::Shape;
use crate::matrix::Csr;
use crate::partition::{HaloPlan, Part};
use crate::real::Real;
use crate::timeline::Lane;

/// Entries that are worth a thread's while.
const CHUNK_NNZ: usize = 1 << 14;

/// Rows of a pattern that are summed together: their sums stay in the processor's first cache.
const RUN: usize = 512;

/// A block of rows of a matrix that is shared with the caller; only what differs is held here: renumbered columns where
/// there is a halo, values that are scaled or in single precision. Of rows of a few patterns, with the same values in rows of a
/// pattern, nothing is read but the patterns.
pub struct HostBlock<T> {
    a: Arc<Csr>,
    rows: Range<usize>,
    col_idx: Option<Vec<u32>>,
    values: Option<Vec<T>>,
    dictionary: Option<ByDictionary<T>>,
    halo: HaloPlan,
    chunk_rows: usize,
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
    /// Calls `row(i, (A x)_i)` for the rows of `y`, of which the first is row `first`, and adds the results. A run of rows of
    /// one pattern is summed entry by entry, each over all its rows: the same sums in the same order, but in vectors.
    fn for_rows(&self, first: usize, x: &[T], y: &mut [T], row: impl Fn(usize, T, &mut T) -> [f64; 2]) -> [f64; 2] {
        let of_row = &self.dictionary.of_row[first..first + y.len()];
        let (mut total, mut sums) = ([0.0; 2], [T::default(); RUN]);
        let mut begin = 0;
        for run in of_row.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(RUN)) {
            let (i, sums) = (first + begin, &mut sums[..run.len()]);
            sums.fill(T::default());
            for e in self.dictionary.entries(run[0]) {
                let at = (i as i64 + i64::from(self.dictionary.distances[e])) as usize;
                let value = self.values[e];
                sums.iter_mut().zip(&x[at..at + run.len()]).for_each(|(sum, &x)| *sum += value * x);
            }
            for (k, (&sum, y)) in sums.iter().zip(&mut y[begin..]).enumerate() {
                total = add(total, row(i + k, sum, y));
            }
            begin += run.len();
        }
        total
    }
}

impl<T: Real> HostBlock<T> {
    /// The rows of `part`, which was split off from `a`, times `factor`.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::Error::Usage) if the rows do not fit `format`.
    pub fn new(a: &Arc<Csr>, part: Part<'_>, factor: f64, format: Format) -> Result<Self> {
        let dictionary = dictionary(&part, factor, format)?;
        let values = match (&part.values, T::scaled(if dictionary.is_some() { &[] } else { &part.values }, factor)) {
            (Cow::Borrowed(_), Cow::Borrowed(_)) => None,
            (_, values) => Some(values.into_owned()),
        };
        let mean_nnz = (part.nnz() / part.n_owned().max(1)).max(1);
        Ok(Self {
            a: Arc::clone(a),
            rows: part.rows,
            col_idx: match part.col_idx {
                Cow::Owned(col_idx) if dictionary.is_none() => Some(col_idx),
                _ => None,
            },
            values,
            dictionary,
            halo: part.halo,
            chunk_rows: (CHUNK_NNZ / mean_nnz).max(1),
        })
    }

    /// How rows are stored.
    #[must_use]
    pub fn format(&self) -> Format {
        if self.dictionary.is_some() { Format::Dictionary } else { Format::Csr }
    }

    /// Memory that the rows take beside the matrix that is shared, in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let columns = 4 * self.col_idx.as_ref().map_or(0, Vec::len);
        let values = size_of::<T>() * self.values.as_ref().map_or(0, Vec::len);
        let dictionary = self.dictionary.as_ref().map_or(0, ByDictionary::bytes);
        (columns + values + dictionary) as u64
    }

    /// The name of a kernel, as devices call it.
    fn kernel(&self, csr: &'static str, dictionary: &'static str) -> &'static str {
        if self.dictionary.is_some() { dictionary } else { csr }
    }

    /// Calls `row(i, (A x)_i)` in parallel over chunks of `y`, and adds the results of each chunk in order.
    fn for_rows(&self, x: &[T], y: &mut [T], row: impl Fn(usize, T, &mut T) -> [f64; 2] + Sync) -> [f64; 2] {
        if let Some(dictionary) = &self.dictionary {
            let pieces = y.par_chunks_mut(self.chunk_rows).enumerate();
            let parts: Vec<_> = pieces.map(|(k, y)| dictionary.for_rows(k * self.chunk_rows, x, y, &row)).collect();
            return parts.into_iter().fold([0.0; 2], add);
        }
        let entries = self.a.row_ptr()[self.rows.start]..self.a.row_ptr()[self.rows.end];
        let shared_values = T::scaled(if self.values.is_some() { &[] } else { &self.a.values()[entries.clone()] }, 1.0);
        let values = self.values.as_deref().unwrap_or(&shared_values);
        let col_idx = self.col_idx.as_deref().unwrap_or(&self.a.col_idx()[entries.clone()]);
        let row_ptr = &self.a.row_ptr()[self.rows.start..=self.rows.end];
        let chunk = |first: usize, y: &mut [T]| {
            let mut total = [0.0; 2];
            for (k, y) in y.iter_mut().enumerate() {
                let i = first + k;
                let range = row_ptr[i] - entries.start..row_ptr[i + 1] - entries.start;
                let mut sum = T::default();
                for (&v, &j) in values[range.clone()].iter().zip(&col_idx[range]) {
                    sum += v * x[j as usize];
                }
                total = add(total, row(i, sum, y));
            }
            total
        };
        if values.len() <= CHUNK_NNZ {
            return chunk(0, y);
        }
        let parts: Vec<_> =
            y.par_chunks_mut(self.chunk_rows).enumerate().map(|(k, y)| chunk(k * self.chunk_rows, y)).collect();
        parts.into_iter().fold([0.0; 2], add)
    }

    fn exchange(&self, backend: &HostBackend<T>, x: &mut [T]) -> Result<()> {
        let start = Instant::now();
        let comm = backend.comm();
        let (owned, halo) = x.split_at_mut(self.rows.len());
        let message: Vec<T> = self.halo.send.iter().map(|&i| owned[i as usize]).collect();
        comm.post(Message::Host(Arc::new(message)))?;
        for receive in &self.halo.receive {
            let Message::Host(message) = comm.fetch(receive.from)? else { unreachable!("the host shares no context") };
            halo[receive.halo.clone()].copy_from_slice(&message[receive.segment.clone()]);
        }
        backend.halos.set(backend.halos.get() + start.elapsed());
        if backend.comm().size() > 1 {
            backend.recorder.span(Lane::Host, "halo", start);
        }
        Ok(())
    }
}

fn add(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] + b[0], a[1] + b[1]]
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
        self.for_rows(x, &mut y[..self.rows.len()], |_, sum, y| {
            *y = sum;
            [0.0; 2]
        });
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
        dots: &mut [f64; 2],
    ) -> Result<()> {
        if let Some(Arriving { of, then }) = arriving {
            self.exchange(backend, &mut v[of])?;
            then(v)?;
        }
        let [x, y] = pair(v, of);
        let _running = backend.running(self.kernel("spmv_dot_csr", "spmv_dot_dictionary"));
        *dots = self.for_rows(x, &mut y[..self.rows.len()], |i, sum, y| {
            *y = sum;
            [x[i].to_f64() * sum.to_f64(), sum.to_f64() * sum.to_f64()]
        });
        Ok(())
    }

    /// The message is made when it is sent.
    fn pack_halo(&self, _: &HostBackend<T>, _: &Vec<T>, _: bool) -> Result<()> {
        Ok(())
    }

    fn residual(&self, backend: &HostBackend<T>, b: &Vec<T>, x: &mut Vec<T>, r: &mut Vec<T>) -> Result<()> {
        self.exchange(backend, x)?;
        let _running = backend.running(self.kernel("residual_csr", "residual_dictionary"));
        self.for_rows(x, &mut r[..self.rows.len()], |i, sum, r| {
            *r = b[i] - sum;
            [0.0; 2]
        });
        Ok(())
    }

    fn halo(&self) -> usize {
        self.halo.len
    }

    fn bytes(&self) -> u64 {
        let entries = self.a.row_ptr()[self.rows.end] - self.a.row_ptr()[self.rows.start];
        let n = self.rows.len();
        if let Some(dictionary) = &self.dictionary {
            return (dictionary.bytes() + 2 * n * size_of::<T>()) as u64;
        }
        // the host keeps 8-byte row pointers
        (entries * (4 + size_of::<T>()) + 8 * (n + 1) + 2 * n * size_of::<T>()) as u64
    }
}
