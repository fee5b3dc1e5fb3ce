//! Induced dimension reduction, IDR(4), with biorthogonal residuals (van Gijzen and Sonneveld 2011, doi 10.1145/2049662.2049667),
//! for any square matrix.
//!
//! Residuals lie in spaces that shrink: each is ω-times a step of steepest descent further, and orthogonal to four vectors p that
//! stay, for which random ones serve. A cycle, one iteration here, has four products that lead back into the space, from
//! residual differences g = A u, and a fifth that leads into the next one. M = Pᵀ G is lower triangular. Without rounding it
//! takes n + n / 4 products at most. A preconditioner is on the right, A M⁻¹ (M x) = b: u and x are made of M⁻¹ v, where v = r − G c.
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | five products | 60 nnz / n + 100 |
//! | Pᵀ t, four times | 40 |
//! | g, u, x, r and the next u, four times | 104 to 120 |
//! | x, r, Pᵀ r | 72 / 80 |
//! | the first u | 80 |

use std::array::from_fn;

use super::steepest;
use crate::backend::text::{Combination, Recorder, Scalar};

/// The dimension of the space that residuals are orthogonal to.
const S: usize = 4;

/// x by steps into spaces of lower and lower dimension.
pub(crate) fn idr<'k>(k: &'k Recorder) {
    let (mut a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [u_1, t] = k.vectors(["u_1", "t"]);
    let [u_2, u_3, u_4] = k.vectors(["u_2", "u_3", "u_4"]);
    let mut u = [u_1, u_2, u_3, u_4];
    let g = k.vectors(["g_1", "g_2", "g_3", "g_4"]);
    let p = ["p_1", "p_2", "p_3", "p_4"].map(|name| k.random(name));
    let m_inverse = k.preconditioner();
    let is_plain = m_inverse.is_identity();
    let [v, v_hat] = if is_plain { [r, r] } else { k.vectors(["v", "v_hat"]) };
    if !is_plain {
        a = a.filling(); // u is made of M⁻¹ v and of what was multiplied before: that takes other halos than r and G
    }
    let [zero, one] = [0.0, 1.0].map(|value| k.scalar(value));
    // where nothing is left to be divided, there is no step
    let quotient = |a: Scalar<'k>, b: Scalar<'k>| b.modulus().choose(a / b, zero);

    let omega = k.carried(one);
    let first_f = p.map(|p| k.carried(p.dot(r))); // Pᴴ r
    let first_m: [[_; S]; S] = from_fn(|i| from_fn(|j| k.carried(if i == j { one } else { zero })));
    k.iteration(|| {
        let (mut f, mut m) = (first_f, first_m);
        for j in 0..S {
            // M c = f, and u = U c + ω (r − G c) in the space
            let mut c = [zero; S];
            let (mut next_u, mut next_v) = (omega * v_hat, Combination::from(r));
            for i in j..S {
                let known = (j..i).fold(f[i], |rest, l| rest - m[i][l] * c[l]);
                c[i] = quotient(known, m[i][i]);
                next_u = next_u + c[i] * u[i];
                if is_plain {
                    next_u = next_u - omega * c[i] * g[i];
                } else {
                    next_v = next_v - c[i] * g[i];
                }
            }
            if !is_plain {
                v.set(next_v);
                m_inverse.apply(v, v_hat);
            }
            u[j].set(next_u);

            // g = A u, orthogonal to p_1 … p_(j−1)
            t.set(a * u[j]);
            let mut of_p = p.map(|p| p.dot(t));
            let mut next_g = Combination::from(t);
            for i in 0..j {
                let alpha = quotient(of_p[i], m[i][i]);
                (i..S).for_each(|l| of_p[l] = of_p[l] - alpha * m[l][i]);
                next_g = next_g - alpha * g[i];
                u[j] -= alpha * u[i];
            }
            g[j].set(next_g);
            (j..S).for_each(|i| m[i][j] = of_p[i]);

            // r orthogonal to p_j, too
            let beta = quotient(f[j], m[j][j]);
            r -= beta * g[j];
            x += beta * u[j];
            (j + 1..S).for_each(|i| f[i] = f[i] - beta * m[i][j]);
        }

        let r_norm = r.dot(r).sqrt();
        m_inverse.apply(r, v_hat);
        t.set(a * v_hat);
        let omega_next = steepest::step(k, t.dot(r), t.dot(t).sqrt(), r_norm);
        x += omega_next * v_hat;
        r -= omega_next * t;
        k.watch(k.norm2(r));

        k.next(omega, omega_next);
        p.iter().zip(first_f).for_each(|(p, f)| k.next(f, p.dot(r)));
        for (former, m) in first_m.iter().flatten().zip(m.iter().flatten()) {
            k.next(*former, *m);
        }
    });
}
