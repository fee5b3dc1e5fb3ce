//! The least-squares method LSMR (Fong and Saunders 2011, doi 10.1137/10079687X): the least ‖b − A x‖ for any A, of any shape and rank.
//!
//! The bidiagonalisation of Golub and Kahan gives A V = U B with orthonormal columns u / β of U and v / α of V, and a lower bidiagonal
//! B. In each of the spaces that V spans, x is the one with the least ‖Aᵀ r‖: what minimal residuals would find for Aᵀ A x = Aᵀ b.
//! Two rotations an iteration, (c, s) of B and (c̄, s̄) of what the first leaves, give x by recurrences, and ‖Aᵀ r‖ = |ζ̄|. A third one,
//! (c̃, s̃), gives ‖r‖ (section 5 there). From x = 0 the limit is the solution of the least norm.
//!
//! The run ends once ‖Aᵀ r‖ ≤ tolerance ‖r‖: where that is 0, r is orthogonal to the range of A, and no other x has a smaller
//! residual. What is 0 in a system that is solved exactly is not divided by.
//!
//! In mixed precision Aᵀ r of the first residual is given. In single precision it would be lost beside an r that stays large: its error is
//! one of ‖A‖ ‖r‖. With it, x minimises as well as if r were small, as r itself has little part in what follows: in u that of α / β.
//!
//! | pass | bytes a row in double precision |
//! |---|---|
//! | q = A v | 12 nnz / n + 20 |
//! | u, its norm | 24 |
//! | t = Aᵀ u | 12 nnz / n + 20 |
//! | v, its norm | 24 |
//! | h̄, x, h | 56 |

use crate::backend::text::{Recorder, Scalar};

/// x with the least ‖Aᵀ (b − A x)‖ in one Krylov space of Aᵀ A after the other.
pub(crate) fn lsmr(k: &Recorder) {
    let (a, at, mut x, u) = (k.a(), k.transpose(), k.x(), k.r());
    let [t, q, v, h, h_bar] = k.vectors(["t", "q", "v", "h", "h_bar"]);
    let [zero, one] = [0.0, 1.0].map(|value| k.number(value));

    // u, the residual, and v are not divided by their norms β and α
    let beta_1 = u.dot(u).sqrt();
    k.direction(t, at * u);
    v.set(inverse(beta_1) * t);
    let alpha_1 = v.dot(v).sqrt();
    h.set(inverse(alpha_1) * v);
    let tolerance = k.tolerance();
    let [alpha, beta, alpha_bar, zeta_bar] = [alpha_1, beta_1, alpha_1, alpha_1 * beta_1].map(|first| k.carried(first));
    let [rho, rho_bar, c_bar, s_bar, zeta] = [one, one, one, zero, zero].map(|first| k.carried(first));
    // of the norm of r
    let [beta_dot, beta_ddot, rho_dot, theta_tilde, tau_tilde] =
        [zero, beta_1, one, zero, zero].map(|first| k.carried(first));
    let norm2 = k.carried(beta_1 * beta_1);

    k.iteration(|| {
        q.set(a * v);
        k.require_descent(zeta_bar * zeta_bar - tolerance * tolerance * norm2);
        // the next column of U, and that of V
        u.set(inverse(alpha) * q - alpha * inverse(beta) * u);
        let beta_next = u.dot(u).sqrt();
        t.set(at * u);
        v.set(inverse(beta_next) * t - beta_next * inverse(alpha) * v);
        let alpha_next = v.dot(v).sqrt();

        // B = Q R
        let rho_next = (alpha_bar * alpha_bar + beta_next * beta_next).sqrt();
        let (c, s) = (alpha_bar / rho_next, beta_next / rho_next);
        let (theta, alpha_bar_next) = (s * alpha_next, c * alpha_next);
        // Rᵀ = Q̄ R̄
        let (theta_bar, rho_turned) = (s_bar * rho_next, c_bar * rho_next);
        let rho_bar_next = (rho_turned * rho_turned + theta * theta).sqrt();
        let (c_bar_next, s_bar_next) = (rho_turned / rho_bar_next, theta / rho_bar_next);
        let (zeta_next, zeta_bar_next) = (c_bar_next * zeta_bar, -s_bar_next * zeta_bar);

        h_bar.set(h - theta_bar * rho_next / (rho * rho_bar) * h_bar);
        x += zeta_next / (rho_next * rho_bar_next) * h_bar;
        h.set(inverse(alpha_next) * v - theta / rho_next * h);

        // R̄ᵀ = Q̃ R̃, as far as ‖r‖ needs it
        let rho_tilde = (rho_dot * rho_dot + theta_bar * theta_bar).sqrt();
        let (c_tilde, s_tilde) = (rho_dot / rho_tilde, theta_bar / rho_tilde);
        let (theta_tilde_next, rho_dot_next) = (s_tilde * rho_bar_next, c_tilde * rho_bar_next);
        let beta_dot_next = c_tilde * (c * beta_ddot) - s_tilde * beta_dot;
        let beta_ddot_next = -s * beta_ddot;
        let tau_tilde_next = (zeta - theta_tilde * tau_tilde) / rho_tilde;
        let tau_dot = (zeta_next - theta_tilde_next * tau_tilde_next) / rho_dot_next;
        let left = beta_dot_next - tau_dot;
        let norm2_next = left * left + beta_ddot_next * beta_ddot_next;
        k.watch(norm2_next);

        for (scalar, next) in [
            (alpha, alpha_next),
            (beta, beta_next),
            (alpha_bar, alpha_bar_next),
            (zeta_bar, zeta_bar_next),
            (rho, rho_next),
            (rho_bar, rho_bar_next),
            (c_bar, c_bar_next),
            (s_bar, s_bar_next),
            (zeta, zeta_next),
            (beta_dot, beta_dot_next),
            (beta_ddot, beta_ddot_next),
            (rho_dot, rho_dot_next),
            (theta_tilde, theta_tilde_next),
            (tau_tilde, tau_tilde_next),
            (norm2, norm2_next),
        ] {
            k.next(scalar, next);
        }
    });
}

/// 1 / ‖v‖; 0 if that is 0.
fn inverse(norm: Scalar<'_>) -> Scalar<'_> {
    norm.choose(1.0 / norm, 0.0 * norm)
}
