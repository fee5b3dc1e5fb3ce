//! The method of minimal residuals (Paige and Saunders 1975, doi 10.1137/0712047), for a symmetric matrix that need not be definite.
//!
//! Lanczos' process gives A V = V T with orthonormal columns v = u / β of V and a tridiagonal T, whose rows are made triangular by
//! reflections (c, s) as they come. x = V y with the least ‖b − A x‖ then has three-term recurrences, and φ̄ is that norm. With a
//! preconditioner, z = M⁻¹ u, β² = u·z, and it is the norm that M⁻¹ makes. With one, or if the system is scaled, the norm in the
//! units given is that of the residual, which has a recurrence, too (Choi, Paige and Saunders 2011, doi 10.1137/100787921):
//! r = s² r − φ̄ c v.
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A u, u·q | 12 nnz / n + 20 |
//! | the next u, its norm | 32 |
//! | w, x / and r | 48 / 80 |

use crate::backend::text::Recorder;

/// x with the least ‖b − A x‖ in one Krylov space after the other.
pub(crate) fn minres(k: &Recorder) {
    let (a, mut x, r) = (k.a(), k.x(), k.r());
    let [u, u_old, q] = k.vectors(["u", "u_old", "q"]);
    let [w, w_old] = k.vectors(["w", "w_old"]);
    let m = k.preconditioner();
    let [z, z_old] = [m.vector("z", u), m.vector("z_old", u_old)];
    let [zero, one] = [0.0, 1.0].map(|value| k.number(value));

    u.set(r);
    m.apply(u, z);
    let beta_1 = m.dot(u, z).sqrt();
    let [beta, beta_old, phi_bar] = [beta_1, one, beta_1].map(|first| k.carried(first));
    let [delta_bar, epsilon, c, s] = [zero, zero, -one, zero].map(|first| k.carried(first));
    k.iteration(|| {
        // Lanczos: the next u is A v − α v − β v_old, and takes the place of u_old; likewise z and w
        q.set(a * z);
        let alpha = z.dot(q) / (beta * beta);
        u_old.set(1.0 / beta * q - alpha / beta * u - beta / beta_old * u_old);
        m.apply(u_old, z_old);
        let beta_next = m.dot(u_old, z_old).sqrt();

        // the next column of T: the last reflection, and one more
        let delta = c * delta_bar + s * alpha;
        let gamma_bar = s * delta_bar - c * alpha;
        let gamma = (gamma_bar * gamma_bar + beta_next * beta_next).sqrt();
        let (c_next, s_next) = (gamma_bar / gamma, beta_next / gamma);

        w_old.set(1.0 / (gamma * beta) * z - epsilon / gamma * w_old - delta / gamma * w);
        x += c_next * phi_bar * w_old;
        let phi_bar_next = s_next * phi_bar;
        if k.is_scaled() || !m.is_identity() {
            r.set(s_next * s_next * r - phi_bar * c_next / gamma * u_old);
            k.watch(k.norm2(r));
        } else {
            k.watch(phi_bar_next * phi_bar_next);
        }

        k.swap(u, u_old);
        m.swap(z, z_old);
        k.swap(w, w_old);
        for (scalar, next) in [(beta, beta_next), (beta_old, beta), (phi_bar, phi_bar_next), (c, c_next), (s, s_next)] {
            k.next(scalar, next);
        }
        k.next(delta_bar, -c * beta_next);
        k.next(epsilon, s * beta_next);
    });
}
