//! Preconditioned conjugate gradients as textbooks have them (Hestenes and Stiefel 1952, doi 10.6028/jres.049.044; Saad 2003,
//! algorithms 6.18 and 9.1).
//!
//! | pass | bytes a row in double precision, without a preconditioner / with the diagonal |
//! |---|---|
//! | q = A p, p·q | 12 nnz / n + 20 |
//! | r −= α q, z = M⁻¹ r, r·z, r·r | 24 / 40 |
//! | x += α p, p = z + β p | 40 |

use crate::backend::text::Recorder;

/// x, r and p of one iteration after the other, for a symmetric and positive definite matrix.
pub(crate) fn cg(k: &Recorder) {
    let (a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [p, q] = k.vectors(["p", "q"]);
    let m = k.preconditioner();
    let z = m.vector("z", r);

    m.apply(r, z);
    k.direction(p, z);
    let rho = k.carried(m.dot(r, z));
    k.iteration(|| {
        q.set(a * p);
        let pq = p.dot(q);
        k.require_definite(pq);
        let alpha = rho / pq;
        r -= alpha * q;
        let norm2 = k.norm2(r);
        m.apply(r, z);
        let rho_next = m.dot(r, z);
        x += alpha * p;
        let beta = rho_next / rho;
        p.set(z + beta * p);
        k.watch(norm2);
        k.next(rho, rho_next);
    });
}
