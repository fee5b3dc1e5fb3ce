//! A run of a method that is a text: from the true residual on until somebody says that it is over.

use std::mem::swap;

use super::iterate::Iterate;
use super::judge::Judge;
use super::verdict::Verdict;
use super::workspace::Workspace;
use crate::backend::LinearOperator;
use crate::backend::machine::Machine;
use crate::backend::pass_backend::PassBackend;
use crate::backend::text::{MATRIX, OWN, R, WEIGHTS, X};
use crate::error::Result;
use crate::precond::scaling::RankScaling;

/// Runs from `iterate` until `judge` says so. The first residual is computed, not assumed; the direction may be that which the
/// former run has left. If the system is scaled, what the judge sees is the residual of the one that is not.
pub(crate) fn run<O: PassBackend>(
    backend: &O,
    operators: &[impl LinearOperator<O>],
    iterate: &mut impl Iterate<O>,
    mut scaling: Option<&mut RankScaling<O>>,
    w: &mut Workspace<O>,
    machine: &mut Machine<O>,
    judge: &mut impl Judge,
) -> Result<Verdict> {
    backend.begin()?;
    let descent = iterate.residual(backend, &operators[MATRIX], w)?; // r = b − A x
    descent.into_iter().for_each(|ss| judge.see_descent(ss));
    lend(machine, w, &mut scaling);
    let norm2 = machine.begin(backend);
    lend(machine, w, &mut scaling);
    if let Some(verdict) = judge.begin(norm2?) {
        return Ok(verdict);
    }
    if judge.is_best() {
        iterate.keep(backend, w)?;
    }
    lend(machine, w, &mut scaling);
    machine.tolerance = judge.run_tolerance();
    let keeps_direction = judge.keeps_direction() || descent.is_some();
    let started = machine.start(backend, operators, keeps_direction);
    let verdict = started.and_then(|()| iterations(backend, operators, iterate, &mut scaling, w, machine, judge));
    let completed = if verdict.is_ok() { machine.complete(backend) } else { Ok(()) };
    lend(machine, w, &mut scaling);
    completed.and(verdict)
}

/// The iterations, while the machine has the vectors.
fn iterations<O: PassBackend>(
    backend: &O,
    operators: &[impl LinearOperator<O>],
    iterate: &mut impl Iterate<O>,
    scaling: &mut Option<&mut RankScaling<O>>,
    w: &mut Workspace<O>,
    machine: &mut Machine<O>,
    judge: &mut impl Judge,
) -> Result<Verdict> {
    let mut records = Vec::new();
    let most = if judge.may_replace() { machine.longest_run() } else { u64::MAX };
    let mut next = 1;
    loop {
        let limit = judge.run_limit();
        let allowed = |next| judge.allowed_from(next).min(most.saturating_add(1) - next);
        let most_at_once = allowed(next).min(judge.at_once());
        let several = machine.several(backend, operators, (next, most_at_once), limit)?; // at once, or else one:
        next = several.unwrap_or(next);
        if machine.must_replace() {
            return Ok(Verdict::Replaces);
        }
        let (iteration, is_over) = (next, allowed(next) == 0);
        let is_single = several.is_none() && !is_over;
        if is_single {
            backend.begin_iteration(iteration)?;
            if let Some(verdict) =
                machine.iterate(backend, operators, iteration, limit, &mut |_, record| judge.see(&record))?
            {
                return Ok(verdict);
            }
            next += 1;
        }
        records.clear();
        let drain = is_over || judge.at_once() == 1 || backend.comm().stop_request() != 0;
        machine.look(backend, next - 1, drain, &mut records)?;
        if let Some(verdict) = judge.judge(&records, backend.comm()) {
            return Ok(verdict);
        }
        if judge.is_snapshot_due() {
            let deferred = machine.deferred(backend)?;
            lend(machine, w, scaling);
            judge.take_snapshot(backend, iterate, scaling.as_deref(), w, deferred)?;
            lend(machine, w, scaling);
        }
        if is_over {
            return Ok(Verdict::Replaces);
        }
        if is_single && let Some(verdict) = judge.compare(backend, iteration)? {
            records.clear();
            machine.catch_up(backend, &mut records)?;
            return Ok(judge.judge(&records, backend.comm()).unwrap_or(verdict));
        }
    }
}

/// The vectors of the workspace go to the machine, or back.
pub(crate) fn lend<O: PassBackend>(
    machine: &mut Machine<O>,
    w: &mut Workspace<O>,
    scaling: &mut Option<&mut RankScaling<O>>,
) {
    let own = [(X, &mut w.x), (R, &mut w.r), (OWN, &mut w.p), (OWN + 1, &mut w.q)];
    let weights = scaling.iter_mut().map(|share| (WEIGHTS, &mut share.weights));
    for (slot, vector) in own.into_iter().chain(weights) {
        swap(&mut machine.v[slot], vector);
    }
}
