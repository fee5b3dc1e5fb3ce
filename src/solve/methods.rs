//! A solve by one method after the other, as [`Chain`](super::chain::Chain) has them.

use std::sync::Arc;
use std::time::Instant;

use super::chain::{Candidate, is_rounding};
use super::dense::Dense;
use super::factorised::Factorised;
use super::memory::Attempt;
use super::reach::Reach;
use super::session::{Solver, equilibration};
use super::statistics::{Answer, Statistics};
use super::subject::Subject;
use super::{patience, recovery, rounds};
use crate::direct::Kind;
use crate::error::Result;
use crate::krylov::{Method, Reason};
use crate::matrix::Shortage;
use crate::memory::{copied, copy};
use crate::precond::Precond;
use crate::runtime::{Control, Setup, Stop};
use crate::schedule::for_multigrid;
use crate::timeline::stages::stage;
use crate::verify::{self, Residual};

impl Solver {
    /// Solves by one method after the other, until the test is met or there is none left: each from the x of the one before. The best x
    /// of all stays.
    pub(super) fn by_methods(
        &mut self,
        b: &[f64],
        x: &mut [f64],
        stop: &Stop,
        control: Control<'_>,
        statistics: &mut Statistics,
    ) -> Result<Answer> {
        let (started, mut limits) = (Instant::now(), stop.clone());
        let mut memory = self.memory.take().filter(|_| statistics.iterations == 0);
        let (first, failed) = (self.candidate(), self.failures.len());
        let mut attempt = Attempt::begun(first, self.times.precond, statistics);
        let mut best: Option<(Vec<f64>, Residual)> = None;
        if self.whole.all(patience::are_processors(self.ranks()))? {
            self.chain.set_if_trial_fails(Precond::Fsai); // the host makes it: a GPU had better not wait for that
        }
        loop {
            let patience = self.patience()?;
            let Self { whole, null_space, ranks, failures, .. } = self;
            let answer = if whole.setup.method.factorises() {
                self.by_factors(b, x, (stop, control, started), statistics)?
            } else {
                let (subject, of_solve) = (Subject::Matrix(whole, null_space.as_ref()), (&mut *statistics, started));
                let control = Control { patience, ..control };
                rounds::solve(subject, ranks, failures, b, x, (&limits, control), of_solve)?
            };
            let (reason, residual) = self.told(answer);
            let met = attempt.ended(&(reason, residual), statistics);
            let (ended, compiled) = (Instant::now(), statistics.compile);
            let to = self.next_method(&(reason, residual), stop)?;
            let is_best = best.as_ref().is_none_or(|(_, best)| residual.norm_2 < best.norm_2 || best.norm_2.is_nan());
            if let Some(memory) = memory.take_if(|_| to.is_none() && self.failures.len() == failed) {
                let has_left = self.remembered.is_some() && !statistics.switches.is_empty();
                let multigrid = patience::of(&self.whole.setup, self.ranks(), self.whole.is_on_lattice())
                    .filter(|_| self.null_space.is_none());
                memory.keep(met, has_left.then_some(first), multigrid);
            }
            match (to, best.take()) {
                (Some(to), former) => {
                    best = if is_best { Some((copied(x), residual)) } else { former };
                    self.switch(to, reason, statistics)?;
                    let compiling = statistics.compile - compiled;
                    attempt = Attempt::begun(to, ended.elapsed().saturating_sub(compiling), statistics);
                    if to.method.minimises() {
                        // along a null space x has only grown, so that its residual is one of rounding
                        x.fill(0.0);
                        self.singular = Some(reason);
                    }
                }
                (None, former) => {
                    let residual = self.measured(b, x, residual, statistics)?;
                    let met = rounds::met(stop, &residual).filter(|_| reason == Reason::Slow);
                    if let Some(met) = met {
                        return Ok((met, residual));
                    }
                    let Some((former, of_former)) = former.filter(|_| !is_best) else { return Ok((reason, residual)) };
                    let of_former = self.measured(b, &former, of_former, statistics)?;
                    if residual.norm_2 <= of_former.norm_2 {
                        return Ok((reason, residual));
                    }
                    copy(&former, x);
                    statistics.early = None;
                    return Ok((reason, of_former));
                }
            }
            if stop.max_iters.is_none() {
                // each has as many iterations as it would have alone
                limits.max_iters = Some(statistics.iterations + Stop::default_max_iters(self.whole.order_of_all()));
            }
        }
    }

    /// The residual of x, if that is only [told](Residual::told) so far.
    fn measured(&self, b: &[f64], x: &[f64], told: Residual, statistics: &mut Statistics) -> Result<Residual> {
        if !told.is_told() {
            return Ok(told);
        }
        let verifying = stage("verify");
        let residual = self.whole.residual(b, x)?;
        statistics.verify += verifying.end();
        Ok(residual)
    }

    /// What the ranks follow.
    fn candidate(&self) -> Candidate {
        Candidate { method: self.method(), precond: self.precond() }
    }

    /// Iterations after which it is looked whether something else had better go on, if anything may.
    fn patience(&self) -> Result<Option<u64>> {
        let remembered = || self.remembered.as_ref()?.others.first().map(|took| took.iterations);
        Ok(match self.chain.may_be_slow() {
            [true, _] if self.null_space.is_none() && self.whole.may_have_levels() => {
                self.whole.slowest(patience::of(&self.whole.setup, self.ranks(), self.whole.is_on_lattice()))?
            }
            [_, true] if self.precond() == Precond::Amg => Some(patience::OF_TRIAL),
            // for something of which it is known what it takes
            [_, true] => remembered(),
            _ => None,
        })
    }

    /// What is said of an answer, where factors may have shown before that the matrix is singular: the least residual is no solution then.
    fn told(&self, (reason, residual): Answer) -> Answer {
        let told = match (reason, self.singular) {
            (Reason::LeastSquares, Some(singular)) => singular,
            (Reason::Stagnation, _) if self.is_rounding(&reason, &residual) => Reason::Rounding,
            (reason, _) => reason,
        };
        (told, residual)
    }

    /// Whether a failure leaves a residual of rounding, so that no method finds a better x; not if x has only grown, as the matrix is
    /// singular.
    fn is_rounding(&self, reason: &Reason, residual: &Residual) -> bool {
        !reason.converged() && is_rounding(residual) && (self.method().minimises() || !self.is_structurally_singular())
    }

    /// Whether the matrix is singular whatever the values of its entries.
    fn is_structurally_singular(&self) -> bool {
        *self.is_structurally_singular.get_or_init(|| Shortage::of(&self.whole.a).is_some())
    }

    /// What goes on after this, if anything does.
    fn next_method(&mut self, (reason, residual): &Answer, stop: &Stop) -> Result<Option<Candidate>> {
        let goes_on = matches!(reason, Reason::IndefiniteOperator(_) | Reason::Slow); // the method was at it still
        if !goes_on && self.is_rounding(reason, residual) {
            return Ok(None);
        }
        let mut to = self.chain.after(self.method(), reason, stop.max_iters.is_some());
        while let Some(candidate) = to
            && !self.is_possible(candidate, stop)?
        {
            to = self.chain.next();
        }
        Ok(to)
    }

    /// Whether there is memory and time for factors, or a transversal, which is looked for here. Where one general method comes to nothing
    /// as the matrix is singular by its pattern, the next does not fare better.
    fn is_possible(&mut self, Candidate { method, precond }: Candidate, stop: &Stop) -> Result<bool> {
        if method.factorises() {
            return Ok(self.factorised()?.is_possible(stop));
        }
        if !method.minimises() && !self.whole.is_symmetric && self.is_structurally_singular() {
            return Ok(false);
        }
        if precond == Precond::Transversal && self.whole.equilibration.is_none() {
            let setup = Setup { precond, ..self.whole.setup.clone() };
            let (Some(found), _) = equilibration(&self.whole.a, &setup)? else { return Ok(false) };
            self.whole.equilibrate(found);
        }
        Ok(true)
    }

    /// The factorisation of the matrix, which is analysed the first time.
    fn factorised(&mut self) -> Result<&mut Factorised> {
        let new = match self.factorised.take() {
            Some(known) => known,
            None => {
                let is_band = self.method() == Method::Tridiagonal;
                let usual = Kind::of(self.stats.asymmetry.is_none(), self.obstacle.is_none());
                let kind = if is_band { Kind::Band } else { usual };
                Factorised::analysed(&self.whole.a, kind)?
            }
        };
        Ok(self.factorised.insert(new))
    }

    /// The factorisation of the matrix as a dense one.
    fn dense(&mut self) -> &mut Dense {
        let new = || {
            let is_of = (self.stats.asymmetry.is_none(), self.obstacle.is_none());
            Dense::new(is_of, &self.asked.devices, self.asked.precision)
        };
        self.dense.get_or_insert_with(new)
    }

    /// Solves by factors of the matrix.
    fn by_factors(
        &mut self,
        b: &[f64],
        x: &mut [f64],
        (stop, control, started): (&Stop, Control<'_>, Instant),
        statistics: &mut Statistics,
    ) -> Result<Answer> {
        let (a, ranks, null_space) = (Arc::clone(&self.whole.a), self.ranks().len(), self.null_space.clone());
        let reach = Reach::of(null_space.as_ref(), b, x, stop);
        let (checked_b, checked_stop) = reach.checked();
        let limits = (checked_stop, control, started);
        let of_solve = (statistics, ranks);
        let (reason, mut residual) = match self.method() {
            Method::Dense => self.dense().solve(&a, checked_b, x, limits, of_solve)?,
            _ => self.factorised()?.solve(&a, checked_b, x, limits, of_solve)?,
        };
        if null_space.is_some() {
            reach.settle(x);
            residual = verify::residual(&a, checked_b, x);
        }
        Ok(reach.answer((reason, residual), |b| verify::residual(&a, b, x)))
    }

    /// Lets the ranks go on by another method, as the present one has ended: from now on, for later right-hand sides, too.
    fn switch(&mut self, to: Candidate, why: Reason, statistics: &mut Statistics) -> Result<()> {
        let (start, former) = (Instant::now(), self.candidate());
        let from = former.method;
        log::info!("{from} has ended ({why}); {to} goes on");
        self.whole.setup.method = to.method;
        if to.method.factorises() {
            statistics.switched(from, to, why, (start.elapsed(), Default::default()));
            return Ok(());
        }
        self.whole.setup.precond = to.precond;
        if !self.asked.has_given {
            (self.whole.given, self.hierarchy) = (None, None); // of another preconditioner
        }
        let mut left_out = std::mem::take(&mut self.ranks.left_out);
        let placement = self.ranks.placement.clone();
        let rows = if to.method.minimises() { self.whole.minimise()? } else { self.whole.rows()? };
        if to.precond == Precond::Amg {
            self.whole.given = Some(Arc::new(self.whole.levels(&rows)?));
        }
        let (mut placement, others) = for_multigrid(&self.whole, &rows, placement);
        let is_next = to == Candidate { method: Method::Cg, precond: Precond::Amg } && from == Method::Cg;
        let keeps_rows = is_next && others.is_empty() && former.precond != Precond::Amg;
        let kept = match keeps_rows.then(|| self.ranks.go_on_with_multigrid(&self.whole)).transpose() {
            Ok(kept) => kept.flatten(),
            Err(failed) => {
                let failures = &mut self.failures;
                placement = recovery::without_failed(&self.whole, &rows, &placement, failed, None, failures)?;
                None
            }
        };
        left_out.extend(others);
        let spent = match kept {
            Some(spent) => spent,
            None => {
                self.ranks.close(); // what is on the devices now would be in the way
                self.ranks = recovery::open(&self.whole, rows, placement, &mut self.failures, None)?;
                [self.ranks.times.compile, self.ranks.times.precond]
            }
        };
        self.ranks.left_out = left_out;
        statistics.keep_ranks(self.ranks.placement.devices.len());
        if to.precond == Precond::Amg {
            self.hierarchy = self.whole.given.as_ref().map_or(Ok(None), |given| given.prepare())?;
        }
        statistics.switched(from, to, why, (start.elapsed(), spent));
        Ok(())
    }
}
