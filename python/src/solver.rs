//! Solvers: of a matrix, real or complex, or of a function.

use std::mem::forget;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::TrySendError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use declive::matrix::Complex64;
use declive::matrix::equivalent::real_form;
use declive::solve::{Checkpoint, Checkpoints, ComplexSolver, Options, Progress};
use declive::{Control, Error, HostOperator, HostPreconditioner, OperatorSolver, Outcome, Stop};
use pyo3::prelude::*;

use crate::arrays::{Array, ArrayMut};
use crate::devices::json;
use crate::errors::input_error;
use crate::functions::{Function, preconditioner};
use crate::matrix::{Entries, Matrix};
use crate::options::{Named, NearNullOf, near_null as near_null_of, options_of, with};
use crate::process;
use crate::report::{self, Solve};
use crate::run::{Event, Events, Interruption, Listeners, as_bytes, run};

/// What solves.
enum Any {
    Real(declive::Solver),
    Complex(ComplexSolver),
    /// The real form of a complex matrix, with a preconditioner of the caller's own.
    Form(declive::Solver),
    Function(OperatorSolver<'static>),
}

impl Any {
    fn of_matrix(
        entries: &Entries,
        options: &Options,
        m: Option<Arc<dyn HostPreconditioner>>,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let setup = &options.setup;
        Ok(match (entries, m) {
            (Entries::Real(a), None) => Self::Real(declive::Solver::cancellable(Arc::clone(a), setup, cancel)?),
            (Entries::Real(a), Some(m)) => Self::Real(declive::Solver::with_preconditioner(Arc::clone(a), setup, m)?),
            (Entries::Complex(a), None) => {
                Self::Complex(ComplexSolver::cancellable(Arc::clone(a), real_form(a)?, setup, cancel)?)
            }
            (Entries::Complex(a), Some(m)) => {
                Self::Form(declive::Solver::with_preconditioner(real_form(a)?, setup, m)?)
            }
        })
    }

    fn of_function(
        a: HostOperator<'static>,
        options: &Options,
        m: Option<Arc<dyn HostPreconditioner>>,
    ) -> Result<Self, Error> {
        let solver = match m {
            None => OperatorSolver::new(a, &options.setup),
            Some(m) => OperatorSolver::with_preconditioner(a, &options.setup, m),
        };
        solver.map(Self::Function)
    }

    /// Solves for vectors one after the other in arrays.
    fn solve(
        &mut self,
        b: &[f64],
        x: &mut [f64],
        count: usize,
        stop: &Stop,
        control: Control<'_>,
    ) -> Result<Vec<Outcome<()>>, Error> {
        if count == 1 {
            return self.solve_one(b, x, stop, control).map(|outcome| vec![outcome]);
        }
        let [rows, columns] = [b.len(), x.len()].map(|len| (len / count).max(1));
        let each_b: Vec<&[f64]> = b.chunks(rows).collect();
        let mut each_x: Vec<&mut [f64]> = x.chunks_mut(columns).collect();
        match self {
            Self::Real(solver) | Self::Form(solver) => {
                solver.solve_each(&each_b, &mut each_x, stop, control, &mut |_, _| ())
            }
            Self::Complex(solver) => solver.solve_each_by_turns(&each_b, &mut each_x, stop, control, &mut |_, _| ()),
            Self::Function(solver) => {
                each_b.into_iter().zip(each_x).map(|(b, x)| solver.solve_into(b, x, stop, control)).collect()
            }
        }
    }

    fn solve_one(&mut self, b: &[f64], x: &mut [f64], stop: &Stop, control: Control<'_>) -> Result<Outcome<()>, Error> {
        match self {
            Self::Real(solver) | Self::Form(solver) => solver.solve_into(b, x, stop, control),
            Self::Complex(solver) => {
                let outcome = solver.solve_by_turns(b, Some(x), stop, control)?;
                x.copy_from_slice(&outcome.x);
                Ok(outcome.map_x(|_| ()))
            }
            Self::Function(solver) => solver.solve_into(b, x, stop, control),
        }
    }

    fn update_values(&mut self, values: &[f64]) -> Result<(), Error> {
        match self {
            Self::Real(solver) => solver.update_values(values),
            Self::Complex(solver) => solver.update_values(bytemuck::cast_slice::<f64, Complex64>(values).to_vec()),
            Self::Form(_) => Err(Error::Usage(
                "a complex matrix with a preconditioner of one's own gets no other values; build another solver".into(),
            )),
            Self::Function(_) => Err(Error::Usage("an operator that is no matrix has no values".into())),
        }
    }

    fn report(&self, options: &Options) -> String {
        match self {
            Self::Real(solver) => {
                report::of_solver(solver, solver.method_reason().map(|why| why.to_string()), false, options)
            }
            Self::Form(solver) => report::of_solver(solver, None, true, options),
            Self::Complex(solver) => {
                let why = solver.method_reason().map(|why| why.to_string());
                report::of_solver(solver.real(), why, true, options)
            }
            Self::Function(solver) => report::of_operator(solver, options),
        }
    }
}

/// A solver, which one thread uses at a time; others wait.
#[pyclass(frozen, module = "declive._declive")]
pub(crate) struct Solver {
    /// There until it is dropped.
    any: Mutex<Option<Any>>,
    options: Options,
    interruption: Arc<Interruption>,
}

#[pymethods]
impl Solver {
    /// Of a matrix.
    #[staticmethod]
    fn of_matrix(
        py: Python<'_>,
        matrix: &Bound<'_, Matrix>,
        options: Named,
        near_null: Option<NearNullOf>,
        m: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let entries = matrix.get().entries.clone();
        let mut options = options_of(py, options)?;
        options.setup.near_null = near_null_of(py, near_null, &entries)?.or(options.setup.near_null);
        Self::made(py, options, m, |options, m, cancel| Any::of_matrix(&entries, options, m, cancel))
    }

    /// Of a function, of which the diagonal may be known.
    #[staticmethod]
    fn of_function(
        py: Python<'_>,
        n: usize,
        function: Py<PyAny>,
        diagonal: Option<&Bound<'_, PyAny>>,
        options: Named,
        m: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let options = options_of(py, options)?;
        let interruption = Arc::new(Interruption::default());
        let function = Function::new(function, &interruption);
        let mut a = HostOperator::new(n, move |x: &[f64], y: &mut [f64]| function.call(x, y));
        if let Some(diagonal) = diagonal {
            a = a.with_diagonal(Array::<f64>::of(diagonal)?.get().to_vec());
        }
        let m = m.map(|m| preconditioner(m, &interruption)).transpose()?;
        let any = run(py, &interruption, &Listeners::NONE, |_, _| Any::of_function(a, &options, m))?;
        Ok(Self { any: Mutex::new(Some(any)), options, interruption })
    }

    /// Solves for `count` right-hand sides, which are one after the other in `b`, from and to `x`: JSON and the history of each, as bytes. With
    /// `iterate`, that is called with each iterate, and `progress` after each iteration.
    #[pyo3(signature = (b, x, count, options, progress, iterate, each))]
    #[expect(clippy::too_many_arguments, reason = "all of a call, for the package alone")]
    fn solve(
        &self,
        py: Python<'_>,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        count: usize,
        options: Named,
        progress: Option<Py<PyAny>>,
        iterate: Option<Py<PyAny>>,
        each: bool,
    ) -> PyResult<Vec<(String, Vec<u8>)>> {
        let options = with(py, &self.options, options)?;
        if options.setup != self.options.setup {
            return Err(input_error(
                py,
                "a solve can have another rtol, atol, backward_error, max_iters and time_limit; the rest is fixed when the solver is made".into(),
            ));
        }
        let (b, mut x) = (Array::<f64>::of(b)?, ArrayMut::<f64>::of(x)?);
        let (b, x) = (b.get(), x.get());
        let listeners = Listeners { progress, iterate };
        let outcomes = run(py, &self.interruption, &listeners, |cancel, events| {
            let tell = |at: &Progress| tell(&events, *at, each);
            let take = |at: &Checkpoint<'_>| {
                // fails only once nobody listens any more
                let _ = events.send(Event::Iterate(at.x.to_vec(), at.iterations));
            };
            let mut control = Control::default().with_cancel(cancel).with_each_iteration(each);
            if listeners.progress.is_some() {
                control = control.with_progress(&tell);
            }
            if listeners.iterate.is_some() {
                control = control.with_checkpoint(Checkpoints::new(Duration::ZERO, &take));
            }
            let mut any = self.any();
            let solver = any.as_mut().ok_or(Error::SolverBroken)?;
            solver.solve(b, x, count, &options.stop, control)
        })?;
        Ok(outcomes.iter().map(|outcome| (json(&Solve::new(outcome)), as_bytes(&outcome.history).to_vec())).collect())
    }

    /// Gives the matrix other values, in the order of its rows and columns.
    fn update_values(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let values = Array::<f64>::of(values)?;
        let values = values.get();
        run(py, &self.interruption, &Listeners::NONE, |_, _| {
            self.any().as_mut().ok_or(Error::SolverBroken)?.update_values(values)
        })
    }

    /// What is known beside the solves, as JSON.
    fn report(&self, py: Python<'_>, options: Named) -> PyResult<String> {
        process::enter()?;
        let options = with(py, &self.options, options)?;
        py.detach(|| Ok(self.any().as_ref().map(|any| any.report(&options)).unwrap_or_default()))
    }
}

impl Solver {
    fn made(
        py: Python<'_>,
        options: Options,
        m: Option<&Bound<'_, PyAny>>,
        make: impl FnOnce(&Options, Option<Arc<dyn HostPreconditioner>>, &AtomicBool) -> Result<Any, Error> + Send,
    ) -> PyResult<Self> {
        let interruption = Arc::new(Interruption::default());
        let m = m.map(|m| preconditioner(m, &interruption)).transpose()?;
        let any = run(py, &interruption, &Listeners::NONE, |cancel, _| make(&options, m, cancel))?;
        Ok(Self { any: Mutex::new(Some(any)), options, interruption })
    }

    fn any(&self) -> MutexGuard<'_, Option<Any>> {
        self.any.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells how far a solve is: if `all` count, each time; else only if nothing is waiting.
fn tell(events: &Events, at: Progress, all: bool) {
    let event = Event::Progress(at);
    if all {
        let _ = events.send(event); // as above
    } else if let Err(TrySendError::Disconnected(_) | TrySendError::Full(_)) = events.try_send(event) {
        // another one comes soon
    }
}

impl Drop for Solver {
    /// Without the interpreter's lock, which threads that end may wait for as they let go of arrays of Python's. In a process that was forked
    /// from the one that made it, threads and devices are not there to be closed.
    fn drop(&mut self) {
        let any = self.any().take();
        if process::is_forked() {
            return forget(any);
        }
        Python::attach(|py| py.detach(move || drop(any)));
    }
}
