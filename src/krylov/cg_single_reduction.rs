//! Conjugate gradients with one sum over ranks an iteration, by recurrence of A p (Chronopoulos and Gear 1989, doi
//! 10.1016/0377-0427(89)90045-9).
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A r, δ = r·q | 12 nnz / n + 20 |
//! | p = r + β p, s = q + β s, x += α p, r −= α s, γ = r·r | 72 / 80 |
//!
//! β = γ / γ' is formed of residuals as they were computed, where [`cg`](mod@super::cg) predicts it; what is derived here is p·A p:
//! see [`PreviousStep`].

use super::previous_step::PreviousStep;
use crate::backend::text::Recorder;

/// x, r and p of one iteration after the other, for a symmetric and positive definite matrix.
pub(crate) fn cg_single_reduction(k: &Recorder) {
    let (a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [p, q, s] = k.vectors(["p", "q", "s"]);

    k.direction(p, k.number(0.0) * r);
    s.set(a * p);
    let gamma = k.carried(r.dot(r));
    let previous = PreviousStep::of_direction(k, r, p, s);
    k.iteration(|| {
        q.set(a * r);
        let [alpha, beta] = previous.next(k, gamma, r.dot(q));
        p.set(r + beta * p);
        s.set(q + beta * s);
        x += alpha * p;
        r -= alpha * s;
        k.next(gamma, r.dot(r));
        k.watch(k.norm2(r));
    });
}
