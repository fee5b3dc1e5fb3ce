//! Which methods a solve goes through: the one place where that is decided.

use std::collections::VecDeque;
use std::fmt;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::krylov::{Indefinite, MOST_RESTART, Method, Reason, Singularity};
use crate::matrix::Csr;
use crate::matrix::equivalent::is_real_form;
use crate::matrix::stats::Diagonal;
use crate::precond::Precond;
use crate::real::Precision;
use crate::runtime::Setup;
use crate::verify::Residual;

/// A backward error below this is one of rounding: no other method finds a better x in double precision.
const ROUNDING: f64 = 1e-15;

/// A method with a preconditioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The method.
    pub method: Method,
    /// Its preconditioner.
    pub precond: Precond,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.precond {
            Precond::Transversal => write!(f, "{} by a transversal", self.method),
            Precond::None | Precond::Jacobi => self.method.fmt(f),
            precond => write!(f, "{} by {precond}", self.method),
        }
    }
}

/// What [`Method::Auto`] goes through, in order, where `precond` is asked for: of a symmetric matrix or any other, which may be positive
/// definite, its diagonal being positive, or is known not to be. Where [`Precond::Jacobi`] comes to nothing for a matrix that is not symmetric,
/// [`Precond::Transversal`] does in many cases, and the other way round: the one is good for saddle point problems, the other for
/// diagonals that tell nothing. Where factors show that the matrix is singular, [`Method::Lsmr`] goes on: it finds a solution if there is one.
/// Where a method [takes](Method::takes) no such preconditioner, it has [`Precond::Jacobi`].
#[must_use]
pub fn candidates(precision: Precision, precond: Precond, is_symmetric: bool, may_be_definite: bool) -> Vec<Candidate> {
    let methods: &[Method] = match (is_symmetric, may_be_definite) {
        (true, true) => &[Method::Cg, Method::Minres],
        (true, false) => &[Method::Minres],
        // idr solves most of what nothing is known of, bicgstab2 what has eigenvalues far from the real axis
        (false, true) if precond == Precond::Amg => &[Method::Gmres, Method::Idr, Method::Bicgstab2],
        (false, _) => &[Method::Idr, Method::Bicgstab2],
    };
    let is_for_all = precond != Precond::Amg && !precond.multiplies();
    let with_precond = |&method: &Method| Candidate {
        method,
        precond: if is_for_all || method.takes(precond) { precond } else { Precond::Jacobi },
    };
    let mut all: Vec<Candidate> = methods.iter().map(with_precond).collect();
    if !is_symmetric && all[0].precond == Precond::Jacobi {
        all.push(Candidate { method: methods[0], precond: Precond::Transversal });
    }
    if precision != Precision::F32 {
        all.push(with_precond(&Method::Direct)); // it knows of no single precision
    }
    all
}

/// The same with a preconditioner of the caller's own, in place of those that can't have one.
fn for_given(all: Vec<Candidate>) -> Vec<Candidate> {
    let is_kept = |candidate: &&Candidate| matches!(candidate.method, Method::Cg | Method::Direct);
    let mut kept: Vec<Candidate> = all.iter().filter(is_kept).copied().collect();
    let place = kept.iter().position(|candidate| candidate.method == Method::Direct).unwrap_or(kept.len());
    kept.insert(place, Candidate { method: Method::Gmres, precond: Precond::None });
    kept
}

/// Whether a solve ends for this reason, whatever might come next.
fn limited_by(reason: &Reason, limited: bool) -> bool {
    match reason {
        Reason::MaxIters => limited,
        Reason::Converged(_) | Reason::LeastSquares | Reason::TimeLimit | Reason::Interrupted | Reason::Rounding => {
            true
        }
        _ => false,
    }
}

/// Whether a residual is one of rounding; a NaN is not.
pub(super) fn is_rounding(residual: &Residual) -> bool {
    residual.backward_error <= ROUNDING
}

/// Checks that the method can have the preconditioner.
pub(super) fn check_precond(setup: &Setup) -> Result<()> {
    if setup.method.takes(setup.precond) {
        return Ok(());
    }
    let takers: Vec<&str> =
        Method::FORCED.iter().filter(|method| method.takes(setup.precond)).map(|method| method.name()).collect();
    let methods = match takers.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => takers.concat(),
    };
    Err(Error::Usage(format!("{} can't have precond = {}, which is for {methods}", setup.method, setup.precond)))
}

/// What is known of a matrix before the first iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Whether it is symmetric, or is to be taken for it.
    pub(super) is_symmetric: bool,
    /// What shows that it is not positive definite.
    pub(super) obstacle: Option<Indefinite>,
    /// Whether multigrid can have levels of it.
    pub(super) may_have_levels: bool,
}

impl Known {
    /// Of a square matrix with such a diagonal.
    pub(super) fn new(a: &Csr, is_symmetric: bool, obstacle: Option<Indefinite>, diagonal: &Diagonal) -> Self {
        let is_positive = diagonal.missing_or_zero.is_none() && diagonal.negative.is_none();
        let may_have_levels = if is_symmetric { obstacle.is_none() } else { is_positive && !is_real_form(a) };
        Self { is_symmetric, obstacle, may_have_levels }
    }
}

/// The methods of a solve: the one that is asked for; or, with [`Method::Auto`], one after the other until the test is met, each
/// from the x of the one before.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    /// Those that are yet to come.
    left: VecDeque<Candidate>,
    /// What goes on where factors show that the matrix is singular,
    if_singular: Option<Candidate>,
    /// and where the first is slow; and whether it does now.
    if_slow: Option<Candidate>,
    is_trial: bool,
    /// With what preconditioner the first goes on if that is slow, too: the diagonal, if nothing is said.
    if_trial_fails: Option<Precond>,
    /// What would have come first, if something else was begun with.
    usual: Option<Method>,
    why: Option<Indefinite>,
}

impl Chain {
    /// The first method for a matrix, and those that may come after it.
    ///
    /// # Errors
    /// [`Error::Usage`] for cycles of no steps or too many.
    pub(super) fn of(setup: &Setup, known: Known) -> Result<(Method, Self)> {
        if !(1..=MOST_RESTART).contains(&setup.restart) {
            return Err(Error::Usage(format!(
                "restart = {} is not possible: a cycle has from 1 to {MOST_RESTART} steps",
                setup.restart
            )));
        }
        if setup.method != Method::Auto {
            return Ok((setup.method, Self::default()));
        }
        let all = candidates(setup.precision, setup.precond, known.is_symmetric, known.may_have_levels);
        let mut left: VecDeque<Candidate> = if setup.has_given { for_given(all) } else { all }.into();
        let first = left.pop_front().map_or(Method::Cg, |first| first.method);
        let why = known.obstacle.filter(|_| !first.needs_definite());
        let precond = if setup.precond == Precond::None { Precond::None } else { Precond::Jacobi };
        let if_singular = Some(Candidate { method: Method::Lsmr, precond });
        let is_usual = setup.precond == Precond::Jacobi && setup.may_change && !setup.has_given;
        let by_amg = |method| Candidate { method, precond: Precond::Amg };
        let if_slow = match first {
            Method::Cg => Some(by_amg(Method::Cg)),
            Method::Idr if known.may_have_levels => Some(by_amg(Method::Gmres)),
            _ => None,
        };
        let if_slow = if_slow.filter(|_| is_usual);
        Ok((first, Self { left, if_singular, if_slow, is_trial: false, if_trial_fails: None, usual: None, why }))
    }

    /// Those that several processes can have: no factors, and nothing that needs all of the matrix in one place.
    pub(super) fn among_processes(mut self) -> Self {
        let is_possible = |one: &Candidate| !one.method.factorises() && one.precond != Precond::Transversal;
        self.left.retain(is_possible);
        // levels that they share are of symmetric matrices
        let if_slow = self.if_slow.filter(|one| one.method.needs_symmetric());
        Self { if_singular: None, if_slow, ..self }
    }

    /// What goes on where `method` has ended for this reason, if anything does; `limited` tells that the caller has set its own limit on
    /// iterations.
    pub(super) fn after(&mut self, method: Method, reason: &Reason, limited: bool) -> Option<Candidate> {
        if *reason == Reason::Slow && !self.is_trial {
            self.is_trial = self.if_slow.is_some();
            return self.if_slow.take();
        }
        if self.is_trial && !limited_by(reason, limited) {
            // another goes on, whatever this came to
            self.is_trial = false;
            let precond = self.if_trial_fails.unwrap_or(Precond::Jacobi);
            return Some(Candidate { method: self.usual.unwrap_or(method), precond });
        }
        let leaves_off = match reason {
            Reason::IndefiniteOperator(Indefinite::Direction { .. }) => {
                self.if_slow = None; // that is for definite matrices
                return self.next();
            }
            Reason::Singular(Singularity::Inconsistent { .. }) => false, // which is known for sure
            Reason::Singular(_) if method.factorises() => return self.if_singular.take(),
            Reason::Stagnation | Reason::Breakdown | Reason::Divergence | Reason::NonFinite(_) => true,
            Reason::MaxIters => !limited,
            _ => false,
        };
        if !leaves_off {
            return None;
        }
        let is_of_given = *reason == Reason::Breakdown; // which may not be definite, though A is
        if method.needs_definite() && !is_of_given {
            self.left.retain(|candidate| candidate.method == Method::Direct); // what it came to is the condition of the matrix
        }
        self.next()
    }

    /// Whether the method may be left because it is slow: the first for what takes less, and that if it does not.
    pub(super) fn may_be_slow(&self) -> [bool; 2] {
        [self.if_slow.is_some(), self.is_trial]
    }

    /// With what preconditioner the first method goes on where what was to take less takes longer, if nothing was said yet.
    pub(super) fn set_if_trial_fails(&mut self, precond: Precond) {
        self.if_trial_fails.get_or_insert(precond);
    }

    /// Begins with `first`, on trial: if it fails, all comes as usual, from the usual first method on. This one is not left for what is known to
    /// take `longer`.
    pub(super) fn beginning_with(mut self, first: Candidate, usual: Method, longer: &[Candidate]) -> Self {
        if first == (Candidate { method: usual, precond: Precond::Jacobi }) {
            self.if_slow.take_if(|other| longer.contains(other));
            return self;
        }
        self.left.retain(|candidate| *candidate != first);
        let if_trial_fails = (first.precond != Precond::Amg).then_some(Precond::Jacobi);
        Self { if_slow: None, is_trial: true, if_trial_fails, usual: Some(usual), ..self }
    }

    /// What comes next, where the one before is impossible.
    pub(super) fn next(&mut self) -> Option<Candidate> {
        self.left.pop_front()
    }

    /// Whether this is the last resort.
    pub(super) fn ends_with(&self, method: Method) -> bool {
        self.left.back().is_some_and(|candidate| candidate.method == method)
    }

    /// Begins with `method` in place of all others.
    pub(super) fn only(self, method: Method) -> (Method, Self) {
        (method, Self { left: VecDeque::new(), ..self })
    }

    /// Why the first method is not one for positive definite matrices, if that was decided here.
    pub(super) fn why(&self) -> Option<Indefinite> {
        self.why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(setup: &Setup, is_symmetric: bool, obstacle: Option<Indefinite>) -> (Method, Chain) {
        Chain::of(setup, Known { is_symmetric, obstacle, may_have_levels: obstacle.is_none() }).unwrap()
    }

    #[test]
    fn the_first_method() {
        let zero = Some(Indefinite::Diagonal { row: 1, value: 0.0 });
        let uneven = Some(Indefinite::Asymmetry { row: 1, col: 2, upper: 1.0, lower: 2.0 });
        let auto = Setup::default();
        let of = |setup: &Setup, is_symmetric, obstacle| {
            let (first, chain) = chain(setup, is_symmetric, obstacle);
            (first, chain.why())
        };
        assert_eq!(of(&auto, true, None), (Method::Cg, None));
        assert_eq!(of(&auto, true, zero), (Method::Minres, zero));
        assert_eq!(of(&auto, false, uneven), (Method::Idr, uneven));
        let mixed = Setup { precision: Precision::Mixed, ..Setup::default() };
        assert_eq!(of(&mixed, true, zero), (Method::Minres, zero));
        assert_eq!(of(&mixed, false, uneven), (Method::Idr, uneven));
        let named = Setup { method: Method::Minres, ..Setup::default() };
        assert_eq!(of(&named, false, uneven), (Method::Minres, None), "nobody chose");
    }

    #[test]
    fn all_candidates() {
        let of = |precision, precond, is_symmetric| {
            let all = candidates(precision, precond, is_symmetric, true);
            all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        use Precision::{F32, F64, Mixed};
        assert_eq!(of(F64, Precond::Jacobi, true), "cg, minres, direct");
        assert_eq!(of(F64, Precond::Jacobi, false), "idr, bicgstab2, idr by a transversal, direct");
        assert_eq!(of(F64, Precond::None, false), "idr, bicgstab2, direct");
        let by_transversals = "idr by a transversal, bicgstab2 by a transversal";
        assert_eq!(of(F32, Precond::Transversal, false), by_transversals);
        assert_eq!(of(Mixed, Precond::Jacobi, false), "idr, bicgstab2, idr by a transversal, direct");
    }

    #[test]
    fn who_goes_on() {
        let direction = Reason::IndefiniteOperator(Indefinite::Direction { iteration: 3, curvature: -1.0 });
        let start = || chain(&Setup::default(), true, None).1;
        let jacobi = |method| Some(Candidate { method, precond: Precond::Jacobi });
        assert_eq!(start().after(Method::Cg, &direction, false), jacobi(Method::Minres));
        assert_eq!(start().after(Method::Cg, &Reason::Stagnation, false), jacobi(Method::Direct));
        assert_eq!(start().after(Method::Cg, &Reason::MaxIters, true), None);
        let named = Setup { method: Method::Cg, ..Setup::default() };
        assert_eq!(chain(&named, true, None).1.after(Method::Cg, &direction, false), None);
        let singular = Reason::Singular(Singularity::Numerical { row: 1 });
        assert_eq!(start().after(Method::Direct, &singular, false), jacobi(Method::Lsmr));
        assert_eq!(start().after(Method::Cg, &singular, false), None);
        let start = || Chain { left: jacobi(Method::Minres).into_iter().collect(), ..Chain::default() };
        let after = |reason, limited| start().after(Method::Bicgstab, &reason, limited);
        let next = jacobi(Method::Minres);
        assert_eq!([Reason::Breakdown, Reason::Stagnation, Reason::MaxIters].map(|r| after(r, false)), [next; 3]);
        assert_eq!(after(Reason::Rounding, false), None, "no better x exists");
        assert_eq!(after(Reason::MaxIters, true), None);
        assert_eq!(after(Reason::Interrupted, false), None);
    }

    #[test]
    fn what_is_remembered_comes_first() {
        let of = |method, precond| Candidate { method, precond };
        let begun = |first| chain(&Setup::default(), true, None).1.beginning_with(first, Method::Cg, &[]);
        let by_amg = begun(of(Method::Cg, Precond::Amg));
        assert_eq!(by_amg.may_be_slow(), [false, true]);
        let after = |mut chain: Chain, method, reason| (chain.after(method, &reason, false), chain);
        for reason in [Reason::Slow, Reason::Breakdown] {
            let (next, chain) = after(by_amg.clone(), Method::Cg, reason);
            assert_eq!(next, Some(of(Method::Cg, Precond::Jacobi)), "{reason}");
            assert_eq!(after(chain, Method::Cg, Reason::Stagnation).0.unwrap().method, Method::Direct);
        }
        assert_eq!(after(by_amg, Method::Cg, Reason::TimeLimit).0, None);
        // all others come in their order
        let mut by_minres = begun(of(Method::Minres, Precond::Jacobi));
        by_minres.set_if_trial_fails(Precond::Fsai);
        let (next, chain) = after(by_minres, Method::Minres, Reason::Stagnation);
        assert_eq!(next, Some(of(Method::Cg, Precond::Jacobi)));
        let direction = Reason::IndefiniteOperator(Indefinite::Direction { iteration: 3, curvature: -1.0 });
        assert_eq!(after(chain, Method::Cg, direction).0.unwrap().method, Method::Direct);
        // the usual one is no trial
        let usual = of(Method::Cg, Precond::Jacobi);
        assert_eq!(begun(usual).may_be_slow(), [true, false]);
        let knows_better = begun(usual).beginning_with(usual, Method::Cg, &[of(Method::Cg, Precond::Amg)]);
        assert_eq!(knows_better.may_be_slow(), [false; 2]);
    }

    #[test]
    fn what_is_slow_is_left_once() {
        let of = |precond| Some(Candidate { method: Method::Cg, precond });
        let mut auto = chain(&Setup::default(), true, None).1;
        assert_eq!(auto.may_be_slow(), [true, false]);
        assert_eq!(auto.after(Method::Cg, &Reason::Slow, false), of(Precond::Amg));
        assert_eq!(auto.may_be_slow(), [false, true]);
        let ends = [Reason::Slow, Reason::Stagnation, Reason::Breakdown, Reason::NonFinite("r"), Reason::MaxIters];
        for reason in ends {
            let mut trial = auto.clone();
            assert_eq!(trial.clone().after(Method::Cg, &reason, false), of(Precond::Jacobi), "{reason}");
            trial.set_if_trial_fails(Precond::Fsai);
            assert_eq!(trial.after(Method::Cg, &reason, false), of(Precond::Fsai), "{reason}");
            assert_eq!(trial.may_be_slow(), [false; 2]);
            assert_eq!(trial.after(Method::Cg, &Reason::Stagnation, false).unwrap().method, Method::Direct);
        }
        for reason in [Reason::TimeLimit, Reason::Interrupted, Reason::Rounding] {
            assert_eq!(auto.clone().after(Method::Cg, &reason, false), None, "{reason}");
        }
        assert_eq!(auto.after(Method::Cg, &Reason::MaxIters, true), None);
        // what is not definite has no multigrid
        let mut indefinite = chain(&Setup::default(), true, None).1;
        let direction = Reason::IndefiniteOperator(Indefinite::Direction { iteration: 3, curvature: -1.0 });
        assert_eq!(indefinite.after(Method::Cg, &direction, false).unwrap().method, Method::Minres);
        assert_eq!(indefinite.may_be_slow(), [false; 2]);
        // what was asked for stays
        for setup in [Setup::default().with_precond(Precond::Jacobi), Setup::default().with_method(Method::Cg)] {
            assert_eq!(chain(&setup, true, None).1.may_be_slow(), [false; 2]);
        }
        let zero = Some(Indefinite::Diagonal { row: 1, value: 0.0 });
        assert_eq!(chain(&Setup::default(), true, zero).1.may_be_slow(), [false; 2]);
    }
}
