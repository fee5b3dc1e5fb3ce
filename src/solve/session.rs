//! The solver as its callers see it: it checks the input, and hands it to the ranks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::chain::{Candidate, Chain, Known, check_precond};
use super::dense::{Dense, DenseFactors, is_dense};
use super::factorised::{Factorised, has_narrow_band};
use super::facts::Facts;
use super::memory::{self, Memory, Remembered};
use super::null_space::NullSpace;
use super::outcome::Outcome;
use super::recovery::{self, DeviceFailure};
use super::statistics::{Answer, Statistics};
use super::{iteration_times, patience};
use crate::alongside::alongside;
use crate::device::{self, Choice, Pick, Rejected, Selection};
use crate::direct::{Kind, widths};
use crate::error::{Error, Result};
use crate::krylov::{Criterion, Indefinite, Method, Reason, Singularity};
use crate::matrix::equivalent::is_real_form;
use crate::matrix::search::first;
use crate::matrix::stats::{Diagonal, Stats};
use crate::matrix::{Csr, Equilibrated, Equilibration, Shortage};
use crate::precond::given::Given;
use crate::precond::{Hierarchy, HostPreconditioner, NearNull, Precond};
use crate::real::Precision;
use crate::runtime::{Control, RankInfo, Ranks, Reorder, Setup, SetupTimes, Stop, Whole};
use crate::schedule::{Chosen, Forecast, Ordered, Reordering, choose, for_multigrid, is_in_good_order};
use crate::timeline::stages::stage;
use crate::tune::store::Store;

/// A system's matrix on its ranks, ready to solve for many right-hand sides.
///
/// Solvers are independent of each other: several may work in several threads.
pub struct Solver {
    /// What it was asked for.
    pub(super) asked: Setup,
    pub(super) whole: Whole,
    pub(super) stats: Stats,
    pub(super) reordering: Reordering,
    pub(super) rejected: Vec<Rejected>,
    pub(super) note: Option<String>,
    pub(super) times: SetupTimes,
    pub(super) forecast: Forecast,
    pub(super) ranks: Ranks<'static>,
    pub(super) failures: Vec<DeviceFailure>,
    /// What shows without an iteration that the matrix is not positive definite.
    pub(super) obstacle: Option<Indefinite>,
    /// What is known of its null space.
    pub(super) null_space: Option<NullSpace>,
    pub(super) chain: Chain,
    /// What `auto` began with, as former solves of the same system say.
    pub(super) remembered: Option<Remembered>,
    /// Where a first solve tells how long it took.
    pub(super) memory: Option<Memory>,
    /// That of the preconditioner, if it has one.
    pub(super) hierarchy: Option<Hierarchy>,
    /// The factorisation of the matrix, if it was thought of.
    pub(super) factorised: Option<Factorised>,
    /// And that of it as a dense one.
    pub(super) dense: Option<Dense>,
    /// Why there is no transversal, if one was asked for.
    pub(super) shortage: Option<Shortage>,
    /// Whether there is one, once that was asked.
    pub(super) is_structurally_singular: OnceLock<bool>,
    /// What factors have said of a singular matrix, so that a method goes on which finds least residuals.
    pub(super) singular: Option<Reason>,
}

impl std::fmt::Debug for Solver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solver").field("setup", &self.whole.setup).field("ranks", &self.ranks()).finish_non_exhaustive()
    }
}

impl Solver {
    /// Distributes `a` over the devices that `setup` asks for. The matrix stays in memory for the check of each answer.
    ///
    /// # Errors
    /// [`Error::Rectangular`] for a method that needs a square matrix; [`Error::NotSymmetric`] for a method that needs a symmetric matrix, unless `setup` says to assume it; [`Error::BeyondSingle`] if single
    /// precision can't hold the matrix; [`Error::NoDevice`], [`Error::KernelBuild`], [`Error::OutOfDeviceMemory`],
    /// [`Error::OpenCl`] for devices.
    pub fn new(a: impl Into<Arc<Csr>>, setup: &Setup) -> Result<Self> {
        Self::open(a.into(), setup, None, None)
    }

    /// The same; if `cancel` is set meanwhile, tuning for [`Tune::Full`](super::Tune::Full) ends at once, with a
    /// warning, and kernels are launched as is known without. With the same flag, a solve then ends before its first
    /// iteration.
    ///
    /// # Errors
    /// As [`Solver::new`].
    pub fn cancellable(a: impl Into<Arc<Csr>>, setup: &Setup, cancel: &AtomicBool) -> Result<Self> {
        Self::open(a.into(), setup, Some(cancel), None)
    }

    /// The same with a preconditioner of the caller's own, in place of that in `setup`, for [`Method::Cg`] and [`Method::Gmres`]; with
    /// [`Method::Auto`], for these two, as the matrix asks for, before `direct` goes on without it. Devices send the residual to the host and get M⁻¹ r back in each iteration.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use declive::matrix::gallery;
    /// use declive::{Control, Csr, HostPreconditioner, Setup, Solver, Stop};
    ///
    /// /// A sweep of Gauss and Seidel's forwards, and one backwards.
    /// struct Sweeps(Csr);
    ///
    /// impl HostPreconditioner for Sweeps {
    ///     fn apply(&self, r: &[f64], z: &mut [f64]) {
    ///         z.fill(0.0);
    ///         for i in (0..r.len()).chain((0..r.len()).rev()) {
    ///             let (columns, values) = self.0.row(i);
    ///             let az: f64 = columns.iter().zip(values).map(|(&j, v)| v * z[j as usize]).sum();
    ///             z[i] += (r[i] - az) / self.0.get(i, i).unwrap_or(1.0);
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> declive::Result<()> {
    /// let a = gallery::poisson2d([30, 30])?;
    /// # let setup = Setup::default().with_devices("host".parse()?).with_method(declive::solve::Method::Cg);
    /// # #[cfg(any())]
    /// let setup = Setup::default();
    /// let b = vec![1.0; 900];
    /// let (stop, control) = (Stop::default(), Control::default());
    /// let plain = Solver::new(a.clone(), &setup)?.solve(&b, None, &stop, control)?;
    /// let mut solver = Solver::with_preconditioner(a.clone(), &setup, Arc::new(Sweeps(a)))?;
    /// let swept = solver.solve(&b, None, &stop, control)?;
    /// assert!(swept.reason.converged() && swept.iterations < plain.iterations);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Solver::new`]; [`Error::Usage`] for other methods.
    pub fn with_preconditioner(a: impl Into<Arc<Csr>>, setup: &Setup, m: Arc<dyn HostPreconditioner>) -> Result<Self> {
        Self::open(a.into(), &setup_for_given(setup)?, None, Some(m))
    }

    pub(super) fn open(
        a: Arc<Csr>,
        setup: &Setup,
        cancel: Option<&AtomicBool>,
        given: Option<Arc<dyn HostPreconditioner>>,
    ) -> Result<Self> {
        let (start, asked) = (Instant::now(), setup.clone());
        let of_any_shape = Setup { method: Method::Lsmr, ..setup.clone() };
        let is_square = a.n_rows() == a.n_cols();
        let setup = if setup.method == Method::Auto && !is_square { &of_any_shape } else { setup };
        if setup.method.needs_square() && !is_square {
            return Err(Error::Rectangular { method: setup.method.name(), rows: a.n_rows(), cols: a.n_cols() });
        }
        if setup.method == Method::Tridiagonal {
            widths(&a)?;
        }
        // factors are the host's
        let on_host = Setup { devices: Choice::List(vec![Pick::Host]), precond: Precond::None, ..setup.clone() };
        let setup = if setup.method.factorises() { &on_host } else { setup };
        check_precond(setup)?;
        // drivers take their time
        let list = || {
            let _listing = stage("list");
            device::select(&setup.devices, setup.precision.needs_f64())
        };
        let (selection, stats) = alongside(list, || {
            let _checking = stage("check");
            let is_good = is_in_good_order(&a, setup.reorder, setup.method.row_bytes(setup.precond, setup.restart));
            is_good.then(|| Stats::of(&a))
        });
        let count = selection.as_ref().map_or(1, |s| s.ranks.len());
        log::debug!("devices are listed");
        let store = Store::open();
        let memory = selection.as_ref().ok().filter(|_| given.is_none());
        let mut memory = memory.and_then(|selection| Memory::of(&a, setup, &selection.ranks, &store));
        let mut remembered = memory.as_ref().and_then(Memory::remembered);
        let begins_with = |remembered: &Option<Remembered>| remembered.as_ref().map(|one| one.best.candidate);
        let reorder = order_for(setup)?;
        if let Some(near_null) = &setup.near_null {
            near_null.check(a.n_rows())?;
        }
        let by_transversal = Setup { precond: Precond::Transversal, ..setup.clone() };
        let is_by_transversal = begins_with(&remembered).is_some_and(|first| first.precond == Precond::Transversal);
        let setup = if is_by_transversal { &by_transversal } else { setup };
        let finding = Instant::now();
        let (equilibration, shortage) = equilibration(&a, setup)?;
        let of_transversal = finding.elapsed();
        // auto has others
        let by_diagonal = Setup { precond: Precond::Jacobi, ..setup.clone() };
        let (setup, shortage) =
            if shortage.is_some() && setup.method == Method::Auto { (&by_diagonal, None) } else { (setup, shortage) };
        let scaled = match &equilibration {
            Some(equilibration) => Arc::new(equilibration.matrix(&a)?),
            None => Arc::clone(&a),
        };
        let unknowns = setup.near_null.as_ref().map(NearNull::unknowns);
        let ordering = stage("reorder");
        let Ordered { a: rows, order, reordering } =
            Ordered::new(&scaled, reorder, count, setup.method.row_bytes(setup.precond, setup.restart), unknowns)?;
        drop(ordering);
        log::debug!("the order of the rows is known");
        let checking = stage("check");
        let looked_at = if equilibration.is_some() { &a } else { &rows };
        let stats = stats.unwrap_or_else(|| Stats::of_reordered(&a, looked_at));
        let Facts { stats, factor, is_symmetric, obstacle, null_space } =
            Facts::of(&a, stats, setup, equilibration.is_some())?;
        drop(checking);
        log::debug!("the matrix is checked");
        let known = Known::new(&a, is_symmetric, obstacle, &stats.diagonal);
        let (mut method, mut chain) = Chain::of(setup, known)?;
        remembered.take_if(|one| {
            is_by_transversal && equilibration.is_none() || !memory::suits(one.best.candidate, known, is_real_form(&a))
        });
        let by_diagonal = Setup { precond: Precond::Jacobi, ..setup.clone() };
        let setup = if method.takes(setup.precond) { setup } else { &by_diagonal }; // auto has found another method
        let mut factorised = None;
        // one that is factorised sooner than a device is opened
        let has_usual_precond = matches!(setup.precond, Precond::None | Precond::Jacobi) && given.is_none();
        let is_of_auto = setup.method == Method::Auto && has_usual_precond;
        let is_usual = setup.devices == Choice::Auto && has_usual_precond;
        let is_candidate = is_usual && chain.ends_with(Method::Direct);
        let may_be_definite = obstacle.is_none() && stats.asymmetry.is_none();
        let is_semidefinite = may_be_definite && null_space.is_some();
        if is_candidate && !is_semidefinite && has_narrow_band(&a) {
            log::info!("the matrix has a narrow band: it is eliminated in the order given");
            (method, chain) = chain.only(Method::Tridiagonal);
            (memory, remembered) = (None, None); // which is known without it
        } else if let Some(first) = begins_with(&remembered).filter(|first| first.method == Method::Direct) {
            (method, chain) = (Method::Direct, chain.beginning_with(first, method, &[]));
        } else if is_of_auto && !is_semidefinite && is_dense(&a) && !is_real_form(&a) {
            (method, chain) = chain.only(Method::Dense);
            (memory, remembered) = (None, None);
        } else if is_candidate && remembered.is_none() && !is_semidefinite && Factorised::may_be_quick(&a) {
            let _analysing = stage("analyse");
            let analysed = Factorised::analysed(&a, Kind::of(stats.asymmetry.is_none(), may_be_definite))?;
            if analysed.is_quick() {
                (method, chain) = chain.only(Method::Direct);
                memory = None; // which is known without it
            }
            factorised = Some(analysed);
        }
        let setup = if method.factorises() { &on_host } else { setup };
        let selection = if method.factorises() { device::select(&setup.devices, true) } else { selection };
        let setup = &Setup { method, ..setup.clone() };
        let selection = selection?;
        let mut whole = Whole::new(a, &rows, order, factor, setup, store);
        (whole.is_symmetric, whole.equilibration) = (is_symmetric, equilibration);
        whole.given = given.map(|m| Arc::new(Given::new(m, whole.a.n_rows(), whole.order.clone())));
        if setup.applies_given() && whole.given.is_none() {
            check_levels((is_symmetric, obstacle), &stats.diagonal, &whole.setup)?;
            if obstacle.is_none() || !is_symmetric {
                whole.given = Some(Arc::new(whole.levels(&rows)?));
            }
        }
        whole.has_even_diagonal = stats.diagonal.uneven.is_none();
        let rows = if setup.method.minimises() { whole.minimise()? } else { rows };
        let choosing = stage("choose");
        let Chosen { placement, rejected: considered, forecast } = choose(&whole, &rows, &selection)?;
        drop(choosing);
        remembered.take_if(|one| one.best.candidate.precond == Precond::Amg && !patience::is_for(&placement.devices));
        if let Some(remembered) = &remembered {
            log::info!("auto begins with {remembered}");
            chain = begin_with(remembered, &mut whole, &rows, chain)?;
        }
        let (placement, left_out) = for_multigrid(&whole, &rows, placement);
        let Selection { mut rejected, note, .. } = selection;
        if whole.setup.method == Method::Dense {
            rejected.retain(|one| !one.reason.starts_with(device::NOT_AMONG)); // they may have the factors
        } else if whole.setup.method.factorises() {
            let others = rejected.iter_mut().filter(|one| one.reason.starts_with(device::NOT_AMONG));
            others.for_each(|one| one.reason = "the matrix is factorised on the host".into());
        }
        rejected.retain(|one| !considered.iter().any(|other| other.device.index == one.device.index));
        rejected.extend(considered);
        rejected.extend(left_out);
        rejected.retain(|one| !placement.devices.iter().flatten().any(|used| used.index == one.device.index));
        rejected.sort_by_key(|rejected| rejected.device.index);
        let prepare = start.elapsed().saturating_sub(forecast.time + of_transversal);
        log::debug!("checks and partition took {prepare:?}");
        let mut failures = Vec::new();
        let ranks = recovery::open(&whole, rows, placement, &mut failures, cancel)?;
        let making = stage("precond");
        let hierarchy = whole.given.as_ref().map_or(Ok(None), |given| given.prepare())?;
        let precond = of_transversal + ranks.times.precond + making.end();
        let tune = ranks.times.tune + forecast.time;
        let prepare = prepare + ranks.times.prepare;
        let times = SetupTimes { prepare, reorder: reordering.time, precond, tune, ..ranks.times };
        Ok(Self {
            asked,
            whole,
            stats,
            reordering,
            rejected,
            note,
            times,
            forecast,
            ranks,
            failures,
            obstacle,
            null_space,
            chain,
            remembered,
            memory,
            hierarchy,
            factorised,
            dense: None,
            shortage,
            is_structurally_singular: OnceLock::new(),
            singular: None,
        })
    }

    /// Solves `A x = b`, or finds its least squares by [`Method::Lsmr`], from `x0`, or from zero: [`solve_into`](Self::solve_into) with a vector for x.
    ///
    /// # Errors
    /// As [`solve_into`](Self::solve_into), for `x0` in place of `x`.
    pub fn solve(&mut self, b: &[f64], x0: Option<&[f64]>, stop: &Stop, control: Control<'_>) -> Result<Outcome> {
        if let Some(x0) = x0 {
            check_vector("x0", x0, self.whole.a.n_cols())?;
        }
        let mut x = x0.map_or_else(|| vec![0.0; self.whole.a.n_cols()], <[f64]>::to_vec);
        let (statistics, answer) = self.run(b, &mut x, stop, control, Statistics::after(control.done))?;
        Ok(statistics.outcome(x, answer, self.bytes_per_iteration()))
    }

    /// Solves `A x = b` from and to `x`: it holds the first guess, and then the solution, or the best approximation reached. Beside
    /// it, a solve takes one vector of the host's memory for the ranks' iterates, and a few more where rows are reordered, scaled
    /// or copied for snapshots.
    ///
    /// After an error, `x` is the first guess, or an iterate that was reached from there.
    ///
    /// If the columns of A sum to 0, all of them or those of a connected part of a symmetric A, A is singular. For a b that is not in
    /// its range, `x` gets the least residual, and the reason is [`Reason::Singular`], with that residual. If A is symmetric, the
    /// mean of `x` in each part stays that of the first guess: so x is the solution of least norm along the null space if that is 0.
    ///
    /// ```
    /// use declive::matrix::gallery;
    /// use declive::{Control, Setup, Solver, Stop};
    ///
    /// # fn main() -> declive::Result<()> {
    /// let a = gallery::poisson2d([30, 30])?;
    /// # let setup = Setup::default().with_devices("host".parse()?);
    /// # #[cfg(any())]
    /// let setup = Setup::default();
    /// let mut solver = Solver::new(a, &setup)?;
    ///
    /// // steps in time: each begins with the x of the one before
    /// let mut x = vec![0.0; 900];
    /// for step in 1..=3 {
    ///     let b = vec![f64::from(step); 900];
    ///     let outcome = solver.solve_into(&b, &mut x, &Stop::default(), Control::default())?;
    ///     assert!(outcome.reason.converged());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] and [`Error::NotFinite`] for `b` and `x`; [`Error::Usage`] for a tolerance below 0 or NaN; errors of devices that no others take over from, after
    /// which the solver can't be used any more. Not converging is not an error: see [`Outcome::reason`].
    pub fn solve_into(&mut self, b: &[f64], x: &mut [f64], stop: &Stop, control: Control<'_>) -> Result<Outcome<()>> {
        let (statistics, answer) = self.run(b, x, stop, control, Statistics::after(control.done))?;
        Ok(statistics.outcome((), answer, self.bytes_per_iteration()))
    }

    /// Solves for one right-hand side, after what is known from `statistics`.
    pub(super) fn run(
        &mut self,
        b: &[f64],
        x: &mut [f64],
        stop: &Stop,
        control: Control<'_>,
        mut statistics: Statistics,
    ) -> Result<(Statistics, Answer)> {
        check_vector("b", b, self.whole.a.n_rows())?;
        check_vector("x", x, self.whole.a.n_cols())?;
        check_tolerances(stop)?;
        if let Some(reason) = self.settled(b, stop, control) {
            if reason.converged() {
                x.fill(0.0);
            }
            let verifying = stage("verify");
            let residual = self.whole.residual(b, x)?;
            let statistics = Statistics::of_none(control.done, self.ranks().len(), &residual, verifying.end());
            return Ok((statistics, (reason, residual)));
        }
        let failed = self.failures.len();
        let answer = self.by_methods(b, x, stop, control, &mut statistics)?;
        let is_usual = statistics.switches.is_empty() && !self.method().factorises();
        if self.failures.len() == failed && is_usual {
            iteration_times::remember(&self.whole, &self.ranks, &statistics);
        }
        self.rejected.append(&mut self.ranks.left_out);
        Ok((statistics, answer))
    }

    /// What is known without an iteration: b = 0, a diagonal that no positive definite matrix has where the method needs one, a row
    /// without entries where b is not 0, or no time.
    pub(super) fn settled(&self, b: &[f64], stop: &Stop, control: Control<'_>) -> Option<Reason> {
        if let Some(reason) = nothing_to_do(b, stop, control) {
            return Some(reason);
        }
        if let Some(shortage) = self.shortage {
            return Some(Reason::Singular(Singularity::Structural(shortage)));
        }
        let obstacle = if self.method().minimises() {
            None
        } else if self.method().needs_definite() {
            self.obstacle
        } else if self.stats.empty_rows > 0 {
            let row_ptr = self.whole.a.row_ptr();
            let row = (0..b.len()).find(|&i| b[i] != 0.0 && row_ptr[i] == row_ptr[i + 1])?;
            Some(Indefinite::EmptyRow { row: row + 1 })
        } else {
            None
        };
        obstacle.map(Reason::IndefiniteOperator)
    }

    pub(super) fn bytes_per_iteration(&self) -> u64 {
        if self.method() == Method::Dense {
            return 8 * (self.whole.a.n_rows() as u64).pow(2);
        }
        if let (true, Some(factorised)) = (self.method().factorises(), &self.factorised) {
            return factorised.bytes();
        }
        self.ranks.bytes_per_iteration(&self.whole.setup, self.whole.order_of_ranks())
    }

    /// The matrix, with the values that it has now.
    #[must_use]
    pub fn matrix(&self) -> &Arc<Csr> {
        &self.whole.a
    }

    /// The ranks, to be altered.
    #[cfg(test)]
    pub(crate) fn ranks_of_test(&mut self) -> &mut Ranks<'static> {
        &mut self.ranks
    }

    /// The ranks, in order of their rows.
    #[must_use]
    pub fn ranks(&self) -> &[RankInfo] {
        &self.ranks.infos
    }

    /// Devices that failed, when the solver was built or later, so that the others have taken over:
    /// [`Setup::on_failure`].
    #[must_use]
    pub fn failures(&self) -> &[DeviceFailure] {
        &self.failures
    }

    /// Devices that were looked at and not used, with the reason.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }

    /// A line for the user when the devices are not what one expects.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What was expected of an iteration, and which sets of devices were considered.
    #[must_use]
    pub fn forecast(&self) -> &Forecast {
        &self.forecast
    }

    /// Facts about the matrix.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The method that the ranks follow: never [`Method::Auto`].
    #[must_use]
    pub fn method(&self) -> Method {
        self.whole.setup.method
    }

    /// The preconditioner that it has: with [`Method::Auto`], another one may take over, too.
    #[must_use]
    pub fn precond(&self) -> Precond {
        self.whole.setup.precond
    }

    /// Why [`Method::Auto`] did not begin with `cg`, if it did not: what shows that the matrix is not positive definite.
    #[must_use]
    pub fn method_reason(&self) -> Option<Indefinite> {
        self.chain.why()
    }

    /// What [`Method::Auto`] began with, if it took the least in former solves of the same system, and what these took.
    #[must_use]
    pub fn remembered(&self) -> Option<&Remembered> {
        self.remembered.as_ref()
    }

    /// The order of the rows on the ranks, and why it is so.
    #[must_use]
    pub fn reordering(&self) -> &Reordering {
        &self.reordering
    }

    /// How the system is permuted and scaled by a transversal, if it is.
    #[must_use]
    pub fn equilibrated(&self) -> Option<Equilibrated> {
        self.whole.equilibration.as_ref().map(Equilibration::summary)
    }

    /// The factors of [`Method::Dense`], once they are made.
    #[must_use]
    pub fn dense_factors(&self) -> Option<DenseFactors> {
        self.dense.as_ref().and_then(Dense::facts)
    }

    /// Estimates the condition number κ₁(A) = ‖A‖₁ ‖A⁻¹‖₁ by the factors of [`Method::Dense`], some ten solves on the host: `None` if there
    /// are none. x may be off by κ₁ times its backward error.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the factors on the host; a failing device.
    pub fn estimate_condition(&mut self) -> Result<Option<f64>> {
        self.dense.as_mut().map_or(Ok(None), Dense::estimate_condition)
    }

    /// The levels of [`Precond::Amg`], if it is that.
    #[must_use]
    pub fn hierarchy(&self) -> Option<&Hierarchy> {
        self.hierarchy.as_ref()
    }

    /// Entries of the matrices that the preconditioner multiplies by beside A, if it has some.
    #[must_use]
    pub fn precond_entries(&self) -> &[usize] {
        &self.ranks.entries_of_precond
    }

    /// Where the time of [`Solver::new`] went.
    #[must_use]
    pub fn times(&self) -> SetupTimes {
        self.times
    }
}

/// Puts what is to come first in the place of the usual method, for ranks that are where this one would have them.
fn begin_with(remembered: &Remembered, whole: &mut Whole, rows: &Arc<Csr>, chain: Chain) -> Result<Chain> {
    let first = remembered.best.candidate;
    if first.method == Method::Direct {
        return Ok(chain);
    }
    let usual = std::mem::replace(&mut whole.setup.method, first.method);
    whole.setup.precond = first.precond;
    if whole.setup.applies_given() {
        whole.given = Some(Arc::new(whole.levels(rows)?));
    }
    let longer: Vec<Candidate> = remembered.others.iter().map(|took| took.candidate).collect();
    Ok(chain.beginning_with(first, usual, &longer))
}

/// What a solver with a preconditioner of the caller's own is made for.
///
/// # Errors
/// [`Error::Usage`] for a method that can't have one.
pub(super) fn setup_for_given(setup: &Setup) -> Result<Setup> {
    if !setup.method.takes_given() {
        return Err(Error::Usage(format!(
            "{} can't have a preconditioner of the caller's own; use method = cg, gmres or auto",
            setup.method
        )));
    }
    Ok(Setup { precond: Precond::None, has_given: true, ..setup.clone() })
}

/// Checks that a matrix can have the levels of [`Precond::Amg`]; where a method for definite matrices meets an obstacle, it says so itself.
///
/// # Errors
/// [`Error::Usage`].
pub(super) fn check_levels(
    (is_symmetric, obstacle): (bool, Option<Indefinite>),
    diagonal: &Diagonal,
    setup: &Setup,
) -> Result<()> {
    let for_definite = "for symmetric positive definite matrices, and for others with a positive diagonal";
    let why = match obstacle {
        _ if !is_symmetric => match diagonal.missing_or_zero.into_iter().chain(diagonal.negative).min() {
            Some(row) => format!("is {for_definite}; this one has none in row {}", row + 1),
            None if setup.is_complex => "is not for complex matrices that are not Hermitian".into(),
            None if setup.near_null.as_ref().is_some_and(|near_null| !near_null.is_constant()) => {
                "interpolates a constant where a matrix is not symmetric: leave out what tells nodes and near-null vectors"
                    .into()
            }
            None => return Ok(()),
        },
        Some(obstacle) if !setup.method.needs_definite() => format!("is {for_definite}, but {obstacle}"),
        _ => return Ok(()),
    };
    Err(Error::Usage(format!("precond = amg {why}; use precond = jacobi")))
}

/// The order of rows that a method can have.
///
/// # Errors
/// [`Error::Usage`] for one that was asked for and that it can't have.
fn order_for(setup: &Setup) -> Result<Reorder> {
    match (setup.method.minimises(), setup.reorder) {
        (true, Reorder::Rcm) => Err(Error::Usage(format!(
            "{} has rows and columns as they are given; reverse Cuthill–McKee is for methods that need a square matrix",
            setup.method
        ))),
        (true, _) => Ok(Reorder::None),
        (false, reorder) => Ok(reorder),
    }
}

/// The transversal that a preconditioner asks for, or why there is none.
pub(super) fn equilibration(a: &Csr, setup: &Setup) -> Result<(Option<Equilibration>, Option<Shortage>)> {
    if setup.precond != Precond::Transversal {
        return Ok((None, None));
    }
    let finding = stage("transversal");
    let found = Equilibration::of(a, setup.precision.of_vectors() == Precision::F32)?;
    let took = finding.end();
    log::debug!("a transversal of the largest product took {took:?}");
    Ok(match found {
        Ok(equilibration) => (Some(equilibration), None),
        Err(shortage) => (None, Some(shortage)),
    })
}

/// What ends any solve before its first iteration: b = 0, or no time.
pub(super) fn nothing_to_do(b: &[f64], stop: &Stop, control: Control<'_>) -> Option<Reason> {
    if b.iter().all(|&v| v == 0.0) {
        return Some(Reason::Converged(Criterion::ZeroRhs));
    }
    if control.cancel.is_some_and(|c| c.load(Ordering::Relaxed)) {
        return Some(Reason::Interrupted);
    }
    stop.time_limit.is_some_and(|limit| limit.is_zero()).then_some(Reason::TimeLimit)
}

/// Checks the tolerances of a test.
pub(super) fn check_tolerances(stop: &Stop) -> Result<()> {
    match [("rtol", stop.rtol), ("atol", stop.atol), ("backward_error", stop.backward_error)]
        .into_iter()
        .find(|(_, v)| v.is_nan() || *v < 0.0)
    {
        Some((name, value)) => Err(Error::Usage(format!("{name} = {value} is no tolerance; use a number from 0 on"))),
        None => Ok(()),
    }
}

/// Checks a vector for a system of `n` rows.
pub(super) fn check_vector(what: &str, v: &[f64], n: usize) -> Result<()> {
    if v.len() != n {
        return Err(Error::SizeMismatch { what: what.into(), expected: n, found: v.len() });
    }
    match first(n, |k| !v[k].is_finite()) {
        Some(k) => Err(Error::NotFinite { what: what.into(), index: k + 1, value: v[k] }),
        None => Ok(()),
    }
}
