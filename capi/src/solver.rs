//! What a handle stands for: options, a matrix, its solver once one is needed, and how the last solve went.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use declive::matrix::equivalent::real_form;
use declive::matrix::{AnyCsr, Complex64, Scalar};
use declive::matrix_market::Reader;
use declive::solve::{ComplexSolver, NearNull, Options, Progress};
use declive::{Control, Csr, Error, HostPreconditioner, Outcome, Setup, Solver, Stop, npz};

use crate::arrays::Lent;
use crate::failure::{Failure, Result, c_text};
use crate::interface::{DECLIVE_INTERNAL, DECLIVE_MACHINE, DECLIVE_NOT_CONVERGED};
use crate::report;

/// What a caller has a pointer to.
pub struct Handle {
    /// Ends the solve that runs, or the next one.
    pub(crate) cancel: AtomicBool,
    state: Mutex<State>,
}

/// Called in a solve now and then; it goes on if it gets true.
pub(crate) type Watch = Box<dyn Fn(&Progress) -> bool + Send + Sync>;

/// What multigrid has to interpolate well, beside what an option says.
#[derive(Default)]
pub(crate) enum Near {
    #[default]
    Unknown,
    /// A vector for each axis.
    Coordinates(Vec<Vec<f64>>),
    Vectors(Vec<Vec<f64>>),
}

/// All but the flag.
#[derive(Default)]
pub(crate) struct State {
    options: Options,
    near: Near,
    preconditioner: Option<Arc<dyn HostPreconditioner>>,
    pub(crate) watch: Option<Watch>,
    matrix: Option<AnyCsr>,
    solver: Option<AnySolver>,
    /// That of arrays of `matrix` which are the caller's.
    lent: Option<Lent>,
    outcomes: Vec<Outcome<()>>,
    texts: BTreeMap<&'static str, CString>,
}

/// A solver, real or complex. Complex vectors are real and imaginary parts by turns.
pub(crate) enum AnySolver {
    Real(Box<Solver>),
    Complex(Box<ComplexSolver>),
}

impl Handle {
    pub(crate) fn new() -> Self {
        Self { cancel: AtomicBool::new(false), state: Mutex::default() }
    }

    /// All but the flag, for one call at a time.
    pub(crate) fn state(&self) -> Result<MutexGuard<'_, State>> {
        self.state.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => Failure::input(
                "the solver is in use by another call, of another thread or around a callback; only declive_cancel may come between",
            ),
            TryLockError::Poisoned(_) => Failure {
                code: DECLIVE_INTERNAL,
                text: "an internal error has left this solver unusable; destroy it, and make another one".into(),
            },
        })
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.forget_matrix();
    }
}

impl State {
    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let before = self.options.setup.clone();
        self.options.set(name, value)?;
        if self.options.setup != before {
            self.solver = None;
        }
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Result<String> {
        Ok(self.options.get(name)?)
    }

    /// Keeps a text for the caller, in place of the last one of the same name.
    pub(crate) fn keep(&mut self, name: &'static str, text: impl Into<String>) -> *const c_char {
        self.texts.insert(name, c_text(text));
        self.texts.get(name).map_or(std::ptr::null(), |text| text.as_ptr())
    }

    /// Forgets the matrix, and waits until nobody reads arrays of the caller.
    fn forget_matrix(&mut self) {
        (self.solver, self.matrix) = (None, None);
        if let Some(lent) = self.lent.take() {
            lent.wait();
        }
    }

    /// Takes a matrix in place of the one before.
    pub(crate) fn take(&mut self, matrix: impl Into<AnyCsr>, lent: Option<Lent>) {
        self.forget_matrix();
        (self.matrix, self.lent) = (Some(matrix.into()), lent);
        self.outcomes.clear();
    }

    /// Reads a matrix from a file.
    pub(crate) fn read(&mut self, path: &Path) -> Result<()> {
        let matrix = if npz::is_npz(path) { npz::read(path)? } else { Reader::new().any_matrix(path)?.a };
        self.take(matrix, None);
        Ok(())
    }

    pub(crate) fn matrix(&self) -> Result<&AnyCsr> {
        let none = "there is no matrix yet; give one by declive_set_csr_… or declive_read";
        self.matrix.as_ref().ok_or_else(|| Failure::input(none))
    }

    pub(crate) fn set_preconditioner(&mut self, preconditioner: Option<Arc<dyn HostPreconditioner>>) {
        (self.preconditioner, self.solver) = (preconditioner, None);
    }

    pub(crate) fn set_near(&mut self, near: Near) {
        (self.near, self.solver) = (near, None);
    }

    /// The real solver, or that of the real form, once there is one.
    pub(crate) fn solver(&self) -> Result<&Solver> {
        let none = "there is no solver yet; call declive_setup or declive_solve first";
        self.solver.as_ref().map(AnySolver::real).ok_or_else(|| Failure::input(none))
    }

    /// How it went for a right-hand side of the last solve.
    pub(crate) fn outcome(&self, column: i64) -> Result<&Outcome<()>> {
        let found = usize::try_from(column).ok().and_then(|column| self.outcomes.get(column));
        found.ok_or_else(|| {
            let count = self.outcomes.len();
            Failure::input(format!(
                "column = {column}, but the last solve had {count} right-hand sides, counted from 0"
            ))
        })
    }

    /// Makes the solver, if it is not there.
    pub(crate) fn set_up(&mut self, cancel: &AtomicBool) -> Result<&mut AnySolver> {
        let solver = match self.solver.take() {
            Some(solver) => solver,
            None => {
                let a = self.matrix()?;
                let setup = self.near.told(a, &self.options.setup)?;
                AnySolver::new(a, &setup, self.preconditioner.clone(), cancel)?
            }
        };
        Ok(self.solver.insert(solver))
    }

    /// Gives the matrix other values in the same pattern; complex ones are real and imaginary parts by turns. After an error the former ones
    /// stay, and the next solve makes another solver of them.
    pub(crate) fn update(&mut self, values: &[f64]) -> Result<()> {
        match self.solver.take() {
            Some(mut solver) => {
                solver.update(values)?;
                self.matrix = Some(solver.matrix());
                self.solver = Some(solver);
            }
            None => self.matrix = Some(with_values(self.matrix()?, values)?),
        }
        Ok(())
    }

    /// Solves for several right-hand sides, from and to `x`.
    pub(crate) fn solve(&mut self, columns: usize, b: &[f64], mut x: &mut [f64], cancel: &AtomicBool) -> Result<()> {
        self.outcomes.clear();
        self.set_up(cancel)?;
        let (b_len, x_len) = (b.len() / columns, x.len() / columns);
        let b: Vec<&[f64]> = (0..columns).map(|k| &b[k * b_len..(k + 1) * b_len]).collect();
        let mut of_columns = Vec::new();
        for _ in 0..columns {
            let (column, rest) = x.split_at_mut(x_len);
            of_columns.push(column);
            x = rest;
        }
        let watch = |progress: &Progress| {
            if self.watch.as_ref().is_some_and(|watch| !watch(progress)) {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let mut control = Control::default().with_cancel(cancel);
        control.progress = self.watch.is_some().then_some(&watch);
        let solver = self.solver.as_mut().ok_or_else(|| Failure::input("there is no solver"))?;
        match solver.solve(&b, &mut of_columns, &self.options.stop, control) {
            Ok(outcomes) => self.outcomes = outcomes,
            Err(error) => return Err(self.failed(error)),
        }
        match self.outcomes.iter().position(|outcome| !outcome.reason.converged()) {
            None => Ok(()),
            Some(k) => {
                let which = if columns == 1 { String::new() } else { format!("right-hand side {k}: ") };
                let text = format!("{which}{}", self.outcomes[k].reason);
                Err(Failure { code: DECLIVE_NOT_CONVERGED, text })
            }
        }
    }

    /// After a failure of the machine a solver is of no use: the next call makes another one.
    fn failed(&mut self, error: Error) -> Failure {
        let failure = Failure::from(error);
        if failure.code == DECLIVE_MACHINE {
            self.solver = None;
        }
        failure
    }

    /// What is known of the solver and the last solve, as JSON.
    pub(crate) fn report(&self) -> Result<String> {
        Ok(report::json(self.solver()?, self.matrix()?, &self.options, &self.outcomes))
    }
}

impl Near {
    /// The setup with it, for a matrix.
    fn told(&self, a: &AnyCsr, setup: &Setup) -> Result<Setup> {
        let setup = setup.clone();
        let given = setup.near_null.as_ref().map(NearNull::unknowns);
        let a = match (self, a) {
            (Self::Unknown, AnyCsr::Real(_)) => return Ok(setup),
            (Self::Unknown, AnyCsr::Complex(_)) if given.is_none() => return Ok(setup),
            (_, AnyCsr::Complex(_)) => {
                return Err(Failure::input("block_size, coordinates and near-null vectors are for real matrices"));
            }
            (_, AnyCsr::Real(a)) => a,
        };
        let n = a.n_rows();
        let near_null = match self {
            Self::Unknown => return Ok(setup),
            Self::Coordinates(coordinates) => {
                let nodes = coordinates.first().map_or(0, Vec::len);
                let unknowns = given.unwrap_or(n / nodes.max(1));
                if unknowns * nodes != n {
                    return Err(Failure::input(format!(
                        "there are coordinates of {nodes} nodes, but the matrix has {n} rows: that is no whole number of unknowns for each"
                    )));
                }
                NearNull::of_coordinates(unknowns, coordinates)?
            }
            Self::Vectors(vectors) => {
                let unknowns = given.unwrap_or_else(|| NearNull::of_matrix(a).unknowns());
                NearNull::of_vectors(unknowns, vectors)?
            }
        };
        Ok(setup.with_near_null(near_null))
    }
}

impl AnySolver {
    fn new(
        a: &AnyCsr,
        setup: &Setup,
        preconditioner: Option<Arc<dyn HostPreconditioner>>,
        cancel: &AtomicBool,
    ) -> Result<Self> {
        Ok(match (a, preconditioner) {
            (AnyCsr::Real(a), None) => Self::Real(Box::new(Solver::cancellable(a.clone(), setup, cancel)?)),
            (AnyCsr::Real(a), Some(m)) => Self::Real(Box::new(Solver::with_preconditioner(a.clone(), setup, m)?)),
            (AnyCsr::Complex(a), None) => {
                let solver = ComplexSolver::cancellable(a.clone(), real_form(a)?, setup, cancel)?;
                Self::Complex(Box::new(solver))
            }
            (AnyCsr::Complex(_), Some(_)) => {
                return Err(Failure::input("a preconditioner of the caller's own is for real matrices"));
            }
        })
    }

    fn solve(
        &mut self,
        b: &[&[f64]],
        x: &mut [&mut [f64]],
        stop: &Stop,
        control: Control<'_>,
    ) -> declive::Result<Vec<Outcome<()>>> {
        match self {
            Self::Real(solver) => solver.solve_each(b, x, stop, control, &mut |_, _| ()),
            Self::Complex(solver) => solver.solve_each_by_turns(b, x, stop, control, &mut |_, _| ()),
        }
    }

    fn update(&mut self, values: &[f64]) -> declive::Result<()> {
        match self {
            Self::Real(solver) => solver.update_values(values),
            Self::Complex(solver) => solver.update_values(complex(values).to_vec()),
        }
    }

    fn matrix(&self) -> AnyCsr {
        match self {
            Self::Real(solver) => Csr::clone(solver.matrix()).into(),
            Self::Complex(solver) => solver.matrix().clone().into(),
        }
    }

    fn real(&self) -> &Solver {
        match self {
            Self::Real(solver) => solver,
            Self::Complex(solver) => solver.real(),
        }
    }
}

/// Real and imaginary parts by turns, as complex numbers.
pub(crate) fn complex(parts: &[f64]) -> &[Complex64] {
    bytemuck::cast_slice(parts)
}

/// The same pattern, copied, with other values.
fn with_values(a: &AnyCsr, values: &[f64]) -> Result<AnyCsr> {
    fn of<T: Scalar>(a: &Csr<T>, values: &[T]) -> declive::Result<Csr<T>> {
        Csr::new(a.n_rows(), a.n_cols(), a.row_ptr().to_vec(), a.col_idx().to_vec(), values.to_vec())
    }
    Ok(match a {
        AnyCsr::Real(a) => of(a, values)?.into(),
        AnyCsr::Complex(a) => of(a, complex(values))?.into(),
    })
}
