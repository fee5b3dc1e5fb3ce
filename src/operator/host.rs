//! The host's block of rows.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;

use super::LinearOperator;
use crate::error::Result;
use crate::matrix::Csr;
use crate::ops::Ops;
use crate::ops::host::{HostOps, HostSum};
use crate::partition::{HaloPlan, Part};
use crate::real::Real;
use crate::timeline::Lane;

/// Entries that are worth a thread's while.
const CHUNK_NNZ: usize = 1 << 14;

/// A block of rows of a matrix that is shared with the caller; only what differs is held here: renumbered columns where
/// there is a halo, values that are scaled or in single precision.
pub struct CsrHost<T> {
    a: Arc<Csr>,
    rows: Range<usize>,
    col_idx: Option<Vec<u32>>,
    values: Option<Vec<T>>,
    halo: HaloPlan,
    chunk_rows: usize,
}

impl<T: Real> CsrHost<T> {
    /// The rows of `part`, which was split off from `a`, times `factor`.
    #[must_use]
    pub fn new(a: &Arc<Csr>, part: Part<'_>, factor: f64) -> Self {
        let values = match T::scaled(part.values, factor) {
            Cow::Borrowed(_) => None,
            Cow::Owned(values) => Some(values),
        };
        let mean_nnz = (part.nnz() / part.n_owned().max(1)).max(1);
        Self {
            a: Arc::clone(a),
            rows: part.rows,
            col_idx: match part.col_idx {
                Cow::Borrowed(_) => None,
                Cow::Owned(col_idx) => Some(col_idx),
            },
            values,
            halo: part.halo,
            chunk_rows: (CHUNK_NNZ / mean_nnz).max(1),
        }
    }

    /// Calls `row(i, (A x)_i)` in parallel over chunks of `y`, and adds the results of each chunk in order.
    fn for_rows(&self, x: &[T], y: &mut [T], row: impl Fn(usize, T, &mut T) -> f64 + Sync) -> f64 {
        let entries = self.a.row_ptr()[self.rows.start]..self.a.row_ptr()[self.rows.end];
        let shared_values = T::scaled(if self.values.is_some() { &[] } else { &self.a.values()[entries.clone()] }, 1.0);
        let values = self.values.as_deref().unwrap_or(&shared_values);
        let col_idx = self.col_idx.as_deref().unwrap_or(&self.a.col_idx()[entries.clone()]);
        let row_ptr = &self.a.row_ptr()[self.rows.start..=self.rows.end];
        let chunk = |first: usize, y: &mut [T]| {
            let mut total = 0.0;
            for (k, y) in y.iter_mut().enumerate() {
                let i = first + k;
                let range = row_ptr[i] - entries.start..row_ptr[i + 1] - entries.start;
                let mut sum = T::default();
                for (&v, &j) in values[range.clone()].iter().zip(&col_idx[range]) {
                    sum += v * x[j as usize];
                }
                total += row(i, sum, y);
            }
            total
        };
        if values.len() <= CHUNK_NNZ {
            return chunk(0, y);
        }
        let parts: Vec<f64> =
            y.par_chunks_mut(self.chunk_rows).enumerate().map(|(k, y)| chunk(k * self.chunk_rows, y)).collect();
        parts.into_iter().sum()
    }

    fn exchange(&self, ops: &HostOps<T>, x: &mut [T]) -> Result<()> {
        let start = Instant::now();
        let comm = ops.comm();
        let (owned, halo) = x.split_at_mut(self.rows.len());
        comm.post(&mut |message| {
            message.iter_mut().zip(&self.halo.send).for_each(|(m, &i)| *m = owned[i as usize]);
            Ok(())
        })?;
        for receive in &self.halo.receive {
            comm.fetch(receive.from, &mut |message| {
                halo[receive.halo.clone()].copy_from_slice(&message[receive.segment.clone()]);
                Ok(())
            })?;
        }
        ops.halos.set(ops.halos.get() + start.elapsed());
        if ops.comm().size() > 1 {
            ops.recorder.span(Lane::Host, "halo", start);
        }
        Ok(())
    }
}

impl<T: Real> LinearOperator<HostOps<T>> for CsrHost<T> {
    fn apply(&self, ops: &HostOps<T>, x: &mut Vec<T>, y: &mut Vec<T>) -> Result<()> {
        self.exchange(ops, x)?;
        let _running = ops.running("spmv_csr");
        self.for_rows(x, &mut y[..self.rows.len()], |_, sum, y| {
            *y = sum;
            0.0
        });
        Ok(())
    }

    fn apply_dot(&self, ops: &HostOps<T>, x: &mut Vec<T>, y: &mut Vec<T>, sum: &mut HostSum) -> Result<()> {
        self.exchange(ops, x)?;
        let _running = ops.running("spmv_dot_csr");
        let part = self.for_rows(x, &mut y[..self.rows.len()], |i, sum, y| {
            *y = sum;
            x[i].to_f64() * sum.to_f64()
        });
        sum.set(0, part);
        Ok(())
    }

    fn residual(&self, ops: &HostOps<T>, b: &Vec<T>, x: &mut Vec<T>, r: &mut Vec<T>) -> Result<()> {
        self.exchange(ops, x)?;
        let _running = ops.running("residual_csr");
        self.for_rows(x, &mut r[..self.rows.len()], |i, sum, r| {
            *r = b[i] - sum;
            0.0
        });
        Ok(())
    }

    fn halo(&self) -> usize {
        self.halo.len
    }

    fn bytes(&self) -> u64 {
        let entries = self.a.row_ptr()[self.rows.end] - self.a.row_ptr()[self.rows.start];
        let n = self.rows.len();
        // the host keeps 8-byte row pointers
        (entries * (4 + size_of::<T>()) + 8 * (n + 1) + 2 * n * size_of::<T>()) as u64
    }
}
