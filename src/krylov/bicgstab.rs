//! The stabilised method of biconjugate gradients (van der Vorst 1992, doi 10.1137/0913035), for any square matrix.
//!
//! Half an iteration is one of biconjugate gradients, orthogonal to a vector r̂ that stays; the other half takes the step ω along
//! the residual that minimises it. A preconditioner is on the right, A M⁻¹ (M x) = b, so that residuals are those of the system: what is
//! multiplied, and what x is made of, is M⁻¹ p and M⁻¹ s.
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | v = A p, v·v; t = A s, t·s, t·t | 24 nnz / n + 40 |
//! | r̂·v | 16 |
//! | s = r − α v, s·s | 24 |
//! | x, r = s − ω t, r·r, r̂·r | 56 / 64 |
//! | p | 32 |

use super::steepest::{self, TINY};
use crate::backend::text::Recorder;

/// x by steps of biconjugate gradients and of steepest descent in turns.
pub(crate) fn bicgstab(k: &Recorder) {
    let (a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [p, v, t, shadow] = k.vectors(["p", "v", "t", "shadow"]);
    let m = k.preconditioner();
    let [p_hat, s_hat] = [m.vector("p_hat", p), m.vector("s_hat", r)];
    let [one, tiny] = [1.0, TINY * TINY].map(|value| k.number(value));

    k.keep(shadow, r);
    k.direction(p, r);
    let length = k.carried(shadow.dot(shadow).sqrt()); // ‖r̂‖
    let rho = k.carried(shadow.dot(r));
    let cosine2 = k.carried(one); // of the angle between r̂ and r, squared
    k.iteration(|| {
        m.apply(p, p_hat);
        v.set(a * p_hat);
        let v_norm = v.dot(v).sqrt();
        let shadow_v = shadow.dot(v);
        let of_v = shadow_v / length / v_norm;
        k.require_no_breakdown(of_v.modulus2().smaller(cosine2) - tiny);
        let alpha = rho / shadow_v;
        r -= alpha * v; // s

        let s_norm = r.dot(r).sqrt();
        m.apply(r, s_hat);
        t.set(a * s_hat);
        let omega = steepest::step(k, t.dot(r), t.dot(t).sqrt(), s_norm);
        x += alpha * p_hat + omega * s_hat;
        r -= omega * t;
        let (rho_next, norm2) = (shadow.dot(r), k.norm2(r));
        k.watch(norm2);

        let beta = rho_next / rho * alpha / omega;
        p.set(r + beta * p - beta * omega * v);
        k.next(rho, rho_next);
        k.next(cosine2, (rho_next / length / r.dot(r).sqrt()).modulus2());
    });
}
