//! A function of the caller's in place of a matrix, on the host.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::backend::host::{HostBackend, dot};
use crate::backend::{Arriving, LinearOperator, pair};
use crate::error::{Error, Result};
use crate::matrix::gallery::random_vector;
use crate::verify::{self, Residual, norm_2};

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

    /// b − A x, by the function itself, in double precision.
    pub(crate) fn residual(&self, b: &[f64], x: &[f64]) -> Residual {
        let mut r = vec![0.0; self.n];
        self.apply(x, &mut r);
        minus(b, &mut r);
        verify::of_difference(&r, b, x)
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

    /// The product as the host's rank has it: with S A S for a scaling S whose reciprocals are `roots`.
    pub(crate) fn block(&self, roots: Option<&[f64]>) -> FunctionBlock<'a> {
        let scaling = roots.map(|roots| (roots.to_vec(), RefCell::new(vec![0.0; self.n])));
        FunctionBlock { a: Self { diagonal: None, ..self.clone() }, scaling }
    }
}

/// r = b − y, where y is.
fn minus(b: &[f64], y: &mut [f64]) {
    y.par_iter_mut().with_min_len(CHUNK).zip(b).for_each(|(y, b)| *y = b - *y);
}

/// A function as a rank's block of rows, which are all.
pub(crate) struct FunctionBlock<'a> {
    a: HostOperator<'a>,
    /// Of a system that is scaled: the roots of its diagonal, and room for a vector.
    scaling: Option<(Vec<f64>, RefCell<Vec<f64>>)>,
}

impl FunctionBlock<'_> {
    /// y = S A S x, over the rows.
    fn product(&self, backend: &HostBackend<f64>, x: &[f64], y: &mut [f64]) {
        let _running = backend.running("function");
        let (x, y) = (&x[..self.a.n], &mut y[..self.a.n]);
        let Some((roots, scaled)) = &self.scaling else { return self.a.apply(x, y) };
        let scaled = &mut *scaled.borrow_mut();
        scaled.par_iter_mut().with_min_len(CHUNK).zip(x).zip(roots).for_each(|((s, x), root)| *s = x / root);
        self.a.apply(scaled, y);
        y.par_iter_mut().with_min_len(CHUNK).zip(roots).for_each(|(y, root)| *y /= root);
    }
}

/// The rank is alone: there are no halos.
impl LinearOperator<HostBackend<f64>> for FunctionBlock<'_> {
    fn apply(&self, backend: &HostBackend<f64>, x: &mut Vec<f64>, y: &mut Vec<f64>) -> Result<()> {
        self.product(backend, x, y);
        Ok(())
    }

    fn fill_halo(&self, _: &HostBackend<f64>, _: &mut Vec<f64>) -> Result<()> {
        Ok(())
    }

    fn multiply(
        &self,
        backend: &HostBackend<f64>,
        v: &mut [Vec<f64>],
        of: [usize; 2],
        arriving: Option<Arriving<'_, Vec<f64>>>,
        dots: &mut Vec<f64>,
    ) -> Result<()> {
        if let Some(Arriving { then, .. }) = arriving {
            then(v)?;
        }
        let [x, y] = pair(v, of);
        self.product(backend, x, y);
        let (x, y) = (&x[..self.a.n], &y[..self.a.n]);
        *dots = vec![dot(x, y), dot(y, y)];
        Ok(())
    }

    fn takes_columns(&self) -> bool {
        false
    }

    fn of_columns(&self, _: &HostBackend<f64>, columns: usize) -> Result<Self> {
        unreachable!("a function takes one vector, not {columns}")
    }

    fn receive_halo(
        &self,
        _: &HostBackend<f64>,
        v: &mut [Vec<f64>],
        Arriving { then, .. }: Arriving<'_, Vec<f64>>,
    ) -> Result<()> {
        then(v)
    }

    fn pack_halo(&self, _: &HostBackend<f64>, _: &Vec<f64>, _: bool) -> Result<()> {
        Ok(())
    }

    fn residual(&self, backend: &HostBackend<f64>, b: &Vec<f64>, x: &mut Vec<f64>, r: &mut Vec<f64>) -> Result<()> {
        self.product(backend, x, r);
        minus(b, &mut r[..self.a.n]);
        Ok(())
    }

    fn halo(&self) -> usize {
        0
    }

    /// x and y: what the function reads beside them, it alone knows.
    fn bytes(&self) -> u64 {
        16 * self.a.n as u64
    }
}
