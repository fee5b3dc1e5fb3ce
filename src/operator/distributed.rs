//! A matrix that is known by its products alone, over ranks.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::device_rows::DeviceRows;
use super::host::exchange;
use crate::backend::host::{HostBackend, dot};
use crate::backend::{Arriving, LinearOperator, pair};
use crate::device::Context;
use crate::error::Result;
use crate::matrix::Csr;
use crate::partition::{HaloPlan, Part};
use crate::real::Real;
use crate::verify::{self, Residual};

/// Elements that are worth a thread's while.
const CHUNK: usize = 1 << 14;

/// The rows of a rank, and what they need of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnRows {
    pub(crate) rows: Range<usize>,
    /// Columns that other ranks own, sorted: in vectors they are behind those of the rank.
    pub(crate) halo: Vec<u32>,
}

impl OwnRows {
    /// The columns of vectors, in their order on the rank.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.rows.clone().chain(self.halo.iter().map(|&column| column as usize))
    }
}

/// A square matrix whose products are formed by ranks, each for rows of its own, from vectors of elements `T`.
pub(crate) trait ProductsIn<'a, T: Real> {
    /// The rows on the host.
    fn on_host(&self, own: &OwnRows) -> Box<dyn HostRows<T> + 'a>;

    /// The rows on a device, and the bytes that a product moves there. If there is a `scale`, of the columns of the rank, the rows are those
    /// of S A S.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`](crate::Error::OutOfDeviceMemory), and what else a device may fail with.
    fn on_device(&self, ctx: &Context, own: &OwnRows, scale: Option<&[T]>) -> Result<(DeviceRows<T>, u64)>;
}

/// Rows on the host.
pub(crate) trait HostRows<T>: Send {
    /// y = A x for the rows, with x in the order of [`OwnRows::columns`].
    fn multiply(&mut self, x: &[T], y: &mut [T]);

    /// Bytes that a product moves.
    fn bytes(&self) -> u64;
}

/// A space that vectors come from, for which there is a matrix: the preconditioner is made of that (J. Xu, Computing 56 (1996), doi
/// 10.1007/BF02238513).
#[derive(Debug, Clone)]
pub(crate) struct AuxiliarySpace {
    /// C, of the order of A. Vectors of a coarser space have zeros where that has nothing, and rows of the identity there.
    pub(crate) matrix: Csr,
    /// P, if it is another space than that of A: then M⁻¹ = D⁻¹ + P C⁻¹ Pᵀ, with the diagonal D of A.
    pub(crate) interpolation: Option<Csr>,
}

/// A square matrix that is known by its products alone.
pub(crate) trait Distributed<'a>: ProductsIn<'a, f32> + ProductsIn<'a, f64> + Send + Sync {
    /// Rows, and columns.
    fn order(&self) -> usize;

    /// Rows that stay on one rank, side by side: cuts are multiples of it.
    fn unit(&self) -> usize;

    /// The columns that these rows need beside their own, sorted.
    fn halo(&self, rows: &Range<usize>) -> Vec<u32>;

    /// The diagonal, if it is known.
    fn diagonal(&self) -> Option<Vec<f64>>;

    /// A bound of the largest eigenvalue of D⁻¹ A, with the diagonal D, if it is known and A symmetric and positive definite.
    fn largest_of_scaled(&self) -> Option<f64>;

    /// The entries in blocks on the diagonal, if they are known.
    ///
    /// # Errors
    /// Not enough memory.
    fn block_diagonal(&self) -> Result<Option<Csr>> {
        Ok(None)
    }

    /// What multigrid is made from, if there is such a space.
    ///
    /// # Errors
    /// Not enough memory.
    fn auxiliary_space(&self) -> Result<Option<AuxiliarySpace>> {
        Ok(None)
    }

    /// b − A x in double precision.
    fn residual(&self, b: &[f64], x: &[f64]) -> Residual {
        let n = self.order();
        let mut r = vec![0.0; n];
        ProductsIn::<'a, f64>::on_host(self, &OwnRows { rows: 0..n, halo: Vec::new() }).multiply(x, &mut r);
        r.par_iter_mut().with_min_len(CHUNK).zip(b).for_each(|(r, b)| *r = b - *r);
        verify::of_difference(&r, b, x)
    }
}

/// Rows of a matrix.
pub(crate) struct MatrixRows<T> {
    row_ptr: Vec<usize>,
    col_idx: Vec<u32>,
    values: Vec<T>,
}

impl<T: Real> MatrixRows<T> {
    pub(crate) fn new(part: &Part<'_>) -> Self {
        Self {
            row_ptr: part.row_ptr.iter().map(|&k| k - part.row_ptr[0]).collect(),
            col_idx: part.col_idx.to_vec(),
            values: part.values.iter().map(|&v| T::from_f64(v)).collect(),
        }
    }
}

impl<T: Real> HostRows<T> for MatrixRows<T> {
    fn multiply(&mut self, x: &[T], y: &mut [T]) {
        let Self { row_ptr, col_idx, values } = self;
        y.par_iter_mut().enumerate().with_min_len(CHUNK).for_each(|(row, y)| {
            let entries = row_ptr[row]..row_ptr[row + 1];
            let of_row = col_idx[entries.clone()].iter().zip(&values[entries]);
            *y = of_row.fold(T::default(), |sum, (&column, &v)| sum + v * x[column as usize]);
        });
    }

    fn bytes(&self) -> u64 {
        (self.values.len() * (4 + size_of::<T>()) + 2 * self.row_ptr.len() * size_of::<T>()) as u64
    }
}

/// Rows of the host as one of several ranks, with what their halo needs.
pub(crate) struct HostProducts<'a, T: Real> {
    rows: RefCell<Box<dyn HostRows<T> + 'a>>,
    own: usize,
    halo: HaloPlan,
    /// S of the rank's columns, and room for a vector, if the rows are those of S A S.
    scaling: Option<(Vec<T>, RefCell<Vec<T>>)>,
}

impl<'a, T: Real> HostProducts<'a, T> {
    pub(crate) fn new(rows: Box<dyn HostRows<T> + 'a>, own: usize, halo: &HaloPlan, scale: Option<Vec<T>>) -> Self {
        let scaling = scale.map(|scale| (scale, RefCell::new(vec![T::default(); own + halo.len])));
        Self { rows: RefCell::new(rows), own, halo: halo.clone(), scaling }
    }

    /// y = A x, whose halo is there.
    fn product(&self, backend: &HostBackend<T>, x: &[T], y: &mut [T]) {
        let _running = backend.running("operator");
        let (x, y) = (&x[..self.own + self.halo.len], &mut y[..self.own]);
        let mut rows = self.rows.borrow_mut();
        let Some((scale, scaled)) = &self.scaling else { return rows.multiply(x, y) };
        let scaled = &mut *scaled.borrow_mut();
        scaled.par_iter_mut().with_min_len(CHUNK).zip(x).zip(scale).for_each(|((s, &x), &scale)| *s = x * scale);
        rows.multiply(scaled, y);
        y.par_iter_mut().with_min_len(CHUNK).zip(scale).for_each(|(y, &scale)| *y = *y * scale);
    }

    fn exchange(&self, backend: &HostBackend<T>, x: &mut [T]) -> Result<()> {
        exchange(backend, &self.halo, self.own, x)
    }
}

impl<T: Real> LinearOperator<HostBackend<T>> for HostProducts<'_, T> {
    fn apply(&self, backend: &HostBackend<T>, x: &mut Vec<T>, y: &mut Vec<T>) -> Result<()> {
        self.exchange(backend, x)?;
        self.product(backend, x, y);
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
        if let Some(arriving) = arriving {
            self.receive_halo(backend, v, arriving)?;
        }
        let [x, y] = pair(v, of);
        self.product(backend, x, y);
        let (x, y) = (&x[..self.own], &y[..self.own]);
        *dots = vec![dot(x, y), dot(y, y)];
        Ok(())
    }

    fn takes_columns(&self) -> bool {
        false
    }

    fn of_columns(&self, _: &HostBackend<T>, columns: usize) -> Result<Self> {
        unreachable!("products take one vector, not {columns}")
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

    fn pack_halo(&self, _: &HostBackend<T>, _: &Vec<T>, _: bool) -> Result<()> {
        Ok(())
    }

    fn residual(&self, backend: &HostBackend<T>, b: &Vec<T>, x: &mut Vec<T>, r: &mut Vec<T>) -> Result<()> {
        self.exchange(backend, x)?;
        self.product(backend, x, r);
        r[..self.own].par_iter_mut().with_min_len(CHUNK).zip(b).for_each(|(r, &b)| *r = b - *r);
        Ok(())
    }

    fn halo(&self) -> usize {
        self.halo.len
    }

    fn bytes(&self) -> u64 {
        self.rows.borrow().bytes()
    }
}
