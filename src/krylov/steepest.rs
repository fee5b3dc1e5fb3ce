//! The step along the residual that methods of two products take beside another one.

use crate::backend::text::{Recorder, Scalar};

/// Cosines below this can't be told from 0: a method that divides by them has broken down.
pub(super) const TINY: f64 = 1e-14;

/// The least cosine of the angle between r and A r for which ω minimises the residual.
const STRAIGHT: f64 = 0.7;

/// ω of r − ω A r, from (A r)ᴴ r, ‖A r‖ and ‖r‖: what minimises its norm, unless A r is nearly orthogonal to r. That step is hardly one,
/// and what a method forms by it is lost to rounding; so ω is then what it would be at an angle of cosine 0.7 (Sleijpen and van der
/// Vorst 1995, doi 10.1007/BF02140769). Where they are orthogonal, the method breaks down; with A r = 0 there is no step.
pub(super) fn step<'k>(k: &'k Recorder, ar_r: Scalar<'k>, ar_norm: Scalar<'k>, r_norm: Scalar<'k>) -> Scalar<'k> {
    let [zero, one, tiny, straight] = [0.0, 1.0, TINY * TINY, STRAIGHT].map(|value| k.number(value));
    let cosine = ar_r / ar_norm / r_norm;
    k.require_no_breakdown(ar_norm.choose(cosine.modulus2() - tiny, one));
    let longer = (straight / cosine.modulus()).larger(one);
    ar_norm.choose(ar_r / ar_norm / ar_norm * longer, zero)
}
