//! The solver of a system whose rows lie in several processes.

mod cut;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

pub use self::cut::Cut;
use super::chain::{Chain, Known};
use super::facts::{check, matrix_factor};
use super::null_space::NullSpace;
use super::outcome::Outcome;
use super::recovery;
use super::session::{Solver, check_levels, check_tolerances, check_vector};
use super::statistics::{Answer, Statistics};
use crate::comm::Processes;
use crate::comm::processes::{agreed, any, gathered};
use crate::device::{self, Choice, Selection};
use crate::distributed::{ProcessInfo, Rows};
use crate::distributed::{facts, nodes};

use crate::distributed::share::Share;
use crate::error::{Error, Result};
use crate::krylov::{Criterion, Indefinite, Reason};
use crate::matrix::Csr;
use crate::matrix::stats::Stats;
use crate::precond::{NearNull, Precond};
use crate::runtime::{Control, OnFailure, Placement, Reorder, Setup, SetupTimes, Stop, Whole};
use crate::schedule::{Cause, Forecast, Reordering};
use crate::timeline::stages::stage;
use crate::tune::store::Store;

/// One process's part of a solver that spans all processes of a job. All call the same functions in the same order; each has its rows, its
/// part of the vectors, and devices of its own.
///
/// The numbers that decide are the same for all, so that all end alike: with the same [`Outcome`], but for `x`, which is the part of this
/// process. If one fails, the others get [`Error::ProcessFailed`]; but if it is a device that fails, and all processes have
/// [`OnFailure::Continue`], all go on: the other devices of the process take over its rows, or the host's threads if there are none.
pub struct SharedSolver {
    solver: Solver,
    share: Arc<Share>,
}

impl SharedSolver {
    /// Gives the rows to the devices that `setup` asks for in this process. Collective.
    ///
    /// # Errors
    /// As [`Solver::new`], the same on all processes; [`Error::Usage`] for what several processes can't have: methods that factorise or
    /// minimise, and [`Precond::Transversal`].
    pub fn new(processes: Arc<dyn Processes>, rows: Rows, setup: &Setup) -> Result<Self> {
        let cut = Cut::as_given(&*processes, rows, setup)?;
        Self::of_cut(processes, cut, setup)
    }

    /// The same with rows for the devices that were chosen for them. Collective.
    ///
    /// # Errors
    /// As [`SharedSolver::new`].
    pub fn of_cut(processes: Arc<dyn Processes>, cut: Cut, setup: &Setup) -> Result<Self> {
        let (start, asked) = (Instant::now(), setup);
        let Cut { rows, selection, shares, source } = cut;
        let checking = stage("check");
        let unknowns = nodes::unknowns(&*processes, &rows)?;
        // nodes that are cut are none
        let are_whole = rows.starts.iter().all(|start| start.is_multiple_of(unknowns as u64));
        let near_null = if are_whole && unknowns > 1 { Some(NearNull::of_unknowns(unknowns)?) } else { None };
        let (share, a) = Share::new(Arc::clone(&processes), rows)?;
        let (share, a) = (Arc::new(share), Arc::new(a));
        let stats = facts::stats(&share, &a)?;
        let known = check(stats, asked).and_then(|stats| Ok((matrix_factor(&a, &stats, asked)?, stats)));
        let (factor, stats) = agreed(&*processes, known.map_err(|error| in_all(&share, error)))?;
        let is_symmetric = stats.asymmetry.is_none() || asked.assume_symmetric;
        let obstacle = obstacle(&share, &a, &stats, is_symmetric)?;
        let null_space = NullSpace::of_share(&share, &a, is_symmetric)?;
        drop(checking);
        let (method, chain) = agreed(
            &*processes,
            Chain::of(asked, Known { is_symmetric, obstacle, may_have_levels: is_symmetric && obstacle.is_none() }),
        )?;
        let chain = chain.among_processes();
        let precond = if method.takes(asked.precond) { asked.precond } else { Precond::Jacobi };
        let stops = any(&*processes, asked.on_failure == OnFailure::Stop)?;
        let on_failure = if stops { OnFailure::Stop } else { OnFailure::Continue };
        let setup = Setup { method, precond, near_null, on_failure, ..asked.clone() };
        let mut whole = Whole::new(Arc::clone(&a), &a, None, factor, &setup, Store::none());
        (whole.is_symmetric, whole.has_even_diagonal) = (is_symmetric, stats.diagonal.uneven.is_none());
        whole.setup.is_complex = false;
        whole.share = Some(Arc::clone(&share));
        if whole.setup.applies_given() {
            let checked = check_levels((is_symmetric, obstacle), &stats.diagonal, &setup);
            agreed(&*processes, checked.and_then(|()| check_shared(is_symmetric)))?;
            if obstacle.is_none() {
                whole.given = Some(Arc::new(agreed(&*processes, whole.levels(&a))?));
            }
        }
        let Selection { ranks: devices, rejected, note, .. } = selection;
        let rows = whole.row_ranges(&a, &shares, &devices);
        let prepare = start.elapsed();
        let mut failures = Vec::new();
        let ranks = recovery::open(&whole, a, Placement { devices, rows, source }, &mut failures, None);
        let ranks = ranks.inspect_err(|error| tell(&*processes, error))?;
        let making = stage("precond");
        let hierarchy = whole.given.as_ref().map_or(Ok(None), |given| given.prepare());
        let hierarchy = hierarchy.inspect_err(|error| tell(&*processes, error))?;
        let precond = ranks.times.precond + making.end();
        let times = SetupTimes { prepare: prepare + ranks.times.prepare, precond, ..ranks.times };
        let reordering = Reordering { cause: Cause::KeepAsked, given: None, rcm: None, time: Duration::ZERO };
        let solver = Solver {
            asked: asked.clone(),
            whole,
            stats,
            reordering,
            rejected,
            note,
            times,
            forecast: Forecast::default(),
            ranks,
            failures,
            obstacle,
            null_space,
            chain,
            remembered: None,
            memory: None,
            hierarchy,
            factorised: None,
            dense: None,
            shortage: None,
            is_structurally_singular: OnceLock::from(false), // which no process knows alone
            singular: None,
        };
        Ok(Self { solver, share })
    }

    /// This process's ranks, and what is known of the whole matrix.
    #[must_use]
    pub fn solver(&self) -> &Solver {
        &self.solver
    }

    /// This process's rows: the first, and the one behind the last.
    #[must_use]
    pub fn rows(&self) -> std::ops::Range<u64> {
        let process = self.share.processes.process();
        self.share.starts[process]..self.share.starts[process + 1]
    }

    /// What each process has, in their order. Collective.
    ///
    /// # Errors
    /// [`Error::ProcessFailed`].
    pub fn processes(&self) -> Result<Vec<ProcessInfo>> {
        let devices = self.solver.ranks().iter().map(|rank| rank.device.clone()).collect();
        ProcessInfo::of_all(&self.share, devices, self.solver.whole.a.nnz())
    }

    /// Solves A x = b, of which this process has the elements of its rows, as it has of `x0`. Collective.
    ///
    /// # Errors
    /// As [`Solver::solve`]; [`Error::ProcessFailed`], after which the solver can't be used any more.
    pub fn solve(&mut self, b: &[f64], x0: Option<&[f64]>, stop: &Stop, control: Control<'_>) -> Result<Outcome> {
        let (share, n) = (Arc::clone(&self.share), self.share.own.len());
        let processes = &*share.processes;
        let vectors = check_vector("b", b, n).and_then(|()| x0.map_or(Ok(()), |x0| check_vector("x0", x0, n)));
        let possible = vectors.and_then(|()| check_tolerances(stop));
        agreed(processes, possible.map_err(|error| in_all(&share, error)))?;
        let b = share.padded(b);
        let mut x = x0.map_or_else(|| vec![0.0; share.order()], |x0| share.padded(x0));
        let mut statistics = Statistics::after(control.done);
        let answer: Answer = match self.settled(&b, stop, control)? {
            Some(reason) => {
                if reason.converged() {
                    x.fill(0.0);
                }
                let verifying = stage("verify");
                let residual = self.solver.whole.residual(&b, &x)?;
                let ranks = self.solver.ranks().len();
                statistics = Statistics::of_none(control.done, ranks, &residual, verifying.end());
                (reason, residual)
            }
            None => {
                let ended = self.solver.by_methods(&b, &mut x, stop, control, &mut statistics);
                ended.inspect_err(|error| tell(processes, error))?
            }
        };
        x.truncate(share.own.end);
        x.drain(..share.own.start);
        let bytes = gathered(processes, self.solver.bytes_per_iteration())?.iter().sum();
        Ok(statistics.outcome(x, answer, bytes))
    }

    /// What all know without an iteration.
    fn settled(&self, b: &[f64], stop: &Stop, control: Control<'_>) -> Result<Option<Reason>> {
        let (share, solver) = (&self.share, &self.solver);
        let processes = &*share.processes;
        if !any(processes, b.iter().any(|v| *v != 0.0))? {
            return Ok(Some(Reason::Converged(Criterion::ZeroRhs)));
        }
        if any(processes, control.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)))? {
            return Ok(Some(Reason::Interrupted));
        }
        if stop.time_limit.is_some_and(|limit| limit.is_zero()) {
            return Ok(Some(Reason::TimeLimit));
        }
        if solver.method().needs_definite() {
            return Ok(solver.obstacle.map(Reason::IndefiniteOperator));
        }
        if solver.stats.empty_rows == 0 {
            return Ok(None);
        }
        let is_empty = |i: &usize| solver.whole.a.row(*i).0.is_empty() && b[*i] != 0.0;
        let empty = share.own.clone().find(is_empty).map_or(u64::MAX, |place| share.global(place));
        let first = gathered(processes, empty)?.into_iter().min().filter(|row| *row != u64::MAX);
        Ok(first.map(|row| Reason::IndefiniteOperator(Indefinite::EmptyRow { row: row as usize + 1 })))
    }
}

impl std::fmt::Debug for SharedSolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedSolver").field("solver", &self.solver).finish_non_exhaustive()
    }
}

/// Tells the others, who may wait for this process, of a failure, unless it is theirs.
fn tell(processes: &dyn Processes, error: &Error) {
    if !matches!(error, Error::ProcessFailed { .. } | Error::PeerFailed) {
        processes.fail(&error.to_string());
    }
}

/// An error about a row or an element, with its number among those of all processes.
fn in_all(share: &Share, error: Error) -> Error {
    let before = share.starts[share.processes.process()] as usize;
    match error {
        Error::BeyondSingle { row, value, largest } => {
            Error::BeyondSingle { row: share.global(row - 1) as usize + 1, value, largest }
        }
        Error::NotFinite { what, index, value } => Error::NotFinite { what, index: before + index, value },
        other => other,
    }
}

/// The devices of this process: of those that several processes of a host find by `auto`, each has its own as long as there are as many.
fn own_devices(processes: &dyn Processes, setup: &Setup) -> Result<Selection> {
    let mut selection = device::select(&setup.devices, setup.precision.needs_f64())?;
    if setup.devices == Choice::Auto {
        let [local, count] = processes.on_host();
        let own: Vec<_> = selection.ranks.iter().skip(local % selection.ranks.len()).step_by(count).cloned().collect();
        selection.ranks = own;
    }
    Ok(selection)
}

/// What several processes can be asked for.
///
/// # Errors
/// [`Error::Usage`].
fn check_setup(setup: &Setup) -> Result<()> {
    let cannot = |what: String, instead: &str| {
        Err(Error::Usage(format!("{what} is not possible with several processes; use {instead}")))
    };
    let Setup { method, precond, .. } = setup;
    if method.factorises() || method.minimises() {
        return cannot(format!("method = {method}"), "cg, minres, bicgstab, idr or gmres, or one process");
    }
    if *precond == Precond::Transversal {
        return cannot(
            format!("precond = {precond}"),
            "jacobi, block-jacobi, fsai, ilu0, amg or chebyshev, or one process",
        );
    }
    if setup.near_null.is_some() {
        return cannot("near_null".into(), "constants, which are taken for each unknown of a node");
    }
    if setup.reorder == Reorder::Rcm {
        return cannot("reorder = rcm".into(), "none");
    }
    Ok(())
}

/// Checks that several processes can make levels of a matrix together.
fn check_shared(is_symmetric: bool) -> Result<()> {
    if is_symmetric {
        return Ok(());
    }
    Err(Error::Usage(
        "precond = amg among several processes is for symmetric matrices; use precond = jacobi, or one process".into(),
    ))
}

/// What shows that the matrix is not positive definite, as [`Facts`](super::facts::Facts) has it.
fn obstacle(share: &Share, a: &Csr, stats: &Stats, is_symmetric: bool) -> Result<Option<Indefinite>> {
    if let Some(pair) = stats.asymmetry.as_ref().filter(|_| !is_symmetric) {
        let (upper, lower) = (pair.upper, pair.lower);
        return Ok(Some(Indefinite::Asymmetry { row: pair.row + 1, col: pair.col + 1, upper, lower }));
    }
    let Some(first) = [stats.diagonal.missing_or_zero, stats.diagonal.negative].into_iter().flatten().min() else {
        return Ok(None);
    };
    // whoever has the row tells
    let owner = share.process_of(first as u64);
    let own = share.place(first as u64).filter(|_| owner == share.processes.process());
    let of_row = own.map_or([0, 0], |i| [a.row(i).0.len() as u64, a.get(i, i).unwrap_or(0.0).to_bits()]);
    let mut all = vec![0; 2 * share.processes.count()];
    share.processes.gather(&of_row, &mut all)?;
    let (row, value) = (first + 1, f64::from_bits(all[2 * owner + 1]));
    Ok(Some(if all[2 * owner] == 0 { Indefinite::EmptyRow { row } } else { Indefinite::Diagonal { row, value } }))
}

#[cfg(test)]
mod tests;
