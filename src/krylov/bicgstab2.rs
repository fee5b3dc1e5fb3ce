//! The stabilised method of biconjugate gradients with two steps of minimal residuals at once, BiCGstab(2) (Sleijpen and Fokkema 1993,
//! ETNA 1, 11–32; Sleijpen, van der Vorst and Fokkema 1994, doi 10.1007/BF02141261), for any square matrix.
//!
//! An iteration has two steps of biconjugate gradients, orthogonal to r̂ and Aᵀ r̂, and then takes the γ₁ and γ₂ that minimise
//! ‖r − γ₁ A r − γ₂ A² r‖. A real polynomial of degree 2 is small on pairs of complex eigenvalues, where the real ω of `bicgstab` is
//! near 0. r̂ is random: r itself, as usual, is orthogonal to A r where A is skew-symmetric. So the first iterations may have a larger ‖r‖.
//!
//! The second direction, r − β p, is formed only at the end, as until then only its product with A is needed. Its residual is that
//! after the first step, r + α₁ A p, so that it costs no vector of its own.
//!
//! A preconditioner is on the right, A M⁻¹ (M x) = b: M⁻¹ is applied to what is multiplied, and x is made of that.
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | v = A p, v·v; t = A r, t·t; v = A² p, v·v; t = A² r, A r·t, t·t | 48 nnz / n + 80 |
//! | r̂·v, r̂·t, r̂·v | 48 |
//! | r | 24 |
//! | A p | 24 |
//! | r, A r, r·r, A r·r, A r·A r | 48 |
//! | r·t, r̂·t | 24 |
//! | x, r, p, r·r, r̂·r | 88 / 96 |

use super::steepest::{self, TINY};
use crate::backend::text::{Recorder, Scalar};

/// x by two steps of biconjugate gradients and the best of two along residuals, in turns.
pub(crate) fn bicgstab2<'k>(k: &'k Recorder) {
    let (a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [p, v, t, ap, ar] = k.vectors(["p", "v", "t", "ap", "ar"]);
    let shadow = k.random("shadow"); // r̂
    let m = k.preconditioner();
    let of = |name, v| m.vector(name, v); // M⁻¹ v
    let [m_p, m_r, m_ap, m_ar] = [of("m_p", p), of("m_r", r), of("m_ap", ap), of("m_ar", ar)];
    let [zero, one, tiny, lost] = [0.0, 1.0, TINY * TINY, TINY].map(|value| k.number(value));

    k.direction(p, r);
    let (shadow_norm, shadow_r) = (shadow.dot(shadow).sqrt(), shadow.dot(r));
    let [length, rho] = [shadow_norm, shadow_r].map(|first| k.carried(first));
    let straight = k.carried((shadow_r / shadow_norm / r.dot(r).sqrt()).modulus2()); // cos² of the angle between r̂ and r
    let before2 = k.carried(r.dot(r));
    // what is left to the next iteration stays in the log: the last pass need not add it up anew, and has no more sums than ranks exchange
    let kept = k.carried(k.scalar(1.0));
    // r̂ is not orthogonal to what is left of a product; where nothing is, there is no step
    let require_angle = |of_product: Scalar<'k>, norm: Scalar<'k>| {
        k.require_no_breakdown(norm.choose((of_product / length / norm).modulus2() - tiny, one));
    };
    k.iteration(|| {
        m.apply(p, m_p);
        v.set(a * m_p);
        let shadow_v = shadow.dot(v);
        let of_v = shadow_v / length / v.dot(v).sqrt();
        k.require_no_breakdown(straight - tiny);
        k.require_no_breakdown(of_v.modulus2() - tiny);
        let alpha = rho / shadow_v;
        r -= alpha * v;
        let is_left = r.dot(r) - tiny * before2; // or else the first step has left nothing but rounding, and is the only one

        m.apply(r, m_r);
        t.set(a * m_r);
        let rho_1 = shadow.dot(t);
        k.next(kept, rho_1);
        require_angle(rho_1, is_left.choose(t.dot(t).sqrt(), zero));
        let beta = rho_1 / rho * alpha;
        ap.set(t - beta * v);
        m.apply(ap, m_ap);
        v.set(a * m_ap);
        let (shadow_v, v_norm) = (shadow.dot(v), is_left.choose(v.dot(v).sqrt(), zero));
        require_angle(shadow_v, v_norm);
        let alpha_1 = v_norm.choose(rho_1 / shadow_v, zero);
        r -= alpha_1 * ap;
        ar.set(t - alpha_1 * v);

        // r and t = A² r: what of them is along A r, and the squares of what is left
        let (ar2, ar_r, r2) = (ar.dot(ar), ar.dot(r), r.dot(r));
        m.apply(ar, m_ar);
        t.set(a * m_ar);
        let (ar_t, t2) = (ar.dot(t), t.dot(t));
        let (t_r, shadow_t) = (t.dot(r), shadow.dot(t));
        let [of_r, of_t] = [ar_r, ar_t].map(|part| ar2.choose(part / ar2, zero));
        let left_of_r = r2 - ar2.choose(ar_r.modulus2() / ar2, zero);
        let left_of_t = t2 - ar2.choose(ar_t.modulus2() / ar2, zero);
        // where that is rounding, or r is, there is no second step; then r stays orthogonal to r̂, and the next iteration breaks down
        let has_second = (left_of_r - lost * r2).smaller(left_of_t - lost * t2).smaller(r2 - tiny * before2);
        let [r_norm, t_norm] = [left_of_r, left_of_t].map(|left| has_second.choose(left, zero).sqrt());
        let gamma_2 = steepest::step(k, t_r - ar_t.conj() * of_r, t_norm, r_norm);
        let gamma_1 = of_r - of_t * gamma_2;
        // the next ρ is −γ₂ r̂·t, as r̂ is orthogonal to r and A r; but r̂·r is what serves for the next α
        let beta_next = -alpha_1 * shadow_t / rho_1;

        if m.is_identity() {
            x += alpha * p;
            p.set(r + alpha_1 * ap - beta * p);
            x += alpha_1 * p + gamma_1 * r + gamma_2 * ar;
        } else {
            // M⁻¹ r is that of before the second step
            x += (alpha - alpha_1 * beta) * m_p + (alpha_1 + gamma_1) * m_r;
            x += gamma_2 * m_ar - gamma_1 * alpha_1 * m_ap;
            p.set(r + alpha_1 * ap - beta * p);
        }
        r -= gamma_1 * ar + gamma_2 * t;
        p.set(r + beta_next * p - beta_next * gamma_1 * ap - beta_next * gamma_2 * v);
        let (rho_next, r2_next, norm2) = (shadow.dot(r), r.dot(r), k.norm2(r));
        k.watch(norm2);
        k.next(rho, rho_next);
        k.next(before2, r2_next);
        k.next(straight, (rho_next / length / r2_next.sqrt()).modulus2());
    });
}
