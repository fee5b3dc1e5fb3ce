//! A function of the caller's in place of a matrix, on the host.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use super::device_rows::DeviceRows;
use super::distributed::{Distributed, HostRows, OwnRows, ProductsIn};
use crate::device::Context;
use crate::error::{Error, Result};
use crate::matrix::gallery::random_vector;
use crate::real::Real;
use crate::verify::norm_2;

/// What (u·A v − v·A u) √n may be beside ‖u‖₂ ‖A v‖₂, for random u and v: about ‖A − Aᵀ‖ / ‖A‖ in the Frobenius norm. Functions in
/// single precision stay below.
const ASYMMETRY: f64 = 1e-6;

/// Elements that are worth a thread's while.
const CHUNK: usize = 1 << 14;

type Apply<'a> = dyn FnMut(&[f64], &mut [f64]) + Send + 'a;

/// A symmetric matrix A of order n that is known by its products alone: a function, which may borrow what it needs, sets y = A x on
/// the host. [`OperatorSolver`](crate::OperatorSolver) solves with it.
///
/// What y holds before is not said: the function sets every element. It gets n elements of each, one call after the other, from
/// threads of the solver.
///
/// ```
/// use declive::{Control, HostOperator, OperatorSolver, Setup, Stop};
///
/// # fn main() -> declive::Result<()> {
/// // −u″ on a line, without a matrix
/// let n = 100;
/// let second_difference = |x: &[f64], y: &mut [f64]| {
///     for i in 0..n {
///         let left = if i > 0 { x[i - 1] } else { 0.0 };
///         let right = if i + 1 < n { x[i + 1] } else { 0.0 };
///         y[i] = 2.0 * x[i] - left - right;
///     }
/// };
/// let a = HostOperator::new(n, second_difference).with_diagonal(vec![2.0; n]);
/// let mut solver = OperatorSolver::new(a, &Setup::default())?;
/// let outcome = solver.solve(&vec![1.0; n], None, &Stop::default(), Control::default())?;
/// assert!(outcome.reason.converged() && outcome.residual.relative_2 <= 1e-8);
/// # Ok(())
/// # }
/// ```
///
/// Arrays of compressed rows that are only borrowed, without a copy of them:
///
/// ```
/// # use declive::{Control, HostOperator, OperatorSolver, Setup, Stop};
/// # fn main() -> declive::Result<()> {
/// # let (offsets, columns, entries) = ([0, 2, 4], [0, 1, 0, 1], [2.0, -1.0, -1.0, 2.0]);
/// let a = HostOperator::new(offsets.len() - 1, |x: &[f64], y: &mut [f64]| {
///     for (y, row) in y.iter_mut().zip(offsets.windows(2)) {
///         *y = (row[0]..row[1]).map(|k| entries[k] * x[columns[k]]).sum();
///     }
/// });
/// # let outcome = OperatorSolver::new(a, &Setup::default())?.solve(&[1.0, 1.0], None, &Stop::default(), Control::default())?;
/// # assert!(outcome.x.iter().all(|x| (x - 1.0).abs() < 1e-7));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HostOperator<'a> {
    n: usize,
    apply: Arc<Mutex<Apply<'a>>>,
    diagonal: Option<Vec<f64>>,
}

impl fmt::Debug for HostOperator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOperator").field("order", &self.n).finish_non_exhaustive()
    }
}

impl<'a> HostOperator<'a> {
    /// The matrix of order `n` whose product with x, the first argument, `apply` leaves in the second.
    pub fn new(n: usize, apply: impl FnMut(&[f64], &mut [f64]) + Send + 'a) -> Self {
        Self { n, apply: Arc::new(Mutex::new(apply)), diagonal: None }
    }

    /// The same, whose diagonal is known: [`Precond::Jacobi`](crate::solve::Precond::Jacobi) scales the system by it, with 8 bytes a
    /// row more, and [`Method::Auto`](crate::solve::Method::Auto) looks at its signs.
    #[must_use]
    pub fn with_diagonal(mut self, diagonal: Vec<f64>) -> Self {
        self.diagonal = Some(diagonal);
        self
    }

    /// Rows, and columns.
    #[must_use]
    pub fn order(&self) -> usize {
        self.n
    }

    /// The diagonal, if it is known.
    #[must_use]
    pub fn diagonal(&self) -> Option<&[f64]> {
        self.diagonal.as_deref()
    }

    /// y = A x.
    fn apply(&self, x: &[f64], y: &mut [f64]) {
        let mut apply = self.apply.lock().unwrap_or_else(PoisonError::into_inner);
        apply(x, y);
    }

    /// Checks the symmetry on two random vectors, by two products, and that these set all elements.
    ///
    /// # Errors
    /// [`Error::OperatorNotSymmetric`], [`Error::NotFinite`].
    pub(crate) fn check_symmetry(&self) -> Result<()> {
        let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let [u, v] = [1, 2].map(|seed| random_vector(self.n, seed));
        let product = |x: &[f64]| {
            let mut y = vec![f64::NAN; self.n];
            self.apply(x, &mut y);
            let what = || "A v for a random v, all elements of which must be set".into();
            match y.iter().position(|y| !y.is_finite()) {
                Some(k) => Err(Error::NotFinite { what: what(), index: k + 1, value: y[k] }),
                None => Ok(y),
            }
        };
        let (av, au) = (product(&v)?, product(&u)?);
        let (uav, vau) = (dot(&u, &av), dot(&v, &au));
        let size = norm_2(&u) * norm_2(&av).max(norm_2(&au));
        if (uav - vau).abs() * (self.n as f64).sqrt() > ASYMMETRY * size {
            return Err(Error::OperatorNotSymmetric { uav, vau });
        }
        Ok(())
    }
}

/// All rows of a function.
struct FunctionRows<'a> {
    a: HostOperator<'a>,
    /// x and y in double precision, if vectors are not.
    wide: [Vec<f64>; 2],
}

impl HostRows<f64> for FunctionRows<'_> {
    fn multiply(&mut self, x: &[f64], y: &mut [f64]) {
        self.a.apply(x, y);
    }

    /// x and y: what the function reads beside them, it alone knows.
    fn bytes(&self) -> u64 {
        16 * self.a.n as u64
    }
}

impl HostRows<f32> for FunctionRows<'_> {
    fn multiply(&mut self, x: &[f32], y: &mut [f32]) {
        let [wide_x, wide_y] = &mut self.wide;
        wide_x.clear();
        wide_x.par_extend(x.par_iter().map(|&x| f64::from(x)));
        wide_y.resize(y.len(), 0.0);
        self.a.apply(wide_x, wide_y);
        y.par_iter_mut().with_min_len(CHUNK).zip(wide_y).for_each(|(y, wide)| *y = *wide as f32);
    }

    fn bytes(&self) -> u64 {
        8 * self.a.n as u64
    }
}

impl<'a, T: Real> ProductsIn<'a, T> for HostOperator<'a>
where
    FunctionRows<'a>: HostRows<T>,
{
    fn on_host(&self, _: &OwnRows) -> Box<dyn HostRows<T> + 'a> {
        Box::new(FunctionRows { a: Self { diagonal: None, ..self.clone() }, wide: Default::default() })
    }

    fn on_device(&self, ctx: &Context, _: &OwnRows, _: Option<&[T]>) -> Result<(DeviceRows<T>, u64)> {
        Err(Error::Usage(format!("a function in place of a matrix runs on the host, not on {}", ctx.info().label())))
    }
}

/// On one rank, which has all rows.
impl<'a> Distributed<'a> for HostOperator<'a> {
    fn order(&self) -> usize {
        self.n
    }

    fn unit(&self) -> usize {
        self.n
    }

    fn halo(&self, _: &Range<usize>) -> Vec<u32> {
        Vec::new()
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        self.diagonal.clone()
    }

    fn largest_of_scaled(&self) -> Option<f64> {
        None
    }
}
