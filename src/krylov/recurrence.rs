//! α and β of conjugate gradients from γ = r·r and δ = r·A r alone, without a product with the direction:
//!
//! ```text
//! β = γ / γ',   p·A p = δ − β γ / α',   α = γ / p·A p          γ', α' of the step before; β = 0 in the first one
//! ```
//!
//! The second is p·A p for p = r + β p', since r·A p' = −γ / α' as r is orthogonal to the former residual (Chronopoulos and
//! Gear 1989, doi 10.1016/0377-0427(89)90045-9).

use super::workspace::Workspace;
use crate::error::Result;
use crate::operator::LinearOperator;
use crate::ops::{Ops, Scalars};

/// γ and α of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Former {
    pub(crate) gamma: f64,
    pub(crate) alpha: f64,
}

/// The part of r·r that a direction may have of r in the former one, to which it should be orthogonal.
const ASTRAY: f64 = 0.1;

impl Former {
    /// That of a direction of which nothing else is known: to be formed anew.
    pub(crate) const UNKNOWN: Self = Self { gamma: f64::NAN, alpha: f64::NAN };

    /// Of γ of the next step, r·s, p·s and r·p; none where p is worth nothing for r.
    fn of_products(gamma: f64, rs: f64, ps: f64, rp: f64) -> Option<Self> {
        let is_of_use = rs < 0.0 && ps > 0.0 && (rs / ps * rp).abs() <= ASTRAY * gamma;
        is_of_use.then(|| Self { gamma: -gamma / rs * ps, alpha: -gamma / rs })
    }
}

/// What the next step is made with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Next {
    pub(crate) scalars: Scalars,
    /// p·A p.
    pub(crate) curvature: f64,
}

impl Next {
    /// The step that follows a former one, or the first.
    pub(crate) fn of(gamma: f64, delta: f64, former: Option<Former>) -> Self {
        let beta = former.map_or(0.0, |former| gamma / former.gamma);
        let curvature = delta - former.map_or(0.0, |former| beta * gamma / former.alpha);
        Self { scalars: Scalars { alpha: gamma / curvature, beta }, curvature }
    }

    /// The same as the former one of a step to come.
    pub(crate) fn former(self, gamma: f64) -> Former {
        Former { gamma, alpha: self.scalars.alpha }
    }
}

/// Forms the former step anew from r, p and s = A p, of which some have been replaced: so that the next direction is conjugate
/// to p, and its p·A p as it is, though r is no longer orthogonal to what it was. γ' and α' follow from r·s = −γ / α' and
/// p·s = γ' / α'. Uses up `w.sums`.
pub(crate) fn relate<O: Ops>(ops: &O, gamma: f64, w: &mut Workspace<O>) -> Result<()> {
    let Workspace { r, p, s: Some(s), sums, former, .. } = w else {
        unreachable!("a workspace of a method with a former step has s");
    };
    ops.dot_product(r, s, sums, 0)?;
    ops.dot_product(p, s, sums, 1)?;
    ops.dot_product(r, p, sums, 2)?;
    ops.all_sum(&mut [sums])?;
    let [rs, ps, rp, _] = ops.settle(sums)?;
    *former = Former::of_products(gamma, rs, ps, rp);
    Ok(())
}

/// p·A p over all ranks for the direction p = r + β p, which is formed: where a difference may have lost its sign to rounding.
/// Then `w.q` is A p, too.
pub(crate) fn curvature<O: Ops>(ops: &O, a: &impl LinearOperator<O>, beta: f64, w: &mut Workspace<O>) -> Result<f64> {
    if beta == 0.0 {
        ops.copy(&w.r, &mut w.p)?;
    } else {
        ops.next_direction(beta, &w.r, &mut w.p)?;
    }
    a.apply(ops, &mut w.p, &mut w.q)?;
    ops.dot_product(&w.p, &w.q, &mut w.dot, 0)?;
    ops.all_sum(&mut [&mut w.dot])?;
    Ok(ops.settle(&mut w.dot)?[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On [[2, 1], [1, 3]] with b = (1, 0): the second direction ends at the solution.
    #[test]
    fn by_hand() {
        // r = (1, 0), A r = (2, 1)
        let first = Next::of(1.0, 2.0, None);
        assert_eq!(first, Next { scalars: Scalars { alpha: 0.5, beta: 0.0 }, curvature: 2.0 });
        // r = (0, −1/2), A r = (−1/2, −3/2); p = r + (1, 0) / 4, A p = (0, −5/4)
        let second = Next::of(0.25, 0.75, Some(first.former(1.0)));
        // r·s = −1/2, p·s = 2
        assert_eq!(Former::of_products(0.25, -0.5, 2.0, 0.0), Some(first.former(1.0)));
        assert_eq!(Former::of_products(0.25, 0.5, 2.0, 0.0), None);
        assert_eq!(Former::of_products(0.25, -0.5, 2.0, 0.2), None);
        assert_eq!(second, Next { scalars: Scalars { alpha: 0.4, beta: 0.25 }, curvature: 0.625 });
    }
}
