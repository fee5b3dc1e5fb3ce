//! Conjugate gradients as textbooks have them (Hestenes and Stiefel 1952, doi 10.6028/jres.049.044; Saad 2003, algorithm 6.18).
//!
//! | pass | bytes a row in double precision, without / with weights |
//! |---|---|
//! | q = A p, p·q | 12 nnz / n + 20 |
//! | r −= α q, r·r | 24 / 32 |
//! | x += α p, p = r + β p | 40 |

use crate::backend::text::Recorder;

/// x, r and p of one iteration after the other, for a symmetric and positive definite matrix.
pub(crate) fn cg(k: &Recorder) {
    let (a, mut x, mut r) = (k.a(), k.x(), k.r());
    let [p, q] = k.vectors(["p", "q"]);

    k.direction(p, r);
    let rho = k.carried(r.dot(r));
    k.iteration(|| {
        q.set(a * p);
        let pq = p.dot(q);
        k.require_definite(pq);
        let alpha = rho / pq;
        x += alpha * p;
        r -= alpha * q;
        let rho_next = r.dot(r);
        let beta = rho_next / rho;
        p.set(r + beta * p);
        k.watch(k.norm2(r));
        k.next(rho, rho_next);
    });
}
