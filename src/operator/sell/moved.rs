//! Rows as they are, on a device that makes slices of them.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use rayon::prelude::*;

use crate::device::{Context, DeviceVec};
use crate::error::{Error, Result};
use crate::kernels::csr::CsrBlock;
use crate::kernels::sell_layout::LayoutKernels;
use crate::matrix::patterns::{Compressed, MAX_PATTERNS, Patterns, ROWS_OF_A_PATTERN};
use crate::operator::{csr, segments};
use crate::partition::{ColumnIndices, Part, compressed_bytes};
use crate::real::Real;

/// Entries of rows that are worth moving twice, of which the second time is within the device.
pub(super) const WORTHWHILE: usize = 1 << 20;

/// Elements that are worth a thread.
pub(super) const FEW: usize = 1 << 14;

/// Rows as they are, on a device that can make slices of them.
pub(crate) struct Moved<T> {
    pub(crate) rows: Arc<CsrBlock<T>>,
    pub(super) kernels: Arc<Mutex<LayoutKernels<T>>>,
}

impl<T: Real> Moved<T> {
    /// Moves the rows of `part`, times `factor`, a power of two.
    ///
    /// # Errors
    /// A failing device or compiler, or not enough memory.
    pub(crate) fn new(ctx: &Context, part: &Part<'_>, factor: f64) -> Result<Self> {
        Self::by(&Arc::new(Mutex::new(LayoutKernels::build(ctx)?)), ctx, part, factor)
    }

    pub(super) fn by(
        kernels: &Arc<Mutex<LayoutKernels<T>>>,
        ctx: &Context,
        part: &Part<'_>,
        factor: f64,
    ) -> Result<Self> {
        Ok(Self { rows: csr::block(ctx, part, factor)?, kernels: Arc::clone(kernels) })
    }

    /// The same, scaled on the device by the roots of the diagonal of all rows: the bits that the host makes in double precision.
    ///
    /// # Errors
    /// As above.
    fn scaled(ctx: &Context, part: &Part<'_>, factor: f64, roots: &[f64]) -> Result<Self> {
        let this = Self::new(ctx, part, 1.0)?;
        scale((ctx, &*this.kernels()?), &this.rows, (roots, &part.rows, &part.col_idx), factor)?;
        Ok(this)
    }

    pub(super) fn kernels(&self) -> Result<MutexGuard<'_, LayoutKernels<T>>> {
        self.kernels.lock().map_err(|_| Error::SolverBroken)
    }
}

/// Scales a rank's rows on their device by the roots of the diagonal of all rows, and by `factor`.
pub(super) fn scale<T: Real>(
    (ctx, kernels): (&Context, &LayoutKernels<T>),
    rows: &CsrBlock<T>,
    (roots, own, columns): (&[f64], &Range<usize>, &ColumnIndices<'_>),
    factor: f64,
) -> Result<()> {
    let (own, others) = (&roots[own.clone()], columns.others());
    let of_columns = DeviceVec::made(ctx, own.len() + others.len(), 1, "the roots of the diagonal", |at, to| {
        let root = |column: usize| match own.get(column) {
            Some(root) => *root,
            None => roots[others[column - own.len()] as usize],
        };
        to.par_iter_mut().with_min_len(FEW).zip(at).for_each(|(to, column)| *to = T::from_f64(root(column)));
    })?;
    kernels.scale(ctx, rows, &of_columns, T::from_f64(factor))
}

/// What moves rows once somebody asks for them.
pub(crate) struct Mover<'a, T> {
    ctx: &'a Context,
    /// The roots of the diagonal of all rows, if rows are scaled when they are there.
    roots: Option<&'a [f64]>,
    moved: OnceCell<Arc<Moved<T>>>,
}

impl<'a, T: Real> Mover<'a, T> {
    /// What moves rows of the shape for GPUs, if that is worth while, and so much `room` is enough for these and the slices.
    pub(crate) fn new(ctx: &'a Context, part: &Part<'_>, factor: f64, room: u64) -> Option<Self> {
        let [rows, entries, real] = [part.n_owned(), part.nnz(), size_of::<T>()].map(|v| v as u64);
        let is_in_one_piece = part.nnz() <= segments::MAX_LEN && entries * real <= ctx.max_band_bytes;
        let is_power_of_two = factor.is_normal() && factor.to_bits().trailing_zeros() >= f64::MANTISSA_DIGITS - 1;
        let has_room = 5 * compressed_bytes(rows, entries, real) / 2 <= room;
        let is_worthwhile = part.nnz() >= WORTHWHILE && is_in_one_piece && is_power_of_two && has_room;
        is_worthwhile.then(|| Self { ctx, roots: None, moved: OnceCell::new() })
    }

    /// The same, which scales the rows by the roots of the diagonal of all rows, if these are given.
    pub(crate) fn scaling(self, roots: Option<&'a [f64]>) -> Self {
        Self { roots, ..self }
    }

    /// Whether it scales the rows.
    pub(crate) fn scales(&self) -> bool {
        self.roots.is_some()
    }

    /// The rows as compressed ones are, if they are there, or nobody else scales them.
    ///
    /// # Errors
    /// As [`Mover::rows`].
    pub(crate) fn compressed(&self, part: &Part<'_>, factor: f64) -> Result<Option<Arc<CsrBlock<T>>>> {
        if self.scales() {
            self.rows(part, factor)?;
        }
        Ok(self.moved.get().map(|moved| Arc::clone(&moved.rows)))
    }

    /// The rows on the device.
    ///
    /// # Errors
    /// A failing device or compiler, or not enough memory.
    pub(crate) fn rows(&self, part: &Part<'_>, factor: f64) -> Result<(&'a Context, Arc<Moved<T>>)> {
        if self.moved.get().is_none() {
            let moved = match self.roots {
                Some(roots) => Moved::scaled(self.ctx, part, factor, roots),
                None => Moved::new(self.ctx, part, factor),
            };
            let moved = Arc::new(moved?);
            self.moved.get_or_init(|| moved);
        }
        let moved = self.moved.get().ok_or(Error::SolverBroken)?;
        Ok((self.ctx, Arc::clone(moved)))
    }
}

/// Whether a [`Mover`] may scale the rows: these are worth moving, have so many patterns, by those of the first of them, that values don't
/// matter to how they are laid out, and it is known which other rows they need.
pub(crate) fn can_be_scaled(part: &Part<'_>) -> bool {
    part.nnz() >= WORTHWHILE && part.col_idx.others().len() == part.halo.len && has_no_patterns(part)
}

fn has_no_patterns(part: &Part<'_>) -> bool {
    let rows = part.n_owned().min(MAX_PATTERNS * ROWS_OF_A_PATTERN);
    let entries = ..part.row_ptr[rows] - part.row_ptr[0];
    let (row_ptr, values) = (&part.row_ptr[..=rows], &part.values[entries]);
    Patterns::find(Compressed { row_ptr, columns: part.col_idx.numbered(), values }, false).is_none()
}
