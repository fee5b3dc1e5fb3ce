//! α and β of conjugate gradients from γ = r·r and δ = r·A r alone, without a product with the direction:
//!
//! ```text
//! β = γ / γ',   p·A p = δ − β γ / α',   α = γ / p·A p          γ', α' of the step before; β = 0 in the first one
//! ```
//!
//! The second is p·A p for p = r + β p', since r·A p' = −γ / α' as r is orthogonal to the residual before (Chronopoulos and
//! Gear 1989, doi 10.1016/0377-0427(89)90045-9). A difference may lose its sign to rounding: see [`curvature`].

use super::workspace::Workspace;
use crate::backend::Backend;
use crate::backend::LinearOperator;
use crate::backend::text::{Recorder, Scalar, Vector};
use crate::error::Result;

/// The part of r·r that a direction may have of r in the one before, to which it should be orthogonal.
const ASTRAY: f64 = 0.1;

/// What the next step needs of the one before.
pub(super) struct PreviousStep<'k> {
    /// 1 / γ',
    over_gamma: Scalar<'k>,
    /// and 1 / α': both are 0 where a direction begins.
    over_alpha: Scalar<'k>,
}

impl<'k> PreviousStep<'k> {
    /// The step that has led along p, with s = A p, to the residual r that a run begins with. r need not be orthogonal to what it
    /// was: γ' and α' follow from r·s = −γ / α' and p·s = γ' / α', so that the next direction is conjugate to p, and its p·A p as it
    /// is. None where p is worth nothing for r, as where it is 0.
    pub(super) fn of_direction(k: &'k Recorder, r: Vector<'k>, p: Vector<'k>, s: Vector<'k>) -> Self {
        let zero = k.number(0.0);
        let (gamma, rs, ps, rp) = (r.dot(r), r.dot(s), p.dot(s), r.dot(p));
        let astray = rs / ps * rp;
        let is_of_use = k.number(ASTRAY) * gamma - astray.larger(-astray);
        let if_of_use = |v: Scalar<'k>| is_of_use.choose(ps.choose((-rs).choose(v, zero), zero), zero);
        let [over_gamma, over_alpha] = [-rs / (gamma * ps), -rs / gamma].map(|first| k.carried(if_of_use(first)));
        Self { over_gamma, over_alpha }
    }

    /// α and β of the next step, of γ = r·r and δ = r·A r; goes on only if p·A p is positive.
    pub(super) fn next(&self, k: &'k Recorder, gamma: Scalar<'k>, delta: Scalar<'k>) -> [Scalar<'k>; 2] {
        let beta = gamma * self.over_gamma;
        let curvature = delta - beta * gamma * self.over_alpha;
        k.require_definite_difference(curvature);
        let alpha = gamma / curvature;
        k.next(self.over_gamma, 1.0 / gamma);
        k.next(self.over_alpha, 1.0 / alpha);
        [alpha, beta]
    }
}

/// p·A p over all ranks for the next direction p = r + β p, as it is: where a difference has come out as 0 or less. Then p is in
/// `w.p`, and A p in `w.q`.
pub(crate) fn curvature<O: Backend>(backend: &O, a: &impl LinearOperator<O>, w: &mut Workspace<O>) -> Result<f64> {
    a.apply(backend, &mut w.p, &mut w.q)?;
    let [ps, rs] = [backend.dot(&w.p, &w.q)?, backend.dot(&w.r, &w.q)?];
    backend.xpby(&w.r, if ps == 0.0 { 0.0 } else { -rs / ps }, &mut w.p)?;
    a.apply(backend, &mut w.p, &mut w.q)?;
    backend.dot(&w.p, &w.q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::text::Kind;

    /// On [[2, 1], [1, 3]] with b = (1, 0): the second direction ends at the solution.
    #[test]
    fn by_hand() {
        // r = (0, −1/2), p = (1, 0), s = A p = (2, 1): r·r, r·s, p·s, r·p; then δ = r·A r
        let of = |sums: [f64; 4], delta: f64| {
            let k = Recorder::new(Kind::PLAIN, None);
            let [p, s] = k.vectors(["p", "s"]);
            let previous = PreviousStep::of_direction(&k, k.r(), p, s);
            let node = |v: Scalar<'_>| v.real();
            let firsts = [previous.over_gamma, previous.over_alpha].map(node);
            let [gamma, delta_of] = [sums[0], delta].map(|value| k.number(value));
            let [alpha, beta] = previous.next(&k, gamma, delta_of).map(node);
            let all = k.finish();
            let first =
                |values: &[f64]| -> Vec<f64> { all.carried.iter().map(|carried| values[carried.first.0]).collect() };
            // r·r comes twice: the norm, and what the test looks at
            let carried = first(&all.scalars.values(&sums, &[f64::NAN; 2]));
            let values = all.scalars.values(&sums, &carried);
            assert_eq!(firsts.map(|node| values[node.0]).to_vec(), carried);
            [values[alpha.0], values[beta.0]]
        };
        assert_eq!(of([0.25, -0.5, 2.0, 0.0], 0.75), [0.4, 0.25]);
        // the steepest descent: α = γ / δ
        for useless in [[0.25, 0.5, 2.0, 0.0], [0.25, -0.5, 2.0, 0.2], [0.25, -0.5, -2.0, 0.0], [0.25, 0.0, 0.0, 0.0]] {
            assert_eq!(of(useless, 0.5), [0.5, 0.0], "{useless:?}");
        }
    }
}
