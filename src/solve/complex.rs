//! Complex systems, solved as real ones of twice the order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::outcome::Outcome;
use super::session::Solver;
use crate::error::{Error, Result};
use crate::krylov::{Indefinite, Reason, Singularity};
use crate::matrix::equivalent::{Form, real_form};
use crate::matrix::search::first;
use crate::matrix::{Complex64, Csr, shortage};
use crate::runtime::{Control, Setup, Stop};
use crate::timeline::stages::stage;
use crate::verify::{self, Residual};

/// A complex system's matrix on its ranks, ready to solve for many right-hand sides.
///
/// Ranks work on the [general real form](Form::General), of twice the order and with four entries for each. It is symmetric if the
/// matrix is Hermitian, and definite if the matrix is: [`Method::Auto`](super::Method::Auto) and the methods for symmetric
/// matrices take it then. Scalars of methods for other matrices are complex: they take the iterations of complex arithmetic, in which
/// right-hand sides are solved one by one. [`Setup::assume_symmetric`] takes a matrix for Hermitian. Norms of residuals are those of the complex
/// system.
///
/// ```
/// use declive::matrix::{Complex64, Csr};
/// use declive::solve::ComplexSolver;
/// use declive::{Control, Setup, Stop};
///
/// # fn main() -> declive::Result<()> {
/// // [2, i; −i, 2] x = [2 + i, 2 − i]
/// let (one, i) = (Complex64::ONE, Complex64::I);
/// let a = Csr::from_triplets(2, 2, &[0, 0, 1, 1], &[0, 1, 0, 1], &[2.0 * one, i, -i, 2.0 * one])?;
/// # let setup = Setup::default().with_devices("host".parse()?);
/// # #[cfg(any())]
/// let setup = Setup::default();
/// let mut solver = ComplexSolver::new(a, &setup)?;
/// let outcome = solver.solve(&[2.0 + i, 2.0 - i], None, &Stop::default(), Control::default())?;
/// assert!(outcome.reason.converged());
/// assert!(outcome.x.iter().all(|x| (x - one).norm() < 1e-7));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ComplexSolver {
    a: Arc<Csr<Complex64>>,
    solver: Solver,
}

impl ComplexSolver {
    /// Makes the real form of `a`, and distributes it over the devices that `setup` asks for. Both stay in memory: 48 bytes an entry
    /// for the real form beside the 20 of `a`.
    ///
    /// # Errors
    /// As [`real_form`] and [`Solver::new`], but [`Error::NotHermitian`] for a method that needs a symmetric matrix. Rows are
    /// those of `a`.
    pub fn new(a: impl Into<Arc<Csr<Complex64>>>, setup: &Setup) -> Result<Self> {
        let a = a.into();
        let form = Arc::new(real_form(&a)?);
        Self::of(&a, Solver::new(form, setup))
    }

    /// The same with the real form that [`real_form`] has made of `a`, and as [`Solver::cancellable`].
    ///
    /// # Errors
    /// As [`ComplexSolver::new`]; [`Error::SizeMismatch`] for a `form` of another order.
    pub fn cancellable(
        a: impl Into<Arc<Csr<Complex64>>>,
        form: impl Into<Arc<Csr>>,
        setup: &Setup,
        cancel: &AtomicBool,
    ) -> Result<Self> {
        let (a, form) = (a.into(), form.into());
        if form.n_rows() != 2 * a.n_rows() {
            let (expected, found) = (2 * a.n_rows(), form.n_rows());
            return Err(Error::SizeMismatch { what: "the real form".into(), expected, found });
        }
        Self::of(&a, Solver::cancellable(form, setup, cancel))
    }

    fn of(a: &Arc<Csr<Complex64>>, solver: Result<Solver>) -> Result<Self> {
        let a = Arc::clone(a);
        match solver {
            Ok(solver) => Ok(Self { a, solver }),
            Err(error) => Err(error_of(&a, error)),
        }
    }

    /// Gives the matrix other values in the same pattern: see [`Solver::update_values`].
    ///
    /// # Errors
    /// As there.
    pub fn update_values(&mut self, values: Vec<Complex64>) -> Result<()> {
        let expected = self.a.nnz();
        if values.len() != expected {
            return Err(Error::SizeMismatch { what: "the values".into(), expected, found: values.len() });
        }
        if let Some(k) = first(expected, |k| !values[k].is_finite()) {
            let value = values[k].norm();
            return Err(Error::NotFinite { what: "the values".into(), index: k + 1, value });
        }
        let a = Arc::new(self.a.with_values(values));
        let (.., values) = real_form(&a)?.into_raw_parts();
        self.solver.update_values(values).map_err(|error| error_of(&a, error))?;
        self.a = a;
        Ok(())
    }

    /// Solves `A x = b` from `x0`, or from zero. Iterations, times, bytes and the optimality are those of the real form; the residual, and the rows
    /// that a reason names, those of the complex system. Checkpoints, and whoever gets x early, have its
    /// real and imaginary parts by turns.
    ///
    /// # Errors
    /// As [`Solver::solve`]. Elements are counted as those of the complex vectors.
    pub fn solve(
        &mut self,
        b: &[Complex64],
        x0: Option<&[Complex64]>,
        stop: &Stop,
        control: Control<'_>,
    ) -> Result<Outcome<Vec<Complex64>>> {
        let x0 = x0.map(bytemuck::cast_slice);
        let outcome = self.solve_by_turns(bytemuck::cast_slice(b), x0, stop, control)?;
        Ok(outcome.map_x(|x| Form::General.solution(&x)))
    }

    /// The same for vectors of real and imaginary parts by turns.
    ///
    /// # Errors
    /// As [`ComplexSolver::solve`].
    pub fn solve_by_turns(
        &mut self,
        b: &[f64],
        x0: Option<&[f64]>,
        stop: &Stop,
        control: Control<'_>,
    ) -> Result<Outcome> {
        let solved = self.solver.solve(b, x0, stop, control);
        let outcome = solved.map_err(|error| error_of(&self.a, error))?;
        let verifying = stage("verify");
        let residual = self.residual(b, &outcome.x);
        Ok(self.outcome_of(outcome, residual, verifying.end()))
    }

    /// The same for several right-hand sides: as [`Solver::solve_each`].
    ///
    /// # Errors
    /// As [`ComplexSolver::solve`].
    ///
    /// # Panics
    /// If there are not as many `x` as `b`.
    pub fn solve_each_by_turns(
        &mut self,
        b: &[&[f64]],
        x: &mut [&mut [f64]],
        stop: &Stop,
        control: Control<'_>,
        done: &mut dyn FnMut(usize, &Outcome<()>),
    ) -> Result<Vec<Outcome<()>>> {
        let solved = self.solver.solve_each(b, x, stop, control, done);
        let outcomes = solved.map_err(|error| error_of(&self.a, error))?;
        let each = outcomes.into_iter().zip(b).zip(x);
        let checked = |((outcome, b), x): ((Outcome<()>, &&[f64]), &mut &mut [f64])| {
            let verifying = stage("verify");
            let residual = self.residual(b, x);
            self.outcome_of(outcome, residual, verifying.end())
        };
        Ok(each.map(checked).collect())
    }

    /// b − A x in complex arithmetic, of vectors of real and imaginary parts by turns.
    fn residual(&self, b: &[f64], x: &[f64]) -> Residual {
        verify::complex_residual(&self.a, bytemuck::cast_slice(b), bytemuck::cast_slice(x))
    }

    /// What an outcome of the real form says of the complex system, with its residual, which took so long to find.
    fn outcome_of<X>(&self, mut outcome: Outcome<X>, residual: Residual, time: Duration) -> Outcome<X> {
        let optimality = outcome.residual.optimality;
        outcome.residual = Residual { optimality, ..residual };
        outcome.verify += time;
        outcome.reason = reason_of(&self.a, outcome.reason);
        for switch in &mut outcome.switches {
            switch.why = reason_of(&self.a, switch.why);
        }
        outcome
    }

    /// The matrix.
    #[must_use]
    pub fn matrix(&self) -> &Csr<Complex64> {
        &self.a
    }

    /// The solver of the real form, with its ranks, times and method. The rows that it counts are those of the real form.
    #[must_use]
    pub fn real(&self) -> &Solver {
        &self.solver
    }

    /// [`Solver::estimate_condition`] of the real form.
    ///
    /// # Errors
    /// As there.
    pub fn estimate_condition(&mut self) -> Result<Option<f64>> {
        self.solver.estimate_condition()
    }

    /// Why [`Method::Auto`](super::Method::Auto) did not begin with `cg`, if it did not: what shows that the matrix is not Hermitian
    /// positive definite.
    #[must_use]
    pub fn method_reason(&self) -> Option<Indefinite> {
        self.solver.method_reason().map(|why| indefinite_of(&self.a, why))
    }
}

/// The row of the complex matrix that a row of its real form belongs to, both from 1.
fn row_of(row: usize) -> usize {
    row.div_ceil(2)
}

/// Two entries across the diagonal, for two of the real form; all from 1.
fn pair_of(a: &Csr<Complex64>, row: usize, col: usize) -> (usize, usize, Complex64, Complex64) {
    let (row, col) = (row_of(row), row_of(col));
    let entry = |i: usize, j: usize| a.get(i - 1, j - 1).unwrap_or_default();
    (row, col, entry(row, col), entry(col, row))
}

/// What is said of the real form, said of the complex matrix `a`.
fn indefinite_of(a: &Csr<Complex64>, why: Indefinite) -> Indefinite {
    match why {
        Indefinite::Diagonal { row, value } => Indefinite::Diagonal { row: row_of(row), value },
        Indefinite::EmptyRow { row } => Indefinite::EmptyRow { row: row_of(row) },
        Indefinite::Asymmetry { row, col, .. } => {
            let (row, col, upper, lower) = pair_of(a, row, col);
            Indefinite::NotHermitian { row, col, upper, lower }
        }
        Indefinite::NotHermitian { .. } | Indefinite::Direction { .. } => why,
    }
}

fn reason_of(a: &Csr<Complex64>, reason: Reason) -> Reason {
    match reason {
        Reason::IndefiniteOperator(why) => Reason::IndefiniteOperator(indefinite_of(a, why)),
        Reason::Singular(Singularity::Numerical { row }) => {
            Reason::Singular(Singularity::Numerical { row: row_of(row) })
        }
        Reason::Singular(Singularity::Structural(of_form)) => {
            Reason::Singular(Singularity::Structural(shortage(a).unwrap_or(of_form)))
        }
        other => other,
    }
}

fn error_of(a: &Csr<Complex64>, error: Error) -> Error {
    match error {
        Error::NotSymmetric { method, row, col, .. } => {
            let (row, col, upper, lower) = pair_of(a, row, col);
            Error::NotHermitian { method, row, col, upper, lower }
        }
        Error::BeyondSingle { row, value, largest } => Error::BeyondSingle { row: row_of(row), value, largest },
        Error::NotFinite { what, index, value } => Error::NotFinite { what, index: row_of(index), value },
        Error::Rectangular { method, rows, cols } => Error::Rectangular { method, rows: rows / 2, cols: cols / 2 },
        Error::SizeMismatch { what, expected, found } => {
            Error::SizeMismatch { what, expected: expected / 2, found: found / 2 }
        }
        other => other,
    }
}
