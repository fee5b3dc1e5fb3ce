//! Which methods a solve goes through: the one place where that is decided.

use std::collections::VecDeque;

use super::statistics::Answer;
use crate::error::{Error, Result};
use crate::krylov::{Indefinite, MOST_RESTART, Method, Reason};
use crate::real::Precision;
use crate::runtime::Setup;
use crate::verify::Residual;

/// A backward error below this is one of rounding: no other method finds a better x in double precision.
const ROUNDING: f64 = 1e-15;

/// The methods that [`Method::Auto`] goes through, in order: of a symmetric matrix or any other, which may be positive definite or is
/// known not to be.
#[must_use]
pub fn candidates(precision: Precision, is_symmetric: bool, may_be_definite: bool) -> Vec<Method> {
    let methods: &[Method] = match (is_symmetric, may_be_definite) {
        (true, true) => &[Method::Cg, Method::Minres],
        (true, false) => &[Method::Minres],
        (false, _) if precision == Precision::Mixed => &[Method::Bicgstab, Method::Bicgstab2],
        // idr solves most of what nothing is known of, bicgstab2 what has eigenvalues far from the real axis
        (false, _) => &[Method::Idr, Method::Bicgstab2],
    };
    let mut methods: Vec<Method> = methods.iter().copied().filter(|method| method.allows(precision)).collect();
    if precision != Precision::F32 {
        methods.push(Method::Direct); // it knows of no single precision
    }
    methods
}

/// Whether a residual is one of rounding; a NaN is not.
pub(super) fn is_rounding(residual: &Residual) -> bool {
    residual.backward_error <= ROUNDING
}

/// What is known of a matrix before the first iteration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    /// Whether it is symmetric, or is to be taken for it.
    pub(super) is_symmetric: bool,
    /// What shows that it is not positive definite.
    pub(super) obstacle: Option<Indefinite>,
}

/// The methods of a solve: the one that is asked for; or, with [`Method::Auto`], one after the other until the test is met, each
/// from the x of the one before.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Those that are yet to come.
    left: VecDeque<Method>,
    why: Option<Indefinite>,
}

impl Chain {
    /// The first method for a matrix, and those that may come after it.
    ///
    /// # Errors
    /// [`Error::Usage`] for a method that does not work in the precision, or for cycles of no steps or too many.
    pub(super) fn of(setup: &Setup, known: Known) -> Result<(Method, Self)> {
        if !(1..=MOST_RESTART).contains(&setup.restart) {
            return Err(Error::Usage(format!(
                "restart = {} is not possible: a cycle has from 1 to {MOST_RESTART} steps",
                setup.restart
            )));
        }
        if setup.method != Method::Auto {
            let method = setup.method;
            return if method.allows(setup.precision) {
                Ok((method, Self { left: VecDeque::new(), why: None }))
            } else {
                Err(Error::Usage(format!(
                    "{method} does not work with precision = {}: its iterations stagnate where residuals are replaced; \
                     precision = f64 is as exact",
                    setup.precision
                )))
            };
        }
        let mut left: VecDeque<Method> =
            candidates(setup.precision, known.is_symmetric, known.obstacle.is_none()).into();
        let first = left.pop_front().unwrap_or(Method::Cg);
        let why = known.obstacle.filter(|_| !first.needs_definite());
        Ok((first, Self { left, why }))
    }

    /// The method that goes on where `method` has ended so, if one does; `limited` tells that the caller has set its own limit on
    /// iterations.
    pub(super) fn after(&mut self, method: Method, (reason, residual): &Answer, limited: bool) -> Option<Method> {
        let leaves_off = match reason {
            Reason::IndefiniteOperator(Indefinite::Direction { .. }) => return self.left.pop_front(),
            Reason::Stagnation | Reason::Breakdown | Reason::Divergence | Reason::NonFinite(_) => true,
            Reason::MaxIters => !limited,
            _ => false,
        };
        if !leaves_off || is_rounding(residual) {
            return None;
        }
        if method.needs_definite() {
            self.left.retain(|method| *method == Method::Direct); // what it came to is the condition of the matrix
        }
        self.left.pop_front()
    }

    /// Whether this is the last resort.
    pub(super) fn ends_with(&self, method: Method) -> bool {
        self.left.back() == Some(&method)
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
    use crate::verify;

    fn chain(setup: &Setup, is_symmetric: bool, obstacle: Option<Indefinite>) -> (Method, Chain) {
        Chain::of(setup, Known { is_symmetric, obstacle }).unwrap()
    }

    fn answer(reason: Reason, backward_error: f64) -> Answer {
        let a = crate::matrix::gallery::poisson2d([2, 2]).unwrap();
        let mut residual = verify::residual(&a, &[1.0; 4], &[0.0; 4]);
        residual.backward_error = backward_error;
        (reason, residual)
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
        assert_eq!(of(&mixed, false, uneven), (Method::Bicgstab, uneven));
        let named = Setup { method: Method::Minres, ..Setup::default() };
        assert_eq!(of(&named, false, uneven), (Method::Minres, None), "nobody chose");
        let impossible = Setup { method: Method::Idr, ..mixed };
        let known = Known { is_symmetric: true, obstacle: None };
        assert!(
            Chain::of(&impossible, known).unwrap_err().to_string().contains("does not work with precision = mixed")
        );
    }

    #[test]
    fn who_goes_on() {
        let direction = Reason::IndefiniteOperator(Indefinite::Direction { iteration: 3, curvature: -1.0 });
        let start = || chain(&Setup::default(), true, None).1;
        assert_eq!(start().after(Method::Cg, &answer(direction, 1.0), false), Some(Method::Minres));
        assert_eq!(start().after(Method::Cg, &answer(Reason::Stagnation, 1.0), false), Some(Method::Direct));
        assert_eq!(start().after(Method::Cg, &answer(Reason::MaxIters, 1.0), true), None);
        let named = Setup { method: Method::Cg, ..Setup::default() };
        assert_eq!(chain(&named, true, None).1.after(Method::Cg, &answer(direction, 1.0), false), None);
        let start = || Chain { left: [Method::Minres].into(), why: None };
        let after = |reason, error, limited| start().after(Method::Bicgstab, &answer(reason, error), limited);
        let next = Some(Method::Minres);
        assert_eq!([Reason::Breakdown, Reason::Stagnation, Reason::MaxIters].map(|r| after(r, 1.0, false)), [next; 3]);
        assert_eq!(after(Reason::Stagnation, f64::NAN, false), next);
        assert_eq!(after(Reason::Stagnation, 1e-16, false), None, "no better x exists");
        assert_eq!(after(Reason::MaxIters, 1.0, true), None);
        assert_eq!(after(Reason::Interrupted, 1.0, false), None);
    }
}
